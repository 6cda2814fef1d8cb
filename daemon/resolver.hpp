// SPDX-License-Identifier: BSD-3-Clause
// Names to addresses off the loop, through getaddrinfo, so that NSS is honoured and the kernel never blocks:
// one short-lived thread per question. Answers come back on the loop's thread.
#pragma once

#include "daemon/event.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace parc::daemon {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] std::string text() const; // "10.0.0.2 port 7272"
  [[nodiscard]] int family() const { return storage.ss_family; }
};

class Resolver {
public:
  using Answer = std::function<void(Result<std::vector<Address>>)>;

  explicit Resolver(event_base* loop);
  ~Resolver();
  void resolve(const std::string& name, std::uint16_t port, Answer answer);

private:
  struct Shared;
  void deliver();

  std::shared_ptr<Shared> shared_; // outlives a thread that is still asking
  Event bell_;
};

// A numeric address, without asking anybody.
Result<Address> numeric_address(const std::string& address, std::uint16_t port);

} // namespace parc::daemon
