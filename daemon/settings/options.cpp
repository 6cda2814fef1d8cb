// SPDX-License-Identifier: BSD-3-Clause
// The table of options: for every setting its name, its words in the help, how its text becomes a value and a
// value its text. Every layer (file, environment, flags) hands over text, so each rule is written once.
#include "daemon/settings/config.hpp"

#include "control/link_messages.hpp"
#include "system/fd.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace parc::daemon {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

namespace {

constexpr std::size_t longest_name = 64; // of a host, on the wire too

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (const auto word = trimmed(text.substr(0, comma)); !word.empty()) words.emplace_back(word);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

// A number, where `sizes` with an optional unit: 4096, "16 KiB", "64M". Units are powers of 1024.
template <class T> Result<T> parse_number(std::string_view text, T least, T most, bool sizes = false) {
  text = trimmed(text);
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  auto unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  unsigned shift = 0;
  if (sizes && !unit.empty()) {
    if (const auto at = std::string_view("KMG").find(unit.front()); at != std::string_view::npos) {
      shift = 10 * static_cast<unsigned>(at + 1);
      unit.remove_prefix(1);
    }
    if (unit == "iB" || unit == "B") unit = {};
  }
  if (failure == std::errc::invalid_argument || !unit.empty())
    return error(EINVAL, "{} is not a {}", quote(text),
                 sizes ? "size (such as 65536 or \"64 KiB\")" : "number");
  if (failure != std::errc{} || value > (UINT64_MAX >> shift) || (value << shift) < least ||
      (value << shift) > most)
    return error(EINVAL, "{} is outside {} to {}", text, least, most);
  return static_cast<T>(value << shift);
}

// Sets a member from text, or hands the error up.
template <class T> Result<void> put(T& member, Result<T> value) {
  if (!value) return std::move(value).error();
  member = std::move(value).value();
  return success();
}

Result<PortRange> parse_ports(std::string_view text) {
  const auto dash = text.find('-', 1); // one in front would be a sign
  PARC_TRY(first, parse_number<std::uint16_t>(text.substr(0, dash), 0, 65535));
  if (dash == std::string_view::npos) return PortRange{first, first, true};
  PARC_TRY(last, parse_number<std::uint16_t>(text.substr(dash + 1), 0, 65535));
  if (first == 0 || last < first)
    return error(EINVAL, "{} is not a range of ports (such as \"60000-60099\")", quote(text));
  return PortRange{first, last, true};
}

bool is_numeric(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

// "10.9" is short for an address, and for no network.
bool numbers_in(const std::string& address) {
  std::array<std::byte, sizeof(in6_addr)> any;
  return inet_pton(AF_INET, address.c_str(), any.data()) == 1 ||
         inet_pton(AF_INET6, address.c_str(), any.data()) == 1;
}

// As the system may call one.
bool is_interface_name(std::string_view text) {
  const auto fits = [](char c) { return c > ' ' && c <= '~' && c != '/' && c != ':'; };
  return !text.empty() && text.size() < IFNAMSIZ && std::ranges::all_of(text, fits);
}

Result<std::vector<std::string>> parse_places(std::string_view text) {
  auto places = split_list(text);
  if (places.empty()) return error(EINVAL, "at least one address is needed (such as 127.0.0.1)");
  for (const std::string& place : places) {
    const auto slash = place.find('/');
    const std::string address = place.substr(0, slash);
    const std::uint32_t most = address.find(':') == address.npos ? 32 : 128;
    if (slash == place.npos ? is_numeric(place) || is_interface_name(place)
                            : numbers_in(address) && parse_number(place.substr(slash + 1), 0u, most))
      continue;
    return error(EINVAL,
                 "{} is not a numeric address (such as 127.0.0.1, ::1 or 0.0.0.0), a network of them "
                 "(10.9.0.0/24), or an interface (wg0)",
                 quote(place));
  }
  return places;
}

} // namespace

Result<std::string> parse_host_name(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  if (text.empty() || text.size() > longest_name || !plain)
    return error(EINVAL, "{} is not a host name: letters, digits, '-', '_' and '.', at most {}", quote(text),
                 longest_name);
  return std::string(text);
}

namespace {

Result<std::string> parse_advertised(std::string_view text) {
  if (text.empty()) return std::string();
  PARC_TRY(host, parse_host_address(text));
  const bool has_port = text.starts_with('[') || host.address.size() != trimmed(text).size();
  const bool looks_numeric = host.address.find_first_not_of("0123456789.:") == std::string::npos;
  if (has_port || (looks_numeric && !is_numeric(host.address)))
    return error(EINVAL, "{} is not an address or a name; the port is that of \"port\"", quote(text));
  return host.address;
}

Result<std::string> parse_word(std::string_view text, std::span<const std::string_view> words,
                               std::string_view why) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return std::string(text);
  return error(EINVAL, "{} is not {}", quote(text), why);
}

Result<std::string> parse_encryption(std::string_view text) {
  static constexpr std::array<std::string_view, 2> words{"tls", "none"};
  return parse_word(text, words, "one of tls, none");
}

Result<std::string> parse_local(std::string_view text) {
  static constexpr std::array<std::string_view, 4> words{"direct", "signal", "wait", "kernel"};
  return parse_word(text, words, "one of direct, signal, wait, kernel");
}

Result<std::string> parse_cross_memory(std::string_view text) {
  static constexpr std::array<std::string_view, 3> words{"auto", "on", "off"};
  return parse_word(text, words, "one of auto, on, off");
}

Result<std::string> parse_log_level(std::string_view text) {
  static constexpr std::array<std::string_view, 6> words{"trace", "debug", "info", "warning", "error", "off"};
  return parse_word(text, words, "one of trace, debug, info, warning, error, off");
}

// Asks the system, which knows what it has and whom it lets use it.
Result<std::string> parse_congestion(std::string_view text) {
  if (text == "auto") return std::string(text);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, text.data(),
                 static_cast<socklen_t>(text.size())) == 0)
    return std::string(text);
  return error(
      EINVAL,
      "{} is not available here: write auto, or one of /proc/sys/net/ipv4/tcp_allowed_congestion_control",
      quote(text));
}

