// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/job_dump.hpp"

#include "daemon/tool/local_jobs.hpp"

#include <algorithm>
#include <cerrno>

namespace parc::daemon {

JobDump::JobDump(Loop& loop, Post& post, const std::string& here, const LocalJobs& jobs, std::uint64_t token,
                 ToolConnection& connection, std::function<void()> over)
    : here_(here), jobs_(jobs), connection_(connection), over_(std::move(over)),
      inquiry_(loop, post, token,
               {.silent = [this](const Inquiry::Host& host) { silent_.push_back(host.name); },
                .all_over = [this] { finish(); }}) {}

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
  const auto hosts = jobs_.hosts_of(job);
  if (hosts.empty()) return error(EAGAIN, "job {:x} is only about to start; ask again", job);
  for (const auto& [name, link] : hosts) inquiry_.add(name);
  connection_.send(tool::DumpBegins{.job = fmt::format("{:x}", job), .hosts = hosts.size()});
  for (std::size_t place = 0; place < hosts.size(); ++place)
    inquiry_.ask(place, hosts[place].second, kernel::Look{.job = job});
  return success();
}

void JobDump::answered(std::int32_t from, const kernel::Seen& message) {
  Inquiry::Host* const host = inquiry_.answered(from, message.place);
  if (host == nullptr) return;
  connection_.send(tool::Ranks{.host = host->name, .ranks = message.ranks});
  inquiry_.over(*host);
}

void JobDump::finish() {
  connection_.send(tool::Dumped{.silent = silent_});
  over_();
}

} // namespace parc::daemon
