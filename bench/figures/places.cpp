// SPDX-License-Identifier: BSD-3-Clause
#include "bench/figures/places.hpp"

#include <filesystem>

namespace parc::bench {

std::string self_path() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

double seconds_now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Result<std::string> output_of_all(std::span<const Command> commands, std::chrono::seconds patience) {
  PARC_TRY(all, run_together(commands, patience));
  std::string output;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].exit_status != 0)
      return error(ECHILD, "\"{}\" ended with status {}: {}", heat::demo::to_line(commands[i]),
                   all[i].exit_status, all[i].errors);
    output += all[i].output;
  }
  return output;
}

Result<std::string> output_of(const Command& command, std::chrono::seconds patience) {
  return output_of_all({&command, 1}, patience);
}

Command job(const Hosts& hosts, int ranks, const std::string& slots, const Command& words) {
  Command command = {program("parc"), "run", "-n", std::to_string(ranks), "--hosts", slots, self_path()};
  command.insert(command.end(), words.begin(), words.end());
  return hosts.on(0, command);
}

Result<Network> network_of(const Hosts& hosts) {
  const std::string ipv4 = "/proc/sys/net/ipv4/";
  PARC_TRY(text, output_of(hosts.on(
                     0, {"cat", ipv4 + "tcp_congestion_control", ipv4 + "tcp_slow_start_after_idle"})));
  const std::size_t line = text.find('\n');
  return Network{text.substr(0, line), text.substr(line + 1, 1) == "1"};
}

} // namespace parc::bench
