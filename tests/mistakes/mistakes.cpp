// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mistakes/mistakes.hpp"

#include "tests/support/hosts.hpp"
#include "tests/support/namespaces.hpp"
#include "tests/support/ports.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace parc::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The two kernels, and the directories that a mistake may touch; they are emptied behind each.
class World {
public:
  World() : closed_(free_ports(1)[0]), hosts_(2, {"--connect-timeout-s", "1"}, names_closed()) {
    for (const char* const each : places) fs::create_directory(path(each));
    fs::permissions(path("session"), fs::perms::owner_all);
    fs::create_directory(path("full"));
    const bool mounted =
        mount("none", path("full").c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=16k,nr_inodes=16") == 0;
    BOOST_REQUIRE_MESSAGE(mounted, "cannot mount a small file system: " << std::strerror(errno));
    std::ofstream(path("functions"))
        << "fill() { head -c 100000 /dev/zero >$FULL/fill; true; } 2>/dev/null\n"
        << "take_names() { for i in $(seq 20); do : >$FULL/$i; done; true; } 2>/dev/null\n"
        << "key() { cat $DIR/key; }\n"
        // A command whose files may have so many KiB; what it complains of is no file of it.
        << "small() ( set -o pipefail; { (ulimit -f $1; shift; exec \"$@\" 3>&-) 2>&1 >&3 | cat >&2; } 3>&1 "
           ")\n";
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { umount(path("full").c_str()); }

  void check(const Mistake& mistake) {
    BOOST_TEST_CONTEXT(mistake.name) {
      prepare(mistake);
      const auto files = all_files();
      const int held = segments();
      Process process = start(mistake.command);
      const int status = process.wait();
      BOOST_TEST(status == mistake.status, "status " << status << ", not " << mistake.status << ": "
                                                     << process.errors() << process.output());
      check_sentence(mistake, process.errors());
      BOOST_TEST(eventually([&] { return strangers().empty(); }), "left running: " << words(strangers()));
      BOOST_TEST(eventually([&] { return hosts_.ranks().empty(); }), "a rank was left");
      BOOST_TEST(eventually([&] { return segments() == held; }), "a System V segment was left");
      check_files(files);
      check_kernels();
      clean();
    }
  }

private:
  static constexpr std::array places{"work", "tmp", "session", "config", "state"};

  [[nodiscard]] std::string path(const char* name) const { return hosts_.directory() + "/" + name; }
  [[nodiscard]] std::string names_closed() const {
    return "c = \"127.0.0.1:" + std::to_string(closed_) + "\"\n";
  }

  Process start(const std::string& script) {
    auto environment = hosts_.environment();
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
             {"XDG_RUNTIME_DIR", path("session")},
             {"TMPDIR", path("tmp")},
             {"PATH", PARC_TEST_BIN ":" + std::string(getenv("PATH"))},
             {"PARC_RUNTIME_DIR", hosts_[0].runtime_dir()},
             {"DIR", hosts_.directory()},
             {"NEW", path("new")},
             {"FULL", path("full")},
             {"PARC_KEY_FILE", hosts_.directory() + "/key"},
             {"PORT", std::to_string(hosts_[0].port())},
             {"PLAIN", geteuid() == 0 ? "setpriv --inh-caps=-all --bounding-set=-all" : ""},
             {"PROGRAMS", PARC_TEST_PROGRAMS}})
      environment.emplace_back(name, value);
    return Process({.command = {"bash", "-c", ". $DIR/functions; ulimit -c 0; " + script},
                    .output = path("said.out"),
                    .errors = path("said.err"),
                    .environment = environment,
                    .directory = path("work")});
  }

  void prepare(const Mistake& mistake) {
    if (*mistake.prepare == '\0') return;
    Process preparing = start(mistake.prepare);
    const int status = preparing.wait();
    BOOST_TEST_REQUIRE(status == 0, "preparing failed: " << preparing.errors());
  }

  static void check_sentence(const Mistake& mistake, const std::string& said) {
    const auto lines = lines_of(said);
    BOOST_TEST(static_cast<int>(lines.size()) == mistake.lines, "said \"" << said << "\"");
    if (lines.empty()) return;
    const bool ours = std::ranges::any_of(std::array{"parc: ", "parcd: ", "wanlink: ", "mistaken: "},
                                          [&](const char* who) { return lines[0].starts_with(who); });
    BOOST_TEST(ours, "nobody of ours said \"" << said << "\"");
    for (const std::string& part : mistake.says)
      BOOST_TEST(lines[0].find(part) != std::string::npos,
                 "\"" << lines[0] << "\" does not say \"" << part << "\"");
    for (const char* const crash : {"terminate called", "Sanitizer", "runtime error", "exception"})
      BOOST_TEST(said.find(crash) == std::string::npos, said);
  }

  // Children of this process that are no kernel of ours: left behind by a mistake.
  std::set<pid_t> strangers() {
    std::set<pid_t> found;
    std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
    for (pid_t child = 0; children >> child;)
      if (child != hosts_[0].kernel().id() && child != hosts_[1].kernel().id() &&
          waitpid(child, nullptr, WNOHANG) == 0)
        found.insert(child);
    return found;
  }

  static std::string words(const std::set<pid_t>& processes) {
    std::string text;
    for (const pid_t each : processes) {
      std::ifstream line("/proc/" + std::to_string(each) + "/cmdline", std::ios::binary);
      std::string command;
      std::getline(line, command);
      std::ranges::replace(command, '\0', ' ');
      text += command + "; ";
    }
    return text;
  }

  std::set<std::string> all_files() {
    std::set<std::string> files;
    std::vector<std::string> directories(places.begin(), places.end());
    directories.insert(directories.end(), {"new", "full", "a", "b"});
    for (const std::string& each : directories)
      if (fs::is_directory(path(each.c_str())))
        for (const auto& entry : fs::recursive_directory_iterator(path(each.c_str())))
          files.insert(entry.path());
    return files;
  }

  // The lock of a runtime directory stays, or two kernels could hold one each.
  void check_files(const std::set<std::string>& before) {
    for (const std::string& file : all_files())
      BOOST_TEST((before.contains(file) || file == path("new") + "/lock"), "left behind: " << file);
  }

  void check_kernels() {
    Process job = hosts_.run({"--hosts", "a,b", "true"});
    BOOST_TEST(job.wait() == 0, "the kernels run no job any more: " << job << hosts_);
    BOOST_TEST(job.errors() == "");
  }

  void clean() {
    std::vector<std::string> directories(places.begin(), places.end());
    directories.emplace_back("full");
    for (const std::string& each : directories)
      for (const auto& entry : fs::directory_iterator(path(each.c_str()))) fs::remove_all(entry.path());
    fs::remove_all(path("new"));
  }

  std::uint16_t closed_;
  Hosts hosts_;
};

} // namespace

void check(std::initializer_list<Mistake> mistakes) {
  static World world; // for all, as starting kernels costs more than a mistake
  for (const Mistake& mistake : mistakes) world.check(mistake);
}

} // namespace parc::test
