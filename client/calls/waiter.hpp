// SPDX-License-Identifier: BSD-3-Clause
// Finishing operations. A wait for a write whose bytes are still the program's rests as long as a copy of
// what is not acknowledged would take; then it copies that (hand_over.hpp) and returns. Waits may be released
// early (early/guards.hpp); any and some, which report what has finished, never are. Threads: any, one for
// each operation. A thread may be cancelled while it sleeps: then no operation has been spent that its caller
// does not know of. test is async-signal-safe.
#pragma once

#include "client/early/guards.hpp"
#include "client/operation/late_reads.hpp"

namespace parc::client {

class Waiter {
public:
  Waiter(Operations& operations, HandOver& hand_over, Guards& guards, Sleep& sleep, LateReads& late_reads,
         const std::vector<std::string>& hosts)
      : operations_(operations), hand_over_(hand_over), guards_(guards), sleep_(sleep),
        late_reads_(late_reads), hosts_(hosts) {}

  // The calls of parc.h with the same names; they return what those return and leave the sentence.
  // A status that is no null pointer holds an early release back until the envelope is there.
  int wait(parc_op id, parc_status* status);
  // Of one that was asked to be cancelled, until it is over: never released, never left before.
  void give_up(parc_op id);
  int test(parc_op id, parc_status& status);
  // The program leaves, and its memory with it: the kernel goes on with copies. Blocks where there is no room
  // for one.
  void hand_over_own_memory();
  [[nodiscard]] bool done(parc_op id);
  // Of an operation in the completion queue, while nobody claims it: its wait may be released early; it has
  // ended or can be released now.
  [[nodiscard]] bool may_release(parc_op id) const;
  [[nodiscard]] bool collectable(parc_op id) const;
  // Of one that has been claimed: it is reported, as ended or as released. False: it has to end first, and is
  // nobody's again.
  [[nodiscard]] bool collect(parc_op id, Slot slot, Use use, parc_status& status);
  int all(std::span<parc_op> ids, parc_status* statuses, Cancel cancel = Cancel::yes);
  int any(std::span<parc_op> ids, int& index, parc_status& status);
  int some(std::span<parc_op> ids, int& done, int* indices, parc_status* statuses);

  // parc_quiet; and the same without a word of those that have failed.
  int quiet();
  int await_puts(Cancel cancel);

  // Looks now and then: a program that only tests must learn of the kernel's end, too.
  [[nodiscard]] bool kernel_went() { return sleep_.kernel_went(); }

private:
  // How far a wait may be released early.
  enum class Release : std::uint8_t { never, when_begun, at_once };

  int finish(parc_op id, parc_status& status, Release release, Cancel cancel); // and leaves the sentence
  // And leaves that to its caller.
  int conclude(parc_op id, parc_status& status, Release release, Cancel cancel);
  [[nodiscard]] bool collect_ended(parc_op id, Slot slot, Use use, parc_status& status);
  [[nodiscard]] bool is_copied_here(Slot slot) const;
  int finish_done(Slot slot, parc_status& status);
  int finish_settled(Slot slot, parc_status& status);
  int finish_read(parc_op id, Slot slot, parc_status& status, Release release, Cancel cancel);
  [[nodiscard]] Release release_of(Slot slot, Release most) const;
  [[nodiscard]] Release release_of(parc_op id, Release most) const;
  [[nodiscard]] bool would_release(parc_op id, Release most) const;
  [[nodiscard]] int finish_loose(parc_op id, Slot slot, parc_status& status, Cancel cancel);
  [[nodiscard]] Woken keep_pace(Slot slot, Cancel cancel);
  int finish_write(parc_op id, Slot slot, parc_status& status, Release release, Cancel cancel);
  template <class Done> Woken rest(const Done& done, Limit limit, Cancel cancel, Slot own = LateReads::none);
  template <class Done> Woken rest_serving(const Done& done, Limit limit, Cancel cancel, Slot own);
  [[nodiscard]] Woken until_done(Slot slot, Limit limit, Cancel cancel);
  template <class Done>
  [[nodiscard]] Woken claimed_until(Slot slot, const Done& done, Limit limit, Cancel cancel);
  [[nodiscard]] int ended(Woken how, parc_op id, Slot slot, parc_status& status);
  [[nodiscard]] int pick(std::span<const parc_op> ids);
  int explain(int code, parc_op id, const parc_status& status) const;
  [[nodiscard]] std::string describe(parc_op id, const parc_status& status) const;

  Operations& operations_;
  HandOver& hand_over_;
  Guards& guards_;
  Sleep& sleep_;
  LateReads& late_reads_;
  const std::vector<std::string>& hosts_;     // of the ranks
  std::atomic<std::uint64_t> quiet_puts_ = 0; // so many puts are over
};

} // namespace parc::client
