// SPDX-License-Identifier: BSD-3-Clause
// The kernel of this host, its settings and its key. What settings mean only parcd knows: it is run for them.
#include "system/identity.hpp"
#include "system/runtime_dir.hpp"
#include "system/start_kernel.hpp"
#include "tools/parc/doctor/doctor_facts.hpp"
#include "tools/parc/talk/children.hpp"
#include "tools/parc/talk/kernel_connection.hpp"

#include <cerrno>
#include <fstream>
#include <sys/stat.h>
#include <toml++/toml.h>

namespace parc::tools::diagnosis {
namespace {

// What stands in a file between zero bytes.
std::vector<std::string> texts_in(const std::string& file) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t end = std::min(file.find('\0', at), file.size());
    texts.push_back(file.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

// The command that ran this kernel: its environment, its directory, its options.
std::vector<std::string> command_of(pid_t process, const std::string& parcd) {
  const Root root;
  const std::string proc = "/proc/" + std::to_string(process);
  std::vector<std::string> command{"env", "-i"};
  if (const std::string directory = root.link(proc + "/cwd"); root.has(directory))
    command.insert(command.end(), {"-C", directory});
  for (std::string& variable : texts_in(root.text(proc + "/environ")))
    if (variable.find('=') != variable.npos && !variable.starts_with('-'))
      command.push_back(std::move(variable));
  command.push_back(parcd);
  const auto words = texts_in(root.text(proc + "/cmdline"));
  for (std::size_t i = 1; i < words.size(); ++i)
    if (words[i] != "--detach") command.push_back(words[i]);
  return command;
}

std::string sentence_in(const Child& child) {
  std::string text = child.errors.substr(0, child.errors.find('\n'));
  if (text.starts_with("parcd: ")) text.erase(0, 7);
  return text.empty() ? fmt::format("parcd ended with status {} and said nothing", child.status) : text;
}

} // namespace

Result<Settings> parse_settings(const std::string& text) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& failure) {
    return error(EBADMSG, "parcd -T prints what is no TOML: {}", failure.description());
  }
  Settings settings;
  const auto take = [&](const char* key, std::string& value) { value = table[key].value_or(value); };
  const auto take_number = [&](const char* key, std::uint64_t& value) {
    value = static_cast<std::uint64_t>(table[key].value_or(std::int64_t{0}));
  };
  take("name", settings.name);
  take("key_file", settings.key_file);
  take("advertise", settings.advertise);
  take("congestion", settings.congestion);
  take("realtime", settings.realtime);
  take("cross_memory", settings.cross_memory);
  take_number("send_buffer", settings.send_buffer);
  take_number("receive_buffer", settings.receive_buffer);
  take_number("connect_timeout_s", settings.connect_timeout_s);
  if (const auto* listen = table["listen"].as_array())
    for (const auto& each : *listen) settings.listen.push_back(each.value_or(std::string()));
  if (const auto* hosts = table["hosts"].as_table())
    for (const auto& [host, entry] : *hosts)
      if (const auto* fields = entry.as_table()) {
        const std::string name(host.str()), prefix = (*fields)["prefix"].value_or(std::string());
        if (!prefix.empty()) settings.prefixes[name] = prefix;
        if (fields->contains("address"))
          settings.hosts[name] = {.address = (*fields)["address"].value_or(std::string()),
                                  .port = (*fields)["port"].value_or(std::uint16_t{0})};
      }
  return settings;
}

SettingsFacts read_settings(const std::string& runtime_dir, pid_t process) {
  const std::string parcd = parcd_near(path_of_this_program());
  std::vector<std::string> command{parcd};
  if (process != 0)
    command = command_of(process, parcd);
  else if (!runtime_dir.empty())
    command.insert(command.end(), {"--runtime-dir", runtime_dir});
  std::vector<Child> asked(2, Child{.command = command, .input = {}});
  asked[0].command.emplace_back("-T");
  asked[1].command.emplace_back("-t");
  run_all(asked);
  SettingsFacts facts;
  if (asked[0].status != 0) {
    facts.refused = sentence_in(asked[0]);
    return facts;
  }
  auto settings = parse_settings(asked[0].output);
  if (settings)
    facts.settings = std::move(settings).value();
  else
    facts.refused = settings.error().text;
  if (asked[1].status != 0) facts.cannot_start = sentence_in(asked[1]);
  return facts;
}

KeyFacts read_key_facts(const std::string& path) {
  KeyFacts facts{.path = path};
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) facts.error = errno;
    return facts;
  }
  facts.there = true;
  facts.is_file = S_ISREG(status.st_mode);
  facts.owner = status.st_uid;
  facts.mode = status.st_mode & 07777;
  std::string word;
  if (facts.is_file) std::ifstream(path) >> word;
  facts.of_relay = word.starts_with("relay:"); // as parcd.toml(5) has it
  return facts;
}

KernelFacts read_kernel(const std::string& runtime_dir) {
  KernelFacts facts;
  facts.parc_version = PARC_VERSION;
  const auto dir = find_runtime_dir(runtime_dir);
  if (!dir) {
    if (dir.error().code != ENOENT) facts.runtime_dir_refused = dir.error().text;
    return facts;
  }
  facts.runtime_dir = dir.value().path();
  const auto running = running_kernel(dir.value());
  if (!running) {
    facts.lock_refused = running.error().text;
    return facts;
  }
  facts.runs = running.value().has_value();
  facts.process = running.value().value_or(0);
  if (const auto reader = CounterReader::open(dir.value()))
    facts.counters = reader.value().read_from_outside();
  if (facts.runs) facts.answers = KernelConnection::open_running(runtime_dir).has_value();
  return facts;
}

} // namespace parc::tools::diagnosis
