// SPDX-License-Identifier: BSD-3-Clause
// How far a control message walks: preloaded into a sim_kernels whose functions report their calls
// (scripts/count-stays), it follows each message from where its bytes become one to the first answer, or to
// where its handling ends, and counts the calls that go into a member function of another class of the
// kernel's than the caller's, each function once. A constructor, a destructor and an operator are no stay,
// and neither is a function that is in no class.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#define PARC_UNSEEN __attribute__((no_instrument_function))

namespace {

struct Function {
  std::string name, in_class; // empty: it is in none
};

constexpr std::string_view rooms[] = {"parc::daemon::", "parc::control::", "parc::protocol::"};
constexpr std::size_t shown = 10; // ways
const char* const begins = std::getenv("PARC_STAYS_FROM");
const char* const answers = std::getenv("PARC_STAYS_TO"); // with blanks between them and around

// "parc::daemon::Jobs::deliver(...)" is Jobs's. What is nested in a member function is its class's, too.
PARC_UNSEEN Function taken_apart(std::string_view text) {
  for (const std::string_view type : {"void ", "bool ", "auto "}) // of what is made of a template
    if (text.starts_with(type)) text.remove_prefix(type.size());
  const auto* const room = std::find_if(std::begin(rooms), std::end(rooms),
                                        [&](std::string_view each) { return text.starts_with(each); });
  if (room == std::end(rooms)) return {};
  text.remove_prefix(room->size());
  for (const std::string_view within : {"(anonymous namespace)::", "kernel::", "tool::", "detail::"})
    if (text.starts_with(within)) text.remove_prefix(within.size());
  text = text.substr(0, text.find_first_of("(<["));
  const std::size_t colons = text.rfind("::");
  if (colons == text.npos) return {};
  const std::string_view holder = text.substr(0, text.find("::")), member = text.substr(colons + 2);
  const std::string_view innermost = text.substr(0, colons);
  const bool no_stay = innermost == member || innermost.ends_with("::" + std::string(member)) ||
                       member.starts_with('~') || member.starts_with("operator");
  return {std::string(text), no_stay ? "" : std::string(holder)};
}

class Walks {
public:
  // As nm writes them: where a function begins, a letter, its name.
  PARC_UNSEEN explicit Walks(const char* names) {
    std::ifstream file(names);
    for (std::string line; std::getline(file, line);) {
      const std::size_t name = line.find(' ', line.find(' ') + 1);
      if (name == line.npos) continue;
      Function function = taken_apart(std::string_view(line).substr(name + 1));
      if (!function.name.empty()) functions_[std::stoull(line, nullptr, 16)] = std::move(function);
    }
  }

  PARC_UNSEEN void enter(void* address) {
    const Function& function = of(address);
    const bool begin = !on_ && begins != nullptr && function.name == begins;
    if (begin) {
      on_ = true;
      answered_ = false;
      callers_.clear();
      path_.clear();
    }
    if (!on_) return;
    const std::string_view caller = callers_.empty() ? std::string_view() : callers_.back();
    const bool stay = !function.in_class.empty() && function.in_class != caller;
    if (stay && !begin && !answered_) {
      if (std::find(path_.begin(), path_.end(), function.name) == path_.end()) path_.push_back(function.name);
      answered_ = answers != nullptr &&
                  std::string_view(answers).find(' ' + function.name + ' ') != std::string_view::npos;
    }
    callers_.push_back(function.in_class.empty() ? caller : std::string_view(function.in_class));
  }

  PARC_UNSEEN void leave() {
    if (!on_ || callers_.empty()) return;
    callers_.pop_back();
    if (!callers_.empty()) return;
    on_ = false;
    ++walks_[path_];
  }

  // The longest first. With a second line for each: the functions.
  PARC_UNSEEN void report() const {
    std::vector<std::pair<std::size_t, const std::vector<std::string>*>> all;
    std::size_t messages = 0, stays = 0;
    for (const auto& [path, count] : walks_) {
      all.emplace_back(path.size(), &path);
      messages += count;
      stays += count * path.size();
    }
    std::sort(all.rbegin(), all.rend());
    std::printf("%zu messages, %zu ways to go; stays: mean %.1f, most %zu\n", messages, walks_.size(),
                messages != 0 ? static_cast<double>(stays) / static_cast<double>(messages) : 0.0,
                all.empty() ? 0 : all.front().first);
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), shown); ++i) {
      std::printf("%zu\n   ", all[i].first);
      for (const std::string& each : *all[i].second) std::printf(" %s", each.c_str());
      std::printf("\n");
    }
  }

private:
  PARC_UNSEEN const Function& of(void* address) {
    static const Function none;
    Dl_info about{};
    if (base_ == 0 && dladdr(address, &about) != 0) base_ = reinterpret_cast<std::uintptr_t>(about.dli_fbase);
    const auto found = functions_.find(reinterpret_cast<std::uintptr_t>(address) - base_);
    return found == functions_.end() ? none : found->second;
  }

  std::uintptr_t base_ = 0;                                // of the program in memory
  std::unordered_map<std::uintptr_t, Function> functions_; // by where they begin in the program
  bool on_ = false, answered_ = false;
  std::vector<std::string_view> callers_; // the class of each call that is under way
  std::vector<std::string> path_;
  std::map<std::vector<std::string>, std::size_t> walks_;
};

thread_local bool first_thread = false; // the kernels'; their log has one of its own
Walks* walks = nullptr;

__attribute__((constructor)) PARC_UNSEEN void begin() {
  first_thread = true;
  if (const char* const names = std::getenv("PARC_STAYS_NAMES")) walks = new Walks(names);
}

__attribute__((destructor)) PARC_UNSEEN void end() {
  if (walks != nullptr) walks->report();
  walks = nullptr;
}

} // namespace

extern "C" PARC_UNSEEN void __cyg_profile_func_enter(void* function, void*) {
  if (first_thread && walks != nullptr) walks->enter(function);
}
extern "C" PARC_UNSEEN void __cyg_profile_func_exit(void*, void*) {
  if (first_thread && walks != nullptr) walks->leave();
}
