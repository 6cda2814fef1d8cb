// SPDX-License-Identifier: BSD-3-Clause
// libparc-early.so: the C library's calls, as a program with guarded pages needs them. The system answers
// EFAULT, or a short count, where it should read or write a guarded page: so what is given to it is waited
// for first. And what leaves the process by another way than libparc (files, sockets, signals, new processes)
// waits until every released read has begun: causality goes that way, too. SIGSEGV stays libparc's.
//
// libparc offers its hooks when it is loaded, however that is: in the program, by dlopen, also with
// RTLD_LOCAL. A call costs one look at a counter where nothing is guarded. Without libparc in the program it
// costs a null pointer's test. errno is that of the call itself.
#pragma once

#include "client/early/hooks.hpp"

#include <cstdarg>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/uio.h>

namespace parc::preload {

// The hooks of libparc; nullptr: this program has no libparc (yet: dlopen may bring it). Async-signal-safe.
[[nodiscard]] const client::EarlyHooks* hooks();

// The hooks where something is guarded, else nullptr.
[[nodiscard]] inline const client::EarlyHooks* guarding() {
  const client::EarlyHooks* const ours = hooks();
  return ours != nullptr && ours->any() ? ours : nullptr;
}

// Waits until nothing is missing of this memory, which the system will read or write.
inline void settle(const void* memory, std::size_t bytes) {
  if (const auto* const ours = guarding()) ours->settle(memory, bytes);
}

template <class Value> void settle_value(const Value* value) {
  if (value != nullptr) settle(value, sizeof *value);
}

// Settles a list of pieces, and the memory that they name.
inline void settle_pieces(const iovec* pieces, std::size_t count) {
  if (guarding() == nullptr) return;
  settle(pieces, count * sizeof(iovec));
  for (std::size_t i = 0; i < count; ++i) settle(pieces[i].iov_base, pieces[i].iov_len);
}

// Settles a text that the system will read. Only its zero says where it ends, so it is touched here, where a
// touch waits.
inline void settle_text(const char* text) {
  if (text == nullptr || guarding() == nullptr) return;
  const volatile char* at = text;
  while (*at != '\0') ++at;
}

// Settles the texts of a list that ends with a null pointer.
inline void settle_texts(char* const list[]) {
  if (list == nullptr || guarding() == nullptr) return;
  for (; *list != nullptr; ++list) settle_text(*list);
}

// Waits for all that is missing, before this process, or its program, ends: released reads hold back what it
// has written, which must not be lost.
inline void settle_all() {
  if (const auto* const ours = guarding()) ours->settle_all();
}

// Waits until every released read has begun, and every released get has ended: others will see what the call
// that follows does.
inline void settle_begun() {
  if (const auto* const ours = guarding()) ours->settle_begun();
}

// The C library's own function of this name; without one the process aborts.
template <class Function> Function* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

} // namespace parc::preload

// PARC_REAL(NAME): declares `real`, the C library's function NAME, in the wrapper that stands before it.
// (What attributes the C library's headers give a function is no part of its type.)
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define PARC_REAL(NAME) static auto* const real = parc::preload::next<decltype(NAME)>(#NAME)

// PARC_LAST_ARGUMENT(TYPE, AFTER): declares `last`, the argument behind AFTER, which some calls of the
// function have. In a call without it `last` means nothing, and the C library does not look at it.
#define PARC_LAST_ARGUMENT(TYPE, AFTER)                                                                      \
  va_list rest;                                                                                              \
  va_start(rest, AFTER);                                                                                     \
  const auto last = va_arg(rest, TYPE);                                                                      \
  va_end(rest)
