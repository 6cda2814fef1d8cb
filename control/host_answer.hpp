// SPDX-License-Identifier: BSD-3-Clause
// What a tool asks the kernels of several hosts (parc up, hosts, ps and kill), and what each says.
#pragma once

#include "control/message.hpp"
#include "jobs/placement.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parc::control {

struct JobRow { // of a job that has ranks on the host that answers
  std::uint64_t job = 0;
  static constexpr std::size_t longest_program = 255; // bytes of its name that are told
  std::string program = {};
  std::uint32_t size = 0, ranks = 0; // ranks: there
  std::string state = {};
  std::uint64_t since = 0; // Unix time
  std::string origin = {}; // host
  static constexpr auto fields() {
    return std::array{field<&JobRow::job>("job"),      field<&JobRow::program>("program"),
                      field<&JobRow::size>("size"),    field<&JobRow::ranks>("ranks", max_ranks),
                      field<&JobRow::state>("state"),  field<&JobRow::since>("since"),
                      field<&JobRow::origin>("origin")};
  }
};

struct WaitingJob { // that programs join, and that has not begun
  std::string name = {};
  std::uint32_t size = 0;
  std::string missing = {}; // ranks
  static constexpr auto fields() {
    return std::array{field<&WaitingJob::name>("name"), field<&WaitingJob::size>("size", max_ranks),
                      field<&WaitingJob::missing>("missing")};
  }
};

inline constexpr std::uint64_t longest_host = 255; // of its name

struct HostToReach {
  std::string name = {};
  std::uint64_t identity = 0; // of its kernel
  static constexpr auto fields() {
    return std::array{field<&HostToReach::name>("name", longest_host),
                      field<&HostToReach::identity>("identity")};
  }
};
struct HostTried {
  std::string name = {};
  std::string way = {};  // there; empty: it was not reached
  std::string text = {}; // then why
  static constexpr auto fields() {
    return std::array{field<&HostTried::name>("name"), field<&HostTried::way>("way"),
                      field<&HostTried::text>("text")};
  }
};

struct HostQuestion { // of a tool: which jobs are there; and:
  static constexpr std::uint64_t most_told = 4096, most_reached = 64;
  std::optional<std::uint64_t> job = {}; // that is to get this signal
  std::optional<std::uint32_t> signal = {};
  std::optional<std::vector<std::array<std::string, 2>>> hosts = {}; // where others are: name, address
  std::optional<std::vector<HostToReach>> reach = {}; // nothing but this: which of these can it reach?
  static constexpr auto fields() {
    return std::array{field<&HostQuestion::job>("job"), field<&HostQuestion::signal>("signal", NSIG - 1),
                      field<&HostQuestion::hosts>("hosts", most_told),
                      field<&HostQuestion::reach>("reach", most_reached)};
  }
};
struct HostAnswer {
  static constexpr std::uint64_t most_jobs = 4096, most_keys = 2;
  std::string version = {};
  std::vector<std::string> keys = {}; // names: of what proves that kernel, and of what convinces it, too
  std::vector<JobRow> jobs = {};
  std::vector<WaitingJob> waiting = {};
  std::optional<bool> killed = {}; // there is such a job
  std::optional<std::vector<HostTried>> tried = {};
  static constexpr auto fields() {
    return std::array{field<&HostAnswer::version>("version"),
                      field<&HostAnswer::keys>("keys", most_keys),
                      field<&HostAnswer::jobs>("jobs", most_jobs),
                      field<&HostAnswer::waiting>("waiting", most_jobs),
                      field<&HostAnswer::killed>("killed"),
                      field<&HostAnswer::tried>("tried", HostQuestion::most_reached)};
  }
};

// One that asks for nothing but the jobs is null.
template <> struct Codec<HostQuestion> {
  static void put(nlohmann::json& to, const HostQuestion& value) {
    auto object = put_fields(HostQuestion::fields(), &value);
    if (!object.empty()) to = std::move(object);
  }
  static bool take(const nlohmann::json& from, HostQuestion& value, std::uint64_t) {
    return from.is_null() || take_fields(HostQuestion::fields(), &value, from, {}).has_value();
  }
};

} // namespace parc::control
