// SPDX-License-Identifier: BSD-3-Clause
// What all models have in common: every state that a model gets to is explored, those that are fewest steps
// away first, until one is found that must not be.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace parc::model {

// What is done, and what is broken, each model says in its header.
struct Explored {
  std::size_t states = 0;
  std::size_t ends = 0;              // states in which all is done
  std::optional<std::string> stuck;  // a state in which nothing can happen, and not all is done
  std::optional<std::string> broken; // a state that must not be
};

// States are compared byte by byte.
template <class State> class Explorer {
  static_assert(std::has_unique_object_representations_v<State>);

public:
  virtual ~Explorer() = default;

  Explored run(const State& start) {
    visit(start);
    while (!waiting_.empty() && !found_.stuck && !found_.broken) {
      const State state = waiting_.front();
      waiting_.pop_front();
      moved_ = false;
      step(state);
      if (moved_) continue;
      if (all_done(state))
        ++found_.ends;
      else
        found_.stuck = picture(state);
    }
    found_.states = seen_.size();
    return found_;
  }

protected:
  void visit(const State& state) {
    moved_ = true;
    if (seen_.insert(state).second) waiting_.push_back(state);
  }
  void broken(std::string how) { found_.broken = std::move(how); }

private:
  virtual void step(const State& state) = 0; // visits whatever may be next
  [[nodiscard]] virtual bool all_done(const State& state) const = 0;
  [[nodiscard]] virtual std::string picture(const State& state) const = 0;

  static std::string_view bytes_of(const State& state) {
    return {reinterpret_cast<const char*>(&state), sizeof state};
  }
  struct Hash {
    std::size_t operator()(const State& state) const {
      return std::hash<std::string_view>()(bytes_of(state));
    }
  };
  struct Same {
    bool operator()(const State& one, const State& other) const { return bytes_of(one) == bytes_of(other); }
  };

  Explored found_;
  bool moved_ = false;
  std::unordered_set<State, Hash, Same> seen_;
  std::deque<State> waiting_;
};

} // namespace parc::model
