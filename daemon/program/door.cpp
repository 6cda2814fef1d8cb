// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/door.hpp"

#include "daemon/program/program_pipes.hpp"
#include "system/limits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr double visitor_patience_s = 5; // for the one byte
constexpr std::size_t most_visitors = 64;
constexpr auto time_of_visitor = 500ms; // when others wait

bool is_ours(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

} // namespace

Door::Door(Loop& loop, std::string path, Hooks hooks)
    : loop_(loop), path_(std::move(path)), hooks_(std::move(hooks)),
      acceptor_(loop, {.room = [this] { return room(); },
                       .accepted = [this](Fd socket) { accept(std::move(socket)); }}),
      turned_away_(loop, "programs turned away") {}

Door::~Door() {
  if (open_) unlink(path_.c_str());
}

Result<void> Door::open() {
  unlink(path_.c_str()); // of a kernel that was killed: this one holds the lock
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), std::min(path_.size(), sizeof address.sun_path - 1));
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), accept_backlog) != 0)
    return system_error("cannot listen on {}", path_);
  acceptor_.listen(std::move(listener));
  open_ = true;
  return success();
}

bool Door::room() {
  if (visitors_.size() < most_visitors) return true;
  const auto oldest = std::ranges::find(visitors_, false, &Visitor::heard);
  if (oldest == visitors_.end() || loop_.now() - oldest->came < time_of_visitor) return false;
  visitors_.erase(oldest);
  return true;
}

void Door::accept(Fd socket) {
  if (!is_ours(socket.get())) return;
  const auto visitor = visitors_.emplace(visitors_.end());
  visitor->socket = std::move(socket);
  visitor->came = loop_.now();
  visitor->event =
      Event(loop_.events(), visitor->socket.get(), EV_READ, [this, visitor](short) { hear(visitor); });
  visitor->event.add();
  visitor->patience.emplace(loop_, [this, visitor] { hear(visitor); });
  visitor->patience->set(visitor_patience_s);
}

void Door::hear(std::list<Visitor>::iterator visitor) {
  if (std::exchange(visitor->heard, true)) return;
  char what = 0;
  const bool spoke = recv(visitor->socket.get(), &what, 1, 0) == 1;
  if (spoke && what == 'P') admit_program(visitor->socket);
  if (spoke && what == 'T') hooks_.tool(std::move(visitor->socket));
  if (spoke && what == 'J') hooks_.joiner(std::move(visitor->socket));
  loop_.after_step([this, visitor] {
    visitors_.erase(visitor);
    acceptor_.resume();
  });
}

void Door::admit_program(const Fd& socket) {
  const auto given = give_pipes(socket);
  if (given) return;
  const Error why = error(given.error().code, "turned a program away: {}{}", given.error().text,
                          descriptor_advice(given.error().code));
  turned_away_.say(why.text, ErrorKind::Refused, why);
}

Result<void> Door::give_pipes(const Fd& socket) {
  PARC_TRY(pipes, give_program_pipes(socket));
  hooks_.program(std::move(pipes.from_program), std::move(pipes.to_program));
  return success();
}

} // namespace parc::daemon
