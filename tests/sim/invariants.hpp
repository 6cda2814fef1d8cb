// SPDX-License-Identifier: BSD-3-Clause
// What holds of an engine between any two of its calls. Each transition asserts what it can see; here all
// objects are looked at together, and what is counted in several places is counted again.
#pragma once

#include "protocol/engine.hpp"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace parc::protocol {

class Invariants {
public:
  // The first that does not hold; empty: all do.
  [[nodiscard]] static std::string broken(Engine& engine);

  // How many peers an endpoint has in its table.
  [[nodiscard]] static std::size_t rows(const Engine& engine, std::uint64_t number) {
    const Endpoint* const endpoint = engine.find_endpoint(number);
    if (endpoint == nullptr) return 0;
    return (endpoint->group != nullptr ? endpoint->group->members.size() : 0) + endpoint->more_rows.size();
  }

private:
  struct OnLink { // counted anew
    std::uint64_t unmatched = 0, senders = 0, eager_unsent = 0;
  };
  struct OfOutflow {
    std::uint64_t held = 0, queued = 0;
  };
  struct OfPair {
    std::uint64_t unmatched = 0, held = 0, queued = 0, messages = 0;
  };

  explicit Invariants(Engine& engine) : engine_(engine) {}
  void holds(bool good, const char* what) {
    if (!good && broken_.empty()) broken_ = what;
  }
  void count_due();
  void look_at_outgoing();
  void look_at(const Outgoing& message);
  void look_at_incoming();
  void look_at(const Incoming& message);
  void look_at_readings();
  void look_at_atomics();
  void look_at_peers();
  void look_at_links();
  void look_at(const Link& link);
  void look_at(const Trains& trains, const Carrier& carrier);
  void look_at_endpoints();
  void look_at(const Endpoint& endpoint);
  void look_at(const Endpoint& endpoint, std::int32_t number, const Row& row);
  void look_at(const Pair& pair);

  Engine& engine_;
  std::string broken_;
  std::uint64_t pool_used_ = 0, apart_used_ = 0, parted_ = 0;
  std::unordered_map<const Incoming*, std::uint64_t> due_;  // bytes unasked that are not counted as arrived
  std::unordered_map<std::uint64_t, std::uint64_t> logged_; // bytes of a write that are not acknowledged
  std::unordered_set<const Incoming*> requests_;            // that one asks for which has not been sent
  std::unordered_map<const Link*, OnLink> links_;
  std::unordered_map<const Pair*, OfPair> pairs_;
  std::unordered_map<const Outflow*, OfOutflow> outflows_;
};

} // namespace parc::protocol
