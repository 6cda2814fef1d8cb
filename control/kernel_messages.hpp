// SPDX-License-Identifier: BSD-3-Clause
// What kernels say to each other besides messages of programs. Whoever changes a field raises
// protocol::wire_version: kernels take no message that they do not know (tests/unit/control_messages_test.cpp
// holds both to each other).
//
// ---- Jobs: the kernel that `parc run` talks to (the origin) and those that run its ranks (parts), which may
// be the same. Those of a part say which host of the job it is.
//
//   origin            part
//   prepare    ->                      the whole plan; it connects to the other hosts of the job
//              <-     prepared         there are endpoints for its ranks: the first one's number
//   start      ->                      when all are prepared: those of each host
//              <-     failed           prepare or start did not work: exit status and sentence
//              <-     output           of a rank, as far as its credit goes
//   taken      ->                      credit back
//   input      ->                      what its ranks read, and whether more follows ("end")
//              <-     input_taken      so much of that, so far, by the slowest of them
//              <-     departed         a rank's session has ended; "known": news of who of other hosts has
//              <-     exited, ended    its process; and then also its output
//              <-     abort            parc_abort, with its status
//              <-     parted           two hosts of the job have lost their link
//              <-     stopping         that kernel shuts down
//              <-     started          all its ranks run (of a job that was spawned)
//              <-     spawn            one of its ranks wants another job
//   signal     ->                      for every rank, or one
//   mpi_job    ->                      for the first PMIx server: another job of MPI has begun
//   end, kill  ->                      the ranks are to end: SIGTERM and soon SIGKILL; SIGKILL
//   finish     ->                      the job is over: forget it
//
// ---- Programs that spawn others (PARC 1994, section 3: "dynamic process generation")
//
//   spawner's kernel        origin of its job, and of the spawned one
//   spawn           ->                          how many, where, which program
//                   <-      spawn_prepared      there are endpoints for all of them
//   spawn_known     ->                          the spawner has them in its table: they may start
//                   <-      spawn_started       all run
//                   <-      spawn_failed        they do not: a sentence
//                   <-      spawn_exit          the status of one that has ended
//   end_spawned     ->                          the spawner was killed
//   signal_rank     ->                          parc_kill
//
// ---- Programs that form a job by its name (parc_join)
//
//   kernel of a program     kernel where they meet
//   join            ->                          name, rank, size, and the address of its endpoint
//   unjoin          ->                          it has gone meanwhile
//                   <-      joined              all are there: the addresses of all
//   formed          ->                          it reaches the kernels of all; or why not, and which rank's
//                   <-      go                  all kernels do, and the programs may run
//                   <-      join_refused        in place of either: a PARC_E* and a sentence
//   signal_joined  ->  any other kernel         to all programs of a job that runs (parc kill)
//
// ---- Jobs of MPI: "mpi_begins" goes from the origin of one to all kernels that this one has links to. Who
// has such jobs itself tells them (mpi_job), and answers with theirs.
//
// ---- Tools: any kernel asks any other. "look" is answered by "seen", "question" by "answer", with the
// asker's token and place. "kill_job" goes from any kernel of a job to its origin.
// Of relayed connections and signs of life: control/link_messages.hpp.
#pragma once

#include "control/host_answer.hpp"
#include "control/message.hpp"
#include "control/program_fields.hpp"
#include "control/rank_state.hpp"
#include "jobs/placement.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace parc::control::kernel {

enum class Kind : std::uint8_t {
  prepare,
  prepared,
  start,
  failed,
  output,
  taken,
  input,
  input_taken,
  departed,
  exited,
  ended,
  abort,
  parted,
  stopping,
  started,
  spawn,
  signal,
  mpi_job,
  end,
  kill,
  finish,
  spawn_prepared,
  spawn_known,
  spawn_started,
  spawn_failed,
  spawn_exit,
  end_spawned,
  signal_rank,
  join,
  unjoin,
  joined,
  formed,
  go,
  join_refused,
  signal_joined,
  mpi_begins,
  look,
  seen,
  question,
  answer,
  kill_job,
  relay_open,
  relay_opened,
  relay_bytes,
  relay_taken,
  relay_close,
  ping,
  pong,
  streams,
};
inline constexpr std::size_t kinds = static_cast<std::size_t>(Kind::streams) + 1;
[[nodiscard]] constexpr bool of_relays(Kind kind) { // and of a link's own: all that a relay says and hears
  return kind >= Kind::relay_open && kind <= Kind::pong;
}
[[nodiscard]] std::string_view name(Kind kind);
[[nodiscard]] std::optional<Kind> kind_named(std::string_view name);

