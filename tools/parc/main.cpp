// SPDX-License-Identifier: BSD-3-Clause
// The command line of parc.
#include "protocol/wire.hpp"
#include "shm/layout.hpp"
#include "system/nearest.hpp"
#include "system/standard_streams.hpp"
#include "tools/parc/doctor/commands.hpp"
#include "tools/parc/hosts/commands.hpp"
#include "tools/parc/kernel/commands.hpp"
#include "tools/parc/model/commands.hpp"
#include "tools/parc/probe/commands.hpp"
#include "tools/parc/run/commands.hpp"
#include "tools/parc/run/mpirun_words.hpp"
#include "tools/parc/trace/commands.hpp"
#include "tools/parc/view/commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>

namespace parc::tools {
namespace {

constexpr int c_interface_version = 0; // libparc.so.0
constexpr std::array<std::string_view, 2> with_own_default{"--early-release", "--advise"};

std::string version() {
  return fmt::format("parc {}\nC interface {}\nsegment {}\nwire {}\n", PARC_VERSION, c_interface_version,
                     shm::layout_version, protocol::wire_version);
}

// As the help lists them.
std::vector<Command> all_commands() {
  return {run_command(),     mpi_command(),  up_command(),     down_command(),   hosts_command(),
          ps_command(),      kill_command(), status_command(), top_command(),    errors_command(),
          metrics_command(), dump_command(), trace_command(),  doctor_command(), probe_command(),
          model_command(),   stop_command(), clean_command(),  keygen_command()};
}

class CommandLine {
public:
  CommandLine() {
    app_.require_subcommand(0, 1);
    app_.set_version_flag("--version", version());
    for (Command& command : all_commands()) {
      CLI::App* const app = app_.add_subcommand(command.name, command.help);
      command.options(*app);
      be_strict(*app);
      for (CLI::Option* const option : app->get_options()) // what they are to be follows =
        if (std::ranges::find(with_own_default, option->get_name()) != with_own_default.end())
          option->disable_flag_override(false);
      app->allow_extras();
      commands_.push_back({std::move(command), app});
    }
    app_.allow_extras(); // unexpected() has words for them
  }

  int main(std::vector<std::string> words) {
    const Known* const named = words.empty() ? nullptr : find(words.front());
    if (named == nullptr && !words.empty() && !words.front().starts_with('-'))
      return fail(no_command(words.front()), status_usage);
    const int wrong_words = named == nullptr ? status_usage : named->command.wrong_words;
    if (named != nullptr && named->command.take_words)
      if (const std::string wrong = named->command.take_words(*named->app, words); !wrong.empty())
        return fail(wrong, wrong_words);
    for (const std::string_view option : with_own_default) // the parser takes an empty value for none
      if (std::ranges::find(words, std::string(option) + "=") != words.end())
        return fail(fmt::format("{}: the value is empty; leave it out, or give it one", option), wrong_words);
    if (const auto problem = read_all_options(app_, words)) return fail(*problem, wrong_words);
    try {
      std::ranges::reverse(words); // as the parser takes them
      app_.parse(std::move(words));
    } catch (const CLI::Success& answer) { // --help, --version
      return app_.exit(answer);
    } catch (const CLI::ParseError& problem) {
      return fail(explain(app_, problem), wrong_words);
    }
    if (const auto word = unexpected(app_)) return fail(*word, status_usage);
    for (const Known& each : commands_)
      if (each.app->parsed()) return each.command.run();
    std::cerr << app_.help();
    return status_usage;
  }

private:
  struct Known {
    Command command;
    CLI::App* app;
  };
  static int fail(const std::string& text, int status) {
    std::cerr << "parc: " << text << '\n';
    return status;
  }
  [[nodiscard]] const Known* find(const std::string& name) const {
    const auto found =
        std::ranges::find(commands_, name, [](const Known& each) { return each.command.name; });
    return found == commands_.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string no_command(const std::string& word) const {
    std::vector<std::string_view> names;
    for (const Known& each : commands_) names.push_back(each.command.name);
    return fmt::format("no command {}{}; parc --help lists them", word, did_you_mean(word, names));
  }

  CLI::App app_{"Run parallel programs over parc, and look at its kernels", "parc"};
  std::vector<Known> commands_;
};

} // namespace
} // namespace parc::tools

int main(int argc, char** argv) {
  parc::open_standard_streams();
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "mpi") words = parc::tools::without_mpirun(std::move(words));
  const bool runs = !words.empty() && words.front() == "run";
  const int status = parc::tools::CommandLine().main(words);
  return parc::end_of_output("parc", status, runs ? parc::status_failed : parc::status_failure);
}
