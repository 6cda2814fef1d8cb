// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/request.hpp"

#include "system/environment.hpp"
#include "tools/parc/run/mpi_library.hpp"
#include "tools/parc/run/mpi_settings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::tools {
namespace {

// ---- What is to run

// As NAME=VALUE.
Result<std::vector<std::string>> variables_of(const std::vector<std::string>& asked) {
  std::vector<std::string> variables;
  for (std::string word : asked) {
    if (word.find('=') == word.npos) {
      const char* value = std::getenv(word.c_str());
      if (value == nullptr)
        return error(EINVAL, "--env {}: that variable is not set here; write {}=VALUE", word, word);
      word += fmt::format("={}", value);
    }
    if (word.starts_with('=')) return error(EINVAL, "--env {} names no variable; write NAME=VALUE", word);
    variables.push_back(std::move(word));
  }
  return variables;
}

Result<void> set_environment(Program& program, const std::vector<std::string>& asked) {
  PARC_TRY(wanted, variables_of(asked));
  std::vector<std::string>& variables = program.environment = std::move(wanted);
  const auto is_asked = [&variables](std::string_view name) {
    return std::ranges::any_of(variables, [name](std::string_view variable) {
      return variable.substr(0, variable.find('=')) == name;
    });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!is_variable(variable)) continue;
    const std::string_view name = name_of_variable(variable);
    if (is_of_site(name)) program.here.emplace_back(variable);
    if (is_given_to_ranks(name) && !is_asked(name)) variables.emplace_back(variable);
  }
  return success();
}

std::vector<Program::Limit> own_limits() {
  std::vector<Program::Limit> limits;
  for (std::uint32_t resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0)
      limits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  }
  return limits;
}

// As --stdin says, which has been checked. Where there is nothing to read the ranks need no pipe.
std::uint64_t who_reads(const std::string& input) {
  struct stat ours {
  }, null{};
  const bool nothing =
      fstat(STDIN_FILENO, &ours) != 0 ||
      (stat("/dev/null", &null) == 0 && S_ISCHR(ours.st_mode) && ours.st_rdev == null.st_rdev);
  if (nothing || input == "none") return Program::no_rank;
  return input == "all" ? Program::all_ranks : std::stoul(input);
}

// Below our home by the name that this has in the environment, so that others see it is there.
Result<std::string> directory_of_ranks(const std::string& asked) {
  if (asked == "~" || asked.starts_with("~/")) return asked;
  std::error_code failure;
  std::string directory =
      std::filesystem::absolute(asked.empty() ? "." : asked, failure).lexically_normal().string();
  if (failure)
    return error(failure.value(), "cannot tell the working directory: {}; use --wdir", failure.message());
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  const char* const named = std::getenv("HOME");
  if (named == nullptr || *named != '/') return directory;
  const std::string home = std::filesystem::canonical(named, failure).string();
  if (!failure && home != "/" && (directory + "/").starts_with(home + "/"))
    directory = named + directory.substr(home.size());
  return directory;
}

Result<void> check_name(const std::vector<std::string>& command) {
  if (command.empty()) return error(EINVAL, "parc run needs a program to run: parc run -n 4 ./solver");
  if (command[0].empty()) return error(EINVAL, "the name of the program to run is empty");
  return success();
}

// As its ranks find it, where their host has the same files.
std::string found_from(const std::string& name, const std::string& directory) {
  const bool below = name.find('/') != name.npos && !name.starts_with('/') && !directory.empty();
  return below ? directory + "/" + name : name;
}

// Each of its ranks would take itself for the only one.
Result<void> check_mpi(const std::string& name, const std::string& directory) {
  const std::string library = library_of_mpich(found_from(name, directory));
  if (library.empty()) return success();
  return error(EINVAL,
               "{} was built for MPICH or one of its kin (it needs {}), and parc starts ranks of Open MPI; "
               "build it with mpicc.openmpi, or start it with its own mpiexec",
               name, library);
}

// None where there is one program.
Result<std::vector<Program::App>> describe_apps(const RunOptions& options) {
  std::vector<Program::App> apps;
  if (options.further.empty()) return apps;
  apps.push_back({.first_rank = 0, .arguments = options.command});
  std::uint64_t next = *options.ranks;
  for (const AppOptions& each : options.further) {
    PARC_TRY(variables, variables_of(each.environment));
    Program::App& app = apps.emplace_back(Program::App{.first_rank = static_cast<std::uint32_t>(next),
                                                       .arguments = each.command,
                                                       .directory = {},
                                                       .variables = std::move(variables)});
    next += *each.ranks;
    if (each.directory.empty()) continue;
    PARC_TRY(directory, directory_of_ranks(each.directory));
    app.directory = std::move(directory);
  }
  if (apps.size() > most_apps)
    return error(EINVAL, "a job has at most {} programs, not {}", most_apps, apps.size());
  return apps;
}

bool some_make_windows(const RunOptions& options) {
  return may_make_windows(found_from(options.command.at(0), options.directory)) ||
         std::ranges::any_of(options.further, [&](const AppOptions& app) {
           return may_make_windows(
               found_from(app.command.at(0), app.directory.empty() ? options.directory : app.directory));
         });
}

