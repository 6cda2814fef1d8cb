// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/kernel_connection.hpp"

#include "system/identity.hpp"
#include "system/runtime_dir.hpp"
#include "system/start_kernel.hpp"

#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parc::tools {
namespace {

constexpr char hello_tool = 'T'; // to the kernel's socket; frames follow

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
    return error(ENOENT, "no parcd runs on {}, and so no job; parc run starts one", dir.path());
  }
  return introduce(std::move(socket));
}

Result<KernelConnection> KernelConnection::introduce(Fd socket) {
  KernelConnection connection(std::move(socket));
  if (::send(connection.fd(), &hello_tool, 1, MSG_NOSIGNAL) != 1)
    return system_error("cannot speak to the kernel of this host");
  return connection;
}

Result<void> KernelConnection::send(const nlohmann::json& message, std::string_view bytes) {
  const std::string frame = encode_frame(message, bytes);
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
  if (got > 0) frames_.feed({buffer.data(), static_cast<std::size_t>(got)});
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return success();
  return error(ECONNRESET,
               "the kernel of this host (parcd) has gone, and with it the ranks of this host; was "
               "it killed? start it again with parcd --detach");
}

Result<Frame> KernelConnection::await() {
  for (;;) {
    PARC_TRY(frame, next());
    if (frame) return std::move(*frame);
    pollfd more{socket_.get(), POLLIN, 0};
    if (poll(&more, 1, -1) < 0 && errno != EINTR)
      return system_error("cannot wait for the kernel of this host");
    PARC_TRY(receive());
  }
}

} // namespace parc::tools
