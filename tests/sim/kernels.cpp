// SPDX-License-Identifier: BSD-3-Clause
// How the world of whole kernels goes on, and what happens in it.
#include "tests/sim/kernels.hpp"

#include "control/tool_messages.hpp"
#include "daemon/tool/tools.hpp"
#include "tests/sim/violation.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fmt/core.h>
#include <unistd.h>

namespace parc::sim {
namespace {

using namespace std::chrono_literals;
constexpr pid_t first_process = 10'000'000; // no process of the system has such a number
constexpr std::uint32_t link_timeout_s = 10, connect_timeout_s = 5;
constexpr std::uint64_t second = 1'000'000; // in microseconds
constexpr unsigned quiet_rounds = 3;        // before time is let go on: a socket may be seen a round later
constexpr auto time_to_end = 120s;          // for everything, from the last event on
constexpr std::uint16_t first_port = 7001;

const RuntimeDir& runtime_dir() {
  static const RuntimeDir made = [] {
    std::string directory = "/tmp/parc-sim-XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) throw Violation("cannot make a directory in /tmp");
    auto checked = make_runtime_dir(directory);
    rmdir(directory.c_str()); // a kernel that opens no door has nothing to put there
    if (!checked) throw Violation(checked.error().text);
    return std::move(checked).value();
  }();
  return made;
}

SchedulingClass ordinary() {
  auto scheduling = SchedulingClass::acquire(RealtimePolicy::Off);
  if (!scheduling) throw Violation(scheduling.error().text);
  return std::move(scheduling).value();
}

StreamFaults any_faults(Random& random) {
  return {.most_at_once = random.pick<std::size_t>({100, 3000, 100'000}),
          .stalls = random.pick({0u, 3u, 20u}),
          .most_of_life = random.pick<std::uint64_t>({0, 20'000, 100'000, 1'000'000})};
}

std::uint64_t number_of(const std::vector<std::string>& variables, const std::string& name, int base) {
  for (const std::string& each : variables)
    if (each.starts_with(name + "=")) return std::strtoull(each.c_str() + name.size() + 1, nullptr, base);
  throw Violation("a rank was started without " + name);
}

} // namespace

Kernels::Kernels(std::uint64_t seed, bool trace, KernelsTally& tally)
    : seed_(seed), trace_(trace), tally_(tally), random_(seed), network_(seed, any_faults(random_)),
      hosts_(2 + random_.below(3)) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    hosts_[host].name = std::string(1, static_cast<char>('a' + host));
    hosts_[host].address =
        daemon::numeric_address("127.0.0.1", static_cast<std::uint16_t>(first_port + host)).value();
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) start_kernel(host);
  for (std::uint64_t jobs = 3 + random_.below(8); jobs != 0; --jobs)
    plan(40 * second, [this] { ask_for_job(); });
  for (std::uint64_t each = random_.below(3); each != 0; --each)
    plan(40 * second, [this] { ask_for_dump(); });
  for (std::uint64_t each = random_.below(4); each != 0; --each) plan(40 * second, [this] { part_hosts(); });
  for (std::uint64_t each = random_.below(3); each != 0; --each) plan(40 * second, [this] { end_kernel(); });
}

Kernels::~Kernels() {
  for (Host& host : hosts_) host.kernel.reset(); // while there are ranks for it to kill
}

void Kernels::say(const std::string& what) const {
  if (trace_)
    fmt::print("{:12.6f} {}\n", std::chrono::duration<double>(network_.time.time_since_epoch()).count(),
               what);
}

void Kernels::plan(std::uint64_t at_most_us, std::function<void()> what) {
  events_.emplace(network_.time + std::chrono::microseconds(random_.below(at_most_us + 1)), std::move(what));
}

// ---- How it goes on

void Kernels::run() {
  unsigned quiet = 0;
  Loop::Time limit = Loop::Time::max();
  for (std::uint64_t round = 0;; ++round) {
    quiet = go_round() ? 0 : quiet + 1;
    if (events_.empty() && limit == Loop::Time::max()) limit = network_.time + time_to_end;
    if (!events_.empty()) limit = Loop::Time::max();
    if (quiet < quiet_rounds) continue;
    if (events_.empty() && what_is_left().empty()) break;
    if (network_.time > limit)
      throw Violation(fmt::format("after {} s there is still: {}", time_to_end.count(), what_is_left()));
    wait();
    quiet = 0;
  }
  tally_.breaks += network_.breaks;
}

bool Kernels::go_round() {
  network_.tick();
  bool moved = false;
  while (!events_.empty() && events_.begin()->first <= network_.time) {
    const auto event = events_.extract(events_.begin());
    event.mapped()();
    moved = true;
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) moved |= go_round(host);
  for (const auto& rank : ranks_) moved |= rank->step();
  for (const auto& tool : tools_) {
    moved |= tool->step(network_.time);
    if (tool->over() && !std::exchange(tool->judged, true)) judge(*tool);
  }
  return moved || !network_.idle();
}

bool Kernels::go_round(std::size_t number) {
  Host& host = hosts_[number];
  if (host.kernel == nullptr) return false;
  daemon::Kernel& kernel = *host.kernel;
  kernel.loop().ring();
  event_base_loop(kernel.loop().events(), EVLOOP_NONBLOCK | EVLOOP_ONCE);
  const bool worked = kernel.turn() != 0;
  const bool owes = !worked && kernel.prepare_to_sleep();
  see_links(number);
  if (kernel.stopped()) kernel_ended(number);
  return worked || owes;
}

// Until the next thing that happens by itself.
void Kernels::wait() {
  std::optional<Loop::Time> next = network_.next_break();
  const auto consider = [&](std::optional<Loop::Time> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (!events_.empty()) consider(events_.begin()->first);
  for (const Host& host : hosts_)
    if (host.kernel != nullptr) consider(host.kernel->loop().next_timer());
  for (const auto& rank : ranks_) consider(rank->wakes());
  for (const auto& tool : tools_)
    if (!tool->over() && tool->sleeps_until() > network_.time) consider(tool->sleeps_until());
  if (!next) throw Violation("nothing will ever happen again, but there is still: " + what_is_left());
  network_.time = std::max(network_.time, *next);
}

// A link that a kernel gives up must have had a reason to be.
void Kernels::see_links(std::size_t number) {
  Host& host = hosts_[number];
  const protocol::Engine& engine = host.kernel->engine();
  for (std::uint32_t index = 0; index < engine.links(); ++index) {
    const protocol::Link& link = engine.link(index);
    const auto known = host.links.find(index);
    if (link.open && known == host.links.end()) {
      host.links[index] = {identities_.at(link.peer), link.peer, network_.time};
      say(fmt::format("{} has link {} to {}", host.name, index, hosts_[identities_.at(link.peer)].name));
    }
    if (link.open || known == host.links.end()) continue;
    const Link lost = known->second;
    host.links.erase(known);
    ++tally_.sessions_lost;
    say(fmt::format("{} has lost link {} to {}", host.name, index, hosts_[lost.host].name));
    const auto excused = excused_.find(std::minmax(number, lost.host));
    const bool another = lost.identity != static_cast<std::uint32_t>(hosts_[lost.host].identity);
    if (!another && (excused == excused_.end() || excused->second < lost.since))
      throw Violation(fmt::format("host {} has given {} up although only connections broke", host.name,
                                  hosts_[lost.host].name));
    trouble(number, lost.host);
  }
}

// ---- What happens

void Kernels::start_kernel(std::size_t number) {
  Host& host = hosts_[number];
  std::shift_right(host.predecessors.begin(), host.predecessors.end(), 1);
  host.predecessors.front() = host.identity;
  host.identity = random_.below(INT64_MAX) + 1;
  host.stopping = false;
  identities_[static_cast<std::uint32_t>(host.identity)] = number;
  daemon::Config config;
  config.name = host.name;
  config.pool = 4 << 20;
  config.encryption = seed_ % 2 == 0 ? "none" : "tls";
  config.streams = static_cast<std::uint32_t>(seed_ / 2 % 5); // 0: auto
  config.link_timeout_s = link_timeout_s;
  config.connect_timeout_s = connect_timeout_s;
  for (const Host& each : hosts_) config.hosts[each.name] = {"127.0.0.1", each.address.port()};
  host.kernel = std::make_unique<daemon::Kernel>(daemon::Kernel::World{
      .config = std::move(config),
      .runtime_dir = runtime_dir(),
      .keys = {},
      .scheduling = ordinary(),
      .reload = [] { return std::nullopt; },
      .log_lines_dropped = [] { return 0; },
      .identity = host.identity,
      .time = &network_.time,
      .streams = network_.streams_of(host.address),
      .processes = {.start = [this, number](const Program& program, const std::vector<std::string>& variables,
                                            bool,
                                            const daemon::Processors*) -> Result<daemon::StartedProcess> {
                      return start_process(number, program, variables);
                    },
                    .signal =
                        [this](pid_t id, int signal) {
                          ranks_.at(static_cast<std::size_t>(id - first_process))->signal(signal);
                        },
                    .reap =
                        [](const Fd& process) {
                          daemon::RankExit exit;
                          if (read(process.get(), &exit, sizeof exit) != sizeof exit)
                            throw Violation("a rank was reaped that had not ended");
                          return exit;
                        },
                    .clean_up_after = [](const std::vector<pid_t>&) {},
                    .end_strays = [](const std::string&) {}}});
  host.kernel->peers().listen({.hosts = {"127.0.0.1"}, .advertised = {}, .port = host.address.port()},
                              host.predecessors);
  say(fmt::format("{} starts", host.name));
}

void Kernels::kernel_ended(std::size_t number) {
  Host& host = hosts_[number];
  say(fmt::format("{} has ended", host.name));
  for (std::size_t other = 0; other < hosts_.size(); ++other) excuse(number, other);
  for (const auto& tool : tools_)
    if (tool->origin == number) tool->origin_ended = true;
  network_.hang_up(host.address);
  host.links.clear();
  host.kernel.reset();
  for (const auto& rank : ranks_)
    if (rank->host() == number && rank->alive())
      throw Violation(PlayedRank::name(rank->place()) + " outlives its kernel");
  plan(random_.one_in(2) ? 15 * second : second / 10, [this, number] { start_kernel(number); });
}

void Kernels::end_kernel() {
  const std::size_t number = random_.below(hosts_.size());
  Host& host = hosts_[number];
  if (host.kernel == nullptr || host.stopping) return;
  if (random_.one_in(2)) {
    ++tally_.deaths;
    return kernel_ended(number);
  }
  ++tally_.stops;
  say(fmt::format("{} is told to stop", host.name));
  for (std::size_t other = 0; other < hosts_.size(); ++other) excuse(number, other);
  host.stopping = true;
  host.kernel->stop();
}

// For a moment, in which nothing may be lost, or until they have given each other up.
void Kernels::part_hosts() {
  const std::size_t a = random_.below(hosts_.size()), b = random_.below(hosts_.size());
  if (a == b || apart_for_long_.contains(std::minmax(a, b))) return;
  const bool for_long = random_.one_in(2);
  ++tally_.partings;
  say(fmt::format("{} and {} are apart{}", hosts_[a].name, hosts_[b].name, for_long ? " for long" : ""));
  network_.part(hosts_[a].address, hosts_[b].address);
  if (for_long) {
    apart_for_long_.insert(std::minmax(a, b));
    excuse(a, b);
  }
  const std::uint64_t least = for_long ? (link_timeout_s + 2) * second : 0;
  const auto join = [this, a, b, for_long] {
    // Of two that overlap the longer one counts.
    if (!for_long && apart_for_long_.contains(std::minmax(a, b))) return;
    say(fmt::format("{} and {} are together again", hosts_[a].name, hosts_[b].name));
    network_.join(hosts_[a].address, hosts_[b].address);
    if (for_long) apart_for_long_.erase(std::minmax(a, b));
  };
  const std::uint64_t most = for_long ? link_timeout_s * second : connect_timeout_s * second * 2 / 5;
  events_.emplace(network_.time + std::chrono::microseconds(least + random_.below(most)), join);
}

Part Kernels::any_part(bool nice, unsigned rounds) {
  Part part;
  part.rounds = rounds;
  part.attaches = rounds != 0 || random_.one_in(2);
  part.output = random_.one_in(3) ? random_.spread(300'000) : random_.spread(1000);
  part.end = random_.one_in(4) ? Part::End::exits : Part::End::leaves;
  part.ignores_term = random_.one_in(8);
  part.slowest_us = random_.pick<std::uint64_t>({100, 10'000, 1'000'000});
  if (nice || !random_.one_in(2)) return part;
  switch (random_.below(7)) {
  case 0: part.start = Part::Start::no_process; break;
  case 1: part.start = Part::Start::no_program; break;
  case 2:
    part.end = Part::End::aborts;
    part.status = 1 + static_cast<int>(random_.below(60));
    break;
  case 3: part.end = Part::End::stays; break;
  case 4: part.fault = SIGSEGV; break;
  case 5: part.rounds = static_cast<unsigned>(random_.below(rounds + 1)); break;
  default: part.status = 1 + static_cast<int>(random_.below(60)); break;
  }
  return part;
}

void Kernels::ask_for_job() {
  const std::size_t origin = random_.below(hosts_.size());
  if (hosts_[origin].kernel == nullptr) return plan(5 * second, [this] { ask_for_job(); });
  auto tool = std::make_unique<PlayedTool>();
  tool->origin = origin;
  tool->hosts = {origin};
  tool->nice = !random_.one_in(2);
  control::tool::Run request;
  const unsigned rounds = random_.one_in(3) ? 0 : static_cast<unsigned>(random_.spread(20));
  const std::size_t named = 1 + random_.below(hosts_.size());
  for (std::size_t place = 0; place < named; ++place) {
    const std::size_t host = random_.below(hosts_.size()); // one may be named twice
    tool->hosts.insert(host);
    request.hosts.push_back(host == origin && random_.one_in(2) ? std::string() : hosts_[host].name);
    const std::uint64_t count = 1 + random_.below(3);
    request.runs.push_back(place);
    request.runs.push_back(count);
    for (std::uint64_t i = 0; i < count; ++i) tool->parts.push_back(any_part(tool->nice, rounds));
  }
  const Program program{.arguments = {"played", fmt::format("{}", tools_.size())},
                        .environment = {},
                        .directory = "/",
                        .limits = {}};
  request.payload = control::encode_program(program, request.program);
  tool->ask(request);
  for (const std::size_t a : tool->hosts)
    for (const std::size_t b : tool->hosts) tool->troubled |= !of_one_mind(a, b);
  if (random_.one_in(6))
    tool->sleep_until(network_.time + std::chrono::microseconds(random_.below(20 * second)));
  PlayedTool& made = *tool;
  const bool stays = std::ranges::any_of(made.parts, [](const Part& part) {
    return part.end == Part::End::stays || (part.end == Part::End::aborts && !part.attaches);
  });
  if (stays || (!made.nice && random_.one_in(3))) {
    made.nice = false;
    plan(30 * second, [this, &made] { tool_acts(made); });
  }
  ++tally_.jobs;
  say(fmt::format("job {}: {} ranks on {} hosts, asked for on {}, {} rounds{}{}", tools_.size(),
                  made.parts.size(), made.hosts.size(), hosts_[origin].name, rounds,
                  made.nice ? ", nice" : "", made.troubled ? ", troubled" : ""));
  hosts_[origin].kernel->tools().connected(made.give_end());
  tools_.push_back(std::move(tool));
}

void Kernels::tool_acts(PlayedTool& tool) {
  if (tool.over()) return;
  const int signal = random_.pick({SIGINT, SIGTERM});
  say(fmt::format("the tool of a job of {} ranks acts", tool.parts.size()));
  switch (random_.below(4)) {
  case 0: // a program may ignore it
    tool.acted.insert(128 + signal);
    tool.ask(control::tool::Signal{.signal = static_cast<std::uint32_t>(signal)});
    return plan(10 * second, [this, &tool] { tool_acts(tool); });
  case 1:
    tool.acted.insert(128 + signal);
    return tool.ask(control::tool::Kill{.signal = static_cast<std::uint32_t>(signal)});
  case 2: tool.acted.insert(124); return tool.ask(control::tool::TimedOut{});
  default: return tool.go();
  }
}

void Kernels::ask_for_dump() {
  const std::size_t origin = random_.below(hosts_.size());
  if (hosts_[origin].kernel == nullptr) return;
  auto tool = std::make_unique<PlayedTool>();
  tool->origin = origin;
  tool->troubled = true; // whatever it is told
  tool->acted = {0, 125};
  tool->ask(control::tool::Dump{});
  hosts_[origin].kernel->tools().connected(tool->give_end());
  tools_.push_back(std::move(tool));
  ++tally_.dumps;
}

Result<daemon::StartedProcess> Kernels::start_process(std::size_t host, const Program& program,
                                                      const std::vector<std::string>& variables) {
  PlayedTool& tool = *tools_.at(std::strtoull(program.arguments.at(1).c_str(), nullptr, 10));
  const PlayedRank::Place place{number_of(variables, "PARC_JOB", 16),
                                static_cast<std::uint32_t>(number_of(variables, "PARC_RANK", 10)),
                                static_cast<std::uint32_t>(number_of(variables, "PARC_SIZE", 10))};
  const Part& part = tool.parts.at(place.rank);
  if (place.size != tool.parts.size() || !tool.hosts.contains(host))
    throw Violation(PlayedRank::name(place) + " was started where it does not belong");
  if (part.start == Part::Start::no_process) {
    tool.acted.insert(125);
    return error(EAGAIN, "cannot make a process");
  }
  if (!tool.ranks.emplace(place.rank, ranks_.size()).second)
    throw Violation(PlayedRank::name(place) + " was started twice");
  ++tally_.ranks;
  say(fmt::format("{} starts {}", hosts_[host].name, PlayedRank::name(place)));
  ranks_.push_back(std::make_unique<PlayedRank>(part, place, host, network_.time, random_.below(UINT64_MAX)));
  return ranks_.back()->give_ends(first_process + static_cast<pid_t>(ranks_.size() - 1));
}

} // namespace parc::sim
