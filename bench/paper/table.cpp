// SPDX-License-Identifier: BSD-3-Clause
#include "bench/paper/table.hpp"
#include "bench/paper/cores.hpp"

#include <algorithm>

namespace parc::bench {

namespace {

Result<Figures> figures_in(const Result<std::string>& printed) {
  PARC_TRY(text, printed);
  const Json line = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (!line.is_object()) return error(EIO, "what a role printed is not understood: {}", text);
  return line.get<Figures>();
}

} // namespace

Row& Table::find(const Row& row) {
  const auto same = [&row](const Row& other) {
    return other.name == row.name && other.metric == row.metric && other.peer_name == row.peer_name;
  };
  const auto found = std::ranges::find_if(rows_, same);
  return found != rows_.end() ? *found : rows_.emplace_back(row);
}

void Table::add(const Row& row, double ours) {
  find(row).parc.push_back(ours);
}

void Table::add(const Row& row, double ours, double theirs) {
  find(row).add(ours, theirs);
}

Result<Figures> by_one(const Setting& setting, const Command& role) {
  Command command = {self_path()};
  command.insert(command.end(), role.begin(), role.end());
  return figures_in(output_of(setting.hosts.on(0, command)));
}

Result<Figures> by_streams(const Setting& setting, const Command& role) {
  const std::string places = setting.hosts.places(); // "a:7400,b:7400"
  const std::size_t colon = places.find(':');
  Command accepting = {self_path()};
  accepting.insert(accepting.end(), role.begin(), role.end());
  accepting.insert(accepting.end(), {"--port", places.substr(colon + 1, places.find(',') - colon - 1)});
  Command connecting = accepting;
  connecting.insert(connecting.end(), {"--peer", places.substr(0, colon)});
  const Command both[] = {setting.hosts.on(0, accepting), setting.hosts.on(1, connecting)};
  return figures_in(output_of_all(both));
}

Result<Figures> by_ranks(const Setting& setting, const Command& role) {
  return figures_in(output_of(job(setting.hosts, 2, setting.hosts.slots(), role)));
}

Result<Kernels> start_kernels(const Setting& setting) {
  auto kernels = Kernels::start(setting.hosts, {.options = {"--encryption", "none"}});
  for (std::size_t host = 0; kernels && host < setting.hosts.count(); ++host)
    stay_on(core_of(host), kernels.value().process(host));
  return kernels;
}

} // namespace parc::bench
