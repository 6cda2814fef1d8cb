// SPDX-License-Identifier: BSD-3-Clause
// A `parc run` or `parc dump` that is played: it has the other end of a tool's socket, and hears what its
// kernel says.
#pragma once

#include "control/frames.hpp"
#include "control/tool_messages.hpp"
#include "daemon/base/loop.hpp"
#include "jobs/placement.hpp"
#include "system/fd.hpp"
#include "tests/sim/played_rank.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace parc::sim {

class PlayedTool {
public:
  // What is known of it to the oracle.
  std::set<std::size_t> hosts; // of its job, with that of the tool
  std::size_t origin = 0;
  std::vector<Part> parts;                    // of its ranks
  std::map<std::uint32_t, std::size_t> ranks; // those that were made: their places among all
  std::set<int> acted;                        // statuses that its own acts may give its job
  bool nice = true;                           // nothing in the parts is a reason to fail
  bool troubled = false;                      // what its hosts shared was lost, or may have been
  bool origin_ended = false;
  bool judged = false;

  PlayedTool();
  Fd give_end() { return std::move(far_); } // to its kernel
  template <class Message> void ask(const Message& message) { say(control::frame_of(message)); }
  void go() { near_.reset(), gone_ = true; } // as if it was killed
  [[nodiscard]] bool gone() const { return gone_; }
  // Takes nothing from its socket until then.
  void sleep_until(Loop::Time time) { sleeps_until_ = time; }
  [[nodiscard]] Loop::Time sleeps_until() const { return sleeps_until_; }
  bool step(Loop::Time now); // false: nothing was there for it

  [[nodiscard]] bool over() const { return !near_; }
  [[nodiscard]] std::optional<int> status() const { return status_; } // none: its kernel has not said one
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t warnings() const { return warnings_; }
  [[nodiscard]] std::string output(std::uint32_t rank) const {
    const auto found = output_.find(rank);
    return found == output_.end() ? std::string() : found->second;
  }

private:
  void say(const std::string& frame);
  void hear(control::Frame frame);

  Fd near_, far_;
  control::FrameReader reader_;
  Loop::Time sleeps_until_{};
  std::optional<int> status_;
  std::string text_;
  std::size_t warnings_ = 0;
  bool gone_ = false;
  std::map<std::uint32_t, std::string> output_;
};

} // namespace parc::sim
