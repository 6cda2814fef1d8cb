// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/mpirun_words.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace parc::tools {
namespace {

std::string_view without_hyphens(std::string_view option) {
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  return option;
}

// Of parc run, besides those that mpirun has, too.
bool has_value_in_run(std::string_view name) {
  constexpr std::array<std::string_view, 8> all{"hosts", "f",     "ppn",  "env",
                                                "bind",  "trace", "link", "runtime-dir"};
  return std::ranges::find(all, name) != all.end();
}

// What mpirun is told where it would refuse; parc run does not.
bool is_needless(std::string_view name) {
  return name == "oversubscribe" || name == "allow-run-as-root";
}

// By other names.
std::string_view name_in_run(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> all{
      {{"bind-to", "bind"}, {"n", "np"}, {"c", "np"}, {"N", "ppn"}, {"npernode", "ppn"}, {"wd", "wdir"}}};
  const auto found = std::ranges::find(all, name, [](const auto& each) { return each.first; });
  return found == all.end() ? name : found->second;
}

// Those of parc mpi for what it prints without a program.
bool is_for_printing(std::string_view word) {
  const std::string_view name = without_hyphens(word);
  return name.starts_with("early-release") || name.starts_with("trace") || name.starts_with("advise") ||
         name.starts_with("link") || word == "-h" || word == "--help";
}

using Word = std::vector<std::string>::const_iterator;

// The option that is there, and its values, as parc run has them.
Word take_option(Word word, Word end, std::vector<std::string>& words) {
  const std::string_view name = without_hyphens(*word);
  const bool is_parameter = name == "mca" || name == "gmca";
  const std::size_t values = has_value_in_run(name) ? 1 : values_of_mpiruns_option(name);
  const Word next = word + 1 + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(values), end - word - 1);
  if (is_needless(name)) return next;
  if (is_parameter && next - word == 3) {
    words.insert(words.end(), {"-x", "OMPI_MCA_" + *(word + 1) + "=" + *(word + 2)});
    return next;
  }
  const std::string_view ours = name_in_run(name);
  if (name == "x" && values == 1 && next - word == 2 && (word + 1)->find('=') == std::string::npos &&
      std::getenv((word + 1)->c_str()) == nullptr) { // mpirun starts the ranks all the same
    fmt::print(stderr, "parc: warning: {} is not set here, so ranks do not get it\n", *(word + 1));
    return next;
  }
  const bool renamed = ours != name || (values == 1 && ours.size() > 1 && !word->starts_with("--"));
  words.push_back(renamed ? "--" + std::string(ours) : *word);
  words.insert(words.end(), word + 1, next);
  return next;
}

} // namespace

std::size_t values_of_mpiruns_option(std::string_view option) {
  constexpr std::array<std::string_view, 42> with_one{"am",
                                                      "app",
                                                      "bind-to",
                                                      "c",
                                                      "cf",
                                                      "cpu-list",
                                                      "cpu-set",
                                                      "cpus-per-proc",
                                                      "default-hostfile",
                                                      "dvm",
                                                      "H",
                                                      "host",
                                                      "hostfile",
                                                      "hnp",
                                                      "launch-agent",
                                                      "machinefile",
                                                      "map-by",
                                                      "max-restarts",
                                                      "max-vm-size",
                                                      "n",
                                                      "N",
                                                      "np",
                                                      "npernode",
                                                      "npersocket",
                                                      "num-proc",
                                                      "output-filename",
                                                      "path",
                                                      "personality",
                                                      "ppr",
                                                      "prefix",
                                                      "preload-files",
                                                      "rank-by",
                                                      "rankfile",
                                                      "report-pid",
                                                      "report-uri",
                                                      "rf",
                                                      "slot-list",
                                                      "stdin",
                                                      "timeout",
                                                      "tune",
                                                      "wdir",
                                                      "x"};
  constexpr std::array<std::string_view, 2> with_two{"gmca", "mca"};
  option = without_hyphens(option);
  if (std::ranges::find(with_two, option) != with_two.end()) return 2;
  return option == "wd" || option == "xterm" || std::ranges::find(with_one, option) != with_one.end() ? 1 : 0;
}

std::vector<std::string> without_mpirun(std::vector<std::string> words) {
  std::vector<std::string> ours{"run", "--mpi"};
  Word word = words.cbegin() + 1;
  bool may_print = true;
  if (word == words.cend() || *word == "-h" || *word == "--help") return words;
  while (word != words.cend() && word->starts_with('-') && *word != "--") {
    if (*word == "--mpirun") return words;
    may_print = may_print && is_for_printing(*word);
    word = take_option(word, words.cend(), ours);
  }
  if (word == words.cend() && may_print) return words;
  const bool is_one_program = word != words.cend() && *word == "--";
  while (word != words.cend()) {
    ours.push_back(*word++);
    if (is_one_program || ours.back() != ":") continue;
    while (word != words.cend() && word->starts_with('-') && *word != "--")
      word = take_option(word, words.cend(), ours);
  }
  return ours;
}

} // namespace parc::tools
