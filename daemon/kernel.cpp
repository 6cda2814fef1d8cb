// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/kernel.hpp"

#include "control/link_messages.hpp"
#include "daemon/base/cookie.hpp"
#include "daemon/base/copy_cost.hpp"
#include "daemon/base/instance.hpp"
#include "daemon/base/memory_reserve.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/join/joins.hpp"
#include "daemon/link/listeners.hpp"
#include "daemon/spawn/spawners.hpp"
#include "daemon/tool/tools.hpp"
#include "system/core.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

constexpr std::uint64_t turns_unseen = 512;   // between two publications while nothing sleeps
constexpr std::uint64_t long_work = 32 << 10; // bytes over links in a turn
constexpr double displaced_look_s = 1;        // whether the last job is over
constexpr double last_words_s = 0.05;
constexpr double acknowledged_after_s = 0.1; // what nobody waits for
constexpr double longest_farewell_s = 7;     // of a shutdown: ranks have two seconds, or twice two, to end

// None: neighbours exchange messages through the kernel.
std::optional<shm::Progress> progress_of(std::string_view local) {
  if (local == "direct") return shm::Progress::sender;
  if (local == "signal") return shm::Progress::receiver;
  if (local == "wait") return shm::Progress::nobody;
  return {};
}

bool reaches_memory(std::string_view cross_memory) {
  return cross_memory == "on" || (cross_memory == "auto" && cross_copies_pay());
}

LocalHost local_host(const Config& config, std::uint64_t identity) {
  LocalHost self;
  self.identity = identity;
  self.name = config.name;
  self.fragment_size = config.fragment_size;
  return self;
}

} // namespace

