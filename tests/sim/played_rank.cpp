// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/played_rank.hpp"

#include "include/parc/parc.h"
#include "tests/sim/violation.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/shm.h>
#include <unistd.h>
#include <utility>

namespace parc::sim {
namespace {

constexpr int status_of_error = 77; // of who met one in an operation

void make_pipe(Fd& read, Fd& write) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0)
    throw Violation("the simulation has no descriptors left");
  read.reset(ends[0]);
  write.reset(ends[1]);
}

} // namespace

PlayedRank::PlayedRank(const Part& part, const Place& place, std::size_t host, const Loop::Time& time,
                       std::uint64_t seed)
    : part_(part), place_(place), host_(host), time_(time), random_(seed), next_(time) {
  make_pipe(ends_.process, process_);
  make_pipe(ends_.output, output_);
  make_pipe(ends_.errors, errors_);
  make_pipe(ends_.report, report_);
  make_pipe(ends_.from_program, to_kernel_);
  make_pipe(from_kernel_, ends_.to_program);
}

std::string PlayedRank::name(const Place& place) {
  return fmt::format("rank {} of {} of job {:x}", place.rank, place.size, place.job);
}

std::string PlayedRank::state() const {
  return fmt::format("{}, at stage {}, in round {} of {}, {} of {} bytes of output written{}", name(place_),
                     static_cast<int>(stage_), round_, part_.rounds, written_.size(), part_.output,
                     waits_ ? ", waiting" : "");
}

daemon::StartedProcess PlayedRank::give_ends(pid_t id) {
  ends_.id = id;
  return std::move(ends_);
}

void PlayedRank::signal(int number) {
  if (!alive_ || (number == SIGTERM && part_.ignores_term)) return;
  signaled_ = true;
  die(0, static_cast<std::uint32_t>(number));
}

// The kernel reads how it ended from what it takes for its pidfd.
void PlayedRank::die(std::uint32_t status, std::uint32_t signal) {
  alive_ = false;
  exit_ = {status, signal};
  if (write(process_.get(), &exit_, sizeof exit_) != sizeof exit_ && errno != EPIPE)
    throw Violation("a rank could not end");
  for (Fd* end : {&process_, &output_, &errors_, &report_, &to_kernel_, &from_kernel_}) end->reset();
}

std::optional<Loop::Time> PlayedRank::wakes() const {
  return alive_ && !waits_ ? std::optional(next_) : std::nullopt;
}

bool PlayedRank::step() {
  if (!alive_ || (!waits_ && next_ > time_)) return false;
  const bool waited = std::exchange(waits_, false);
  go_on();
  if (waits_) return !waited; // it has asked for something, perhaps
  next_ = time_ + std::chrono::microseconds(random_.below(part_.slowest_us + 1));
  return true;
}

void PlayedRank::go_on() {
  if (stage_ != Stage::starting && written_.size() < part_.output && random_.one_in(2)) return write_output();
  switch (stage_) {
  case Stage::starting: return start();
  case Stage::greeting: return hear_welcome();
  case Stage::mapping:
    waits_ = !done(shm::control_slot, generation_of_map);
    if (!waits_) enter(Stage::talking);
    return;
  case Stage::talking: return talk();
  case Stage::leaving:
    waits_ = !done(shm::control_slot, generation_of_leave);
    if (!waits_) enter(Stage::ending);
    return;
  case Stage::ending: return end();
  case Stage::staying: waits_ = true; return;
  }
}

void PlayedRank::start() {
  if (part_.start == Part::Start::no_program) {
    const daemon::StartReport why{daemon::StartReport::Stage::program, ENOENT};
    (void)!write(report_.get(), &why, sizeof why);
    return die(125, 0);
  }
  report_.reset();
  if (!part_.attaches) return enter(Stage::ending);
  auto segment = shm::Segment::create_sparse(sizeof(shm::Control) + 2 * longest);
  if (!segment) throw Violation(segment.error().text);
  segment_ = std::move(segment).value();
  shm::ControlHeader& header = control().header;
  header.magic = shm::control_magic;
  header.request_slots = shm::request_slots;
  header.read_slots = shm::read_slots;
  header.write_slots = shm::write_slots;
  header.segment_bytes = sizeof(shm::Control);
  header.version.store(shm::layout_version);
  const shm::Attach hello{shm::attach_magic,
                          shm::layout_version,
                          segment_.id(),
                          sizeof(shm::Control),
                          static_cast<std::int32_t>(getpid()),
                          0};
  (void)!write(to_kernel_.get(), &hello, sizeof hello);
  enter(Stage::greeting);
}

void PlayedRank::hear_welcome() {
  const ssize_t got =
      read(from_kernel_.get(), welcome_.data() + welcome_length_, welcome_.size() - welcome_length_);
  waits_ = got < 0;
  if (got == 0) {
    saw_error_ = true;
    return die(status_of_error, 0);
  }
  if (got > 0) welcome_length_ += static_cast<std::size_t>(got);
  if (welcome_length_ < welcome_.size()) return;
  shm::Welcome welcome;
  std::memcpy(&welcome, welcome_.data(), sizeof welcome);
  if (welcome.error != PARC_OK || welcome.job != place_.job ||
      welcome.rank != static_cast<std::int32_t>(place_.rank) ||
      welcome.size != static_cast<std::int32_t>(place_.size))
    throw Violation(name(place_) + " was welcomed as another one");
  request({.kind = shm::RequestKind::map,
           .id = shm::id_of(generation_of_map, shm::control_slot),
           .address = data_at,
           .length = segment_.size(),
           .number = static_cast<std::uint64_t>(segment_.id())});
  enter(Stage::mapping);
}

