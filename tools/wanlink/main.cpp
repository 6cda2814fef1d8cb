// SPDX-License-Identifier: BSD-3-Clause
// The command line of wanlink. Invariant: the words of a program to run are taken off before the parser sees
// the rest, so none of them is ever mistaken for an option of ours, nor an option of ours for a program.
#include "system/nearest.hpp"
#include "system/standard_streams.hpp"
#include "system/usage.hpp"
#include "tools/wanlink/address.hpp"
#include "tools/wanlink/commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <iostream>

namespace parc::wanlink {
namespace {

constexpr int status_usage = 2;

struct Words {
  std::vector<std::string> ours;
  Command command;
};

// `run OPTIONS -- COMMAND` and `exec HOST [--] COMMAND`.
Words split(int argc, char** argv) {
  const std::vector<std::string> all(argv + 1, argv + argc);
  auto end = std::ranges::find(all, "--");
  auto command = end == all.end() ? end : end + 1;
  if (!all.empty() && all.front() == "exec") {
    const auto host =
        std::find_if(all.begin() + 1, end, [](const std::string& word) { return word[0] != '-'; });
    if (host != end && host + 1 != end) command = end = host + 1;
  }
  return {{all.begin(), end}, {command, all.end()}};
}

// In braces, where the shells' completion finds them.
std::string names_of_presets() {
  std::vector<std::string_view> names;
  for (const Preset& known : presets()) names.push_back(known.name);
  return fmt::format("{{{}}}", fmt::join(names, ","));
}

std::string preset_help() {
  std::string text = "Start from these settings:";
  for (const Preset& known : presets()) text += fmt::format(" {} ({});", known.name, known.meaning);
  text.back() = '.';
  return text;
}

void add_link_options(CLI::App& command, ChangeText& text) {
  auto* delay = command.add_option("--delay", text.delay, "One-way delay, such as 10ms");
  command.add_option("--rtt", text.rtt, "Round trip in place of --delay: half of it each way")
      ->excludes(delay);
  command.add_option("--jitter", text.jitter, "The delay varies by this, up and down; order is kept");
  command.add_option("--rate", text.rate, "Bits per second, such as 100mbit, 300kbit, unlimited");
  command.add_option("--connection-rate", text.connection_rate,
                     "Bits per second of each connection, as a policer has it; what is more is dropped");
  command.add_option("--queue", text.queue, "Bytes that may wait for the wire, such as 1MiB");
  command.add_option("--largest-packet", text.largest_packet,
                     "Bytes of IP: a larger packet is lost, and nobody is told; 0: none is");
  command.add_option("--loss", text.loss, "Share of packets that are lost, such as 1% or 0.01");
  command.footer(
      "Each link setting is VALUE for both directions or FORTH:BACK; an empty side stays as it is.");
}

Result<std::vector<std::string>> host_names(const std::string& text) {
  std::vector<std::string> names;
  if (!text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    const std::size_t count = text.size() > 3 ? max_hosts + 1 : std::stoul(text);
    if (count < 2 || count > max_hosts) return error(EINVAL, "--hosts takes 2 to {} hosts", max_hosts);
    for (std::size_t i = 0; i < count; ++i) names.emplace_back(1, static_cast<char>('a' + i));
    return names;
  }
  for (std::string& name : CLI::detail::split(text, ',')) {
    const bool good = !name.empty() && name.size() < 64 && name.front() != '-' && name != "localhost" &&
                      std::ranges::all_of(name, [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                      });
    if (!good)
      return error(EINVAL, "\"{}\" is no host name; use lower-case letters, digits and hyphens", name);
    if (std::ranges::find(names, name) != names.end()) return error(EINVAL, "--hosts names {} twice", name);
    names.push_back(std::move(name));
  }
  if (names.size() < 2 || names.size() > max_hosts)
    return error(EINVAL, "--hosts takes 2 to {} hosts", max_hosts);
  return names;
}

Command shell() {
  const char* user_shell = std::getenv("SHELL");
  return {user_shell && *user_shell ? user_shell : "/bin/sh"};
}

// The parser's error as a sentence that names what was probably meant.
std::string explain_words(const CLI::ParseError& failure, const CLI::App& app,
                          const std::vector<std::string>& words) {
  if (!dynamic_cast<const CLI::ExtrasError*>(&failure) && app.get_subcommands().size() == 1)
    return explain(app, failure);
  std::vector<std::string_view> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (!words.empty() && app.get_subcommands().empty())
    return fmt::format("there is no command \"{}\"{}; the commands are {}", words.front(),
                       did_you_mean(words.front(), known), fmt::join(known, ", "));
  for (const std::string& word : words) // what the command does not take
    if (std::string(failure.what()).find(word) != std::string::npos)
      return fmt::format("there is no \"{}\" here; --help shows what there is", word);
  return explain(app, failure);
}

class CommandLine {
public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "wanlink " PARC_VERSION);
    add_run();
    exec_->add_option("HOST", host_, "Host to run the command on")->required();
    exec_->footer("COMMAND and its arguments follow the host, after an optional --.");
    for (CLI::App* command : {set_, up_, down_}) {
      command->add_option("FROM", from_, "Host at one end of the link")->required();
      command->add_option("TO", to_, "Host at the other end")->required();
    }
    add_link_options(*set_, text_);
    for (CLI::App* command : {up_, down_})
      command->add_flag("--one-way", one_way_, "Only what goes from FROM to TO");
    status_->add_flag("--json", json_, "As JSON");
    status_->add_flag("--reset", reset_, "Count from zero afterwards");
    for (CLI::App* const command : app_.get_subcommands({})) be_strict(*command);
  }

