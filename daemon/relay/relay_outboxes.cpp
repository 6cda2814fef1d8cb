// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/relay/relay_outboxes.hpp"

#include <utility>

namespace parc::daemon {
namespace {

std::uint64_t cost_of(const kernel::RelayBytes& message) {
  return kernel::cost_of_relayed(message.payload.size());
}

} // namespace

void RelayOutboxes::send(std::int32_t link, kernel::RelayBytes message) {
  if (!post_.reaches(link)) return;
  Outbox& outbox = all_[link];
  kept_ += cost_of(message);
  ++outbox.of_each[{message.stream, message.begun != 0}];
  outbox.waiting.emplace_back(std::move(message));
  pump(link);
}

void RelayOutboxes::send(std::int32_t link, const kernel::RelayClose& message) {
  const auto outbox = all_.find(link);
  if (outbox != all_.end() && outbox->second.of_each.contains({message.stream, message.begun != 0}))
    outbox->second.waiting.emplace_back(message);
  else
    post_.send(link, message);
}

bool RelayOutboxes::has_room(std::int32_t link, const Outbox& outbox) {
  return outbox.under_way == 0 || outbox.under_way < post_.room(link);
}

bool RelayOutboxes::takes(std::int32_t link, std::uint64_t stream, bool begun_here) {
  const auto outbox = all_.find(link);
  return outbox == all_.end() || !outbox->second.of_each.contains({stream, begun_here}) ||
         has_room(link, outbox->second);
}

// A link that is broken takes nothing, and is lost in a moment.
void RelayOutboxes::pump(std::int32_t link) {
  Outbox& outbox = all_.at(link);
  while (!outbox.waiting.empty() && post_.reaches(link)) {
    if (const auto* const close = std::get_if<kernel::RelayClose>(&outbox.waiting.front())) {
      post_.send(link, *close);
    } else {
      if (!has_room(link, outbox)) return;
      const auto& bytes = std::get<kernel::RelayBytes>(outbox.waiting.front());
      const std::uint64_t cost = cost_of(bytes);
      outbox.under_way += cost;
      post_.send_and_hear(link, bytes, [this, link, cost] { taken(link, cost); });
      const auto rest = outbox.of_each.find({bytes.stream, bytes.begun != 0});
      if (--rest->second == 0) outbox.of_each.erase(rest);
    }
    outbox.waiting.pop_front();
  }
}

void RelayOutboxes::taken(std::int32_t link, std::uint64_t cost) {
  kept_ -= cost;
  const auto outbox = all_.find(link);
  if (outbox == all_.end()) return;
  outbox->second.under_way -= cost;
  pump(link);
}

void RelayOutboxes::drop(std::int32_t link, std::uint64_t stream, bool begun_here) {
  const auto outbox = all_.find(link);
  if (outbox == all_.end() || outbox->second.of_each.erase({stream, begun_here}) == 0) return;
  std::erase_if(outbox->second.waiting, [&](const auto& message) {
    const auto* const bytes = std::get_if<kernel::RelayBytes>(&message);
    if (bytes == nullptr || bytes->stream != stream || (bytes->begun != 0) != begun_here) return false;
    kept_ -= cost_of(*bytes);
    return true;
  });
}

void RelayOutboxes::link_lost(std::int32_t link) {
  const auto outbox = all_.extract(link);
  if (outbox.empty()) return;
  for (const auto& message : outbox.mapped().waiting)
    if (const auto* const bytes = std::get_if<kernel::RelayBytes>(&message)) kept_ -= cost_of(*bytes);
}

} // namespace parc::daemon
