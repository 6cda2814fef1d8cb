// SPDX-License-Identifier: BSD-3-Clause
// What the simulated programs do: anything that libparc lets a program do, at any moment, within their
// tables.
#include "tests/sim/host.hpp"
#include "tests/sim/world.hpp"

#include <algorithm>
#include <utility>

namespace parc::sim {

using namespace protocol;

namespace {
constexpr std::size_t most_reads = 20;
constexpr Space spaces[] = {Space::programs, Space::barriers, Space::kernels};
// What a claim word says.
constexpr std::uint64_t nobodys = 1, engines = 2, librarys = 3;
constexpr std::uint64_t high_bit = std::uint64_t{1} << 40;
} // namespace

void World::act(std::size_t index) {
  const Actor& actor = oracle_.actors[index];
  if (actor.departed()) {
    if (!actor.killed && actor.job != 0 && random_.one_in(200)) kill(index);
    return;
  }
  if (actor.job != 0 && trouble_ != 0 && random_.one_in(trouble_)) {
    if (random_.one_in(2))
      leave(index);
    else
      kill(index);
    return;
  }
  if (early_ != 0 && actor.job != 0) {
    if (gates_[index].first() != 0 && random_.one_in(16)) return give_up(index);
    if (random_.one_in(early_)) return release(index);
  }
  switch (random_.below(20)) {
  case 0: probe(index); break;
  case 1: cancel(index); break;
  case 2: hand_over(index); break;
  case 3: read_claimed(index); break;
  case 4: add_row(index); break;
  case 5: take_shared(index); break;
  case 7: use_window(index); break;
  case 8:
  case 9: get(index); break;
  case 10:
  case 11: put(index); break;
  case 12: add(index); break;
  case 6:
    if (random_.one_in(3)) unplace(index);
    if (burst_ != 0 && random_.one_in(50)) burst(index);
    break;
  default:
    if (random_.one_in(2))
      read(index);
    else
      write(index);
  }
}

Space World::space(std::size_t actor) {
  if (oracle_.actors[actor].job == 0) return Space::kernels;
  return random_.one_in(2) ? Space::programs : Space::barriers;
}

std::uint64_t World::tag() {
  return random_.below(3) | (random_.one_in(4) ? high_bit : 0);
}

void World::write(std::size_t index) {
  const Actor& actor = oracle_.actors[index];
  const auto unfinished = std::count_if(oracle_.messages.begin(), oracle_.messages.end(),
                                        [&](const Message& m) { return m.from == index && !m.over; });
  if (actor.peers.empty() || static_cast<std::size_t>(unfinished) >= most_writes_) return;
  write_to(index, static_cast<std::uint32_t>(random_.below(actor.peers.size())), longest_);
}

// More at once than a receiver has places for, to one peer or from anybody.
void World::burst(std::size_t index) {
  const Actor& actor = oracle_.actors[index];
  if (actor.peers.empty()) return;
  const auto row = static_cast<std::uint32_t>(random_.below(actor.peers.size()));
  const bool reads = random_.one_in(3);
  for (std::size_t left = burst_; left != 0 && !actor.departed(); --left) {
    if (!reads) {
      write_to(index, row, 300);
      continue;
    }
    Read read;
    read.at = index;
    read.room = 300;
    ReadRequest request;
    ask_for_any(request, read);
    post(request, read);
  }
}

void World::write_to(std::size_t index, std::uint32_t row, std::uint64_t most_bytes) {
  const Actor& actor = oracle_.actors[index];
  if (actor.peers[row] == none) return;
  Message message;
  message.from = index;
  message.to = actor.peers[row];
  message.space = space(index);
  message.tag = tag();
  message.size = random_.spread(most_bytes);
  message.synchronous = random_.one_in(8);

  // To itself a program may say anything at any time; nobody else hears of it.
  const bool gated = message.to != index && gates_[index].shut();
  if (message.to != index) message.gate = actor.releases;

  const std::size_t id = oracle_.messages.size();
  oracle_.messages.push_back(message);
  Write& write = writes_.emplace_back();
  write.gated = gated;
  write.late = message.size != 0 && random_.one_in(8);
  write.memory.push_back(std::make_unique<Memory>(message.size, random_));
  write.memory.back()->fill(id);
  say("actor " + std::to_string(index) + " writes message " + std::to_string(id) + " to " +
      std::to_string(message.to) + ", tag " + std::to_string(message.tag) + ", space " +
      std::to_string(static_cast<int>(message.space)) + ", " + std::to_string(message.size) + " bytes" +
      (message.synchronous ? ", synchronous" : "") + (gated ? ", gated" : "") + (write.late ? ", late" : ""));
  ++tally_.messages;
  const std::uint64_t handle =
      engine_of(index).write(actor.endpoint, {.cookie = id << 1,
                                              .destination = row,
                                              .tag = message.tag,
                                              .data = Oracle::data_of(id),
                                              .space = message.space,
                                              .flags = when(random_.one_in(3), MessageFlags::from_end) |
                                                       when(message.synchronous, MessageFlags::synchronous),
                                              .memory = write.late ? Pieces() : write.memory.back()->pieces(),
                                              .gated = gated,
                                              .late = write.late ? message.size : 0});
  writes_[id].handle = handle;
  if (gated && !oracle_.messages[id].over) gates_[index].keep(handle);
}

bool World::may_read(std::size_t actor) const {
  const auto unfinished = std::count_if(oracle_.reads.begin(), oracle_.reads.end(),
                                        [&](const Read& r) { return r.at == actor && !r.over; });
  return static_cast<std::size_t>(unfinished) < most_reads;
}

void World::read(std::size_t index) {
  if (oracle_.actors[index].peers.empty() || !may_read(index)) return;
  Read read;
  read.at = index;
  read.room = random_.one_in(4) ? random_.spread(longest_) : 2 * longest_;
  ReadRequest request;
  ask_for_any(request, read);
  request.flags = when(random_.one_in(3), MessageFlags::from_end);
  post(request, read);
}

void World::probe(std::size_t index) {
  if (oracle_.actors[index].peers.empty()) return;
  Read read;
  read.at = index;
  read.probe = true;
  read.no_wait = random_.one_in(2);
  read.claim = random_.one_in(2);
  read.late = !read.no_wait && read.claim && random_.one_in(2);
  ReadRequest request;
  ask_for_any(request, read);
  post(request, read);
}

// More masks than the engine has a hash for.
void World::ask_for_any(ReadRequest& request, Read& read) {
  read.space = space(read.at);
  const auto row = random_.below(oracle_.actors[read.at].peers.size());
  if (oracle_.actors[read.at].peers[row] != none && !random_.one_in(3))
    request.source = static_cast<std::int64_t>(row);
  read.tag = tag();
  read.ignore = random_.pick<std::uint64_t>(
      {0, 0, 0, high_bit, 1, 3, ~high_bit, ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}});
}

