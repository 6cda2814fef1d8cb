// SPDX-License-Identifier: BSD-3-Clause
// How commands get to other hosts: the ways of launching, each of which makes the words that are run here.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

struct Launcher {
  using Words = std::vector<std::string>;
  // What runs `words` on `host`. No question is asked: there may be many of them at once, and nobody to
  // answer.
  std::function<Words(const std::string& host, const Words& words)> command;
  // Where `host` is: what says that, and the address in it; empty: it does not say.
  std::function<Words(const std::string& host)> question;
  std::function<std::string(const std::string& said)> address;
  bool keeps = false; // what a command leaves running there ends with it
};

// By this ssh, which may have options of its own ("ssh -F file").
[[nodiscard]] Launcher by_ssh(std::string_view ssh);
// As a step of this job of Slurm, beside its others.
[[nodiscard]] Launcher by_srun();

} // namespace parc
