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

void PlayedTool::ask(const nlohmann::json& message, const std::string& bytes) {
  const std::string frame = encode_frame(message, bytes);
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

void PlayedTool::hear(Frame frame) {
  const std::string kind = text_in(frame.message, "kind");
  if (status_) throw Violation("a tool was told " + kind + " behind the last word");
  if (kind == "output") {
    const auto rank = number_in(frame.message, "rank", max_ranks);
    if (!rank) throw Violation("a tool got output of nobody");
    output_[static_cast<std::uint32_t>(*rank)] += frame.bytes;
  } else if (kind == "done") {
    status_ = static_cast<int>(number_in(frame.message, "status", 255).value_or(255));
    text_ = text_in(frame.message, "text");
    if (const auto warnings = frame.message.find("warnings"); warnings != frame.message.end())
      warnings_ = warnings->size();
    near_.reset();
  } else if (kind == "dumped") {
    status_ = 0;
    near_.reset();
  }
}

} // namespace parc::sim
