// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/kernel_connection.hpp"

#include "system/runtime_dir.hpp"

#include <array>
#include <cerrno>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <vector>

namespace parc::tools {
namespace {

constexpr char hello_tool = 'T'; // to the kernel's socket; frames follow

// The socket, or none when no kernel runs there.
Result<Fd> connect_once(const std::string& runtime_dir) {
  auto dir = find_runtime_dir(runtime_dir);
  if (!dir) {
    if (dir.error().code == ENOENT) return Fd();
    return std::move(dir).error();
  }
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = dir.value().socket();
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (socket && connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  if (errno == ENOENT || errno == ECONNREFUSED) return Fd();
  return system_error("cannot connect to the kernel of this host at {}", path);
}

// parcd stands beside parc where both were built or installed; else it is looked for in PATH.
std::string parcd_path() {
  std::array<char, 4096> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length > 0) {
    const std::string path(self.data(), static_cast<std::size_t>(length));
    const std::string beside = path.substr(0, path.rfind('/') + 1) + "parcd";
    if (access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "parcd";
}

// Returns when the kernel is ready, or has said on stderr why it is not.
Result<void> start_kernel(const std::string& runtime_dir) {
  const std::string parcd = parcd_path();
  std::vector<std::string> words{parcd, "--detach"};
  if (!runtime_dir.empty()) words.insert(words.end(), {"--runtime-dir", runtime_dir});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int failure = posix_spawnp(&child, parcd.c_str(), nullptr, nullptr, argv.data(), environ))
    return error(failure, "no parcd runs here, and starting {} failed: {}; start it with parcd --detach",
                 parcd, std::strerror(failure));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return success();
}

} // namespace

Result<KernelConnection> KernelConnection::open(const std::string& runtime_dir) {
  PARC_TRY(socket, connect_once(runtime_dir));
  if (!socket) {
    PARC_TRY(start_kernel(runtime_dir));
    PARC_TRY(second, connect_once(runtime_dir));
    socket = std::move(second);
  }
  if (!socket) return error(ENOENT, "no parcd runs here, and none could be started; parcd --detach says why");
  return introduce(std::move(socket));
}

Result<KernelConnection> KernelConnection::open_running(const std::string& runtime_dir) {
  PARC_TRY(socket, connect_once(runtime_dir));
  if (!socket) return error(ENOENT, "no parcd runs here, and so no job");
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

} // namespace parc::tools
