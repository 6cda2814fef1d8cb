// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/wire.hpp"

#include <cstring>

namespace parc::protocol {

const char* describe(Refusal refusal) {
  switch (refusal) {
  case Refusal::none: return "nothing wrong";
  case Refusal::magic: return "it sent something that is not a train";
  case Refusal::length: return "it sent a length that is out of range";
  case Refusal::host: return "it sent a train for another host";
  case Refusal::sequence: return "it left out or repeated a train";
  case Refusal::ack: return "it acknowledged what was never sent";
  case Refusal::kind: return "it sent an entry of a kind that this version does not speak";
  case Refusal::envelope: return "it sent an envelope that contradicts itself";
  case Refusal::destination: return "it only relays, and wrote to a program";
  case Refusal::order: return "it sent an envelope out of order";
  case Refusal::fragment: return "it sent a fragment that nobody asked for";
  case Refusal::credit: return "it sent more than it had credit for";
  case Refusal::request: return "it asked about a message that does not exist";
  case Refusal::departure: return "it announced a departure that does not fit";
  case Refusal::resume: return "it wants to go on from where this session never was";
  }
  return "unknown refusal";
}

Refusal check_prefix(const Prefix& prefix) {
  if (prefix.magic != train_magic) return Refusal::magic;
  if (prefix.header_length < sizeof(Prefix) || prefix.header_length > max_header) return Refusal::length;
  if (prefix.entries > max_entries || prefix.payload_length > max_payload) return Refusal::length;
  if (prefix.entries == 0 && (prefix.header_length != sizeof(Prefix) || prefix.sequence != 0))
    return Refusal::length;
  if (prefix.entries != 0 && prefix.sequence == 0) return Refusal::sequence;
  if ((prefix.flags & ~(flag_acknowledge | flag_retired)) != 0) return Refusal::kind;
  if (prefix.entries == 0 && (prefix.flags & flag_acknowledge) != 0) return Refusal::kind;
  return Refusal::none;
}

const EntryWalk::Entry* EntryWalk::next() {
  if (refusal_ != Refusal::none) return nullptr;
  if (left_ == 0) {
    if (!rest_.empty()) refusal_ = Refusal::length;
    return nullptr;
  }
  --left_;
  if (rest_.empty()) {
    refusal_ = Refusal::length;
    return nullptr;
  }
  const auto kind = static_cast<Kind>(rest_[0]);
  const bool taken = is_envelope(kind) ? take_envelope(kind) : take_descriptor();
  return taken ? &entry_ : nullptr;
}

bool EntryWalk::take_envelope(Kind kind) {
  if (rest_.size() < sizeof(Envelope)) {
    refusal_ = Refusal::length;
    return false;
  }
  entry_.kind = kind;
  std::memcpy(&entry_.envelope, rest_.data(), sizeof(Envelope));
  const Envelope& e = entry_.envelope;
  const std::size_t size = size_of(e);
  if (size - sizeof(Envelope) > max_inline || size > rest_.size()) {
    refusal_ = Refusal::length;
    return false;
  }
  const bool rides = e.inline_length != 0;
  const bool whole = has(e.flags, MessageFlags::whole);
  if (e.length > max_message || e.eager > e.length || e.space > Space::untagged ||
      has(e.flags, ~flags_of_envelope) || (whole && e.eager != e.length) ||
      (!whole && e.eager == e.length && e.length != 0) ||
      (rides && (!whole || e.inline_length != e.length)) ||
      (kind == Kind::envelope && has(e.flags, MessageFlags::rows)) ||
      (kind == Kind::put && (e.space != Space::programs || has(e.flags, MessageFlags::with_data) ||
                             !has(e.flags, MessageFlags::synchronous))) ||
      (kind == Kind::get && (rides || e.eager != 0 || e.space != Space::programs ||
                             has(e.flags, ~(MessageFlags::from_end | MessageFlags::rows)))) ||
      (kind == Kind::atomic &&
       (e.inline_length != sizeof(Atomic) || e.space != Space::programs || e.flags != MessageFlags::whole))) {
    refusal_ = Refusal::envelope;
    return false;
  }
  entry_.inline_data = rest_.data() + (size - padded(e.inline_length));
  if (has(e.flags, MessageFlags::rows)) {
    std::memcpy(&entry_.rows_of, rest_.data() + sizeof(Envelope), sizeof(Rows));
    if (!is_good(entry_.rows_of, e.length)) {
      refusal_ = Refusal::envelope;
      return false;
    }
  }
  rest_ = rest_.subspan(size);
  return true;
}

bool EntryWalk::take_descriptor() {
  if (rest_.size() < sizeof(Descriptor)) {
    refusal_ = Refusal::length;
    return false;
  }
  std::memcpy(&entry_.descriptor, rest_.data(), sizeof(Descriptor));
  entry_.kind = entry_.descriptor.kind;
  if (entry_.kind < Kind::fragments || entry_.kind > Kind::result) {
    refusal_ = Refusal::kind;
    return false;
  }
  rest_ = rest_.subspan(sizeof(Descriptor));
  return true;
}

} // namespace parc::protocol
