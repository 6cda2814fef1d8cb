// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/world.hpp"
#include "tests/sim/host.hpp"
#include "tests/sim/invariants.hpp"
#include "tests/sim/told.hpp"

#include <algorithm>
#include <cstdio>

namespace parc::sim {

using namespace protocol;

namespace {
constexpr std::size_t most_idle_rounds = 50'000; // in which bytes move, but no payload comes
constexpr std::uint64_t turns_a_look = 8;        // at the invariants of an engine
} // namespace

World::World(const Options& options) : options_(options), random_(options.seed) {
  longest_ = random_.pick<std::uint64_t>({300, 5'000, 40'000, 200'000});
  trouble_ = random_.pick<std::uint64_t>({0, 0, 100, 1000});
  outage_ = random_.pick<std::uint64_t>({0, 5, 20, 100});
  most_subflows_ = random_.pick<std::size_t>({0, 0, 1, 2, 3});
  early_ = random_.pick<std::uint64_t>({0, 10, 30, 100});
  most_writes_ = random_.pick<std::size_t>({1, 2, 5, 16, 64, 200});
  if (random_.one_in(12)) burst_ = most_writes_ = random_.pick<std::size_t>({150, 150, 600, 2000});
  make_hosts();
  make_job(1);
  if (random_.one_in(2)) make_job(2);
  gates_.resize(oracle_.actors.size());
}

World::~World() = default;

void World::make_hosts() {
  const auto count = random_.pick<std::size_t>({2, 2, 2, 3, 3, 3, 4, 4, 5, 8});
  if (options_.hostile) oracle_.hostile.insert(count - 1);
  for (std::size_t h = 0; h < count; ++h) {
    Settings settings;
    settings.pool = random_.pick<std::uint64_t>({0, 3000, 20'000, 200'000, 64 << 20});
    settings.unmatched = envelope_bytes * random_.pick<std::uint64_t>({0, 0, 10, 500, 1 << 20});
    settings.waiting_writes = random_.pick<std::uint32_t>({1, 2, 5, 16});
    settings.link_window = random_.pick<std::uint64_t>({2000, 20'000, 262'144});
    settings.copy_slice = random_.pick<std::uint64_t>({1000, 262'144});
    settings.departed_kept = random_.pick<std::size_t>({0, 0, 1, 3, 1024});
    hosts_.push_back(std::make_unique<Host>(settings, std::make_unique<Ears>(*this)));
    Actor& kernel = oracle_.actors.emplace_back();
    kernel.host = h;
    kernel.endpoint = hosts_[h]->engine.kernel();
  }
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      const auto fragment = random_.pick<std::uint32_t>({512, 1000, 4096});
      for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
        hosts_[x]->links[y] = hosts_[x]->engine.add_link(
            {fragment, static_cast<std::uint32_t>(x + 1), static_cast<std::uint32_t>(y + 1)});
        oracle_.actors[x].peers.push_back(y); // a kernel knows the others by link
        hosts_[x]->carriers[y] = hosts_[x]->adopted[y] = 1;
      }
      Line& between = lines_[{a, b}];
      between.room = random_.pick<std::size_t>({100, 3000, 100'000});
      between.delay = random_.pick<std::uint64_t>({0, 3, 50});
      add_carrier(a, b);
    }
}

void World::make_job(std::uint64_t job) {
  const std::size_t size = 2 + random_.below(5), first = oracle_.actors.size();
  for (std::size_t rank = 0; rank < size; ++rank) {
    Actor& actor = oracle_.actors.emplace_back();
    actor.host = rank < 2 ? rank : random_.below(hosts_.size());
    actor.job = job;
    for (std::size_t peer = 0; peer < size; ++peer) actor.peers.push_back(first + peer);
    actor.members = size;
    jobs_[job].push_back(first + rank);
  }
  for (const std::size_t actor : jobs_[job]) oracle_.actors[actor].endpoint = engine_of(actor).add_endpoint();
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    std::vector<Address> members;
    for (const std::size_t actor : jobs_[job]) members.push_back(address(h, actor));
    groups_[{job, h}] = hosts_[h]->engine.add_group(members);
  }
  for (const std::size_t actor : jobs_[job])
    if (!engine_of(actor).open(oracle_.actors[actor].endpoint, actor)) throw Violation("an endpoint is gone");
  for (const std::size_t actor : jobs_[job])
    windows_.expose(actor, random_.spread(longest_),
                    random_.spread(std::min<std::uint64_t>(longest_, random_.one_in(4) ? 200'000 : 20'000)));
}

// As a host sees it.
Address World::address(std::size_t host, std::size_t actor) const {
  const Actor& whose = oracle_.actors[actor];
  return {whose.host == host ? here : static_cast<std::int32_t>(hosts_[host]->links.at(whose.host)),
          whose.endpoint};
}

void World::run() {
  for (std::uint64_t step = 0; step < options_.steps; ++step) turn(random_.below(hosts_.size()), false);
  if (options_.hostile) // its operations end when its links do
    for (std::size_t h = 0; h + 1 < hosts_.size(); ++h) cut(h, hosts_.size() - 1);
  finale();
  tally_.bytes_got = windows_.bytes_got();
  tally_.bytes_put = windows_.puts().bytes_put();
  tally_.places_refused = windows_.refused() + windows_.puts().refused();
}

// ---- The network

void World::turn(std::size_t host, bool calm) {
  ++now_;
  Host& at = *hosts_[host];
  bool moved = connect(host, calm);
  moved |= read_links(host, calm);
  moved |= pass_gates(host, calm);
  moved |= place(host, calm);
  moved |= make_atomics(host, calm);
  if (!calm) {
    for (std::size_t actor = 0; actor < oracle_.actors.size(); ++actor)
      if (oracle_.actors[actor].host == host && random_.one_in(oracle_.actors[actor].job == 0 ? 8 : 2))
        act(actor);
    if (trouble_ != 0 && random_.one_in(trouble_)) {
      const std::size_t other = random_.below(hosts_.size());
      if (random_.one_in(3) && other != host)
        cut(host, other);
      else if (random_.one_in(8))
        drop_job(1 + random_.below(jobs_.size()), host);
    }
    if (outage_ != 0 && random_.one_in(outage_)) {
      const std::size_t other = random_.below(hosts_.size());
      if (other != host) break_carrier(host, other);
    }
    change_subflows(host);
  }
  moved |= at.engine.copy() != 0;
  moved |= pass_gates(host, calm);
  moved |= write_links(host, calm);
  const bool may_wait = !calm && at.engine.acknowledgements_may_wait() && !random_.one_in(4);
  if ((!moved || random_.one_in(10)) && at.engine.owes_acknowledgement() && !may_wait) {
    at.engine.flush_acknowledgements();
    moved = true;
  }
  at.moved = moved;
  check_bounds(host);
}

// Of programs that were asked for them.
bool World::make_atomics(std::size_t host, bool calm) {
  bool made = false;
  for (std::size_t actor = 0; actor < oracle_.actors.size(); ++actor)
    if (oracle_.actors[actor].host == host && (calm || random_.one_in(4))) made |= windows_.operate(actor);
  if (made) hosts_[host]->engine.resume_copies();
  return made;
}

bool World::read_links(std::size_t host, bool calm) {
  Host& at = *hosts_[host];
  bool moved = false;
  for (const auto& [other, link] : at.links) {
    for (std::uint64_t tries = calm ? 4 : random_.below(4); tries != 0; --tries) {
      Wire* const from = wire(host, other, host);
      if (from == nullptr) break;
      if (from->at_end()) {
        detach(host, other);
        moved = true;
        break;
      }
      moved |= read(*from, host, other, calm, 0);
    }
    if (at.engine.link(link).open) moved |= read_subflows(host, other, calm);
  }
  return moved;
}

bool World::read(Wire& from, std::size_t host, std::size_t other, bool calm, std::uint32_t subflow) {
  Host& at = *hosts_[host];
  const std::uint32_t link = at.links.at(other);
  Refusal refusal = Refusal::none;
  const std::size_t most = calm ? 1 << 20 : 1 + random_.spread(100'000);
  const bool moved = from.receive(at.engine, link, most, 1 + random_.below(64), now_, refusal, subflow) != 0;
  if (refusal == Refusal::none) return moved;
  say("host " + std::to_string(host) + " refuses host " + std::to_string(other) + ": " + describe(refusal));
  ++tally_.refusals;
  if (!oracle_.hostile.contains(host) && !oracle_.hostile.contains(other))
    throw Violation(std::string("an honest link was refused: ") + describe(refusal));
  // A statement that is refused has changed nothing: the next carrier may bring a true one.
  if (subflow == 0 && at.engine.link(link).carrier.stage == Carrier::Stage::stating)
    break_carrier(host, other);
  else
    cut(host, other);
  return moved;
}

bool World::write_links(std::size_t host, bool calm) {
  Host& at = *hosts_[host];
  bool moved = false;
  for (const auto& [other, link] : at.links) {
    for (std::uint64_t tries = calm ? 4 : random_.below(4); tries != 0; --tries) {
      Wire* const to = wire(host, host, other);
      if (to == nullptr) break;
      moved |= write(*to, host, other, calm, 0);
    }
    if (at.engine.link(link).open) moved |= write_subflows(host, other, calm);
  }
  return moved;
}

bool World::write(Wire& to, std::size_t host, std::size_t other, bool calm, std::uint32_t subflow) {
  Host& at = *hosts_[host];
  const std::uint32_t link = at.links.at(other);
  if (random_.one_in(200))
    at.engine.set_path(link, static_cast<std::uint32_t>(random_.below(200'000)),
                       static_cast<std::uint32_t>(random_.spread(1000)), subflow);
  if (random_.one_in(200)) at.engine.limit_flight(link, random_.one_in(4) ? 0 : random_.spread(200'000));
  const std::size_t most = calm ? 1 << 20 : 1 + random_.spread(100'000);
  return to.send(at.engine, link, most, now_, random_, subflow) != 0;
}

Wire* World::wire(std::size_t at, std::size_t from, std::size_t to) {
  const std::uint64_t carrier = hosts_[at]->carriers.at(at == from ? to : from);
  if (carrier == 0) return nullptr;
  Line::Carrier& both = line(from, to).carriers.at(carrier);
  return from < to ? &both.up : &both.down;
}

void World::add_carrier(std::size_t low, std::size_t high) {
  Line& between = lines_.at({low, high});
  Line::Carrier& carrier = between.carriers[++between.newest];
  carrier.up = Wire(between.room, between.delay, oracle_.hostile.contains(low));
  carrier.down = Wire(between.room, between.delay, oracle_.hostile.contains(high));
}

// The smaller host makes a new carrier where it has none, and sometimes although it has one; the larger one
// takes it up some time later.
bool World::connect(std::size_t host, bool calm) {
  bool connected = false;
  for (const auto& [other, link] : hosts_[host]->links) {
    if (!hosts_[host]->engine.link(link).open) continue;
    Line& between = line(host, other);
    std::uint64_t& mine = hosts_[host]->carriers.at(other);
    if (between.given_up) {
      if (mine == 0 || calm || random_.one_in(50)) {
        close(host, other);
        connected = true;
      }
      continue;
    }
    if (host < other) {
      const std::uint64_t patience = mine == 0 ? 4 : outage_ == 0 ? 0 : 50 * outage_;
      if (!(calm && mine == 0) && (calm || patience == 0 || !random_.one_in(patience))) continue;
      add_carrier(host, other);
    } else if (hosts_[host]->adopted.at(other) == between.newest || (!calm && !random_.one_in(4))) {
      continue;
    }
    say("host " + std::to_string(host) + " is attached to carrier " + std::to_string(between.newest) +
        " to host " + std::to_string(other));
    hosts_[host]->engine.attach(link);
    mine = hosts_[host]->adopted.at(other) = between.newest;
    if (host > other) std::erase_if(between.carriers, [&](const auto& each) { return each.first < mine; });
    connected = true;
    ++tally_.carriers;
  }
  return connected;
}

// It is reset for `host`; the other one notices when it has read what is left.
void World::break_carrier(std::size_t host, std::size_t other) {
  Wire* const to = wire(host, host, other);
  if (to == nullptr) return;
  to->cut(random_.spread(100'000));
  wire(host, other, host)->cut(0);
  detach(host, other);
}

void World::detach(std::size_t host, std::size_t other) {
  say("host " + std::to_string(host) + " loses its carrier to host " + std::to_string(other));
  hosts_[host]->engine.detach(hosts_[host]->links.at(other));
  hosts_[host]->carriers.at(other) = 0;
}

// For a, b is gone; b may still read what is left of the carrier.
void World::cut(std::size_t a, std::size_t b) {
  if (!hosts_[a]->engine.link(hosts_[a]->links.at(b)).open) return;
  say("host " + std::to_string(a) + " gives host " + std::to_string(b) + " up");
  oracle_.lose_link(a, b);
  line(a, b).given_up = true;
  break_carrier(a, b);
  close(a, b);
}

void World::close(std::size_t host, std::size_t other) {
  hosts_[host]->engine.break_link(hosts_[host]->links.at(other));
  hosts_[host]->carriers.at(other) = 0;
  for (const auto& subflow : line(host, other).subflows) drop(*subflow, host, other);
}

// Until nothing moves, and nothing can. Where nothing moves but bytes are on their way, the clock goes on to
// their arrival. A message may take long on a small link, but its fragments come, and they are counted.
void World::settle() {
  std::uint64_t fragments = 0;
  for (std::size_t idle_rounds = 0; idle_rounds < most_idle_rounds; ++idle_rounds) {
    bool moved = false;
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      turn(host, true);
      moved |= hosts_[host]->moved;
    }
    if (const std::uint64_t arrived = fragments_in(); arrived != fragments) {
      fragments = arrived;
      idle_rounds = 0;
    }
    if (moved) continue;
    std::uint64_t due = Wire::never;
    for (std::size_t host = 0; host < hosts_.size(); ++host)
      for (const auto& [other, link] : hosts_[host]->links)
        if (const Wire* from = wire(host, other, host)) due = std::min(due, from->next_due());
    for (const auto& [between, each] : lines_)
      for (const auto& subflow : each.subflows)
        due = std::min({due, subflow->over[1] ? Wire::never : subflow->up.next_due(),
                        subflow->over[0] ? Wire::never : subflow->down.next_due()});
    if (due == Wire::never) return;
    now_ = std::max(now_, due);
  }
  throw Violation("the engines never rest" + state());
}

std::uint64_t World::fragments_in() const {
  std::uint64_t sum = 0;
  for (const auto& host : hosts_)
    for (std::uint32_t link = 0; link < host->engine.links(); ++link)
      sum += host->engine.link(link).fragments_in;
  return sum;
}

// Nothing grows beyond its tables.
void World::check_bounds(std::size_t host) {
  Host& at = *hosts_[host];
  if (now_ % turns_a_look == 0)
    if (const std::string broken = Invariants::broken(at.engine); !broken.empty())
      throw Violation("host " + std::to_string(host) + " breaks an invariant: " + broken);
  if (at.engine.pool_in_use() > at.settings.pool)
    throw Violation("host " + std::to_string(host) + " holds " + std::to_string(at.engine.pool_in_use()) +
                    " bytes of messages, its pool is " + std::to_string(at.settings.pool));
  for (std::uint32_t link = 0; link < at.engine.links(); ++link)
    tally_.held += !at.engine.link(link).held.empty();
  for (std::uint32_t link = 0; link < at.engine.links(); ++link)
    if (at.engine.link(link).log.size() > window * max_entries ||
        at.engine.link(link).carrier.due.size() > max_entries)
      throw Violation("a link of host " + std::to_string(host) + " remembers too much");
}

// ---- From the engines

void World::begun(std::uint64_t cookie, const Outcome& outcome) {
  if ((cookie & (of_get | of_put | of_add)) != 0) throw Violation("a get or put has begun");
  if ((cookie & 1) == 0) throw Violation("a write has begun");
  oracle_.begun(cookie >> 1, outcome);
  gates_[oracle_.reads[cookie >> 1].at].begun(oracle_.reads[cookie >> 1].release);
  say("read " + std::to_string(cookie >> 1) + " takes message " +
      std::to_string(oracle_.reads[cookie >> 1].message));
  ++tally_.matched;
  const std::size_t message = oracle_.reads[cookie >> 1].message;
  if (message != none) windows_.puts().check_behind(message);
  tally_.gated += message != none && writes_[message].gated;
  tally_.claimed += message != none && oracle_.messages[message].claim != none;
}

void World::progressed(std::uint64_t cookie, const Progress& progress) {
  if ((cookie & of_get) != 0) return windows_.progressed(cookie & ~of_get, progress);
  if ((cookie & of_add) != 0) return; // of no bytes
  if ((cookie & of_put) != 0) return windows_.puts().progressed(cookie & ~of_put, progress);
  const std::size_t index = cookie >> 1;
  const bool of_read = (cookie & 1) != 0;
  Progress& before = of_read ? readings_[index].progress : writes_[index].progress;
  if (progress.front < before.front || progress.back < before.back) throw Violation("progress went back");
  if (of_read ? oracle_.reads[index].over : oracle_.messages[index].over)
    throw Violation("progress after the end");
  if (of_read && !oracle_.fabricated(index)) {
    const std::size_t message = oracle_.reads[index].message;
    if (message == none) throw Violation("progress before the match");
    const std::uint64_t limit = std::min(oracle_.messages[message].size, oracle_.reads[index].room);
    const Memory& memory = *readings_[index].memory;
    each_new(before, progress, limit, [&](std::uint64_t low, std::uint64_t high) {
      if (!memory.holds(message, low, high)) throw Violation("progress claims bytes that are not there");
      memory.use(low, high);
    });
    tally_.between += !progress.between.empty();
  }
  before = progress;
}

void World::wanted(std::uint64_t cookie) {
  const std::size_t index = cookie >> 1;
  if ((cookie & 1) != 0 || !writes_[index].late) throw Violation("memory is wanted for what has some");
  wanted_.push_back(index);
}

void World::finished(std::uint64_t cookie, const Outcome& outcome) {
  if ((cookie & of_get) != 0) {
    say("get " + std::to_string(cookie & ~of_get) + " ends, fault " +
        std::to_string(static_cast<int>(outcome.fault)));
    return windows_.finished(cookie & ~of_get, outcome);
  }
  if ((cookie & of_add) != 0) {
    const std::size_t add = cookie & ~of_add;
    say("addition " + std::to_string(add) + " ends, fault " +
        std::to_string(static_cast<int>(outcome.fault)));
    if (add < adds_.size() && adds_[add] != 0) gates_[windows_.asker_of_add(add)].drop(adds_[add]);
    return windows_.finished_add(add, outcome);
  }
  if ((cookie & of_put) != 0) {
    const std::size_t put = cookie & ~of_put;
    say("put " + std::to_string(put) + " ends, fault " + std::to_string(static_cast<int>(outcome.fault)));
    if (put < puts_.size()) gates_[windows_.puts()[put].from].drop(puts_[put]);
    return windows_.finished_put(put, outcome);
  }
  const std::size_t index = cookie >> 1;
  say(((cookie & 1) != 0 ? "read " : "message ") + std::to_string(index) + " ends, fault " +
      std::to_string(static_cast<int>(outcome.fault)));
  tally_.canceled += outcome.fault == Fault::canceled;
  tally_.lost += outcome.fault == Fault::peer;
  if ((cookie & 1) == 0) {
    oracle_.finished_write(index, outcome);
    gates_[oracle_.messages[index].from].drop(writes_[index].handle);
    writes_[index].memory.clear();
    return;
  }
  oracle_.finished_read(index, outcome);
  gates_[oracle_.reads[index].at].begun(oracle_.reads[index].release);
  Reading& reading = readings_[index];
  reading.claim = outcome.claim;
  const Read& read = oracle_.reads[index];
  if (read.message != none && (outcome.fault == Fault::none || outcome.fault == Fault::truncated)) {
    const std::uint64_t used = std::min(oracle_.messages[read.message].size, read.room);
    if (reading.progress.front + reading.progress.back != used)
      throw Violation("the end came without its progress");
    if (!reading.memory->used(read.message, 0, used))
      throw Violation("read " + std::to_string(index) + " holds wrong bytes");
    if (!reading.memory->guarded(used))
      throw Violation("read " + std::to_string(index) + " wrote past its memory");
    tally_.bytes += used;
    tally_.truncated += outcome.fault == Fault::truncated;
  }
  reading.memory = nullptr;
}

// Of the links, for a failure's message.
std::string World::state() const {
  std::string text;
  for (std::size_t host = 0; host < hosts_.size(); ++host)
    for (const auto& [other, index] : hosts_[host]->links) {
      const Link& link = hosts_[host]->engine.link(index);
      if (!link.open) continue;
      text += "\n  " + std::to_string(host) + " to " + std::to_string(other) + ": train " +
              std::to_string(link.sequence) + " acknowledged to " + std::to_string(link.acknowledged) +
              (link.carrier.train.active() ? ", half written" : "") + ", received " +
              std::to_string(link.received) + " told " + std::to_string(link.received_told) +
              (link.carrier.due.empty() ? "" : ", payload due") + (link.answers.empty() ? "" : ", answers") +
              (link.fresh.empty() ? "" : ", envelopes") + (link.ready.empty() ? "" : ", payload") +
              (link.ack_urgent ? ", urgent" : "") + ", granted " + std::to_string(link.granted_told) +
              " of " + std::to_string(link.reserved + link.freed) + ", trains " +
              std::to_string(link.trains_out);
    }
  return text;
}

void World::say(const std::string& what) const {
  if (options_.trace) std::fprintf(stderr, "%6llu %s\n", static_cast<unsigned long long>(now_), what.c_str());
}

Engine& World::engine_of(std::size_t actor) {
  return hosts_[oracle_.actors[actor].host]->engine;
}

} // namespace parc::sim