// Of another job.
void World::add_row(std::size_t index) {
  const std::size_t other = random_.below(oracle_.actors.size());
  if (jobs_.size() < 2 || oracle_.actors[index].job == 0 || oracle_.actors[other].job == 0) return;
  say("actor " + std::to_string(index) + " gets a row for actor " + std::to_string(other));
  const std::int32_t row =
      engine_of(index).add_row(oracle_.actors[index].endpoint, address(oracle_.actors[index].host, other));
  if (row < 0) return;
  oracle_.note_row(index, static_cast<std::size_t>(row), other);
  if (random_.one_in(3)) return;
  engine_of(index).acquaint(oracle_.actors[index].endpoint, row);
  windows_.note_row(index, other);
}

void World::use_window(std::size_t index) {
  if (oracle_.actors[index].job == 0) return;
  if (random_.one_in(4)) return windows_.hide(index, random_.one_in(8));
  const std::uint64_t cells = windows_.cells(index);
  if (cells == 0) return;
  const std::uint64_t first = random_.below(cells);
  windows_.store(index, first, 1 + random_.below(std::min<std::uint64_t>(cells - first, 100)));
}

void World::read_claimed(std::size_t index) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < oracle_.messages.size(); ++i)
    if (const Message& m = oracle_.messages[i];
        m.to == index && m.claim != none && readings_[m.claim].claim != 0)
      found.push_back(i);
  if (found.empty()) return;
  Read read;
  read.at = index;
  read.claimed = found[random_.below(found.size())];
  read.space = oracle_.messages[read.claimed].space;
  read.room = random_.one_in(4) ? random_.spread(longest_) : 2 * longest_;
  ReadRequest request;
  request.claimed = std::exchange(readings_[oracle_.messages[read.claimed].claim].claim, 0);
  post(request, read);
}

