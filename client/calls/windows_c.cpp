// SPDX-License-Identifier: BSD-3-Clause
// The C interface of windows: parc/window.h.
#include "client/base/c_arguments.hpp"
#include "client/calls/calls.hpp"
#include "parc/parc.h"

#include <algorithm>

using namespace parc; // NOLINT: the calls themselves are outside
using client::bad_list;
using client::called;
using client::caller;
using client::done_briefly;
using client::guarded;
using client::list;
using client::no_place;
using client::noted;
using client::piece;
using client::started;

namespace {

constexpr auto brief = client::Starter::Pace::brief;

} // namespace

int parc_expose(parc_context* context, uint64_t window, void* memory, size_t bytes, unsigned rights) {
  return guarded(context, [&] { return context->expose(window, memory, bytes, rights); });
}

int parc_unexpose(parc_context* context, uint64_t window) {
  return guarded(context, [&] { return context->unexpose(window); });
}

parc_op parc_initget(parc_context* context, const parc_place* from, void* buffer, size_t bytes,
                     unsigned flags) {
  const iovec whole = piece(buffer, bytes);
  if (!from) return no_place("place");
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().get(*from, {&whole, 1}, flags));
    return noted(context, id, flags);
  });
}

parc_op parc_initgetv(parc_context* context, const parc_place* from, const struct iovec* pieces, int count,
                      unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  if (!from) return no_place("place");
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().get(*from, list(pieces, count), flags));
    return noted(context, id, flags);
  });
}

parc_op parc_initget_rows(parc_context* context, const parc_place* from, size_t row, int64_t stride,
                          const struct iovec* pieces, int count, unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  if (!from) return no_place("place");
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().get(*from, list(pieces, count), flags, protocol::Rows{row, stride}));
    return noted(context, id, flags);
  });
}

int parc_get(parc_context* context, const parc_place* from, void* buffer, size_t bytes) {
  if (!from) return no_place("place");
  const iovec whole = piece(buffer, bytes);
  if (done_briefly(context, [&] { return context->starts().get_at_once(*from, whole, brief); }))
    return PARC_OK;
  return guarded(
      context, [&] { return context->get(*from, whole); }, called(context, trace::Call::get));
}

parc_op parc_initput(parc_context* context, const parc_place* to, const void* buffer, size_t bytes,
                     unsigned flags) {
  const iovec whole = piece(buffer, bytes);
  if (!to) return no_place("place");
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().put(*to, {&whole, 1}, flags));
    return noted(context, id, flags);
  });
}

parc_op parc_initputv(parc_context* context, const parc_place* to, const struct iovec* pieces, int count,
                      unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  if (!to) return no_place("place");
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().put(*to, list(pieces, count), flags));
    return noted(context, id, flags);
  });
}

parc_op parc_initput_rows(parc_context* context, const parc_place* to, size_t row, int64_t stride,
                          const struct iovec* pieces, int count, unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  if (!to) return no_place("place");
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().put(*to, list(pieces, count), flags, protocol::Rows{row, stride}));
    return noted(context, id, flags);
  });
}

int parc_put(parc_context* context, const parc_place* to, const void* buffer, size_t bytes) {
  if (!to) return no_place("place");
  const iovec whole = piece(buffer, bytes);
  if (done_briefly(context, [&] { return context->starts().put_at_once(*to, whole, brief); })) return PARC_OK;
  return guarded(
      context, [&] { return context->put(*to, whole); }, called(context, trace::Call::put));
}

parc_op parc_initatomic(parc_context* context, const parc_place* at, enum parc_atomic what, size_t width,
                        uint64_t operand, uint64_t compare, uint64_t* before, unsigned flags) {
  if (!at) return no_place("place");
  const auto number = static_cast<unsigned>(what);
  const protocol::Atomic atomic{.operand = operand,
                                .compare = compare,
                                .what = static_cast<protocol::Atomic::What>(std::min(number, 255u)),
                                .width = static_cast<std::uint8_t>(std::min<size_t>(width, 255)),
                                .reserved = 0,
                                .reserved_too = 0};
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().atomic(*at, atomic, before, flags));
    return noted(context, id, flags);
  });
}

int parc_fetch_add(parc_context* context, const parc_place* at, int64_t more, int64_t* before) {
  if (!at) return no_place("place");
  const protocol::Atomic atomic{.operand = static_cast<uint64_t>(more),
                                .compare = 0,
                                .what = protocol::Atomic::What::add,
                                .width = 8,
                                .reserved = 0,
                                .reserved_too = 0};
  auto* const was = reinterpret_cast<uint64_t*>(before);
  if (done_briefly(context, [&] { return context->starts().operate_at_once(*at, atomic, was, brief); }))
    return PARC_OK;
  return guarded(
      context, [&] { return context->atomic(*at, atomic, was); }, called(context, trace::Call::atomic));
}

int parc_quiet(parc_context* context) {
  return guarded(
      context, [&] { return context->waits().quiet(); }, called(context, trace::Call::quiet));
}
