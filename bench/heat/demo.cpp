// SPDX-License-Identifier: BSD-3-Clause
// parc-demo: the heat equation over an emulated WAN, all variants side by side. The demo makes the emulation
// and runs itself inside it (--scene), so that hosts, kernels and ranks all end with the emulation.
#include "bench/heat/measure.hpp"
#include "bench/heat/options.hpp"
#include "bench/heat/show.hpp"
#include "system/standard_streams.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>

namespace parc::heat::demo {

namespace {

constexpr int exit_failed = 1, exit_usage = 2, exit_interrupted = 130;

Result<nlohmann::json> read_json(const std::string& path) {
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) return error(EIO, "cannot read {}", path);
  return json;
}

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return system_error("cannot write {}", path);
  return success();
}

// Inside the emulation.
Result<void> measure_scene(const Options& options) {
  PARC_TRY(json, read_json(options.scene_file));
  const auto scene = json.get<Scene>();
  PARC_TRY(hosts, Hosts::of_emulation(scene.ranks));
  Progress progress;
  PARC_TRY(results, measure(scene, hosts, progress));
  return write_text(options.results_file, nlohmann::json(results).dump());
}

Command emulation(const Scene& scene) {
  Command command = {program("wanlink"),          "run",      "--hosts",
                     std::to_string(scene.ranks), "--preset", scene.preset};
  if (!scene.rtt.empty()) command.insert(command.end(), {"--rtt", scene.rtt});
  if (!scene.rate.empty()) command.insert(command.end(), {"--rate", scene.rate});
  command.push_back("--");
  return command;
}

Result<Results> measure_emulated(const Scene& scene, const std::string& directory) {
  const std::string scene_file = directory + "/scene.json", results_file = directory + "/results.json";
  PARC_TRY(write_text(scene_file, nlohmann::json(scene).dump()));
  Command command = emulation(scene);
  command.insert(command.end(), {program("parc-demo"), "--scene", scene_file, "--results", results_file});
  PARC_TRY(child, Child::start(command, Child::Output::PassOn));
  while (child.running()) {
    const auto waited = Child::wait_for_any({&child, 1}, Clock::now() + std::chrono::hours(1));
    if (waited) continue;
    child.terminate();
    return std::move(waited).error();
  }
  if (child.exit_status() != 0) return error(ECHILD, "measuring ended with status {}", child.exit_status());
  PARC_TRY(json, read_json(results_file));
  std::filesystem::remove(scene_file);
  std::filesystem::remove(results_file);
  return json.get<Results>();
}

// Why no emulation at all can be made here; empty when it can.
Result<std::string> obstacle() {
  const std::vector<Command> probe = {{program("wanlink"), "run", "--", "true"}};
  PARC_TRY(ended, run_together(probe, std::chrono::seconds(20)));
  return ended[0].exit_status == 0 ? "" : ended[0].errors;
}

Result<Results> measure_anyhow(const Scene& scene, const std::string& directory) {
  PARC_TRY(why_not, obstacle());
  if (why_not.empty()) return measure_emulated(scene, directory);
  std::cerr << why_not << "The demo goes on without an emulated link, on loopback.\n";
  PARC_TRY(hosts, Hosts::on_loopback(scene.ranks, fmt::format("/tmp/parc-demo-{}", getuid())));
  Progress progress;
  return measure(scene, hosts, progress);
}

void say(const Results& results) {
  std::cout << short_table(results.rows);
  if (results.relay_cpu > 0)
    std::cout << fmt::format("The relay of the emulated link used {:.1f} % of a core.\n",
                             results.relay_cpu * 100);
  std::cout << results.note;
}

nlohmann::json describe_settings(const Scene& scene, const Results& results) {
  return {{"preset", scene.preset},   {"rtt", scene.rtt},
          {"rate", scene.rate},       {"socket_buffer", scene.socket_buffer},
          {"repeats", scene.repeats}, {"relay_cpu", results.relay_cpu},
          {"note", results.note}};
}

Result<int> show_all(const Options& options) {
  std::error_code failure;
  std::filesystem::create_directories(options.directory, failure);
  if (failure) return error(failure.value(), "cannot make {}: {}", options.directory, failure.message());
  const std::string directory = std::filesystem::absolute(options.directory).string();

  std::vector<Scene> scenes = make_scenes(options);
  scenes.front().field = directory + "/field.bin";
  std::vector<Row> rows;
  std::vector<Results> all;
  nlohmann::json settings = nlohmann::json::array();
  for (const Scene& scene : scenes) {
    PARC_TRY(results, measure_anyhow(scene, directory));
    say(results);
    settings.push_back(describe_settings(scene, results));
    rows.insert(rows.end(), results.rows.begin(), results.rows.end());
    all.push_back(std::move(results));
  }
  if (!options.json.empty()) {
    PARC_TRY(write_json(options.json, rows, settings));
  }
  if (rows.empty()) return error(EIO, "nothing was measured");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string number = all.size() == 1 ? "" : fmt::format("-{}", i + 1);
    const std::string table = fmt::format("{}/table{}.txt", directory, number);
    PARC_TRY(write_text(table, full_table(all[i].rows)));
    std::cout << fmt::format("All {} rows: {}\n", all[i].rows.size(), table);
    PARC_TRY(picture, draw_gain(directory, "gain" + number, all[i].rows));
    std::cout << "Picture: " << picture << '\n';
  }
  PARC_TRY(picture,
           draw_field(directory, "field", scenes.front().field, field_columns(options.ranks), field_points));
  std::filesystem::remove(scenes.front().field);
  std::cout << "Picture: " << picture << '\n';
  return std::ranges::all_of(rows, &Row::correct) ? 0 : exit_failed;
}

int fail(const Error& problem) {
  std::cerr << "demo: " << problem.text << '\n';
  return problem.code == EINTR ? exit_interrupted : exit_failed;
}

int main(int count, char** arguments) {
  Options options;
  CLI::App app("The heat equation on emulated hosts with a slow link between them: what hiding communication "
               "behind calculation gains",
               "demo");
  describe(app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : exit_usage;
  }
  catch_interrupts();
  if (!options.scene_file.empty()) {
    const auto measured = measure_scene(options);
    return measured ? 0 : fail(measured.error());
  }
  const auto shown = show_all(options);
  return shown ? shown.value() : fail(shown.error());
}

} // namespace
} // namespace parc::heat::demo

int main(int count, char** arguments) {
  parc::open_standard_streams();
  return parc::end_of_output("parc-demo", parc::heat::demo::main(count, arguments), 1);
}