Kernel::Kernel(World world)
    : world_(std::move(world)), loop_(world_.time), engine_({.pool = world_.config.pool}, *this),
      post_(loop_, engine_,
            [this](std::uint32_t link, const Error& why) { peers_->said_nonsense(link, why); }),
      door_(loop_, world_.runtime_dir.socket(),
            {.program = [this](Fd from, Fd to) { sessions_->add_by_hand(std::move(from), std::move(to)); },
             .tool = [this](Fd socket) { tools_->connected(std::move(socket)); },
             .joiner = [this](Fd socket,
                              const std::string& wants) { joins_->joiner(std::move(socket), wants); },
             .turned_away = [this] { sessions_->turned_away(); }}),
      link_socket_(world_.runtime_dir.link_socket()),
      acknowledge_(loop_, [this] { engine_.flush_acknowledgements(); }),
      idle_(loop_, [this] { look_whether_idle(); }), last_words_(loop_, [this] { stopped_ = true; }),
      farewell_(loop_, [this] { stopped_ = true; }), no_memory_(loop_, "allocations failed") {
  if (world_.config.encryption != "none") encrypted_.emplace(world_.keys, relays_);
  peers_ = std::make_unique<Peers>(
      loop_, engine_, encrypted_ ? static_cast<StreamMaker&>(*encrypted_) : relays_, world_.config,
      world_.keys, local_host(world_.config, world_.identity),
      HostSessions::Events{.link_up =
                               [this](std::uint32_t link) {
                                 post_.listen(link, peers_->only_relays(static_cast<std::int32_t>(link)));
                                 if (!peers_->only_relays(static_cast<std::int32_t>(link)))
                                   jobs_->link_up(link);
                               },
                           .link_lost = [this](std::uint32_t link) { link_lost(link); },
                           .ping =
                               [this](std::uint32_t link, std::uint64_t number) {
                                 post_.send(static_cast<std::int32_t>(link), kernel::Ping{.number = number});
                               },
                           .ask_streams =
                               [this](std::uint32_t link, unsigned count) {
                                 post_.send(static_cast<std::int32_t>(link), kernel::Streams{.count = count});
                               }},
      &tunnels_);
  post_.on<kernel::Ping>([this](std::int32_t from, kernel::Ping ping) {
    post_.send(from, kernel::Pong{.number = ping.number});
  });
  post_.on<kernel::Pong>([this](std::int32_t from, kernel::Pong pong) { peers_->pong(from, pong.number); });
  post_.on<kernel::Streams>(
      [this](std::int32_t from, kernel::Streams asked) { peers_->asked_streams(from, asked.count); });
  relays_.begin(
      {.to = [this](std::uint64_t identity,
                    const std::string& name) { return peers_->near_link(identity, name); },
       .all = [this] { return peers_->near_links(); },
       .name = [this](std::int32_t link) { return peers_->name_of(link); },
       .identity = [this](std::int32_t link) { return drawn_identity(peers_->identity_of(link)); },
       .is_near = [this](std::int32_t link) { return peers_->is_near(link); },
       .connect =
           [this](const std::string& name, std::uint64_t identity, Relays::Links::Connected connected) {
             peers_->connect(name, std::move(connected),
                             {.relayed = false, .identity = identity, .to_relay = true});
           },
       .may_ask = [this](std::int32_t link) { return peers_->may_ask(link); }});
  sessions_ = std::make_unique<Sessions>(
      loop_, engine_, *peers_,
      Sessions::Settings{world_.config.name, copy_ns_per_kib(), progress_of(world_.config.local),
                         world_.config.cross_memory != "off", reaches_memory(world_.config.cross_memory)},
      Sessions::Events{
          .aborted = [this](const Sessions::Member& member,
                            int status) { jobs_->abort(member.job, member.rank, status); },
          .departs = [this](const Sessions::Member& member) { jobs_->rank_departs(member.job, member.rank); },
          .unread = [this](std::uint64_t endpoint, const protocol::Address& from,
                           const protocol::Outcome& message) { unread(endpoint, from, message); },
          .spawn =
              [this](const Sessions::Member& member, pid_t process, const SpawnRequest& request,
                     SpawnListener listener) {
                spawners_->ask(member, process, request, std::move(listener));
              },
          .signal = [this](std::uint64_t job, std::uint32_t rank,
                           int signal) { return spawners_->signal(job, rank, signal); }});
  const auto emptied = [this] { look_whether_all_is_said(); };
  jobs_ = std::make_unique<Jobs>(loop_, engine_, *peers_, *sessions_, post_, world_.runtime_dir,
                                 world_.processes, emptied);
  spawners_ = std::make_unique<Spawners>(post_, *jobs_);
  jobs_->on_spawn(
      [this](const Sessions::Member& member, const SpawnRequest& request, SpawnListener listener) {
        spawners_->ask(member, 0, request, std::move(listener));
      });
  joins_ = std::make_unique<Joins>(loop_, engine_, *peers_, *sessions_, post_, *jobs_, world_.config);
  tools_ = std::make_unique<Tools>(loop_, post_, *peers_, *jobs_, *joins_, emptied);
  idle_policy_ = std::make_unique<IdlePolicy>(
      loop_.events(), world_.scheduling, std::chrono::microseconds(world_.config.spin_us),
      IdlePolicy::Needs{.spinning = [this] { return sessions_->any_spinning(); },
                        .bursts = [this] { return sessions_->any_in_burst(); },
                        .asks = [this] { return engine_.asks_programs(); },
                        .ready =
                            [this] {
                              publish();
                              return prepare_to_sleep();
                            },
                        .announce_sleep = [this] { sessions_->announce_sleep(); },
                        .announce_awake = [this] { sessions_->announce_awake(); }});
}

Kernel::~Kernel() {
  tools_.reset(); // while there is an engine to drop their jobs from
  joins_.reset();
  spawners_.reset();
  jobs_.reset();
  loop_.forget_actions();
}

