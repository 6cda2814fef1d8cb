// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/output.hpp"

#include "system/standard_streams.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <iostream>

namespace parc::tools {
namespace {

constexpr std::size_t longest_line = 65536; // a longer one is cut

} // namespace

void Output::add(std::uint64_t rank, int fd, std::string_view bytes) {
  std::string& line = beginnings_[{rank, fd}];
  line += bytes;
  auto whole = line.rfind('\n') + 1; // 0 where there is none
  if (whole == 0 && line.size() > longest_line) whole = line.size();
  if (whole != 0) emit(rank, fd, std::string_view(line).substr(0, whole));
  line.erase(0, whole);
  if (line.empty()) beginnings_.erase({rank, fd});
}

void Output::emit(std::uint64_t rank, int fd, std::string_view lines) {
  if (lost(fd)) return;
  if (!tagged_) {
    pending_.push_back({fd, std::string(lines)});
    return;
  }
  std::string tagged;
  while (!lines.empty()) {
    const auto length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    tagged += fmt::format("[{}] {}", rank, lines.substr(0, length));
    lines.remove_prefix(length);
  }
  pending_.push_back({fd, std::move(tagged)});
}

void Output::emit_all(bool end_lines) {
  for (const auto& [from, line] : beginnings_) emit(from.first, from.second, end_lines ? line + "\n" : line);
  beginnings_.clear();
}

void Output::let_go() {
  if (!tagged_) emit_all(false);
}

void Output::finish() {
  emit_all(tagged_);
}

// A pipe with room takes PIPE_BUF bytes at once; a descriptor that refused something is given nothing more.
void Output::write_some() {
  Piece& piece = pending_.front();
  const ssize_t written =
      write(piece.fd, piece.bytes.data(), std::min<std::size_t>(piece.bytes.size(), PIPE_BUF));
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
