// SPDX-License-Identifier: BSD-3-Clause
// The C interface: each call checks that it may be made, hands itself to the context, and turns the result
// into a code and a sentence. Nothing is thrown past here.
#include "client/base/c_arguments.hpp"
#include "client/base/failure.hpp"
#include "client/calls/calls.hpp"
#include "client/early/hooks.hpp"
#include "parc/parc.h"

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
#include <utility>

using namespace parc; // NOLINT: the calls themselves are outside
using client::adoption;
using client::awaited;
using client::bad_list;
using client::called;
using client::caller;
using client::check;
using client::checked;
using client::forked;
using client::guarded;
using client::InHandlers;
using client::list;
using client::may_call;
using client::no_place;
using client::noted;
using client::one_context;
using client::open_context;
using client::piece;
using client::started;
using client::Starts;
using client::StatusFor;

namespace {

std::atomic<bool> exiting; // from here on a context stays: objects that end later may name it

// A signal handler of the program's may call exit() in the middle of a call, whose locks are held as long as
// this takes: then the pipe's end tells the kernel.
void leave_at_exit() {
  if (forked.load() || client::InLibrary::interrupted()) return;
  const client::InLibrary here;
  exiting.store(true);
  if (auto* const context = open_context.load()) context->leave();
}

void watch_process() {
  static const bool watched = [] {
    (void)std::atexit(leave_at_exit);
    (void)pthread_atfork(client::before_fork, client::after_fork_in_parent, client::after_fork_in_child);
    return true;
  }();
  (void)watched;
}

using FindJob = std::function<Result<std::optional<client::NamedJob>>()>;

// Other threads may fork meanwhile, and their children open contexts.
void wait_unlocked(std::unique_lock<std::mutex>& hold, int connection) {
  awaited = connection;
  hold.unlock();
  pollfd answer{.fd = connection, .events = POLLIN, .revents = 0};
  while (poll(&answer, 1, -1) < 0 && errno == EINTR) continue;
  hold.lock();
  awaited = -1;
}

int open_as(parc_context** context, const FindJob& find_job) {
  if (forked.load()) return client::fail(PARC_EFORK);
  if (!context) return no_place("context");
  const client::InLibrary here;
  try {
    watch_process(); // first: a child must not inherit this lock
    std::unique_lock hold(one_context);
    if (open_context.load())
      return client::fail(error(PARC_EINVAL, "this process has a context open already"));
    if (awaited >= 0)
      return client::fail(error(PARC_EINVAL, "another thread of this process is opening a context"));
    const auto level = client::level_from_environment();
    if (!level) return client::fail(level.error());
    const auto job = find_job();
    if (!job) return client::fail(job.error());
    // Where waits are released at once the kernel holds back what must wait.
    auto session = client::join(level.value() != client::Level::full, job.value(),
                                [&hold](int connection) { wait_unlocked(hold, connection); });
    if (!session) return client::fail(session.error());
    auto trace = client::Trace::pipe_from_environment();
    if (!trace) return client::fail(trace.error());
    *context = new parc_context(std::move(session.value()), adoption(), std::move(trace.value()));
    if (const auto opened = (*context)->open_letterbox(); !opened) {
      delete *context;
      return client::fail({PARC_ENOMEM, opened.error().text});
    }
    (*context)->set_level(level.value());
    open_context.store(*context);
    return PARC_OK;
  } catch (const std::bad_alloc&) {
    return client::fail(PARC_ENOMEM);
  }
}

} // namespace

int parc_open(parc_context** context) {
  return open_as(context, [] { return client::job_in_environment(std::getenv); });
}

int parc_join(parc_context** context, const char* job, int rank, int size) {
  return open_as(context, [&]() -> Result<std::optional<client::NamedJob>> {
    if (job == nullptr) return std::optional<client::NamedJob>();
    PARC_TRY(named, client::named_job(job, rank, size));
    return std::optional(std::move(named));
  });
}

int parc_start_kernel(void) {
  const client::InLibrary here;
  try {
    const auto started = client::start_kernel();
    return started ? static_cast<int>(PARC_OK) : client::fail(started.error());
  } catch (const std::bad_alloc&) {
    return client::fail(PARC_ENOMEM);
  }
}

