// SPDX-License-Identifier: BSD-3-Clause
// over, so nothing of it may be missing when they begin.
#include "client/preload/hooks.hpp"

#include <aio.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_value;

template <class Control> void settle_control(const Control* control) {
  if (control == nullptr || parc::preload::guarding() == nullptr) return;
  settle_value(control);
  settle(const_cast<const void*>(control->aio_buf), control->aio_nbytes);
}

template <class Control> void settle_controls(Control* const controls[], int count) {
  if (parc::preload::guarding() == nullptr) return;
  for (int i = 0; i < count; ++i) settle_control(controls[i]);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

int aio_read(aiocb* control) noexcept {
  PARC_REAL(aio_read);
  settle_control(control);
  return real(control);
}

int aio_read64(aiocb64* control) noexcept {
  PARC_REAL(aio_read64);
  settle_control(control);
  return real(control);
}

int aio_write(aiocb* control) noexcept {
  PARC_REAL(aio_write);
  settle_begun();
  settle_control(control);
  return real(control);
}

int aio_write64(aiocb64* control) noexcept {
  PARC_REAL(aio_write64);
  settle_begun();
  settle_control(control);
  return real(control);
}

int aio_fsync(int operation, aiocb* control) noexcept {
  PARC_REAL(aio_fsync);
  settle_begun();
  settle_value(control);
  return real(operation, control);
}

int aio_fsync64(int operation, aiocb64* control) noexcept {
  PARC_REAL(aio_fsync64);
  settle_begun();
  settle_value(control);
  return real(operation, control);
}

int lio_listio(int mode, aiocb* const controls[], int count, sigevent* event) noexcept {
  PARC_REAL(lio_listio);
  settle_begun();
  settle_controls(controls, count);
  settle_value(event);
  return real(mode, controls, count, event);
}

int lio_listio64(int mode, aiocb64* const controls[], int count, sigevent* event) noexcept {
  PARC_REAL(lio_listio64);
  settle_begun();
  settle_controls(controls, count);
  settle_value(event);
  return real(mode, controls, count, event);
}

#pragma GCC visibility pop
}
