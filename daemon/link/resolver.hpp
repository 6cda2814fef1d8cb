// SPDX-License-Identifier: BSD-3-Clause
// Names to addresses off the loop, through getaddrinfo, so that NSS is honoured and the kernel never blocks:
// in threads of its own, started as they are needed, each name in one of them. So no name waits for another
// that a name server does not answer for; there are enough threads for a cluster's worth of those. Answers
// come back on the loop's thread; whatever goes wrong is one of them, and so is that there is none in time.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/address.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"
#include "system/thread.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace parc::daemon {

class Resolver {
public:
  using Answer = std::function<void(Result<std::vector<Address>>)>;

  // Starts a thread that does `work`; throws std::system_error where there can be none.
  using StartThread = std::function<void(std::function<void()> work)>;

  static constexpr unsigned most_threads = 32;
  explicit Resolver(Loop& loop, StartThread start = start_thread);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();
  // `answer` is called once: before this returns where nobody has to be asked, and ETIMEDOUT after so long.
  void resolve(const std::string& name, std::uint16_t port, std::chrono::seconds patience, Answer answer);

private:
  struct Shared;
  struct Question {
    std::uint16_t port;
    Answer answer;
    std::unique_ptr<Timer> end;
  };
  using Questions = std::map<std::uint64_t, Question>; // in the order of asking
  static void serve(Shared& shared);
  Result<void> have_thread();
  void deliver();
  void out_of_time(const std::string& name, std::uint64_t number, std::chrono::seconds patience);

  Loop& loop_;
  std::shared_ptr<Shared> shared_; // outlives the threads that are still asking
  StartThread start_;
  unsigned threads_ = 0;
  std::uint64_t asked_ = 0;
  std::map<std::string, Questions> waiting_; // by name, as long as that is being looked up
  Event bell_;
};

// All addresses of a name, at once: what takes its time does so.
Result<std::vector<Address>> resolve(const std::string& name, std::uint16_t port);
// A numeric address, without asking anybody.
Result<Address> numeric_address(const std::string& address, std::uint16_t port);

} // namespace parc::daemon
