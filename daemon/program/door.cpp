// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/door.hpp"

#include "control/words/door.hpp"
#include "daemon/program/program_pipes.hpp"
#include "system/limits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <utility>

namespace parc::daemon {

namespace door = control::door;

namespace {

using namespace std::chrono_literals;
constexpr double visitor_patience_s = 5; // for what it has to say
constexpr std::size_t most_visitors = 64;
constexpr auto time_of_visitor = 500ms; // when others wait

std::string wish_in(const std::string& said) {
  const std::size_t length = door::length_of_wish(said);
  return length <= door::most_wanted ? said.substr(door::begin_of_wish, length) : std::string();
}

} // namespace

Door::Door(Loop& loop, std::string path, Events events)
    : loop_(loop), socket_(std::move(path)), events_(std::move(events)),
      acceptor_(loop, {.room = [this] { return room(); },
                       .accepted = [this](Fd socket) { accept(std::move(socket)); }}),
      turned_away_(loop, "programs turned away"), strangers_(loop, "strangers turned away") {}

Result<void> Door::open() {
  PARC_TRY(listener, socket_.listen());
  acceptor_.listen_instead(std::move(listener));
  return success();
}

Result<bool> Door::put_back() {
  if (socket_.is_there()) return false;
  PARC_TRY(open());
  return true;
}

bool Door::room() {
  if (visitors_.size() < most_visitors) return true;
  const auto oldest = std::ranges::find(visitors_, false, &Visitor::heard);
  if (oldest == visitors_.end() || loop_.now() - oldest->came < time_of_visitor) return false;
  visitors_.erase(oldest);
  return true;
}

void Door::accept(Fd socket) {
  if (const auto ours = check_user(socket.get()); !ours) {
    const Error why = error(ours.error().code, "turned away who connected: {}", ours.error().text);
    strangers_.say_of_stranger(why.text, why);
    return events_.turned_away();
  }
  const auto visitor = visitors_.emplace(visitors_.end());
  visitor->socket = std::move(socket);
  visitor->came = loop_.now();
  visitor->event = Event(loop_.events(), visitor->socket.get(), EV_READ | EV_PERSIST,
                         [this, visitor](short) { hear(visitor, true); });
  visitor->event.add();
  visitor->patience.emplace(loop_, [this, visitor] { hear(visitor, false); });
  visitor->patience->set(visitor_patience_s);
}

// At first one byte: what follows of a tool's is for who it is handed on to.
Door::Said Door::listen_to(Visitor& visitor) {
  std::array<char, door::most_wanted> bytes;
  const ssize_t got = recv(visitor.socket.get(), bytes.data(), visitor.said.empty() ? 1 : bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Said::a_part;
  if (got <= 0) return Said::nothing;
  visitor.said.append(bytes.data(), static_cast<std::size_t>(got));
  if (visitor.said.front() != door::joiner) return Said::all;
  if (visitor.said.size() < door::begin_of_wish) return Said::a_part;
  const std::size_t length = door::length_of_wish(visitor.said);
  return length <= door::most_wanted && visitor.said.size() < door::begin_of_wish + length ? Said::a_part
                                                                                           : Said::all;
}

void Door::hear(std::list<Visitor>::iterator visitor, bool in_time) {
  if (visitor->heard) return;
  const Said said = in_time ? listen_to(*visitor) : Said::nothing;
  if (said == Said::a_part) return;
  visitor->heard = true;
  visitor->event.remove(); // who it is handed on to has its own
  const char what = said == Said::all ? visitor->said.front() : '\0';
  if (what == door::program) admit_program(visitor->socket);
  if (what == door::tool) events_.tool(std::move(visitor->socket));
  if (what == door::joiner) events_.joiner(std::move(visitor->socket), wish_in(visitor->said));
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
  events_.program(std::move(pipes.from_program), std::move(pipes.to_program));
  return success();
}

} // namespace parc::daemon
