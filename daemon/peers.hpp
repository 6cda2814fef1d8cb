// SPDX-License-Identifier: BSD-3-Clause
// The other hosts: listening, connecting on demand, the handshake, one link per pair of hosts. Peers owns the
// sockets; the engine owns what the bytes mean.
//
// Simultaneous connects are resolved to one by identity: of two links between the same two kernels, the one
// that the smaller identity initiated stays.
#pragma once

#include "daemon/config.hpp"
#include "daemon/event.hpp"
#include "daemon/handshake.hpp"
#include "daemon/key.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace parc::daemon {

class Kernel;
class PeerLink;
class Resolver;

inline constexpr std::int32_t this_host = -1; // as protocol::here

class Peers {
public:
  // A link's index in the engine, this_host, or why there is none.
  using Connected = std::function<void(Result<std::int32_t>)>;

  Peers(Kernel& kernel, const Key& key);
  ~Peers();

  Result<void> listen();
  [[nodiscard]] std::uint16_t port() const { return port_; }

  // Finds or makes the link to a host by the name people use. `connected` is called once, later.
  void connect(const std::string& host, Connected connected);
  [[nodiscard]] const std::string& name_of(std::uint32_t link) const;

  std::uint64_t read();  // the turn's first step: takes what has arrived
  std::uint64_t write(); // the turn's third step
  [[nodiscard]] bool wants_write() const;
  void shut_down(); // closes what is connected after what is written

  struct LinkView { // for counters
    std::uint32_t index;
    const std::string* name;
    const char* state;
    std::uint32_t rtt_us;
  };
  [[nodiscard]] std::vector<LinkView> view() const;

private:
  friend class PeerLink;
  struct Attempt; // one connect() under way: names, addresses left to try, who waits
  void accepted(int fd);
  void start(Attempt& attempt);
  void try_next(Attempt& attempt);
  void attempt_failed(PeerLink& link, Error error);
  void finish(Attempt& attempt, Result<std::int32_t> result);
  Verdict judge(PeerLink& link);
  void established(PeerLink& link);
  void closed(PeerLink& link, const Error& why);
  void sweep();

  Kernel& kernel_;
  Key key_;
  std::uint16_t port_ = 0;
  std::vector<Fd> listeners_;
  std::vector<Event> listening_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  std::map<std::string, std::unique_ptr<Attempt>> attempts_; // by host name
  std::map<std::string, std::uint64_t> identities_;          // of hosts reached before, by the name used
  std::unique_ptr<Resolver> resolver_;
  std::vector<std::unique_ptr<PeerLink>> dead_; // until the step ends
};

} // namespace parc::daemon
