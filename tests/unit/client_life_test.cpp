// SPDX-License-Identifier: BSD-3-Clause
// Joining and leaving: kernels that are not there, speak another version or die; forks; exits.
#include "client/calls/context.hpp"
#include "fake_program.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(client_life)

using namespace parc::test;

namespace {

int exit_status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

} // namespace

BOOST_AUTO_TEST_CASE(without_a_kernel_there_is_a_sentence) {
  Scratch scratch;
  Environment environment;
  environment.unset("PARC_PIPES");
  environment.set("PARC_RUNTIME_DIR", scratch.path());
  // In a child, as a process that has been a rank may not join by the socket.
  const pid_t child = fork();
  if (child == 0) {
    environment.set("PARC_PIPES", "7");
    parc_context* p = nullptr;
    if (parc_open(&p) != PARC_EINVAL || getenv("PARC_PIPES")) _exit(1);
    environment.unset("PARC_PIPES");
    const int code = parc_open(&p);
    const bool told = std::string(parc_error_detail()).find(scratch.path()) != std::string::npos;
    _exit(code == PARC_ENOKERNEL || code == PARC_EINVAL ? (told || code == PARC_EINVAL ? 0 : 2) : 3);
  }
  BOOST_TEST(exit_status_of(child) == 0);
}

BOOST_AUTO_TEST_CASE(another_version_is_refused_by_name) {
  FakeKernel kernel(1, parc::shm::layout_version + 1);
  parc_context* p = nullptr;
  BOOST_TEST(parc_open(&p) == PARC_EVERSION);
  BOOST_TEST(std::string(parc_error_detail()).find("upgrade libparc") != std::string::npos);
}

// A program looks at it after a call of its own; and a library that stands before the C library's calls may.
BOOST_AUTO_TEST_CASE(every_call_keeps_errno) {
  FakeProgram program;
  parc_context* const p = program.p;
  parc_status status;
  parc_op none = PARC_OP_NULL;
  parc_release_counts counts;
  parc_completion completion;
  const parc_envelope nobody = parc_envelope_of(0, 0, 77);
  const parc_envelope to_self{0, 5, 0, 0};
  const iovec piece{&status, 0};
  int index = 0, done = 0, peers[1];
  char address[PARC_ADDRESS_BYTES];
  const char* const arguments[] = {"true", nullptr};
  void* block = nullptr;
  std::vector<char> memory(2 << 20);
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"open",
       [&] {
         parc_context* other = nullptr;
         (void)parc_open(&other);
       }},
      {"join",
       [&] {
         parc_context* other = nullptr;
         (void)parc_join(&other, "job", 0, 1);
       }},
      {"rank", [&] { (void)parc_rank(p); }},
      {"size", [&] { (void)parc_size(p); }},
      {"host",
       [&] {
         (void)parc_host(p, 0);
         (void)parc_host(p, 9);
       }},
      {"clock", [] { (void)parc_clock(); }},
      {"alloc", [&] { block = parc_alloc(p, 3 << 20); }},
      {"free",
       [&] {
         parc_free(p, std::exchange(block, nullptr));
         parc_free(p, parc_alloc(p, 10));
       }},
      {"initread", [&] { (void)parc_cancel(p, parc_initread(p, 0, 1, memory.data(), memory.size())); }},
      {"initwrite", [&] { (void)parc_initwrite(p, 0, 9, memory.data(), 8); }},
      {"initreadv", [&] { (void)parc_cancel(p, parc_initreadv(p, &nobody, &piece, 1, 0)); }},
      {"initwritev", [&] { (void)parc_initwritev(p, &nobody, &piece, 1, 0); }},
      {"initread_claimed", [&] { (void)parc_initread_claimed(p, 1, &piece, 1, 0); }},
      {"initprobe", [&] { (void)parc_cancel(p, parc_initprobe(p, &to_self, 0)); }},
      {"iprobe", [&] { (void)parc_iprobe(p, &nobody, &status); }},
      {"test", [&] { (void)parc_test(p, none, &status); }},
      {"done", [&] { (void)parc_done(p, none); }},
      {"wait",
       [&] {
         (void)parc_wait(p, none, &status);
         (void)parc_wait(p, 12345, &status);
       }},
      {"waitall", [&] { (void)parc_waitall(p, 1, &none, &status); }},
      {"waitany", [&] { (void)parc_waitany(p, 1, &none, &index, &status); }},
      {"waitsome", [&] { (void)parc_waitsome(p, 1, &none, &done, &index, &status); }},
      {"completions", [&] { (void)parc_completions(p, &completion, 1, 0); }},
      {"descriptor", [&] { (void)parc_descriptor(p); }},
      {"arm", [&] { (void)parc_arm(p); }},
      {"wake", [&] { (void)parc_wake(p); }},
      {"set_put_off", [&] { (void)parc_set_put_off(p, 0, PARC_ANY_SOURCE); }},
      {"settle", [&] { (void)parc_settle(p, nullptr, 0); }},
      {"set_release", [&] { (void)parc_set_release(p, PARC_RELEASE_FULL); }},
      {"set_order", [&] { (void)parc_set_order(p, PARC_ORDER_ANY); }},
      {"set_strip", [&] { (void)parc_set_strip(p, 0); }},
      {"set_train", [&] { (void)parc_set_train(p, 0); }},
      {"set_copy_room", [&] { (void)parc_set_copy_room(p, 1 << 20); }},
      {"get_release_counts", [&] { (void)parc_get_release_counts(p, &counts); }},
      {"on_lost", [&] { (void)parc_on_lost(p, nullptr, nullptr); }},
      {"address_of", [&] { (void)parc_address_of(p, 99, address, sizeof address); }},
      {"add_peer", [&] { (void)parc_add_peer(p, std::string(5000, 'x').c_str()); }},
      {"spawn", [&] { (void)parc_spawn(p, arguments, -1, "nowhere", peers); }},
      {"parent", [&] { (void)parc_parent(p); }},
      {"kill", [&] { (void)parc_kill(p, 99, 9); }},
      {"initexit", [&] { (void)parc_initexit(p, 99, 0); }},
      {"error_string",
       [] {
         (void)parc_error_string(PARC_EPEER);
         (void)parc_error_detail();
       }},
      {"close", [&] { (void)parc_close(std::exchange(program.p, nullptr)); }},
  };
  for (const auto& [name, call] : calls)
    for (const int value : {EINTR, 0}) {
      errno = value;
      call();
      const int after = errno;
      BOOST_TEST(after == value, name);
    }
}

