// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/link_streams.hpp"

#include "control/link_messages.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <spdlog/spdlog.h>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr double tick_s = 0.1, idle_tick_s = 1;
constexpr double first_retry_s = 0.5, longest_retry_s = 30;
constexpr auto short_life = 5s;     // of one that is not worth another at once
constexpr auto longest_doubt = 10s; // then another one is better
constexpr unsigned most_dials = 4;  // at a time: the other side has room for so many strangers only
// What has brought nothing for three round trips while others have is dealt again; where nothing else is
// under way, later.
constexpr std::chrono::microseconds least_doubt = 200ms, least_doubt_alone = 1s;
constexpr unsigned trips_of_doubt = 3, trips_of_doubt_alone = 8;
constexpr std::chrono::milliseconds least_farewell = 500ms, longest_farewell = 5s; // of one not needed
static_assert(StreamCount::most == protocol::Engine::most_subflows + 1);
static_assert(StreamCount::most == control::kernel::most_streams);

} // namespace

LinkStreams::LinkStreams(Needs needs)
    : needs_(std::move(needs)), tick_(needs_.loop, [this] { tick(); }), again_(needs_.loop, [this] {
        waits_ = false;
        follow();
      }) {}

// What was asked for holds: the session goes on, and who asks tells of changes. Who dials now and did not
// before has not been asked yet: what there is serves somebody.
void LinkStreams::carried(const PeerLink& first, bool dialed) {
  first_ = &first;
  if (dialed && !dialed_) asked_ = std::max(asked_, used());
  if (!dialed && dialed_) {
    told_ = 0;
    for (Subflow& each : subflows_)
      if (each.retired_at) retire(each, false);
  }
  dialed_ = dialed;
  pause_s_ = 0;
  waits_ = false;
  again_.cancel();
  looked_at_ = needs_.loop.now();
  follow();
}

void LinkStreams::began(PeerLink& subflow) {
  subflows_.push_back({.connection = &subflow, .since = needs_.loop.now()});
}

void LinkStreams::closed(const PeerLink& subflow, const Error& why) {
  spdlog::debug("a stream ended: {}", why.text);
  const auto found = std::ranges::find(subflows_, &subflow, &Subflow::connection);
  const bool retired = found->retired_at || of(*found).peer_retired;
  const bool short_lived = needs_.loop.now() - found->since < short_life;
  needs_.engine.drop_subflow(needs_.link, subflow.subflow());
  subflows_.erase(found);
  if (!retired && !waits_) pause(short_lived);
}

const protocol::Subflow& LinkStreams::of(const Subflow& subflow) const {
  return *needs_.engine.link(needs_.link).subflow(subflow.connection->subflow());
}

// Before another one is tried.
void LinkStreams::pause(bool longer) {
  pause_s_ = longer ? std::clamp(2 * pause_s_, first_retry_s, longest_retry_s) : first_retry_s;
  waits_ = true;
  again_.set(pause_s_);
}

std::uint64_t LinkStreams::bytes_heard() const {
  return needs_.engine.link(needs_.link).bytes_in;
}

void LinkStreams::end() {
  first_ = nullptr;
  tick_.cancel();
  again_.cancel();
  for (const std::vector<Subflow> all = subflows_; const Subflow& each : all)
    each.connection->close(error(ESHUTDOWN, "its link has ended"));
}

void LinkStreams::dial_ended(const Error& why) {
  assert(dialing_ != 0);
  --dialing_;
  if (why.code == 0) return follow();
  spdlog::debug("no more streams for now: {}", why.text);
  if (!waits_) pause(true);
}

void LinkStreams::asked(unsigned count) {
  asked_ = std::clamp(count, 1u, StreamCount::most);
  spdlog::debug("the other side asks for {} streams", count);
  follow();
}

// No timer runs on a short path.
void LinkStreams::sent() {
  if (ticks_ && !ticks_slowly_) return;
  const bool may_grow =
      first_ != nullptr && needs_.fixed == 0 && first_->lowest_rtt_us() >= StreamCount::short_path_us;
  if (subflows_.empty() && !may_grow) return;
  if (!ticks_) looked_at_ = needs_.loop.now();
  ticks_ = true;
  ticks_slowly_ = false;
  tick_.set(tick_s);
}

// Slowly while nothing is under way and there are more than an idle link needs, and not at all where it has
// those for good.
void LinkStreams::tick() {
  ticks_ = ticks_slowly_ = false;
  const protocol::Link& link = needs_.engine.link(needs_.link);
  if (!link.open) return;
  const Loop::Time now = needs_.loop.now();
  look_at_subflows(link, now);
  count_streams(link, now);
  looked_at_ = now;
  if (std::ranges::any_of(subflows_, [now](const Subflow& each) { return now - each.since > short_life; }))
    pause_s_ = 0;
  follow();
  const std::uint64_t moved = link.bytes_in + link.bytes_out;
  const bool active =
      std::exchange(bytes_moved_, moved) != moved ||
      std::ranges::any_of(subflows_, [](const Subflow& each) { return each.waits || each.retired_at; });
  if (!active && (needs_.fixed != 0 || count_.wanted() == 1)) return;
  ticks_ = true;
  ticks_slowly_ = !active;
  tick_.set(active ? tick_s : idle_tick_s);
}

