// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/neighbours.hpp"

#include "client/base/failure.hpp"
#include "client/base/relax.hpp"

namespace parc::client {
namespace {

// Messages for one neighbour that wait: who has more than that waits a moment with each, too.
constexpr std::uint64_t large_backlog = std::uint64_t{64} << 20;
constexpr auto a_moment = std::chrono::milliseconds(1);
constexpr auto patience_for_read = std::chrono::microseconds(20),
               patience_for_look = std::chrono::microseconds(4),
               patience_for_copies = std::chrono::microseconds(200);
constexpr int relaxed_between_looks = 8;

// Who does not take a byte in a nanosecond, on the whole, leaves it to the kernel: a start does not wait.
Clock::duration most_for_fragments(std::uint64_t length) {
  return 2 * a_moment + std::chrono::nanoseconds(length);
}

} // namespace

Result<std::unique_ptr<Neighbours>> Neighbours::open(const shm::LetterboxLocation& place,
                                                     const Needs& needs) {
  auto areas = std::make_unique<Areas>();
  PARC_TRY(areas->open(place));
  std::vector<bool> local;
  for (const std::string& host : needs.hosts)
    local.push_back(host == needs.hosts[static_cast<std::size_t>(needs.rank)]);
  return std::unique_ptr<Neighbours>(new Neighbours(std::move(areas), needs, std::move(local)));
}

Neighbours::Neighbours(std::unique_ptr<Areas> areas, const Needs& needs, std::vector<bool> local_ranks)
    : control_(needs.control), areas_(std::move(areas)), operations_(needs.operations),
      control_calls_(needs.control_calls), sleep_(needs.sleep), local_ranks_(std::move(local_ranks)),
      inbox_(*areas_->own(), *areas_, needs.control.header.neighbours, needs.operations, needs.ring,
             needs.sleep, needs.rank),
      outbox_(*areas_->own(), *areas_, inbox_.lock(), needs.control.header.neighbours, needs.operations,
              needs.room, needs.control_calls, needs.ring, needs.sleep.backlog(), local_ranks_),
      own_copies_(needs.own_copies) {
  if (areas_->joined()) areas_->own()->owner.joined.store(1, std::memory_order_relaxed);
  sleep_.set_local(this);
  if (areas_->own()->kernel.progress == shm::Progress::receiver) interrupts_.emplace(inbox_);
}

Neighbours::~Neighbours() {
  sleep_.set_local(nullptr);
}

void Neighbours::stop() {
  if (stopped_.load()) return;
  inbox_.share_reads();
  shm::Request request{};
  request.kind = shm::RequestKind::neighbour;
  request.peer = -1;
  (void)control_calls_.run(request); // where the kernel has gone nothing comes
  stopped_.store(true);
}

bool Neighbours::may_send(int peer) {
  if (stopped_.load(std::memory_order_relaxed)) return inbox_.hears(peer);
  const auto row = static_cast<std::size_t>(peer);
  return peer < shm::most_neighbour_rows && (peer < 0 || row >= local_ranks_.size() || local_ranks_[row]);
}

bool Neighbours::progress() {
  const bool under_way = inbox_.drain();
  flush();
  own_copies_.serve();
  return under_way;
}

void Neighbours::look() {
  inbox_.look();
  flush();
  own_copies_.serve();
}

// A handler that interrupted a drain has its turn another time.
void Neighbours::flush() {
  if (outbox_.anything_waits() && !Inbox::inside() && outbox_.flush()) inbox_.tell_others();
}

bool Neighbours::announce_sleep() {
  outbox_.announce_sleep();
  const bool nothing_came = inbox_.announce_sleep(); // with a barrier
  return !outbox_.may_go_on() && nothing_came;
}

void Neighbours::announce_awake() {
  inbox_.announce_awake();
  outbox_.announce_awake();
}

void Neighbours::close() {
  outbox_.close();
  inbox_.close();
  (void)sleep_.until([this] { return !outbox_.anything_waits(); }); // where the kernel has gone, so have they
}

Result<Outbox::Sent> Neighbours::send(int peer, const LocalMessage& message, parc_op write) {
  const Outbox::Sent sent = outbox_.send(peer, message, write);
  flush();
  if (sent == Outbox::Sent::closed) return has_left();
  if (sent == Outbox::Sent::no_memory)
    return error(
        PARC_EAGAIN,
        "cannot start a write: rank {} has not taken what was written to it before, and this process "
        "has no memory for more that waits; let it read, or raise the limit (RLIMIT_AS)",
        peer);
  return sent;
}

// A reader that is at work takes a message sooner than it is copied twice; and one that is not should not
// have to face all that a fast writer can write. What others send is drained meanwhile.
void Neighbours::wait_for_reader(int peer) {
  const std::uint64_t backlog = outbox_.backlog(peer);
  if (backlog == 0)
    (void)sleep_.poll([&] { return outbox_.has_cell(peer); }, Sleep::default_spin);
  else if (backlog > large_backlog)
    (void)sleep_.until([&] { return outbox_.backlog(peer) <= large_backlog; }, Clock::now() + a_moment);
}

bool Neighbours::cancel_waiting(parc_op id, int peer) {
  const bool ended = outbox_.cancel(peer, id);
  if (ended) inbox_.tell_others();
  return ended;
}

LocalMessage Neighbours::short_message(const Message& message) {
  return {.tag = message.envelope.tag,
          .data = message.envelope.data,
          .flags = message.flags & protocol::flags_that_travel,
          .space = message.space,
          .pieces = message.pieces,
          .length = message.length};
}

Result<void> Neighbours::write(parc_op id, const Message& message) {
  const int peer = message.envelope.peer;
  operations_.entry(slot_of(id)).local = true;
  if (message.blocking) wait_for_reader(peer);
  PARC_TRY(how, send(peer, short_message(message), id));
  if (how != Outbox::Sent::waits) end_write(id, message, how == Outbox::Sent::departed);
  return success();
}

void Neighbours::end_write(parc_op id, const Message& message, bool departed) {
  Operations::End end{.source = message.envelope.peer, .tag = message.envelope.tag, .total = message.length};
  if (departed) {
    end.error = PARC_EPEER;
    end.departure = outbox_.departure(message.envelope.peer);
  }
  operations_.end(id, end);
}

// Who looks comes back soon; who is about to copy something, in what copies take: as long as this program
// would copy for the kernel. It looks meanwhile, too: the other may ask the same, to send something here.
bool Neighbours::is_awaited(const Message& message) {
  const int peer = message.envelope.peer;
  const Outbox::Attention there = outbox_.attention(peer);
  if (there.attends || there.looks == nullptr) return there.attends;
  const std::uint32_t looks = there.looks->load(std::memory_order_relaxed);
  const auto copies =
      std::min<Clock::duration>(std::chrono::nanoseconds(message.length / 4), patience_for_copies);
  const auto end = Clock::now() + (there.patient ? copies : patience_for_look);
  bool came_back = false;
  do {
    (void)progress();
    for (int i = 0; i < relaxed_between_looks; ++i) relax();
    came_back = there.looks->load(std::memory_order_relaxed) != looks;
  } while (!came_back && Clock::now() < end);
  if (there.patient) outbox_.note_attention(peer, came_back);
  return came_back;
}

// Who waits may be about to post it.
std::optional<Outbox::Taken> Neighbours::take_for_fragments(const Message& message) {
  std::optional<Outbox::Taken> taken;
  const auto take = [&] {
    taken = outbox_.take_for_fragments(message.envelope.peer, message.space, message.envelope.tag,
                                       message.length);
    return taken.has_value();
  };
  (void)sleep_.poll_sharing(take, patience_for_read);
  return taken;
}

LocalMessage Neighbours::first_fragment(const Message& message, const Outbox::Taken& taken) {
  LocalMessage first = short_message(message);
  first.kind = shm::CellKind::fragment;
  first.fragment = {.read = taken.id, .offset = 0, .total = message.length};
  return first;
}

// The reader copies one while this copies the next.
bool Neighbours::write_fragments(parc_op id, const Message& message, LocalMessage& next) {
  const auto end = Clock::now() + most_for_fragments(message.length);
  auto how = Outbox::Sent::published;
  const auto sent = [&] {
    how = outbox_.send(message.envelope.peer, next, id);
    return how != Outbox::Sent::no_memory;
  };
  for (; next.offset < message.length; next.fragment.offset = next.offset += next.length) {
    next.length = std::min(message.length - next.offset, shm::fragment_bytes);
    if (!sleep_.poll_sharing(sent, std::min<Clock::duration>(a_moment, end - Clock::now()))) return false;
    if (how == Outbox::Sent::closed) return false;
    if (how == Outbox::Sent::departed) break;
  }
  end_write(id, message, how == Outbox::Sent::departed);
  return true;
}

Result<void> Neighbours::announce(parc_op id, const Message& message) {
  if (!Outbox::may_offer(id))
    return error(
        PARC_EAGAIN,
        "{} writes to programs of this host are unfinished, and that is all that there can be; finish "
        "some and call again",
        shm::most_offers);
  outbox_.offer(id);
  shm::Rendezvous named{message.length, static_cast<std::uint64_t>(id)};
  const iovec piece{&named, sizeof named};
  const LocalMessage sent{.tag = message.envelope.tag,
                          .data = message.envelope.data,
                          .flags = message.flags & protocol::flags_that_travel,
                          .space = message.space,
                          .kind = shm::CellKind::rendezvous,
                          .pieces = {&piece, 1},
                          .length = sizeof named};
  PARC_TRY(send(message.envelope.peer, sent, id)); // to one that has departed the kernel's write fails
  return success();
}

} // namespace parc::client
