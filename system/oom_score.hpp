// SPDX-License-Identifier: BSD-3-Clause
// Which process goes first where a host, or a cgroup, is out of memory: a kernel takes all its jobs with it,
// and so is to be the last. Scores are oom_score_adj of proc_pid_oom_score_adj(5): everybody may raise his
// own, few may lower it; children have their parent's.
#pragma once

namespace parc {

// Half of the memory there is, which no kernel's tables and pool come near.
inline constexpr int oom_distance = 500;

[[nodiscard]] int oom_score_adj();
// False: this process may not.
bool set_oom_score_adj(int score);

// For a kernel, at its start: puts this process `oom_distance` behind what it is to start, by a lower score
// of its own where it may.
void let_children_go_first();
// The score that each child gives itself then.
[[nodiscard]] int childrens_oom_score();

// How many processes the system has ended for want of memory, since it started.
[[nodiscard]] unsigned long oom_kills();

} // namespace parc