// ---- Limits

inline constexpr std::uint64_t most_hosts = max_ranks; // of a job
inline constexpr std::uint64_t most_signal = NSIG - 1;
inline constexpr std::uint64_t most_status = UINT8_MAX; // exit status of a process
inline constexpr std::uint64_t most_joined = 4096;      // ranks of a job that is joined
// With "ended": how many messages the ranks of that host had not read when they left, and so many of them.
inline constexpr std::uint64_t unread_told = 5;
// What the tool has read for the ranks and they have not.
inline constexpr std::uint64_t input_window = 256 << 10;
// Unacknowledged output of a rank between its pipe and the tool. All ranks together may fill 8 MiB, more only
// where that is less than 1 KiB for each.
inline constexpr std::uint64_t most_output_credit = 256 << 10;
constexpr std::uint64_t output_credit(std::uint32_t ranks) {
  constexpr std::uint64_t least = 1024, together = 8 << 20;
  return std::clamp<std::uint64_t>(together / std::max(ranks, 1u), least, most_output_credit);
}

// ---- Jobs, from their origin

struct Prepare {
  static constexpr Kind kind = Kind::prepare;
  std::uint64_t job = 0;
  std::uint64_t self = 0;                     // place of the receiver among the hosts
  std::uint64_t origin = 0;                   // the origin's, or how many hosts there are
  std::uint32_t size = 0;                     // ranks
  std::string parent = {};                    // address of the program that spawned it; or empty
  std::vector<std::string> hosts = {};        // names
  std::vector<std::uint32_t> identities = {}; // low halves
  std::vector<std::string> addresses = {};    // of their kernels, or empty
  std::vector<std::uint64_t> runs = {};       // host, ranks, host, ranks, ...
  ProgramFields program = {};
  std::string payload = {}; // its texts
  static constexpr auto fields() {
    return std::array{field<&Prepare::job>("job"),
                      field<&Prepare::self>("self", most_hosts - 1),
                      field<&Prepare::origin>("origin", most_hosts),
                      field<&Prepare::size>("size", max_ranks),
                      field<&Prepare::parent>("parent"),
                      field<&Prepare::hosts>("hosts", most_hosts),
                      field<&Prepare::identities>("identities", most_hosts),
                      field<&Prepare::addresses>("addresses", most_hosts),
                      field<&Prepare::runs>("runs", 2 * max_ranks)} +
           program_fields<&Prepare::program>();
  }
};

struct Start {
  static constexpr Kind kind = Kind::start;
  std::uint64_t job = 0;
  std::vector<std::uint64_t> endpoints = {}; // of each host: that of its first rank
  static constexpr auto fields() {
    return std::array{field<&Start::job>("job"), field<&Start::endpoints>("endpoints", most_hosts)};
  }
};

struct Taken {
  static constexpr Kind kind = Kind::taken;
  std::uint64_t job = 0;
  std::uint32_t rank = 0;
  std::uint64_t bytes = 0;
  static constexpr auto fields() {
    return std::array{field<&Taken::job>("job"), field<&Taken::rank>("rank", max_ranks - 1),
                      field<&Taken::bytes>("bytes", most_output_credit)};
  }
};

struct Input {
  static constexpr Kind kind = Kind::input;
  std::uint64_t job = 0;
  std::uint32_t end = 0; // 1: nothing follows
  std::string payload = {};
  static constexpr auto fields() {
    return std::array{field<&Input::job>("job"), field<&Input::end>("end", 1)};
  }
};

struct Signal {
  static constexpr Kind kind = Kind::signal;
  std::uint64_t job = 0;
  std::uint32_t signal = 0;
  std::optional<std::uint32_t> rank = {}; // none: all
  static constexpr auto fields() {
    return std::array{field<&Signal::job>("job"), field<&Signal::signal>("signal", most_signal),
                      field<&Signal::rank>("rank", max_ranks - 1)};
  }
};

struct MpiJob {
  static constexpr Kind kind = Kind::mpi_job;
  std::uint64_t job = 0;
  std::uint64_t other = 0;  // that one's number
  std::string address = {}; // of its first PMIx server
  static constexpr auto fields() {
    return std::array{field<&MpiJob::job>("job"), field<&MpiJob::other>("other"),
                      field<&MpiJob::address>("address")};
  }
};

struct End {
  static constexpr Kind kind = Kind::end;
  std::uint64_t job = 0;
  static constexpr auto fields() { return std::array{field<&End::job>("job")}; }
};

