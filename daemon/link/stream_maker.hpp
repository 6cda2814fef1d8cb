// SPDX-License-Identifier: BSD-3-Clause
// Where a kernel's streams to other kernels come from: it dials, or others have dialed it. Who simulates a
// network is one, too.
#pragma once

#include "daemon/link/key.hpp"
#include "daemon/link/stream.hpp"
#include "system/error.hpp"

#include <functional>
#include <memory>

namespace parc::daemon {

class StreamMaker {
public:
  struct Acceptance {           // called from the event loop
    std::function<bool()> room; // for one more; may make it
    std::function<void(std::unique_ptr<Stream>)> accepted;
    std::function<void(const Error& why)> turned_away = {}; // of another user, at a path
  };

  StreamMaker() = default;
  StreamMaker(const StreamMaker&) = delete;
  StreamMaker& operator=(const StreamMaker&) = delete;
  virtual ~StreamMaker() = default;

  // The stream may be there later: opened() tells. `use`: of the key that an encrypted one proves.
  [[nodiscard]] virtual Result<std::unique_ptr<Stream>> dial(const Address& to, KeyUse use) = 0;
  // Called once, before anybody is accepted.
  virtual void accept_for(Acceptance owner) = 0;
  virtual void resume() = 0; // there may be room again
};

} // namespace parc::daemon
