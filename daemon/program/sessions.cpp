// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/sessions.hpp"

#include "daemon/program/session.hpp"
#include "system/core.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <utility>

namespace parc::daemon {
namespace {
// So many are always looked at. Of more, those that have asked for nothing in so many turns are not: a
// program that goes from call to call, or polls, takes a few.
constexpr std::size_t few_sessions = 16;
constexpr std::uint32_t quiet_turns = 1000;
// To map a page again takes about a microsecond: what is used every few seconds stays.
constexpr double pages_kept_s = 5;

} // namespace

Sessions::Sessions(Loop& loop, protocol::Engine& engine, Peers& peers, Settings settings, Events events)
    : loop_(loop), engine_(engine), peers_(peers), settings_(std::move(settings)),
      letterboxes_(settings_.local), events_(std::move(events)), let_go_(loop, [this] { let_go(); }) {}
Sessions::~Sessions() = default;

void Sessions::add(const Member& member, Fd from_program, Fd to_program, Ended ended) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(sessions_.size()));
    sessions_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  engine_.open(member.endpoint, number);
  numbers_[member.endpoint] = number;
  sessions_[number] =
      std::make_unique<Session>(loop_, engine_, peers_, *this, number, member, std::move(from_program),
                                std::move(to_program), std::move(ended));
}

void Sessions::add_by_hand(Fd from_program, Fd to_program) {
  const std::uint64_t endpoint = engine_.add_endpoint();
  engine_.acquaint(endpoint, engine_.add_row(endpoint, {protocol::here, endpoint})); // rank 0 of its job
  add({random_number() | 1, 0, 1, endpoint}, std::move(from_program), std::move(to_program), [](End) {});
}

Session* Sessions::of_endpoint(std::uint64_t endpoint) const {
  const auto found = numbers_.find(endpoint);
  return found == numbers_.end() ? nullptr : sessions_[found->second].get();
}

void Sessions::process_died(std::uint64_t endpoint) {
  if (Session* session = of_endpoint(endpoint)) session->process_died();
}

void Sessions::listen_to(Session& session) {
  if (session.control_ == nullptr || std::exchange(session.listened_to_, true)) return;
  session.quiet_turns_ = 0;
  listened_to_.push_back(&session);
}

void Sessions::tell(Session& session) {
  if (!std::exchange(session.telling_, true)) telling_.push_back(&session);
  changed(session);
}

bool Sessions::give_up_largest() {
  Session* largest = nullptr;
  for (const auto& each : sessions_)
    if (each != nullptr && each->attached() &&
        (largest == nullptr || each->extents_.bytes() > largest->extents_.bytes()))
      largest = each.get();
  if (largest == nullptr) return false;
  largest->broke("this kernel has no memory left (RLIMIT_AS, or the system's), and that program shares most");
  return true;
}

void Sessions::memory_used() {
  if (!std::exchange(lets_go_, true)) let_go_.set(pages_kept_s);
}

void Sessions::let_go() {
  lets_go_ = false;
  bool more = false;
  for (const auto& session : sessions_)
    if (session != nullptr) more |= session->extents_.let_go();
  if (more) memory_used();
}

void Sessions::changed(Session& session) {
  if (!std::exchange(session.unpublished_, true)) unpublished_.push_back(&session);
}

// Where programs are many, those that ask for nothing are not looked at until they ring.
std::uint64_t Sessions::take_requests() {
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < listened_to_.size();) {
    Session& session = *listened_to_[i];
    const std::uint64_t requests = session.take_requests();
    taken += requests;
    session.quiet_turns_ = requests == 0 ? session.quiet_turns_ + 1 : 0;
    if (session.quiet_turns_ > quiet_turns && listened_to_.size() > few_sessions && session.park()) {
      session.listened_to_ = false;
      listened_to_[i] = listened_to_.back();
      listened_to_.pop_back();
    } else {
      ++i;
    }
  }
  return taken;
}

bool Sessions::ring() {
  bool told = false;
  for (Session* session : telling_) {
    session->telling_ = false;
    told |= session->ring();
  }
  telling_.clear();
  return told;
}

bool Sessions::any_in_burst() const {
  return std::ranges::any_of(listened_to_, &Session::in_burst);
}

bool Sessions::any_spinning() {
  return std::ranges::any_of(listened_to_, &Session::spinning);
}