struct Kill {
  static constexpr Kind kind = Kind::kill;
  std::uint64_t job = 0;
  static constexpr auto fields() { return std::array{field<&Kill::job>("job")}; }
};

struct Finish {
  static constexpr Kind kind = Kind::finish;
  std::uint64_t job = 0;
  static constexpr auto fields() { return std::array{field<&Finish::job>("job")}; }
};

// ---- Jobs, from their parts

template <class Message> constexpr auto part_fields() {
  return std::array{field<&Message::job>("job"), field<&Message::host>("host", most_hosts - 1)};
}

struct Prepared {
  static constexpr Kind kind = Kind::prepared;
  std::uint64_t job = 0, host = 0;
  std::uint64_t endpoint = 0; // of its first rank
  static constexpr auto fields() {
    return part_fields<Prepared>() + std::array{field<&Prepared::endpoint>("endpoint")};
  }
};

struct Failed {
  static constexpr Kind kind = Kind::failed;
  std::uint64_t job = 0, host = 0;
  std::uint32_t status = 0;
  std::string text = {};
  static constexpr auto fields() {
    return part_fields<Failed>() +
           std::array{field<&Failed::status>("status", most_status), field<&Failed::text>("text")};
  }
};

struct Output {
  static constexpr Kind kind = Kind::output;
  std::uint64_t job = 0, host = 0;
  std::uint32_t rank = 0;
  std::uint32_t stream = 0; // 1: standard output, 2: errors, 3: trace
  std::string payload = {};
  static constexpr auto fields() {
    return part_fields<Output>() +
           std::array{field<&Output::rank>("rank", max_ranks - 1), field<&Output::stream>("stream", 3)};
  }
};

struct InputTaken {
  static constexpr Kind kind = Kind::input_taken;
  std::uint64_t job = 0, host = 0;
  std::uint64_t taken = 0; // bytes, since the job began
  static constexpr auto fields() {
    return part_fields<InputTaken>() + std::array{field<&InputTaken::taken>("taken")};
  }
};

struct Departed {
  static constexpr Kind kind = Kind::departed;
  std::uint64_t job = 0, host = 0;
  std::uint32_t rank = 0;
  std::vector<std::uint64_t> known = {}; // ranks
  static constexpr auto fields() {
    return part_fields<Departed>() + std::array{field<&Departed::rank>("rank", max_ranks - 1),
                                                field<&Departed::known>("known", max_ranks)};
  }
};

struct Exited {
  static constexpr Kind kind = Kind::exited;
  std::uint64_t job = 0, host = 0;
  std::uint32_t rank = 0, status = 0;
  std::uint32_t signal = 0; // that killed it; 0: none
  bool ordered = false;     // because its job ends
  std::optional<bool> no_memory = {};
  static constexpr auto fields() {
    return part_fields<Exited>() + std::array{field<&Exited::rank>("rank", max_ranks - 1),
                                              field<&Exited::status>("status", most_status),
                                              field<&Exited::signal>("signal", most_signal),
                                              field<&Exited::ordered>("ordered"),
                                              field<&Exited::no_memory>("no_memory")};
  }
};

struct UnreadMessage {
  std::uint32_t to = 0;   // rank
  std::int32_t from = -1; // rank, or somebody else
  std::int64_t tag = 0;
  std::uint64_t bytes = 0;
  static constexpr auto fields() {
    return std::array{field<&UnreadMessage::to>("to", max_ranks - 1),
                      field<&UnreadMessage::from>("from", max_ranks - 1), field<&UnreadMessage::tag>("tag"),
                      field<&UnreadMessage::bytes>("bytes")};
  }
};

struct Ended {
  static constexpr Kind kind = Kind::ended;
  std::uint64_t job = 0, host = 0;
  std::uint32_t rank = 0;
  std::optional<std::uint64_t> unread = {}; // messages, by the ranks of that host
  std::optional<std::vector<UnreadMessage>> messages = {};
  static constexpr auto fields() {
    return part_fields<Ended>() + std::array{field<&Ended::rank>("rank", max_ranks - 1),
                                             field<&Ended::unread>("unread", UINT32_MAX),
                                             field<&Ended::messages>("messages", unread_told)};
  }
};

struct Abort {
  static constexpr Kind kind = Kind::abort;
  std::uint64_t job = 0, host = 0;
  std::uint32_t rank = 0, status = 0;
  static constexpr auto fields() {
    return part_fields<Abort>() + std::array{field<&Abort::rank>("rank", max_ranks - 1),
                                             field<&Abort::status>("status", most_status)};
  }
};