  int main(Words words) {
    runs_ = !words.ours.empty() && (words.ours.front() == "run" || words.ours.front() == "exec");
    if (const auto problem = read_all_options(app_, words.ours)) return fail(*problem, true);
    try {
      std::vector<std::string> reversed(words.ours.rbegin(), words.ours.rend());
      app_.parse(reversed);
    } catch (const CLI::ParseError& failure) {
      if (failure.get_exit_code() == 0) return app_.exit(failure);
      return fail(explain_words(failure, app_, words.ours), true);
    }
    auto result = dispatch(std::move(words.command));
    if (result) return result.value();
    return fail(result.error().text, false);
  }

private:
  void add_run() {
    run_->add_option("--preset", preset_, preset_help())->type_name(names_of_presets());
    run_->add_option("--hosts", hosts_, "How many hosts (a, b, c, ...), or their names: a,b,c")
        ->capture_default_str();
    run_->add_option("--cc", options_.congestion_control, "TCP congestion control")->capture_default_str();
    run_->add_flag("--no-realtime", no_realtime_, "The relay stays in the normal scheduling class");
    run_->add_option("--seed", options_.seed, "Seed of loss and jitter")->capture_default_str();
    run_->add_option(
            "--closed", closed_,
            "FROM can open no connection to TO, as from outside of a NAT; FROM:TO/22: but to that port")
        ->type_name("FROM:TO,...");
    add_link_options(*run_, text_);
    run_->footer(run_->get_footer() + " FORTH is from the host that is named first.\n"
                                      "COMMAND follows --; without one a shell is started.");
  }

  Result<int> dispatch(Command command) {
    if (!command.empty() && !*run_ && !*exec_) return error(EINVAL, "this command takes no other command");
    PARC_TRY(change, parse(text_));
    if (*run_) {
      PARC_TRY(names, host_names(hosts_));
      options_.hosts = std::move(names);
      if (!preset_.empty()) {
        PARC_TRY(settings, preset(preset_));
        options_.settings = settings;
      }
      PARC_TRY(closed, parse_directions(closed_));
      options_.closed = std::move(closed);
      options_.change = change;
      options_.realtime = no_realtime_ ? RealtimePolicy::Off : RealtimePolicy::Auto;
      options_.command = command.empty() ? shell() : std::move(command);
      return run(options_);
    }
    if (*exec_) return exec(host_, command.empty() ? shell() : command);
    if (*set_) return set(from_, to_, change);
    if (*status_) return status(json_, reset_);
    return set_up(from_, to_, up_->parsed(), one_way_);
  }

  int fail(const std::string& sentence, bool usage) {
    std::cerr << "wanlink: " << sentence << '\n';
    if (runs_) return status_failed;
    return usage ? status_usage : 1;
  }

  CLI::App app_{"wanlink emulates hosts with a wide area network between them, on this machine.", "wanlink"};
  CLI::App* run_ = app_.add_subcommand("run", "Emulate hosts while COMMAND runs");
  CLI::App* exec_ = app_.add_subcommand("exec", "Run COMMAND on an emulated host");
  CLI::App* set_ = app_.add_subcommand("set", "Change the link between two hosts");
  CLI::App* up_ = app_.add_subcommand("up", "Mend a link");
  CLI::App* down_ = app_.add_subcommand("down", "Cut a link: it drops all packets, those on their way too");
  CLI::App* status_ = app_.add_subcommand("status", "Show the links and their counters");

  bool runs_ = false; // a program, whose status others are not to be taken for
  RunOptions options_;
  std::string preset_;
  std::string hosts_ = "2";
  std::string closed_;
  ChangeText text_;
  bool no_realtime_ = false;
  std::string host_;
  std::string from_;
  std::string to_;
  bool one_way_ = false;
  bool json_ = false;
  bool reset_ = false;
};

} // namespace
} // namespace parc::wanlink

int main(int argc, char** argv) {
  parc::open_standard_streams();
  const int status = parc::wanlink::CommandLine().main(parc::wanlink::split(argc, argv));
  return parc::end_of_output("wanlink", status, 1);
}
