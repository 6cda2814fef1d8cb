// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/neighbours.hpp"

#include "client/failure.hpp"

namespace parc::client {

Result<std::unique_ptr<Neighbours>> Neighbours::open(const shm::LetterboxPlace& place, const Of& program) {
  auto areas = std::make_unique<Areas>();
  PARC_TRY(areas->open(place));
  std::vector<bool> local;
  for (const std::string& host : program.hosts)
    local.push_back(host == program.hosts[static_cast<std::size_t>(program.rank)]);
  return std::unique_ptr<Neighbours>(new Neighbours(std::move(areas), program, std::move(local)));
}

Neighbours::Neighbours(std::unique_ptr<Areas> areas, const Of& program, std::vector<bool> local_ranks)
    : areas_(std::move(areas)), operations_(program.operations), errand_(program.errand), rest_(program.rest),
      local_ranks_(std::move(local_ranks)), own_memory_(program.own_memory),
      inbox_(*areas_->own(), *areas_, program.counters, program.operations, program.ring, program.rest,
             program.rank, static_cast<int>(program.hosts.size())),
      outbox_(*areas_->own(), *areas_, inbox_.lock(), program.counters, program.errand, program.ring,
              local_ranks_) {
  if (areas_->joined()) areas_->own()->owner.joined.store(1, std::memory_order_relaxed);
  rest_.set_local(&inbox_);
  if (areas_->own()->kernel.progress == shm::Progress::receiver) interrupts_.emplace(inbox_);
}

Neighbours::~Neighbours() {
  rest_.set_local(nullptr);
}

void Neighbours::stop() {
  if (stopped_.load()) return;
  shm::Request request{};
  request.kind = shm::RequestKind::neighbour;
  request.peer = -1;
  (void)errand_.run(request); // where the kernel has gone nothing comes
  stopped_.store(true);
}

bool Neighbours::may_send(int peer) {
  if (stopped_.load(std::memory_order_relaxed)) return inbox_.hears(peer);
  const auto row = static_cast<std::size_t>(peer);
  return peer < 0 || row >= local_ranks_.size() || local_ranks_[row];
}

// While it waits, what others have sent is drained: two that have no cells left find each other so.
Result<Outbox::Sent> Neighbours::send(int peer, const LocalMessage& message, bool queued) {
  for (;;) {
    const Outbox::Sent sent = outbox_.send(peer, message);
    if (sent == Outbox::Sent::closed) return has_left();
    if (sent != Outbox::Sent::no_cell) return sent;
    rest_.progress();
    if (outbox_.any_cell()) continue;
    if (queued)
      return error(
          PARC_EAGAIN,
          "{} short messages of this program wait for their receivers; take completions and call again",
          shm::most_published);
    outbox_.wait_for_cells(true);
    const Woken how = rest_.until([this] { return outbox_.any_cell(); });
    outbox_.wait_for_cells(false);
    if (how == Woken::gone)
      return error(PARC_EKERNEL, "cannot start a write: the kernel of this host has gone");
  }
}

LocalMessage Neighbours::short_message(const Message& message, protocol::Space space) {
  return {.tag = message.envelope.tag,
          .data = message.envelope.data,
          .with_data = message.with_data || message.envelope.data != 0,
          .space = space,
          .pieces = message.pieces,
          .length = message.length};
}

Result<void> Neighbours::write(parc_op id, const Message& message, protocol::Space space) {
  const int peer = message.envelope.peer;
  PARC_TRY(how, send(peer, short_message(message, space), message.queued));
  Operations::End end{.source = peer, .tag = message.envelope.tag, .total = message.length};
  if (how == Outbox::Sent::departed) {
    end.error = PARC_EPEER;
    end.departure = outbox_.departure(peer);
  }
  operations_.end(id, end);
  return success();
}

Result<void> Neighbours::announce(parc_op id, const Message& message, protocol::Space space) {
  outbox_.offer(id);
  shm::Rendezvous named{message.length, static_cast<std::uint64_t>(id)};
  const iovec piece{&named, sizeof named};
  const LocalMessage sent{.tag = message.envelope.tag,
                          .data = message.envelope.data,
                          .with_data = message.with_data || message.envelope.data != 0,
                          .space = space,
                          .kind = shm::CellKind::rendezvous,
                          .pieces = {&piece, 1},
                          .length = sizeof named};
  PARC_TRY(
      send(message.envelope.peer, sent, message.queued)); // to one that has departed the kernel's write fails
  return success();
}

} // namespace parc::client
