// SPDX-License-Identifier: BSD-3-Clause
// Messages between two programs of this host: one copy, from memory to memory, in slices that take turns.
#include "protocol/engine.hpp"

#include <algorithm>

namespace parc::protocol {

std::uint64_t Engine::copy() {
  std::uint64_t copied = 0;
  while (copied < settings_.copy_slice && !copies_.empty()) {
    Incoming& message = copies_.front();
    message.hook::Hook<hook::Queue>::unlink();
    copies_.push_back(message);
    const std::uint64_t n = std::min(message.rest.run(), settings_.copy_slice - copied);
    copied += n + 1; // a message of no bytes is work too
    copy_part(message, n);
  }
  return copied;
}

void Engine::copy_part(Incoming& message, std::uint64_t most) {
  Reading& read = *message.read;
  Outgoing& write = *message.local;
  if (const auto n = static_cast<std::uint32_t>(std::min(most, message.rest.run())); n != 0) {
    const std::uint64_t offset = message.rest.take(n);
    if (!protocol::copy(read.memory, write.memory, offset, n)) {
      message.hook::Hook<hook::Queue>::unlink(); // whoever's memory it was is ended, and this with it
      return;
    }
    message.arrived += n;
    totals_.copied += n;
    advance(message, offset, n);
    write.progress.add(offset, n, message.total);
    listener_.progressed(write.cookie, write.progress);
  }
  if (message.rest.left() != 0) return;
  check_read_done(message);
  drop_incoming(message);
  finish_write(write, Fault::none);
}

bool Engine::copies_long() const {
  return !copies_.empty() && copies_.front().rest.left() >= settings_.long_copy;
}

} // namespace parc::protocol
