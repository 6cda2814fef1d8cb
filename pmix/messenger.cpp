// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/messenger.hpp"

#include <algorithm>
#include <cstring>
#include <pmix_common.h>
#include <utility>

namespace parc::pmix {
namespace {

constexpr int tag = 1;
constexpr std::size_t longest_message = 64 << 20; // a fence of thousands of ranks has some

} // namespace

Messenger::Messenger(parc_context* parc) : parc_(parc), self_(parc_rank(parc)) {
  for (std::jthread& each : reachers_)
    each = std::jthread([this](const std::stop_token& stop) { reach_all(stop); });
}

Messenger::~Messenger() = default;

// ---- Telling and asking.

void Messenger::tell(int peer, Kind kind, std::string_view body, Action taken) {
  send(peer, {.kind = kind, .status = 0, .number = 0}, body, std::move(taken));
}

void Messenger::ask(int peer, Kind kind, std::string_view body, Answer answer) {
  const std::uint64_t number = ++last_question_;
  questions_.emplace(number, Question{peer, std::move(answer)});
  send(peer, {.kind = kind, .status = 0, .number = number}, body, {});
}

void Messenger::send(int peer, const Header& header, std::string_view body, Action taken) {
  std::vector<char> message(sizeof header + body.size());
  std::memcpy(message.data(), &header, sizeof header);
  std::ranges::copy(body, message.begin() + sizeof header);
  if (peer == self_) // behind what is being done, as from others
    return post([this, message = std::move(message), taken = std::move(taken)] {
      if (taken) taken();
      received(self_, {message.data(), message.size()});
    });
  const parc_envelope envelope = parc_envelope_of(peer, 0, tag);
  const iovec piece{message.data(), message.size()};
  // A write may end before the message has left this process, unless it is synchronous.
  const unsigned flags = PARC_QUEUED | (taken ? PARC_SYNCHRONOUS : 0u);
  Write write{peer, header.kind == Kind::answer ? 0 : header.number, std::move(message), std::move(taken)};
  const parc_op started = parc_initwritev(parc_, &envelope, &piece, 1, flags);
  if (started > 0)
    writes_.emplace(started, std::move(write));
  else
    post([this, code = static_cast<int>(started), write = std::move(write)] { written(write, code); });
}

// That a server of another job has gone, the probe of its messages tells; of one's own, its kernel hears and
// ends the job.
void Messenger::written(const Write& write, int code) {
  if (code == PARC_EPEER && is_of_own_job(write.peer))
    fail_questions(write.peer);
  else if (code != PARC_OK && code != PARC_EPEER && is_of_own_job(write.peer))
    fail(code);
  else if (code != PARC_OK && write.question != 0)
    answered(write.peer, write.question, PMIX_ERR_LOST_CONNECTION, {});
  if (write.taken) write.taken();
}

void Messenger::fail(int code) {
  if (!failure_) failure_ = error(code, "cannot tell another server something: {}", parc_error_string(code));
}

void Messenger::fail_questions(int peer) {
  std::vector<Answer> unanswered;
  std::erase_if(questions_, [&](auto& each) {
    if (each.second.peer != peer) return false;
    unanswered.push_back(std::move(each.second.answer));
    return true;
  });
  for (const Answer& each : unanswered) each(PMIX_ERR_LOST_CONNECTION, {});
}

// Those of whose messages none is being read any more.
void Messenger::lose_departed() {
  for (const int peer : std::set(departed_)) {
    if (std::ranges::any_of(reads_, [peer](const auto& read) { return read.second.from == peer; })) continue;
    departed_.erase(peer);
    watched_.erase(peer);
    fail_questions(peer);
    if (lost_) lost_(peer);
  }
}

void Messenger::received(int from, std::string_view message) {
  Header header{};
  if (message.size() < sizeof header) return;
  std::memcpy(&header, message.data(), sizeof header);
  const std::string_view body = message.substr(sizeof header);
  if (header.kind == Kind::answer) return answered(from, header.number, header.status, std::string(body));
  const auto kind = static_cast<std::size_t>(header.kind);
  if (kind >= kinds || !handlers_[kind]) return;
  const Answer answer = [this, from, number = header.number](int status, const std::string& text) {
    if (number != 0) send(from, {.kind = Kind::answer, .status = status, .number = number}, text, {});
  };
  handlers_[kind](from, body, answer);
}

void Messenger::answered(int from, std::uint64_t number, int status, std::string body) {
  const auto found = questions_.find(number);
  if (found == questions_.end() || found->second.peer != from) return;
  const Answer answer = std::move(questions_.extract(found).mapped().answer);
  answer(status, std::move(body));
}

// ---- Servers of other jobs.

void Messenger::reach(const std::string& address, std::function<void(std::optional<int>)> reached) {
  {
    const std::lock_guard lock(mutex_);
    reaches_.push_back({address, std::move(reached)});
  }
  reaches_changed_.notify_one();
}

void Messenger::reach_all(const std::stop_token& stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!reaches_changed_.wait(lock, stop, [this] { return !reaches_.empty(); })) return;
    const Reach next = std::move(reaches_.front());
    reaches_.pop_front();
    lock.unlock();
    const int peer = parc_add_peer(parc_, next.address.c_str());
    post([this, peer, reached = next.reached] {
      if (peer >= 0) watch(peer);
      reached(peer >= 0 ? std::optional(peer) : std::nullopt);
    });
  }
}