BOOST_AUTO_TEST_CASE(the_pipes_are_not_for_children) {
  FakeProgram program;
  BOOST_TEST(getenv("PARC_PIPES") == static_cast<char*>(nullptr));
}

BOOST_AUTO_TEST_CASE(closing_tells_the_kernel_and_cancels_reads) {
  FakeProgram program;
  char byte = 0;
  BOOST_TEST(parc_initread(program.p, 0, 1, &byte, 1) > 0);
  BOOST_TEST(parc_close(program.p) == PARC_OK);
  program.p = nullptr;
  BOOST_TEST(program.kernel.left());
  program.kernel.await([&] { return program.kernel.reads_posted() == 0; });
}

// Whatever it waits for, asleep or not, a program learns of its kernel's death.
BOOST_AUTO_TEST_CASE(the_kernels_death_ends_every_call) {
  FakeProgram program;
  char byte = 0;
  constexpr int threads = 4;
  std::vector<int> codes(threads, 0);
  std::vector<std::thread> waiters;
  for (int i = 0; i < threads; ++i)
    waiters.emplace_back(
        [&, i] { codes[static_cast<std::size_t>(i)] = parc_read(program.p, 0, i, &byte, 1, nullptr); });
  const parc_op tested = parc_initread(program.p, 0, 99, &byte, 1);
  program.kernel.await([&] { return program.kernel.reads_posted() == threads + 1; });
  program.kernel.die();
  for (auto& waiter : waiters) waiter.join();
  for (const int code : codes) BOOST_TEST(code == PARC_EKERNEL);
  int code = 0;
  while ((code = parc_test(program.p, tested, nullptr)) == 0) sched_yield();
  BOOST_TEST(code == PARC_EKERNEL);
  BOOST_TEST(parc_initread(program.p, 0, 0, &byte, 1) == PARC_EKERNEL);
  BOOST_TEST(parc_write(program.p, 0, 0, &byte, 1) == PARC_EKERNEL);
  BOOST_TEST(parc_barrier(program.p) == PARC_OK); // alone, there is nobody to wait for
  BOOST_TEST(parc_alloc(program.p, 100u << 20) == static_cast<void*>(nullptr));
  const parc_envelope any = parc_envelope_of(PARC_ANY_SOURCE, 0, PARC_ANY_TAG);
  BOOST_TEST(parc_iprobe(program.p, &any, nullptr) == PARC_EKERNEL);
}

