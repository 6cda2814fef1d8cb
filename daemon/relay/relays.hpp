// SPDX-License-Identifier: BSD-3-Clause
// Connections to kernels that cannot be dialed, through one that has links to both: what the two say to each
// other is encrypted and proved from end to end, and goes as messages between kernels over those links, of
// which it outlives the connections.
//
// Any kernel asks those that it has links to, one after another, and relays for others as long as they are
// not too many. A relay takes only links that are not relayed themselves: nothing goes in circles. Where
// [hosts] says via which one a host is reached, that one is asked alone, and makes the link to it where there
// is none; the link to the relay may then be relayed itself: [hosts] of one host does not go in circles, and
// two that lead to each other are told.
//
// Invariants: what lies at a relay is bounded by the window of each direction, which the ends credit back as
// they read, and which it gives out of so much memory for all; the end of a relayed connection, for whatever
// reason, is told to both ends.
#pragma once

#include "control/link_messages.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/link/stream_maker.hpp"
#include "daemon/relay/relay_outboxes.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace parc::daemon {

class RelayedStream;

class Relays final : public StreamMaker {
public:
  struct Links { // that are up, and not relayed
    std::function<std::optional<std::int32_t>(std::uint64_t identity, const std::string& name)> to; // drawn
    std::function<std::vector<std::int32_t>()> all; // which to ask first, first
    std::function<std::string(std::int32_t link)> name;
    std::function<std::uint64_t(std::int32_t link)> identity; // as it was drawn
    std::function<bool(std::int32_t link)> is_near;           // it is not relayed itself
    // Finds or makes one, perhaps a relayed one; `connected` is called once, later.
    using Connected = std::function<void(Result<std::int32_t>)>;
    std::function<void(const std::string& name, std::uint64_t identity, Connected connected)> connect;
    std::function<bool(std::int32_t link)> may_ask; // whether the other side may have this kernel relay
  };
  // `under`: for all other addresses.
  Relays(Loop& loop, Post& post, StreamMaker& under)
      : loop_(loop), post_(post), under_(under), outboxes_(post) {}
  void begin(Links links); // before any message comes

  Result<std::unique_ptr<Stream>> dial(const Address& to, KeyUse use) override;
  void accept_for(Acceptance owner) override;
  void resume() override { under_.resume(); }

  void link_lost(std::int32_t link); // its session is over
  [[nodiscard]] bool none() const;   // that are others'

private:
  friend class RelayedStream;
  struct Key { // of a connection on one link
    std::int32_t link;
    bool begun_here; // by this side of the link, which has numbered it
    std::uint64_t number;
    auto operator<=>(const Key&) const = default;
  };
  struct Leg { // what it is here: an end, or a relay's
    RelayedStream* end = nullptr;
    Key other{};                                      // of a relay
    std::uint64_t window = kernel::most_relay_window; // of each direction
    std::uint64_t unread = 0;                         // of that: it came, and the other end has not taken it
    std::uint64_t untold = 0;                         // it has, and who sent it does not know
    bool opened = false;                              // the other end has said so
    bool ended = false;                               // the other side says nothing more
  };

  // For ends.
  void reach(RelayedStream& end); // its relay
  void stop_reaching(const RelayedStream& end);
  std::optional<Key> ask(std::int32_t link, const Address& to, RelayedStream& end);
  void send_bytes(const Key& from, std::string bytes); // empty: that was all
  void send_taken(const Key& from, std::uint64_t bytes);
  void forget(const Key& key, const char* why); // tells the other side

  void asked(std::int32_t from, const kernel::RelayOpen& message);
  void opened(std::int32_t from, const kernel::RelayOpened& message);
  void came(std::int32_t from, kernel::RelayBytes message);
  void taken(std::int32_t from, const kernel::RelayTaken& message);
  void closed(std::int32_t from, const kernel::RelayClose& message);
  void relay(const Key& from, const kernel::RelayOpen& message);
  // This kernel has asked that one to lead to the host, and is not answered.
  [[nodiscard]] bool is_waited_for(std::int32_t link, const std::string& host) const;
  [[nodiscard]] std::uint64_t window_for(const kernel::RelayOpen& message) const;
  void relay_to(const Key& from, const kernel::RelayOpen& message, const std::string& why_not);
  void accept(const Key& from, const kernel::RelayOpen& message);
  void close(const Key& key, const std::string& why);
  [[nodiscard]] bool takes(const Key& key) { // of what an end says
    return outboxes_.takes(key.link, key.number, key.begun_here);
  }
  Leg* find(const Key& key);
  void drop(const Key& key, const std::string& why); // as the other side has said, or the link's end

  Loop& loop_;
  Post& post_;
  StreamMaker& under_;
  RelayOutboxes outboxes_;
  Links links_;
  Acceptance owner_;
  std::map<Key, Leg> legs_;
  std::set<Key> reaching_; // asked for, while the link to the other end is made
  std::map<std::int32_t, std::set<std::uint64_t>> unanswered_; // asked for over each link, also in vain
  std::size_t connecting_ = 0;                   // such links, also those that nobody wants any more
  std::map<std::uint64_t, RelayedStream*> ends_; // whose relay's link is being made
  std::uint64_t numbers_ = 0;
};

} // namespace parc::daemon
