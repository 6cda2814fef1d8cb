// SPDX-License-Identifier: BSD-3-Clause
// Memory that is guarded as libparc guards it: nobody may touch its pages. A touch of this process opens the
// page that it meets, as one that has waited; a system call that meets one answers EFAULT; and what a wrapper
// settles is opened before its call. One piece at a time is guarded, of those that a call is given.
#pragma once

#include "client/early/hooks.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

extern "C" void parc_early_offer_3(const parc::client::EarlyHooks* hooks);

namespace guarded {

constexpr std::size_t piece_bytes = 128 << 10;
constexpr int pieces = 16;

// What became of a call, in memory that its process shares with the one that looks.
struct Report {
  int given;                      // pieces
  int left;                       // how often the wrapper waited until all had begun
  bool needed;                    // the guarded piece: whether the call cannot do without
  bool touched;                   // this process opened a page of it
  bool opened;                    // nothing of it is guarded any more
  bool done;                      // the call returned
  bool faulted;                   // with EFAULT
  int queue, semaphores, segment; // of System V, for whoever cleans up
};

inline Report* report = nullptr;
inline char* memory = nullptr;
inline int chosen = -1; // which piece is guarded
inline bool armed = false;
inline const char* guarded_memory = nullptr;
inline std::size_t guarded_bytes = 0;
inline std::array<bool, piece_bytes / 4096> open_pages{};

// While one of these lives calls are the test's own.
class Unarmed {
public:
  Unarmed() { armed = false; }
  Unarmed(const Unarmed&) = delete;
  Unarmed& operator=(const Unarmed&) = delete;
  ~Unarmed() { armed = before_; }

private:
  bool before_ = armed;
};

inline std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Opens what is guarded of these bytes. Async-signal-safe.
inline bool open(const char* begin, std::size_t bytes) {
  if (chosen < 0) return false;
  char* const piece = memory + static_cast<std::size_t>(chosen) * piece_bytes;
  bool any = false;
  for (std::size_t at = 0; at < piece_bytes; at += page_size()) {
    if (begin + bytes <= piece + at || piece + at + page_size() <= begin) continue;
    mprotect(piece + at, page_size(), PROT_READ | PROT_WRITE);
    open_pages[at / page_size()] = true;
    any = true;
  }
  return any;
}

inline void on_touch(int number, siginfo_t* info, void*) {
  if (open(static_cast<const char*>(info->si_addr), 1))
    report->touched = true;
  else
    ::signal(number, SIG_DFL); // a fault of its own
}

inline const std::atomic<std::size_t> nothing_guarded =
    0; // what changes the memory itself is tested elsewhere
inline const parc::client::EarlyHooks hooks{
    .any = [] { return armed; },
    .in_library = [] { return false; },
    .settle =
        [](const void* begin, std::size_t bytes) {
          const Unarmed here;
          if (bytes != 0) open(static_cast<const char*>(begin), bytes);
        },
    .settle_begun = [] { ++report->left; },
    .settle_all =
        [] {
          const Unarmed here;
          ++report->left;
          open(memory, piece_bytes * pieces);
        },
    .guarded = &nothing_guarded,
    .before_change = [](const void*, std::size_t, parc::client::PageChange) { return true; },
    .set_program_action = [](const struct sigaction*, struct sigaction*) { return false; },
    .before_fork = [] {},
    .after_fork_in_parent = [] {},
    .after_fork_in_child = [] {},
};

// From here on the piece of that number is guarded as soon as it is given.
inline void begin(int piece) {
  memory = static_cast<char*>(
      mmap(nullptr, piece_bytes * pieces, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  chosen = piece;
  struct sigaction action {};
  action.sa_sigaction = on_touch;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  ::signal(SIGABRT, SIG_DFL); // which the framework would catch
  parc_early_offer_3(&hooks);
}

// Whether nothing of the guarded piece is guarded any more.
inline bool all_open() {
  for (std::size_t at = 0; at < guarded_bytes; ++at) {
    const auto page = static_cast<std::size_t>(guarded_memory + at - memory) % piece_bytes / page_size();
    if (!open_pages[page]) return false;
  }
  return true;
}

// A piece with these bytes in it, where the first of them ends a page: who touches only that opens that page
// alone.
inline char* give(const void* content, std::size_t bytes, std::size_t first, bool needed) {
  const Unarmed here;
  const int number = report->given++;
  char* const piece = memory + static_cast<std::size_t>(number) * piece_bytes;
  char* const place = piece + page_size() - first;
  if (content != nullptr) std::memcpy(place, content, bytes);
  if (number != chosen) return place;
  guarded_memory = place;
  guarded_bytes = bytes;
  report->needed = needed;
  mprotect(piece, piece_bytes, PROT_NONE);
  return place;
}

// What a call is given: room for bytes, a value, several zeros, a text. `unused`: one that it has no use for
// this time, as an answer that there is none of.
inline char* room(std::size_t bytes) {
  return give(nullptr, bytes, 1, true);
}

inline char* unused_room(std::size_t bytes) {
  return give(nullptr, bytes, 1, false);
}

template <class Value> Value* in(const Value& value) {
  return reinterpret_cast<Value*>(give(&value, sizeof value, alignof(Value), true));
}

template <class Value> Value* unused(const Value& value) {
  return reinterpret_cast<Value*>(give(&value, sizeof value, alignof(Value), false));
}

template <class Value> Value* many(std::size_t count) {
  return reinterpret_cast<Value*>(give(nullptr, count * sizeof(Value), alignof(Value), true));
}

inline char* text(const char* words) {
  return give(words, std::strlen(words) + 1, 1, true);
}

} // namespace guarded
