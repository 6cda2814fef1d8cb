// SPDX-License-Identifier: BSD-3-Clause
// Settings of TCP that slow long links down, as far as parcd's own do not override them.
//
// What is under way on a link is bounded by both ends. At the receiver's, the window is about half of its
// buffer: net.ipv4.tcp_rmem's third number where the system sizes it, twice receive_buffer where that is set,
// but at most twice rmem_max. At the sender's it is tcp_wmem's third number, of which segments take some
// beside their bytes, or send_buffer, but at most wmem_max. By itself parcd sets its send buffer to what the
// path holds, so that little waits in queues; where wmem_max does not allow that, the system sizes it.
#include "tools/parc/doctor/doctor_checks.hpp"
#include "tools/parc/screen/units.hpp"

#include <algorithm>

namespace parc::tools::diagnosis {
namespace {

constexpr std::uint64_t rate = 1'000'000'000 / 8; // bytes per second
constexpr std::uint64_t short_path_us = 1000;     // there parcd takes cubic, and buffers hardly matter
constexpr const char* sysctl_file = "/etc/sysctl.d/parc.conf";

std::string milliseconds(std::uint64_t us) {
  return us >= 10'000 ? fmt::format("{} ms", us / 1000) : fmt::format("{}.{} ms", us / 1000, us % 1000 / 100);
}

std::string bits_text(std::uint64_t bytes_per_second) {
  const std::uint64_t mbits = bytes_per_second / 125'000;
  return mbits >= 10'000 ? fmt::format("{} Gbit/s", mbits / 1000) : fmt::format("{} Mbit/s", mbits);
}

std::string sysctl(std::string_view name, const std::string& value) {
  return fmt::format("sysctl -w {0}=\"{1}\", and the line \"{0} = {1}\" in {2}, as root", name, value,
                     sysctl_file);
}

std::string words_of(const Path& path) {
  return path.to.empty() ? fmt::format("a round trip of {}, taken as an example", milliseconds(path.rtt_us))
                         : fmt::format("the round trip of {} to {}", milliseconds(path.rtt_us), path.to);
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// What a link can do where so many bytes may be under way.
Finding check_flight(std::string check, std::string_view because, std::uint64_t flight, const Path& path,
                     std::string mend) {
  const std::uint64_t product = rate * path.rtt_us / 1'000'000;
  Finding finding{std::move(check), Level::ok,
                  fmt::format("{} may be under way on a link ({}), ", bytes_text(flight), because)};
  if (flight >= product) {
    finding.found += fmt::format("enough for 1 Gbit/s with {}", words_of(path));
    return finding;
  }
  finding.level = Level::warning;
  finding.found +=
      fmt::format("which makes {} with {}; 1 Gbit/s needs {}", bits_text(flight * 1'000'000 / path.rtt_us),
                  words_of(path), bytes_text(product));
  finding.mend = std::move(mend);
  return finding;
}

std::uint64_t rounded_up(std::uint64_t bytes) { // to a power of two, as such settings are
  std::uint64_t power = 1 << 20;
  while (power < bytes) power *= 2;
  return power;
}

Finding check_receive(const TcpFacts& facts, const Settings& settings, const Path& path) {
  const std::uint64_t need = rounded_up(2 * rate * path.rtt_us / 1'000'000);
  if (settings.receive_buffer != 0) {
    const std::uint64_t given = std::min(settings.receive_buffer, facts.rmem_max.value_or(unlimited));
    return check_flight(
        "receive buffer",
        fmt::format("receive_buffer = {} and net.core.rmem_max", bytes_text(settings.receive_buffer)), given,
        path,
        fmt::format("take receive_buffer out of parcd.toml, so that the system sizes it; or {}",
                    sysctl("net.core.rmem_max", fmt::to_string(need))));
  }
  return check_flight(
      "receive buffer", fmt::format("net.ipv4.tcp_rmem allows a buffer of {}", bytes_text(*facts.tcp_rmem)),
      *facts.tcp_rmem / 2, path, sysctl("net.ipv4.tcp_rmem", fmt::format("4096 131072 {}", need)));
}

Finding check_send(const TcpFacts& facts, const Settings& settings, const Path& path) {
  const std::uint64_t need = rounded_up(rate * path.rtt_us / 1'000'000 * 3 / 2);
  if (settings.send_buffer != 0) {
    const std::uint64_t given = std::min(settings.send_buffer, facts.wmem_max.value_or(unlimited));
    return check_flight(
        "send buffer",
        fmt::format("send_buffer = {} and net.core.wmem_max", bytes_text(settings.send_buffer)), given, path,
        fmt::format("take send_buffer out of parcd.toml, so that it follows the path; or {}",
                    sysctl("net.core.wmem_max", fmt::to_string(need))));
  }
  // What segments take beside their bytes: a quarter at most, where they are as long as the path allows.
  return check_flight(
      "send buffer", fmt::format("net.ipv4.tcp_wmem allows a buffer of {}", bytes_text(*facts.tcp_wmem)),
      *facts.tcp_wmem / 4 * 3, path, sysctl("net.ipv4.tcp_wmem", fmt::format("4096 16384 {}", need)));
}

// parcd asks for half of what is to be under way, and for what segments take.
Finding check_send_limit(const TcpFacts& facts, const Path& path) {
  const std::uint64_t product = rate * path.rtt_us / 1'000'000;
  const std::uint64_t wanted = product / 2 + product / 16;
  Finding finding{
      "send buffer limit", Level::ok,
      fmt::format("{} (net.core.wmem_max): parcd can keep queues short", bytes_text(*facts.wmem_max))};
  if (*facts.wmem_max >= wanted) return finding;
  finding.level = Level::warning;
  finding.found =
      fmt::format("{} (net.core.wmem_max) is too little for parcd to bound what is under way on a link of "
                  "1 Gbit/s with {}: short messages wait behind long ones",
                  bytes_text(*facts.wmem_max), words_of(path));
  finding.mend = sysctl("net.core.wmem_max", fmt::to_string(rounded_up(wanted)));
  return finding;
}

// On long paths; of the measurements in this project: 800 kB both ways, 20 ms and 100 Mbit/s.
Finding check_long_path_congestion(const TcpFacts& facts, const std::string& used, const User& user) {
  Finding finding{"congestion control", Level::ok, fmt::format("{}, which suits long links best", used)};
  if (used == "bbr") return finding;
  finding.level = used == "cubic" ? Level::information : Level::warning;
  finding.found =
      fmt::format("{}; on long links bbr is faster (an exchange of 800 kB at 20 ms and 100 Mbit/s: 68 ms, "
                  "78 with cubic)",
                  used);
  const bool may_take = holds(user.is_root() ? facts.available : facts.allowed, "bbr");
  finding.mend = may_take ? "congestion = \"bbr\" in parcd.toml, and start parcd again"
                          : "modprobe tcp_bbr, then " + sysctl("net.ipv4.tcp_congestion_control", "bbr");
  return finding;
}

Finding check_congestion(const TcpFacts& facts, const Settings& settings, const Path& path,
                         const User& user) {
  const bool chooses = settings.congestion == "auto";
  const std::string used = chooses ? facts.congestion : settings.congestion;
  if (path.rtt_us >= short_path_us) return check_long_path_congestion(facts, used, user);
  return {"congestion control", Level::ok, fmt::format("{}; all links are short", used)};
}

// bbr on paths of less than a millisecond, such as this host's own loopback.
Finding check_short_paths(const TcpFacts& facts, const User& user) {
  if (holds(user.is_root() ? facts.available : facts.allowed, "cubic"))
    return {"short links", Level::ok,
            "parcd takes cubic in place of bbr on links of less than a millisecond"};
  std::string allowed;
  for (const std::string& name : facts.allowed) allowed += name + " ";
  return {"short links", Level::warning,
          "bbr costs links of less than a millisecond half of their bandwidth, and this user may not choose "
          "cubic "
          "for them",
          sysctl("net.ipv4.tcp_allowed_congestion_control", allowed + "cubic")};
}

Finding check_idle(const TcpFacts& facts, const std::string& used, const Path& path) {
  Finding finding{"slow start after idle", Level::ok, "off"};
  if (!*facts.slow_start_after_idle) return finding;
  finding.found = "on";
  if (used == "bbr") {
    finding.found += ", which does not matter with bbr";
  } else if (path.rtt_us < short_path_us) {
    finding.found += ", which does not matter on short links";
  } else {
    finding.level = Level::warning;
    finding.found +=
        ": after a pause, as while a program calculates, a link begins slowly again (an exchange of 800 kB "
        "at 20 ms and 100 Mbit/s with cubic: 109 ms, 78 without a pause)";
    finding.mend = sysctl("net.ipv4.tcp_slow_start_after_idle", "0");
  }
  return finding;
}

Finding check_scaling(bool on) {
  if (on) return {"window scaling", Level::ok, "on"};
  return {
      "window scaling", Level::warning,
      "off: no more than 64 KiB of a link can be under way, which is 10 Mbit/s with a round trip of 50 ms",
      sysctl("net.ipv4.tcp_window_scaling", "1")};
}

} // namespace

Findings check_tcp(const TcpFacts& facts, const Settings& settings, const Path& path, const User& user) {
  const std::string used = settings.congestion == "auto" ? facts.congestion : settings.congestion;
  Findings findings;
  if (facts.tcp_rmem) findings.push_back(check_receive(facts, settings, path));
  if (facts.tcp_wmem) findings.push_back(check_send(facts, settings, path));
  if (facts.wmem_max && settings.send_buffer == 0) findings.push_back(check_send_limit(facts, path));
  if (!used.empty()) findings.push_back(check_congestion(facts, settings, path, user));
  if (used == "bbr" && settings.congestion == "auto") findings.push_back(check_short_paths(facts, user));
  if (facts.slow_start_after_idle) findings.push_back(check_idle(facts, used, path));
  if (facts.window_scaling) findings.push_back(check_scaling(*facts.window_scaling));
  return findings;
}

} // namespace parc::tools::diagnosis