int Sessions::better_core(int here) const {
  CoreSet rests, computes;
  for (const Session* session : listened_to_) {
    const std::uint32_t word = session->core_word();
    const int core = shm::core_in(word);
    if (is_core(core)) (shm::rests_in(word) ? rests : computes).set(static_cast<std::size_t>(core));
  }
  return core_to_work_on(here, allowed_cores(), rests, computes);
}

bool Sessions::any_requests() const {
  return std::ranges::any_of(listened_to_, &Session::has_requests);
}

void Sessions::announce_sleep() {
  for (Session* session : listened_to_) session->announce_sleep();
}

void Sessions::announce_awake() {
  for (Session* session : listened_to_) session->announce_awake();
}

Session* Sessions::find(Cookie cookie) {
  return cookie.session() < sessions_.size() ? sessions_[cookie.session()].get() : nullptr;
}

void Sessions::begun(Cookie cookie, const protocol::Outcome& outcome) {
  if (Session* session = find(cookie)) session->begun(cookie, outcome);
}

void Sessions::progressed(Cookie cookie, const protocol::Progress& progress) {
  if (Session* session = find(cookie)) session->progressed(cookie, progress);
}

void Sessions::finished(Cookie cookie, const protocol::Outcome& outcome) {
  if (Session* session = find(cookie)) session->finished(cookie, outcome);
}

bool Sessions::place(std::uint64_t endpoint_cookie, const protocol::Place& place, bool acquainted,
                     protocol::Pieces& memory, std::uint64_t& hold) {
  Session* const session = endpoint_cookie < sessions_.size() ? sessions_[endpoint_cookie].get() : nullptr;
  return session != nullptr && session->place(place, acquainted, memory, hold);
}

// It is there: an endpoint is not gone before all that holds its memory is over.
void Sessions::let_go(std::uint64_t hold) {
  sessions_[hold >> 32]->let_go(hold);
}

void Sessions::departed(std::uint64_t endpoint, protocol::Departure how) {
  if (how == protocol::Departure::left)
    letterboxes_.each_unread(
        endpoint, [&](std::uint64_t sender, protocol::Space space, std::uint64_t tag, std::uint64_t length) {
          events_.unread(endpoint, {protocol::here, sender}, {.space = space, .tag = tag, .total = length});
        });
  letterboxes_.departed(endpoint, how, [this](std::uint64_t other) { tell_neighbour(other); });
  if (!numbers_.contains(endpoint)) letterboxes_.released(endpoint);
}

void Sessions::tell_neighbour(std::uint64_t endpoint) {
  Session* const session = of_endpoint(endpoint);
  if (session != nullptr && session->attached()) session->completed();
}

void Sessions::backlog_changed(std::uint64_t endpoint_cookie) {
  if (endpoint_cookie >= sessions_.size() || sessions_[endpoint_cookie] == nullptr) return;
  sessions_[endpoint_cookie]->backlog_changed();
  changed(*sessions_[endpoint_cookie]);
}

// The place is free again when the session is over and the engine is done with its memory, in whichever
// order.
void Sessions::drained(std::uint64_t endpoint_cookie) {
  loop_.after_step([this, endpoint_cookie] {
    if (endpoint_cookie >= sessions_.size() || sessions_[endpoint_cookie] == nullptr) return;
    if (sessions_[endpoint_cookie]->drained()) forget(static_cast<std::uint32_t>(endpoint_cookie));
  });
}

void Sessions::over(std::uint32_t number) {
  loop_.after_step([this, number] { forget(number); });
}

void Sessions::forget(std::uint32_t number) {
  Session* const session = sessions_[number].get();
  for (std::vector<Session*>* list : {&listened_to_, &telling_, &unpublished_}) std::erase(*list, session);
  const std::uint64_t endpoint = session->member().endpoint;
  numbers_.erase(endpoint);
  sessions_[number].reset();
  free_.push_back(number);
  letterboxes_.released(endpoint);
}

void Sessions::look_at(std::uint64_t endpoint, std::size_t most, RankState& state) const {
  const Session* session = of_endpoint(endpoint);
  if (session != nullptr && session->attached() && !session->left()) session->look_at(most, state);
}

void Sessions::publish(Counters& counters) {
  for (Session* session : unpublished_) {
    session->unpublished_ = false;
    if (session->attached()) session->publish(counters);
  }
  unpublished_.clear();
  counters.set(Counter::Sessions, attached_);
  counters.set(Counter::SessionsTotal, totals_.attached);
  counters.set(Counter::SessionsRefused, totals_.refused);
  counters.set(Counter::Wakes, totals_.wakes);
}

} // namespace parc::daemon
