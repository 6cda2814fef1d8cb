// SPDX-License-Identifier: BSD-3-Clause
// The layers of the configuration, one over the other, and the relations that the result must keep.
#include "daemon/settings/config.hpp"

#include "system/identity.hpp"
#include "system/nearest.hpp"
#include "system/usage.hpp"

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <netdb.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

constexpr const char* system_file = "/etc/parc/parcd.toml";

Result<void> read_environment(Config& config) {
  for (std::size_t i = 0; i < option_count; ++i) {
    const std::string variable = options()[i].variable();
    const char* value = secure_getenv(variable.c_str());
    if (!value || !*value) continue;
    if (auto set = options()[i].set(config, value); !set)
      return error(EBADMSG, "environment variable {}: {}", variable, set.error().text);
    config.origin[i] = variable;
  }
  return success();
}

Result<void> read_if_there(Config& config, const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return success();
  return read_config_file(config, path);
}

// What the flags said, by place in the table; the layers below are read first, then these go over them.
struct Flags {
  std::array<std::optional<std::string>, option_count> values;
  std::string file;
};

Result<void> apply_flags(Config& config, const Flags& flags) {
  for (std::size_t i = 0; i < option_count; ++i) {
    if (!flags.values[i]) continue;
    const std::string flag = options()[i].flag();
    if (auto set = options()[i].set(config, *flags.values[i]); !set)
      return error(EINVAL, "{} {}: {}", flag, *flags.values[i], set.error().text);
    config.origin[i] = flag;
  }
  return success();
}

void add_options(CLI::App& app, Flags& flags, CommandLine& line) {
  app.set_help_flag("-h,--help", "print this and exit");
  app.add_flag_callback(
      "--version", [&line] { line.answer = "parcd " PARC_VERSION "\n"; }, "print the version and exit");
  auto* const detach =
      app.add_flag("--detach", line.detach, "return when ready; log to $XDG_STATE_HOME/parc/NAME.log");
  app.add_flag("--announce", line.announce, "stay, close the output when ready, and log to that file")
      ->excludes(detach);
  app.add_flag("-t", line.check, "check the configuration and exit");
  app.add_flag("-T", line.print, "print the effective settings as TOML and exit");
  app.add_flag("--make-key", line.make_key, "make the key file, which must not be there, and exit");
  app.add_flag("--relay-key", line.relay_key, "print the key for hosts that only relay, and exit");
  app.add_option("--config", flags.file, "read this file instead of the two above")->type_name("FILE");
  for (std::size_t i = 0; i < option_count; ++i) {
    const Option& option = options()[i];
    app.add_option_function<std::string>(
           option.flag(), [&flags, i](const std::string& text) { flags.values[i] = text; },
           std::string(option.help))
        ->type_name(std::string(option.placeholder))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  app.footer("Every setting is also a key of parcd.toml (--fragment-size is fragment_size) and a variable\n"
             "(PARC_FRAGMENT_SIZE). Flags win over variables, and variables over files.");
  app.allow_extras(); // unexpected() has words for them
}

} // namespace

bool is_loopback(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return false;
  bool loopback = false;
  if (found->ai_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    loopback = ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  } else if (found->ai_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr;
    loopback = IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
  }
  freeaddrinfo(found);
  return loopback;
}

std::string differences(const Config& before, const Config& after) {
  std::string keys;
  for (const Option& option : options())
    if (option.get(before) != option.get(after)) keys.append(keys.empty() ? "" : ", ").append(option.key);
  return keys;
}

Result<Config> load(const std::string& file) {
  Config config;
  if (!file.empty()) {
    PARC_TRY(read_config_file(config, file));
  } else {
    PARC_TRY(read_if_there(config, system_file));
    if (auto directory = user_config_dir()) {
      PARC_TRY(read_if_there(config, directory.value() + "/parc/parcd.toml"));
    }
  }
  PARC_TRY(read_environment(config));
  return config;
}

// From one to the next, each of which the one before leads to; the last one is dialed, or this host.
Result<void> check_ways(const Config& config) {
  for (const auto& [name, host] : config.hosts) {
    std::vector<std::string> way{name};
    while (way.back() != config.name) {
      const auto next = config.hosts.find(way.back());
      if (next == config.hosts.end() || next->second.via.relay.empty()) break;
      const bool was_there = std::ranges::find(way, next->second.via.relay) != way.end();
      way.push_back(next->second.via.relay);
      if (was_there) return error(EBADMSG, "[hosts] goes in circles: {}", fmt::join(way, " via "));
    }
  }
  return success();
}

Result<void> complete(Config& config) {
  if (config.name.empty()) config.name = short_host_name();
  PARC_TRY(check_ways(config));
  for (auto& [name, host] : config.hosts) {
    if (host.only_relays && config.encryption == "none")
      return error(EBADMSG,
                   "[hosts] says that {} relays: that needs encrypted links, and encryption is \"none\"",
                   name);
    const auto place = config.places.find(name);
    host.ssh.prefix = host.ssh.host.empty() || place == config.places.end() ? "" : place->second.prefix;
  }
  if (config.key_file.empty()) {
    auto directory = user_config_dir();
    if (!directory)
      return std::move(directory).error().in("cannot tell where the key is (or use --key-file)");
    config.key_file = directory.value() + "/parc/key";
  }
  return success();
}

Result<CommandLine> read_command_line(int argc, const char* const* argv) {
  CLI::App app("parcd, the communication kernel of a host. Settings come from /etc/parc/parcd.toml and\n"
               "$XDG_CONFIG_HOME/parc/parcd.toml.",
               "parcd");
  Flags flags;
  CommandLine line;
  add_options(app, flags, line);
  be_strict(app);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto problem = read_all_options(app, words)) return error(EINVAL, "{}", *problem);
  std::ranges::reverse(words); // as the parser takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    line.answer = app.help();
  } catch (const CLI::ParseError& e) {
    return error(EINVAL, "{}", explain(app, e));
  }
  if (line.answer) return line;
  if (const auto problem = unexpected(app)) return error(EINVAL, "{}", *problem);
  PARC_TRY(config, load(flags.file));
  PARC_TRY(apply_flags(config, flags));
  PARC_TRY(complete(config));
  line.config = std::move(config);
  return line;
}

} // namespace parc::daemon
