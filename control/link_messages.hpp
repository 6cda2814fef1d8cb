// SPDX-License-Identifier: BSD-3-Clause
// What kernels say to each other so that links are there: of the kinds of control/kernel_messages.hpp.
//
// ---- Relayed connections: two kernels that cannot dial each other, and one that has links to both
//
//   asker             relay              other
//   relay_open   ->          relay_open  ->      to whom; from whom
//                <-  relay_opened        <-      it may begin, with a window that all have room for
//   relay_bytes  <->                     <->     of the connection; none: it says nothing more
//   relay_taken  <->                     <->     so many have been read: as many more may come
//   relay_close  <->                     <->     it is over, or will never be: a sentence
//
// Each link has its own numbers of them; who has begun one there says so with "begun".
//
// ---- A link whose path nobody else measures is asked for a sign of life now and then: "ping", and "pong".
//
// ---- "streams": how many connections the link should have, to the kernel that can dial.
#pragma once

#include "control/kernel_messages.hpp"

namespace parc::control::kernel {

// Of one direction of a relayed connection: bytes on their way, and of them in a message. What a path holds
// counts, there and back; a relay with many connections gives each less.
inline constexpr std::uint64_t least_relay_window = 128 << 10, most_relay_window = 2 << 20;
inline constexpr std::uint64_t most_relayed_bytes = 128 << 10;
// Of the window, that has been read and is told at once.
inline constexpr std::uint64_t least_told(std::uint64_t window) {
  return window / 4;
}
// A message takes so much of the window, of which the one that ends the connection takes none: what a relay
// keeps of each is more than its bytes.
inline constexpr std::uint64_t cost_of_relayed(std::size_t bytes) {
  return bytes + 512;
}
inline constexpr std::size_t longest_reason = 1024; // why it is over, in bytes

// ---- Relayed connections

struct RelayOpen {
  static constexpr Kind kind = Kind::relay_open;
  std::uint64_t stream = 0;
  std::uint64_t to = 0,
                from = 0; // identities of kernels; to 0: whoever has that name; from 0: the sender asks
  std::string name = {};  // of the other end
  std::uint32_t reach =
      0; // 1: [hosts] of who asks says so, and where there is no link yet, one is to be made
  std::uint64_t window = most_relay_window; // that there is room for
  static constexpr auto fields() {
    return std::array{
        field<&RelayOpen::stream>("stream"),  field<&RelayOpen::to>("to"),
        field<&RelayOpen::from>("from"),      field<&RelayOpen::name>("name"),
        field<&RelayOpen::reach>("reach", 1), field<&RelayOpen::window>("window", most_relay_window)};
  }
};

struct RelayOpened {
  static constexpr Kind kind = Kind::relay_opened;
  std::uint64_t stream = 0;
  std::uint64_t window = most_relay_window;
  static constexpr auto fields() {
    return std::array{field<&RelayOpened::stream>("stream"),
                      field<&RelayOpened::window>("window", most_relay_window)};
  }
};

template <class Message> constexpr auto relay_fields() {
  return std::array{field<&Message::stream>("stream"), field<&Message::begun>("begun", 1)};
}

struct RelayBytes {
  static constexpr Kind kind = Kind::relay_bytes;
  std::uint64_t stream = 0;
  std::uint32_t begun = 0; // 1: by who sends this
  std::string payload = {};
  static constexpr auto fields() { return relay_fields<RelayBytes>(); }
};

struct RelayTaken {
  static constexpr Kind kind = Kind::relay_taken;
  std::uint64_t stream = 0;
  std::uint32_t begun = 0;
  std::uint64_t bytes = 0;
  static constexpr auto fields() {
    return relay_fields<RelayTaken>() + std::array{field<&RelayTaken::bytes>("bytes", most_relay_window)};
  }
};

struct RelayClose {
  static constexpr Kind kind = Kind::relay_close;
  std::uint64_t stream = 0;
  std::uint32_t begun = 0;
  std::string text = {}; // why
  static constexpr auto fields() {
    return relay_fields<RelayClose>() + std::array{field<&RelayClose::text>("text", longest_reason)};
  }
};

struct Ping {
  static constexpr Kind kind = Kind::ping;
  std::uint64_t number = 0;
  static constexpr auto fields() { return std::array{field<&Ping::number>("number")}; }
};

struct Pong {
  static constexpr Kind kind = Kind::pong;
  std::uint64_t number = 0; // of the ping
  static constexpr auto fields() { return std::array{field<&Pong::number>("number")}; }
};

inline constexpr std::uint32_t most_streams = 16;
struct Streams {
  static constexpr Kind kind = Kind::streams;
  std::uint32_t count = 1;
  static constexpr auto fields() { return std::array{field<&Streams::count>("count", most_streams)}; }
};

} // namespace parc::control::kernel
