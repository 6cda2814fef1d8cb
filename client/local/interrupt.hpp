// SPDX-License-Identifier: BSD-3-Clause
// `local = signal`: the asynchronous rendezvous of Kumar, Mamidala, Koop, Santhanaraman and Panda (2008,
// section 4). A thread that leaves the library while reads are posted arms its program; who announces a long
// message to a program that is armed disarms it and sends that thread one signal, in whose handler the
// message is matched and its copy asked for. The kernel is what InfiniBand's adapter is in the paper: it
// copies while both compute, and its stores are RNDV_FINISH.
//
// The signal is SIGURG, which a program that knows nothing of it ignores (one that has been replaced by
// another, or a stranger who has got the process's number), and system calls are restarted where they can be.
// A handler that was there before runs, too; one that is installed later takes ours away, which costs
// overlap.
#pragma once

#include "client/local/inbox.hpp"

#include <atomic>

namespace parc::client {

class Interrupts {
public:
  // Of this process's only inbox that is to be interrupted, until this one's end.
  explicit Interrupts(Inbox& inbox);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  static void forget() { inbox_.store(nullptr); } // in a child: it is its parent's

  // While one of these lives this thread is in a call, and looks for messages itself.
  class InCall {
  public:
    InCall() {
      in_call_ = true;
      if (Inbox* const inbox = inbox_.load(std::memory_order_acquire)) inbox->disarm();
    }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;
    ~InCall() { // of parc_close, too
      in_call_ = before_;
      Inbox* const inbox = inbox_.load(std::memory_order_acquire);
      if (inbox != nullptr && !before_) inbox->arm();
    }

  private:
    const bool before_ = in_call_;
  };

private:
  static void handle(int signal, siginfo_t* info, void* context);

  // Its place is there from the thread's start: the handler asks.
  __attribute__((tls_model("initial-exec"))) static thread_local bool in_call_;
  static std::atomic<Inbox*> inbox_;
  static std::atomic<int> handlers_; // that run
  static struct sigaction before_;
};

} // namespace parc::client
