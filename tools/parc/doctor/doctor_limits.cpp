// SPDX-License-Identifier: BSD-3-Clause
// What the system allows this user and this kernel: segments, descriptors, processes, priority, cores.
#include "jobs/program.hpp"
#include "shm/layout.hpp"
#include "shm/letterbox.hpp"
#include "tools/parc/doctor/doctor_checks.hpp"
#include "tools/parc/screen/units.hpp"

#include <algorithm>

namespace parc::tools::diagnosis {
namespace {

// As many as a large host is given in one job: with less, parc warns.
constexpr std::uint64_t many_ranks = 256;
constexpr std::uint64_t segments_of_rank = 2; // its control segment, and parc_alloc's first
constexpr std::uint64_t first_data_segment = 4 << 20;
constexpr std::uint64_t largest_sparse_segment = 1 << 30; // that early release makes of a buffer of malloc's
constexpr const char* limits_file = "/etc/security/limits.d/parc.conf";

std::string amount(std::uint64_t value) {
  return value == unlimited ? "unlimited" : fmt::to_string(value);
}

std::uint64_t bytes_of_ranks(std::uint64_t ranks) {
  const std::uint64_t areas = (ranks + shm::area_letterboxes - 1) / shm::area_letterboxes;
  return ranks * (sizeof(shm::Control) + first_data_segment) + areas * shm::area_bytes;
}

// Room for fewer ranks than cores is a problem, for fewer than many a warning.
Level level_of_room(std::uint64_t room, std::uint64_t cores) {
  return room < cores ? Level::problem : room < many_ranks ? Level::warning : Level::ok;
}

Finding check_shmmni(const LimitFacts& facts, std::uint64_t cores) {
  if (!facts.shmmni)
    return {"segments", Level::problem, "this system has no System V shared memory (/proc/sys/kernel/shmmni)",
            "run parc where the system's kernel has CONFIG_SYSVIPC"};
  const std::uint64_t free = *facts.shmmni - std::min(facts.segments, *facts.shmmni);
  // Each area of letterboxes is one more.
  const std::uint64_t room = free * shm::area_letterboxes / (segments_of_rank * shm::area_letterboxes + 1);
  Finding finding{"segments", level_of_room(room, cores),
                  fmt::format("{} System V segments allowed (kernel.shmmni), {} in use: room for {} ranks",
                              *facts.shmmni, facts.segments, room)};
  if (finding.level != Level::ok)
    finding.mend = "run parc clean, look with ipcs -m for segments that nobody uses, or raise it: sysctl -w "
                   "kernel.shmmni=16384, and the line \"kernel.shmmni = 16384\" in /etc/sysctl.d/parc.conf";
  return finding;
}

Finding check_shmmax(std::uint64_t most) {
  Finding finding{"segment size", Level::ok,
                  fmt::format("a segment may have {} (kernel.shmmax)", bytes_text(most))};
  if (most < shm::area_bytes) {
    finding.level = Level::problem;
    finding.found += fmt::format(", and programs of one host need one of {} to exchange messages",
                                 bytes_text(shm::area_bytes));
  } else if (most < largest_sparse_segment) {
    finding.level = Level::warning;
    finding.found += fmt::format(", and early release of buffers of malloc's needs {}; those are copied here",
                                 bytes_text(largest_sparse_segment));
  }
  if (finding.level != Level::ok)
    finding.mend = "sysctl -w kernel.shmmax=18446744073692774399 (the system's own default), and the line "
                   "\"kernel.shmmax = 18446744073692774399\" in /etc/sysctl.d/parc.conf";
  return finding;
}

Finding check_shmall(const LimitFacts& facts, std::uint64_t cores) {
  const std::uint64_t most = *facts.shmall > unlimited / facts.page ? unlimited : *facts.shmall * facts.page;
  const std::uint64_t free = most - std::min(facts.segment_bytes, most);
  Finding finding{"segments in all", Level::ok,
                  most == unlimited
                      ? "no limit (kernel.shmall)"
                      : fmt::format("all segments together may have {} (kernel.shmall), {} in use",
                                    bytes_text(most), bytes_text(facts.segment_bytes))};
  if (const std::uint64_t need = bytes_of_ranks(cores); free < need) {
    finding.level = Level::problem;
    finding.found += fmt::format("; {} ranks need {}", cores, bytes_text(need));
  } else if (most < facts.memory) {
    finding.level = Level::warning;
    finding.found += fmt::format(", less than this host's memory of {}, which parc_alloc could give",
                                 bytes_text(facts.memory));
  }
  if (finding.level != Level::ok)
    finding.mend = "sysctl -w kernel.shmall=18446744073692774399 (the system's own default), and the line "
                   "\"kernel.shmall = 18446744073692774399\" in /etc/sysctl.d/parc.conf";
  return finding;
}

std::string raise_limit(const Who& who, const char* item, const std::string& value, const char* unit_line) {
  return fmt::format(
      "put the line \"{} - {} {}\" into {}, log in again, and start parcd again (in its systemd "
      "unit: {})",
      who.user.name, item, value, limits_file, unit_line);
}

const char* whose(const Who& who) {
  return who.is_kernel ? "parcd" : "a parcd started from here";
}

Finding check_files(const Who& who, std::uint64_t cores) {
  const ProcessFacts& facts = who.process; // parcd raises its soft limit to the hard one
  const std::uint64_t taken = (who.is_kernel ? facts.files_open : 0) + descriptors_to_start;
  const std::uint64_t room = (facts.files.hard - std::min(taken, facts.files.hard)) / descriptors_of_rank;
  Finding finding{"descriptors", level_of_room(room, cores),
                  fmt::format("{} may have {} descriptors (RLIMIT_NOFILE): room for {} ranks, {} each",
                              whose(who), amount(facts.files.hard), room, descriptors_of_rank)};
  if (facts.files.hard == unlimited)
    finding.found = fmt::format("{} may have any number of descriptors (RLIMIT_NOFILE)", whose(who));
  if (finding.level != Level::ok) finding.mend = raise_limit(who, "nofile", "65536", "LimitNOFILE=65536");
  return finding;
}

Finding check_processes(const LimitFacts& facts, const Who& who, std::uint64_t cores) {
  const std::uint64_t most = who.process.processes.soft;
  if (who.user.is_root() || most == unlimited)
    return {"processes", Level::ok,
            who.user.is_root() ? "root may have any number of processes"
                               : "any number is allowed (RLIMIT_NPROC)"};
  const std::uint64_t room = most - std::min(facts.tasks_of_user, most);
  Finding finding{"processes", level_of_room(room, cores),
                  fmt::format("{} processes and threads of this user allowed (RLIMIT_NPROC), {} in use", most,
                              facts.tasks_of_user)};
  if (finding.level != Level::ok) finding.mend = raise_limit(who, "nproc", "16384", "LimitNPROC=16384");
  return finding;
}

Finding check_tasks(const Who& who, std::uint64_t cores) {
  const ProcessFacts& facts = who.process;
  if (!facts.tasks_max) return {"tasks", Level::ok, "its control group limits no number of processes"};
  const std::uint64_t room = *facts.tasks_max - std::min(*facts.tasks, *facts.tasks_max);
  Finding finding{"tasks", level_of_room(room, cores),
                  fmt::format("the control group of {} allows {} processes and threads (pids.max), {} in use",
                              whose(who), *facts.tasks_max, *facts.tasks)};
  if (finding.level != Level::ok)
    finding.mend = "TasksMax=infinity in parcd's systemd unit, and, where the limit is that of the user, in "
                   "/etc/systemd/system/user-.slice.d/parc.conf under [Slice]; in a container its option "
                   "--pids-limit";
  return finding;
}

Finding check_address_space(const Who& who) {
  const std::uint64_t most = who.process.address_space.soft;
  if (most == unlimited) return {"address space", Level::ok, "no limit (RLIMIT_AS)"};
  return {"address space", Level::warning,
          fmt::format("{} may have {} of address space (RLIMIT_AS), and maps what all its programs have from "
                      "parc_alloc",
                      whose(who), bytes_text(most)),
          "start parcd after ulimit -v unlimited, and take the line with \"as\" out of "
          "/etc/security/limits.conf"};
}

} // namespace

Findings check_segments(const LimitFacts& facts, std::size_t cores) {
  Findings findings{check_shmmni(facts, cores)};
  if (facts.shmmax) findings.push_back(check_shmmax(*facts.shmmax));
  if (facts.shmall) findings.push_back(check_shmall(facts, cores));
  return findings;
}

Findings check_process_limits(const LimitFacts& facts, const Who& who) {
  const std::uint64_t cores = std::max<std::uint64_t>(who.process.cores.size(), 1);
  return {check_files(who, cores), check_processes(facts, who, cores), check_tasks(who, cores),
          check_address_space(who)};
}

Finding check_realtime(const Who& who, const std::string& policy, const std::string& scheduling) {
  Finding finding{"real time", Level::ok, {}};
  const bool permitted = who.process.realtime.hard > 0 || who.user.is_root();
  if (scheduling.starts_with("real-time")) {
    finding.found = "parcd runs at real-time priority";
  } else if (policy == "off") {
    finding.level = Level::information;
    finding.found = "parcd may not run at real-time priority: realtime = \"off\" in its settings";
  } else if (who.process.in_user_namespace) {
    finding.level = Level::warning;
    finding.found = "in a user namespace nothing runs at real-time priority, so a message may wait until a "
                    "program's time slice ends";
    finding.mend = "start parcd outside the container or sandbox, or leave it a core of its own";
  } else if (scheduling.empty() && permitted) {
    finding.found = "a parcd started from here may run at real-time priority";
  } else {
    finding.level = Level::warning;
    finding.found = fmt::format("{} gets no real-time priority ({}), so a message may wait until a program's "
                                "time slice ends",
                                whose(who), scheduling.empty() ? "RLIMIT_RTPRIO is 0" : scheduling);
    finding.mend =
        scheduling.empty() || !permitted
            ? raise_limit(who, "rtprio", "1",
                          "LimitRTPRIO=1, and the same in "
                          "/etc/systemd/system/user@.service.d/parc.conf under [Service]")
            : "its limit would allow it: does a control group or a container forbid it (docker run "
              "--cap-add SYS_NICE, or cpu.rt_runtime_us)?";
  }
  return finding;
}

Findings check_cores(const LimitFacts& facts, const Who& who, std::size_t ranks) {
  const std::size_t cores = who.process.cores.empty() ? facts.cores_online : who.process.cores.size();
  Findings findings;
  Finding& finding = findings.emplace_back(Finding{
      "cores", Level::ok, fmt::format("{} may use {} of {} cores", whose(who), cores, facts.cores_online)});
  if (cores == 1) {
    finding.level = Level::warning;
    finding.found += ", which it shares with every program";
    finding.mend =
        facts.cores_online > 1
            ? "start it where more are allowed (taskset -c, --cpus-per-task, the batch job's cpuset)"
            : "give this host a second core: messages then move beside calculations at no cost to them";
  } else if (ranks >= cores) {
    finding.level = Level::information;
    finding.found += fmt::format("; {} programs are attached, so it shares one of them", ranks);
    finding.mend = fmt::format("with {} ranks here it would have one for itself", cores - 1);
  } else {
    finding.found += fmt::format("; it has one for itself with up to {} ranks here", cores - 1);
  }
  if (const auto quota = who.process.core_quota; quota && *quota < static_cast<double>(cores))
    findings.push_back(
        {"core quota", Level::warning,
         fmt::format("the control group gets {:.2f} cores' time, and is stopped when that is used up, "
                     "with its messages",
                     *quota),
         "give it whole cores in place of a quota: cpuset and no cpu.max (docker run --cpuset-cpus in "
         "place of --cpus; AllowedCPUs= in place of CPUQuota=)"});
  return findings;
}

} // namespace parc::tools::diagnosis
