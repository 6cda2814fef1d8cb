// SPDX-License-Identifier: BSD-3-Clause
// Where the kernel's log lines go: spdlog's default logger, through a sink that never blocks. A line that the
// reader of stderr (a full pipe, a stopped terminal, a busy journal) does not take at once is dropped and
// counted, and so are those of a flood; the next line that passes says how many were. What goes to a file is
// written by a thread, as its file system may be far away or frozen. Invariant: at most one unfinished line
// is kept, and of a file's lines `most_waiting`; no call waits; the open file that stderr shares with others
// keeps its flags; the kernel's own file, and the one before it, stay below `most_bytes`.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog::details {
class thread_pool;
}

namespace parc::daemon {

class BoundedSink;

// While it lives, spdlog::info() and its like go to `fd`. SIGPIPE must be ignored.
class Logging {
public:
  enum class Form {
    Plain,   // "2026-01-31 12:00:00.000 warning: text"
    Journal, // "<4>text", as journald and systemd's other readers of stderr understand it
  };

  static constexpr std::size_t most_waiting = 1024; // lines
  static constexpr std::uint64_t most_bytes = 16 << 20;
  // Of lines that nobody has asked for by log_level: what may come at once, and in a second.
  static constexpr unsigned most_at_once = 5000, most_a_second = 100;

  // `level` is a value of the setting log_level. `path`: of what `fd` is, where that is the kernel's own and
  // may be begun anew.
  Logging(int fd, std::string_view level, Form form, std::string path = {});
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
  ~Logging();

  void set_level(std::string_view level);
  [[nodiscard]] std::uint64_t lines_dropped() const; // since the start

private:
  std::shared_ptr<BoundedSink> sink_;
  std::shared_ptr<spdlog::details::thread_pool> writer_; // of a file's lines
};

// Journal when JOURNAL_STREAM names the very stream that `fd` is, else Plain.
[[nodiscard]] Logging::Form form_for(int fd);

// $XDG_STATE_HOME/parc/HOST.log, for --detach: made with its directories, opened for appending, 0600.
[[nodiscard]] Result<std::string> log_path(std::string_view host);
[[nodiscard]] Result<Fd> open_log(const std::string& path);

} // namespace parc::daemon