std::vector<std::string> get_ports(const Config& c) {
  if (c.port.first == c.port.last) return {fmt::to_string(c.port.first)};
  return {fmt::format("{}-{}", c.port.first, c.port.last)};
}

constexpr std::uint32_t largest_buffer = 1U << 30;

// The functions of a setting whose value is its text, and of one that is a number.
template <auto member, auto parse> Result<void> set_text(Config& config, std::string_view text) {
  return put(config.*member, parse(text));
}
template <auto member> std::vector<std::string> get_text(const Config& config) {
  return {config.*member};
}

template <auto member, auto least, auto most> Result<void> set_number(Config& config, std::string_view text) {
  using Value = std::remove_reference_t<decltype(config.*member)>;
  return put(config.*member, parse_number<Value>(text, least, most));
}
template <auto member, auto least, auto most> Result<void> set_size(Config& config, std::string_view text) {
  using Value = std::remove_reference_t<decltype(config.*member)>;
  return put(config.*member, parse_number<Value>(text, least, most, true));
}
template <auto member> std::vector<std::string> get_number(const Config& config) {
  return {fmt::to_string(config.*member)};
}

Result<void> set_fragment_size(Config& config, std::string_view text) {
  PARC_TRY(bytes, parse_number<std::uint32_t>(text, 1024, 65536, true));
  if (bytes % 8 != 0) return error(EINVAL, "{} is not a multiple of 8", bytes);
  config.fragment_size = bytes;
  return success();
}

Result<void> set_streams(Config& config, std::string_view text) {
  if (text == "auto") {
    config.streams = 0;
    return success();
  }
  const auto count = parse_number<std::uint32_t>(text, 1, control::kernel::most_streams);
  if (!count)
    return error(EINVAL, "{} is not auto, nor a number from 1 to {}", quote(text),
                 control::kernel::most_streams);
  config.streams = count.value();
  return success();
}
std::vector<std::string> get_streams(const Config& config) {
  return {config.streams == 0 ? "auto" : fmt::to_string(config.streams)};
}

Result<std::string> parse_command(std::string_view text) {
  if (text.find_first_not_of(" \t") == text.npos) return error(EINVAL, "it is empty");
  return std::string(text);
}

Result<std::string> parse_path(std::string_view text) {
  return std::string(text);
}

