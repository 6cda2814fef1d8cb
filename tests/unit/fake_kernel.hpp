// SPDX-License-Identifier: BSD-3-Clause
// A kernel in a thread of the test: the other side of shm/layout.hpp for one program, rank 0 of a job.
// Messages to rank 0 come back to it; messages to other ranks are kept for the test to look at. It checks the
// program as a kernel does, and counts what it should not see. Everything it does it does under one lock, so
// a test may look and interfere at any time.
#pragma once

#include "parc/parc.h"
#include "scratch.hpp"
#include "shm/between.hpp"
#include "shm/doorbell.hpp"
#include "shm/segment.hpp"
#include "shm/tables.hpp"
#include "system/environment.hpp"
#include "system/fd.hpp"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace parc::test {

class FakeKernel {
public:
  struct Message {
    int source = 0, tag = 0;
    std::uint32_t context = 0;
    std::string bytes = {};
  };
  static constexpr std::uint64_t all_at_once = UINT64_MAX;

  explicit FakeKernel(int size = 1, std::uint32_t version = shm::layout_version)
      : size_(size), version_(version) {
    int down[2], up[2];
    if (pipe2(down, O_NONBLOCK) != 0 || pipe2(up, O_NONBLOCK) != 0) throw std::runtime_error("no pipes");
    to_program_.reset(down[1]);
    from_program_.reset(up[0]);
    environment_.set(env_pipes, std::to_string(down[0]) + "," + std::to_string(up[1]));
    thread_ = std::thread([this] { run(); });
  }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;
  ~FakeKernel() {
    die();
    BOOST_TEST(violations_ == 0u);
  }

  // Both pipes close, and nothing is answered any more.
  void die() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard hold(lock_);
      stopped_ = true;
    }
    thread_.join();
    to_program_.reset();
    from_program_.reset();
  }

  // How many bytes of a write the network takes in a turn: 0 holds all of them back.
  void set_pace(std::uint64_t bytes) {
    change([&] { pace_ = bytes; });
  }
  // Lets the network take so many bytes of the oldest write at once.
  void take_from_oldest(std::uint64_t bytes) {
    change([&] { advance(writes_.front(), bytes); });
  }
  void set_unknown_peer(int rank) {
    change([&] { departed_ = rank; });
  }
  void send(Message message) {
    change([&] { arrive(std::move(message)); });
  }

  std::vector<Message> sent() {
    const std::lock_guard hold(lock_);
    return sent_;
  }
  // So much of a message is there, at its two ends and between them, for the read that it matches; send()
  // brings it whole.
  void begin(const Message& message, std::uint64_t front, std::uint64_t back, protocol::Span between = {}) {
    change([&] {
      const auto found = std::find_if(reads_.begin(), reads_.end(),
                                      [&](const Read& read) { return matches(read.request, message); });
      check(found != reads_.end());
      const std::uint64_t total = message.bytes.size(), id = found->request.id;
      for (std::uint64_t at = 0; at < std::min(total, found->request.length); ++at)
        if (at < front || at >= total - back || (at >= between.low && at < between.high))
          *resolve(found->memory, at) = message.bytes[at];
      name(id, message);
      auto& shared = operation(id);
      shared.front.store(front, std::memory_order_release);
      shared.back.store(back, std::memory_order_release);
      shared.error.store(shm::between_word({&between, 1}, found->request.length), std::memory_order_release);
      shared.state.store(shm::state_word(shm::generation_of(id), shm::Phase::begun),
                         std::memory_order_release);
      if (control_->header.program_watching.load(std::memory_order_relaxed) != 0) complete_one();
    });
  }
  // A kernel's table of segments is full sooner.
  void set_most_segments(std::size_t most) {
    change([&] { most_segments_ = most; });
  }
  // And has no memory for more blocks of a program's tables.
  void set_most_blocks(unsigned most) {
    change([&] { most_blocks_ = most; });
  }
  std::uint64_t maps() {
    const std::lock_guard hold(lock_);
    return maps_;
  }
  std::size_t segments() {
    const std::lock_guard hold(lock_);
    return segments_.size();
  }
  unsigned hand_overs() {
    const std::lock_guard hold(lock_);
    return hand_overs_;
  }
  std::uint64_t requests() {
    const std::lock_guard hold(lock_);
    return head_;
  }
  bool left() {
    const std::lock_guard hold(lock_);
    return left_;
  }
  [[nodiscard]] int abort_status_now() const { return abort_status_; } // inside await
  shm::Control& control() { return *control_; }

  // Until the kernel has seen what the test waits for.
  template <class Condition> void await(const Condition& condition) {
    std::unique_lock hold(lock_);
    changed_.wait(hold, condition);
  }
  [[nodiscard]] std::uint64_t requests_now() const { return head_; }              // inside await
  [[nodiscard]] std::size_t writes_in_progress() const { return writes_.size(); } // inside await
  [[nodiscard]] std::size_t reads_posted() const { return reads_.size(); }        // inside await

