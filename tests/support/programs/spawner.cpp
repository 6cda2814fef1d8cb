// SPDX-License-Identifier: BSD-3-Clause
// spawner WHAT: programs that spawn others, and those others (spawner child HOW).
#include "tests/support/programs/rank.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr int tag_task = 1, tag_result = 2, tag_bye = 3, tag_never = 4;
const char* self = nullptr;

std::vector<int> spawn(parc_context* parc, int count, std::vector<const char*> words,
                       const char* hosts = nullptr) {
  words.insert(words.begin(), {self, "child"});
  words.push_back(nullptr);
  std::vector<int> peers(static_cast<std::size_t>(count), -1);
  rank::expect_code(parc_spawn(parc, words.data(), count, hosts, peers.data()), PARC_OK, "parc_spawn");
  return peers;
}

int status_of(parc_context* parc, int peer) {
  parc_status status{};
  rank::expect_code(parc_wait(parc, parc_initexit(parc, peer, 0), &status), PARC_OK, "waiting for an end");
  rank::expect(status.source == peer && status.has_data == 1, "the end of %d is told as that of %d", peer,
               status.source);
  return static_cast<int>(status.data);
}

// Each gets a task, and says who it is and where; then those leave.
void farm(parc_context* parc, int count, const char* hosts) {
  const auto peers = spawn(parc, count, {"work"}, hosts);
  for (int i = 0; i < count; ++i)
    rank::expect_code(parc_write(parc, peers[static_cast<std::size_t>(i)], tag_task, &i, sizeof i), PARC_OK,
                      "a task");
  for (int i = 0; i < count; ++i) {
    std::array<int, 3> result{}; // task, rank, size
    parc_status status;
    rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, tag_result, result.data(), sizeof result, &status),
                      PARC_OK, "a result");
    rank::expect(result[0] == result[1] && result[2] == count, "rank %d of %d had task %d", result[1],
                 result[2], result[0]);
    rank::expect(status.source == peers[static_cast<std::size_t>(result[0])], "%d has the row of another",
                 status.source);
  }
  for (const int peer : peers)
    rank::expect_code(parc_write(parc, peer, tag_bye, nullptr, 0), PARC_OK, "a last word");
  for (const int peer : peers) rank::expect_code(status_of(parc, peer), 7, "the status");
  rank::expect_code(parc_read(parc, peers[0], tag_never, nullptr, 0, nullptr), PARC_EPEER,
                    "a read of who has left");
  rank::expect_code(parc_kill(parc, peers[0], SIGTERM), PARC_EPEER, "a signal to who has left");
}

void work(parc_context* parc) {
  const int parent = parc_parent(parc);
  rank::expect(parent >= parc_size(parc), "the parent has number %d", parent);
  int task = -1;
  rank::expect_code(parc_read(parc, parent, tag_task, &task, sizeof task, nullptr), PARC_OK, "a task");
  rank::expect_code(parc_barrier(parc), PARC_OK, "a barrier of the spawned");
  std::printf("task %d of rank %d on %s\n", task, rank::number, parc_host(parc, rank::number));
  std::fflush(stdout);
  const std::array<int, 3> result{task, rank::number, parc_size(parc)};
  rank::expect_code(parc_write(parc, parent, tag_result, result.data(), sizeof result), PARC_OK, "a result");
  rank::expect_code(parc_read(parc, parent, tag_bye, nullptr, 0, nullptr), PARC_OK, "a last word");
}

// Leaves while a thread is in parc_spawn, sooner or later in it.
[[noreturn]] void abandon(parc_context* parc, int microseconds, const char* hosts) {
  std::thread([parc, hosts] {
    const std::array<const char*, 4> words{self, "child", "exit", nullptr};
    parc_spawn(parc, words.data(), 1, hosts, nullptr);
  }).detach();
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  std::exit(0);
}

