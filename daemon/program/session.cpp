// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/session.hpp"

#include "daemon/program/request_errors.hpp"
#include "include/parc/parc.h"
#include "shm/between.hpp"
#include "shm/doorbell.hpp"
#include "shm/onlooker.hpp"
#include "system/observe/trace.hpp"

#include <cstring>
#include <poll.h>
#include <span>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

// What is known of an operation's message; the store of its state makes it valid. Of one that its reader has
// matched that knows all.
void store_message(shm::Operation& op, std::uint64_t number, const OperationTable::Slot& slot,
                   const protocol::Outcome& outcome) {
  const bool departed = outcome.departure != protocol::Departure::none;
  if (slot.with == shm::With::rendezvous && !departed) return;
  op.source.store(outcome.source, std::memory_order_relaxed);
  op.tag.store(slot.with == shm::With::taken ? slot.tag : outcome.tag, std::memory_order_relaxed);
  if (shm::is_read(number)) op.handed_or_data.store(outcome.data, std::memory_order_relaxed);
  op.departure_or_data.store(departed ? static_cast<std::uint32_t>(outcome.departure)
                                      : std::uint32_t{has(outcome.flags, protocol::MessageFlags::with_data)},
                             std::memory_order_relaxed);
  op.total.store(outcome.total, std::memory_order_relaxed);
}

// The hello of a program that was started where this one was. Everything in the pipe has a multiple of eight
// bytes.
bool has_hello(std::span<const std::byte> bells) {
  static_assert(sizeof(shm::Attach) % sizeof shm::attach_magic == 0);
  for (; bells.size() >= sizeof shm::attach_magic; bells = bells.subspan(sizeof shm::attach_magic))
    if (std::memcmp(bells.data(), &shm::attach_magic, sizeof shm::attach_magic) == 0) return true;
  return false;
}

} // namespace

Session::Session(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, std::uint32_t number,
                 const Sessions::Member& member, Fd from_program, Fd to_program, Sessions::Ended ended)
    : loop_(loop), engine_(engine), sessions_(sessions), number_(number), member_(member),
      from_program_(std::move(from_program)), to_program_(std::move(to_program)), ended_(std::move(ended)),
      bell_(loop.events(), from_program_.get(), EV_READ | EV_PERSIST, [this](short) { hear(); }),
      windows_(extents_,
               [this](const Windows::Neighbour& neighbour, bool is_over) {
                 return sessions_.sessions_[neighbour.session]->close_window(neighbour.entry, is_over);
               }),
      windows_left_(loop,
                    [this] { // whoever is told of what comes of it is woken at a step's end
                      loop_.after_step([&all = sessions_, which = number_] {
                        if (Session* const session = all.sessions_[which].get()) session->look_at_windows();
                      });
                    }),
      neighbour_reads_({.engine = engine,
                        .letterboxes = sessions.letterboxes_,
                        .slots = slots_,
                        .events = sessions.events_,
                        .member = member_}),
      added_peers_(
          {.engine = engine, .peers = peers, .member = member_, .has_table = [this] { return has_table(); }},
          {.added = [this](std::uint64_t id, const Completion& how) { conclude(id, how); }}),
      spawned_programs_({.loop = loop,
                         .engine = engine,
                         .peers = peers,
                         .memory = extents_,
                         .events = sessions.events_,
                         .member = member_,
                         .has_table = [this] { return has_table(); }},
                        {.ended = [this](std::uint64_t id, const Completion& how) { conclude(id, how); }}) {
  bell_.add();
}

// The pipe: first the program's hello, then doorbells, then its end.
void Session::hear() {
  if (state_ == State::over) return;
  std::array<std::byte, 512> bells;
  while (true) {
    const bool greeting = state_ == State::expected;
    std::byte* to = greeting ? hello_.data() + hello_length_ : bells.data();
    const ssize_t got =
        read(from_program_.get(), to, greeting ? hello_.size() - hello_length_ : bells.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      take_requests(last_requests);
      return end(state_ == State::leaving ? Sessions::End::left : Sessions::End::broken);
    }
    if (!greeting && has_hello(std::span(bells).first(static_cast<std::size_t>(got)))) {
      take_requests(last_requests);
      return state_ == State::leaving ? end(Sessions::End::left)
                                      : broke("another program was started in its place");
    }
    if (!greeting)
      return sessions_.listen_to(
          *this); // more bells ring the loop again: a program that never stops holds up nobody
    hello_length_ += static_cast<std::size_t>(got);
    if (hello_length_ < hello_.size()) continue;
    shm::Attach hello;
    std::memcpy(&hello, hello_.data(), sizeof hello);
    attach(hello);
    return;
  }
}

