// SPDX-License-Identifier: BSD-3-Clause
// The windows of neighbours that one program reaches itself, by the entries that it shares with this kernel
// (shm::AttachedWindow has the handshake). Invariant: an entry is open or closed here exactly as long as the
// window counts it among its uses, but where the window's program has ended.
#pragma once

#include "daemon/program/windows.hpp"
#include "shm/layout.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace parc::daemon {

class AttachedWindows {
public:
  struct Of {
    std::uint32_t session;
    std::size_t window; // its index
  };

  [[nodiscard]] static bool has(std::uint32_t entry) { return entry < shm::most_attached_windows; }
  [[nodiscard]] bool is_free(std::uint32_t entry) const { return entries_[entry].stage == Stage::free; }
  void open(std::uint32_t entry, shm::AttachedWindow& shared, std::uint32_t session,
            const Windows::Attached& window);
  // True: somebody is inside, and leave() follows. Not where the window's program has ended: nothing does.
  bool close(std::uint32_t entry, shm::AttachedWindow& shared, bool ended);
  // The window that nobody is inside of any more; none: it is not closed, or somebody is.
  std::optional<Of> leave(std::uint32_t entry, shm::AttachedWindow& shared);
  // The program ends: it enters none from here on. Calls use(entry, of) for each that it is not inside of any
  // more, for all where it is `dead`.
  template <class Use> void give_up(shm::Control& control, bool dead, Use use) {
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].stage == Stage::free) continue;
      const bool inside = close(i, control.windows[i], dead);
      if (!inside || dead) use(i, entries_[i].of);
    }
  }
  [[nodiscard]] bool none() const {
    return std::ranges::all_of(entries_, [](const Entry& each) { return each.stage == Stage::free; });
  }

private:
  using Stage = shm::AttachedWindow::Stage;
  struct Entry {
    Stage stage = Stage::free;
    Of of{};
  };
  std::array<Entry, shm::most_attached_windows> entries_{};
};

} // namespace parc::daemon
