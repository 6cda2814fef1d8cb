// SPDX-License-Identifier: BSD-3-Clause
// A message that will never be whole although its wait has returned: the program has gone on as if it were
// there. It ends here (erMPI 2005, section 2.4), unless it has said that it can deal with that.
#include "client/base/failure.hpp"
#include "client/base/in_library.hpp"
#include "client/early/guards.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

namespace parc::client {

void Guards::on_lost(parc_lost_handler* handler, void* argument) {
  const Locked hold(lock_);
  handler_ = handler;
  handler_argument_ = argument;
}

parc_release_counts Guards::counts() const {
  const shm::WaitCounters& waits = control_.header.waits;
  return {waits.released.load(std::memory_order_relaxed), waits.faults.load(std::memory_order_relaxed),
          waits.late_faults.load(std::memory_order_relaxed), waits.openings.load(std::memory_order_relaxed)};
}

// One after the other, each by the thread that found it. Its pages stay guarded until it has been reported.
void Guards::report_losses() {
  for (;;) {
    Guard guard;
    {
      const Locked hold(lock_);
      const auto found = std::find_if(guards_.begin(), guards_.end(), [this](const Guard& each) {
        return !each.reporting && loss_of(each) != PARC_OK;
      });
      if (found == guards_.end()) return;
      found->reporting = true;
      guard = *found;
    }
    reporting_here = true;
    report(guard, loss_of(guard));
    reporting_here = false;
    // A truncation is known before it is over; until then the kernel has the slot.
    while (!is_done(guard.id) && !pipes_.gone()) await(missing_from(guard, {0, UINT64_MAX}));
    const Locked hold(lock_);
    Guard* const found = guards_.find(guard.id);
    if (found == nullptr) continue;
    open_all(*found);
    drop(*found);
  }
}

void Guards::report(const Guard& guard, int error) {
  const shm::Operation& operation = shared(guard.id);
  const parc_lost lost{.buffer = guard.piece[0].iov_base,
                       .length = guard.length,
                       .front = operation.front.load(std::memory_order_acquire),
                       .source = guard.envelope.peer,
                       .tag = shm::tag_in(guard.envelope.tag | guard.envelope.ignore),
                       .error = error};
  parc_lost_handler* handler = nullptr;
  void* argument = nullptr;
  {
    const Locked hold(lock_);
    handler = handler_;
    argument = handler_argument_;
  }
  if (handler != nullptr) {
    const InLibrary::Callback here;
    return handler(argument, &lost);
  }
  const std::string source = lost.source < 0 ? "any rank" : fmt::format("rank {}", lost.source);
  const std::string what =
      guard.gets ? fmt::format("what it got from window {} of {} after its get", guard.envelope.tag, source)
                 : fmt::format("a message from {} (tag {}) after its read", source, lost.tag);
  std::array<char, 512> text;
  const auto end = fmt::format_to_n(
      text.data(), text.size(),
      "parc: rank {}: lost {} was released early; {} of up to {} bytes had come: {}. The program has gone on "
      "as "
      "if it were there, so it ends here; parc_on_lost would let it decide\n",
      rank_, what, lost.front, lost.length,
      error == PARC_EPEER ? departure_sentence(operation.departure_or_data.load(std::memory_order_relaxed))
                          : sentence(error));
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), std::min(end.size, text.size()));
  std::abort();
}

} // namespace parc::client