// Its pipe ends with the last process that has it: a script around it does, too. The system knows who made
// the segment by a number of this kernel's namespace, as the hello may not; 0 where it sees none.
void Session::watch_process() {
  const pid_t maker = shm::Segment::maker(segment_.id());
  if (maker == 0 || maker == getpid()) return; // who simulates programs is all of them
  process_.reset(static_cast<int>(syscall(SYS_pidfd_open, maker, 0)));
  if (!process_) return; // it has ended, and its pipe ends; or there are no descriptors
  process_ended_ = Event(loop_.events(), process_.get(), EV_READ, [this](short) { process_died(); });
  process_ended_.add();
}

void Session::attach(const shm::Attach& hello) {
  if (hello.magic != shm::attach_magic) return broke("its first message is not a program's");
  state_ = State::running;
  pid_ = hello.pid;
  if (hello.version != shm::layout_version) return welcome(PARC_EVERSION);
  if (hello.bytes < sizeof(shm::Control)) return broke("its control segment is too small");
  Result<shm::Segment> segment = shm::Segment::attach(hello.shmid, hello.bytes);
  if (!segment) {
    welcome(segment.error().code == ENOMEM ? PARC_ENOMEM : PARC_EINVAL);
    return broke(segment.error().text.c_str());
  }
  segment_ = std::move(segment).value();
  auto* control = reinterpret_cast<shm::Control*>(segment_.data());
  const shm::ControlHeader& header = control->header;
  if (header.version.load(std::memory_order_acquire) != shm::layout_version ||
      header.magic != shm::control_magic || header.request_slots != shm::request_slots ||
      header.read_slots != shm::read_slots || header.write_slots != shm::write_slots)
    return broke("its control segment has another layout");
  control_ = control;
  watch_process();
  tables_.emplace(*control);
  ++sessions_.totals_.attached;
  ++sessions_.attached_;
  counted_ = true;
  sessions_.listen_to(*this);
  sessions_.tell(*this);
  neighbour_reads_.open(hello.neighbours == 1, *tables_);
  open_memory();
  backlog_changed(); // messages may have come before it
  welcome(PARC_OK);
}

void Session::welcome(std::int32_t error) {
  shm::Welcome welcome{};
  welcome.magic = shm::attach_magic;
  welcome.version = shm::layout_version;
  welcome.error = error;
  if (error == PARC_EVERSION) {
    ++sessions_.totals_.refused;
    loop_.errors().note(ErrorKind::Refused, error, "refused a program of another version");
  }
  welcome.job = member_.job;
  welcome.rank = member_.rank;
  welcome.size = member_.size;
  welcome.kernel_pid = getpid();
  welcome.copy_ns_per_kib = sessions_.settings_.copy_ns_per_kib;
  welcome.area = neighbour_reads_.has_letterbox() ? neighbour_reads_.letterbox().area : -1;
  welcome.letterbox = neighbour_reads_.letterbox().number;
  const std::string& name = sessions_.settings_.host;
  std::memcpy(welcome.host, name.data(), std::min(name.size(), sizeof welcome.host - 1));
  if (write(to_program_.get(), &welcome, sizeof welcome) != sizeof welcome) end(Sessions::End::broken);
}

std::uint32_t Session::core_word() const {
  if (control_ == nullptr || !open()) return 0;
  return control_->header.program_core.load(std::memory_order_relaxed);
}

// Or looks at its completion queue again and again, with other things in between.
bool Session::spinning() {
  if (control_ == nullptr || !open()) return false;
  const std::uint32_t looks = control_->header.program_looks.load(std::memory_order_relaxed);
  if (std::exchange(looks_, looks) != looks) asked_in_vain_ = 0;
  if (asked_in_vain_ < most_asked_in_vain) ++asked_in_vain_;
  return asked_in_vain_ < most_asked_in_vain ||
         control_->header.program_spinning.load(std::memory_order_relaxed) != 0;
}

