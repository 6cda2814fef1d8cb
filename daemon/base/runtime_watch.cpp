// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/runtime_watch.hpp"

#include <array>
#include <cerrno>
#include <sys/inotify.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

constexpr double removal_s = 0.1;  // for who removes one file after the other
constexpr double next_look_s = 10; // where the system tells nothing, or it could not be put right

} // namespace

RuntimeWatch::RuntimeWatch(Loop& loop, std::string path, std::function<void()> look)
    : path_(std::move(path)), changes_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      look_(loop, [&loop, look = std::move(look)] { loop.after_step(look); }) {
  if (!changes_) return; // of all processes of a user there may be so many
  heard_ = Event(loop.events(), changes_.get(), EV_READ | EV_PERSIST, [this](short) { hear(); });
  heard_.add();
}

void RuntimeWatch::watch() {
  constexpr std::uint32_t gone = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  look_.cancel();
  if (!changes_ || inotify_add_watch(changes_.get(), path_.c_str(), gone) < 0) look_later();
}

void RuntimeWatch::look_later() {
  look_.set(next_look_s);
}

void RuntimeWatch::hear() {
  std::array<std::byte, 4096> changes;
  while (read(changes_.get(), changes.data(), changes.size()) > 0 || errno == EINTR) continue;
  look_.set(removal_s);
}

} // namespace parc::daemon
