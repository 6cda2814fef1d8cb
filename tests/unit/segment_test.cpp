// SPDX-License-Identifier: BSD-3-Clause
#include "shm/layout.hpp"
#include "shm/leftovers.hpp"
#include "shm/segment.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

using parc::shm::remove_leftovers;
using parc::shm::Segment;
using namespace std::chrono_literals;

namespace {

bool exists(int id) {
  shmid_ds status{};
  return shmctl(id, IPC_STAT, &status) == 0;
}

// A segment of a process that was killed before it could mark it. Keys of tests have their own next 8 bits.
int leave_one(std::uint32_t key) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const int id = shmget(static_cast<key_t>(key), 4096, IPC_CREAT | IPC_EXCL | 0600);
    _exit(write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1);
  }
  int id = -1;
  BOOST_REQUIRE(read(ends[0], &id, sizeof id) == sizeof id);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  BOOST_REQUIRE(id >= 0);
  return id;
}

std::uint32_t test_key(std::uint32_t prefix) {
  return prefix | (static_cast<std::uint32_t>(getpid()) & ~parc::shm::key_mask);
}

} // namespace

BOOST_AUTO_TEST_SUITE(segment)

BOOST_AUTO_TEST_CASE(two_sides_share_it_and_the_last_takes_it_away) {
  auto made = Segment::create(10'000);
  BOOST_REQUIRE(made.has_value());
  const int id = made.value().id();
  BOOST_TEST(made.value().size() == 10'000u);
  BOOST_TEST(static_cast<int>(made.value().data()[9'999]) == 0);
  auto attached = Segment::attach(id, 10'000);
  BOOST_REQUIRE(attached.has_value());
  std::strcpy(reinterpret_cast<char*>(made.value().data()), "shared");
  BOOST_TEST(reinterpret_cast<const char*>(attached.value().data()) == std::string("shared"));
  made.value() = Segment();
  BOOST_TEST(exists(id));
  attached.value() = Segment();
  BOOST_TEST(!exists(id));
}

BOOST_AUTO_TEST_CASE(it_is_marked_for_removal_and_private) {
  auto made = Segment::create(4096);
  BOOST_REQUIRE(made.has_value());
  shmid_ds status{};
  BOOST_REQUIRE(shmctl(made.value().id(), IPC_STAT, &status) == 0);
  BOOST_TEST((status.shm_perm.mode & SHM_DEST) != 0);
  BOOST_TEST((status.shm_perm.mode & 0777) == 0600);
}

BOOST_AUTO_TEST_CASE(moving_keeps_one_owner) {
  auto made = Segment::create(4096);
  BOOST_REQUIRE(made.has_value());
  Segment first = std::move(made.value());
  Segment second = std::move(first);
  BOOST_TEST(!first);
  BOOST_TEST(!!second);
  const int id = second.id();
  second = Segment();
  BOOST_TEST(!exists(id));
}

BOOST_AUTO_TEST_CASE(what_is_not_as_expected_is_refused) {
  auto made = Segment::create(4096);
  BOOST_REQUIRE(made.has_value());
  const auto other_size = Segment::attach(made.value().id(), 8192);
  BOOST_TEST(!other_size.has_value());
  BOOST_TEST(other_size.error().text.find("has 4096 bytes, not 8192") != std::string::npos);
  const int open_to_all = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
  const auto shared = Segment::attach(open_to_all, 4096);
  BOOST_TEST(!shared.has_value());
  BOOST_TEST(shared.error().text.find("mode 0666") != std::string::npos);
  shmctl(open_to_all, IPC_RMID, nullptr);
  BOOST_TEST(!Segment::attach(open_to_all, 4096).has_value());
}

BOOST_AUTO_TEST_CASE(too_large_a_segment_names_the_limit_or_the_memory) {
  const auto made = Segment::create(SIZE_MAX / 4);
  BOOST_TEST(!made.has_value());
  BOOST_TEST(made.error().text.find("cannot create a shared-memory segment") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(leftovers_of_dead_processes_are_removed_and_nothing_else) {
  const int ours = leave_one(test_key(parc::shm::key_prefix));
  const int others = leave_one(test_key(parc::shm::key_prefix + (1u << 24)));
  const int alive = shmget(static_cast<key_t>(test_key(parc::shm::key_prefix) ^ 1), 4096, IPC_CREAT | 0600);
  BOOST_TEST(remove_leftovers(1h).value() == 0u);
  BOOST_TEST(exists(ours));
  BOOST_TEST(remove_leftovers(0s).value() >= 1u);
  BOOST_TEST(!exists(ours));
  BOOST_TEST(exists(others));
  BOOST_TEST(exists(alive)); // its creator is this process
  shmctl(others, IPC_RMID, nullptr);
  shmctl(alive, IPC_RMID, nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