Result<Program> describe_program(const RunOptions& options) {
  Program program;
  program.arguments = options.command;
  std::vector<std::string> asked = options.environment;
  const char* const full = options.mpi ? "envelope" : "full"; // as far as it goes
  if (!options.early_release.empty())
    asked.push_back(fmt::format("{}={}", env_early_release,
                                options.early_release == "full" ? full : options.early_release));
  if (!options.trace.empty() || options.advice.any()) asked.push_back(fmt::format("{}=yes", env_trace));
  if (options.advice.any()) {
    asked.push_back(fmt::format("{}={}", env_trace_pages, trace_pages_unreleased));
    asked.push_back(fmt::format("{}={}", env_early_release, full));
  } else if (options.trace_pages) {
    asked.push_back(fmt::format("{}=yes", env_trace_pages));
    if (options.early_release.empty() && std::getenv(env_early_release) == nullptr)
      asked.push_back(fmt::format("{}=gets", env_early_release));
  }
  if (options.mpi) ask_for_mpi(asked, some_make_windows(options));
  PARC_TRY(set_environment(program, asked));
  PARC_TRY(directory, directory_of_ranks(options.directory));
  program.directory = std::move(directory);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  program.umask = mask;
  program.limits = own_limits();
  program.input = who_reads(options.input);
  program.binds = options.bind == "core";
  program.mpi = options.mpi;
  PARC_TRY(apps, describe_apps(options));
  program.apps = std::move(apps);
  return program;
}

// ---- Where

void set_slots(std::vector<HostSlots>& hosts, const RunOptions& options) {
  for (HostSlots& host : hosts) host.slots = options.ranks_per_host.value_or(host.slots);
}

// The ranks of each program, in their order.
Result<RanksOfApps> ranks_of_apps(const RunOptions& options, const std::vector<HostSlots>& hosts) {
  std::uint64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  std::uint64_t size = options.ranks ? *options.ranks : slots;
  RanksOfApps all{{hosts}, {{0, static_cast<std::uint32_t>(std::min<std::uint64_t>(size, max_ranks))}}};
  for (const AppOptions& app : options.further) {
    size += *app.ranks;
    all.ranks.push_back({app.named.any() ? all.lists.size() : 0, *app.ranks});
    if (!app.named.any()) continue;
    PARC_TRY(own, named_hosts(app.named));
    set_slots(own, options);
    all.lists.push_back(std::move(own));
  }
  if (size > max_ranks) return error(EINVAL, "a job has at most {} ranks, not {}", max_ranks, size);
  // The kernel would know, and is not told where there is nothing to read.
  if (options.input != "all" && options.input != "none" && std::stoul(options.input) >= std::max(size, 1UL))
    return error(EINVAL, "--stdin names rank {}, and the ranks are 0 to {}", options.input, size - 1);
  return all;
}

Result<tool::Run> describe_places(const RunOptions& options, std::vector<HostSlots> hosts) {
  if (hosts.empty()) hosts.push_back({"", options.ranks.value_or(1)});
  set_slots(hosts, options);
  PARC_TRY(ranks, ranks_of_apps(options, hosts));
  const Placement placement = place_all(ranks, std::move(hosts));
  tool::Run request{.keep_going = options.keep_going ? 1u : 0u};
  const bool have_places =
      std::ranges::any_of(placement.hosts, [](const HostSlots& host) { return host.place != HostPlace(); });
  if (have_places) request.places.emplace();
  for (const HostSlots& host : placement.hosts) {
    request.hosts.push_back(host.name);
    if (have_places) request.places->push_back({.wdir = host.place.wdir, .env = host.place.env});
  }
  for (const Run& run : placement.runs) request.runs.insert(request.runs.end(), {run.host, run.ranks});
  return request;
}

} // namespace

Result<void> check_programs(const RunOptions& options) {
  PARC_TRY(check_name(options.command));
  for (const AppOptions& each : options.further) {
    PARC_TRY(check_name(each.command));
  }
  const auto has_ranks = [](const AppOptions& app) { return app.ranks.has_value(); };
  if (!options.further.empty() && !(has_ranks(options) && std::ranges::all_of(options.further, has_ranks)))
    return error(EINVAL, "where \":\" separates programs, each needs its number of ranks: parc run -n 1 "
                         "./master : -n 4 ./worker (-- before the first makes \":\" an argument)");
  if (!options.mpi) return success();
  PARC_TRY(check_mpi(options.command[0], options.directory));
  for (const AppOptions& each : options.further) {
    PARC_TRY(check_mpi(each.command[0], each.directory.empty() ? options.directory : each.directory));
  }
  return success();
}

Result<tool::Run> describe(const RunOptions& options, std::vector<HostSlots> hosts) {
  PARC_TRY(request, describe_places(options, std::move(hosts)));
  PARC_TRY(program, describe_program(options));
  request.payload = control::encode_program(program, request.program);
  if (request.payload.size() > control::max_program_bytes)
    return error(E2BIG, "arguments and environment have {} bytes, and may have {}; give the ranks less",
                 request.payload.size(), control::max_program_bytes);
  return request;
}

} // namespace parc::tools
