// SPDX-License-Identifier: BSD-3-Clause
// Settings from and to TOML. toml++ parses; what is here turns its nodes into the text that the table of
// options takes, and every complaint into a sentence that begins with file and line.
#include "daemon/settings/config.hpp"

#include "system/nearest.hpp"
#include "system/quote.hpp"
#include "system/read_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <toml++/toml.h>

namespace parc::daemon {
namespace {

class FileReader {
public:
  FileReader(Config& config, const std::string& path) : config_(config), path_(path) {}

  Result<void> read(const toml::table& table) {
    for (const auto& [key, node] : table) {
      auto read = key == "hosts" ? read_hosts(node) : read_setting(key.str(), node);
      if (!read) return read;
    }
    return success();
  }

private:
  [[nodiscard]] std::string position(const toml::node& node) const {
    return fmt::format("{}:{}", path_, node.source().begin.line);
  }

  Result<void> read_setting(std::string_view key, const toml::node& node) {
    std::vector<std::string_view> known{"hosts"};
    for (std::size_t i = 0; i < option_count; ++i) {
      const Option& option = options()[i];
      if (option.key == key && !option.in_file)
        return error(EBADMSG,
                     "{}: {} cannot be set here, because programs do not read this file; use {} or {}",
                     position(node), key, option.flag(), option.variable());
      if (option.in_file) known.push_back(option.key);
      if (option.key != key) continue;
      auto text = text_of(option, node);
      if (!text) return std::move(text).error().in(position(node));
      if (auto set = option.set(config_, text.value()); !set)
        return error(EBADMSG, "{}: {}: {}", position(node), key, set.error().text);
      config_.origin[i] = position(node);
      return success();
    }
    return error(EBADMSG, "{}: unknown setting {}{}", position(node), quote(key), did_you_mean(key, known));
  }

  static Result<std::string> text_of(const Option& option, const toml::node& node) {
    if (const auto number = node.as_integer(); number && option.form == Form::Number)
      return fmt::to_string(number->get());
    if (const auto text = node.as_string()) return text->get();
    if (const auto array = node.as_array(); array && option.form == Form::List) {
      std::string list;
      for (const auto& element : *array) {
        const auto word = element.as_string();
        if (!word) return error(EBADMSG, "{}: every element must be a text in quotes", option.key);
        list.append(list.empty() ? "" : ",").append(word->get());
      }
      return list;
    }
    static constexpr std::array<std::string_view, 3> wanted{"a number", "a text in quotes",
                                                            "a list of texts"};
    return error(EBADMSG, "{} must be {}", option.key, wanted[static_cast<std::size_t>(option.form)]);
  }

  Result<void> read_hosts(const toml::node& node) {
    const auto table = node.as_table();
    if (!table) return error(EBADMSG, "{}: hosts must be a table: [hosts]", position(node));
    for (const auto& [name, entry] : *table) {
      if (auto named = parse_host_name(name.str()); !named)
        return error(EBADMSG, "{}: {}", position(entry), named.error().text);
      if (auto taken = take_host(std::string(name.str()), entry); !taken)
        return error(EBADMSG, "{}: host {}: {}", position(entry), name.str(), taken.error().text);
    }
    return success();
  }

  Result<void> take_host(const std::string& name, const toml::node& entry) {
    if (const auto text = entry.as_string()) {
      PARC_TRY(host, parse_host_address(text->get()));
      config_.hosts.insert_or_assign(name, std::move(host));
      return success();
    }
    const auto table = entry.as_table();
    if (!table)
      return error(EBADMSG, "write \"address:port\", {{ address = \"...\", port = ... }}, "
                            "{{ ssh = \"...\" }} or {{ via = \"...\" }}");
    static constexpr std::array<std::string_view, 9> known{"address", "port",   "ssh",  "via", "relay",
                                                           "dial",    "prefix", "wdir", "env"};
    for (const auto& [key, value] : *table)
      if (std::ranges::find(known, key.str()) == known.end())
        return error(EBADMSG,
                     "unknown key {}{} (a name with a dot in it stands in quotation marks: "
                     "\"node1.site\" = ...)",
                     quote(key.str()), did_you_mean(key.str(), known));
    PARC_TRY(place, place_of(*table));
    constexpr std::array ways{"address", "port", "ssh", "via", "relay", "dial"};
    if (std::ranges::any_of(ways, [table](const char* key) { return table->contains(key); })) {
      PARC_TRY(host, way_of(name, *table));
      config_.hosts.insert_or_assign(name, std::move(host));
    }
    if (place != HostPlace()) config_.places.insert_or_assign(name, std::move(place));
    return success();
  }