// The kernel dies with its doorbell wanted: the write to the pipe must not raise a signal.
BOOST_AUTO_TEST_CASE(a_dead_kernels_pipe_raises_no_signal) {
  FakeProgram program;
  program.kernel.die();
  program.kernel.control().header.kernel_asleep.store(static_cast<std::uint32_t>(parc::shm::Sleep::light));
  char byte = 0;
  (void)parc_initread(program.p, 0, 0, &byte, 1);
  BOOST_TEST(parc_initread(program.p, 0, 0, &byte, 1) == PARC_EKERNEL);
}

// A wait that would return at once has somebody to tell it that nobody is left.
BOOST_AUTO_TEST_CASE(a_dead_kernel_releases_nothing) {
  FakeProgram program;
  void* const memory = parc_alloc(program.p, 16384);
  BOOST_TEST_REQUIRE(memory != nullptr);
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_FULL) == PARC_OK);
  program.kernel.die();
  program.kernel.control().header.kernel_asleep.store(static_cast<std::uint32_t>(parc::shm::Sleep::deep));
  BOOST_TEST(parc_read(program.p, 0, 0, memory, 16384, nullptr) == PARC_EKERNEL);
}

// More requests than the ring holds, and nobody to take them.
BOOST_AUTO_TEST_CASE(a_full_ring_of_a_dead_kernel_ends) {
  FakeProgram program;
  program.kernel.die();
  program.kernel.control().header.kernel_asleep.store(0);
  parc_op last = 1;
  for (int i = 0; i < 3000 && last > 0; ++i) last = parc_initwrite(program.p, 0, 0, nullptr, 0);
  BOOST_TEST(last == PARC_EKERNEL);
}

BOOST_AUTO_TEST_CASE(a_forked_child_is_refused) {
  FakeProgram program;
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    parc_context* p = nullptr;
    const bool refused = parc_initread(program.p, 0, 0, &byte, 1) == PARC_EFORK &&
                         parc_close(program.p) == PARC_EFORK && parc_open(&p) == PARC_EFORK &&
                         parc_alloc(program.p, 8) == nullptr && parc_clock() > 0;
    _exit(refused ? 0 : 1);
  }
  BOOST_TEST(exit_status_of(child) == 0);
  BOOST_TEST(parc_write(program.p, 0, 0, "x", 1) == PARC_OK); // the parent is as before
}

// What static objects and other threads ask for after the exit handler has left.
struct Left {
  Left() : context(join(), adoption, parc::Fd()) {}
  static parc::client::Session join() {
    auto session = parc::client::join(false, {}, [](int) {});
    BOOST_REQUIRE(session.has_value());
    return std::move(session.value());
  }
  FakeKernel kernel{2};
  parc::client::Adoption adoption;
  parc::client::Context context;
};