private:
  using Memory = std::vector<shm::Piece>; // in the program's addresses

  struct Write {
    shm::Request request;
    Memory memory = {};            // of the program
    Memory moved = {};             // what a hand-over named instead
    std::uint64_t moved_begin = 0; // of the message
    std::uint64_t taken = 0;       // bytes that the network has
    std::string bytes = {};
  };
  struct Read {
    shm::Request request;
    Memory memory = {};
  };

  template <class Change> void change(const Change& make) {
    const std::lock_guard hold(lock_);
    make();
    if (control_) ring();
    changed_.notify_all();
  }

  void run() {
    if (!attach()) return;
    std::unique_lock hold(lock_);
    while (!stopped_) {
      const bool worked = turn();
      changed_.notify_all();
      ring();
      hold.unlock();
      if (!worked) rest();
      hold.lock();
    }
  }

  bool attach() {
    shm::Attach attach{};
    for (;;) {
      const ssize_t got = read(from_program_.get(), &attach, sizeof attach);
      if (got == sizeof attach) break;
      if (got >= 0) return false;
      const std::lock_guard hold(lock_);
      if (stopped_) return false;
      sched_yield();
    }
    auto segment = shm::Segment::attach(attach.shmid, attach.bytes);
    shm::Welcome welcome{};
    welcome.magic = shm::attach_magic;
    welcome.version = version_;
    welcome.rank = 0;
    welcome.size = size_;
    welcome.copy_ns_per_kib = 50;
    welcome.area = -1;
    std::strcpy(welcome.host, "testhost");
    const std::lock_guard hold(lock_);
    control_segment_ = std::move(segment.value());
    control_ = reinterpret_cast<shm::Control*>(control_segment_.data());
    tables_.emplace(*control_);
    check(control_->header.version.load(std::memory_order_acquire) == shm::layout_version);
    check(control_->header.magic == shm::control_magic);
    return write(to_program_.get(), &welcome, sizeof welcome) == sizeof welcome;
  }

  bool turn() {
    auto& header = control_->header;
    bool worked = false;
    for (const auto tail = header.request_tail.load(std::memory_order_acquire); head_ != tail;
         worked = true) {
      const shm::Request request = control_->requests[head_ % shm::request_slots];
      header.request_head.store(++head_, std::memory_order_release);
      handle(request);
    }
    if (!writes_.empty() && pace_ != 0) {
      worked = true;
      advance(writes_.front(), pace_);
    }
    return worked;
  }

  void rest() {
    auto& header = control_->header;
    if (header.program_spinning.load(std::memory_order_relaxed) != 0) {
      sched_yield();
      return;
    }
    shm::announce_sleep(header.kernel_asleep);
    if (header.request_tail.load(std::memory_order_acquire) == head_) {
      // A test's change has no descriptor to wake poll with, so its bound is short.
      pollfd end{.fd = from_program_.get(), .events = POLLIN, .revents = 0};
      poll(&end, 1, 1);
      char bells[512];
      (void)!read(from_program_.get(), bells, sizeof bells);
    }
    shm::announce_awake(header.kernel_asleep);
  }

  void handle(const shm::Request& request) {
    check(!left_); // nothing may follow that
    switch (request.kind) {
    case shm::RequestKind::write: return start_write(request);
    case shm::RequestKind::read: return start_read(request);
    case shm::RequestKind::probe: return start_probe(request);
    case shm::RequestKind::cancel: return cancel(request.id);
    case shm::RequestKind::hand_over: return hand_over(request);
    case shm::RequestKind::map: {
      check(shm::slot_of(request.id) == shm::control_slot);
      const bool over_another = std::any_of(lengths_.begin(), lengths_.end(), [&](const auto& each) {
        return request.address < each.first + each.second && each.first < request.address + request.length;
      });
      if (over_another || segments_.size() >= most_segments_) return finish(request.id, PARC_ENOMEM);
      ++maps_;
      auto segment = shm::Segment::attach(static_cast<int>(request.attached.segment), request.length);
      const bool attached = segment.has_value();
      if (attached) segments_.emplace(request.address, std::move(segment.value()));
      if (attached) lengths_.emplace(request.address, request.length);
      return finish(request.id, attached ? PARC_OK : PARC_ENOMEM);
    }
    case shm::RequestKind::grow: return grow(request);
    case shm::RequestKind::unmap:
      check(segments_.erase(request.address) == 1 && lengths_.erase(request.address) == 1);
      return finish(request.id, PARC_OK);
    case shm::RequestKind::address_of:
    case shm::RequestKind::add_peer: return finish(request.id, PARC_EPEER); // it knows nobody else
    case shm::RequestKind::spawn:
    case shm::RequestKind::signal:
    case shm::RequestKind::exit_of: return finish(request.id, PARC_EINVAL); // and starts nothing
    case shm::RequestKind::expose:
    case shm::RequestKind::unexpose: return finish(request.id, PARC_OK);
    case shm::RequestKind::attach_window: return finish(request.id, PARC_EPLACE); // likewise
    case shm::RequestKind::leave_window: return;
    case shm::RequestKind::get:
    case shm::RequestKind::put:
    case shm::RequestKind::atomic: return finish(request.id, PARC_EPLACE); // it has no windows
    case shm::RequestKind::release: return;                                // nothing leaves this kernel
    case shm::RequestKind::leave: return leave(request.id);
    case shm::RequestKind::abort: abort_status_ = static_cast<int>(request.aborted.status); return;
    case shm::RequestKind::unplace: return finish(request.id, PARC_EINVAL); // none waits long enough
    case shm::RequestKind::place:                                           // all reads have memory
    case shm::RequestKind::neighbour:                                       // it has given no letterbox
    case shm::RequestKind::bell:
    case shm::RequestKind::withdraw:
    case shm::RequestKind::unread:
    case shm::RequestKind::none: break;
    }
    check(false);
  }

  void grow(const shm::Request& request) {
    const unsigned number = tables_->blocks() + 1;
    check(shm::is_control(shm::slot_of(request.id)) && request.attached.block == number &&
          request.length == shm::bytes_of_block(number));
    if (number > most_blocks_) return finish(request.id, PARC_ENOMEM);
    auto block = shm::Segment::attach(static_cast<int>(request.attached.segment), request.length);
    check(block.has_value());
    tables_->add(blocks_.emplace_back(std::move(block.value())).data());
    finish(request.id, PARC_OK);
  }

  void leave(std::uint64_t id) {
    left_ = true;
    for (; !reads_.empty(); reads_.pop_front()) finish(reads_.front().request.id, PARC_ECANCELED);
    for (; !probes_.empty(); probes_.pop_front()) finish(probes_.front().id, PARC_ECANCELED);
    finish(id, PARC_OK);
  }

  void start_write(const shm::Request& request) {
    check(tables_->has(shm::slot_of(request.id)) && shm::is_write(shm::slot_of(request.id)));
    if (request.peer == departed_) return finish(request.id, PARC_EPEER);
    Write write{.request = request, .memory = memory_of(request)};
    write.bytes.resize(request.length);
    if (pace_ == all_at_once && writes_.empty())
      deliver(std::move(write), true);
    else
      writes_.push_back(std::move(write));
  }

  void start_read(const shm::Request& request) {
    check(tables_->has(shm::slot_of(request.id)) && shm::is_read(shm::slot_of(request.id)));
    const auto found =
        std::find_if(pool_.begin(), pool_.end(), [&](const Message& m) { return matches(request, m); });
    if (found == pool_.end()) {
      reads_.push_back({request, memory_of(request)});
      return;
    }
    const Message message = std::move(*found);
    pool_.erase(found);
    count_pool();
    fill({request, memory_of(request)}, message);
  }

  void start_probe(const shm::Request& request) {
    check(tables_->has(shm::slot_of(request.id)) && shm::is_read(shm::slot_of(request.id)));
    const auto found =
        std::find_if(pool_.begin(), pool_.end(), [&](const Message& m) { return matches(request, m); });
    if (found != pool_.end()) return describe(request.id, *found, PARC_OK);
    if (has(request.flags, protocol::MessageFlags::no_wait))
      return describe(request.id, {.source = PARC_ANY_SOURCE, .bytes = {}}, PARC_OK);
    probes_.push_back(request);
  }

  void cancel(std::uint64_t id) {
    if (std::erase_if(probes_, [&](const shm::Request& p) { return p.id == id; }) != 0)
      return finish(id, PARC_ECANCELED);
    const auto found =
        std::find_if(reads_.begin(), reads_.end(), [&](const Read& r) { return r.request.id == id; });
    if (found == reads_.end()) return;
    reads_.erase(found);
    finish(id, PARC_ECANCELED);
  }

  void hand_over(const shm::Request& request) {
    const auto found = std::find_if(writes_.begin(), writes_.end(),
                                    [&](const Write& w) { return w.request.id == request.id; });
    if (found == writes_.end()) return;
    ++hand_overs_;
    const bool low = has(request.flags, protocol::MessageFlags::from_end);
    const std::uint64_t border = request.handed.border;
    const auto total = found->request.length;
    check(low ? request.length == border : request.length == total - border);
    // What is not replaced has been acknowledged.
    check(low ? border >= total - found->taken : border <= found->taken);
    found->moved = {{request.address, request.length}};
    found->moved_begin = low ? 0 : border;
    operation(request.id).handed_or_data.store(shm::generation_of(request.id), std::memory_order_release);
    complete_one();
  }

  // The network takes bytes in the message's direction, from where they lie at that moment.
  void advance(Write& write, std::uint64_t bytes) {
    const auto total = write.request.length;
    const bool from_end = has(write.request.flags, protocol::MessageFlags::from_end);
    const auto part = std::min(bytes, total - write.taken);
    const auto begin = from_end ? total - write.taken - part : write.taken;
    for (auto at = begin; at < begin + part; ++at) write.bytes[at] = *byte_of(write, at);
    write.taken += part;
    auto& shared = operation(write.request.id);
    (from_end ? shared.back : shared.front).store(write.taken, std::memory_order_release);
    if (write.taken < total) return;
    Write whole = std::move(write);
    writes_.pop_front();
    deliver(std::move(whole), false);
  }

  void deliver(Write write, bool at_once) {
    if (at_once)
      for (std::uint64_t at = 0; at < write.bytes.size(); ++at) write.bytes[at] = *byte_of(write, at);
    const auto request = write.request;
    Message message{.source = 0,
                    .tag = shm::tag_in(request.write.tag),
                    .context = shm::context_in(request.write.tag),
                    .bytes = std::move(write.bytes)};
    if (request.peer == 0) {
      arrive(std::move(message));
    } else {
      message.source = request.peer; // whom it went to
      sent_.push_back(std::move(message));
    }
    finish(request.id, PARC_OK);
  }

  void arrive(Message message) {
    const auto probe = std::find_if(probes_.begin(), probes_.end(),
                                    [&](const shm::Request& p) { return matches(p, message); });
    if (probe != probes_.end()) {
      describe(probe->id, message, PARC_OK);
      probes_.erase(probe);
    }
    const auto found = std::find_if(reads_.begin(), reads_.end(),
                                    [&](const Read& r) { return matches(r.request, message); });
    if (found == reads_.end()) {
      pool_.push_back(std::move(message));
      count_pool();
      return;
    }
    const Read read = std::move(*found);
    reads_.erase(found);
    fill(read, message);
  }

  void count_pool() { control_->header.kernel_unread.store(pool_.size(), std::memory_order_relaxed); }

  static bool matches(const shm::Request& read, const Message& message) {
    return (read.peer == PARC_ANY_SOURCE || read.peer == message.source) &&
           ((read.read.tag ^ shm::tag_of(message.context, message.tag)) & ~read.read.ignore) == 0;
  }

  void fill(const Read& read, const Message& message) {
    const auto bytes = std::min<std::uint64_t>(message.bytes.size(), read.request.length);
    for (std::uint64_t at = 0; at < bytes; ++at) *resolve(read.memory, at) = message.bytes[at];
    operation(read.request.id).front.store(bytes, std::memory_order_release);
    describe(read.request.id, message, message.bytes.size() > read.request.length ? PARC_ETRUNCATE : PARC_OK);
  }

  void describe(std::uint64_t id, const Message& message, int error) {
    name(id, message);
    finish(id, error);
  }

  void name(std::uint64_t id, const Message& message) {
    auto& shared = operation(id);
    shared.source.store(message.source, std::memory_order_relaxed);
    shared.tag.store(shm::tag_of(message.context, message.tag), std::memory_order_relaxed);
    shared.total.store(message.bytes.size(), std::memory_order_relaxed);
  }

  void finish(std::uint64_t id, int error) {
    auto& shared = operation(id);
    const auto state = shared.state.load(std::memory_order_acquire);
    check(state == shm::state_word(shm::generation_of(id), shm::Phase::pending) ||
          state == shm::state_word(shm::generation_of(id), shm::Phase::begun));
    shared.error.store(error, std::memory_order_relaxed);
    shared.state.store(shm::state_word(shm::generation_of(id), shm::Phase::done), std::memory_order_release);
    tables_->note_finished(shm::slot_of(id)); // whether it is queued or not
    complete_one();
  }

  void complete_one() {
    control_->header.completions.fetch_add(1, std::memory_order_release);
    completed_ = true;
  }

  void ring() {
    if (!std::exchange(completed_, false) || !shm::must_ring(control_->header.program_asleep)) return;
    const std::uint64_t bell = 1;
    (void)!write(to_program_.get(), &bell, sizeof bell);
  }

  Memory memory_of(const shm::Request& request) {
    if (request.pieces == 0) return {{request.address, request.length}};
    Memory memory(request.pieces);
    std::memcpy(memory.data(), at(request.address, memory.size() * sizeof(shm::Piece)),
                memory.size() * sizeof(shm::Piece));
    std::uint64_t length = 0;
    for (const auto& piece : memory) length += piece.length;
    check(length == request.length);
    return memory;
  }

  char* byte_of(const Write& write, std::uint64_t offset) {
    const auto moved = write.moved.empty() ? 0 : write.moved.front().length;
    if (offset - write.moved_begin < moved) return resolve(write.moved, offset - write.moved_begin);
    return resolve(write.memory, offset);
  }

  char* resolve(const Memory& memory, std::uint64_t offset) {
    for (const auto& piece : memory) {
      if (offset < piece.length) return at(piece.address + offset, 1);
      offset -= piece.length;
    }
    throw std::logic_error("an offset past the message");
  }

  // Through this side's own attachment: what is not mapped is a violation.
  char* at(std::uint64_t address, std::uint64_t bytes) {
    auto above = segments_.upper_bound(address);
    if (above != segments_.begin()) {
      const auto& [base, segment] = *--above;
      if (address - base <= segment.size() && bytes <= segment.size() - (address - base))
        return reinterpret_cast<char*>(segment.data()) + (address - base);
    }
    check(false);
    static std::array<char, 1 << 16> nowhere;
    return nowhere.data();
  }

  shm::Operation& operation(std::uint64_t id) { return tables_->operation(shm::slot_of(id)); }

  void check(bool kept) { violations_ += kept ? 0 : 1; }

  const int size_;
  const std::uint32_t version_;
  Environment environment_;
  Fd to_program_, from_program_;
  std::thread thread_;

  std::mutex lock_; // all below
  std::condition_variable changed_;
  bool stopped_ = false, left_ = false, completed_ = false;
  int abort_status_ = -1, departed_ = -1;
  unsigned violations_ = 0, hand_overs_ = 0;
  std::size_t most_segments_ = shm::max_segments;
  std::uint64_t maps_ = 0;
  std::uint64_t pace_ = all_at_once, head_ = 0;
  shm::Segment control_segment_;
  shm::Control* control_ = nullptr;
  std::optional<shm::Tables> tables_; // of that
  std::vector<shm::Segment> blocks_;  // of these
  unsigned most_blocks_ = shm::most_blocks;
  std::map<std::uint64_t, shm::Segment> segments_; // by the program's address
  std::map<std::uint64_t, std::uint64_t> lengths_; // of those, as the program has them
  std::deque<Write> writes_;
  std::deque<Read> reads_;
  std::deque<shm::Request> probes_;
  std::deque<Message> pool_;
  std::vector<Message> sent_;
};

} // namespace parc::test
