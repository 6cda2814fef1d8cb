// SPDX-License-Identifier: BSD-3-Clause
// Where the kernel's log lines go: spdlog's default logger, through a sink that never blocks. A line that the
// reader of stderr (a full pipe, a stopped terminal, a busy journal) does not take at once is dropped and
// counted, and the next line that passes says how many were. Invariant: at most one unfinished line is kept;
// no call waits; the open file that stderr shares with others keeps its flags.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace parc::daemon {

class BoundedSink;

// While it lives, spdlog::info() and its like go to `fd`. SIGPIPE must be ignored.
class Logging {
public:
  enum class Form {
    Plain,   // "2026-01-31 12:00:00.000 warning: text"
    Journal, // "<4>text", as journald and systemd's other readers of stderr understand it
  };

  // `level` is a value of the setting log_level.
  Logging(int fd, std::string_view level, Form form);
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
  ~Logging();

  void set_level(std::string_view level);
  [[nodiscard]] std::uint64_t lines_dropped() const; // since the start

private:
  std::shared_ptr<BoundedSink> sink_;
};

// Journal when JOURNAL_STREAM names the very stream that `fd` is, else Plain.
[[nodiscard]] Logging::Form form_for(int fd);

// $XDG_STATE_HOME/parc/HOST.log, for --detach: made with its directories, opened for appending, 0600.
[[nodiscard]] Result<std::string> log_path(std::string_view host);
[[nodiscard]] Result<Fd> open_log(const std::string& path);

} // namespace parc::daemon