Result<void> Kernel::start() {
  PARC_TRY(listeners, bind_listeners(world_.config));
  const std::string where = listeners.words;
  const LocalHost& self = peers_->self();
  // Who had links to it learns from ours that it is no more.
  Predecessors predecessors{};
  if (const auto before = CounterReader::open(world_.runtime_dir))
    predecessors = before.value().read().for_next();
  PARC_TRY(counters, Counters::create(world_.runtime_dir, {.host = self.name,
                                                           .identity = self.identity,
                                                           .port = listeners.at.port,
                                                           .scheduling = world_.scheduling.describe(),
                                                           .listens = where,
                                                           .predecessors = predecessors}));
  counters_ = std::make_unique<Counters>(std::move(counters));
  loop_.errors().show_in(counters_->errors());
  peers_->listen(std::move(listeners.at), predecessors);
  for (Fd& socket : listeners.sockets) sockets_.listen(std::move(socket));
  PARC_TRY(hear_tunnels());
  PARC_TRY(door_.open());
  watch_signal(SIGTERM, [this] { stop(); });
  watch_signal(SIGINT, [this] { stop(); });
  watch_signal(SIGHUP, [this] { reload(); });
  std::signal(SIGPIPE, SIG_IGN);
  spdlog::info("kernel of host {} listens on {}, {}", self.name, where, world_.scheduling.describe());
  if (world_.config.idle_timeout_s != 0) idle_.set(world_.config.idle_timeout_s);
  if (world_.instance == nullptr) return success();
  watch_.emplace(loop_, world_.runtime_dir.path(), [this] { look_after_runtime_dir(); });
  watch_->watch();
  return success();
}

Result<bool> Kernel::put_back_runtime_dir() {
  PARC_TRY(place, world_.instance->put_back());
  PARC_TRY(counters, counters_->put_back(world_.runtime_dir));
  PARC_TRY(door, door_.put_back());
  PARC_TRY(tunnels, hear_tunnels());
  return place || counters || door || tunnels;
}

// False: that is so already.
Result<bool> Kernel::hear_tunnels() {
  if (link_socket_.is_there()) return false;
  PARC_TRY(listener, link_socket_.listen());
  sockets_.listen(std::move(listener));
  return true;
}

// A kernel that nobody finds would be started a second time, beside its jobs.
void Kernel::look_after_runtime_dir() {
  if (stopping_ || displaced_) return;
  const Result<bool> again = put_back_runtime_dir();
  if (again) {
    if (again.value())
      spdlog::warn("{} was removed, or something in it, perhaps by a cleaner of temporary files; it is there "
                   "again",
                   world_.runtime_dir.path());
    return watch_->watch();
  }
  if (again.error().code != EEXIST) {
    spdlog::warn("no program or tool finds this kernel: {}", again.error().text);
    return watch_->look_later();
  }
  spdlog::warn("{} was removed, and another kernel has it now ({}); this one ends when its jobs have",
               world_.runtime_dir.path(), again.error().text);
  displaced_ = true;
  idle_.set(displaced_look_s);
}

bool Kernel::none() const {
  return sessions_->none() && jobs_->none() && joins_->none() && tools_->none() && relays_.none();
}

// Nothing for a whole period: who was started for a program ends some time after it.
void Kernel::look_whether_idle() {
  const std::uint64_t programs = sessions_->so_far();
  const bool nobody = none();
  if (displaced_) return nobody ? stop() : idle_.set(displaced_look_s);
  if (programs == std::exchange(programs_before_, programs) && nobody) {
    spdlog::info("no program has been here for {} s", world_.config.idle_timeout_s);
    return stop();
  }
  idle_.set(world_.config.idle_timeout_s);
}

void Kernel::reload() {
  std::optional<World::Fresh> read = world_.reload();
  if (!read) return;
  Config& fresh = read->config;
  world_.config.log_level = fresh.log_level;
  world_.config.connect_timeout_s = fresh.connect_timeout_s;
  world_.config.hosts = std::move(fresh.hosts);
  world_.config.places = std::move(fresh.places);
  world_.config.key_file = fresh.key_file;
  peers_->hosts_changed();
  const bool same_use = read->keys.use == peers_->keys().use;
  if (same_use)
    use(read->keys);
  else
    spdlog::error("kept the key: between one that only relays and one for links a kernel is started again");
  const std::string late = differences(world_.config, fresh);
  spdlog::info(
      "read the configuration again: {}[hosts] (which names {}), log_level and connect_timeout_s are in "
      "force{}{}",
      same_use ? "the keys, " : "", world_.config.hosts.size(),
      late.empty() ? "" : "; these need a restart: ", late);
}

