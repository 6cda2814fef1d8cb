// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/letterboxes.hpp"

#include <algorithm>
#include <cstring>
#include <spdlog/spdlog.h>
#include <sys/mman.h>

namespace parc::daemon {
namespace {

// Where there is none, none of its cells has the stamp that is looked for.
std::uint32_t first_cell(const shm::Letterbox::OfOwner& owner, std::uint32_t queue) {
  const std::uint16_t first = owner.first_cells[queue].load(std::memory_order_acquire);
  return first != 0 ? (first - 1U) % shm::letterbox_cells : 0;
}

} // namespace

const Letterboxes::Box* Letterboxes::open(std::uint64_t endpoint) {
  if (const Owned* box = owned(endpoint)) return box;
  if (!progress_) return nullptr;
  free_drained();
  if (free_.empty() && !add_area()) return nullptr;
  auto box = std::make_unique<Owned>();
  static_cast<Box&>(*box) = free_.back();
  free_.pop_back();
  box->endpoint = endpoint;
  box->memory->kernel.progress = *progress_;
  return boxes_.emplace(endpoint, std::move(box)).first->second.get();
}

const Letterboxes::Box* Letterboxes::find(std::uint64_t endpoint) const {
  return owned(endpoint);
}

Letterboxes::Owned* Letterboxes::owned(std::uint64_t endpoint) const {
  const auto found = boxes_.find(endpoint);
  return found == boxes_.end() ? nullptr : found->second.get();
}

bool Letterboxes::add_area() {
  if (full_) return false;
  auto area = shm::Segment::create_sparse(shm::area_bytes);
  if (!area) {
    full_ = true;
    spdlog::warn("programs of this host exchange messages through their kernel: {}", area.error().text);
    return false;
  }
  auto* const boxes = reinterpret_cast<shm::Letterbox*>(area.value().data());
  const auto first = static_cast<std::uint32_t>(areas_.size()) * shm::area_letterboxes;
  for (std::uint32_t i = shm::area_letterboxes; i-- > 0;)
    free_.push_back({{first + i, area.value().id()}, boxes + i});
  areas_.push_back(std::move(area).value());
  return true;
}

std::int32_t Letterboxes::connect(std::uint64_t sender, std::uint64_t receiver, std::int32_t row) {
  if (open(sender) == nullptr || open(receiver) == nullptr) return -1;
  Owned &from = *owned(sender), &to = *owned(receiver);
  const auto known = std::ranges::find(from.receivers, receiver, &QueueEnd::other);
  if (known != from.receivers.end()) return static_cast<std::int32_t>(known - from.receivers.begin());
  const auto queue = static_cast<std::uint32_t>(from.receivers.size());
  const auto place = static_cast<std::uint32_t>(to.senders.size());
  if (from.departed || to.departed || queue == shm::max_neighbours || place == shm::max_neighbours) return -1;
  from.receivers.push_back({receiver, place});
  to.senders.push_back({sender, queue});
  shm::ReceiverEntry& there = from.memory->kernel.to[queue];
  there.at = to.place;
  there.sender = place;
  shm::SenderEntry& here = to.memory->kernel.from[place];
  here.at = from.place;
  here.queue = queue;
  here.row = row;
  to.memory->kernel.senders.store(place + 1, std::memory_order_release);
  return static_cast<std::int32_t>(queue);
}

void Letterboxes::each_unread(std::uint64_t endpoint, const Unread& of) const {
  const Owned* const box = owned(endpoint);
  if (box == nullptr) return;
  for (std::size_t place = 0; place < box->senders.size(); ++place) {
    const auto& [sender, queue] = box->senders[place];
    const Owned* const from = owned(sender);
    const std::uint64_t drained = box->memory->owner.drained[place].load(std::memory_order_acquire);
    if (from == nullptr || drained == shm::drained_for_good) continue;
    const shm::Letterbox::OfOwner& owner = from->memory->owner;
    std::uint64_t count = shm::count_in(drained);
    std::uint32_t number = count != 0 ? shm::cell_in(drained) : first_cell(owner, queue);
    for (std::uint32_t i = 0; i < shm::most_published; ++i, ++count) {
      const shm::StampedCell& stamped = owner.cells[number];
      if (stamped.stamp.load(std::memory_order_acquire) != shm::stamp_of(queue, count)) break;
      const shm::Cell cell = shm::copy_of(stamped.cell);
      number = cell.next % shm::letterbox_cells;
      const std::uint64_t generation = shm::generation_of(shm::rendezvous_in(cell).write);
      if (cell.kind == shm::CellKind::fragment) continue; // its read has it
      if (cell.kind == shm::CellKind::rendezvous &&
          shm::offer_of(cell, from->memory->all.offers) == shm::offer_word(generation, shm::Offer::withdrawn))
        continue;
      of(sender, cell.space, cell.tag, shm::length_of(cell));
    }
  }
}

void Letterboxes::departed(std::uint64_t endpoint, protocol::Departure how,
                           const std::function<void(std::uint64_t)>& tell) {
  Owned* const box = owned(endpoint);
  if (box == nullptr || std::exchange(box->departed, true)) return;
  const auto word = static_cast<std::uint32_t>(how);
  const auto changed = [&](Owned& other) {
    other.memory->kernel.changes.fetch_add(1, std::memory_order_release);
    tell(other.endpoint);
  };
  for (const QueueEnd& to : box->receivers)
    if (Owned* const other = owned(to.other)) {
      other->memory->kernel.from[to.place].departed.store(word, std::memory_order_release);
      changed(*other);
    }
  for (const QueueEnd& from : box->senders)
    if (Owned* const other = owned(from.other)) {
      other->memory->kernel.to[from.place].departed.store(word, std::memory_order_release);
      changed(*other);
    }
  departed_.push_back(endpoint);
}

// Where all have gone, their memory goes back to the system.
void Letterboxes::released(std::uint64_t endpoint) {
  if (Owned* const box = owned(endpoint)) box->released = true;
  if (std::ranges::all_of(boxes_,
                          [](const auto& each) { return each.second->departed && each.second->released; }))
    clear();
}

void Letterboxes::clear() {
  full_ = false;
  boxes_.clear();
  departed_.clear();
  free_.clear();
  areas_.clear();
}

// Nobody looks at it any more: those to whom its owner has sent, and who have sent to it, have gone, too, or
// have said so.
bool Letterboxes::is_drained(const Owned& box) const {
  const auto has_left = [this](const QueueEnd& from) {
    const Owned* const other = owned(from.other);
    return other == nullptr || other->departed ||
           other->memory->owner.left[from.place].load(std::memory_order_acquire) != 0;
  };
  return box.released && std::ranges::all_of(box.senders, has_left) &&
         std::ranges::all_of(box.receivers, [this](const QueueEnd& to) {
           const Owned* const other = owned(to.other);
           return other == nullptr || other->departed ||
                  other->memory->owner.drained[to.place].load(std::memory_order_acquire) ==
                      shm::drained_for_good;
         });
}

void Letterboxes::free_drained() {
  std::erase_if(departed_, [this](std::uint64_t endpoint) {
    Owned& box = *owned(endpoint);
    if (!is_drained(box)) return false;
    // Its pages go back to the system; they are zeroed when they come again.
    if (madvise(box.memory, sizeof *box.memory, MADV_REMOVE) == 0)
      free_.push_back(box);
    else
      spdlog::warn("cannot free a letterbox: {}", std::strerror(errno));
    boxes_.erase(endpoint);
    return true;
  });
}

} // namespace parc::daemon
