// SPDX-License-Identifier: BSD-3-Clause
// What a program asks for with parc_spawn, or by MPI_Comm_spawn and its kernel's PMIx server, and how that
// travels: texts with a zero behind each, of each program its hosts and arguments, of one of MPI then its
// directory and variables.
#pragma once

#include "daemon/link/endpoint_address.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parc::daemon {

struct SpawnRequest {
  struct App {
    std::uint32_t ranks = 0;
    std::string hosts; // "a:2,b"; empty: those of its job
    std::vector<std::string> arguments;
    std::string directory = {};              // empty: that of its job
    std::vector<std::string> variables = {}; // over those of its job
  };
  std::vector<App> apps; // one, but of MPI
  bool mpi = false;
  std::string parent = {};                                  // the spawner's address, for those that it spawns
  [[nodiscard]] std::uint32_t ranks() const;                // of all
  [[nodiscard]] std::vector<std::uint64_t> numbers() const; // as parse_mpi_spawn() takes them
};

// Both none where it makes no sense.
[[nodiscard]] std::optional<SpawnRequest> parse_spawn(std::string_view texts, std::uint64_t ranks);
// `numbers`: of each program how many ranks, arguments and variables it has.
[[nodiscard]] std::optional<SpawnRequest> parse_mpi_spawn(std::string_view texts,
                                                          std::span<const std::uint64_t> numbers);
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