// A rank that may not run yet.
void kill_early(parc_context* parc) {
  if (rank::number != 0)
    for (;;) pause();
  const int last = parc_size(parc) - 1;
  rank::expect_code(parc_kill(parc, last, SIGUSR2), PARC_OK, "parc_kill");
  for (;;) pause();
}

int child(const std::string& how) {
  if (how == "exit") return 9; // without a word
  if (how == "sleep")
    for (;;) pause();
  if (how == "print") {
    std::printf("%s\n", std::string(250'000, '.').c_str());
    return 0;
  }
  parc_context* const parc = rank::open();
  if (how == "heir") { // stays, with a grandchild on the host of its parent
    (void)spawn(parc, 1, {"sleep"}, "a");
    std::printf("nested\n");
    std::fflush(stdout);
    for (;;) pause();
  }
  if (how == "nest") { // grandchildren
    const auto peers = spawn(parc, 2, {"exit"});
    for (const int peer : peers) rank::expect_code(status_of(parc, peer), 9, "the status");
    std::printf("nested\n");
  } else if (how == "crash") {
    std::signal(SIGSEGV, SIG_DFL); // a sanitizer would exit in its handler
    raise(SIGSEGV);
  } else {
    work(parc);
  }
  parc_close(parc);
  return 7;
}

void endings(parc_context* parc) {
  const int exits = spawn(parc, 1, {"exit"})[0], crashes = spawn(parc, 1, {"crash"})[0],
            sleeps = spawn(parc, 1, {"sleep"})[0];
  rank::expect_code(status_of(parc, exits), 9, "the status");
  rank::expect_code(status_of(parc, crashes), 128 + SIGSEGV, "the status");
  rank::expect_code(status_of(parc, crashes), 128 + SIGSEGV, "the status, again");
  const parc_op given_up = parc_initexit(parc, sleeps, 0), end = parc_initexit(parc, sleeps, PARC_QUEUED);
  rank::expect_code(parc_test(parc, given_up, nullptr), 0, "a test");
  rank::expect_code(parc_cancel(parc, given_up), PARC_OK, "parc_cancel");
  rank::expect_code(parc_wait(parc, given_up, nullptr), PARC_ECANCELED, "what was given up");
  rank::expect_code(parc_kill(parc, sleeps, 0), PARC_OK, "a look");
  rank::expect_code(parc_kill(parc, sleeps, SIGUSR1), PARC_OK, "parc_kill");
  parc_completion ended;
  rank::expect_code(parc_completions(parc, &ended, 1, -1), 1, "parc_completions");
  rank::expect(ended.operation == end && ended.status.data == 128 + SIGUSR1, "it ended with %d",
               static_cast<int>(ended.status.data));
  rank::expect_code(status_of(parc, spawn(parc, 1, {"nest"})[0]), 7, "the status");
}

void mistakes(parc_context* parc) {
  const auto refused = [&](std::vector<const char*> words, int count, const char* hosts, int code,
                           const char* sentence) {
    words.push_back(nullptr);
    rank::expect_code(parc_spawn(parc, words.data(), count, hosts, nullptr), code, "parc_spawn");
    rank::expect(std::strstr(parc_error_detail(), sentence) != nullptr, "not a word of \"%s\"", sentence);
  };
  refused({}, 1, nullptr, PARC_EINVAL, "no program");
  refused({""}, 1, nullptr, PARC_EINVAL, "no program");
  refused({"true"}, 0, nullptr, PARC_EINVAL, "not 0");
  refused({"true"}, -1, nullptr, PARC_EINVAL, "not -1");
  refused({"./no-such-program"}, 2, nullptr, PARC_ESPAWN, "no such file");
  refused({"/"}, 1, nullptr, PARC_ESPAWN, "cannot start /");
  refused({"true"}, 1, "a:0", PARC_ESPAWN, "a:0");
  refused({"true"}, 1, "nowhere.invalid", PARC_ESPAWN, "nowhere.invalid");
  rank::expect_code(parc_spawn(parc, nullptr, 1, nullptr, nullptr), PARC_EINVAL, "no list");
  rank::expect_code(parc_parent(parc), PARC_EINVAL, "parc_parent");
  rank::expect_code(parc_kill(parc, 4711, SIGTERM), PARC_EINVAL, "a signal to nobody");
  rank::expect_code(parc_kill(parc, 0, 1000), PARC_EINVAL, "no signal");
  rank::expect_code(parc_kill(parc, 0, -1), PARC_EINVAL, "no signal");
  rank::expect(parc_initexit(parc, 4711, 0) == PARC_EINVAL, "nobody's end");
  rank::expect(parc_initexit(parc, 0, PARC_NOW) == PARC_EINVAL, "a flag of others");
  rank::expect_code(parc_wait(parc, parc_initexit(parc, 0, 0), nullptr), PARC_EINVAL, "the end of a rank");
  rank::expect(std::strstr(parc_error_detail(),
                           "waiting for the end of peer 0 failed: this program has not") != nullptr,
               "%s", parc_error_detail());
  const int sleeps = spawn(parc, 1, {"sleep"})[0];
  std::vector<parc_op> ends;
  for (int i = 0; i < 64; ++i) ends.push_back(parc_initexit(parc, sleeps, 0));
  rank::expect_code(parc_wait(parc, parc_initexit(parc, sleeps, 0), nullptr), PARC_EAGAIN, "one too many");
  rank::expect(std::strstr(parc_error_detail(), "64 operations wait") != nullptr, "%s", parc_error_detail());
  rank::expect_code(parc_kill(parc, sleeps, SIGKILL), PARC_OK, "parc_kill");
  for (const parc_op end : ends) rank::expect_code(parc_wait(parc, end, nullptr), PARC_OK, "an end");
}

} // namespace

int main(int count, char** words) {
  self = words[0];
  const std::string what = words[1];
  if (what == "child") return child(words[2]);
  parc_context* const parc = rank::open();
  if (what == "farm") {
    farm(parc, std::atoi(words[2]), count > 3 ? words[3] : nullptr);
  } else if (what == "endings") {
    endings(parc);
  } else if (what == "mistakes") {
    mistakes(parc);
  } else if (what == "leave") { // those that it has spawned go on
    const auto peers = spawn(parc, 2, {"work"});
    for (int i = 0; i < 2; ++i) {
      const int peer = peers[static_cast<std::size_t>(i)];
      rank::expect_code(parc_write(parc, peer, tag_task, &i, sizeof i), PARC_OK, "a task");
      rank::expect_code(parc_write(parc, peer, tag_bye, nullptr, 0), PARC_OK, "a last word");
    }
  } else if (what == "stay") { // with those that it has spawned, until a signal
    (void)spawn(parc, 2, {"sleep"});
    std::printf("spawned\n");
    std::fflush(stdout);
    for (;;) pause();
  } else if (what == "heir") { // with one on host b that has one here
    const int heir = spawn(parc, 1, {"heir"}, "b")[0];
    rank::expect_code(status_of(parc, heir), 125, "the status of who was on a lost host");
  } else if (what == "flood") { // begins when there is a file
    while (!std::filesystem::exists(words[3])) std::this_thread::yield();
    for (int i = std::atoi(words[2]); i != 0; --i)
      rank::expect_code(status_of(parc, spawn(parc, 1, {"print"})[0]), 0, "the status");
  } else if (what == "abandon") {
    abandon(parc, std::atoi(words[2]), words[3]);
  } else if (what == "kill-early") {
    kill_early(parc);
  } else if (what == "kill") { // a rank of the job
    if (rank::number == 0) {
      rank::expect_code(parc_kill(parc, 1, SIGUSR2), PARC_OK, "parc_kill");
      rank::expect_code(parc_read(parc, 1, tag_never, nullptr, 0, nullptr), PARC_EPEER,
                        "a read of who was killed");
    } else {
      for (;;) pause();
    }
  }
  return parc_close(parc);
}