void Kernel::use(const Keys& keys) {
  if (keys == peers_->keys()) return;
  spdlog::info("the key that proves this kernel is {} now{}", fingerprint(keys.own),
               keys.other ? "; " + fingerprint(*keys.other) + " convinces it, too" : "");
  if (encrypted_) encrypted_->use(keys);
  peers_->use(keys);
}

void Kernel::watch_signal(int signal, std::function<void()> action) {
  Event& event = signals_.emplace_back(loop_.events(), signal, EV_SIGNAL | EV_PERSIST,
                                       [action = std::move(action)](short) { action(); });
  event.add();
}

void Kernel::run() {
  while (!stopped_) {
    idle_policy_->after(turn());
    if (idle_policy_->counters().turns % turns_unseen == 0) publish();
  }
}

// Read before write: what has arrived always has a place, so no exchange can deadlock. Requests first: a read
// that was made without a bell is there before the message that wakes this kernel.
std::uint64_t Kernel::turn() {
  std::uint64_t work = end_step(sessions_->take_requests());
  std::uint64_t moved = end_step(peers_->read());
  if (moved != 0)
    work += end_step(sessions_->take_requests()); // what came meanwhile need not wait for another turn
  if (engine_.copies_long()) choose_core();
  work += end_step(engine_.copy());
  moved += end_step(peers_->write());
  if (moved >= long_work) choose_core();
  return work + moved;
}

// What copies, encrypts and sends for long must not take the core of a program that computes, where another
// is free: at real-time priority the system wakes this where it was, whoever runs there. Looked at now and
// then in a row of such turns.
void Kernel::choose_core() {
  constexpr std::uint64_t turns_between = 16;
  const std::uint64_t turns = idle_policy_->counters().turns;
  if (turns - core_chosen_at_ < turns_between) return;
  core_chosen_at_ = turns;
  const int here = current_core();
  if (const int better = sessions_->better_core(here); better != here) move_to_core(better);
}

// The end of a step: what it left to be done is done, and programs learn what it completed.
std::uint64_t Kernel::end_step(std::uint64_t work) {
  work += loop_.end_step();
  if (MemoryReserve::used()) save_memory();
  if (work != 0 && sessions_->ring()) idle_policy_->told();
  return work;
}

// What somebody asked for last has been done with the reserve; the program that has most goes for it.
void Kernel::save_memory() {
  const bool gone = sessions_->give_up_largest();
  loop_.end_step();
  if (MemoryReserve::fill() || gone) return;
  no_memory_.say("there is no memory left, and no program whose session could be ended for it",
                 ErrorKind::Refused, error(ENOMEM, "no memory left"));
}

bool Kernel::prepare_to_sleep() {
  if (engine_.owes_acknowledgement()) {
    if (!engine_.acknowledgements_may_wait()) {
      engine_.flush_acknowledgements();
      return true;
    }
    if (!acknowledge_.is_set()) acknowledge_.set(acknowledged_after_s);
  }
  return sessions_->any_requests() || loop_.any_actions();
}

void Kernel::stop() {
  if (stopping_) return;
  stopping_ = true;
  spdlog::info("kernel of host {} is stopping", world_.config.name);
  peers_->stop();
  joins_->stop();
  const bool was_silent = jobs_->none() && tools_->none();
  jobs_->stop();
  tools_->stop();
  if (was_silent) stopped_ = true;
  farewell_.set(longest_farewell_s);
}

// What has been said last still has to leave.
void Kernel::look_whether_all_is_said() {
  if (stopping_ && jobs_->none() && tools_->none()) last_words_.set(last_words_s);
}

