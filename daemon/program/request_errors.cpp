// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/request_errors.hpp"

#include "include/parc/parc.h"
#include "shm/slots.hpp"

namespace parc::daemon {
namespace {

std::string_view operation_in(std::uint64_t slot) {
  if (shm::is_read(slot)) return "a read or a question to the kernel";
  return shm::is_write(slot) ? "a write" : "sharing memory";
}

std::string_view departed(protocol::Departure departure) {
  switch (departure) {
  case protocol::Departure::left: return "its peer had left";
  case protocol::Departure::killed: return "its peer was killed, or lost its session";
  case protocol::Departure::lost: return "the link to its peer's host was lost";
  case protocol::Departure::none: break;
  }
  return "its peer cannot be reached";
}

std::string_view reason(std::int32_t error, protocol::Departure departure) {
  switch (error) {
  case PARC_EINVAL: return "its rank, its length or its memory was not one that it may name";
  case PARC_ENOMEM: return "there was no memory that the kernel could share";
  case PARC_ETRUNCATE: return "the message was longer than its memory";
  case PARC_EPEER: return departed(departure);
  case PARC_EPLACE: return "its peer has no such place in a window, or not for it";
  default: return "its error has no name here";
  }
}

} // namespace

std::int32_t error_of(protocol::Fault fault) {
  switch (fault) {
  case protocol::Fault::none: return PARC_OK;
  case protocol::Fault::truncated: return PARC_ETRUNCATE;
  case protocol::Fault::peer: return PARC_EPEER;
  case protocol::Fault::place: return PARC_EPLACE;
  case protocol::Fault::canceled:
  case protocol::Fault::taken: return PARC_ECANCELED;
  }
  return PARC_EINVAL;
}

void note_request(Errors& errors, std::uint64_t slot, std::int32_t error, protocol::Departure departure) {
  if (error == PARC_OK || error == PARC_ECANCELED || error == PARC_EAGAIN) return;
  errors.note(ErrorKind::Request, error,
              fmt::format("{} failed: {}", operation_in(slot), reason(error, departure)));
}

} // namespace parc::daemon