bool Session::has_requests() const {
  return control_ != nullptr && open() &&
         (control_->header.request_tail.load(std::memory_order_acquire) != head_ || has_copied());
}

void Session::look_at(std::size_t most, RankState& state) const {
  shm::look_at(*control_, *tables_, most, state);
  const protocol::Backlog backlog = engine_.backlog(member_.endpoint);
  state.backlog.kernel_held = backlog.held;
  state.backlog.kernel_unread = backlog.unread;
}

bool Session::park() {
  if (spinning()) return false;
  shm::announce_sleep(control_->header.kernel_asleep);
  if (!has_requests()) return true;
  announce_awake();
  return false;
}

void Session::announce_sleep() {
  const bool lightly = engine_.may_answer_reads(member_.endpoint);
  shm::announce_sleep(control_->header.kernel_asleep, lightly ? shm::Sleep::light : shm::Sleep::deep);
}

void Session::announce_awake() {
  shm::announce_awake(control_->header.kernel_asleep);
}

std::uint64_t Session::take_requests(std::uint64_t most) {
  if (control_ == nullptr || state_ == State::over) return 0;
  shm::ControlHeader& header = control_->header;
  const std::uint64_t tail = header.request_tail.load(std::memory_order_acquire);
  const std::uint64_t waiting = tail - head_;
  if (waiting > shm::request_slots) {
    broke("its request ring is overrun");
    return 1;
  }
  const bool copied = has_copied();
  if (copied) {
    memory_->look();
    engine_.resume_copies();
  }
  std::uint64_t taken = 0;
  while (head_ != tail && taken < most && open()) {
    shm::Request request;
    std::memcpy(&request, &control_->requests[head_ % shm::request_slots], sizeof request);
    ++head_;
    ++taken;
    handle(request);
    // Behind what it has brought about (Ring::nothing_unread).
    if (open()) header.request_head.store(head_, std::memory_order_release);
  }
  if (taken == 1) ++asked_singly_;
  return taken + copied;
}

void Session::release_has_begun(Slot& slot) {
  if (slot.release == 0) return;
  gate_.begun(std::exchange(slot.release, 0));
  if (gate_.keeps())
    loop_.after_step([this] { gate_.open([this](std::uint64_t write) { engine_.pass(write); }); });
}

void Session::begun(Cookie cookie, const protocol::Outcome& outcome) {
  const std::uint64_t slot = cookie.slot();
  if (state_ == State::over || !slots_[slot].busy) return;
  shm::Operation& op = operation(slot);
  store_message(op, slot, slots_[slot], outcome);
  if (traced()) tables_->times(slot).begun.store(trace::now(), std::memory_order_relaxed);
  op.state.store(shm::state_word(slots_[slot].generation, shm::Phase::begun), std::memory_order_release);
  slots_[slot].begun = progressed_ = true;
  sessions_.tell(*this);
  release_has_begun(slots_[slot]);
}

void Session::progressed(Cookie cookie, const protocol::Progress& progress) {
  const std::uint64_t slot = cookie.slot();
  if (state_ == State::over || !slots_[slot].busy || !cookie.is_of(slots_[slot].generation)) return;
  shm::Operation& op = operation(slot);
  if (traced() && shm::is_read(slot) && !slots_[slot].begun) // a get has no envelope
    if (auto& first = tables_->times(slot).begun; first.load(std::memory_order_relaxed) == 0)
      first.store(trace::now(), std::memory_order_relaxed);
  op.front.store(progress.front, std::memory_order_release);
  op.back.store(progress.back, std::memory_order_release);
  if (shm::is_read(slot))
    op.error.store(shm::between_word(progress.between, slots_[slot].total), std::memory_order_release);
  progressed_ = true;
  sessions_.tell(*this);
}