BOOST_AUTO_TEST_CASE(nothing_is_asked_of_the_kernel_after_leaving) {
  Left left;
  auto& context = left.context;
  constexpr std::size_t bytes = 300'000;
  auto* const memory = static_cast<char*>(context.operations().allocate(bytes).value());
  const std::string text = pattern(bytes);
  text.copy(memory, bytes);
  left.kernel.set_pace(0);
  const iovec out{memory, bytes}, other{const_cast<char*>(text.data()), bytes};
  char in[8];
  const iovec into{in, sizeof in};
  const auto start = [&](auto id) { return id ? id.value() : static_cast<parc_op>(id.error().code); };
  const parc_op given_up = start(context.starts().write({1, 1, 0, 0}, {&out, 1}, 0));
  const parc_op bounced = start(context.starts().write({1, 2, 0, 0}, {&other, 1}, 0));
  const parc_op read = start(context.starts().read({1, 3, 0, 0}, {&into, 1}, 0));
  context.leave();
  context.leave();
  BOOST_TEST(left.kernel.left());
  const std::uint64_t asked = left.kernel.requests();

  for (const parc_op id : {given_up, read}) BOOST_TEST(context.starts().cancel(id).has_value());
  BOOST_TEST(context.waits().wait(given_up, nullptr) == PARC_OK);
  BOOST_TEST(context.waits().wait(bounced, nullptr) == PARC_OK);
  BOOST_TEST(context.waits().wait(read, nullptr) == PARC_ECANCELED);
  context.free(memory); // what is not delivered yet stays as it is
  parc_status status;
  BOOST_TEST(context.probe({1, 1, 0, 0}, false, status) == PARC_EKERNEL);
  BOOST_TEST(context.read({1, 1, 0, 0}, into, nullptr) == PARC_EKERNEL);
  BOOST_TEST(context.write({1, 1, 0, 0}, other) == PARC_EKERNEL);
  BOOST_TEST(std::string(parc_error_detail()).find("has left its job") != std::string::npos);
  BOOST_TEST(context.barrier() == PARC_EKERNEL);
  BOOST_TEST(!context.operations().allocate(100u << 20).has_value());
  BOOST_TEST(left.kernel.requests() == asked);

  left.kernel.set_pace(FakeKernel::all_at_once);
  left.kernel.await([&] { return left.kernel.writes_in_progress() == 0; });
  for (const auto& message : left.kernel.sent()) BOOST_TEST((message.bytes == text));
}

BOOST_AUTO_TEST_CASE(a_thread_that_writes_while_its_program_leaves) {
  Left left;
  int code = PARC_OK;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    const std::string text = pattern(10'000);
    for (; code == PARC_OK; ++written)
      code = left.context.write({1, 0, 0, 0}, {const_cast<char*>(text.data()), text.size()});
  });
  std::thread reader([&] {
    char byte;
    BOOST_TEST(left.context.read({1, 1, 0, 0}, {&byte, 1}, nullptr) == PARC_ECANCELED);
  });
  left.kernel.await([&] { return left.kernel.reads_posted() == 1; });
  while (written < 100) sched_yield();
  left.context.leave();
  writer.join();
  reader.join();
  BOOST_TEST(code == PARC_EKERNEL);
}

BOOST_AUTO_TEST_CASE(a_context_that_was_closed_is_refused) {
  FakeProgram program;
  parc_context* const closed = std::exchange(program.p, nullptr);
  void* const memory = parc_alloc(closed, 10);
  BOOST_TEST(parc_close(closed) == PARC_OK);
  BOOST_TEST(parc_close(closed) == PARC_EINVAL);
  BOOST_TEST(parc_cancel(closed, 1) == PARC_EINVAL);
  BOOST_TEST(parc_wait(closed, 1, nullptr) == PARC_EINVAL);
  BOOST_TEST(parc_host(closed, 0) == static_cast<const char*>(nullptr));
  parc_free(closed, memory);
}

// A process of its own, which exits with a context open.
BOOST_AUTO_TEST_CASE(exit_leaves_as_close_does) {
  FakeKernel kernel;
  const pid_t child = fork();
  if (child == 0) {
    parc_context* p = nullptr;
    if (parc_open(&p) != PARC_OK) _exit(2);
    std::exit(3);
  }
  BOOST_TEST(exit_status_of(child) == 3);
  BOOST_TEST(kernel.left());
}

// ---- exit() in a signal handler, which may interrupt a call: its locks are held until the process has gone.

parc_context* interrupted = nullptr;
void* interrupted_block = nullptr;

void wait_for_ever() {
  char byte = 0;
  (void)parc_read(interrupted, 0, 1, &byte, 1, nullptr);
}
void allocate() {
  for (;;) parc_free(interrupted, parc_alloc(interrupted, 100));
}
void exchange_once() {
  static char bytes[5000]; // malloc's locks are the program's own affair
  (void)parc_write(interrupted, 0, 2, bytes, sizeof bytes);
  (void)parc_read(interrupted, 0, 2, bytes, sizeof bytes, nullptr);
}
void exchange() {
  for (;;) exchange_once();
}
// What objects do that end before libparc's own handler for exits runs, and after it.
void end_objects() {
  char byte = 0;
  parc_free(interrupted, interrupted_block);
  const parc_op read = parc_initread(interrupted, 0, 3, &byte, 1);
  (void)parc_cancel(interrupted, read);
  (void)parc_wait(interrupted, read, nullptr);
  (void)parc_close(interrupted);
}

