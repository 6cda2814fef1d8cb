// SPDX-License-Identifier: BSD-3-Clause
// The distinct errors that this kernel has met, in a small table of its counter file for parc errors. An
// error is made known here where it is said, once; whoever knows it again and again costs a row and not a
// flood.
//
// Invariants: no two rows have one kind, code and text. Where all rows are taken the one that has not been
// met for longest gives way, and its count goes to `others`: no error is lost from the sum. A note is a
// search in memory of this kernel's own and a few stores to the table; it makes no system call and cannot
// fail.
#pragma once

#include "system/observe/counters.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace parc::daemon {

class Errors {
public:
  Errors();

  // `text`: few variable parts, as each text has a row. Cut where it is too long for that.
  void note(ErrorKind kind, std::int64_t code, std::string_view text);

  // The same of somebody who has not proved the key, and can cause as many as he likes: those have a few
  // rows, and never another's. `text`: nothing that he says of himself.
  void note_stranger(std::int64_t code, std::string_view text);

  // From here on the table is this one, which is empty and outlives the last note.
  void show_in(counters::ErrorTable& table) { table_ = &table; }

private:
  struct Known {
    ErrorKind kind{};
    std::int64_t code = 0;
    std::string text;
    std::uint64_t last = 0; // the note that it was, from 1; 0: the row is free
  };
  void note(std::span<Known> rows, ErrorKind kind, std::int64_t code, std::string_view text);
  void add(Known& known, ErrorKind kind, std::int64_t code, std::string_view text);

  std::unique_ptr<counters::ErrorTable> unseen_; // of a kernel that has no file
  counters::ErrorTable* table_;
  std::array<Known, counters::error_rows> known_; // as the table's rows; the first are for strangers
  std::uint64_t notes_ = 0;
};

} // namespace parc::daemon