const std::array<Option, option_count> table{{
    {"name", "NAME", "name of this host, as others call it (default: gethostname up to the first dot)",
     Form::Text, true, set_text<&Config::name, parse_host_name>, get_text<&Config::name>},
    {"port", "PORT", "TCP port to listen on; a range where users share hosts (60000-60099); 0 for any",
     Form::Number, true, set_text<&Config::port, parse_ports>, get_ports},
    {"listen", "ADDRESS,...", "what to listen on: numeric addresses, networks (10.9.0.0/24), interfaces",
     Form::List, true, set_text<&Config::listen, parse_places>, [](const Config& c) { return c.listen; }},
    {"advertise", "ADDRESS", "address that other hosts are told to connect to (default: that of the link)",
     Form::Text, true, set_text<&Config::advertise, parse_advertised>, get_text<&Config::advertise>},
    {"encryption", "tls|none",
     "of links to other hosts; with \"none\" everybody on the network may read along (default: tls)",
     Form::Text, true, set_text<&Config::encryption, parse_encryption>, get_text<&Config::encryption>},
    {"key_file", "FILE",
     "key shared by all hosts (default: $XDG_CONFIG_HOME/parc/key, made at first start); -: standard input",
     Form::Text, true, set_text<&Config::key_file, parse_path>, get_text<&Config::key_file>},
    {"ssh", "COMMAND", "ssh, and options of it, to hosts that are reached through it (default: ssh)",
     Form::Text, true, set_text<&Config::ssh, parse_command>, get_text<&Config::ssh>},
    {"runtime_dir", "DIR",
     "where programs of this host find the kernel (default: $XDG_RUNTIME_DIR/parc or /tmp/parc-UID)",
     Form::Text, false, set_text<&Config::runtime_dir, parse_path>, get_text<&Config::runtime_dir>},
    {"realtime", "auto|on|off", "rest at real-time priority: where permitted, as a condition, never",
     Form::Text, true, set_text<&Config::realtime, parse_realtime_policy>,
     [](const Config& c) { return std::vector{std::string(parc::name(c.realtime))}; }},
    {"fragment_size", "BYTES",
     "largest fragment of a message, a multiple of 8; a link takes the smaller of both sides", Form::Number,
     true, set_fragment_size, get_number<&Config::fragment_size>},
    {"send_buffer", "BYTES", "send buffer of every link's socket; 0 lets it follow the path", Form::Number,
     true, set_size<&Config::send_buffer, 0, largest_buffer>, get_number<&Config::send_buffer>},
    {"receive_buffer", "BYTES", "receive buffer of every link's socket; 0 leaves it to the system",
     Form::Number, true, set_size<&Config::receive_buffer, 0, largest_buffer>,
     get_number<&Config::receive_buffer>},
    {"congestion", "NAME", "congestion control of every link's socket; auto takes what suits its path",
     Form::Text, true, set_text<&Config::congestion, parse_congestion>, get_text<&Config::congestion>},
    {"streams", "auto|COUNT", "connections of every direct link; auto takes what its path is worth",
     Form::Number, true, set_streams, get_streams},
    {"pool", "BYTES", "memory for messages that nobody has posted a read for", Form::Number, true,
     set_size<&Config::pool, 1U << 20, 1ULL << 40>, get_number<&Config::pool>},
    {"local", "direct|signal|wait|kernel",
     "who brings on long messages between programs of this host: their sender, a signal, calls, the kernel",
     Form::Text, true, set_text<&Config::local, parse_local>, get_text<&Config::local>},
    {"cross_memory", "auto|on|off",
     "copy long messages of this host between any memory of two programs: where that is faster, always, "
     "never",
     Form::Text, true, set_text<&Config::cross_memory, parse_cross_memory>, get_text<&Config::cross_memory>},
    {"spin_us", "MICROSECONDS", "longest polling before the kernel sleeps", Form::Number, true,
     set_number<&Config::spin_us, 0, 1'000'000>, get_number<&Config::spin_us>},
    {"connect_timeout_s", "SECONDS", "longest wait for another host's kernel to answer", Form::Number, true,
     set_number<&Config::connect_timeout_s, 1, 3600>, get_number<&Config::connect_timeout_s>},
    {"join_timeout_s", "SECONDS", "longest wait for all ranks of a job that they join by its name",
     Form::Number, true, set_number<&Config::join_timeout_s, 1, 86'400>, get_number<&Config::join_timeout_s>},
    {"link_timeout_s", "SECONDS", "longest silence of another host before it counts as gone", Form::Number,
     true, set_number<&Config::link_timeout_s, 1, 86'400>, get_number<&Config::link_timeout_s>},
    {"idle_timeout_s", "SECONDS", "end when for so long no program has been here; 0: never", Form::Number,
     true, set_number<&Config::idle_timeout_s, 0, 31'536'000>, get_number<&Config::idle_timeout_s>},
    {"log_level", "LEVEL", "trace, debug, info, warning, error or off", Form::Text, true,
     set_text<&Config::log_level, parse_log_level>, get_text<&Config::log_level>},
}};

} // namespace

std::span<const Option, option_count> options() {
  return table;
}

std::string Option::flag() const {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string Option::variable() const {
  std::string variable = "PARC_" + std::string(key);
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return variable;
}

// What ssh takes for an option is no host.
Result<HostAddress> parse_ssh_host(std::string_view text) {
  const auto is_special = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (text.empty() || text.size() > longest_name || text.starts_with('-') ||
      std::any_of(text.begin(), text.end(), is_special))
    return error(EINVAL, "{} is not a host as ssh takes it: NAME, USER@NAME or an alias of ~/.ssh/config",
                 quote(text));
  return HostAddress{.address = {}, .ssh = {.host = std::string(text), .command = {}, .socket = {}}};
}

Result<HostAddress> parse_host_address(std::string_view text) {
  HostAddress host;
  std::string_view port;
  text = trimmed(text);
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return error(EINVAL, "{} has no closing bracket", quote(text));
    host.address = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':'))
      return error(EINVAL, "{} is not an address and a port (such as [::1]:7272)", quote(text));
  } else {
    // Two colons and no bracket: a bare IPv6 address.
    const auto colon = text.find(':');
    const bool bare_v6 =
        colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos;
    host.address = bare_v6 ? text : text.substr(0, colon);
    port = bare_v6 || colon == std::string_view::npos ? std::string_view{} : text.substr(colon);
  }
  if (host.address.empty() || host.address.find_first_of(" \t,/") != std::string::npos)
    return error(EINVAL, "{} is not an address and a port (such as 10.0.0.2:7272)", quote(text));
  if (!port.empty()) {
    PARC_TRY(number, parse_number<std::uint16_t>(port.substr(1), 1, 65535));
    host.port = number;
  }
  return host;
}

} // namespace parc::daemon