void Session::finished(Cookie cookie, const protocol::Outcome& outcome) {
  const std::uint64_t number = cookie.slot();
  Slot& slot = slots_[number];
  if (!slot.busy || !cookie.is_of(slot.generation)) return;
  const bool read = shm::is_read(number), awaits_memory = slot.late && outcome.claim != 0;
  if (read) asked_singly_ = 0;
  --(read ? reads_ : writes_);
  if (read && !slot.probes && !awaits_memory && outcome.fault == protocol::Fault::none &&
      slot.with != shm::With::rendezvous)
    received_.add(outcome.total);
  if ((!read || slot.probes) && gate_.keeps()) gate_.drop(slot.handle);
  extents_.drop(slot.used);
  slot.used.reset();
  if (awaits_memory && state_ != State::over) return await_memory(number, outcome);
  release_has_begun(slot);
  claiming_ -= std::exchange(slot.claims, false);
  if (outcome.claim != 0) claims_.emplace(shm::id_of(slot.generation, number), outcome.claim);
  if (state_ == State::over) {
    slot.busy = false;
    return;
  }
  const auto teller = neighbour_reads_.teller(number, slot, outcome);
  if (teller == NeighbourReads::Teller::kernel)
    complete(number, outcome, error_of(outcome.fault));
  else
    slot.busy = false;
  if (teller == NeighbourReads::Teller::library_of_departure) completed();
  answer_unmap();
}

// The window's index beside the session's own number, by which Sessions finds it again.
bool Session::place(const protocol::Place& place, bool acquainted, protocol::Pieces& memory,
                    std::uint64_t& hold) {
  const auto window = windows_.hold(place, acquainted, memory);
  if (!window) return false;
  sessions_.memory_used();
  hold = std::uint64_t{number_} << 32 | *window;
  return true;
}

void Session::let_go(std::uint64_t hold) {
  const auto operation = windows_.let_go(static_cast<std::size_t>(static_cast<std::uint32_t>(hold)));
  if (operation) conclude(*operation, {PARC_OK});
  answer_unmap();
}

void Session::answer_unmap() {
  if (unmap_address_ == 0 || !open() || extents_.mapped(unmap_address_)) return;
  unmap_address_ = 0;
  answer(shm::control_slot, PARC_OK);
}

void Session::answer(std::uint64_t slot, std::int32_t error) {
  complete(slot, {}, error);
}

void Session::conclude(std::uint64_t id, const Completion& how) {
  if (open() && slots_.find(id) != nullptr) complete(shm::slot_of(id), how.outcome, how.error);
}

// The last stores to an operation; from here on its slot is the program's.
void Session::complete(std::uint64_t number, const protocol::Outcome& outcome, std::int32_t error) {
  Slot& slot = slots_[number];
  shm::Operation& op = operation(number);
  note_request(loop_.errors(), number, error, outcome.departure);
  store_message(op, number, slot, outcome);
  op.error.store(error, std::memory_order_relaxed);
  slot.busy = false;
  if (traced()) tables_->times(number).done.store(trace::now(), std::memory_order_relaxed);
  op.state.store(shm::state_word(slot.generation, shm::Phase::done), std::memory_order_release);
  if (slot.queued) tables_->note_finished(number);
  completed();
}

void Session::completed() {
  control_->header.completions.fetch_add(1, std::memory_order_release);
  completed_ = true;
  sessions_.tell(*this);
}

bool Session::ring() {
  if (state_ == State::over) return false;
  if (std::exchange(progressed_, false)) {
    // The watcher says so and then looks how far the operation is; what was stored before this fence it sees,
    // or this sees the watcher.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (control_->header.program_watching.load(std::memory_order_relaxed) != 0) {
      control_->header.completions.fetch_add(1, std::memory_order_release);
      completed_ = true;
    }
  }
  if (!std::exchange(completed_, false)) return false;
  if (!shm::must_ring(control_->header.program_asleep)) return true;
  ++sessions_.totals_.wakes;
  const std::uint64_t bell = 1;
  // A full pipe has woken it already; a closed one is seen by hear().
  [[maybe_unused]] const ssize_t written = write(to_program_.get(), &bell, sizeof bell);
  return true;
}

bool Session::traced() const {
  return control_->header.program_tracing.load(std::memory_order_relaxed) != 0;
}

