// SPDX-License-Identifier: BSD-3-Clause
// What a tool and its kernel say to each other over the Unix socket, each in a frame (control/frames.hpp).
//
//   tool               kernel
//   ping         ->                at any time, to see whether it hangs
//                <-    heard
//   run          ->                a job; and while it runs:
//   input        ->                what its ranks read
//   signal, kill ->                for its ranks; to end them at once
//   timeout      ->                it has run for too long
//                <-    output      of a rank: what of it the tool's socket has taken is credited
//                <-    input_taken how much of the input, so far
//                <-    unreached   no kernel runs on these hosts
//   dump         ->                what ranks of a job have not finished
//                <-    dump        of which job, on how many hosts
//                <-    ranks       of a host
//                <-    dumped      that was all; hosts that have not answered
//   search       ->                a question to kernels of several hosts
//                <-    reached     one has answered, or will not
//                <-    tried       which of the others it reaches, where it was told where they are
//   key          ->                the cluster's, and where [hosts] says that parc is installed
//                <-    done        the last word of all but a dump: a status, and a sentence
#pragma once

#include "control/host_answer.hpp"
#include "control/kernel_messages.hpp"
#include "control/message.hpp"
#include "control/program_fields.hpp"
#include "control/rank_state.hpp"
#include "jobs/placement.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parc::control::tool {

enum class Kind : std::uint8_t {
  ping,
  heard,
  run,
  input,
  signal,
  kill,
  timeout,
  output,
  input_taken,
  unreached,
  dump,
  ranks,
  dumped,
  search,
  reached,
  tried,
  key,
  done,
};
inline constexpr std::size_t kinds = static_cast<std::size_t>(Kind::done) + 1;
[[nodiscard]] std::string_view name(Kind kind);
[[nodiscard]] std::optional<Kind> kind_named(std::string_view name);

using kernel::most_hosts;
using kernel::most_signal;
using kernel::most_status;

struct Ping {
  static constexpr Kind kind = Kind::ping;
  static constexpr auto fields() { return std::array<Field, 0>{}; }
};

struct Heard {
  static constexpr Kind kind = Kind::heard;
  static constexpr auto fields() { return std::array<Field, 0>{}; }
};

// ---- A job

struct RankPlace { // what is a host's own
  static constexpr std::uint64_t most_variables = 4096;
  std::string wdir = {}; // empty: as everywhere
  std::vector<std::string> env = {};
  static constexpr auto fields() {
    return std::array{field<&RankPlace::wdir>("wdir"), field<&RankPlace::env>("env", most_variables)};
  }
};

struct Run {
  static constexpr Kind kind = Kind::run;
  std::vector<std::string> hosts = {};               // names; empty: this one
  std::optional<std::vector<RankPlace>> places = {}; // of each of these; none: nothing is
  std::vector<std::uint64_t> runs = {};              // host, ranks, host, ranks, ...
  std::uint32_t keep_going = 0;                      // 1: a rank that fails ends itself alone
  std::optional<std::uint32_t> in_haste = {};        // 1: where no kernel runs, that is said at once
  ProgramFields program = {};
  std::string payload = {}; // its texts
  static constexpr auto fields() {
    return std::array{field<&Run::hosts>("hosts", most_hosts), field<&Run::places>("places", most_hosts),
                      field<&Run::runs>("runs", 2 * max_ranks), field<&Run::keep_going>("keep_going", 1),
                      field<&Run::in_haste>("in_haste", 1)} +
           program_fields<&Run::program>();
  }
};

struct Input {
  static constexpr Kind kind = Kind::input;
  std::uint32_t end = 0; // 1: nothing follows
  std::string payload = {};
  static constexpr auto fields() { return std::array{field<&Input::end>("end", 1)}; }
};

struct Signal {
  static constexpr Kind kind = Kind::signal;
  std::uint32_t signal = 0;
  static constexpr auto fields() { return std::array{field<&Signal::signal>("signal", most_signal)}; }
};

struct Kill {
  static constexpr Kind kind = Kind::kill;
  std::uint32_t signal = 0; // that parc run got
  static constexpr auto fields() { return std::array{field<&Kill::signal>("signal", most_signal)}; }
};

struct TimedOut {
  static constexpr Kind kind = Kind::timeout;
  static constexpr auto fields() { return std::array<Field, 0>{}; }
};

struct Output {
  static constexpr Kind kind = Kind::output;
  std::uint32_t rank = 0;   // or a number behind those of the job's own: of one that was spawned
  std::uint32_t stream = 0; // 1: standard output, 2: errors, 3: trace
  std::string payload = {};
  static constexpr auto fields() {
    return std::array{field<&Output::rank>("rank"), field<&Output::stream>("stream", 3)};
  }
};

struct InputTaken {
  static constexpr Kind kind = Kind::input_taken;
  std::uint64_t taken = 0; // bytes, since the job began
  static constexpr auto fields() { return std::array{field<&InputTaken::taken>("taken")}; }
};

struct Unreached {
  static constexpr Kind kind = Kind::unreached;
  std::vector<std::string> hosts = {};
  std::vector<std::string> unknown = {}; // of each: that nobody knows the name, or empty
  static constexpr auto fields() {
    return std::array{field<&Unreached::hosts>("hosts", most_hosts),
                      field<&Unreached::unknown>("unknown", most_hosts)};
  }
};

// ---- A dump

