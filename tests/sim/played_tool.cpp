// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/played_tool.hpp"

#include "tests/sim/violation.hpp"

#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace parc::sim {

PlayedTool::PlayedTool() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Violation("the simulation has no descriptors left");
  near_.reset(ends[0]);
  far_.reset(ends[1]);
}

void PlayedTool::say(const std::string& frame) {
  // A kernel that has ended does not hear it.
  const ssize_t went = send(near_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  if (went >= 0 && static_cast<std::size_t>(went) != frame.size())
    throw Violation("a request did not fit into the socket");
}

bool PlayedTool::step(Loop::Time now) {
  if (over() || now < sleeps_until_) return false;
  std::array<char, 20'000> bytes;
  const ssize_t got = read(near_.get(), bytes.data(), bytes.size());
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {
    near_.reset();
    return true;
  }
  reader_.feed({bytes.data(), static_cast<std::size_t>(got)});
  for (;;) {
    auto frame = reader_.next();
    if (!frame) throw Violation("a tool was sent what is no frame: " + frame.error().text);
    if (!frame.value()) return true;
    hear(std::move(*frame.value()));
  }
}

namespace {

template <class Message> Message read(control::Frame frame) {
  auto message = control::from_json<Message>(frame.message, std::move(frame.payload));
  if (!message) throw Violation("a tool was told what makes no sense: " + message.error().text);
  return std::move(message).value();
}

} // namespace

void PlayedTool::hear(control::Frame frame) {
  namespace tool = control::tool;
  const std::string named = control::kind_of(frame.message);
  if (status_) throw Violation("a tool was told " + named + " behind the last word");
  const auto kind = tool::kind_named(named);
  if (kind == tool::Kind::output) {
    const auto output = read<tool::Output>(std::move(frame));
    output_[output.rank] += output.payload;
  } else if (kind == tool::Kind::done) {
    const auto done = read<tool::Done>(std::move(frame));
    status_ = static_cast<int>(done.status);
    text_ = done.text;
    warnings_ = done.warnings ? done.warnings->size() : 0;
    near_.reset();
  } else if (kind == tool::Kind::dumped) {
    (void)read<tool::Dumped>(std::move(frame));
    status_ = 0;
    near_.reset();
  } else if (kind == tool::Kind::dump) {
    (void)read<tool::DumpBegins>(std::move(frame));
  } else if (kind == tool::Kind::ranks) {
    (void)read<tool::Ranks>(std::move(frame));
  }
}

} // namespace parc::sim
