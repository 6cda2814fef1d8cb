// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/sessions.hpp"

#include "daemon/cookie.hpp"
#include "daemon/kernel.hpp"
#include "daemon/session.hpp"
#include "shm/onlooker.hpp"

namespace parc::daemon {
namespace {
constexpr std::uint64_t operation_mask = (std::uint64_t{1} << session_number_shift) - 1;
} // namespace

Sessions::Sessions(Kernel& kernel) : kernel_(kernel) {}
Sessions::~Sessions() = default;

void Sessions::add(const Place& place, Fd from_program, Fd to_program, Ended ended) {
  std::uint32_t number = 0;
  while (number < sessions_.size() && sessions_[number] != nullptr) ++number;
  if (number == sessions_.size()) sessions_.emplace_back();
  kernel_.engine().open(place.endpoint, number);
  sessions_[number] = std::make_unique<Session>(kernel_, number, place, std::move(from_program),
                                                std::move(to_program), std::move(ended));
}

void Sessions::process_died(std::uint64_t job, std::int32_t rank) {
  for (const auto& session : sessions_)
    if (session != nullptr && session->place().job == job && session->place().rank == rank)
      session->process_died();
}

std::uint64_t Sessions::take_requests() {
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < sessions_.size(); ++i)
    if (sessions_[i] != nullptr) taken += sessions_[i]->take_requests();
  return taken;
}

bool Sessions::ring() {
  bool told = false;
  for (const auto& session : sessions_)
    if (session != nullptr && session->ring()) told = true;
  return told;
}

bool Sessions::any_spinning() const {
  for (const auto& session : sessions_)
    if (session != nullptr && session->spinning()) return true;
  return false;
}

bool Sessions::any_requests() const {
  for (const auto& session : sessions_)
    if (session != nullptr && session->has_requests()) return true;
  return false;
}

void Sessions::announce_sleep() {
  for (const auto& session : sessions_)
    if (session != nullptr) session->announce_sleep();
}

void Sessions::announce_awake() {
  for (const auto& session : sessions_)
    if (session != nullptr) session->announce_awake();
}

Session* Sessions::find(std::uint64_t cookie_rest) {
  const std::uint64_t number = cookie_rest >> session_number_shift;
  return number < sessions_.size() ? sessions_[number].get() : nullptr;
}

void Sessions::begun(std::uint64_t cookie, const protocol::Outcome& outcome) {
  if (Session* session = find(rest_of(cookie))) session->begun(rest_of(cookie) & operation_mask, outcome);
}

void Sessions::progressed(std::uint64_t cookie, const protocol::Progress& progress) {
  if (Session* session = find(rest_of(cookie)))
    session->progressed(rest_of(cookie) & operation_mask, progress);
}

void Sessions::finished(std::uint64_t cookie, const protocol::Outcome& outcome) {
  if (Session* session = find(rest_of(cookie))) session->finished(rest_of(cookie) & operation_mask, outcome);
}

// The place is free again when the session is over and the engine is done with its memory, in whichever
// order.
void Sessions::drained(std::uint64_t endpoint_cookie) {
  kernel_.after_step([this, endpoint_cookie] {
    if (endpoint_cookie >= sessions_.size() || sessions_[endpoint_cookie] == nullptr) return;
    if (sessions_[endpoint_cookie]->drained()) sessions_[endpoint_cookie].reset();
  });
}

void Sessions::over(std::uint32_t number) {
  kernel_.after_step([this, number] { sessions_[number].reset(); });
}

void Sessions::look_at(std::uint64_t job, std::int32_t rank, std::size_t most, RankState& state) const {
  for (const auto& session : sessions_)
    if (session != nullptr && session->place().job == job && session->place().rank == rank &&
        session->attached() && !session->left())
      shm::look_at(*session->control(), most, state);
}

void Sessions::publish(Counters& counters) {
  std::uint64_t attached = 0;
  for (const auto& session : sessions_) {
    if (session == nullptr || !session->attached()) continue;
    ++attached;
    session->publish(counters);
  }
  counters.set(Counter::Sessions, attached);
  counters.set(Counter::SessionsTotal, totals_.attached);
  counters.set(Counter::SessionsRefused, totals_.refused);
  counters.set(Counter::Wakes, totals_.wakes);
}

} // namespace parc::daemon