void PlayedRank::request(const Asked& asked) {
  shm::Operation& op = control().operations[shm::slot_of(asked.id)];
  op.front.store(0), op.back.store(0), op.error.store(0);
  op.state.store(shm::state_word(shm::generation_of(asked.id), shm::Phase::pending));
  shm::Request made{};
  made.kind = asked.kind;
  made.peer = static_cast<std::int32_t>(asked.peer);
  made.id = asked.id;
  made.address = asked.address;
  made.length = asked.length;
  switch (asked.kind) {
  case shm::RequestKind::read: made.read.tag = asked.number; break;
  case shm::RequestKind::write: made.write.tag = asked.number; break;
  case shm::RequestKind::map: made.attached.segment = asked.number; break;
  default: made.aborted.status = asked.number;
  }
  const auto tail = control().header.request_tail.load();
  control().requests[tail % shm::request_slots] = made;
  control().header.request_tail.store(tail + 1);
}

bool PlayedRank::done(std::uint64_t slot, std::uint64_t generation) {
  return control().operations[slot].state.load() == shm::state_word(generation, shm::Phase::done);
}

std::size_t PlayedRank::length(const Place& from, unsigned round) {
  Random random(from.job + from.rank * 1000003 + round * 10007);
  return random.spread(random.one_in(4) ? longest : 3000);
}

void PlayedRank::fill(std::byte* to, const Place& from, unsigned round) {
  std::minstd_rand bytes(static_cast<std::uint32_t>(from.job) + from.rank * 31 + round * 1009);
  for (std::size_t i = 0; i < length(from, round); ++i) to[i] = static_cast<std::byte>(bytes() >> 8);
}

void PlayedRank::talk() {
  if (round_ == part_.rounds) {
    if (part_.end != Part::End::leaves) return enter(Stage::ending);
    request({.kind = shm::RequestKind::leave, .id = shm::id_of(generation_of_leave, shm::control_slot)});
    return enter(Stage::leaving);
  }
  const Place next{place_.job, (place_.rank + 1) % place_.size, place_.size};
  const Place before{place_.job, (place_.rank + place_.size - 1) % place_.size, place_.size};
  const std::uint64_t generation = round_ + 1, read_slot = round_ % 7,
                      write_slot = shm::read_slots + round_ % 5;
  const std::uint64_t address = data_at + sizeof(shm::Control);
  if (!std::exchange(asked_, true)) {
    fill(data(), place_, round_);
    std::memset(data() + longest, 0, length(before, round_));
    request({.kind = shm::RequestKind::write,
             .id = shm::id_of(generation, write_slot),
             .peer = next.rank,
             .address = address,
             .length = length(place_, round_),
             .number = round_});
    request({.kind = shm::RequestKind::read,
             .id = shm::id_of(generation, read_slot),
             .peer = before.rank,
             .address = address + longest,
             .length = length(before, round_),
             .number = round_});
  }
  waits_ = !done(read_slot, generation) || !done(write_slot, generation);
  if (waits_) return;
  for (const std::uint64_t slot : {read_slot, write_slot}) {
    if (control().operations[slot].error.load() == PARC_OK) continue;
    saw_error_ = true;
    return die(status_of_error, 0);
  }
  std::string expected(length(before, round_), '\0');
  fill(reinterpret_cast<std::byte*>(expected.data()), before, round_);
  if (control().operations[read_slot].total.load() != expected.size() ||
      std::memcmp(data() + longest, expected.data(), expected.size()) != 0)
    throw Violation(fmt::format("{} got another message than was written in round {}", name(place_), round_));
  asked_ = false;
  ++round_;
}

void PlayedRank::write_output() {
  std::string bytes(std::min(part_.output - written_.size(), 1 + random_.spread(40'000)), '\0');
  for (char& byte : bytes) byte = static_cast<char>('a' + random_.below(26));
  const ssize_t went = write(output_.get(), bytes.data(), bytes.size());
  if (went > 0) written_.append(bytes, 0, static_cast<std::size_t>(went));
  if (went < 0) part_.output = errno == EAGAIN ? part_.output : written_.size();
  waits_ = went < 0 && errno == EAGAIN;
}

void PlayedRank::end() {
  if (written_.size() < part_.output) return write_output();
  if (part_.fault != 0) return die(0, static_cast<std::uint32_t>(part_.fault));
  const bool attached = static_cast<bool>(segment_);
  if (part_.end == Part::End::stays || (part_.end == Part::End::aborts && !attached))
    return enter(Stage::staying);
  if (part_.end != Part::End::aborts) return die(static_cast<std::uint32_t>(part_.status), 0);
  aborted_ = true;
  request({.kind = shm::RequestKind::abort, .number = static_cast<std::uint64_t>(part_.status)});
  enter(Stage::staying);
}

bool PlayedRank::attached_by_kernel() const {
  if (!segment_) return false;
  shmid_ds status{};
  return shmctl(segment_.id(), IPC_STAT, &status) != 0 || status.shm_nattch != 1;
}

} // namespace parc::sim
