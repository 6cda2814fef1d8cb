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
  std::string ssh = {}; // it is this ssh, and options of it, which carries links, too; empty: it is not
  bool keeps = false;   // what a command leaves running there ends with it
};

// By this ssh, which may have options of its own ("ssh -F file").
[[nodiscard]] Launcher by_ssh(std::string_view ssh);
// As a step of this job of Slurm, beside its others.
[[nodiscard]] Launcher by_srun();

// What runs a shell's `script` on another host, with parc's programs in its PATH: those in the bin of
// `prefix`, or, where that is empty, those that lie where this program does, or in the PATH there. Its
// arguments follow.
[[nodiscard]] Launcher::Words beside_parc(std::string_view script, const std::string& prefix,
                                          const Launcher::Words& arguments = {});

// What keeps a tunnel through `ssh` open: who connects to the socket `near`, which ssh makes here, is
// connected to `far` there, and no port is open on either side. `words` run there as long; with a terminal,
// for which ssh sends what is short at once. Nothing of what the user's configuration does besides is done.
[[nodiscard]] Launcher::Words ssh_tunnel(std::string_view ssh, const std::string& host,
                                         const std::string& near, const std::string& far,
                                         const Launcher::Words& words);
// `words` on `host`, in the same way.
[[nodiscard]] Launcher::Words ssh_command(std::string_view ssh, const std::string& host,
                                          const Launcher::Words& words);

} // namespace parc
