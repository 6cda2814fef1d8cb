// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/talk/kernel_connection.hpp"

#include "control/words/door.hpp"
#include "system/identity.hpp"
#include "system/runtime_dir.hpp"
#include "system/start_kernel.hpp"
#include "tools/parc/talk/unwell.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parc::tools {
namespace {

constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds between_looks{500}; // whether it is stopped
constexpr std::chrono::milliseconds between_pings{1000};

// Of the process that listens; 0 where it is in another PID namespace.
pid_t other_end(const Fd& socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 ? other.pid : 0;
}

} // namespace

Result<KernelConnection> KernelConnection::open(const std::string& runtime_dir,
                                                const std::vector<std::string>& options_of_parcd) {
  // parcd stands beside parc where both were built or installed.
  PARC_TRY(socket, connect_or_start_kernel(runtime_dir, path_of_this_program(), options_of_parcd));
  return introduce(std::move(socket));
}

Result<KernelConnection> KernelConnection::open_running(const std::string& runtime_dir) {
  PARC_TRY(socket, connect_to_kernel(runtime_dir));
  if (!socket) {
    PARC_TRY(dir, find_runtime_dir(runtime_dir)); // which says so where there is none
    return error(
        ENOENT,
        "no parcd runs on {}, and nobody can be asked; parcd --detach starts one, and so does parc run",
        dir.path());
  }
  return introduce(std::move(socket));
}

Result<KernelConnection> KernelConnection::introduce(Fd socket) {
  KernelConnection connection(std::move(socket));
  if (::send(connection.fd(), &control::door::tool, 1, MSG_NOSIGNAL) != 1)
    return system_error("cannot speak to the kernel of this host");
  PARC_TRY(connection.ping());
  PARC_TRY(connection.await_first_answer());
  return connection;
}

Result<void> KernelConnection::await_first_answer() {
  for (;;) {
    PARC_TRY(frame, next());
    if (frame && control::kind_of(frame->message) == name(tool::Kind::done)) { // it knows no ping
      PARC_TRY(done, read<tool::Done>(*frame));
      return error(EPROTO, "{}", done.text);
    }
    if (frame) return success();
    pollfd more{socket_.get(), POLLIN, 0};
    if (poll(&more, 1, static_cast<int>(between_looks.count())) < 0 && errno != EINTR)
      return system_error("cannot wait for the kernel of this host");
    if (more.revents == 0 && (Clock::now() >= *due_ || is_stopped(other_end(socket_)))) return silent();
    PARC_TRY(receive());
  }
}

Result<void> KernelConnection::ping() {
  due_ = Clock::now() + patience;
  return send(tool::Ping{});
}

Error KernelConnection::silent() const {
  const pid_t process = other_end(socket_);
  if (process == 0) return error(ETIMEDOUT, "the kernel of this host {}; does it hang?", unwell::is_silent);
  const auto who = fmt::format("the kernel of this host (parcd, process {})", process);
  if (is_stopped(process))
    return error(ETIMEDOUT, "{} {}; {} lets it go on", who, unwell::is_stopped, unwell::if_stopped(process));
  return error(ETIMEDOUT, "{} {}; does it hang? {}", who, unwell::is_silent, unwell::if_silent(process));
}

Result<void> KernelConnection::write(std::string_view frame) {
  for (std::string_view rest = frame; !rest.empty();) {
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("cannot speak to the kernel of this host");
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return success();
}

Result<void> KernelConnection::receive() {
  std::array<char, 65536> buffer;
  const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) {
    due_.reset();
    frames_.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return success();
  return error(ECONNRESET,
               "the kernel of this host (parcd) has gone, and with it the ranks of this host; was "
               "it killed? start it again with parcd --detach");
}

Result<control::Frame> KernelConnection::await() {
  for (;;) {
    PARC_TRY(frame, next());
    if (frame) return std::move(*frame);
    pollfd more{socket_.get(), POLLIN, 0};
    if (poll(&more, 1, static_cast<int>(between_pings.count())) < 0 && errno != EINTR)
      return system_error("cannot wait for the kernel of this host");
    if (more.revents != 0) {
      PARC_TRY(receive());
    } else if (!due_) {
      // What it said before it closed is still to be read.
      if (auto told = ping(); !told && told.error().code != EPIPE && told.error().code != ECONNRESET)
        return told.error();
    } else if (Clock::now() >= *due_) {
      return silent();
    }
  }
}

} // namespace parc::tools
