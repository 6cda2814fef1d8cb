// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/inquiry.hpp"

namespace parc::daemon {

Inquiry::Host* Inquiry::answered(std::int32_t from, std::uint64_t place) {
  if (place >= hosts_.size()) return nullptr;
  Host& host = hosts_[place];
  return host.link == from && host.state == State::asked ? &host : nullptr;
}

void Inquiry::over(Host& host) {
  const bool was_last_to_reach = host.state == State::connecting;
  host.state = State::over;
  if (!all(State::asked)) return;
  if (!all(State::over)) {
    if (was_last_to_reach) patience_.set(answers_within_s);
    return;
  }
  patience_.cancel();
  events_.all_over();
}

// What is over behind the last of them may be asked again.
void Inquiry::give_up() {
  std::vector<std::size_t> late;
  for (std::size_t place = 0; place < hosts_.size(); ++place)
    if (hosts_[place].state == State::asked) late.push_back(place);
  for (const std::size_t place : late) {
    events_.silent(hosts_[place]);
    over(hosts_[place]);
  }
}

} // namespace parc::daemon