void World::post(ReadRequest request, Read read) {
  const std::size_t id = oracle_.reads.size();
  if (request.source >= 0)
    read.source = oracle_.actors[read.at].peers[static_cast<std::size_t>(request.source)];
  oracle_.reads.push_back(read);
  readings_.emplace_back().memory = std::make_unique<Memory>(read.room, random_);
  request.cookie = id << 1 | 1;
  request.tag = read.tag;
  request.ignore = read.ignore;
  request.space = read.space;
  request.memory = readings_[id].memory->pieces();
  request.probe = read.probe && !read.late;
  request.late = read.late;
  request.flags |= when(read.no_wait, MessageFlags::no_wait) | when(read.claim, MessageFlags::claim);
  say("actor " + std::to_string(read.at) +
      (read.late    ? " claims as a read "
       : read.claim ? " claims "
       : read.probe ? " probes "
                    : " posts read ") +
      std::to_string(id) + " of " + std::to_string(request.source) + ", tag " + std::to_string(read.tag) +
      " ignoring " + std::to_string(read.ignore) + ", space " + std::to_string(static_cast<int>(read.space)) +
      ", room " + std::to_string(read.room));
  // Not where waits are released early, and not what is answered at once.
  if (early_ == 0 && oracle_.actors[read.at].job != 0 && read.claimed == none && !read.no_wait &&
      random_.one_in(3)) {
    readings_[id].shared = std::make_unique<std::atomic<std::uint64_t>>(nobodys);
    request.owner_word = {readings_[id].shared.get(), nobodys, engines};
  }
  const std::uint64_t handle = engine_of(read.at).read(oracle_.actors[read.at].endpoint, request);
  readings_[id].handle = handle;
}

// A neighbour's message, which goes past the engines, is for a read that they know of, too. The library tells
// its kernel so, or lets it find out.
void World::take_shared(std::size_t actor) {
  const std::size_t op = pick_unfinished(actor, true);
  std::uint64_t open = nobodys;
  if (op == none || !readings_[op].shared ||
      !readings_[op].shared->compare_exchange_strong(open, librarys, std::memory_order_acq_rel))
    return;
  say("actor " + std::to_string(actor) + " takes read " + std::to_string(op));
  ++tally_.taken;
  oracle_.reads[op].taken = true;
  if (random_.one_in(2)) engine_of(actor).cancel(readings_[op].handle);
}

std::size_t World::pick_unfinished(std::size_t actor, bool of_reads) {
  std::vector<std::size_t> found;
  if (of_reads) {
    for (std::size_t i = 0; i < oracle_.reads.size(); ++i)
      if (oracle_.reads[i].at == actor && !oracle_.reads[i].over) found.push_back(i);
  } else {
    for (std::size_t i = 0; i < oracle_.messages.size(); ++i)
      if (oracle_.messages[i].from == actor && !oracle_.messages[i].over) found.push_back(i);
  }
  return found.empty() ? none : found[random_.below(found.size())];
}

void World::cancel(std::size_t actor) {
  const bool of_reads = random_.one_in(3);
  const std::size_t op = pick_unfinished(actor, of_reads);
  if (op == none) return;
  say("actor " + std::to_string(actor) + " cancels " + (of_reads ? "read " : "message ") +
      std::to_string(op));
  if (of_reads)
    oracle_.reads[op].cancel_asked = oracle_.reads[op].message == none;
  else
    oracle_.messages[op].cancel_asked = true;
  engine_of(actor).cancel(of_reads ? readings_[op].handle : writes_[op].handle);
}

