// SPDX-License-Identifier: BSD-3-Clause
#include "client/operation/backlog.hpp"

#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <unistd.h>

namespace parc::client {
namespace {

template <class... Values>
void write_line(fmt::format_string<const Values&...> form, const Values&... values) {
  const int saved = errno; // of what a signal handler has interrupted
  std::array<char, 512> text;
  const auto end = fmt::format_to_n(text.data(), text.size(), form, values...);
  (void)!write(STDERR_FILENO, text.data(), std::min(end.size, text.size()));
  errno = saved;
}

} // namespace

void Backlog::put_off(std::uint64_t operations, int peer) {
  const std::uint64_t before = counters_.put_off.load(std::memory_order_relaxed);
  if (before == 0 || operations < before) put_off_since_.store(coarse_ms(), std::memory_order_relaxed);
  put_off_peer_.store(peer, std::memory_order_relaxed);
  counters_.put_off.store(operations, std::memory_order_relaxed);
}

void Backlog::say_waiting(int peer, std::uint64_t messages, std::uint64_t bytes) {
  if (said_.exchange(true)) return;
  write_line(
      "parc: warning: process {}: {} messages to peer {} ({} bytes of memory) have waited for {} s and none "
      "has left, as it takes nothing that comes from here; parc dump shows what each rank does\n",
      getpid(), messages, peer, bytes, long_ms / 1000);
}

void Backlog::say_put_off() {
  if (said_.exchange(true)) return;
  const std::uint64_t operations = counters_.put_off.load(std::memory_order_relaxed);
  const int peer = put_off_peer_.load(std::memory_order_relaxed);
  std::array<char, 32> whom{"anybody"};
  if (peer >= 0) *fmt::format_to_n(whom.data(), whom.size() - 1, "peer {}", peer).out = '\0';
  write_line(
      "parc: warning: process {}: {} operations, the oldest of them for {}, have waited for {} s and none "
      "has been started, as there is no memory for their messages; parc dump shows what each rank does\n",
      getpid(), operations, whom.data(), long_ms / 1000);
}

} // namespace parc::client
