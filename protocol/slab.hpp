// SPDX-License-Identifier: BSD-3-Clause
// Objects at stable addresses, named by handles that never name a later object in the same place: the low
// half of a handle is the place, the high half counts its uses in 31 bits (the top bit is the caller's). No
// handle is 0. Freed places are used again before new memory is taken, so a steady load allocates nothing.
#pragma once

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
      free_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Place& place = places_[index];
    place.object.emplace(std::forward<Args>(args)...);
    place.uses = place.uses == last_use ? 1 : place.uses + 1;
    place.object->id = std::uint64_t{place.uses} << 32 | index;
    return *place.object;
  }

  T* find(std::uint64_t id) {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= places_.size() || !places_[index].object || places_[index].object->id != id) return nullptr;
    return &*places_[index].object;
  }

  void drop(T& object) {
    const auto index = static_cast<std::uint32_t>(object.id);
    places_[index].object.reset();
    free_.push_back(index);
  }

  // Every live object; `use` may drop the one it is given.
  template <class Use> void each(Use use) {
    for (Place& place : places_)
      if (place.object) use(*place.object);
  }

  [[nodiscard]] std::size_t size() const { return places_.size() - free_.size(); }

private:
  static constexpr std::uint32_t last_use = 0x7fffffff;
  struct Place {
    std::optional<T> object;
    std::uint32_t uses = 0;
  };
  std::deque<Place> places_;
  std::vector<std::uint32_t> free_;
};

} // namespace parc::protocol
