// SPDX-License-Identifier: BSD-3-Clause
// parc status: what a kernel's counters say, and what its programs wait for. The kernel is not asked and may
// be dead.
#include "control/rank_state.hpp"
#include "tools/parc/view/commands.hpp"
#include "tools/parc/view/status_view.hpp"

#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

struct StatusOptions {
  bool json = false;
  bool verbose = false; // the counters too
  std::string runtime_dir;
};

constexpr int json_schema = 1;

nlohmann::json to_json(const CounterSnapshot& kernel, const std::vector<ProgramView>& programs) {
  nlohmann::json json{{"schema", json_schema},
                      {"kernel",
                       {{"alive", kernel.alive},
                        {"ended", kernel.ended},
                        {"stopped", kernel.stopped},
                        {"host", kernel.host},
                        {"pid", kernel.pid},
                        {"port", kernel.port},
                        {"listens", kernel.listens},
                        {"started", kernel.started_s},
                        {"scheduling", kernel.scheduling},
                        {"version", kernel.program}}},
                      {"links", nlohmann::json::array()},
                      {"jobs", nlohmann::json::array()},
                      {"sessions", nlohmann::json::array()},
                      {"counters", nlohmann::json::object()}};
  for (const auto& link : kernel.links)
    json["links"].push_back({{"host", link.peer},
                             {"state", name(link.state)},
                             {"way", name(link.way)},
                             {"encrypted", link.encrypted},
                             {"streams", link.streams},
                             {"since", link.since_s},
                             {"connections", link.carriers},
                             {"rtt_us", link.rtt_us},
                             {"bytes_in", link.bytes_in},
                             {"bytes_out", link.bytes_out},
                             {"credit", link.credit},
                             {"unacknowledged", link.unacknowledged},
                             {"queue", link.queue},
                             {"stalls", link.stalls},
                             {"messages_in", link.messages_in},
                             {"messages_out", link.messages_out},
                             {"resent_bytes", link.resent_bytes}});
  for (const auto& job : kernel.jobs)
    json["jobs"].push_back(
        {{"job", job_name(job.id)}, {"ranks_here", job.ranks}, {"state", name(job.state)}});
  for (const ProgramView& program : programs) {
    auto& shown = json["sessions"].emplace_back();
    control::put_value(shown, program.seen);
    shown["job"] = job_name(program.counted.job);
    shown["reads"] = program.counted.reads;
    shown["writes"] = program.counted.writes;
    shown["messages_in"] = program.counted.messages_in;
    shown["messages_out"] = program.counted.messages_out;
    shown["bytes_in"] = program.counted.bytes_in;
    shown["bytes_out"] = program.counted.bytes_out;
    const RankState::Waits& waits = program.seen.waits;
    shown["waits"] = {{"rested", waits.rested},
                      {"released", waits.released},
                      {"faults", waits.faults},
                      {"late_faults", waits.late_faults}};
    const RankState::Neighbours& neighbours = program.seen.neighbours;
    shown["neighbours"] = {{"messages", neighbours.messages}, {"bytes", neighbours.bytes},
                           {"reads_taken", neighbours.taken}, {"interrupts", neighbours.interrupts},
                           {"received", neighbours.received}, {"received_bytes", neighbours.received_bytes},
                           {"memory", neighbours.memory}};
  }
  for (const CounterRow& row : counter_table) json["counters"][std::string(row.label)] = kernel[row.counter];
  return json;
}

nlohmann::json to_json(const MachineView& view) {
  const Machine& machine = view.machine;
  return {{"processor", machine.processor},
          {"cores", machine.cores},
          {"memory", machine.memory},
          {"system", machine.system},
          {"load", view.load}};
}

int status(const StatusOptions& options) {
  const auto counters = open_counters(options.runtime_dir);
  if (!counters) {
    std::cerr << "parc: " << counters.error().text << '\n';
    return status_failure;
  }
  const KernelView view = look_at_kernel(counters.value());
  const MachineView machine = look_at_machine();
  if (options.json) {
    auto shown = to_json(view.kernel, view.programs);
    shown["machine"] = to_json(machine);
    if (const auto dir = find_runtime_dir(options.runtime_dir))
      shown["kernel"]["link_socket"] = dir.value().link_socket();
    std::cout << shown.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return 0;
  }
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  show(status_page(view, machine, options.verbose, now, display_of(stdout)).lines(), stdout);
  return 0;
}

} // namespace

Command status_command() {
  const auto options = std::make_shared<StatusOptions>();
  return {.name = "status",
          .help = "Show this host's kernel, also a dead one",
          .options =
              [options](CLI::App& app) {
                add_json(app, options->json);
                app.add_flag("-v,--verbose", options->verbose, "The kernel's counters too");
                add_runtime_dir(app, options->runtime_dir);
              },
          .run = [options] { return status(*options); }};
}

} // namespace parc::tools
