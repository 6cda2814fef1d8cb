// SPDX-License-Identifier: BSD-3-Clause
// O_NONBLOCK belongs to the open file, which a terminal's shell and a pipe's other writers share with us, so
// it is never set on the descriptor that we were given. Instead each kind of file has its own way not to
// block: a socket's send has a flag, a pipe or terminal is opened a second time for ourselves, a regular file
// does not block. Where opening again is forbidden, poll() is asked before each write, which is of at most
// the size that a pipe takes whole.
#include "daemon/logging.hpp"

#include "system/identity.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace parc::daemon {
namespace {

constexpr std::size_t longest_line = PIPE_BUF; // a pipe takes that much whole or not at all

char priority(spdlog::level::level_enum level) {
  switch (level) {
  case spdlog::level::critical: return '2';
  case spdlog::level::err: return '3';
  case spdlog::level::warn: return '4';
  case spdlog::level::info: return '6';
  default: return '7';
  }
}

} // namespace

class LogOutput {
public:
  explicit LogOutput(int fd) : fd_(fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode)) return;
    if (S_ISSOCK(status.st_mode)) {
      way_ = Way::Send;
      return;
    }
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    own_.reset(open(fmt::format("/proc/self/fd/{}", fd).c_str(), flags));
    way_ = own_ ? Way::Write : Way::PollFirst;
    if (own_) fd_ = own_.get();
  }

  // How much was taken; 0 when nothing can be now, or ever.
  std::size_t write(std::string_view text) {
    if (way_ == Way::PollFirst) {
      pollfd ready{fd_, POLLOUT, 0};
      if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return 0;
    }
    ssize_t taken = -1;
    do {
      taken = way_ == Way::Send ? send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                : ::write(fd_, text.data(), text.size());
    } while (taken < 0 && errno == EINTR);
    return taken < 0 ? 0 : static_cast<std::size_t>(taken);
  }

private:
  enum class Way { Write, Send, PollFirst };
  int fd_;
  Way way_ = Way::Write;
  Fd own_;
};

class BoundedSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  BoundedSink(int fd, Logging::Form form) : output_(fd), journal_(form == Logging::Form::Journal) {
    set_pattern(journal_ ? "%v" : "%Y-%m-%d %H:%M:%S.%e %l: %v");
  }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!finish_last()) return drop();
    if (const auto lost = dropped() - reported_; lost > 0) {
      const auto words = fmt::format("{} log lines were dropped, because nobody took them in time", lost);
      const spdlog::details::log_msg notice(message.logger_name, spdlog::level::warn, words);
      if (!put(notice)) return drop();
      reported_ += lost;
    }
    if (!put(message)) drop();
  }
  void flush_() override {}

private:
  // One line: prefix, text without control characters (a peer's words may be in it), end.
  bool put(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t formatted;
    formatter_->format(message, formatted);
    std::string line;
    if (journal_) line = {'<', priority(message.level), '>'};
    line.append(formatted.data(), formatted.size());
    while (!line.empty() && line.back() == '\n') line.pop_back();
    line.resize(std::min(line.size(), longest_line - 1));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
        ' ');
    line += '\n';
    const std::size_t taken = output_.write(line);
    if (taken == 0) return false;
    unfinished_ = line.substr(taken);
    return true;
  }

  bool finish_last() {
    if (unfinished_.empty()) return true;
    unfinished_.erase(0, output_.write(unfinished_));
    return unfinished_.empty();
  }

  void drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  LogOutput output_;
  const bool journal_;
  std::string unfinished_; // the rest of a line that was taken in part
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t reported_ = 0;
};

Logging::Logging(int fd, std::string_view level, Form form) : sink_(std::make_shared<BoundedSink>(fd, form)) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("parcd", sink_));
  set_level(level);
}

Logging::~Logging() {
  // Whoever logs after us (a destructor, an exit handler) finds a logger that discards.
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("parcd"));
}

void Logging::set_level(std::string_view level) {
  spdlog::set_level(spdlog::level::from_str(std::string(level)));
}

std::uint64_t Logging::lines_dropped() const {
  return sink_->dropped();
}

Logging::Form form_for(int fd) {
  const char* stream = secure_getenv("JOURNAL_STREAM");
  struct stat status {};
  if (!stream || fstat(fd, &status) != 0) return Logging::Form::Plain;
  const auto ours = fmt::format("{}:{}", status.st_dev, status.st_ino);
  return ours == stream ? Logging::Form::Journal : Logging::Form::Plain;
}

Result<std::string> log_path(std::string_view host) {
  PARC_TRY(directory, user_state_dir());
  return fmt::format("{}/parc/{}.log", directory, host);
}

Result<Fd> open_log(const std::string& path) {
  if (auto made = make_directories(path.substr(0, path.rfind('/'))); !made)
    return std::move(made).error().in(
        fmt::format("cannot open the log {} (XDG_STATE_HOME says where else)", path));
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return system_error("cannot open the log {}", path);
  return fd;
}

} // namespace parc::daemon
