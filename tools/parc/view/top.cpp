// SPDX-License-Identifier: BSD-3-Clause
// parc top: rates of a kernel, its links and its programs, again and again. The kernel is not asked: each
// look is one at its counters and at the programs' segments, and nothing stays attached in between.
#include "tools/parc/screen/screen.hpp"
#include "tools/parc/view/commands.hpp"
#include "tools/parc/view/top_view.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sched.h>
#include <thread>

namespace parc::tools {
namespace {

struct TopOptions {
  double interval_s = 1;
  bool batch = false;      // tables instead of a screen
  std::uint64_t count = 0; // so many times; 0: without end
  std::string sort = "rank";
  std::string runtime_dir;
};

std::vector<std::string> names_of_sort_keys() {
  std::vector<std::string> names;
  for (const SortKey& key : sort_keys()) names.emplace_back(key.name);
  return names;
}

using Clock = std::chrono::steady_clock;

// None: it has ended, or the system does not count.
std::optional<ThreadTimes> times_of(std::uint64_t process) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(fmt::format("/proc/{}/schedstat", process).c_str(), "re"), std::fclose);
  unsigned long long ran = 0, delayed = 0, runs = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu %llu", &ran, &delayed, &runs) != 3) return {};
  return ThreadTimes{ran, delayed, runs};
}

// Of all its threads, also of those that have ended.
std::uint64_t worked_ns(std::uint64_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(static_cast<pid_t>(process), &clock) != 0 || clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// As "0-2,5".
std::string cores_of(std::uint64_t process) {
  cpu_set_t set;
  if (sched_getaffinity(static_cast<pid_t>(process), sizeof set, &set) != 0) return "?";
  std::string text;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    const std::size_t first = core;
    while (core + 1 < CPU_SETSIZE && CPU_ISSET(core + 1, &set)) ++core;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (core != first) text += fmt::format("-{}", core);
  }
  return text;
}

class Top {
public:
  Top(const TopOptions& options, CounterReader counters, const SortKey& sorted_by)
      : options_(options), counters_(std::move(counters)), sorted_by_(&sorted_by),
        interval_(
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.interval_s))),
        last_(look()) {}

  void print() {
    for (std::uint64_t round = 0; std::cout && (options_.count == 0 || round < options_.count); ++round) {
      std::this_thread::sleep_until(last_.at + interval_);
      next();
      if (round != 0) std::cout << '\n';
      show(page(display_of(stdout)).lines(), stdout);
      std::cout.flush();
    }
  }

  void draw(Screen& screen) {
    next();
    draw_once(screen);
    for (std::uint64_t round = 1; options_.count == 0 || round < options_.count;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(last_.at + interval_ - Clock::now());
      const int key = screen.key(std::max(left, std::chrono::milliseconds(0)));
      if (key == 'q' || key == Screen::gone) return;
      for (const SortKey& each : sort_keys())
        if (key == each.key) sorted_by_ = &each;
      if (key == Screen::nothing || Clock::now() >= last_.at + interval_) {
        next();
        ++round;
      }
      draw_once(screen);
    }
  }

private:
  Look look() {
    // One that was started in its place has counters of its own.
    KernelView seen = look_at_kernel(counters_);
    if (!seen.kernel.alive)
      if (auto fresh = open_counters(options_.runtime_dir); fresh) {
        counters_ = std::move(fresh).value();
        seen = look_at_kernel(counters_);
      }
    Look look{.at = Clock::now(), .view = std::move(seen), .threads = {}};
    const auto add = [&](std::uint64_t process) {
      if (const auto times = times_of(process)) look.threads.emplace(process, *times);
      look.own_ns += worked_ns(process);
    };
    if (const auto cores = core_times())
      look.busy_ns = static_cast<std::uint64_t>((cores->worked + cores->stolen).count());
    if (look.view.kernel.alive) add(look.view.kernel.pid);
    for (const ProgramView& program : look.view.programs) add(program.counted.pid);
    return look;
  }

  void next() {
    Look now = look();
    rates_ = rates_between(last_, now);
    last_ = std::move(now);
    cores_ = last_.view.kernel.alive ? cores_of(last_.view.kernel.pid) : "";
  }

  [[nodiscard]] Page page(const Display& display) const {
    return top_page(rates_, *sorted_by_, {.kernels = cores_, .all = machine_cores_}, display);
  }

  // What does not fit is counted in the last line.
  void draw_once(Screen& screen) const {
    std::vector<Line> lines = page({.columns = screen.width(), .terminal = true}).lines();
    std::string keys = "q: quit; sorted by " + std::string(sorted_by_->name) + "; others:";
    for (const SortKey& each : sort_keys())
      if (&each != sorted_by_) keys += fmt::format(" {} {}", each.key, each.name);
    const std::size_t height = screen.height();
    if (lines.size() + 1 > height && height > 1) {
      keys = fmt::format("{} more; {}", lines.size() + 1 - height, keys);
      lines.resize(height - 1);
    }
    lines.push_back({std::move(keys)});
    screen.draw(lines);
  }

  const TopOptions& options_;
  CounterReader counters_;
  const SortKey* sorted_by_;
  Clock::duration interval_;
  Look last_;
  Rates rates_;
  std::string cores_;
  const unsigned machine_cores_ = this_machine().cores;
};

int top(const TopOptions& options) {
  auto counters = open_counters(options.runtime_dir);
  if (!counters) {
    std::cerr << "parc: " << counters.error().text << '\n';
    return status_failure;
  }
  Top top(options, std::move(counters).value(), *find_sort_key(options.sort));
  if (options.batch) {
    top.print();
    return 0;
  }
  const auto screen = Screen::open();
  if (!screen) {
    std::cerr << "parc: " << screen.error().text << '\n';
    return status_failure;
  }
  top.draw(*screen.value());
  return 0;
}

} // namespace

Command top_command() {
  const auto options = std::make_shared<TopOptions>();
  return {.name = "top",
          .help = "Show how fast this host's kernel, links and ranks go",
          .options =
              [options](CLI::App& app) {
                app.add_option("--interval", options->interval_s, "Seconds from one look to the next")
                    ->check(number_from(0.01, 3600.0));
                app.add_flag("-b,--batch", options->batch, "Print tables, also where there is no terminal");
                app.add_option("-n,--count", options->count, "End after so many")
                    ->check(number_from(1u, 1'000'000'000u));
                app.add_option("--sort", options->sort, "Which ranks come first")
                    ->check(one_of(names_of_sort_keys()));
                add_runtime_dir(app, options->runtime_dir);
              },
          .run = [options] { return top(*options); }};
}

} // namespace parc::tools