void Session::process_died() {
  if (state_ == State::over) return;
  take_requests(last_requests);
  if (state_ != State::over) end(state_ == State::running ? Sessions::End::broken : Sessions::End::left);
}

void Session::broke(const char* rule) {
  loop_.errors().note(ErrorKind::Refused, EPROTO, fmt::format("ended the session of a program: {}", rule));
  spdlog::warn("ended the session of rank {} of job {:x} (pid {}): {}", member_.rank, member_.job, pid_,
               rule);
  ++sessions_.totals_.refused;
  end(Sessions::End::broken);
}

// The engine says drained() when nothing of this session is under way any more; until then its memory stays
// attached.
void Session::end(Sessions::End how) {
  if (state_ == State::over) return;
  const bool had_left = state_ == State::leaving;
  state_ = State::over;
  give_up_windows();
  bell_.remove();
  if (process_ended_) process_ended_.remove();
  row_.reset();
  sessions_.attached_ -= std::exchange(counted_, false);
  to_program_.reset();
  loop_.after_step([this, how, had_left, ended = std::move(ended_)] {
    if (how == Sessions::End::broken)
      engine_.kill(member_.endpoint);
    else if (!had_left)
      engine_.leave(member_.endpoint);
    ended(how);
    acted_on_ = true;
    if (may_go()) sessions_.over(number_);
  });
}

bool Session::drained() {
  drained_ = true;
  return may_go();
}

bool Session::close_window(std::uint32_t entry, bool ended) {
  const bool inside = attached_windows_.close(entry, control_->windows[entry], ended);
  if (attached_windows_.is_free(entry)) control_->windows_freed.fetch_add(1, std::memory_order_relaxed);
  return inside;
}

void Session::detach_window(std::size_t index, const Windows::Neighbour& neighbour) {
  const auto operation = windows_.detach(index, neighbour);
  if (operation) conclude(*operation, {PARC_OK});
}

// It ends: nobody reaches its windows, and it enters those of others no more. A process that lives on, but
// for its session, may be inside of one, and is waited for; not one that is dead, or has become another
// program.
void Session::give_up_windows() {
  constexpr double again_s = 0.01;
  windows_.close_all();
  if (control_ == nullptr) return;
  pollfd process{.fd = process_.get(), .events = POLLIN, .revents = 0};
  const bool dead =
      (process_ && poll(&process, 1, 0) > 0) || shm::Segment::attachments(segment_.id()) <= 1; // ours
  attached_windows_.give_up(*control_, dead, [this](std::uint32_t entry, const AttachedWindows::Of& of) {
    sessions_.sessions_[of.session]->detach_window(of.window, {number_, entry});
  });
  if (!attached_windows_.none()) windows_left_.set(again_s);
}

void Session::look_at_windows() {
  if (open()) return; // another one
  give_up_windows();
  if (may_go()) sessions_.over(number_);
}

void Session::publish(Counters& counters) {
  if (!row_)
    row_.emplace(
        counters.session(member_.job, static_cast<std::uint64_t>(member_.rank), pid_, segment_.id()));
  (*row_)->reads.set(reads_);
  (*row_)->writes.set(writes_);
  (*row_)->messages_in.set(received_.messages);
  (*row_)->bytes_in.set(received_.bytes);
  (*row_)->messages_out.set(sent_.messages);
  (*row_)->bytes_out.set(sent_.bytes);
  control_->header.kernel_held.store(engine_.backlog(member_.endpoint).held, std::memory_order_relaxed);
}

// What is published stands behind what was asked for before.
void Session::begin_published() {
  if (state_ != State::running) return;
  const std::uint64_t end = neighbour_reads_.published();
  take_requests(shm::request_slots);
  if (state_ != State::running) return;
  neighbour_reads_.each_published(end, [this](const shm::Request& read) {
    start(read);
    return state_ == State::running;
  });
}

void Session::backlog_changed() {
  if (!attached()) return;
  control_->header.kernel_unread.store(engine_.backlog(member_.endpoint).unread, std::memory_order_relaxed);
  if (!neighbour_reads_.must_ask_for_reads()) return;
  neighbour_reads_.ask_for_reads();
  completed();
  loop_.after_step([this] { begin_published(); }); // the engine is in the middle of something
}

} // namespace parc::daemon
