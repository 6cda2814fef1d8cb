// SPDX-License-Identifier: BSD-3-Clause
// Arguments of the C interface as the actors behind it take them.
#pragma once

#include "client/base/failure.hpp"
#include "parc/parc.h"
#include "shm/layout.hpp"
#include "system/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>

namespace parc::client {

inline int bad_list(int count) {
  return fail(error(PARC_EINVAL, "a list of {} entries makes no sense, or is a null pointer", count));
}

inline int no_place(const char* what) {
  return fail(error(PARC_EINVAL, "there is no place for the {} (a null pointer)", what));
}

enum class Starts : bool { read, write }; // a probe is as a read

// What a call was given, as it is asked for. An envelope of parc_envelope_of's that no message can have says
// in its tag what was wrong.
inline Result<parc_envelope> checked(const parc_envelope* envelope, Starts what) {
  if (!envelope) return error(PARC_EINVAL, "the envelope is a null pointer");
  if (envelope->peer == PARC_NO_PEER) {
    const std::int32_t tag = shm::tag_in(envelope->tag);
    if (tag < 0) return error(PARC_EINVAL, "tag {} is out of range: a tag is 0 to {}", tag, INT32_MAX);
    const std::uint32_t context = shm::context_in(envelope->tag);
    if (context >= PARC_CONTEXT_RESERVED)
      return error(PARC_EINVAL, "context {:#x} is parc's own: a program's are below {:#x}", context,
                   PARC_CONTEXT_RESERVED);
  }
  if (envelope->ignore != 0 && what == Starts::write)
    return error(
        PARC_EINVAL,
        "a write needs one tag: PARC_ANY_TAG, as whatever ignores bits of the tag (here {:#x}), is for "
        "reads and probes",
        envelope->ignore);
  return *envelope;
}

// Of a call without an envelope.
inline Result<parc_envelope> checked(int peer, int tag, Starts what) {
  const parc_envelope envelope = parc_envelope_of(peer, 0, tag);
  return checked(&envelope, what);
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