  static Result<HostPlace> place_of(const toml::table& table) {
    HostPlace place;
    const auto take = [&place](std::string_view key, const toml::node& node,
                               const std::string& before = {}) -> Result<void> {
      const auto value = node.value<std::string>();
      if (!value) return error(EBADMSG, "{} must be a text in quotes", key);
      const auto taken = set(place, key, before + *value);
      return taken ? success() : Result<void>(error(EBADMSG, "{}", taken.error().text));
    };
    for (const char* key : {"prefix", "wdir"})
      if (const toml::node* const node = table.get(key)) {
        PARC_TRY(take(key, *node));
      }
    const toml::node* const env = table.get("env");
    if (env == nullptr) return place;
    if (!env->is_table()) return error(EBADMSG, "env must be a table: {{ NAME = \"VALUE\" }}");
    for (const auto& [name, value] : *env->as_table()) {
      PARC_TRY(take("env", value, std::string(name.str()) + "="));
    }
    return place;
  }

  // How it is reached; without an address, by its name.
  static Result<HostAddress> way_of(std::string_view name, const toml::table& entry) {
    const toml::table* const table = &entry;
    if (const auto ssh = (*table)["ssh"]) {
      constexpr std::array of_dialed{"address", "port", "via", "dial"};
      if (std::ranges::any_of(of_dialed, [table](const char* key) { return table->contains(key); }))
        return error(EBADMSG,
                     "a host is reached through ssh or dialed: write ssh, or address, port, via and dial");
      const auto host = ssh.value<std::string>();
      if (!host) return error(EBADMSG, "ssh must be a text in quotes");
      PARC_TRY(behind, parse_ssh_host(*host));
      PARC_TRY(only_relays, says_relay(entry));
      behind.only_relays = only_relays;
      return behind;
    }
    auto address = (*table)["address"].value<std::string>();
    if (!address && table->contains("address")) return error(EBADMSG, "address must be a text in quotes");
    if (!address) address = std::string(name);
    // The port has its own key here, so a colon can only belong to an IPv6 address.
    PARC_TRY(host,
             parse_host_address(address->find(':') == std::string::npos ? *address : "[" + *address + "]"));
    if (const auto port = (*table)["port"]) {
      const auto number = port.as_integer();
      if (!number || number->get() < 1 || number->get() > 65535)
        return error(EBADMSG, "port must be a number from 1 to 65535");
      host.port = static_cast<std::uint16_t>(number->get());
    }
    if (const auto via = (*table)["via"]) {
      const auto relay = via.value<std::string>();
      if (!relay) return error(EBADMSG, "via must be a text in quotes");
      PARC_TRY(parse_host_name(*relay));
      if (*relay == name) return error(EBADMSG, "it cannot be reached via itself");
      if (relay->size() > ViaAddress::longest_relay)
        return error(EBADMSG, "via takes names of at most {} bytes", ViaAddress::longest_relay);
      host.via = {.relay = *relay, .host = std::string(name)};
    }
    PARC_TRY(only_relays, says_relay(entry));
    host.only_relays = only_relays;
    PARC_TRY(dials, says_dial(entry));
    host.dials = dials;
    return host;
  }

  static Result<Dials> says_dial(const toml::table& entry) {
    const toml::node* const node = entry.get("dial");
    if (node == nullptr) return Dials::both;
    const auto said = node->value<std::string>();
    if (said == "out") return Dials::out;
    if (said == "in") return Dials::in;
    return error(EBADMSG,
                 "dial must be \"out\", where nobody can dial that host, or \"in\", where it dials nobody");
  }

  static Result<bool> says_relay(const toml::table& entry) {
    const toml::node* const node = entry.get("relay");
    const auto said = node != nullptr ? node->value_exact<bool>() : std::optional(false);
    if (!said) return error(EBADMSG, "relay must be true or false");
    return *said;
  }

