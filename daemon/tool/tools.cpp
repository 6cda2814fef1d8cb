// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/tools.hpp"

#include "daemon/job/jobs.hpp"

#include <fcntl.h>

namespace parc::daemon {

Tools::Tools(Loop& loop, Post& post, Peers& peers, Jobs& jobs, Joins& joins, std::function<void()> emptied)
    : loop_(loop), post_(post), peers_(peers), jobs_(jobs), local_jobs_(loop, post, peers, jobs, joins),
      emptied_(std::move(emptied)) {
  post_.on<kernel::Seen>([this](std::int32_t from, const kernel::Seen& message) {
    if (ToolSession* const at = find(message.token)) at->answered(from, message);
  });
  post_.on<kernel::Answer>([this](std::int32_t from, const kernel::Answer& message) {
    if (ToolSession* const at = find(message.token)) at->answered(from, message);
  });
}

Tools::~Tools() = default;

ToolSession* Tools::find(std::uint64_t number) const {
  const auto found = sessions_.find(number);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void Tools::connected(Fd socket) {
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  std::uint64_t number = jobs_.new_job();
  while (sessions_.contains(number)) number = jobs_.new_job();
  sessions_.emplace(number, std::make_unique<ToolSession>(
                                ToolSession::Needs{loop_, post_, peers_, jobs_, local_jobs_, *this}, number,
                                std::move(socket)));
}

void Tools::forget(std::uint64_t number) {
  loop_.after_step([this, number] {
    sessions_.erase(number);
    if (none()) emptied_();
  });
}

void Tools::stop() {
  for (const auto& [number, at] : sessions_) at->shutting_down();
}

} // namespace parc::daemon