// The end of a message, or all of it, moves to other memory; the old one is overwritten at once.
void World::hand_over(std::size_t actor) {
  const std::size_t op = pick_unfinished(actor, false);
  if (op == none || writes_[op].mixed || writes_[op].late || oracle_.messages[op].size == 0) return;
  Write& write = writes_[op];
  const std::uint64_t size = oracle_.messages[op].size;
  const std::uint64_t begin = random_.one_in(2) ? 0 : random_.below(size);
  auto moved = std::make_unique<Memory>(size, random_);
  std::byte* base = nullptr;
  moved->pieces().each(0, 1, [&](std::byte* at, std::uint64_t) { base = at; });
  if (moved->pieces().count() != 1) return; // a hand-over is one stretch of the arena
  moved->fill(op);
  say("actor " + std::to_string(actor) + " hands over message " + std::to_string(op) + " from " +
      std::to_string(begin));
  engine_of(actor).hand_over(write.handle, begin, base + begin, size - begin);
  write.memory.back()->pieces().each(
      begin, size - begin, [&](std::byte* at, std::uint64_t n) { std::fill_n(at, n, std::byte{0xee}); });
  if (begin == 0) write.memory.clear();
  write.mixed = begin != 0;
  write.memory.push_back(std::move(moved));
}

// Memory for late writes: some when they are matched, some before.
bool World::place(std::size_t host, bool calm) {
  if (!calm && !random_.one_in(4)) return false;
  std::vector<std::size_t> placed;
  std::swap(placed, wanted_);
  if (!calm && !writes_.empty() && random_.one_in(4)) placed.push_back(random_.below(writes_.size()));
  bool any = false;
  for (const std::size_t index : placed) {
    const Message& message = oracle_.messages[index];
    if (oracle_.actors[message.from].host != host) {
      wanted_.push_back(index);
    } else if (writes_[index].late && !message.over) {
      say("message " + std::to_string(index) + " gets its memory");
      writes_[index].late = false;
      ++tally_.late;
      hosts_[host]->engine.place(writes_[index].handle, writes_[index].memory.back()->pieces());
      any = true;
    }
  }
  return any;
}

// A read that waits gives its memory back: from here on it only claims its message, in its turn.
void World::unplace(std::size_t actor) {
  const std::size_t op = pick_unfinished(actor, true);
  if (op == none || oracle_.reads[op].release != 0) return;
  Read& read = oracle_.reads[op];
  if (!engine_of(actor).unplace(readings_[op].handle)) return;
  if (read.probe || oracle_.begun(read)) throw Violation("a read that has a message gave its memory back");
  say("actor " + std::to_string(actor) + " takes back the memory of read " + std::to_string(op));
  read.probe = read.claim = read.late = true;
  readings_[op].memory = std::make_unique<Memory>(0, random_);
}

// The program goes on before one of its reads has begun: mostly one that any message fits, or its gate would
// hardly ever open.
void World::release(std::size_t actor) {
  std::size_t op = pick_unfinished(actor, true);
  if (may_read(actor) && !random_.one_in(4)) {
    op = oracle_.reads.size();
    Read read;
    read.at = actor;
    read.space = space(actor);
    read.room = 2 * longest_;
    post({}, read);
  }
  if (op == none) return;
  Read& read = oracle_.reads[op];
  if (read.over || read.probe || read.release != 0 || oracle_.begun(read)) return;
  say("actor " + std::to_string(actor) + " is released from read " + std::to_string(op));
  read.release = oracle_.actors[actor].releases = gates_[actor].release();
}

// Two programs that wait for each other behind their gates stay there, as they would in the blocking order:
// one of the reads fails, or nothing more would be said.
void World::give_up(std::size_t actor) {
  const auto first = [&](const Read& read) {
    return read.at == actor && read.release == gates_[actor].first();
  };
  const auto op =
      static_cast<std::size_t>(std::ranges::find_if(oracle_.reads, first) - oracle_.reads.begin());
  say("actor " + std::to_string(actor) + " gives up read " + std::to_string(op));
  oracle_.reads[op].cancel_asked = true;
  engine_of(actor).cancel(readings_[op].handle);
}

// What may pass now, and often a little later: new writes meet gates that have just opened.
bool World::pass_gates(std::size_t host, bool calm) {
  bool passed = false;
  for (std::size_t actor = 0; actor < gates_.size(); ++actor)
    if (oracle_.actors[actor].host == host && (calm || random_.one_in(2)))
      passed |= gates_[actor].open([&](std::uint64_t write) { hosts_[host]->engine.pass(write); });
  return passed;
}