int parc_close(parc_context* context) {
  static std::atomic<bool> closing; // leaving waits, and is done without the lock: parc_on_lost may be called
  return guarded(context, [&] {
    if (closing.exchange(true))
      return client::fail(error(PARC_EINVAL, "another thread is closing this context already"));
    context->leave();
    const std::lock_guard hold(one_context);
    parc_context* ours = context;
    if (open_context.compare_exchange_strong(ours, nullptr) && !exiting.load()) delete context;
    closing.store(false);
    return static_cast<int>(PARC_OK);
  });
}

int parc_rank(const parc_context* context) {
  return guarded<InHandlers::yes>(context, [&] { return context->rank(); });
}

int parc_size(const parc_context* context) {
  return guarded<InHandlers::yes>(context, [&] { return context->size(); });
}

const char* parc_host(const parc_context* context, int rank) {
  if (!may_call(context)) return (void)check(context), nullptr;
  const char* const host = context->host(rank);
  if (host == nullptr)
    (void)client::fail(error(PARC_EINVAL, "there is no rank {} in this job of {}", rank, context->size()));
  return host;
}

void parc_abort(parc_context* context, int status) {
  const client::InLibrary here;                          // also its end: nothing is waited for
  const int failure = (status & 0xff) == 0 ? 1 : status; // the low 8 bits are all that a shell sees
  if (!may_call(context) || client::Ring::pushing()) _exit(failure); // in a handler: a rank's end is enough
  context->abort(failure);
}

double parc_clock(void) {
  return std::chrono::duration<double>(client::Clock::now().time_since_epoch()).count();
}

void* parc_alloc(parc_context* context, size_t bytes) {
  if (may_call(context) && !client::InLibrary::interrupted()) {
    const client::InLibrary::Brief here;
    if (void* const piece = context->take_piece(bytes)) return piece;
  }
  void* block = nullptr;
  (void)guarded(context, [&] {
    const auto got = context->operations().allocate(bytes);
    if (!got) return client::fail(got.error());
    block = got.value();
    return static_cast<int>(PARC_OK);
  });
  return block;
}

void parc_free(parc_context* context, void* memory) {
  if (check(context) != PARC_OK) return;
  {
    const client::InLibrary::Brief here;
    if (context->give_piece(memory)) return;
  }
  const client::InLibrary here;
  context->free(memory);
}

parc_op parc_initread(parc_context* context, int peer, int tag, void* buffer, size_t bytes) {
  const iovec whole = piece(buffer, bytes);
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(envelope, checked(peer, tag, Starts::read));
    return context->starts().read(envelope, {&whole, 1}, 0);
  });
}

parc_op parc_initwrite(parc_context* context, int peer, int tag, const void* buffer, size_t bytes) {
  const iovec whole = piece(buffer, bytes);
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(envelope, checked(peer, tag, Starts::write));
    return context->starts().write(envelope, {&whole, 1}, 0);
  });
}

parc_op parc_initreadv(parc_context* context, const parc_envelope* envelope, const struct iovec* pieces,
                       int count, unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(wanted, checked(envelope, Starts::read));
    PARC_TRY(id, context->starts().read(wanted, list(pieces, count), flags));
    return noted(context, id, flags);
  });
}

parc_op parc_initwritev(parc_context* context, const parc_envelope* envelope, const struct iovec* pieces,
                        int count, unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(wanted, checked(envelope, Starts::write));
    const unsigned others = flags & ~PARC_AT_ONCE;
    if (others != flags && context->starts().write_at_once(wanted, list(pieces, count), others))
      return PARC_OP_NULL;
    PARC_TRY(id, context->starts().write(wanted, list(pieces, count), others));
    return noted(context, id, others);
  });
}

parc_op parc_initprobe(parc_context* context, const parc_envelope* envelope, unsigned flags) {
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(wanted, checked(envelope, Starts::read));
    const unsigned others = flags & ~PARC_AT_ONCE;
    if (others != flags && context->starts().finds_nothing(wanted, others)) return PARC_OP_NULL;
    return context->starts().probe(wanted, others);
  });
}

