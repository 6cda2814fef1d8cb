// SPDX-License-Identifier: BSD-3-Clause
// Jobs of random shape on three kernels, several at once: they talk, crash, exit without closing, are killed
// in every way, and their callers are. When all of a round have ended, the kernels have what they had after
// the first rounds: no more memory, descriptors, processes, System V segments and files. Usage: soak_tests --
// [SECONDS [SEED]], by default 1800 and a random one, which is printed.
#define BOOST_TEST_MODULE soak
#define BOOST_TEST_NO_MAIN
#include "tests/support/hosts.hpp"
#include "tests/support/namespaces.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace parc::test {
namespace {

constexpr int status_skipped = 77; // CMakeLists.txt tells ctest
constexpr std::size_t kernels = 3;
constexpr int warm_up = 8; // rounds, until pools, tables and the heap have their size

enum class Ending { itself, rank_killed, rank_crashed, parc_kill, caller_killed, caller_told, timeout };
constexpr std::array<const char*, 7> ending_names{
    "runs to its end",     "kill -9 of a rank",   "SIGSEGV of a rank", "parc kill",
    "kill -9 of parc run", "SIGTERM to parc run", "--timeout"};

// What a kernel has when nothing runs.
struct Held {
  std::size_t descriptors = 0, processes = 0, files = 0;
  long memory_kib = 0; // of its own, resident
};

std::size_t count_in(const std::string& directory) {
  std::error_code gone;
  const fs::directory_iterator entries(directory, gone);
  return gone ? 0 : static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t children_of(pid_t process) {
  const std::string number = std::to_string(process);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  return static_cast<std::size_t>(std::distance(std::istream_iterator<pid_t>(file), {}));
}

long memory_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  return 0;
}

long median(std::vector<long> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

class Soak {
public:
  explicit Soak(unsigned seed) : random_(seed) {}

  void round() {
    struct Running {
      Process process;
      std::string words;
      Ending ending;
    };
    std::vector<Running> jobs;
    const std::size_t count = 1 + below(4);
    for (std::size_t i = 0; i < count; ++i) {
      const auto ending = static_cast<Ending>(chance(40) ? 0 : below(ending_names.size()));
      auto words = draw_job(ending);
      std::string text;
      for (const std::string& word : words) text += word.substr(word.rfind('/') + 1) + " ";
      jobs.push_back({hosts_.run(std::move(words), below(kernels)), text + "- " + names(ending), ending});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(below(60'000))); // jobs of every age get theirs
    for (Running& job : jobs) disturb(job.process, job.ending);
    // Where a rank is killed, it may be one of another job.
    const bool undisturbed = std::ranges::all_of(jobs, [](const Running& each) {
      return each.ending != Ending::rank_killed && each.ending != Ending::rank_crashed &&
             each.ending != Ending::parc_kill;
    });
    for (Running& job : jobs) {
      // The others of that one may read from anybody, and so wait for each other.
      if (!undisturbed && job.words.find("--keep-going") != std::string::npos && job.process.running())
        job.process.signal(SIGTERM);
      const int status = job.process.wait();
      BOOST_TEST(status != -1, job.words << " hangs" << hosts_);
      if (status == -1) job.process.signal(SIGKILL);
      if (job.ending == Ending::itself && undisturbed)
        BOOST_TEST(status == expected_.at(job.words.substr(0, job.words.find(" - "))),
                   job.words << ": status " << status << ", " << job.process.errors());
    }
    jobs.clear();
    ++rounds_;
    jobs_ += count;
    expected_.clear();
    settle();
    look();
  }

  void report() const {
    std::printf("%d rounds, %zu jobs\n", rounds_, jobs_);
    for (std::size_t i = 0; i < kernels; ++i) {
      const auto& memory = memory_[i];
      if (memory.empty()) continue;
      std::printf(
          "kernel %zu: %zu descriptors, %zu processes, %zu files; memory %ld KiB first, %ld least, %ld most, "
          "%ld last\n",
          i, first_[i].descriptors, first_[i].processes, first_[i].files, memory.front(),
          std::ranges::min(memory), std::ranges::max(memory), memory.back());
    }
  }

  // The last third beside the one before. What a heap keeps differs from job to job, and does not grow with
  // time; it takes half a MiB in one step, which in a short run may be in the last third.
  void check_memory() const {
    constexpr std::size_t least = 30; // looks, else chance counts for more
    constexpr long tolerance_kib = 1024;
    for (std::size_t i = 0; i < kernels; ++i) {
      const auto& all = memory_[i];
      if (all.size() < least) continue;
      const auto third = static_cast<std::ptrdiff_t>(all.size() / 3);
      const long before = median({all.begin() + third, all.begin() + 2 * third});
      const long after = median({all.begin() + 2 * third, all.end()});
      BOOST_TEST(after - before <= tolerance_kib,
                 "kernel " << i << " grows: from " << before << " to " << after << " KiB");
    }
  }

private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  static std::string names(Ending ending) { return ending_names[static_cast<std::size_t>(ending)]; }

  std::string draw_hosts() {
    std::vector<std::string> all{"a", "b", "c"};
    std::ranges::shuffle(all, random_);
    std::string text;
    for (std::size_t i = 0, count = 1 + below(kernels); i < count; ++i)
      text += (i == 0 ? "" : ",") + all[i] + ":" + std::to_string(1 + below(chance(15) ? 12 : 3));
    return text;
  }

  // A job that ends by itself has an end; the others may be at anything.
  std::vector<std::string> draw_job(Ending ending) {
    std::vector<std::string> words{"--hosts", draw_hosts()};
    if (chance(20)) words.emplace_back("--tag-output");
    if (chance(10)) words.emplace_back("--keep-going");
    if (ending == Ending::timeout)
      words.insert(words.end(), {"--timeout", "0." + std::to_string(1 + below(300))});
    const std::string programs = PARC_TEST_PROGRAMS "/", seed = std::to_string(below(1'000'000));
    const std::string bytes = std::to_string(1 + below(chance(30) ? 2'000'000 : 20'000));
    int status = 0;
    if (ending != Ending::itself && chance(60)) {
      words.insert(words.end(), {programs + "ring", bytes, "0"}); // for ever
    } else {
      switch (below(8)) {
      case 0: words.insert(words.end(), {programs + "ring", bytes, std::to_string(1 + below(50))}); break;
      case 1:
        words.insert(words.end(), {programs + "random_messages", seed, std::to_string(1 + below(300))});
        break;
      case 2: words.insert(words.end(), {programs + "all_pairs", bytes}); break;
      case 3: words.insert(words.end(), {programs + "gather"}); break;
      case 4:
        words.insert(words.end(), {programs + "early_churn", seed, "3", chance(50) ? "full" : "envelope"});
        break;
      case 5: words.insert(words.end(), {programs + "mistaken", "open"}); break; // exits without closing
      case 6:
        status = 9;
        words.insert(words.end(), {programs + "ring", bytes, "0", chance(50) ? "exit" : "abort", "0", "9"});
        break;
      default: status = chance(50) ? 0 : 126; words.emplace_back(status == 0 ? "true" : "/tmp");
      }
    }
    std::string text;
    for (const std::string& word : words)
      text += (text.empty() ? "" : " ") + word.substr(word.rfind('/') + 1);
    expected_[text] = status;
    return words;
  }

  void disturb(Process& job, Ending ending) {
    switch (ending) {
    case Ending::rank_killed:
    case Ending::rank_crashed:
      // Perhaps none has begun, or all have ended.
      (void)eventually([&] { return !hosts_.ranks().empty() || !job.running(); });
      if (const auto ranks = hosts_.ranks(); !ranks.empty())
        kill(ranks[below(ranks.size())], ending == Ending::rank_killed ? SIGKILL : SIGSEGV);
      // The ring of another job may have been hit.
      if (job.running()) job.signal(SIGTERM);
      break;
    case Ending::parc_kill: kill_all(job); break;
    case Ending::caller_killed: job.signal(SIGKILL); break;
    case Ending::caller_told: job.signal(SIGTERM); break;
    case Ending::itself:
    case Ending::timeout: break;
    }
  }

  // A job that has not begun is not there yet: again, until its parc run has gone.
  void kill_all(Process& caller) {
    (void)eventually([&] {
      if (!caller.running()) return true;
      Process ps = hosts_.parc("ps", {"--json"}, below(kernels));
      if (ps.wait() != 0) return false;
      const auto status = nlohmann::json::parse(ps.output());
      for (const auto& job : status["jobs"]) {
        Process end =
            hosts_.parc("kill", {"-s", chance(50) ? "KILL" : "TERM", job["job"].get<std::string>()});
        (void)end.wait(); // it may just have ended
      }
      return false;
    });
  }

  // Nothing of any job is there any more.
  void settle() {
    const auto idle = [&](std::size_t host) {
      const auto status = hosts_.status(host);
      return status["jobs"].empty() && status["sessions"].empty();
    };
    BOOST_TEST(eventually([&] { return hosts_.ranks().empty(); }), "ranks are left");
    for (std::size_t i = 0; i < kernels; ++i)
      BOOST_TEST(eventually([&] { return idle(i); }),
                 "host " << i << " still has a job: " << hosts_.status(i).dump());
    BOOST_TEST(eventually([] { return segments() == 0; }), segments() << " segments are left");
    BOOST_TEST(eventually([&] {
                 while (waitpid(-1, nullptr, WNOHANG) > 0) { // no process of a job may have become ours
                 }
                 return children_of(getpid()) == kernels;
               }),
               "processes are left");
  }

  Held held(std::size_t host) {
    const pid_t kernel = hosts_[host].kernel().id();
    return {count_in("/proc/" + std::to_string(kernel) + "/fd"), children_of(kernel),
            count_in(hosts_[host].runtime_dir()), memory_of(kernel)};
  }

  void look() {
    for (std::size_t i = 0; i < kernels; ++i) {
      BOOST_REQUIRE_MESSAGE(hosts_[i].kernel().running(), "a kernel has gone" << hosts_);
      if (rounds_ <= warm_up) {
        const Held now = held(i);
        first_[i] = {std::max(first_[i].descriptors, now.descriptors),
                     std::max(first_[i].processes, now.processes), std::max(first_[i].files, now.files),
                     now.memory_kib};
        continue;
      }
      const Held& first = first_[i];
      Held now;
      BOOST_TEST(eventually([&] {
                   now = held(i);
                   return now.descriptors <= first.descriptors && now.processes <= first.processes &&
                          now.files <= first.files;
                 }),
                 "kernel " << i << " has " << now.descriptors << " descriptors, " << now.processes
                           << " processes, " << now.files << " files; it had " << first.descriptors << ", "
                           << first.processes << ", " << first.files);
      memory_[i].push_back(now.memory_kib);
    }
  }

  std::mt19937 random_;
  Hosts hosts_{kernels, {"--pool", "4 MiB", "--log-level", "off"}};
  std::map<std::string, int> expected_; // statuses of the jobs of this round, by their words
  std::array<Held, kernels> first_{};
  std::array<std::vector<long>, kernels> memory_;
  int rounds_ = 0;
  std::size_t jobs_ = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(what_jobs_leave) {
  const auto& arguments = boost::unit_test::framework::master_test_suite();
  const long seconds = arguments.argc > 1 ? std::stol(arguments.argv[1]) : 1800;
  const unsigned seed =
      arguments.argc > 2 ? static_cast<unsigned>(std::stoul(arguments.argv[2])) : std::random_device{}();
  std::printf("seed %u\n", seed);
  std::fflush(stdout);
  Soak soak(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  auto next_report = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < end) {
    soak.round();
    if (std::chrono::steady_clock::now() < next_report) continue;
    soak.report();
    std::fflush(stdout);
    next_report += 60s;
  }
  soak.report();
  soak.check_memory();
}

} // namespace parc::test

int main(int argc, char** argv) {
  if (!parc::test::enter_namespaces(CLONE_NEWIPC)) {
    std::printf("skipped: no IPC namespace of its own, as neither root nor user namespaces are here (%s)\n",
                std::strerror(errno));
    return parc::test::status_skipped;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return boost::unit_test::unit_test_main(init_unit_test, argc, argv);
}