void World::leave(std::size_t actor) {
  say("actor " + std::to_string(actor) + " leaves");
  oracle_.actors[actor].left = true;
  engine_of(actor).leave(oracle_.actors[actor].endpoint);
}

void World::kill(std::size_t actor) {
  const Actor& dead = oracle_.actors[actor];
  say("actor " + std::to_string(actor) + " is killed");
  oracle_.actors[actor].killed = true;
  if (!dead.drained) engine_of(actor).kill(dead.endpoint);
  check_silent(actor);
}

void World::drop_job(std::uint64_t job, std::size_t host) {
  say("host " + std::to_string(host) + " drops job " + std::to_string(job));
  for (const std::size_t actor : jobs_[job])
    if (oracle_.actors[actor].host == host && !oracle_.actors[actor].left)
      oracle_.actors[actor].killed = true;
  hosts_[host]->engine.drop_group(groups_.at({job, host}));
  for (const std::size_t actor : jobs_[job])
    if (oracle_.actors[actor].host == host && oracle_.actors[actor].killed) check_silent(actor);
}

// All operations of a killed program are over; its memory is gone with them, and the sanitizer watches it.
void World::check_silent(std::size_t actor) {
  for (std::size_t i = 0; i < oracle_.messages.size(); ++i)
    if (oracle_.messages[i].from == actor && !oracle_.messages[i].over)
      throw Violation("message " + std::to_string(i) + " outlives its killed writer");
  for (std::size_t i = 0; i < oracle_.reads.size(); ++i)
    if (oracle_.reads[i].at == actor && !oracle_.reads[i].over)
      throw Violation("read " + std::to_string(i) + " outlives its killed reader");
  windows_.check_silent(actor);
}

void World::cancel_reads() {
  for (std::size_t i = 0; i < oracle_.reads.size(); ++i)
    if (!oracle_.reads[i].over) {
      oracle_.reads[i].cancel_asked = true;
      engine_of(oracle_.reads[i].at).cancel(readings_[i].handle);
    }
}

void World::read_all() {
  for (std::size_t actor = 0; actor < oracle_.actors.size(); ++actor)
    for (const Space space : spaces) {
      if (oracle_.actors[actor].departed()) continue;
      for (std::size_t left = oracle_.messages.size(); left != 0; --left) read_claimed(actor);
      for (std::size_t left = oracle_.readable(actor, space, false); left != 0; --left) {
        Read read;
        read.at = actor;
        read.space = space;
        read.room = 2 * longest_;
        post({}, read);
      }
    }
  settle();
  oracle_.check_rest();
  windows_.check_rest(false);
  cancel_reads();
}

// No more trouble: everything comes to rest, all that can be read is read, everybody leaves, nothing is left.
void World::finale() {
  say("finale");
  settle();
  oracle_.check_rest();
  cancel_reads();
  // Who waits for anybody gives up when only strangers are left, and what these have said may come later.
  read_all();
  read_all();
  for (std::size_t actor = 0; actor < oracle_.actors.size(); ++actor) {
    for (const Space space : spaces)
      if (oracle_.readable(actor, space, true) != 0)
        throw Violation("actor " + std::to_string(actor) + " cannot read what is there");
    if (oracle_.actors[actor].job != 0 && !oracle_.actors[actor].departed()) leave(actor);
  }
  settle();
  oracle_.check_rest();
  windows_.check_rest(true);
  for (const auto& [job, actors] : jobs_)
    for (std::size_t host = 0; host < hosts_.size(); ++host) drop_job(job, host);
  settle();
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const Engine& engine = hosts_[host]->engine;
    if (!options_.hostile && engine.pool_in_use() != 0)
      throw Violation("host " + std::to_string(host) + " still holds " +
                      std::to_string(engine.pool_in_use()) + " bytes");
    for (std::uint32_t index = 0; index < engine.links(); ++index) {
      const Link& link = engine.link(index);
      if (link.open && (link.granted_used != link.freed || !link.incoming.empty() ||
                        !link.carrier.due.empty() || !link.answers.empty()))
        throw Violation("link " + std::to_string(index) + " of host " + std::to_string(host) +
                        " keeps something: " + std::to_string(link.granted_used) + " used, " +
                        std::to_string(link.freed) + " freed");
    }
  }
}

} // namespace parc::sim
