// SPDX-License-Identifier: BSD-3-Clause
// Processes that a program spawns (parc_spawn): they become rows of its table before the first of them runs;
// it may send them signals, and ask when they end.
#pragma once

#include "daemon/link/endpoint_address.hpp"
#include "daemon/program/completion.hpp"
#include "daemon/program/extents.hpp"
#include "daemon/program/sessions.hpp"
#include "protocol/pieces.hpp"
#include "shm/layout.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sys/types.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace parc::daemon {

class SpawnedPrograms {
public:
  static constexpr std::uint64_t most_text = std::uint64_t{1} << 19; // bytes, of texts or of rows

  struct Needs { // and outlives none of
    Loop& loop;
    protocol::Engine& engine;
    Peers& peers;
    const Extents& memory;           // the program's
    const Sessions::Events& events;  // `spawn` and `signal`
    const Sessions::Member& member;  // the program's
    std::function<bool()> has_table; // which rows can be added to
  };
  struct Events { // never when this has gone
    Completed ended;
  };
  SpawnedPrograms(Needs needs, Events events) : needs_(std::move(needs)), events_(std::move(events)) {}
  SpawnedPrograms(const SpawnedPrograms&) = delete;

  // A call of parc_spawn, as its request and its memory say it; `process` is the program's. None: `ended`
  // tells of it.
  [[nodiscard]] std::optional<Completion> spawn(const shm::Request& request, const protocol::Pieces& memory,
                                                pid_t process);
  // The exit of a process that it has spawned, as the outcome's data. None: `ended` tells of it.
  [[nodiscard]] std::optional<Completion> await_exit(std::uint64_t operation, std::int32_t row);
  // A signal to a process that it has spawned, or to a rank of its job.
  [[nodiscard]] Completion signal(std::int32_t row, std::uint64_t number) const;
  // Ends an operation that waits for an exit. False: this one does not.
  [[nodiscard]] bool cancel(std::uint64_t operation);
  void cancel_all();

private:
  struct Call;
  struct Process {
    std::uint64_t job;
    std::uint32_t rank;
    std::optional<std::uint32_t> exit;  // its status, when it has ended
    std::vector<std::uint64_t> waiting; // operations
  };

  [[nodiscard]] SpawnListener listen(const std::shared_ptr<Call>& call);
  void reach(const std::shared_ptr<Call>& call);
  void add_rows(Call& call);
  void started(const Call& call, const Result<void>& how);
  [[nodiscard]] Completion answer(const Call& call, const Result<void>& how) const;
  void exited(std::int32_t row, std::uint32_t status);
  [[nodiscard]] static Completion end_of(std::int32_t row, std::uint32_t status);

  const Needs needs_;
  const Events events_;
  std::size_t calling_ = 0;                             // calls of parc_spawn
  std::unordered_map<std::int32_t, Process> processes_; // by row
  std::shared_ptr<SpawnedPrograms*> self_ =
      std::make_shared<SpawnedPrograms*>(this); // for what comes after it
};

} // namespace parc::daemon
