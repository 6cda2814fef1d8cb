// SPDX-License-Identifier: BSD-3-Clause
// How each call of the C interface begins and ends: it checks that it may be made, hands itself to the
// context, and turns the result into a code and a sentence. Nothing is thrown past here.
#pragma once

#include "client/base/failure.hpp"
#include "client/base/in_library.hpp"
#include "client/calls/context_of_process.hpp"

#include <new>

namespace parc::client {

inline bool may_call(const parc_context* context) {
  return context != nullptr && context == open_context.load(std::memory_order_acquire) &&
         !forked.load(std::memory_order_relaxed);
}

// PARC_OK, or why no call can be made on this context. Async-signal-safe.
inline int check(const parc_context* context) {
  if (may_call(context)) {
    if (!InLibrary::interrupted()) return PARC_OK;
    return fail(PARC_EINVAL,
                "a signal handler that has interrupted a call of libparc can make no other than "
                "those that parc.h says are signal-safe, nor can who has left a call by siglongjmp");
  }
  if (forked.load(std::memory_order_relaxed)) return fail(PARC_EFORK);
  if (context == nullptr) return fail(PARC_EINVAL, "the context is a null pointer");
  return fail(PARC_EINVAL, "this context is not open, or no longer");
}

// Where in the program a call of this interface came from: of the function that this is inlined into.
[[gnu::always_inline]] inline const void* caller() {
  return __builtin_return_address(0);
}

// What a trace says of a call.
struct Called {
  Trace* trace = nullptr;
  trace::Call call = trace::Call::other;
  parc_op operation = PARC_OP_NULL;
  const void* site = nullptr;
};
[[gnu::always_inline]] inline Called called(parc_context* context, trace::Call call,
                                            parc_op operation = PARC_OP_NULL) {
  return {context ? &context->trace() : nullptr, call, operation, caller()};
}

// Every call lets the program at what has arrived behind its back.
inline void open_arrived(const parc_context*) {}
inline void open_arrived(parc_context* context) {
  context->guards().open_arrived();
}

enum class InHandlers : bool { no, yes }; // of signals, whatever they have interrupted

// Runs a call that returns an int; there is no memory for exceptions to cross C.
template <InHandlers safe = InHandlers::no, class Handle, class Call>
int guarded(Handle* context, const Call& call, const Called& how = {}) {
  if (safe == InHandlers::no || !may_call(context))
    if (const int code = check(context); code != PARC_OK) return code;
  const InLibrary here;
  const Interrupts::InCall in_call; // else a neighbour may interrupt this thread
  const Trace::InCall traced(how.trace, how.call, static_cast<std::uint64_t>(how.operation), how.site);
  open_arrived(context);
  if constexpr (safe == InHandlers::no) context->look();
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(PARC_ENOMEM);
  }
}

// What takes no lock and waits for nothing: where it can be done so it needs no more of a call than that
// signal handlers know of it.
template <class Copy> bool done_briefly(const parc_context* context, const Copy& copy) {
  if (!may_call(context) || InLibrary::interrupted()) return false;
  const InLibrary::Brief here;
  return copy();
}

template <class Start> parc_op started(parc_context* context, const void* site, const Start& start) {
  if (const int code = check(context); code != PARC_OK) return code;
  const InLibrary here;
  const Interrupts::InCall in_call; // else a neighbour may interrupt this thread
  const Trace::InCall traced(&context->trace(), trace::Call::other, 0, site);
  open_arrived(context);
  context->look();
  try {
    const Result<parc_op> id = start();
    return id ? id.value() : fail(id.error());
  } catch (const std::bad_alloc&) {
    return fail(PARC_ENOMEM);
  }
}

inline parc_op noted(parc_context* context, parc_op id, unsigned flags) {
  if (flags & PARC_QUEUED) context->completions().started(id);
  return id;
}

} // namespace parc::client