struct Dump {
  static constexpr Kind kind = Kind::dump;
  std::uint64_t job = 0; // 0: the only one
  static constexpr auto fields() { return std::array{field<&Dump::job>("job")}; }
};

struct DumpBegins {
  static constexpr Kind kind = Kind::dump;
  std::string job = {}; // as tools write it
  std::uint64_t hosts = 0;
  static constexpr auto fields() {
    return std::array{field<&DumpBegins::job>("job"), field<&DumpBegins::hosts>("hosts")};
  }
};

struct Ranks {
  static constexpr Kind kind = Kind::ranks;
  std::string host = {};
  std::vector<RankState> ranks = {};
  static constexpr auto fields() {
    return std::array{field<&Ranks::host>("host"), field<&Ranks::ranks>("ranks", max_ranks)};
  }
};

struct Dumped {
  static constexpr Kind kind = Kind::dumped;
  std::vector<std::string> silent = {}; // hosts
  static constexpr auto fields() { return std::array{field<&Dumped::silent>("silent", most_hosts)}; }
};

// ---- A search

struct HostToAsk {
  std::string name = {};
  std::optional<std::string> address = {}; // where it is from now on
  std::uint16_t port = 0;
  std::string ssh = {};         // where it cannot be dialed, this gets there; empty: nothing does
  std::string link_socket = {}; // of its kernel, for who comes through ssh
};

} // namespace parc::control::tool

namespace parc::control {

// A name, or [name, address, port], or besides where ssh gets there [..., ssh, link socket].
template <> struct Codec<tool::HostToAsk> {
  static void put(nlohmann::json& to, const tool::HostToAsk& value) {
    if (!value.address)
      to = value.name;
    else if (value.ssh.empty())
      to = {value.name, *value.address, value.port};
    else
      to = {value.name, *value.address, value.port, value.ssh, value.link_socket};
  }
  static bool take(const nlohmann::json& from, tool::HostToAsk& value, std::uint64_t) {
    if (from.is_string()) return take_value(from, value.name, no_limit);
    const bool has_ssh = from.is_array() && from.size() == 5;
    return from.is_array() && (from.size() == 3 || has_ssh) && take_value(from[0], value.name, no_limit) &&
           take_value(from[1], value.address.emplace(), no_limit) &&
           take_value(from[2], value.port, no_limit) &&
           (!has_ssh ||
            (take_value(from[3], value.ssh, no_limit) && take_value(from[4], value.link_socket, no_limit)));
  }
};

} // namespace parc::control

namespace parc::control::tool {

struct Search {
  static constexpr Kind kind = Kind::search;
  std::vector<HostToAsk> hosts = {}; // none: all that are known
  HostQuestion question = {};
  std::uint32_t pairs = 0; // 1: and whether those that have been told of each other reach each other
  static constexpr auto fields() {
    return std::array{field<&Search::hosts>("hosts", most_hosts), field<&Search::question>("question"),
                      field<&Search::pairs>("pairs", 1)};
  }
};

struct Reached {
  static constexpr Kind kind = Kind::reached;
  std::string host = {};
  std::string text = {};                   // why there is no answer; empty: there is
  std::optional<std::string> address = {}; // of its kernel, with the port
  std::optional<std::string> way = {};     // how it is reached
  std::optional<std::uint32_t> encrypted = {};
  std::optional<std::uint64_t> streams = {}; // that the link has at this moment
  std::optional<std::uint64_t> rtt_us = {};
  std::optional<std::uint32_t> relays = {}; // 1: it has nothing else to say
  std::optional<HostAnswer> answer = {};
  static constexpr auto fields() {
    return std::array{field<&Reached::host>("host"),
                      field<&Reached::text>("text"),
                      field<&Reached::address>("address"),
                      field<&Reached::way>("way"),
                      field<&Reached::encrypted>("encrypted", 1),
                      field<&Reached::streams>("streams"),
                      field<&Reached::rtt_us>("rtt_us"),
                      field<&Reached::relays>("relays", 1),
                      field<&Reached::answer>("answer")};
  }
};

struct Tried {
  static constexpr Kind kind = Kind::tried;
  std::string host = {};
  std::string text = {}; // why it does not say; empty: it does
  std::vector<HostTried> hosts = {};
  static constexpr auto fields() {
    return std::array{field<&Tried::host>("host"), field<&Tried::text>("text"),
                      field<&Tried::hosts>("hosts", HostQuestion::most_reached)};
  }
};

// ---- The rest

struct AskForKey {
  static constexpr Kind kind = Kind::key;
  static constexpr auto fields() { return std::array<Field, 0>{}; }
};

struct Done {
  static constexpr Kind kind = Kind::done;
  std::uint32_t status = 0;
  std::string text = {};
  std::optional<std::vector<std::array<std::string, 2>>> ends = {}; // of ranks: how, and which
  std::optional<std::vector<std::string>> warnings = {};
  std::optional<std::string> key = {};
  std::optional<std::vector<std::array<std::string, 2>>> prefixes = {}; // with the key: of hosts, by name
  std::optional<std::vector<std::string>> relays = {};                  // likewise: hosts that only relay
  static constexpr auto fields() {
    return std::array{field<&Done::status>("status", most_status),
                      field<&Done::text>("text"),
                      field<&Done::ends>("ends", max_ranks),
                      field<&Done::warnings>("warnings", max_ranks),
                      field<&Done::key>("key"),
                      field<&Done::prefixes>("prefixes", most_hosts),
                      field<&Done::relays>("relays", most_hosts)};
  }
};

} // namespace parc::control::tool
