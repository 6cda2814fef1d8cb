// SPDX-License-Identifier: BSD-3-Clause
// A job of MPI as the servers know it, their own and others that its ranks meet.
#pragma once

#include "pmix/bytes.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parc::pmix {

struct Job {
  std::string name; // the namespace of PMIx
  std::vector<std::string> host_of_rank;
  std::vector<std::string> servers;      // addresses, in the order of hosts()
  std::vector<std::uint32_t> apps = {0}; // first ranks of its programs

  struct App {
    std::uint32_t number, rank; // its place among them, and that of the rank in it
  };
  [[nodiscard]] App app_of(std::uint32_t rank) const;

  [[nodiscard]] std::vector<std::string> hosts() const; // each once, in the order of their first ranks
  [[nodiscard]] std::vector<std::uint32_t> server_of_rank() const; // places in hosts()
};

// Whether these are the first ranks of programs of so many ranks.
[[nodiscard]] bool has_apps(const std::vector<std::uint32_t>& apps, std::size_t ranks);

void write(Writer& writer, const Job& job);
// Nonsense is marked in the reader.
[[nodiscard]] Job read_job(Reader& reader);

} // namespace parc::pmix