struct Parted {
  static constexpr Kind kind = Kind::parted;
  std::uint64_t job = 0, host = 0;
  std::uint64_t other = 0; // place of the other host
  static constexpr auto fields() {
    return part_fields<Parted>() + std::array{field<&Parted::other>("other", most_hosts - 1)};
  }
};

struct Stopping {
  static constexpr Kind kind = Kind::stopping;
  std::uint64_t job = 0, host = 0;
  static constexpr auto fields() { return part_fields<Stopping>(); }
};

struct Started {
  static constexpr Kind kind = Kind::started;
  std::uint64_t job = 0, host = 0;
  static constexpr auto fields() { return part_fields<Started>(); }
};

struct Spawn {
  static constexpr Kind kind = Kind::spawn;
  std::uint64_t job = 0, host = 0;
  std::uint64_t token = 0; // of the spawner's kernel
  std::uint32_t count = 0;
  std::string parent = {}; // address of the spawner
  // Of programs of MPI: of each its ranks, and how many arguments and variables; none: it is one of parc's.
  std::optional<std::vector<std::uint64_t>> apps = {};
  std::string payload = {}; // the texts of a SpawnRequest (daemon/program/spawn_request.hpp)
  static constexpr auto fields() {
    return part_fields<Spawn>() +
           std::array{field<&Spawn::token>("token"), field<&Spawn::count>("count", max_ranks),
                      field<&Spawn::parent>("parent"), field<&Spawn::apps>("apps", 3 * most_apps)};
  }
};

// ---- Spawned jobs

struct SpawnPrepared {
  static constexpr Kind kind = Kind::spawn_prepared;
  std::uint64_t token = 0;
  std::uint64_t spawned = 0;               // the job's number
  std::vector<std::string> addresses = {}; // of each host: that of its first rank
  std::vector<std::uint64_t> runs = {};    // host, ranks, host, ranks, ...
  static constexpr auto fields() {
    return std::array{field<&SpawnPrepared::token>("token"), field<&SpawnPrepared::spawned>("spawned"),
                      field<&SpawnPrepared::addresses>("addresses", most_hosts),
                      field<&SpawnPrepared::runs>("runs", 2 * max_ranks)};
  }
};

struct SpawnKnown {
  static constexpr Kind kind = Kind::spawn_known;
  std::uint64_t job = 0;
  std::string text = {}; // why not; empty: they are
  static constexpr auto fields() {
    return std::array{field<&SpawnKnown::job>("job"), field<&SpawnKnown::text>("text")};
  }
};

struct SpawnStarted {
  static constexpr Kind kind = Kind::spawn_started;
  std::uint64_t token = 0;
  static constexpr auto fields() { return std::array{field<&SpawnStarted::token>("token")}; }
};

struct SpawnFailed {
  static constexpr Kind kind = Kind::spawn_failed;
  std::uint64_t token = 0;
  std::string text = {};
  static constexpr auto fields() {
    return std::array{field<&SpawnFailed::token>("token"), field<&SpawnFailed::text>("text")};
  }
};

struct SpawnExit {
  static constexpr Kind kind = Kind::spawn_exit;
  std::uint64_t token = 0;
  std::uint32_t rank = 0, status = 0;
  static constexpr auto fields() {
    return std::array{field<&SpawnExit::token>("token"), field<&SpawnExit::rank>("rank", max_ranks - 1),
                      field<&SpawnExit::status>("status", most_status)};
  }
};

struct EndSpawned {
  static constexpr Kind kind = Kind::end_spawned;
  std::uint64_t job = 0;
  static constexpr auto fields() { return std::array{field<&EndSpawned::job>("job")}; }
};

struct SignalRank {
  static constexpr Kind kind = Kind::signal_rank;
  std::uint64_t job = 0;
  std::uint32_t rank = 0, signal = 0;
  static constexpr auto fields() {
    return std::array{field<&SignalRank::job>("job"), field<&SignalRank::rank>("rank", max_ranks - 1),
                      field<&SignalRank::signal>("signal", most_signal)};
  }
};

// ---- Jobs that are joined

struct Join {
  static constexpr Kind kind = Kind::join;
  std::string name = {};
  std::uint32_t rank = 0, size = 0;
  std::uint64_t token = 0;
  std::string address = {}; // of the program's endpoint
  static constexpr auto fields() {
    return std::array{field<&Join::name>("name"), field<&Join::rank>("rank", most_joined - 1),
                      field<&Join::size>("size", most_joined), field<&Join::token>("token"),
                      field<&Join::address>("address")};
  }
};

