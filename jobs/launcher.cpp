// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/launcher.hpp"

#include "system/identity.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>

namespace parc {
namespace {

// The word behind `key` at the beginning of a line.
std::string value_of(std::string_view key, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second;
    if (words >> first >> second && first == key) return second;
  }
  return {};
}

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// sh's rules hold in csh and fish, too, where nothing needs more than apostrophes around it; those take
// neither an end of a line nor '!' there, and '\\' means something. So all of that is printf's to make, in a
// shell that is.
std::string any_shells_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  const auto is_special = [](char c) { return c == '!' || c == '\\' || static_cast<unsigned char>(c) < ' '; };
  const auto holds_quote = [](const std::string& word) { return word.find('\'') != word.npos; };
  if (std::ranges::none_of(line, is_special) && std::ranges::none_of(words, holds_quote)) return line;
  std::string text;
  for (const char c : line) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr(" _./:=,@+-", c) != nullptr;
    text += plain ? std::string(1, c) : fmt::format("\\0{:03o}", static_cast<unsigned char>(c));
  }
  return fmt::format(R"line(sh -c 'eval "exec $(printf %b "{}")"')line", text);
}

// ssh as it was asked for; nobody is there to answer a question.
Launcher::Words first_words(std::string_view ssh) {
  Launcher::Words first;
  std::istringstream parts{std::string(ssh)};
  for (std::string part; parts >> part;) first.push_back(std::move(part));
  if (first.empty()) first.emplace_back("ssh"); // PARC_SSH is set to blanks
  for (const char* option : {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}) first.emplace_back(option);
  return first;
}

// A connection of its own, that does what it is for and nothing that the user's configuration wants besides;
// known to be dead some seconds after its path is.
Launcher::Words alone(std::string_view ssh) {
  Launcher::Words all = first_words(ssh);
  for (const char* option :
       {"IgnoreUnknown=ForkAfterAuthentication,SessionType,StdinNull", "ForkAfterAuthentication=no",
        "SessionType=default", "StdinNull=no", "ControlMaster=no", "ControlPath=none", "ForwardAgent=no",
        "ForwardX11=no", "PermitLocalCommand=no", "RemoteCommand=none", "ServerAliveInterval=3",
        "ServerAliveCountMax=3", "LogLevel=INFO", "StreamLocalBindUnlink=yes", "StreamLocalBindMask=0177",
        "ExitOnForwardFailure=no", "EscapeChar=none"})
    all.insert(all.end(), {"-o", option});
  return all;
}

std::string without_colons(std::string_view path) { // as -L takes it
  std::string text;
  for (const char c : path) text += c == ':' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return text;
}

constexpr std::string_view find_parc = R"sh(there=$1 named=$2; shift 2
case $there in "~"*) there=$HOME${there#"~"};; esac
[ -x "$there/parc" ] && PATH=$there:$PATH
if [ -n "$named" ] && ! [ -x "$there/parc" ]; then
  echo "parc is not installed there in $there, as prefix says" >&2
  exit 127
fi
if ! command -v parc >/dev/null; then
  echo "parc is not installed there: neither in $there, as here, nor in PATH ($PATH); install it at one of these" >&2
  exit 127
fi
)sh";

} // namespace

Launcher::Words beside_parc(std::string_view script, const std::string& prefix,
                            const Launcher::Words& arguments) {
  const std::string here = std::filesystem::path(path_of_this_program()).parent_path();
  Launcher::Words all{
      "sh",  "-c", std::string(find_parc).append(script), "parc", prefix.empty() ? here : prefix + "/bin",
      prefix};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

Launcher::Words ssh_tunnel(std::string_view ssh, const std::string& host, const std::string& near,
                           const std::string& far, const Launcher::Words& words) {
  Launcher::Words all = alone(ssh);
  all.insert(all.end(), {"-tt", "-L", without_colons(near) + ":" + without_colons(far), "--", host,
                         any_shells_line(words)});
  return all;
}

Launcher::Words ssh_command(std::string_view ssh, const std::string& host, const Launcher::Words& words) {
  Launcher::Words all = alone(ssh);
  all.insert(all.end(), {"-T", "--", host, any_shells_line(words)});
  return all;
}

Launcher by_ssh(std::string_view ssh) {
  const Launcher::Words first = first_words(ssh);
  const auto command = [first](const std::string& host, const Launcher::Words& words) {
    Launcher::Words all = first;
    all.push_back(host);
    all.push_back(any_shells_line(words)); // which the other side's shell reads once more
    return all;
  };
  const auto question = [first](const std::string& host) {
    Launcher::Words all = first;
    all.insert(all.end(), {"-G", host});
    return all;
  };
  return {.command = command,
          .question = question,
          .address = [](const std::string& said) { return value_of("hostname", said); },
          .ssh = std::string(ssh)};
}

// All that the job has on that host, whatever the variables of the job say of its other steps.
Launcher by_srun() {
  const auto command = [](const std::string& host, const Launcher::Words& words) {
    Launcher::Words all{
        "srun",    "--quiet",         "--nodes=1",  "--ntasks=1",      "--ntasks-per-node=1", "--overlap",
        "--mem=0", "--cpu-bind=none", "--mpi=none", "--job-name=parc", "--nodelist=" + host,  "--"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  const auto question = [](const std::string& host) {
    return Launcher::Words{"sinfo", "--noheader", "--nodes=" + host, "--format=address %o"};
  };
  return {.command = command,
          .question = question,
          .address = [](const std::string& said) { return value_of("address", said); },
          .keeps = true};
}

} // namespace parc