BOOST_DATA_TEST_CASE(exit_in_a_handler_ends_the_program,
                     boost::unit_test::data::make({wait_for_ever, allocate, exchange}), work) {
  for (int round = 0; round < 30; ++round) {
    FakeKernel kernel;
    int started[2];
    BOOST_REQUIRE(pipe(started) == 0);
    const pid_t child = fork();
    if (child == 0) {
      (void)std::atexit(
          [] { _exit(7); }); // the test's own objects free memory, which may be interrupted, too
      (void)std::atexit(end_objects);
      if (parc_open(&interrupted) != PARC_OK) _exit(2);
      (void)std::atexit(end_objects);
      interrupted_block = parc_alloc(interrupted, 100);
      exchange_once(); // first calls take memory of malloc, and exit frees some: who interrupts malloc may
                       // not exit
      std::signal(SIGUSR1, [](int) { std::exit(7); });
      alarm(60); // not by itself where it hangs
      (void)!write(started[1], "", 1);
      work();
      _exit(3);
    }
    char byte = 0;
    BOOST_REQUIRE(read(started[0], &byte, 1) == 1);
    for (int i = 0; i < round; ++i) sched_yield();
    kill(child, SIGUSR1);
    BOOST_TEST(exit_status_of(child) == 7);
    close(started[0]);
    close(started[1]);
  }
}

volatile int in_handler = 0, left_alone = 0;
BOOST_AUTO_TEST_CASE(what_a_handler_may_not_call_is_refused) {
  FakeProgram program;
  interrupted = program.p;
  in_handler = 0;
  std::signal(SIGUSR1, [](int) {
    left_alone = parc_size(interrupted);
    in_handler = parc_write(interrupted, 0, 2, "x", 1);
  });
  const pthread_t waiter = pthread_self();
  std::thread sender([&] {
    program.kernel.await([&] { return program.kernel.reads_posted() == 1; });
    pthread_kill(waiter, SIGUSR1);
    while (in_handler == 0) std::this_thread::yield();
    program.kernel.send({.source = 0, .tag = 1, .bytes = "y"});
  });
  char byte = 0;
  BOOST_TEST(parc_read(program.p, 0, 1, &byte, 1, nullptr) == PARC_OK);
  sender.join();
  BOOST_TEST(in_handler == PARC_EINVAL);
  BOOST_TEST(left_alone == parc_size(program.p));
  raise(SIGUSR1); // nothing is interrupted
  BOOST_TEST(in_handler == PARC_OK);
  std::signal(SIGUSR1, SIG_DFL);
}

BOOST_AUTO_TEST_CASE(who_leaves_a_wait_by_siglongjmp_is_refused) {
  const pid_t child = fork();
  if (child == 0) {
    FakeKernel kernel;
    static sigjmp_buf back;
    if (parc_open(&interrupted) != PARC_OK) _exit(2);
    std::signal(SIGUSR1, [](int) { siglongjmp(back, 1); });
    const pthread_t waiter = pthread_self();
    std::thread signaller([&] {
      kernel.await([&] { return kernel.reads_posted() == 1; });
      pthread_kill(waiter, SIGUSR1);
    });
    if (sigsetjmp(back, 1) == 0) wait_for_ever();
    signaller.join();
    alarm(60);
    char byte = 0;
    const bool refused = parc_read(interrupted, 0, 1, &byte, 1, nullptr) == PARC_EINVAL &&
                         std::string(parc_error_detail()).find("siglongjmp") != std::string::npos &&
                         parc_close(interrupted) == PARC_EINVAL;
    kernel.die();
    std::exit(refused ? 0 : 1);
  }
  BOOST_TEST(exit_status_of(child) == 0);
}

BOOST_AUTO_TEST_CASE(abort_asks_the_kernel_and_does_not_return) {
  const pid_t child = fork();
  if (child == 0) {
    auto* const kernel = new FakeKernel;
    parc_context* p = nullptr;
    if (parc_open(&p) != PARC_OK) _exit(2);
    std::thread([kernel] {
      kernel->await([kernel] { return kernel->abort_status_now() == 42; });
      kernel->die();
    }).detach();
    parc_abort(p, 42);
  }
  BOOST_TEST(exit_status_of(child) == 42);
}

BOOST_AUTO_TEST_SUITE_END()
