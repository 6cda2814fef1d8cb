// SPDX-License-Identifier: BSD-3-Clause
// The settings of a kernel, and the one table that makes its flags, its keys in parcd.toml, its PARC_*
// variables, its help and what `parcd -T` prints. A later layer wins: built-in defaults,
// /etc/parc/parcd.toml, $XDG_CONFIG_HOME/parc/parcd.toml, environment, flags. Invariant: a Config that
// read_command_line() returned or complete() accepted is complete (no default is left to be looked up) and
// its settings agree with each other.
#pragma once

#include "jobs/host_place.hpp"
#include "system/error.hpp"
#include "system/scheduling.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parc::daemon {

inline constexpr std::uint16_t default_port = 7272;
inline constexpr std::size_t option_count = 23;

struct PortRange {
  std::uint16_t first = default_port;
  std::uint16_t last = default_port; // both 0: any that is free
  bool chosen = false; // set by the user; else, where only this host can connect, any free one will do
  bool operator==(const PortRange&) const = default;
};

// A host that ssh gets to, whose kernel this one reaches through it.
struct SshAddress {
  std::string host;        // as ssh knows it; empty: the kernel is dialed
  std::string command;     // ssh, and options of it; empty: as the setting says
  std::string socket;      // where the kernel over there hears who comes so; empty: it is asked
  std::string prefix = {}; // where parc is installed there; empty: where it is here, or in PATH
  auto operator<=>(const SshAddress&) const = default;
};

// A host that another one leads to, whose kernel relays, as ssh's ProxyJump has it.
struct ViaAddress {
  static constexpr std::size_t longest_relay = 48, longest_host = 64; // bytes of names
  std::string relay;                                                  // its name; empty: the kernel is dialed
  std::string host;                                                   // what that is asked for
  auto operator<=>(const ViaAddress&) const = default;
};

enum class Dials : std::uint8_t { both, out, in };

struct HostAddress {
  std::string address; // numeric, or a name that is resolved when it is needed
  std::uint16_t port = default_port;
  SshAddress ssh = {};
  ViaAddress via = {};
  bool only_relays = false;  // its kernel has no more than a relay key
  Dials dials = Dials::both; // out: nobody dials it; in: it dials nobody
  bool operator==(const HostAddress&) const = default;
};

struct Config {
  std::string name; // of this host, as others call it
  PortRange port;
  std::vector<std::string> listen{"127.0.0.1", "::1"}; // numeric addresses, networks, interfaces
  std::string advertise;                               // address told to other hosts; empty: the link's own
  std::string encryption = "tls";                      // of links: that, or "none" in so many words
  std::string key_file;
  std::string ssh = "ssh"; // and options of it: how this kernel gets to hosts that are reached through it
  std::string runtime_dir; // as chosen; empty: by the rules of system/runtime_dir.hpp
  RealtimePolicy realtime = RealtimePolicy::Auto;
  std::uint32_t fragment_size = 4096;
  std::uint32_t send_buffer = 0;    // of every link's socket, in bytes; 0: it follows the path
  std::uint32_t receive_buffer = 0; // the same; 0: the system's
  std::string congestion = "auto";  // control of every link's socket, or a name that the system knows
  std::uint32_t streams = 0;        // of every direct link; 0: as many as its path is worth
  std::uint64_t pool = 64 << 20;    // bytes for messages that nobody has posted a read for
  std::string local = "direct";     // who brings on long messages between programs of this host
  std::string cross_memory = "auto";
  std::uint32_t spin_us = 200;
  std::uint32_t connect_timeout_s = 5;
  std::uint32_t join_timeout_s = 60;
  std::uint32_t link_timeout_s = 60;
  std::uint32_t idle_timeout_s = 0; // 0: the kernel never ends by itself
  std::string log_level = "info";
  std::map<std::string, HostAddress> hosts; // [hosts]; other names are resolved
  std::map<std::string, HostPlace> places;  // likewise: what is a host's own, wherever it is

  // Where each setting came from, by its index in options(): "/etc/parc/parcd.toml:3", "PARC_PORT", "--port";
  // empty: it is the default.
  std::array<std::string, option_count> origin;
};

// How a setting is written in TOML.
enum class Form { Number, Text, List };

struct Option {
  std::string_view key; // in parcd.toml; the flag is --key with hyphens, the variable PARC_KEY in capitals
  std::string_view placeholder; // in the help
  std::string_view help;
  Form form;
  bool in_file; // false: flag and environment only
  Result<void> (*set)(Config&, std::string_view text);
  std::vector<std::string> (*get)(const Config&);

  [[nodiscard]] std::string flag() const;
  [[nodiscard]] std::string variable() const;
};

// The table of all settings, in the order of the help. No other place knows them all.
[[nodiscard]] std::span<const Option, option_count> options();

struct CommandLine {
  Config config;
  bool detach = false;
  bool announce = false;             // stay, and say when it is ready
  bool check = false;                // -t: answer whether the configuration is right
  bool print = false;                // -T: print the effective settings
  bool make_key = false;             // make the key's file, which is not there yet, and do nothing else
  bool relay_key = false;            // print what is derived from it for hosts that only relay, likewise
  std::optional<std::string> answer; // --help, --version: print this and do nothing else
};

// Reads and checks the settings of all layers; call it again to reload. An error of code EINVAL is a misuse
// of the command line (exit status 2), any other a bad configuration (1).
[[nodiscard]] Result<CommandLine> read_command_line(int argc, const char* const* argv);

// Reads the layers below the flags, without complete(). With `file`, that file stands for both configuration
// files and must exist.
[[nodiscard]] Result<Config> load(const std::string& file = {});

// Completes the settings with what depends on the host, then checks the relations among them.
[[nodiscard]] Result<void> complete(Config& config);

// The settings whose values differ, as "port, pool"; [hosts] is none of them.
[[nodiscard]] std::string differences(const Config& before, const Config& after);

// Whether a numeric address is one of this host that no other can reach.
[[nodiscard]] bool is_loopback(const std::string& address);

// The effective settings as TOML that load() reads back, each with where it came from.
[[nodiscard]] std::string to_toml(const Config& config);

// The address of a kernel: "address", "address:port", "[v6]:port" or a bare IPv6 address.
[[nodiscard]] Result<HostAddress> parse_host_address(std::string_view text);
[[nodiscard]] Result<HostAddress> parse_ssh_host(std::string_view text);
[[nodiscard]] std::string_view trimmed(std::string_view text); // without blanks at its ends

// The name of a host, as it calls itself and [hosts] calls it; an error says which characters it may have.
[[nodiscard]] Result<std::string> parse_host_name(std::string_view text);

// Puts the settings of one file over those of `config`.
[[nodiscard]] Result<void> read_config_file(Config& config, const std::string& path);

} // namespace parc::daemon
