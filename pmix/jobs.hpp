// SPDX-License-Identifier: BSD-3-Clause
// The jobs that a server knows: its own, and those that ranks of it have found by a name that was published
// (pmix/names.hpp). All servers of a job know the same ones before any of its ranks hears of them.
#pragma once

#include "pmix/job.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace parc::pmix {

struct Member { // of a fence
  static constexpr std::uint32_t all = UINT32_MAX;
  std::string job;
  std::uint32_t rank; // or all of that job
  auto operator<=>(const Member&) const = default;
};
using Members = std::set<Member>;

class Jobs {
public:
  explicit Jobs(const Job& own); // its servers are the messenger's first peers

  [[nodiscard]] const Job& own() const { return known_.at(own_).job; }
  [[nodiscard]] bool knows(const std::string& name) const { return known_.contains(name); }
  [[nodiscard]] std::vector<Job> all() const;
  [[nodiscard]] std::set<int> servers() const; // of all, as the messenger numbers them

  void add(const Job& job, std::vector<int> peers); // `peers`: its servers
  // Those whose last server that was: they are known no more.
  [[nodiscard]] std::vector<std::string> lost(int peer);

  // Where all ranks of a job are named, they are all of it. None: one is of no job that is known.
  [[nodiscard]] std::optional<Members> normal(const Members& members) const;
  [[nodiscard]] std::set<int> servers_of(const Members& members) const; // that are normal
  [[nodiscard]] std::optional<int> server_of(const std::string& job, std::uint32_t rank) const;
  [[nodiscard]] bool is_own(const Members& members) const; // alone

private:
  struct Known {
    Job job;
    std::vector<std::uint32_t> server_of_rank; // places in peers
    std::vector<int> peers;                    // -1: it has gone
  };

  const std::string own_; // its name
  std::map<std::string, Known> known_;
};

} // namespace parc::pmix
