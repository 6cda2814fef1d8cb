// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/link_streams.hpp"

#include <algorithm>
#include <cerrno>
#include <spdlog/spdlog.h>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr double tick_s = 0.1, idle_tick_s = 1;
constexpr double first_pause_s = 0.5, longest_pause_s = 30;
// What has brought nothing for three round trips while others have is dealt again; where nothing else is
// under way, later.
constexpr std::chrono::microseconds least_doubt = 200ms, least_doubt_alone = 1s;
constexpr unsigned trips_of_doubt = 3, trips_of_doubt_alone = 8;
constexpr auto longest_farewell = 2s; // of one that is not needed

} // namespace

LinkStreams::LinkStreams(Needs needs)
    : needs_(std::move(needs)), tick_(needs_.loop, [this] { tick(); }), again_(needs_.loop, [this] {
        waits_ = false;
        follow();
      }) {}

// Whoever dials now does not know what the other side was asked for.
void LinkStreams::carried(const PeerLink& first, bool dialed) {
  first_ = &first;
  dialed_ = dialed;
  asked_ = told_ = 1;
  looked_at_ = needs_.loop.now();
  follow();
}

void LinkStreams::began(PeerLink& subflow) {
  subflows_.push_back({.connection = &subflow, .moved_at = needs_.loop.now()});
  pause_s_ = 0;
}

void LinkStreams::closed(const PeerLink& subflow) {
  needs_.engine.drop_subflow(needs_.link, subflow.subflow());
  std::erase_if(subflows_, [&](const Subflow& each) { return each.connection == &subflow; });
  if (first_ != nullptr && !waits_) {
    waits_ = true;
    again_.set(first_pause_s);
  }
}

void LinkStreams::end() {
  first_ = nullptr;
  tick_.cancel();
  again_.cancel();
  for (const std::vector<Subflow> all = subflows_; const Subflow& each : all)
    each.connection->close(error(ESHUTDOWN, "its link has ended"));
}

void LinkStreams::dial_ended(const Error& why) {
  --dialing_;
  if (why.code == 0 || waits_) return;
  spdlog::debug("no more streams for now: {}", why.text);
  pause_s_ = std::clamp(2 * pause_s_, first_pause_s, longest_pause_s);
  waits_ = true;
  again_.set(pause_s_);
}

void LinkStreams::asked(unsigned count) {
  asked_ = std::clamp(count, 1u, StreamCount::most);
  spdlog::debug("the other side asks for {} streams", count);
  follow();
}

// No timer runs on a short path, nor while nothing is under way.
void LinkStreams::sent() {
  if (ticks_ || first_ == nullptr) return;
  if (subflows_.empty() && (needs_.fixed != 0 || first_->lowest_rtt_us() < StreamCount::short_path_us))
    return;
  ticks_ = true;
  looked_at_ = needs_.loop.now();
  tick_.set(tick_s);
}

void LinkStreams::tick() {
  ticks_ = false;
  const protocol::Link& link = needs_.engine.link(needs_.link);
  if (!link.open) return;
  const Loop::Time now = needs_.loop.now();
  look_at_subflows(link, now);
  count_streams(link, now);
  follow();
  const std::uint64_t moved = link.bytes_in + link.bytes_out;
  const bool waits = std::ranges::any_of(subflows_, [&](const Subflow& each) {
    const protocol::Subflow& known = *link.subflow(each.connection->subflow());
    return each.retired ||
           (known.use == protocol::Subflow::Use::used && known.sequence != known.acknowledged);
  });
  const bool active = std::exchange(bytes_moved_, moved) != moved || waits;
  looked_at_ = now;
  if (!active && (needs_.fixed != 0 || subflows_.empty())) return;
  ticks_ = true;
  tick_.set(active ? tick_s : idle_tick_s);
}

bool LinkStreams::is_over(const Subflow& subflow, const protocol::Link& link, Loop::Time now) const {
  if (subflow.connection->path() == PeerLink::Path::seems_dead) return true;
  if (!subflow.retired) return false;
  const protocol::Subflow& known = *link.subflow(subflow.connection->subflow());
  const bool quiet =
      known.log.size() == 0 && known.received == known.received_told && known.carrier.due.empty();
  return quiet || now - subflow.retired_at > longest_farewell;
}

// One whose path seems dead is as good as closed: what it has not brought goes by others at once.
void LinkStreams::look_at_subflows(const protocol::Link& link, Loop::Time now) {
  if (std::exchange(first_acknowledged_, link.acknowledged) != link.acknowledged) first_moved_at_ = now;
  Loop::Time last_moved = first_moved_at_;
  for (Subflow& each : subflows_) {
    const protocol::Subflow& known = *link.subflow(each.connection->subflow());
    const bool moved = std::exchange(each.acknowledged, known.acknowledged) != known.acknowledged;
    if (moved) last_moved = now;
    if (moved || known.sequence == known.acknowledged) each.moved_at = now;
  }
  std::vector<PeerLink*> over;
  for (const Subflow& each : subflows_) {
    const bool alone = last_moved <= each.moved_at;
    const std::chrono::microseconds trip(each.connection->rtt_us());
    const auto patience = alone ? std::max(least_doubt_alone, trips_of_doubt_alone * trip)
                                : std::max(least_doubt, trips_of_doubt * trip);
    if (is_over(each, link, now))
      over.push_back(each.connection);
    else if (now - each.moved_at > patience)
      needs_.engine.doubt_subflow(needs_.link, each.connection->subflow());
  }
  for (PeerLink* connection : over) connection->close(error(ETIMEDOUT, "it is not needed, or dead"));
}

void LinkStreams::count_streams(const protocol::Link& link, Loop::Time now) {
  if (needs_.fixed != 0 || first_ == nullptr) return;
  count_.take({.seconds = std::chrono::duration<double>(now - looked_at_).count(),
               .bytes = link.bytes_acknowledged - bytes_acknowledged_,
               .backlog = !link.asked.empty() || !link.ready.empty(),
               .rtt_us = first_->lowest_rtt_us(),
               .streams = count()});
  bytes_acknowledged_ = link.bytes_acknowledged;
}

void LinkStreams::follow() {
  if (first_ == nullptr || first_->way() != LinkWay::Direct) return;
  const unsigned wanted = needs_.fixed != 0 ? needs_.fixed : count_.wanted();
  if (!dialed_) {
    if (std::exchange(told_, wanted) == wanted) return;
    spdlog::debug("asking for {} streams", wanted);
    return needs_.ask(wanted);
  }
  const unsigned all = std::max(wanted, asked_);
  for (; !waits_ && count() + dialing_ < all; ++dialing_) needs_.dial();
  if (count() > all) retire(count() - all);
}

void LinkStreams::retire(std::size_t extra) {
  for (std::size_t i = subflows_.size(); i != 0 && extra != 0; --i, --extra) {
    Subflow& each = subflows_[i - 1];
    if (std::exchange(each.retired, true)) continue;
    each.retired_at = needs_.loop.now();
    needs_.engine.retire_subflow(needs_.link, each.connection->subflow());
  }
  sent();
}

} // namespace parc::daemon