// The other side hears that nothing new should come, and ends what it has begun.
bool LinkStreams::is_over(const Subflow& subflow, Loop::Time now) const {
  if (subflow.doubted_since && now - *subflow.doubted_since > longest_doubt) return true;
  if (!subflow.retired_at) return false;
  const protocol::Subflow& known = of(subflow);
  const bool quiet =
      known.log.size() == 0 && known.received == known.received_told && known.carrier.due.empty();
  const std::chrono::microseconds trips(trips_of_doubt * subflow.connection->rtt_us());
  const auto farewell = now - *subflow.retired_at;
  return farewell > longest_farewell ||
         (quiet && farewell > std::max<Loop::Clock::duration>(least_farewell, trips));
}

// What one has not brought whose path seems dead goes by others at once; it may recover.
void LinkStreams::look_at_subflows(const protocol::Link& link, Loop::Time now) {
  if (std::exchange(first_acknowledged_, link.acknowledged) != link.acknowledged) first_moved_at_ = now;
  Loop::Time last_moved = first_moved_at_;
  for (Subflow& each : subflows_) {
    const protocol::Subflow& known = of(each);
    if (!known.doubted) each.doubted_since.reset();
    const bool moved = std::exchange(each.acknowledged, known.acknowledged) != known.acknowledged;
    const bool waited = std::exchange(each.waits, !known.doubted && known.sequence != known.acknowledged);
    if (moved) last_moved = now;
    if (moved || !waited) each.moved_at = now;
  }
  std::vector<PeerLink*> over;
  for (Subflow& each : subflows_) {
    const bool alone = last_moved <= each.moved_at;
    const std::chrono::microseconds trip(each.connection->rtt_us());
    const auto patience = alone ? std::max(least_doubt_alone, trips_of_doubt_alone * trip)
                                : std::max(least_doubt, trips_of_doubt * trip);
    if (is_over(each, now))
      over.push_back(each.connection);
    else if (!each.doubted_since && each.waits &&
             (now - each.moved_at > patience || each.connection->path() == PeerLink::Path::seems_dead)) {
      each.doubted_since = now;
      needs_.engine.doubt_subflow(needs_.link, each.connection->subflow());
    }
  }
  for (PeerLink* connection : over) connection->close(error(ETIMEDOUT, "it is not needed, or silent"));
}

void LinkStreams::count_streams(const protocol::Link& link, Loop::Time now) {
  const std::uint64_t bytes =
      link.bytes_acknowledged - std::exchange(bytes_acknowledged_, link.bytes_acknowledged);
  if (needs_.fixed != 0 || first_ == nullptr) return;
  count_.take({.seconds = std::chrono::duration<double>(now - looked_at_).count(),
               .bytes = bytes,
               .backlog = !link.asked.empty() || !link.ready.empty(),
               .held_up = held_up(),
               .rtt_us = first_->lowest_rtt_us(),
               .streams = used() -
                          static_cast<unsigned>(std::ranges::count_if(subflows_, [this](const Subflow& each) {
                            return !each.retired_at && of(each).peer_retired;
                          }))});
}

bool LinkStreams::held_up() const {
  return first_->held_up() ||
         std::ranges::any_of(subflows_, [](const Subflow& each) { return each.connection->held_up(); });
}

unsigned LinkStreams::used() const {
  return 1 + static_cast<unsigned>(std::ranges::count_if(
                 subflows_, [](const Subflow& each) { return !each.retired_at.has_value(); }));
}

void LinkStreams::follow() {
  if (first_ == nullptr) return;
  if (first_->way() != LinkWay::Direct) return use(1);
  const unsigned wanted = needs_.fixed != 0 ? needs_.fixed : count_.wanted();
  if (dialed_) return use(std::max(wanted, asked_));
  if (std::exchange(told_, wanted) == wanted) return;
  spdlog::debug("asking for {} streams", wanted);
  needs_.ask(wanted);
}

// Those that are about to go may stay.
void LinkStreams::use(unsigned all) {
  for (Subflow& each : subflows_)
    if (each.retired_at && used() < all) retire(each, false);
  for (auto each = subflows_.rbegin(); each != subflows_.rend(); ++each)
    if (!each->retired_at && used() > all) retire(*each, true);
  for (; !waits_ && dialing_ < most_dials && used() + dialing_ < all; ++dialing_) needs_.dial();
}

void LinkStreams::retire(Subflow& subflow, bool retired) {
  subflow.retired_at.reset();
  if (retired) subflow.retired_at = needs_.loop.now();
  needs_.engine.retire_subflow(needs_.link, subflow.connection->subflow(), retired);
  sent();
}

} // namespace parc::daemon