parc_op parc_initread_claimed(parc_context* context, parc_op claim, const struct iovec* pieces, int count,
                              unsigned flags) {
  if (count < 0 || (count > 0 && !pieces)) return bad_list(count);
  return started(context, caller(), [&]() -> Result<parc_op> {
    PARC_TRY(id, context->starts().read_claimed(claim, list(pieces, count), flags));
    return noted(context, id, flags);
  });
}

int parc_wait(parc_context* context, parc_op operation, parc_status* status) {
  return guarded(
      context, [&] { return context->waits().wait(operation, status); },
      called(context, trace::Call::wait, operation));
}

int parc_test(parc_context* context, parc_op operation, parc_status* status) {
  return guarded<InHandlers::yes>(context,
                                  [&] { return context->waits().test(operation, StatusFor(status)); });
}

int parc_done(parc_context* context, parc_op operation) {
  return guarded<InHandlers::yes>(context, [&] { return context->waits().done(operation) ? 1 : 0; });
}

int parc_waitall(parc_context* context, int count, parc_op* operations, parc_status* statuses) {
  if (count < 0 || (count > 0 && !operations)) return bad_list(count);
  return guarded(
      context, [&] { return context->waits().all(list(operations, count), statuses); },
      called(context, trace::Call::waitall));
}

int parc_waitany(parc_context* context, int count, parc_op* operations, int* index, parc_status* status) {
  if (count < 0 || (count > 0 && !operations)) return bad_list(count);
  if (!index) return no_place("index");
  return guarded(
      context, [&] { return context->waits().any(list(operations, count), *index, StatusFor(status)); },
      called(context, trace::Call::waitany));
}

int parc_waitsome(parc_context* context, int count, parc_op* operations, int* done, int* indices,
                  parc_status* statuses) {
  if (count < 0 || (count > 0 && !operations)) return bad_list(count);
  if (!done) return no_place("number of those that are done");
  return guarded(
      context, [&] { return context->waits().some(list(operations, count), *done, indices, statuses); },
      called(context, trace::Call::waitsome));
}

int parc_op_index(parc_op operation) {
  return static_cast<int>(shm::slot_of(static_cast<std::uint64_t>(operation)));
}

int parc_completions(parc_context* context, parc_completion* completions, int count, double timeout) {
  if (count < 1 || !completions) return bad_list(count);
  const void* const site = caller();
  return guarded(context, [&] {
    client::Trace::Look look(context->trace(), site);
    const int taken = context->completions().take(list(completions, count), timeout);
    look.found(taken != 0);
    return taken;
  });
}

int parc_wake(parc_context* context) {
  return guarded(context, [&] { return context->completions().wake(); });
}

int parc_descriptor(parc_context* context) {
  return guarded(context, [&] { return context->descriptor(); });
}

int parc_arm(parc_context* context) {
  return guarded(context, [&] { return context->completions().arm(); });
}

int parc_set_put_off(parc_context* context, uint64_t operations, int peer) {
  return guarded(context, [&] {
    context->put_off(operations, peer);
    return static_cast<int>(PARC_OK);
  });
}

int parc_cancel(parc_context* context, parc_op operation) {
  return guarded(context, [&] {
    if (!context->operations().is_held(operation))
      return client::fail(
          error(PARC_EINVAL,
                "cannot cancel operation {}: it is none of this context's, or has been waited "
                "for already",
                operation));
    const auto asked = context->starts().cancel(operation);
    return asked ? static_cast<int>(PARC_OK) : client::fail(asked.error());
  });
}

int parc_read(parc_context* context, int peer, int tag, void* buffer, size_t bytes, parc_status* status) {
  return guarded(
      context,
      [&] {
        const auto envelope = checked(peer, tag, Starts::read);
        if (!envelope) return client::fail(envelope.error());
        return context->read(envelope.value(), piece(buffer, bytes), status);
      },
      called(context, trace::Call::read));
}

int parc_write(parc_context* context, int peer, int tag, const void* buffer, size_t bytes) {
  return guarded(
      context,
      [&] {
        const auto envelope = checked(peer, tag, Starts::write);
        if (!envelope) return client::fail(envelope.error());
        return context->write(envelope.value(), piece(buffer, bytes));
      },
      called(context, trace::Call::write));
}

