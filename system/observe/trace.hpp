// SPDX-License-Identifier: BSD-3-Clause
// What a traced program says of itself (parc run --trace): records of one size, one behind the other, on a
// pipe that its kernel forwards as it does its output, or in a file of its own. libparc writes them, parc run
// turns them into a file in the Trace Event format. Times are nanoseconds of the host's CLOCK_MONOTONIC, 0
// for never.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <type_traits>

namespace parc::trace {

enum class Kind : std::uint8_t {
  opened = 1, // begin; end: what is to be added to get CLOCK_REALTIME; id: the process
  closed,     // begin
  call,       // begin, end, call, id of what it waited for, site
  fault,      // begin, end, id of the read whose page was touched, address, bytes: how far it lies in there
  message, // begin: posted; first: its first byte had come; end: its last; released: its wait returned early
  site,    // address, and what it is, in a Site; address 0: the host
  lost,    // bytes: so many records had no place
  peer,    // peer: its number in this program, or -1: this program; address: what is the same in all programs
  touches, // of pages in a row, for the first time: begin, end, id, address and site as of a fault
  cost,    // released: what it costs to be woken for a touch, ns
  object,  // address: where an object file is loaded that has sites; its path, in a Site, or a part of it
};

// Of touches, `bytes` and `first` say how far the first and the last page lie in the read, `context` how many
// they are, none where nobody touched any until its buffer was used again, and `released` how long of the
// time the fault's handler had, in ns.

enum class Call : std::uint8_t {
  other, // a call that does not wait
  wait,
  waitall,
  waitany,
  waitsome,
  read,
  write,
  probe,
  barrier,
  settle,
  get,
  put,
  atomic,
  quiet,
  system_call, // of the program, on guarded memory, or one that leaves the process
};
inline constexpr std::array call_names{"call", "wait",  "waitall", "waitany", "waitsome",
                                       "read", "write", "probe",   "barrier", "settle",
                                       "get",  "put",   "atomic",  "quiet",   "system call"};

// Of a message.
inline constexpr std::uint16_t flag_write = 1; // else a read
inline constexpr std::uint16_t flag_bounced =
    2; // through memory of libparc's: it could not be named directly
inline constexpr std::uint16_t flag_adopted = 4;
inline constexpr std::uint16_t flag_under_way = 8; // said while it was waited for: another may take its place
inline constexpr std::uint16_t flag_one_sided = 16; // its window's number is context and tag
inline constexpr std::uint16_t flag_atomic = 32;

struct Record {
  Kind kind;
  Call call;
  std::uint16_t flags;
  std::uint32_t thread;
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t first;
  std::uint64_t released;
  std::uint64_t id;
  std::uint64_t bytes;
  std::uint64_t address;
  std::uint64_t site; // where in the program, as an address
  std::int32_t peer;
  std::int32_t tag;
  std::uint32_t context;
  std::int32_t error;
};
static_assert(sizeof(Record) == 88 && std::is_trivially_copyable_v<Record>);

struct Site {
  Kind kind;
  std::array<char, 7> unused;
  std::uint64_t address;
  // Zero terminated: file and offset, as addr2line(1) wants them, and the function. A longer path of an
  // object goes on in the next one of this address.
  std::array<char, 72> text;
};
static_assert(sizeof(Site) == sizeof(Record));

[[nodiscard]] inline std::uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

inline constexpr const char* directory_suffix = ".ranks"; // behind the name of the file that is made of them

} // namespace parc::trace
