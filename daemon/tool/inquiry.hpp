// SPDX-License-Identifier: BSD-3-Clause
// A question of a tool that kernels of several hosts answer: who is asked, who has answered, and when nobody
// is waited for any more.
//
// Invariant: it ends, with whatever hosts have answered by then.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace parc::daemon {

// Patience with kernels, when all have been asked.
inline constexpr double answers_within_s = 3;

class Inquiry {
public:
  enum class State : std::uint8_t { connecting, asked, over };
  struct Host {
    std::string name;
    std::int32_t link = this_host;
    State state = State::connecting;
  };
  struct Events {
    std::function<void(Host& host)> silent; // it has not answered in time; it is over behind that
    std::function<void()> all_over;
  };
  // `token` names this one in what kernels say to each other.
  Inquiry(Loop& loop, Post& post, std::uint64_t token, Events events)
      : post_(post), token_(token), events_(std::move(events)), patience_(loop, [this] { give_up(); }) {}

  [[nodiscard]] const std::vector<Host>& hosts() const { return hosts_; }
  [[nodiscard]] Host& host(std::size_t place) { return hosts_[place]; }
  void add(std::string name) { hosts_.push_back({.name = std::move(name)}); }

  template <class Question>
  void ask(std::size_t place, std::int32_t link, Question question, double within_s = answers_within_s) {
    hosts_[place].link = link;
    hosts_[place].state = State::asked;
    put(place, link, std::move(question));
    if (all(State::asked)) patience_.set(within_s); // from the last that is asked on
  }
  // The same of somebody whose answer is not waited for.
  template <class Question> void tell(std::int32_t link, Question message) {
    put(hosts_.size(), link, std::move(message));
  }
  // The host that answers with these; none: it was not asked, or has answered.
  [[nodiscard]] Host* answered(std::int32_t from, std::uint64_t place);
  void over(Host& host);

private:
  template <class Question> void put(std::uint64_t place, std::int32_t link, Question question) {
    question.token = token_;
    question.place = place;
    post_.send(link, std::move(question));
  }
  [[nodiscard]] bool all(State at_least) const {
    return std::ranges::all_of(hosts_, [at_least](const Host& host) { return host.state >= at_least; });
  }
  void give_up();

  Post& post_;
  std::uint64_t token_;
  Events events_;
  std::vector<Host> hosts_;
  Timer patience_;
};

} // namespace parc::daemon
