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

// nullptr: this program has no libparc (yet: dlopen may bring it). Async-signal-safe.
[[nodiscard]] const client::EarlyHooks* hooks();

// The hooks where something is guarded, else nullptr.
[[nodiscard]] inline const client::EarlyHooks* guarding() {
  const client::EarlyHooks* const ours = hooks();
  return ours != nullptr && ours->any() ? ours : nullptr;
}

// The system will read or write this memory.
inline void settle(const void* memory, std::size_t bytes) {
  if (const auto* const ours = guarding()) ours->settle(memory, bytes);
}

template <class Value> void settle_value(const Value* value) {
  if (value != nullptr) settle(value, sizeof *value);
}

// A list of pieces, and what they name.
inline void settle_pieces(const iovec* pieces, std::size_t count) {
  if (guarding() == nullptr) return;
  settle(pieces, count * sizeof(iovec));
  for (std::size_t i = 0; i < count; ++i) settle(pieces[i].iov_base, pieces[i].iov_len);
}

// The system will read this text, whose end only it says: touched here, where a touch waits.
inline void settle_text(const char* text) {
  if (text == nullptr || guarding() == nullptr) return;
  const volatile char* at = text;
  while (*at != '\0') ++at;
}

// The same of the texts of a list that ends with a null pointer.
inline void settle_texts(char* const list[]) {
  if (list == nullptr || guarding() == nullptr) return;
  for (; *list != nullptr; ++list) settle_text(*list);
}

// This process, or its program, ends: what was written is held back by what was read, and must not be lost.
inline void settle_all() {
  if (const auto* const ours = guarding()) ours->settle_all();
}

// Others will see what this call does.
inline void settle_begun() {
  if (const auto* const ours = guarding()) ours->settle_begun();
}

// The C library's own function of that name.
template <class Function> Function* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

} // namespace parc::preload

// Declares a wrapper for NAME, and `real`, which it stands for.
// (What attributes the C library's headers give a function is no part of its type.)
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define PARC_REAL(NAME) static auto* const real = parc::preload::next<decltype(NAME)>(#NAME)

// The last argument of a call that has it only sometimes; nobody looks at it otherwise.
#define PARC_LAST_ARGUMENT(TYPE, AFTER)                                                                      \
  va_list rest;                                                                                              \
  va_start(rest, AFTER);                                                                                     \
  const auto last = va_arg(rest, TYPE);                                                                      \
  va_end(rest)