  Config& config_;
  const std::string& path_;
};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
  }
  return out + "\"";
}

std::string toml_value(const Option& option, const Config& config) {
  const auto values = option.get(config);
  if (option.form == Form::List) {
    std::vector<std::string> words;
    for (const auto& value : values) words.push_back(in_quotes(value));
    return fmt::format("[{}]", fmt::join(words, ", "));
  }
  const bool bare =
      option.form == Form::Number && values.front().find_first_not_of("0123456789") == std::string::npos;
  return bare ? values.front() : in_quotes(values.front());
}

bool is_value(std::string_view text) {
  try {
    return !toml::parse(fmt::format("x = {}", text)).empty();
  } catch (const toml::parse_error&) {
    return false;
  }
}

// The commonest mistake, in place of what the parser takes it for; none: it is another one.
std::optional<std::string> without_quotes(std::string_view text, std::size_t number) {
  for (; number > 1 && text.find('\n') != text.npos; --number) text.remove_prefix(text.find('\n') + 1);
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const auto equals = line.find('=');
  if (equals == line.npos) return {};
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1, line.find('#') - equals - 1));
  const auto option = std::ranges::find(options(), key, &Option::key);
  if (option != options().end() && option->form == Form::Number) return {};
  if (value.empty() || value.find_first_of("\"'[{=") != value.npos || is_value(value)) return {};
  return fmt::format("{0} = {1}: texts stand in quotation marks: {0} = \"{1}\"", key, value);
}

std::string in_toml(const HostPlace& place) {
  std::vector<std::string> parts, variables;
  if (!place.prefix.empty()) parts.push_back("prefix = " + in_quotes(place.prefix));
  if (!place.wdir.empty()) parts.push_back("wdir = " + in_quotes(place.wdir));
  for (const std::string& variable : place.env) {
    const auto equals = variable.find('=');
    variables.push_back(fmt::format("{} = {}", in_quotes(variable.substr(0, equals)),
                                    in_quotes(variable.substr(equals + 1))));
  }
  if (!variables.empty()) parts.push_back(fmt::format("env = {{ {} }}", fmt::join(variables, ", ")));
  return fmt::to_string(fmt::join(parts, ", "));
}

} // namespace

Result<void> read_config_file(Config& config, const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
    return error(EBADMSG, "cannot read {}: it is a pipe, and settings are read again later; name a file",
                 path);
  PARC_TRY(text, read_file(path));
  toml::table table;
  try {
    table = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    return error(EBADMSG, "{}:{}: {}", path, e.source().begin.line,
                 without_quotes(text, e.source().begin.line).value_or(std::string(e.description())));
  }
  return FileReader(config, path).read(table);
}

std::string to_toml(const Config& config) {
  std::string out = "# Effective settings of parcd, each with where it came from.\n";
  for (std::size_t i = 0; i < option_count; ++i) {
    const Option& option = options()[i];
    const auto setting =
        fmt::format("{}{} = {}", option.in_file ? "" : "# ", option.key, toml_value(option, config));
    out += fmt::format("{:<40} # {}\n", setting, config.origin[i].empty() ? "default" : config.origin[i]);
  }
  std::map<std::string, std::string> entries;
  for (const auto& [name, host] : config.hosts) {
    const std::string how = host.ssh.host.empty()
                                ? fmt::format("address = {}, port = {}", in_quotes(host.address), host.port)
                                : fmt::format("ssh = {}", in_quotes(host.ssh.host));
    const std::string via = host.via.relay.empty() ? "" : ", via = " + in_quotes(host.via.relay);
    constexpr std::array dials{"", ", dial = \"out\"", ", dial = \"in\""};
    entries[name] =
        how + via + (host.only_relays ? ", relay = true" : "") + dials[static_cast<std::size_t>(host.dials)];
  }
  for (const auto& [name, place] : config.places) {
    std::string& entry = entries[name];
    entry += (entry.empty() ? "" : ", ") + in_toml(place);
  }
  if (!entries.empty()) out += "\n[hosts]\n";
  for (const auto& [name, entry] : entries) out += fmt::format("{} = {{ {} }}\n", in_quotes(name), entry);
  return out;
}

} // namespace parc::daemon
