// SPDX-License-Identifier: BSD-3-Clause
// Forks, and changes of pages by the program, in the midst of whatever libparc does: libparc-early.so and
// pthread_atfork call these.
#include "client/base/in_library.hpp"
#include "client/base/pages.hpp"
#include "client/calls/context_of_process.hpp"
#include "client/early/fault.hpp"
#include "client/early/hooks.hpp"

#include <unistd.h>
#include <utility>

namespace parc::client {

namespace {

// Between before_fork and what follows it this thread has the locks; whoever else is called there may change
// pages, too.
__attribute__((tls_model("initial-exec"))) thread_local bool forking = false;

} // namespace

bool before_change(const void* memory, std::size_t bytes, PageChange change) {
  if (forking || forked.load()) return true;
  const InLibrary here;
  const std::uintptr_t begin = round_down(address_of(memory), page_size());
  const std::uintptr_t end = round_up(address_of(memory) + bytes, page_size());
  if (begin >= end) return true; // none, or an error of the program's
  if (Guards* const caught = caught_guards()) caught->settle_pages(memory, bytes);
  bool of_arena = false;
  if (change != PageChange::look) {
    const std::lock_guard hold(one_context);
    if (auto* const context = open_context.load()) {
      if (adoption().overlaps(begin, end)) context->operations().collect(); // what has ended uses nothing
      of_arena = context->arena().contains(memory, 1);
    }
  }
  return adoption().change(begin, end, change, of_arena);
}

// A child would inherit the guards, and nobody would open them for it: none may be there, nor come, until the
// child has its own copies. And adopted memory would be its parent's.
void before_fork() {
  if (forked.load()) return;
  const InLibrary here;
  forking = true;
  one_context.lock();
  if (auto* const context = open_context.load()) {
    context->guards().hold_back();
    context->guards().settle_all();
  }
  adoption().before_fork();
}

void after_fork_in_parent() {
  if (forked.load()) return;
  const InLibrary here;
  adoption().after_fork_in_parent();
  if (auto* const context = open_context.load()) context->guards().hold_back_no_more();
  one_context.unlock();
  forking = false;
}

void after_fork_in_child() {
  const InLibrary here;
  forking = false;
  forget_faults();
  if (!forked.load()) {
    adoption().after_fork_in_child();
    // Who opens is not in this process. Its kernel shall see when it ends.
    if (awaited >= 0) close(std::exchange(awaited, -1));
    one_context.unlock();
  }
  auto* const context = open_context.load();
  if (!context) return;
  forked.store(true);
  context->close_pipes_in_child();
}

} // namespace parc::client