int parc_probe(parc_context* context, const parc_envelope* envelope, parc_status* status) {
  return guarded(
      context,
      [&] {
        const auto wanted = checked(envelope, Starts::read);
        if (!wanted) return client::fail(wanted.error());
        return context->probe(wanted.value(), true, StatusFor(status));
      },
      called(context, trace::Call::probe));
}

int parc_iprobe(parc_context* context, const parc_envelope* envelope, parc_status* status) {
  return guarded(context, [&] {
    const auto wanted = checked(envelope, Starts::read);
    if (!wanted) return client::fail(wanted.error());
    return context->probe(wanted.value(), false, StatusFor(status));
  });
}

int parc_address_of(parc_context* context, int peer, char* text, size_t bytes) {
  if (!text) return no_place("address");
  return guarded(context, [&] { return context->address_of(peer, text, bytes); });
}

int parc_add_peer(parc_context* context, const char* address) {
  if (!address) return client::fail(error(PARC_EINVAL, "the address is a null pointer"));
  return guarded(context, [&] { return context->add_peer(address); });
}

int parc_spawn(parc_context* context, const char* const* arguments, int count, const char* hosts,
               int* peers) {
  if (!arguments) return client::fail(error(PARC_EINVAL, "the list of arguments is a null pointer"));
  return guarded(context, [&] { return context->spawn(arguments, count, hosts, peers); });
}

int parc_parent(parc_context* context) {
  return guarded(context, [&] { return context->parent(); });
}

int parc_kill(parc_context* context, int peer, int signal) {
  return guarded(context, [&] { return context->signal(peer, signal); });
}

parc_op parc_initexit(parc_context* context, int peer, unsigned flags) {
  return started(context, caller(), [&] { return context->starts().exit_of(peer, flags); });
}

int parc_barrier(parc_context* context) {
  return guarded(
      context, [&] { return context->barrier(); }, called(context, trace::Call::barrier));
}

int parc_set_copy_room(parc_context* context, size_t bytes) {
  return guarded(context, [&] {
    context->copy_room().set(bytes);
    return static_cast<int>(PARC_OK);
  });
}

int parc_set_release(parc_context* context, int level) {
  if (level < PARC_RELEASE_OFF || level > PARC_RELEASE_GETS)
    return client::fail(error(PARC_EINVAL, "there is no release level {}", level));
  return guarded(context, [&] {
    context->set_level(static_cast<client::Level>(level));
    return static_cast<int>(PARC_OK);
  });
}

int parc_set_order(parc_context* context, int order) {
  if (order < PARC_ORDER_ANY || order > PARC_ORDER_DOWN)
    return client::fail(error(PARC_EINVAL, "there is no order {}", order));
  return guarded(context, [&] {
    context->starts().set_order(static_cast<client::Order>(order));
    return static_cast<int>(PARC_OK);
  });
}

int parc_set_strip(parc_context* context, size_t bytes) {
  return guarded(context, [&] {
    context->guards().strips().set(bytes);
    return static_cast<int>(PARC_OK);
  });
}

int parc_set_train(parc_context* context, int gets) {
  if (gets < 0) return client::fail(error(PARC_EINVAL, "a train cannot begin behind {} gets", gets));
  return guarded(context, [&] {
    context->guards().strips().set_train(static_cast<unsigned>(gets));
    return static_cast<int>(PARC_OK);
  });
}

int parc_settle(parc_context* context, const void* memory, size_t bytes) {
  return guarded(
      context,
      [&] {
        if (memory)
          context->guards().settle_pages(memory, bytes);
        else
          context->guards().settle_all();
        return static_cast<int>(PARC_OK);
      },
      called(context, trace::Call::other));
}

int parc_on_lost(parc_context* context, parc_lost_handler* handler, void* argument) {
  return guarded(context, [&] {
    context->guards().on_lost(handler, argument);
    return static_cast<int>(PARC_OK);
  });
}

int parc_get_release_counts(parc_context* context, parc_release_counts* counts) {
  if (!counts) return no_place("counts");
  return guarded(context, [&] {
    *counts = context->guards().counts();
    return static_cast<int>(PARC_OK);
  });
}

const char* parc_error_string(int error) {
  return client::sentence(error);
}

const char* parc_error_detail(void) {
  return client::last_failure();
}
