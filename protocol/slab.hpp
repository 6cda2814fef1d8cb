// SPDX-License-Identifier: BSD-3-Clause
// Objects at stable addresses, named by handles that never name a later object in the same place: the low
// half of a handle is the place, the high half counts its uses in 31 bits (the top bit is the caller's). No
// handle is 0. Freed places are used again before new memory is taken, so a steady load allocates nothing.
#pragma once

#include <cassert>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace parc::protocol {

template <class T> class Slab {
public:
  template <class... Args> T& make(Args&&... args) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& place = slots_[index];
    place.object.emplace(std::forward<Args>(args)...);
    place.uses = place.uses == last_use ? 1 : place.uses + 1;
    place.object->id = std::uint64_t{place.uses} << 32 | index;
    return *place.object;
  }

  T* find(std::uint64_t id) {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= slots_.size() || !slots_[index].object || slots_[index].object->id != id) return nullptr;
    return &*slots_[index].object;
  }

  void drop(T& object) {
    const auto index = static_cast<std::uint32_t>(object.id);
    assert(slots_[index].object);
    slots_[index].object.reset();
    free_.push_back(index);
  }

  // Every live object; `use` may drop the one it is given.
  template <class Use> void each(Use use) {
    for (Slot& place : slots_)
      if (place.object) use(*place.object);
  }

  [[nodiscard]] std::size_t size() const { return slots_.size() - free_.size(); }

private:
  static constexpr std::uint32_t last_use = 0x7fffffff;
  struct Slot {
    std::optional<T> object;
    std::uint32_t uses = 0;
  };
  std::deque<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

} // namespace parc::protocol
