// SPDX-License-Identifier: BSD-3-Clause
// Arguments of the C interface as the actors behind it take them.
#pragma once

#include "client/base/failure.hpp"
#include "parc/parc.h"
#include "shm/layout.hpp"
#include "system/error.hpp"

#include <cstddef>
#include <span>
#include <sys/uio.h>

namespace parc::client {

inline int bad_list(int count) {
  return fail(error(PARC_EINVAL, "a list of {} entries makes no sense, or is a null pointer", count));
}

inline int no_place(const char* what) {
  return fail(error(PARC_EINVAL, "there is no place for the {} (a null pointer)", what));
}

// The message that an address means.
inline Result<parc_envelope> envelope_of(const parc_address* address, bool any) {
  if (!address) return error(PARC_EINVAL, "the address is a null pointer");
  const bool any_tag = any && address->tag == PARC_ANY_TAG;
  if (address->tag < 0 && !any_tag)
    return error(PARC_EINVAL, "tag {} is out of range: a tag is 0 to {}", address->tag, INT32_MAX);
  if (address->context >= PARC_CONTEXT_RESERVED)
    return error(PARC_EINVAL, "context {:#x} is parc's own: a program's are below {:#x}", address->context,
                 PARC_CONTEXT_RESERVED);
  return parc_envelope{address->peer, shm::tag_of(address->context, any_tag ? 0 : address->tag),
                       any_tag ? UINT32_MAX : 0, 0};
}
inline Result<parc_envelope> envelope_of(const parc_envelope* envelope, bool /*any*/) {
  if (!envelope) return error(PARC_EINVAL, "the envelope is a null pointer");
  return *envelope;
}
inline Result<parc_envelope> envelope_of(int peer, int tag, bool any) {
  const parc_address address{peer, tag, 0};
  return envelope_of(&address, any);
}

// Where the caller wants no status.
class StatusFor {
public:
  explicit StatusFor(parc_status* wanted) : wanted_(wanted) {}
  operator parc_status&() { return wanted_ ? *wanted_ : own_; }

private:
  parc_status* wanted_;
  parc_status own_{};
};

template <class T> std::span<T> list(T* entries, int count) {
  return {entries, static_cast<std::size_t>(count)};
}

inline iovec piece(const void* buffer, size_t bytes) {
  return {const_cast<void*>(buffer), bytes};
}

} // namespace parc::client
