// SPDX-License-Identifier: BSD-3-Clause
// Starting, giving up and finishing reads and writes.
#include "protocol/engine.hpp"

#include <cassert>
#include <utility>

namespace parc::protocol {
namespace {

Outcome outcome_of(const Outgoing& message, Fault fault) {
  return {.fault = fault,
          .source = message.pair->row,
          .space = message.space,
          .tag = message.tag,
          .data = message.data,
          .flags = message.flags,
          .total = message.total,
          .departure = fault == Fault::peer ? message.pair->peer->how : Departure::none};
}

} // namespace

std::uint64_t Engine::read(std::uint64_t endpoint, const ReadRequest& request) {
  Endpoint* at = find_endpoint(endpoint);
  assert(at != nullptr && (request.source < 0 || has_given(endpoint, request.source)));
  const auto row = static_cast<std::int32_t>(request.source);
  Pair* const pair = row >= 0 ? pair_of(*at, row) : nullptr;
  if (row >= 0 && pair == nullptr) {
    const Outcome nothing,
        gone{.fault = Fault::peer, .source = row, .space = request.space, .tag = request.tag};
    listener_.finished(request.cookie,
                       request.probe && has(request.flags, MessageFlags::no_wait) ? nothing : gone);
    return 0;
  }
  Reading& read = readings_.make();
  read.cookie = request.cookie;
  read.at = at;
  read.pair = pair;
  if (request.source < 0 && at->group != nullptr) wait_for_anybody(*at->group);
  read.space = request.space;
  read.tag = request.tag;
  read.ignore = request.ignore;
  read.flags = request.flags | when(request.late, MessageFlags::claim);
  read.memory = request.memory;
  read.probe = request.probe;
  read.late = request.late;
  read.owner_word = request.owner_word;
  read.number = ++at->posts;
  at->reads.push_back(read);
  const std::uint64_t handle = read.id | reading_handle;

  if (request.claimed != 0) {
    Incoming* message = incoming_.find(request.claimed);
    if (message != nullptr && message->stage == Incoming::Stage::claimed && message->pair->at == at)
      match(read, *message);
    else
      fail_read(read, Fault::peer); // it went with its writer
  } else if (Incoming* message = find_unexpected(*at, read)) {
    if (!read.owner_word.take())
      lose(read);
    else if (!read.probe && !read.late)
      match(read, *message);
    else
      finish_read(read, probed(read, *message));
  } else if (read.probe && has(request.flags, MessageFlags::no_wait)) {
    finish_read(read, {});
  } else if (hopeless(read)) {
    fail_read(read, Fault::peer);
    // Nothing is left of what the kernel of a broken link has said.
    if (endpoint == kernel_endpoint) forget_kernel(static_cast<std::uint32_t>(request.source));
  } else if (read.probe) {
    at->probes.push_back(read);
  } else {
    at->posted.add(read);
  }
  return handle;
}

std::uint64_t Engine::write(std::uint64_t endpoint, const WriteRequest& request) {
  Endpoint* from = find_endpoint(endpoint);
  assert(from != nullptr && has_given(endpoint, request.destination));
  const auto row = static_cast<std::int32_t>(request.destination);
  Pair* const pair = pair_of(*from, row);
  if (pair == nullptr || pair->peer->how != Departure::none) {
    listener_.finished(request.cookie, {.fault = Fault::peer,
                                        .source = row,
                                        .space = request.space,
                                        .tag = request.tag,
                                        .data = request.data,
                                        .flags = request.flags,
                                        .total = request.memory.size() + request.late,
                                        .departure = pair != nullptr ? pair->peer->how : Departure::none});
    return 0;
  }
  Outgoing& message = outgoing_.make();
  message.cookie = request.cookie;
  message.from = from;
  message.pair = pair;
  message.space = request.space;
  message.tag = request.tag;
  message.data = request.data;
  message.flags = request.flags & flags_that_travel;
  if (request.put) {
    message.role = Outgoing::Role::put;
    message.flags = (request.flags & MessageFlags::from_end) | MessageFlags::synchronous |
                    when(request.rows.has_value(), MessageFlags::rows);
    if (request.rows) message.rows = std::make_unique<Rows>(*request.rows);
  } else if (request.data != 0) {
    message.flags |= MessageFlags::with_data;
  }
  message.memory = request.memory;
  message.late = request.late != 0;
  message.total = request.memory.size() + request.late;
  if (request.gated) message.enter(Outgoing::Stage::gated);
  from->writes.push_back(message);
  ++from->unfinished;
  const std::uint64_t handle = message.id;
  if (!request.gated) launch(message);
  return handle;
}

// A peer that has departed meanwhile has failed what was gated, too.
void Engine::pass(std::uint64_t operation) {
  Outgoing* message = nullptr;
  if ((operation & reading_handle) == 0) {
    message = outgoing_.find(operation);
  } else if (const Reading* read = readings_.find(operation & ~reading_handle)) {
    message = read->request;
  }
  if (message == nullptr || message->stage != Outgoing::Stage::gated) return;
  launch(*message);
}

void Engine::launch(Outgoing& message) {
  Endpoint& from = *message.from;
  const Address& to = message.pair->peer->address;
  if (to.place != here) {
    message.link = links_[static_cast<std::size_t>(to.place)].get();
    message.outflow = &outflow_of(from, *message.link);
  }
  if (message.role == Outgoing::Role::request) return ask(message);
  if (message.link != nullptr) return announce(message);
  Incoming& local = incoming_.make();
  if (message.role == Outgoing::Role::put) local.what = Incoming::What::put;
  local.local = &message;
  name_pair(local, pair_of(*find_endpoint(to.number), {here, from.number}));
  local.space = message.space;
  local.tag = message.tag;
  local.data = message.data;
  local.flags = message.flags;
  local.total = message.total;
  if (message.rows != nullptr) keep_rows(local, *message.rows);
  message.enter(Outgoing::Stage::local);
  message.local = &local;
  ++message.pair->sent;
  ++totals_.messages_local;
  const std::uint64_t id = local.id;
  take_in_order(local, {});
  if (Incoming* const here_still = incoming_.find(id); here_still != nullptr && here_still->unread())
    keep_short(*here_still);
}

// What nobody reads yet waits in its writer's memory, and its write with it. Once those writes are many,
// short messages are kept in the pool like those from another host, and their writes end: they take less
// memory so.
void Engine::keep_short(Incoming& message) {
  const std::uint64_t most = settings_.pool / 8 * 7; // the rest is for the first windows of links
  if (message.local->from->unfinished <= settings_.waiting_writes || message.local->synchronous() ||
      message.local->late || message.total > small_copy || pool_reserved_ + message.total > most ||
      !message.local->memory.is_here())
    return;
  if (message.total != 0) {
    Block& block = message.blocks.emplace_back(pool_used_, 0, static_cast<std::uint32_t>(message.total));
    message.local->memory.copy_out(0, block.at(0), message.total);
    pool_reserved_ += message.total;
  }
  message.promised = message.arrived = message.total;
  message.flags |= MessageFlags::whole;
  if (message.pair->at->number != kernel_endpoint) ++totals_.unexpected;
  Outgoing& write = *std::exchange(message.local, nullptr);
  write.local = nullptr;
  finish_write(write, Fault::none);
}

// Nobody else hears of its departure before they are through.
void Engine::release_held(Endpoint& leaving) {
  for (auto& [address, pair] : leaving.pairs) {
    while (!pair.held.empty()) {
      Outgoing& message = pair.held.front();
      pair.held.pop_front();
      queue(message);
    }
    pair.hook::Hook<hook::Held>::unlink();
  }
}

void Engine::cancel(std::uint64_t operation) {
  if ((operation & reading_handle) != 0) {
    Reading* read = readings_.find(operation & ~reading_handle);
    if (read != nullptr && read->message == nullptr) return fail_read(*read, Fault::canceled);
    if (read != nullptr && read->request != nullptr) fail_write(*read->request, Fault::canceled);
    return;
  }
  Outgoing* message = outgoing_.find(operation);
  if (message == nullptr || message->abandoned()) return;
  if (message->local != nullptr) {
    const Incoming::Stage stage = message->local->stage;
    if (stage == Incoming::Stage::stored || stage == Incoming::Stage::behind)
      fail_write(*message, Fault::canceled);
  } else if (!message->announced()) {
    fail_write(*message, Fault::canceled);
  } else if (message->role == Outgoing::Role::message && !message->cancel_asked && !message->matched &&
             (!message->whole() || message->synchronous())) {
    message->cancel_asked = true;
    owe(*message->link, *message);
  }
}

void Engine::place(std::uint64_t write, const Pieces& memory) {
  Outgoing* const message = outgoing_.find(write);
  if (message == nullptr || message->abandoned() || !message->late) return;
  assert(memory.size() == message->total);
  message->late = false;
  message->memory = memory;
  if (Incoming* const local = message->local; local != nullptr && local->matched()) copies_.push_back(*local);
  if (message->announced()) make_ready(*message);
}

bool Engine::unplace(std::uint64_t read) {
  Reading* const reading = (read & reading_handle) != 0 ? readings_.find(read & ~reading_handle) : nullptr;
  if (reading == nullptr || reading->message != nullptr || reading->probe || reading->late) return false;
  reading->memory = {};
  reading->late = true;
  reading->flags |= MessageFlags::claim;
  return true;
}

void Engine::hand_over(std::uint64_t operation, std::uint64_t begin, std::byte* base, std::uint64_t length) {
  Outgoing* message = outgoing_.find(operation);
  if (message == nullptr || message->abandoned() || message->late) return;
  assert(begin + length <= message->total);
  if (message->link != nullptr) unname(*message->link, message->id);
  if (message->local != nullptr) forget_source(*message->local);
  message->memory.replace(begin, base, length);
  resume_copies();
}

// Where the receiver has no place for another message of this pair that nobody reads, it waits here, and
// those of its pair behind it.
void Engine::announce(Outgoing& message) {
  Pair& pair = *message.pair;
  Link& link = *message.link;
  ++message.outflow->fresh;
  if (pair.held.empty() && may_send_envelope(pair.unread(), link.envelopes_left())) return queue(message);
  message.enter(Outgoing::Stage::held);
  count(*message.from, &Backlog::held, true);
  if (!pair.hook::Hook<hook::Held>::is_linked()) link.held.push_back(pair);
  pair.held.push_back(message);
}

void Engine::queue(Outgoing& message) {
  if (message.stage == Outgoing::Stage::held) count(*message.from, &Backlog::held, false);
  message.enter(Outgoing::Stage::queued);
  ++message.pair->queued;
  ++message.link->envelopes_out;
  message.link->fresh.push_back(message);
}

// It will not be sent.
void Engine::unqueue(Outgoing& message) {
  if (message.stage == Outgoing::Stage::held) count(*message.from, &Backlog::held, false);
  if (message.stage != Outgoing::Stage::queued) return;
  --message.pair->queued;
  --message.link->envelopes_out;
}

// There may be places for more.
void Engine::release_held(Link& link) {
  for (auto it = link.held.begin(); it != link.held.end();) {
    Pair& pair = *it++;
    while (!pair.held.empty() && may_send_envelope(pair.unread(), link.envelopes_left())) {
      Outgoing& message = pair.held.front();
      pair.held.pop_front();
      queue(message);
    }
    if (pair.held.empty()) pair.hook::Hook<hook::Held>::unlink();
  }
}

void Engine::check_write_done(Outgoing& message) {
  if (message.abandoned() || message.role == Outgoing::Role::put || !message.envelope_acknowledged) return;
  if (!message.matched && (message.synchronous() || !message.whole())) return;
  if (message.acknowledged == message.promised) finish_write(message, Fault::none);
}

void Engine::finish_write(Outgoing& message, Fault fault) {
  if (message.role == Outgoing::Role::request) return finish_request(message, fault);
  const Outcome outcome = outcome_of(message, fault);
  const std::uint64_t cookie = message.cookie;
  Endpoint& from = *message.from;
  --from.unfinished;
  unqueue(message);
  // A second copy of something may be half written.
  if (message.link != nullptr && message.link->may_see_copies()) unname(*message.link, message.id);
  const bool answer = message.role == Outgoing::Role::answer;
  if (answer) end_answer(message);
  outgoing_.drop(message);
  if (!answer) listener_.finished(cookie, outcome);
  check_drained(from);
}

// The message will not be finished. If the other host knows of it, the record stays until an abort has been
// sent.
void Engine::fail_write(Outgoing& message, Fault fault) {
  if (Incoming* local = message.local) {
    if (local->matched()) fail_read(*local->read, Fault::peer);
    drop_incoming(*local);
    finish_write(message, fault);
    return;
  }
  if (message.stage == Outgoing::Stage::gated) return finish_write(message, fault);
  unname(*message.link, message.id);
  if (message.role == Outgoing::Role::answer) return give_up_answer(message);
  if (!message.announced()) {
    Outflow& outflow = *message.outflow;
    Link& link = *message.link;
    --outflow.fresh;
    owe_departure(outflow);
    finish_write(message, fault); // the outflow may go with it
    release_held(link);
    return;
  }
  const Outcome outcome = outcome_of(message, fault);
  Endpoint* from = message.from;
  --from->unfinished;
  message.hook::Hook<hook::Queue>::unlink();
  message.hook::Hook<hook::Asked>::unlink();
  message.hook::Hook<hook::Owned>::unlink();
  message.link->eager_unsent -= message.eager.left();
  message.again.clear();
  message.enter(Outgoing::Stage::abandoned);
  message.from = nullptr;
  message.outflow = nullptr;
  message.pair = nullptr;
  message.memory = {};
  owe(*message.link, message);
  listener_.finished(message.cookie, outcome);
  check_drained(*from);
}

} // namespace parc::protocol
