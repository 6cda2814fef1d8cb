// SPDX-License-Identifier: BSD-3-Clause
// O_NONBLOCK belongs to the open file, which a terminal's shell and a pipe's other writers share with us, so
// it is never set on the descriptor that we were given. Instead each kind of file has its own way not to
// block: a socket's send has a flag, a pipe or terminal is opened a second time for ourselves, a regular file
// does not block. Where opening again is forbidden, poll() is asked before each write, which is of at most
// the size that a pipe takes whole.
#include "daemon/base/logging.hpp"

#include "system/identity.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::chrono::seconds longest_last_words{1};
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
  LogOutput(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return;
    if (S_ISREG(status.st_mode)) {
      file_ = true;
      size_ = static_cast<std::uint64_t>(status.st_size);
      return;
    }
    if (S_ISSOCK(status.st_mode)) {
      method_ = Method::Send;
      return;
    }
    const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    own_.reset(open(fmt::format("/proc/self/fd/{}", fd).c_str(), flags));
    method_ = own_ ? Method::Write : Method::PollFirst;
    if (own_) fd_ = own_.get();
  }

  // How much was taken; 0 when nothing can be now, or ever.
  std::size_t write(std::string_view text) {
    if (file_ && !path_.empty() && size_ + text.size() > Logging::most_bytes) begin_anew();
    if (method_ == Method::PollFirst) {
      pollfd ready{fd_, POLLOUT, 0};
      if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return 0;
    }
    ssize_t taken = -1;
    do {
      taken = method_ == Method::Send ? send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                      : ::write(fd_, text.data(), text.size());
    } while (taken < 0 && errno == EINTR);
    if (taken < 0) return 0;
    size_ += static_cast<std::uint64_t>(taken);
    return static_cast<std::size_t>(taken);
  }

  [[nodiscard]] bool is_file() const { return file_; }

private:
  enum class Method { Write, Send, PollFirst };

  void begin_anew() {
    size_ = 0; // if that fails, it is tried again when as much has come
    if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return;
    if (const auto fresh = open_log(path_)) (void)dup2(fresh.value().get(), fd_);
  }

  int fd_;
  std::string path_;       // of a file that is the kernel's own; else empty
  std::uint64_t size_ = 0; // of that
  bool file_ = false;
  Method method_ = Method::Write;
  Fd own_;
};

class BoundedSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  BoundedSink(int fd, Logging::Form form, std::string path)
      : output_(fd, std::move(path)), journal_(form == Logging::Form::Journal) {
    set_pattern(journal_ ? "%v" : "%Y-%m-%d %H:%M:%S.%e %l: %v");
  }
  [[nodiscard]] bool is_file() const { return output_.is_file(); }
  // All that was logged before flush() has been written.
  [[nodiscard]] bool flushed() const { return flushed_.load(std::memory_order_acquire); }
  // Before anything is logged.
  void overrun_by(std::weak_ptr<spdlog::details::thread_pool> writer) { writer_ = std::move(writer); }
  [[nodiscard]] std::uint64_t dropped() const {
    const auto writer = writer_.lock();
    return dropped_.load(std::memory_order_relaxed) + (writer ? writer->overrun_counter() : 0);
  }

protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!may_pass(message) || !finish_last()) return drop();
    if (const auto lost = dropped() - reported_; lost > 0) {
      const auto words = fmt::format(
          "{} log lines were dropped, because they were too many, or nobody took them in time", lost);
      const spdlog::details::log_msg notice(message.logger_name, spdlog::level::warn, words);
      if (!put(notice)) return drop();
      reported_ += lost;
    }
    if (!put(message)) return drop();
    if (is_limited(message)) left_ -= 1;
  }
  void flush_() override { flushed_.store(true, std::memory_order_release); }

private:
  // Somebody has asked for all of the others.
  static bool is_limited(const spdlog::details::log_msg& message) {
    return message.level >= spdlog::level::info;
  }

  // A program, or a peer, that causes one line after the other fills no disk.
  bool may_pass(const spdlog::details::log_msg& message) {
    if (!is_limited(message)) return true;
    const std::chrono::duration<double> since = message.time - last_;
    last_ = message.time;
    left_ = std::min(left_ + std::max(since.count(), 0.0) * Logging::most_a_second,
                     double{Logging::most_at_once});
    return left_ >= 1;
  }

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
  std::atomic<bool> flushed_{false};
  std::uint64_t reported_ = 0;
  std::weak_ptr<spdlog::details::thread_pool> writer_;
  spdlog::log_clock::time_point last_;
  double left_ = Logging::most_at_once; // lines that may come at once
};

Logging::Logging(int fd, std::string_view level, Form form, std::string path)
    : sink_(std::make_shared<BoundedSink>(fd, form, std::move(path))) {
  if (sink_->is_file()) {
    writer_ = std::make_shared<spdlog::details::thread_pool>(most_waiting, 1, [] {
      sigset_t all; // they are for the loop's thread
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
    });
    sink_->overrun_by(writer_);
    spdlog::set_default_logger(std::make_shared<spdlog::async_logger>(
        "parcd", sink_, writer_, spdlog::async_overflow_policy::overrun_oldest));
  } else {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("parcd", sink_));
  }
  set_level(level);
}

Logging::~Logging() {
  const auto logger = spdlog::default_logger();
  // Whoever logs after us (a destructor, an exit handler) finds a logger that discards.
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("parcd"));
  if (!writer_) return;
  using namespace std::chrono_literals;
  logger->flush();
  const auto due = std::chrono::steady_clock::now() + longest_last_words;
  while (!sink_->flushed() && std::chrono::steady_clock::now() < due) std::this_thread::sleep_for(100us);
  if (sink_->flushed()) {
    writer_.reset(); // before the logger, whose last reference may be that of a line that it has just written
  } else {
    // The file takes nothing: nobody waits for the thread, which goes with the process.
    [[maybe_unused]] static const auto* const left = new auto(std::move(writer_));
  }
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
