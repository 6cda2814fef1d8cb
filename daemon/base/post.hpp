// SPDX-License-Identifier: BSD-3-Clause
// Control messages between kernels (control/kernel_messages.hpp). They travel as ordinary messages of a space
// of their own, each a JSON object, optionally followed by raw bytes (program output), and are sorted by
// their kind: who takes one says so with on(). What a kernel says to itself does not pass the engine, but is
// delivered at a step's end as well.
//
// Every link has a probe posted; when it has found a message, a read with room for exactly that message
// follows. So a peer takes memory for one message, and one that stalls in the middle of it holds up nobody
// else. Senders bound what they queue: output by credit of its own, the rest by being answers.
//
// Invariants: a message is delivered at a step's end, never inside a call of its sender; what makes no sense
// is delivered to nobody.
#pragma once

#include "control/kernel_messages.hpp"
#include "daemon/base/cookie.hpp"
#include "daemon/base/loop.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"

#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace parc::daemon {

namespace kernel = control::kernel;

inline constexpr std::int32_t this_host = -1; // this kernel, in place of a link; as protocol::here

class Post {
public:
  static constexpr std::size_t max_message = 4u << 20; // a job's arguments and environment fit
  // Of whoever has proved a relay key alone: what it can cause is bounded here, but for what is relayed,
  // which has a window.
  static constexpr std::size_t most_answers = 16384;
  // Called when a message over a link makes no sense: nothing that follows it there is delivered.
  using Nonsense = std::function<void(std::uint32_t link, const Error& why)>;

  Post(Loop& loop, protocol::Engine& engine, Nonsense nonsense);

  // Registers the handler of a kind of message, once for each: handler(std::int32_t from, Message). `from`: a
  // link, or this_host.
  template <class Message, class Handler> void on(Handler handler) {
    Receiver& receiver = receivers_[static_cast<std::size_t>(Message::kind)];
    assert(!receiver.hear);
    receiver.hear = [handler](std::int32_t from, void* message) {
      handler(from, std::move(*static_cast<Message*>(message)));
    };
    receiver.read = [](const Receiver& self, std::int32_t from, const nlohmann::json& object,
                       std::string payload) -> Result<void> {
      PARC_TRY(message, control::from_json<Message>(object, std::move(payload)));
      self.hear(from, &message);
      return success();
    };
  }

  // Queues a message for the kernel at the other end of a link, or this one. In order per link; lost when the
  // link breaks (which its users hear of).
  template <class Message> void send(std::int32_t host, Message message) {
    (void)try_send(host, std::move(message));
  }
  // The same over a link; `taken` is called at a step's end, when the other kernel has all of it, or never
  // will.
  template <class Message>
  void send_and_hear(std::int32_t link, const Message& message, std::function<void()> taken) {
    (void)write(static_cast<std::uint32_t>(link), Message::kind, control::to_json(message), message.payload,
                std::move(taken));
  }
  // So many bytes may be under way over a link that they find room there, and none has to be asked for.
  [[nodiscard]] std::uint64_t room(std::int32_t link);
  // Queues it as send(). False: it is longer than max_message, and is not sent.
  template <class Message> [[nodiscard]] bool try_send(std::int32_t host, Message message) {
    assert(control::from_json<Message>(control::to_json(message)).has_value()); // its reader would take it
    if (host == this_host) {
      loop_.after_step([this, message = std::move(message)]() mutable {
        const Receiver& receiver = receivers_[static_cast<std::size_t>(Message::kind)];
        if (receiver.hear) receiver.hear(this_host, &message);
      });
      return true;
    }
    std::string_view payload;
    if constexpr (control::HasPayload<Message>) payload = message.payload;
    return write(static_cast<std::uint32_t>(host), Message::kind, control::to_json(message), payload);
  }
  // Whether a host's link is up: it may have broken before anybody was told.
  [[nodiscard]] bool reaches(std::int32_t host) const {
    return host == this_host || engine_.link(static_cast<std::uint32_t>(host)).open;
  }

  [[nodiscard]] std::uint64_t bytes_heard(std::int32_t host) const { // over its link; 0 of this one
    return host == this_host ? 0 : engine_.link(static_cast<std::uint32_t>(host)).bytes_in;
  }

  // To be called once for every link that comes up. Over one that is only for relaying goes nothing else, and
  // what comes over it makes no sense.
  void listen(std::uint32_t link, bool only_relaying = false);
  // An operation of the post has finished: called by the kernel, which is the engine's Listener.
  void finished(Cookie cookie, const protocol::Outcome& outcome);

private:
  struct Receiver {
    std::function<void(std::int32_t from, void* message)> hear; // none: nobody takes this kind
    Result<void> (*read)(const Receiver& self, std::int32_t from, const nlohmann::json& object,
                         std::string payload) = nullptr;
  };
  struct Inbox {
    bool probing = true;
    // Whether the link broke in the middle of a message, or brought nonsense and is being closed: what comes
    // behind that is read and not delivered.
    bool lost = false;
    std::string room; // for the message that the probe found
    bool only_relaying = false;
    std::uint64_t widest = 0; // credit that the other kernel was seen to give, in bytes
    std::size_t answers = 0;  // that it has not taken yet, where it is only for relaying
  };
  bool write(std::uint32_t link, kernel::Kind kind, const nlohmann::json& message, std::string_view payload,
             std::function<void()> taken = {});
  void probe(std::uint32_t link, Inbox& inbox);
  void written(std::uint64_t number);
  void refuse(std::uint32_t link, Inbox& inbox, const Error& why);
  void advance(std::uint32_t link, const protocol::Outcome& outcome);
  Result<void> deliver(std::uint32_t link, std::string_view incoming, bool only_relaying);

  Loop& loop_;
  protocol::Engine& engine_;
  Nonsense nonsense_;
  std::array<Receiver, kernel::kinds> receivers_;
  std::map<std::uint32_t, Inbox> inboxes_; // by link
  struct Write {
    std::uint32_t link;
    bool counts; // as an answer
    std::string bytes;
    std::function<void()> taken = {};
  };
  std::map<std::uint64_t, Write> writes_; // by number, until the engine is done with them
  std::uint64_t last_write_ = 0;
};

} // namespace parc::daemon
