// SPDX-License-Identifier: BSD-3-Clause
// Memory that this program exposes to others (one-sided transfers).
#include "client/calls/context.hpp"

#include "client/base/failure.hpp"
#include "client/base/pages.hpp"

#include <sys/prctl.h>

namespace parc::client {

// The kernel answers others from it: nothing that a released wait still misses may be in it, and nobody is to
// hear of it before what was released has begun. What is not shared with the kernel it reaches through the
// system, but atomic operations are this program's.
int Context::expose(std::uint64_t window, void* memory, std::size_t bytes, unsigned rights) {
  if (memory == nullptr && bytes != 0)
    return fail(error(PARC_EINVAL, "a window of {} bytes is a null pointer", bytes));
  if ((rights & (PARC_MAY_GET | PARC_MAY_PUT)) == 0 ||
      (rights & ~(PARC_MAY_GET | PARC_MAY_PUT | PARC_MAY_ANYBODY)) != 0)
    return fail(error(PARC_EINVAL,
                      "{:#x} are no rights of a window: they are PARC_MAY_GET, PARC_MAY_PUT or both, with "
                      "PARC_MAY_ANYBODY or without",
                      rights));
  const bool shared = bytes == 0 || arena_.contains(memory, bytes);
  if (!shared && (rights & PARC_MAY_PUT) != 0)
    if (const auto started = copying_thread_.start(); !started) return fail(started.error());
  shm::Request request{};
  request.kind = shm::RequestKind::expose;
  request.address = client::address_of(memory);
  request.length = bytes;
  request.exposed = {window, rights};
  if (!shared) request.pieces = shm::in_own_memory;
  // The system reaches no page that is missing elsewhere.
  const Pages there = shared ? Pages{request.address, request.address + bytes} : pages_around(memory, bytes);
  ExposedMemory::Exposing exposing(guards_.exposed(), there.begin,
                                   there.end - there.begin); // before what is there is settled
  if (shared)
    guards_.settle(memory, bytes, Guards::Use::stores);
  else
    guards_.settle_pages(memory, bytes);
  guards_.settle_begun();
  if (!shared) adoption_.let_finish(); // what is exposed is not adopted from here on
  int code = control_calls_.run(request);
  // Yama may ask for that, and the program may have said it of another.
  if (code == PARC_ENOMEM && !shared &&
      prctl(PR_SET_PTRACER, static_cast<unsigned long>(session_.kernel_pid)) == 0)
    code = control_calls_.run(request);
  switch (code) {
  case PARC_OK: exposing.done(window); return code;
  case PARC_EINVAL: return fail(error(code, "this program has exposed a window {} already", window));
  case PARC_EAGAIN:
    return fail(
        error(code, "this program has exposed {} windows already: no more is possible", shm::most_windows));
  case PARC_ENOMEM:
    return fail(
        error(code,
              "the {} bytes of window {} are not memory of parc_alloc, and the kernel of this host may "
              "not reach the memory of this process (process_vm_readv), or does not find them",
              bytes, window));
  default: return fail(code);
  }
}

int Context::unexpose(std::uint64_t window) {
  const auto id = starter_.unexpose(window);
  if (!id) return fail(id.error());
  const int code = finish(id.value(), nullptr);
  if (code == PARC_EINVAL) return fail(error(code, "this program has exposed no window {}", window));
  if (code == PARC_OK) guards_.exposed().remove(window);
  return code;
}

int Context::get(const parc_place& from, const iovec& buffer) {
  if (starter_.get_at_once(from, buffer)) return PARC_OK;
  const auto id = starter_.get(from, {&buffer, 1}, 0);
  return id ? finish(id.value(), nullptr) : fail(id.error());
}

int Context::atomic(const parc_place& at, const protocol::Atomic& atomic, std::uint64_t* before) {
  if (starter_.operate_at_once(at, atomic, before)) return PARC_OK;
  const auto id = starter_.atomic(at, atomic, before, 0);
  return id ? finish(id.value(), nullptr) : fail(id.error());
}

int Context::put(const parc_place& to, const iovec& buffer) {
  if (starter_.put_at_once(to, buffer)) return PARC_OK;
  const auto id = starter_.put(to, {&buffer, 1}, 0);
  return id ? finish(id.value(), nullptr) : fail(id.error());
}

} // namespace parc::client
