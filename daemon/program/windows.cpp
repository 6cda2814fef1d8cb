// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/windows.hpp"

#include "include/parc/parc.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace parc::daemon {

Windows::Window* Windows::find(std::uint64_t number) {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : &windows_[found->second];
}

void Windows::add(Window window) {
  window.index = windows_.size();
  if (free_.empty()) {
    windows_.push_back(window);
  } else {
    window.index = free_.back();
    free_.pop_back();
    windows_[window.index] = window;
  }
  by_number_.emplace(window.number, window.index);
}

std::int32_t Windows::expose(const shm::Request& request, protocol::CrossMemory* own) {
  const std::uint64_t rights = request.exposed.rights;
  if (find(request.exposed.window) != nullptr || (rights & (PARC_MAY_GET | PARC_MAY_PUT)) == 0 ||
      (rights & ~std::uint64_t{PARC_MAY_GET | PARC_MAY_PUT | PARC_MAY_ANYBODY}) != 0)
    return PARC_EINVAL;
  if (request.address + request.length < request.address) return PARC_ENOMEM;
  if (windows_.size() - free_.size() >= shm::most_windows) return PARC_EAGAIN;
  Window window{.index = 0,
                .stage = Window::Stage::exposed,
                .number = request.exposed.window,
                .address = request.address,
                .length = request.length,
                .own = own,
                .rights = rights,
                .used = {},
                .awaited_by = {},
                .attached = {}};
  protocol::Pieces memory;
  if (!resolve(window, 0, window.length, memory, window.used)) return PARC_ENOMEM;
  add(window);
  return PARC_OK;
}

bool Windows::resolve(const Window& window, std::uint64_t offset, std::uint64_t length,
                      protocol::Pieces& memory, Extents::Used& used) const {
  if (window.own == nullptr) return memory_.resolve(window.address + offset, length, memory, used);
  memory.append({reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(window.address + offset)), length,
                 window.own});
  return true;
}

bool Windows::unexpose(std::uint64_t number, std::uint64_t operation, bool& over) {
  Window* const window = find(number);
  if (window == nullptr) return false;
  close(*window);
  over = window->uses == 0;
  if (!over) window->awaited_by = operation;
  take_back(*window);
  return true;
}

void Windows::close(Window& window) {
  window.uses -=
      std::erase_if(window.attached, [&](const Neighbour& neighbour) { return !close_(neighbour, false); });
}

void Windows::take_back(Window& window) {
  window.stage = Window::Stage::taken_back;
  by_number_.erase(window.number);
  forget_if_over(window);
}

std::optional<std::size_t> Windows::hold(const protocol::Place& place, bool acquainted,
                                         protocol::Pieces& memory) {
  Window* const window = find(place.window);
  const std::uint64_t right = place.put ? PARC_MAY_PUT : PARC_MAY_GET;
  if (window == nullptr || (window->rights & right) == 0 ||
      (!acquainted && (window->rights & PARC_MAY_ANYBODY) == 0) || !resolve_place(*window, place, memory))
    return {};
  memory_.hold(window->used);
  ++window->uses;
  return window->index;
}

bool Windows::resolve_place(const Window& window, const protocol::Place& place,
                            protocol::Pieces& memory) const {
  const auto span = protocol::span_of(place);
  if (!span || span->high > window.length) return false;
  Extents::Used used;
  if (place.rows == nullptr) return resolve(window, span->low, span->length(), memory, used);
  protocol::Pieces whole;
  if (!resolve(window, span->low, span->length(), whole, used)) return false;
  return protocol::append_place(memory, whole, place);
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

std::optional<Windows::Attached> Windows::attach(std::uint64_t number, const Neighbour& neighbour) {
  Window* const window = find(number);
  if (window == nullptr || window->own != nullptr || window->length == 0) return {};
  const auto where = memory_.in_one_segment(window->address, window->length);
  if (!where) return {};
  window->attached.push_back(neighbour);
  ++window->uses;
  return Attached{window->index, *where, window->length, window->rights};
}

std::optional<std::uint64_t> Windows::detach(std::size_t index, const Neighbour& neighbour) {
  Window& window = windows_[index];
  if (std::erase(window.attached, neighbour) == 0) return {};
  --window.uses;
  const auto awaited_by = window.uses == 0 ? window.awaited_by : std::nullopt;
  forget_if_over(window);
  return awaited_by;
}

void Windows::close_all() {
  for (Window& window : windows_) {
    for (const Neighbour& neighbour : window.attached) (void)close_(neighbour, true);
    window.uses -= std::exchange(window.attached, {}).size();
  }
}

void Windows::forget_if_over(Window& window) {
  if (window.stage != Window::Stage::taken_back || window.uses != 0) return;
  window.stage = Window::Stage::free;
  free_.push_back(window.index);
}

void Windows::memory_went() {
  for (Window& window : windows_) {
    if (window.stage != Window::Stage::exposed || window.own != nullptr) continue;
    protocol::Pieces memory;
    Extents::Used used;
    if (resolve(window, 0, window.length, memory, used)) continue;
    close(window);
    take_back(window);
  }
}

} // namespace parc::daemon
