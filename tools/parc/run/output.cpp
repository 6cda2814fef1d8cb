// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/output.hpp"

#include "system/standard_streams.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <iostream>
#include <utility>

namespace parc::tools {
namespace {

constexpr std::size_t longest_line = 1 << 20; // a longer one does not wait for its end

} // namespace

void Output::add(std::uint64_t rank, int fd, std::string_view bytes) {
  std::string& line = beginnings_[{rank, fd}];
  const auto last = bytes.rfind('\n'); // what was there before has none
  auto whole = last == bytes.npos ? 0 : line.size() + last + 1;
  line += bytes;
  if (whole == 0 && line.size() > longest_line) whole = line.size();
  if (whole != 0) emit(rank, fd, std::string_view(line).substr(0, whole));
  line.erase(0, whole);
  if (line.empty()) beginnings_.erase({rank, fd});
}

void Output::emit(std::uint64_t rank, int fd, std::string_view lines) {
  if (lost(fd)) return;
  pending_.push_back({fd, tagged_ ? tag(rank, fd, lines) : std::string(lines)});
}

std::string Output::tag(std::uint64_t rank, int fd, std::string_view lines) {
  auto& unended = unended_[place_of(fd)];
  std::string tagged = unended && *unended != rank ? "\n" : "";
  bool goes_on = unended == rank;
  unended = lines.ends_with('\n') ? std::nullopt : std::optional(rank);
  while (!lines.empty()) {
    const auto length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    if (!std::exchange(goes_on, false)) tagged += fmt::format("[{}] ", rank);
    tagged += lines.substr(0, length);
    lines.remove_prefix(length);
  }
  return tagged;
}

void Output::emit_all() {
  for (const auto& [from, line] : beginnings_) emit(from.first, from.second, line);
  beginnings_.clear();
}

void Output::let_go() {
  emit_all();
}

void Output::finish() {
  emit_all();
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    if (std::exchange(unended_[place_of(fd)], {}) && !lost(fd)) pending_.push_back({fd, "\n"});
}

// A pipe with room takes PIPE_BUF bytes at once; a descriptor that refused something is given nothing more.
void Output::write_some() {
  Piece& piece = pending_.front();
  const ssize_t written =
      ::write(piece.fd, piece.bytes.data(), std::min<std::size_t>(piece.bytes.size(), PIPE_BUF));
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (written < 0) return lose(piece.fd);
  piece.bytes.erase(0, static_cast<std::size_t>(written));
  if (piece.bytes.empty()) pending_.pop_front();
}

void Output::lose(int fd) {
  if (errno == EPIPE) end_without_reader();
  lost(fd) = true;
  if (fd == STDOUT_FILENO)
    std::cerr << "parc: cannot write what the ranks print to standard output: " << std::strerror(errno)
              << "; the job goes on, and what else they print there is lost\n";
  std::erase_if(pending_, [fd](const Piece& each) { return each.fd == fd; });
}

} // namespace parc::tools
