// SPDX-License-Identifier: BSD-3-Clause
// Whether a thread is in a call of libparc.
#pragma once

#include <atomic>
#include <cerrno>
#include <pthread.h>

namespace parc::client {

// While one of these lives this thread is in a call of libparc, where it cannot be cancelled: it may hold
// what others wait for. Afterwards errno is what it was. The outermost one that is not brief sees to that.
class InLibrary {
public:
  InLibrary() : outermost_(depth_ == brief_), error_(errno) {
    ++depth_;
    if (outermost_) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;
  ~InLibrary() {
    const int before = cancel_state_; // from here on a signal handler's calls may change that
    --depth_;
    if (outermost_) pthread_setcancelstate(before, nullptr);
    errno = error_;
  }
  [[nodiscard]] static bool is() { return depth_ != 0; }
  // What asks at the begin of a call, or of exit(), is a signal handler that has interrupted another call of
  // this thread, whose locks may be held (or that call was left by siglongjmp).
  [[nodiscard]] static bool interrupted() { return depth_ != called_back_; }
  // The same of what asks within a call.
  [[nodiscard]] static bool nested() { return depth_ > called_back_ + 1; }

  // The same where nothing is called that can be cancelled, for what costs little itself.
  class Brief {
  public:
    Brief() { // in an order in which no handler takes another's call for its own
      ++depth_;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      ++brief_;
    }
    Brief(const Brief&) = delete;
    Brief& operator=(const Brief&) = delete;
    ~Brief() {
      --brief_;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      --depth_;
    }
  };

  // While one of these lives a function of the program runs inside of a call, at a point where that holds
  // nothing: it may call, and exit.
  class Callback {
  public:
    Callback() { called_back_ = depth_; }
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;
    ~Callback() { called_back_ = before_; }

  private:
    const int before_ = called_back_;
  };

  // While one of these lives it can be cancelled as outside: in a sleep that can be left at any time.
  class Cancellable {
  public:
    explicit Cancellable(bool really) {
      pthread_setcancelstate(really ? cancel_state_ : PTHREAD_CANCEL_DISABLE, &before_);
    }
    Cancellable(const Cancellable&) = delete;
    Cancellable& operator=(const Cancellable&) = delete;
    ~Cancellable() { pthread_setcancelstate(before_, nullptr); }

  private:
    int before_ = PTHREAD_CANCEL_DISABLE;
  };

private:
  // A page fault's handler may be the first to ask.
  __attribute__((tls_model("initial-exec"))) static thread_local int depth_, brief_, cancel_state_,
      called_back_; // brief_: of depth_
  const bool outermost_;
  const int error_;
};

} // namespace parc::client
