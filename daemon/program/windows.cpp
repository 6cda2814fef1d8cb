// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/windows.hpp"

#include "include/parc/parc.h"

#include <algorithm>
#include <cassert>

namespace parc::daemon {

Windows::Window* Windows::find(std::uint64_t number) {
  const auto found = std::ranges::find_if(windows_, [number](const Window& each) {
    return each.stage == Window::Stage::exposed && each.number == number;
  });
  return found == windows_.end() ? nullptr : &*found;
}

std::int32_t Windows::expose(const shm::Request& request) {
  const std::uint64_t rights = request.exposed.rights;
  if (find(request.exposed.window) != nullptr || (rights & (PARC_MAY_GET | PARC_MAY_PUT)) == 0 ||
      (rights & ~std::uint64_t{PARC_MAY_GET | PARC_MAY_PUT | PARC_MAY_ANYBODY}) != 0)
    return PARC_EINVAL;
  const auto free = std::ranges::find(windows_, Window::Stage::free, &Window::stage);
  if (free == windows_.end()) return PARC_EAGAIN;
  protocol::Pieces memory;
  Extents::Used used;
  if (!memory_.resolve(request.address, request.length, memory, used)) return PARC_ENOMEM;
  *free = {.stage = Window::Stage::exposed,
           .number = request.exposed.window,
           .address = request.address,
           .length = request.length,
           .rights = rights,
           .used = used,
           .awaited_by = {}};
  return PARC_OK;
}

bool Windows::unexpose(std::uint64_t number, std::uint64_t operation, bool& over) {
  Window* const window = find(number);
  if (window == nullptr) return false;
  window->stage = Window::Stage::taken_back;
  over = window->uses == 0;
  if (!over) window->awaited_by = operation;
  forget_if_over(*window);
  return true;
}

std::optional<std::size_t> Windows::hold(const protocol::Place& place, bool acquainted,
                                         protocol::Pieces& memory) {
  Window* const window = find(place.window);
  const std::uint64_t right = place.put ? PARC_MAY_PUT : PARC_MAY_GET;
  if (window == nullptr || (window->rights & right) == 0 || place.offset > window->length ||
      place.length > window->length - place.offset ||
      (!acquainted && (window->rights & PARC_MAY_ANYBODY) == 0))
    return {};
  Extents::Used used;
  if (!memory_.resolve(window->address + place.offset, place.length, memory, used)) return {};
  memory_.hold(window->used);
  ++window->uses;
  return static_cast<std::size_t>(window - windows_.data());
}

std::optional<std::uint64_t> Windows::let_go(std::size_t index) {
  Window& window = windows_[index];
  assert(window.uses != 0);
  --window.uses;
  memory_.drop(window.used);
  const auto awaited_by = window.uses == 0 ? window.awaited_by : std::nullopt;
  forget_if_over(window);
  return awaited_by;
}

void Windows::forget_if_over(Window& window) {
  if (window.stage != Window::Stage::taken_back || window.uses != 0) return;
  window = {};
}

void Windows::memory_went() {
  for (Window& window : windows_) {
    if (window.stage != Window::Stage::exposed) continue;
    protocol::Pieces memory;
    Extents::Used used;
    if (memory_.resolve(window.address, window.length, memory, used)) continue;
    window.stage = Window::Stage::taken_back;
    forget_if_over(window);
  }
}

} // namespace parc::daemon