void Kernel::link_lost(std::uint32_t link) {
  relays_.link_lost(static_cast<std::int32_t>(link));
  spawners_->link_lost(link);
  joins_->link_lost(link);
  jobs_->link_lost(link);
}

// Totals for `parc status`. Called before every sleep, and now and then by a kernel that never sleeps.
void Kernel::publish() {
  const IdlePolicy::Counters& rest = idle_policy_->counters();
  counters_->set(Counter::Turns, rest.turns);
  counters_->set(Counter::Polls, rest.polls);
  counters_->set(Counter::Naps, rest.naps);
  counters_->set(Counter::Sleeps, rest.sleeps);
  counters_->set(Counter::GaveWay, rest.gave_way);
  counters_->set(Counter::LogLinesDropped, world_.log_lines_dropped());
  const protocol::Engine::Totals totals = engine_.totals();
  counters_->set(Counter::MessagesIn, totals.messages_in);
  counters_->set(Counter::MessagesOut, totals.messages_out);
  counters_->set(Counter::MessagesLocal, totals.messages_local);
  counters_->set(Counter::Unexpected, totals.unexpected);
  counters_->set(Counter::UnexpectedBytes, totals.unexpected_bytes);
  counters_->set(Counter::CopyBytes, totals.copied);
  counters_->set(Counter::PoolBytes, engine_.pool_in_use());
  counters_->raise(Counter::PoolPeak, engine_.pool_in_use());
  counters_->set(Counter::TrainsIn, totals.trains_in);
  counters_->set(Counter::TrainsOut, totals.trains_out);
  counters_->set(Counter::FragmentsIn, totals.fragments_in);
  counters_->set(Counter::FragmentsOut, totals.fragments_out);
  counters_->set(Counter::BytesIn, totals.bytes_in);
  counters_->set(Counter::BytesOut, totals.bytes_out);
  peers_->publish(*counters_);
  sessions_->publish(*counters_);
  jobs_->publish(*counters_);
  joins_->publish(*counters_);
  counters_->set(Counter::Jobs, jobs_->parts() + joins_->jobs().numbers().size());
}

void Kernel::begun(std::uint64_t cookie, const protocol::Outcome& outcome) {
  if (const Cookie of(cookie); of.owner() == Cookie::Owner::session) sessions_->begun(of, outcome);
}

void Kernel::progressed(std::uint64_t cookie, const protocol::Progress& progress) {
  if (const Cookie of(cookie); of.owner() == Cookie::Owner::session) sessions_->progressed(of, progress);
}

void Kernel::finished(std::uint64_t cookie, const protocol::Outcome& outcome) {
  const Cookie of(cookie);
  switch (of.owner()) {
  case Cookie::Owner::session: return sessions_->finished(of, outcome);
  case Cookie::Owner::control_read:
  case Cookie::Owner::control_write: return post_.finished(of, outcome);
  }
}

void Kernel::backlog_changed(std::uint64_t endpoint_cookie) {
  sessions_->backlog_changed(endpoint_cookie);
}

void Kernel::drained(std::uint64_t endpoint_cookie) {
  sessions_->drained(endpoint_cookie);
}

void Kernel::departed(std::uint64_t endpoint, protocol::Departure how) {
  sessions_->departed(endpoint, how);
  if (how == protocol::Departure::killed)
    loop_.after_step([this, endpoint] { spawners_->program_killed(endpoint); });
}

void Kernel::peer_departed(const protocol::Address& peer) {
  jobs_->peer_departed(peer);
}

void Kernel::unread(std::uint64_t endpoint, const protocol::Address& from, const protocol::Outcome& message) {
  jobs_->unread(endpoint, from, message);
}

bool Kernel::place(std::uint64_t endpoint_cookie, const protocol::Place& place, bool acquainted,
                   protocol::Pieces& memory, std::uint64_t& hold) {
  return sessions_->place(endpoint_cookie, place, acquainted, memory, hold);
}

void Kernel::let_go(std::uint64_t hold) {
  sessions_->let_go(hold);
}

} // namespace parc::daemon
