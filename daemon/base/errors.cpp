// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/errors.hpp"

#include "daemon/base/counters.hpp"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>

namespace parc::daemon {
namespace {

constexpr std::size_t rows_of_strangers = 8;

using Slot = CounterSlot<counters::ErrorRow>;

std::uint64_t unix_time() {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

// One that is too long: at the end of a word, as far as it has any.
std::string cut(std::string_view text) {
  constexpr std::string_view more = " ...";
  text = text.substr(0, counters::error_text - more.size() + 1);
  const auto end = text.rfind(' ');
  return fmt::format("{}{}", text.substr(0, end == text.npos ? text.size() - 1 : end), more);
}

} // namespace

Errors::Errors() : unseen_(std::make_unique<counters::ErrorTable>()), table_(unseen_.get()) {}

void Errors::note(ErrorKind kind, std::int64_t code, std::string_view text) {
  note(std::span(known_).subspan(rows_of_strangers), kind, code, text);
}

void Errors::note_stranger(std::int64_t code, std::string_view text) {
  note(std::span(known_).first(rows_of_strangers), ErrorKind::Refused, code, text);
}

void Errors::note(std::span<Known> rows, ErrorKind kind, std::int64_t code, std::string_view text) {
  const std::string shorter = text.size() > counters::error_text ? cut(text) : std::string();
  const std::string_view said = shorter.empty() ? text : shorter;
  ++notes_;
  table_->totals[static_cast<std::size_t>(kind)].add(1);
  const auto found = std::ranges::find_if(rows, [&](const Known& known) {
    return known.last != 0 && known.kind == kind && known.code == code && known.text == said;
  });
  if (found == rows.end()) return add(*std::ranges::min_element(rows, {}, &Known::last), kind, code, said);
  found->last = notes_;
  Slot::change(table_->rows[static_cast<std::size_t>(&*found - known_.data())], 1,
               [](counters::ErrorRow& row) {
                 row.count.add(1);
                 row.last_s.set(unix_time());
               });
}

void Errors::add(Known& known, ErrorKind kind, std::int64_t code, std::string_view text) {
  counters::ErrorRow& row = table_->rows[static_cast<std::size_t>(&known - known_.data())];
  if (known.last != 0) table_->others.add(row.count.get());
  known = {kind, code, std::string(text), notes_};
  Slot::change(row, 1, [&](counters::ErrorRow& changed) {
    changed.kind.set(static_cast<std::uint64_t>(kind));
    changed.code.set(static_cast<std::uint64_t>(code));
    changed.text.set(text);
    changed.count.set(1);
    changed.first_s.set(unix_time());
    changed.last_s.set(changed.first_s.get());
  });
}

} // namespace parc::daemon
