// SPDX-License-Identifier: BSD-3-Clause
// Invariant: the relay never waits for a client: it reads a request only when one is there, and an answer
// that does not fit the socket's buffer at once is not sent.
#include "tools/wanlink/control.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>

namespace parc::wanlink {
namespace {

sockaddr_un socket_address(const Paths& paths) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, paths.control().c_str(), sizeof address.sun_path - 1);
  return address;
}

Result<Fd> make_socket(int flags) {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd) return system_error("cannot open a socket");
  return fd;
}

Result<std::string> receive(int connection) {
  std::string text(max_control_message, '\0');
  const ssize_t length = recv(connection, text.data(), text.size(), 0);
  if (length < 0) return system_error("cannot read");
  if (length == 0) return error(EPIPE, "the other end has gone");
  text.resize(static_cast<std::size_t>(length));
  return text;
}

} // namespace

Result<nlohmann::json> ask_relay(const Paths& paths, const nlohmann::json& request) {
  PARC_TRY(fd, make_socket(0));
  const sockaddr_un address = socket_address(paths);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error("cannot reach the relay at {}", paths.control());
  const std::string text = request.dump();
  if (send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return system_error("cannot ask the relay");
  auto answer = receive(fd.get());
  if (!answer) return std::move(answer.error()).in("the relay did not answer");
  nlohmann::json json = nlohmann::json::parse(answer.value(), nullptr, false);
  if (!json.is_object()) return error(EPROTO, "the relay's answer is not JSON");
  if (const auto failure = json.find("error"); failure != json.end())
    return error(EINVAL, "{}", failure->get<std::string>());
  return json;
}

Result<Fd> listen_for_control(const Paths& paths) {
  PARC_TRY(fd, make_socket(SOCK_NONBLOCK));
  const sockaddr_un address = socket_address(paths);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), 64) != 0)
    return system_error("cannot listen at {}", paths.control());
  return std::move(fd);
}

void answer_control(int connection, const std::function<nlohmann::json(const nlohmann::json&)>& handle) {
  auto request = receive(connection);
  if (!request) return;
  const nlohmann::json json = nlohmann::json::parse(request.value(), nullptr, false);
  const std::string answer =
      (json.is_object() ? handle(json) : nlohmann::json{{"error", "not a JSON object"}}).dump();
  (void)send(connection, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace parc::wanlink
