// SPDX-License-Identifier: BSD-3-Clause
#include "shm/leftovers.hpp"
#include "shm/segment.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <functional>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(segment)

using parc::shm::remove_leftovers;
using parc::shm::Segment;
using namespace std::chrono_literals;

namespace {

bool exists(int id) {
  shmid_ds status{};
  return shmctl(id, IPC_STAT, &status) == 0;
}

// What a process does to its segment before it is killed, and leaves behind.
int leave_one(const std::function<int()>& make) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const int id = make();
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

int make_with_key(std::uint32_t key) {
  return shmget(static_cast<key_t>(key), 4096, IPC_CREAT | IPC_EXCL | 0600);
}

int make_ours() {
  return make_with_key(parc::shm::key_of(getpid(), 3));
}

} // namespace

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
  const int created = leave_one(make_ours);
  const int attached = leave_one([] {
    const int id = make_ours();
    return shmat(id, nullptr, 0) == reinterpret_cast<void*>(-1) ? -1 : id;
  });
  const int alive = make_ours();
  // A stranger's, with whatever key: ftok(path, 'p') gives 0x70......; and one of ours by chance, but used.
  const auto bits = static_cast<std::uint32_t>(getpid()) & 0xffffff;
  const int of_ftok = leave_one([&] { return make_with_key(0x70000000 | bits); });
  const int of_others = leave_one([&] { return make_with_key(parc::shm::key_of(getppid(), 63)); });
  const int used = leave_one([] {
    const int id = make_ours();
    *static_cast<char*>(shmat(id, nullptr, 0)) = 'x';
    return id;
  });
  BOOST_TEST(remove_leftovers(1h).value() == 0u);
  BOOST_TEST(exists(created));
  BOOST_TEST(remove_leftovers(0s).value() >= 2u);
  BOOST_TEST(!exists(created));
  BOOST_TEST(!exists(attached));
  for (const int kept : {alive, of_ftok, of_others, used}) {
    BOOST_TEST(exists(kept));
    shmctl(kept, IPC_RMID, nullptr);
  }
}

BOOST_AUTO_TEST_CASE(a_key_in_use_is_no_obstacle) {
  const int first = make_with_key(parc::shm::key_of(getpid(), 0));
  auto made = Segment::create(4096);
  BOOST_TEST(made.has_value());
  shmctl(first, IPC_RMID, nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
