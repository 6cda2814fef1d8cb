// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/job_dump.hpp"

#include "daemon/job/job_messages.hpp"
#include "daemon/job/jobs.hpp"
#include "system/frames.hpp"

#include <algorithm>
#include <cerrno>

namespace parc::daemon {

JobDump::JobDump(Loop& loop, const std::string& here, Jobs& jobs, std::uint64_t token, JobDoor& door,
                 std::function<void()> over)
    : here_(here), jobs_(jobs), token_(token), door_(door), over_(std::move(over)),
      patience_(loop, [this] { finish(); }) {}

Result<std::uint64_t> JobDump::choose(std::uint64_t job) const {
  const std::vector<std::uint64_t> here = jobs_.known();
  if (job == 0 && here.size() == 1) return here.front();
  if (job != 0 && std::ranges::find(here, job) != here.end()) return job;
  std::string names;
  for (const std::uint64_t each : here) names += fmt::format("{}{:x}", names.empty() ? "" : ", ", each);
  if (here.empty())
    return error(ENOENT, "host {} takes part in no job; run parc dump on a host that does", here_);
  if (job == 0) return error(EINVAL, "host {} takes part in more than one job; say which: {}", here_, names);
  return error(ENOENT, "host {} takes part in no job {:x}, but in: {}", here_, job, names);
}

Result<void> JobDump::ask(std::uint64_t wanted) {
  PARC_TRY(job, choose(wanted));
  for (auto& [name, link] : jobs_.hosts_of(job)) hosts_.push_back({std::move(name), link});
  if (hosts_.empty()) return error(EAGAIN, "job {:x} is only about to start; ask again", job);
  door_.send({{"kind", "dump"}, {"job", fmt::format("{:x}", job)}, {"hosts", hosts_.size()}});
  patience_.set(answers_within_s);
  for (std::size_t place = 0; place < hosts_.size(); ++place)
    jobs_.tell(hosts_[place].link, {{"kind", "look"}, {"job", job}, {"token", token_}, {"place", place}});
  return success();
}

void JobDump::answered(std::int32_t from, const nlohmann::json& message) {
  const auto place = number_in(message, "place", hosts_.empty() ? 0 : hosts_.size() - 1);
  const auto ranks = message.find("ranks");
  if (hosts_.empty() || !place || hosts_[*place].link != from || hosts_[*place].answered ||
      ranks == message.end())
    return;
  hosts_[*place].answered = true;
  door_.send({{"kind", "ranks"}, {"host", hosts_[*place].name}, {"ranks", *ranks}});
  if (std::ranges::all_of(hosts_, &Host::answered)) finish();
}

void JobDump::finish() {
  if (hosts_.empty()) return;
  patience_.cancel();
  std::vector<std::string> silent;
  for (const Host& host : hosts_)
    if (!host.answered) silent.push_back(host.name);
  hosts_.clear();
  door_.send({{"kind", "dumped"}, {"silent", silent}});
  over_();
}

} // namespace parc::daemon
