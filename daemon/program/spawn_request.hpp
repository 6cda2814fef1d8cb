// SPDX-License-Identifier: BSD-3-Clause
// What a program asks for with parc_spawn, as it lies in its memory and as its kernel knows it.
#pragma once

#include "daemon/link/endpoint_address.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parc::daemon {

struct SpawnRequest {
  std::uint32_t count = 0;
  std::string hosts; // "a:2,b"; empty: those of its job
  std::vector<std::string> arguments;
  std::string parent; // the spawner's address, for those that it spawns
  struct OfMpi {
    std::string directory;              // empty: that of its job
    std::vector<std::string> variables; // over those of its job
  };
  std::optional<OfMpi> mpi = {};
};

// `texts`: the hosts and each argument, a zero behind each; where there are so many `arguments` of a program
// of MPI, its directory and variables behind them. None: it makes no sense.
[[nodiscard]] std::optional<SpawnRequest> parse_spawn_request(std::string_view texts, std::uint64_t count,
                                                              std::optional<std::uint32_t> arguments = {});
[[nodiscard]] std::string texts_of(const SpawnRequest& request); // the same

// Who is told what becomes of that, at a step's end. Errors are sentences for who called parc_spawn.
struct SpawnListener {
  using Ready = std::function<void(Result<void>)>;
  // They are to start when `ready` says so.
  std::function<void(std::uint64_t job, std::vector<EndpointAddress> ranks, Ready ready)> prepared;
  std::function<void(const Result<void>&)> started;
  std::function<void(std::uint32_t rank, std::uint32_t status)> exited; // as a shell says it
};

} // namespace parc::daemon