struct Unjoin {
  static constexpr Kind kind = Kind::unjoin;
  std::string name = {};
  std::uint32_t rank = 0;
  std::uint64_t token = 0;
  static constexpr auto fields() {
    return std::array{field<&Unjoin::name>("name"), field<&Unjoin::rank>("rank", most_joined - 1),
                      field<&Unjoin::token>("token")};
  }
};

struct Joined {
  static constexpr Kind kind = Kind::joined;
  static constexpr std::uint64_t longest_wait_s = 2 * 86'400;
  std::uint64_t number = 0;             // of the job
  std::vector<std::uint64_t> mine = {}; // of the receiver's programs: rank, token, rank, token, ...
  std::string hosts = {};               // as PARC_HOSTS
  std::uint32_t within = 0;             // seconds in which the job begins, or does not
  std::string payload = {};             // the addresses of all endpoints, by rank, a zero behind each
  static constexpr auto fields() {
    return std::array{field<&Joined::number>("number"), field<&Joined::mine>("mine", 2 * most_joined),
                      field<&Joined::hosts>("hosts"), field<&Joined::within>("within", longest_wait_s)};
  }
};

struct Formed {
  static constexpr Kind kind = Kind::formed;
  std::uint64_t number = 0;
  std::optional<std::string> text = {};        // why not
  std::optional<std::uint32_t> unreached = {}; // a rank of the host that is not
  static constexpr auto fields() {
    return std::array{field<&Formed::number>("number"), field<&Formed::text>("text"),
                      field<&Formed::unreached>("unreached", most_joined - 1)};
  }
};

struct Go {
  static constexpr Kind kind = Kind::go;
  std::uint64_t number = 0;
  static constexpr auto fields() { return std::array{field<&Go::number>("number")}; }
};

struct JoinRefused {
  static constexpr Kind kind = Kind::join_refused;
  std::uint64_t token = 0;
  std::uint32_t code = 0; // a PARC_E*, without its sign
  std::string text = {};
  static constexpr auto fields() {
    return std::array{field<&JoinRefused::token>("token"), field<&JoinRefused::code>("code", 64),
                      field<&JoinRefused::text>("text")};
  }
};

struct SignalJoined {
  static constexpr Kind kind = Kind::signal_joined;
  std::uint64_t job = 0;
  std::uint32_t signal = 0;
  static constexpr auto fields() {
    return std::array{field<&SignalJoined::job>("job"), field<&SignalJoined::signal>("signal", most_signal)};
  }
};

// ---- Jobs of MPI

struct MpiBegins {
  static constexpr Kind kind = Kind::mpi_begins;
  std::uint64_t other = 0;  // the job's number
  std::string address = {}; // of its first PMIx server
  bool is_answer = false;   // it runs already
  static constexpr auto fields() {
    return std::array{field<&MpiBegins::other>("other"), field<&MpiBegins::address>("address"),
                      field<&MpiBegins::is_answer>("is_answer")};
  }
};

// ---- For tools

struct Look {
  static constexpr Kind kind = Kind::look;
  std::uint64_t job = 0, token = 0, place = 0;
  static constexpr auto fields() {
    return std::array{field<&Look::job>("job"), field<&Look::token>("token"), field<&Look::place>("place")};
  }
};

struct Seen {
  static constexpr Kind kind = Kind::seen;
  std::uint64_t token = 0, place = 0;
  std::vector<RankState> ranks = {}; // of that host
  static constexpr auto fields() {
    return std::array{field<&Seen::token>("token"), field<&Seen::place>("place"),
                      field<&Seen::ranks>("ranks", max_ranks)};
  }
};

struct Question {
  static constexpr Kind kind = Kind::question;
  std::uint64_t token = 0, place = 0;
  HostQuestion question = {};
  static constexpr auto fields() {
    return std::array{field<&Question::token>("token"), field<&Question::place>("place"),
                      field<&Question::question>("question")};
  }
};

struct Answer {
  static constexpr Kind kind = Kind::answer;
  std::uint64_t token = 0, place = 0;
  HostAnswer answer = {};
  static constexpr auto fields() {
    return std::array{field<&Answer::token>("token"), field<&Answer::place>("place"),
                      field<&Answer::answer>("answer")};
  }
};

struct KillJob {
  static constexpr Kind kind = Kind::kill_job;
  std::uint64_t job = 0;
  std::uint32_t signal = 0;
  static constexpr auto fields() {
    return std::array{field<&KillJob::job>("job"), field<&KillJob::signal>("signal", most_signal)};
  }
};

} // namespace parc::control::kernel
