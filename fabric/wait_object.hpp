// SPDX-License-Identifier: BSD-3-Clause
// What a queue or a counter is waited for by (fi_cq(3), wait_obj). With FI_WAIT_FD and FI_WAIT_POLLFD that is
// a descriptor of its own: the session's, behind which the kernel rings, and a bell for what another thread
// has brought meanwhile. Threads: any.
#pragma once

#include "fabric/kernel_session.hpp"

#include <rdma/fi_eq.h>

namespace parc::fabric {

class WaitObject {
public:
  WaitObject() = default;
  WaitObject(const WaitObject&) = delete;
  WaitObject& operator=(const WaitObject&) = delete;
  ~WaitObject();

  // Once; without a session where nothing comes from the kernel. A negative FI_E* has its sentence in
  // libfabric's log.
  [[nodiscard]] int open(KernelSession* session, fi_wait_obj kind);
  [[nodiscard]] bool blocks() const { return kind_ != FI_WAIT_NONE; }

  void ring(); // there is something to be read

  // fi_trywait: 0 when it is safe to sleep on the descriptor, and -FI_EAGAIN when there is something to be
  // read. What ready() takes, as a signal, it takes once.
  template <class Ready> [[nodiscard]] int try_wait(const Ready& ready) {
    silence();
    bool comes = session_ != nullptr;
    while (!ready()) {
      if (!comes) return 0;
      comes = session_->progress(0) >= 0 && parc_arm(session_->parc()) == 1;
    }
    return -FI_EAGAIN;
  }

  // FI_GETWAIT and FI_GETWAITOBJ.
  [[nodiscard]] int control(int command, void* answer) const;

private:
  void silence();

  KernelSession* session_ = nullptr;
  fi_wait_obj kind_ = FI_WAIT_NONE;
  int both_ = -1, bell_ = -1;
};

} // namespace parc::fabric