// A probe of its messages alone fails when it has gone and they are read.
void Messenger::watch(int peer) {
  if (peer < parc_size(parc_) || !watched_.insert(peer).second) return;
  if (!probe(peer)) departed_.insert(peer);
}

// ---- As messages.

Result<void> Messenger::probe(int source) {
  const parc_envelope envelope = parc_envelope_of(source, 0, tag);
  const parc_op probe = parc_initprobe(parc_, &envelope, PARC_CLAIM | PARC_QUEUED);
  if (probe < 0) return error(static_cast<int>(probe), "{}", parc_error_detail());
  probes_.emplace(probe, source);
  return success();
}

Result<void> Messenger::probed(int source, const parc_completion& completion) {
  if (completion.status.error == PARC_EPEER) {
    // Where it is all others of this job that have gone, this job ends, and their kernels say why.
    if (source != PARC_ANY_SOURCE) departed_.insert(source);
    return success();
  }
  if (completion.status.error != PARC_OK)
    return error(completion.status.error, "{}", parc_error_string(completion.status.error));
  const bool is_too_long = completion.status.length > longest_message;
  std::vector<char> message(is_too_long ? 0 : completion.status.length);
  const iovec piece{message.data(), message.size()};
  const parc_op read =
      parc_initread_claimed(parc_, completion.operation, &piece, is_too_long ? 0 : 1, PARC_QUEUED);
  if (read < 0) return error(static_cast<int>(read), "{}", parc_error_detail());
  reads_.emplace(read, Read{completion.status.source, std::move(message), is_too_long});
  return probe(source);
}

Result<void> Messenger::completed(const parc_completion& completion) {
  if (const auto write = writes_.extract(completion.operation)) {
    written(write.mapped(), completion.status.error);
    return success();
  }
  if (const auto read = reads_.extract(completion.operation)) {
    const Read& what = read.mapped();
    if (completion.status.error == PARC_OK && !what.is_too_long)
      received(what.from, {what.message.data(), what.message.size()});
    else if (!what.is_too_long && is_of_own_job(what.from) && completion.status.error != PARC_EPEER)
      fail(completion.status.error);
    return success();
  }
  if (const auto probe = probes_.extract(completion.operation)) return probed(probe.mapped(), completion);
  return success();
}

// ---- The thread.

void Messenger::post(Action action) {
  {
    const std::lock_guard lock(mutex_);
    actions_.push_back(std::move(action));
  }
  parc_wake(parc_);
}

void Messenger::at(Clock::time_point when, Action action) {
  timers_.emplace(when, std::move(action));
}

double Messenger::seconds_to_next() const {
  if (timers_.empty()) return -1;
  const std::chrono::duration<double> left = timers_.begin()->first - Clock::now();
  return std::max(left.count(), 0.0);
}

void Messenger::take_actions() {
  while (!timers_.empty() && timers_.begin()->first <= Clock::now())
    timers_.extract(timers_.begin()).mapped()();
  std::vector<Action> actions;
  {
    const std::lock_guard lock(mutex_);
    actions.swap(actions_);
  }
  for (const Action& action : actions) action();
}

Result<void> Messenger::run() {
  PARC_TRY(probe(PARC_ANY_SOURCE));
  std::array<parc_completion, 64> all{};
  for (;;) {
    const double patience = departed_.empty() ? seconds_to_next() : 0;
    const int count = parc_completions(parc_, all.data(), static_cast<int>(all.size()), patience);
    if (count < 0) return error(count, "{}", parc_error_detail());
    for (int i = 0; i < count; ++i) {
      PARC_TRY(completed(all[static_cast<std::size_t>(i)]));
    }
    take_actions();
    if (static_cast<std::size_t>(count) < all.size()) lose_departed(); // else there may be more of theirs
    if (failure_) return std::move(*failure_);
  }
}

} // namespace parc::pmix
