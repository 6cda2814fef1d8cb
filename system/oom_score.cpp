// SPDX-License-Identifier: BSD-3-Clause
#include "system/oom_score.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace parc {
namespace {

constexpr const char* own_score = "/proc/self/oom_score_adj";
constexpr int lowest = -1000, highest = 1000; // lowest: the process is never chosen, which nobody asked for
int childrens = oom_score_adj(); // of what this process starts, as it is one property of a process

} // namespace

int oom_score_adj() {
  int score = 0;
  std::ifstream(own_score) >> score;
  return score;
}

bool set_oom_score_adj(int score) {
  std::ofstream to(own_score);
  return static_cast<bool>(to << std::clamp(score, lowest, highest) << std::flush);
}

void let_children_go_first() {
  const int given = oom_score_adj(), usual = std::max(given, 0); // a unit protects its kernel, not the ranks
  const bool behind = given <= usual - oom_distance || set_oom_score_adj(usual - oom_distance);
  childrens = behind ? usual : std::min(given + oom_distance, highest);
}

int childrens_oom_score() {
  return childrens;
}

unsigned long oom_kills() {
  std::ifstream counts("/proc/vmstat");
  std::string name;
  unsigned long count = 0;
  while (counts >> name >> count)
    if (name == "oom_kill") return count;
  return 0;
}

} // namespace parc
