// SPDX-License-Identifier: BSD-3-Clause
#include "system/scheduling.hpp"

#include <boost/test/unit_test.hpp>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(scheduling)

using parc::RealtimePolicy;
using parc::SchedulingClass;

namespace {

// Every case changes its class in a thread of its own, so that the others keep theirs.
template <class Case> void in_a_thread(Case body) {
  std::thread(body).join();
}

int policy_of_this_thread() {
  return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

} // namespace

BOOST_AUTO_TEST_CASE(policies_by_name) {
  for (auto policy : {RealtimePolicy::Auto, RealtimePolicy::On, RealtimePolicy::Off})
    BOOST_TEST((parc::parse_realtime_policy(parc::name(policy)).value() == policy));
  BOOST_TEST(!parc::parse_realtime_policy("yes").has_value());
}

BOOST_AUTO_TEST_CASE(off_never_leaves_the_normal_class) {
  in_a_thread([] {
    auto scheduling = SchedulingClass::acquire(RealtimePolicy::Off);
    BOOST_REQUIRE(scheduling.has_value());
    BOOST_TEST(!scheduling.value().in_realtime());
    BOOST_TEST(policy_of_this_thread() == SCHED_OTHER);
    BOOST_TEST(scheduling.value().describe().starts_with("normal, "));
    BOOST_TEST(parc::granted_class() == scheduling.value().describe());
  });
}

BOOST_AUTO_TEST_CASE(polling_and_back_keeps_the_nice_value) {
  in_a_thread([] {
    BOOST_REQUIRE(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1) == 0);
    const int nice_value = getpriority(PRIO_PROCESS, 0);
    auto acquired = SchedulingClass::acquire(RealtimePolicy::Auto);
    BOOST_REQUIRE(acquired.has_value());
    auto& scheduling = acquired.value();
    for (int turn = 0; turn < 3; ++turn) {
      BOOST_TEST(scheduling.in_realtime() == scheduling.realtime_permitted());
      BOOST_TEST(policy_of_this_thread() == (scheduling.realtime_permitted() ? SCHED_RR : SCHED_OTHER));
      scheduling.enter_polling();
      BOOST_TEST(!scheduling.in_realtime());
      BOOST_TEST(parc::granted_class() == "normal, default slice");
      BOOST_TEST(getpriority(PRIO_PROCESS, 0) == nice_value);
      scheduling.enter_reacting();
      BOOST_TEST(getpriority(PRIO_PROCESS, 0) == nice_value);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_child_starts_in_the_normal_class) {
  in_a_thread([] {
    auto scheduling = SchedulingClass::acquire(RealtimePolicy::Auto);
    BOOST_REQUIRE(scheduling.has_value());
    const pid_t child = fork();
    if (child == 0)
      _exit(policy_of_this_thread() == SCHED_OTHER && parc::granted_class() == "normal, default slice" ? 0
                                                                                                       : 1);
    int status = -1;
    BOOST_REQUIRE(waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
  });
}

BOOST_AUTO_TEST_CASE(on_is_an_error_where_it_is_not_permitted) {
  // A child without the privilege: no rtprio limit, and an ordinary user.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_RTPRIO, &none) != 0) _exit(2);
    if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
    auto refused = SchedulingClass::acquire(RealtimePolicy::On);
    auto without = SchedulingClass::acquire(RealtimePolicy::Auto);
    if (refused.has_value() || refused.error().text.find("realtime") == std::string::npos) _exit(4);
    _exit(without.has_value() && !without.value().realtime_permitted() ? 0 : 5);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(WEXITSTATUS(status) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
