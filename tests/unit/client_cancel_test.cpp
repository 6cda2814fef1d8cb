// SPDX-License-Identifier: BSD-3-Clause
// Threads that are cancelled in a call: what they waited for is there for others, and so is the lead.
#include "fake_program.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <functional>
#include <sys/syscall.h>
#include <unistd.h>

// The sanitizers' runtimes do not know threads that unwind without an exception: what is wrong there is
// theirs.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

BOOST_AUTO_TEST_SUITE(client_cancel)

using namespace parc::test;

namespace {

// A thread that makes one call, and may be cancelled in it.
class Caller {
public:
  explicit Caller(std::function<int()> call) : call_(std::move(call)) {
    BOOST_REQUIRE(pthread_create(
                      &thread_, nullptr,
                      [](void* self) -> void* {
                        auto& caller = *static_cast<Caller*>(self);
                        caller.id_ = static_cast<pid_t>(syscall(SYS_gettid));
                        caller.result_ = caller.call_();
                        return nullptr;
                      },
                      this) == 0);
  }
  // Until it sleeps in that call of the system: as the leader in ppoll, as a follower in futex.
  void await_sleep(long number) const {
    for (;;) {
      std::ifstream file("/proc/self/task/" + std::to_string(id_) + "/syscall");
      long in = -1;
      if (file >> in && in == number) return;
      sched_yield();
    }
  }
  void ask_to_end() { BOOST_TEST(pthread_cancel(thread_) == 0); }
  void cancel() {
    ask_to_end();
    join_cancelled();
  }
  void join_cancelled() {
    void* how = nullptr;
    BOOST_TEST(pthread_join(thread_, &how) == 0);
    BOOST_TEST(how == PTHREAD_CANCELED);
  }
  int join() {
    BOOST_TEST(pthread_join(thread_, nullptr) == 0);
    return result_;
  }

private:
  std::function<int()> call_;
  pthread_t thread_{};
  std::atomic<pid_t> id_ = 0;
  int result_ = 1;
};

struct Waiting : FakeProgram {
  explicit Waiting(int size = 1) : FakeProgram(size) {}
  parc_op start(int tag) { return parc_initread(p, 0, tag, &bytes[tag], 1); }
  void answer(int tag) { kernel.send({.source = 0, .tag = tag, .bytes = "x"}); }
  char bytes[8] = {};
};

} // namespace

BOOST_AUTO_TEST_CASE(a_cancelled_leader_hands_over_the_lead) {
  Waiting program;
  const parc_op first = program.start(1), second = program.start(2), third = program.start(3);
  Caller leader([&] { return parc_wait(program.p, first, nullptr); });
  leader.await_sleep(SYS_ppoll);
  Caller follower([&] { return parc_wait(program.p, second, nullptr); });
  follower.await_sleep(SYS_futex);
  Caller another([&] {
    parc_op both[] = {third, PARC_OP_NULL};
    return parc_waitall(program.p, 2, both, nullptr);
  });
  another.await_sleep(SYS_futex);
  leader.cancel();
  program.answer(2);
  BOOST_TEST(follower.join() == PARC_OK);
  program.answer(3);
  BOOST_TEST(another.join() == PARC_OK);
  program.answer(1); // what it waited for is there for others
  BOOST_TEST(parc_wait(program.p, first, nullptr) == PARC_OK);
}

BOOST_AUTO_TEST_CASE(a_cancelled_follower_leaves_the_others_be) {
  Waiting program;
  const parc_op first = program.start(1), second = program.start(2), third = program.start(3);
  Caller leader([&] { return parc_wait(program.p, first, nullptr); });
  leader.await_sleep(SYS_ppoll);
  Caller follower([&] { return parc_wait(program.p, second, nullptr); });
  Caller another([&] { return parc_wait(program.p, third, nullptr); });
  follower.await_sleep(SYS_futex);
  another.await_sleep(SYS_futex);
  follower.cancel();
  for (const int tag : {3, 1, 2}) program.answer(tag);
  BOOST_TEST(another.join() == PARC_OK);
  BOOST_TEST(leader.join() == PARC_OK);
  BOOST_TEST(parc_wait(program.p, second, nullptr) == PARC_OK);
}

BOOST_AUTO_TEST_CASE(a_cancelled_call_gives_up_what_it_started) {
  Waiting program(2);
  const parc_envelope envelope = parc_envelope_of(0, 0, 5);
  const std::function<int()> calls[] = {
      [&] { return parc_read(program.p, 0, 4, &program.bytes[4], 1, nullptr); },
      [&] { return parc_probe(program.p, &envelope, nullptr); },
  };
  for (const auto& call : calls) {
    Caller caller(call);
    caller.await_sleep(SYS_ppoll);
    caller.cancel();
    program.kernel.await([&] { return program.kernel.reads_posted() == 0; });
  }
  program.answer(4);
  BOOST_TEST(parc_read(program.p, 0, 4, &program.bytes[4], 1, nullptr) == PARC_OK);
}

// Half a barrier would hold up the others: it is finished first.
BOOST_AUTO_TEST_CASE(a_barrier_is_no_cancellation_point) {
  Waiting program(2);
  Caller caller([&] {
    const int code = parc_barrier(program.p);
    pthread_testcancel();
    return code;
  });
  caller.await_sleep(SYS_ppoll);
  caller.ask_to_end(); // before it is answered, and goes on to where it can be cancelled
  std::thread answers([&] {
    program.kernel.await([&] { return program.kernel.reads_posted() == 1; });
    program.kernel.send({.source = 1, .tag = 0, .context = PARC_CONTEXT_RESERVED});
  });
  caller.join_cancelled();
  answers.join();
  BOOST_TEST(program.kernel.sent().size() == 1u); // its own half
}

BOOST_AUTO_TEST_CASE(who_must_not_be_cancelled_is_not) {
  Waiting program;
  const parc_op read = program.start(1);
  Caller caller([&] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    return parc_wait(program.p, read, nullptr);
  });
  caller.await_sleep(SYS_ppoll);
  caller.ask_to_end();
  program.answer(1);
  BOOST_TEST(caller.join() == PARC_OK);
}

BOOST_AUTO_TEST_SUITE_END()

#endif
