// SPDX-License-Identifier: BSD-3-Clause
// Two processes at the ends of a TCP connection. The side that accepts is the first.
#include "bench/paper/cores.hpp"
#include "bench/paper/roles.hpp"
#include "bench/paper/rounds.hpp"
#include "examples/heat/stream.hpp"

#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

namespace parc::bench {

namespace {

using heat::receive_all;
using heat::send_all;
using Bytes = std::vector<std::byte>;

class Side {
public:
  [[nodiscard]] static Result<Side> make(const Endpoint& where) {
    const bool first = where.peer.empty();
    stay_on(core_of(first ? 0 : 1));
    PARC_TRY(connection, connect(where));
    return Side(std::move(connection), first);
  }
  [[nodiscard]] bool first() const { return first_; }

  // As one call each, or as one for each fragment.
  [[nodiscard]] Result<void> send(const Bytes& data, std::size_t fragment = SIZE_MAX) const {
    for (std::size_t at = 0; at < data.size(); at += std::min(fragment, data.size() - at)) {
      PARC_TRY(send_all(connection_.get(), data.data() + at, std::min(fragment, data.size() - at)));
    }
    return success();
  }
  [[nodiscard]] Result<void> receive(Bytes& data, std::size_t fragment = SIZE_MAX) const {
    for (std::size_t at = 0; at < data.size(); at += std::min(fragment, data.size() - at)) {
      PARC_TRY(receive_all(connection_.get(), data.data() + at, std::min(fragment, data.size() - at)));
    }
    return success();
  }
  template <class Value> [[nodiscard]] Result<void> send_value(const Value& value) const {
    return send_all(connection_.get(), &value, sizeof value);
  }
  template <class Value> [[nodiscard]] Result<Value> receive_value() const {
    Value value{};
    PARC_TRY(receive_all(connection_.get(), &value, sizeof value));
    return value;
  }
  [[nodiscard]] Result<void> set_no_delay(int yes) const {
    if (setsockopt(connection_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0) return success();
    return system_error("cannot set TCP_NODELAY");
  }

  // Each side has its own `round`; what both do is timed.
  template <class Round> [[nodiscard]] Result<double> time_of(const Round& round) const {
    const auto rounds = [&round](int times) -> Result<void> {
      for (int i = 0; i < times; ++i) {
        PARC_TRY(round());
      }
      return success();
    };
    return time_of_round(rounds, [this](std::int64_t& times) { return agree(times); });
  }

private:
  Side(Fd connection, bool first) : connection_(std::move(connection)), first_(first) {}
  [[nodiscard]] Result<void> agree(std::int64_t& times) const {
    if (first_) {
      PARC_TRY(send_value(times));
      PARC_TRY(receive_value<std::int64_t>());
      return success();
    }
    PARC_TRY(told, receive_value<std::int64_t>());
    times = told;
    return send_value(times);
  }

  Fd connection_;
  bool first_;
};

// One way of a ping-pong in which a side sends as `send` does and receives as `receive` does.
template <class Send, class Receive>
Result<double> one_way(const Side& side, const Send& send, const Receive& receive) {
  PARC_TRY(round, side.time_of([&]() -> Result<void> {
    if (side.first()) {
      PARC_TRY(send());
      return receive();
    }
    PARC_TRY(receive());
    return send();
  }));
  return round / 2;
}

// A conversion of data in its place: the compiler is not to see that it copies.
void copy_by_bytes(const Bytes& from, Bytes& to) {
  const volatile std::byte* const source = from.data();
  volatile std::byte* const target = to.data();
  for (std::size_t i = 0; i < from.size(); ++i) target[i] = source[i];
}

using Copy = void (*)(const Bytes& from, Bytes& to);
constexpr Copy copies[] = {
    copy_by_bytes, [](const Bytes& from, Bytes& to) { std::memcpy(to.data(), from.data(), from.size()); }};

Result<double> copied(const Side& side, std::size_t bytes, Copy copy) {
  Bytes message(bytes, std::byte{1}), buffer(bytes, std::byte{2});
  const auto send = [&]() -> Result<void> {
    copy(message, buffer);
    return side.send(buffer);
  };
  const auto receive = [&]() -> Result<void> {
    PARC_TRY(side.receive(buffer));
    copy(buffer, message);
    return success();
  };
  return one_way(side, send, receive);
}

Result<double> fragmented(const Side& side, std::size_t bytes, std::size_t fragment) {
  Bytes message(bytes, std::byte{1});
  return one_way(
      side, [&] { return side.send(message, fragment); }, [&] { return side.receive(message, fragment); });
}

// Until the connection has seen what the path takes: who is measured first is to find that too.
Result<void> warm_up(const Side& side) {
  constexpr std::size_t bytes = 1 << 20;
  PARC_TRY(fragmented(side, bytes, bytes));
  return success();
}

constexpr auto late = std::chrono::milliseconds(250); // longer than TCP waits before it probes a window

// The receiver says how long it did not read; what else a round took, and its sending, is added up.
Result<void> to_receiver(const Side& side, Bytes& message, bool reads_late, double& rest, double& sending) {
  if (side.first()) {
    const double begin = seconds_now();
    PARC_TRY(side.send(message));
    sending += seconds_now() - begin;
    PARC_TRY(idle, side.receive_value<double>());
    rest += seconds_now() - begin - idle;
    return success();
  }
  const double begin = seconds_now();
  if (reads_late) std::this_thread::sleep_for(late);
  const double idle = reads_late ? seconds_now() - begin : 0;
  PARC_TRY(side.receive(message));
  return side.send_value(idle);
}

} // namespace

Result<Figures> direct(const Sizes& sizes, const Endpoint& where) {
  PARC_TRY(side, Side::make(where));
  PARC_TRY(warm_up(side));
  Figures figures;
  for (const std::size_t bytes : sizes) {
    PARC_TRY(seconds, fragmented(side, bytes, bytes));
    figures[std::to_string(bytes)] = seconds;
  }
  return side.first() ? figures : Figures();
}

Result<Figures> buffering(const Endpoint& where) {
  PARC_TRY(side, Side::make(where));
  PARC_TRY(warm_up(side));
  Figures figures;
  for (const std::size_t bytes : buffered_sizes) {
    for (std::size_t i = 0; i < std::size(copies); ++i) {
      PARC_TRY(seconds, copied(side, bytes, copies[i]));
      figures[keyed(bytes, copyings[i])] = seconds;
    }
    PARC_TRY(seconds, fragmented(side, bytes, bytes));
    figures[keyed(bytes, copyings.back())] = seconds;
  }
  return side.first() ? figures : Figures();
}

Result<Figures> fragmentation(const Endpoint& where) {
  PARC_TRY(side, Side::make(where));
  PARC_TRY(warm_up(side));
  Figures figures;
  for (const std::size_t bytes : fragmented_sizes) {
    Sizes lengths = {bytes};
    for (const std::size_t fragment : fragments)
      if (fragment < bytes) lengths.push_back(fragment);
    for (const std::size_t fragment : lengths) {
      PARC_TRY(seconds, fragmented(side, bytes, fragment));
      figures[keyed(bytes, std::to_string(fragment))] = seconds;
    }
  }
  return side.first() ? figures : Figures();
}

Result<Figures> delayed_writes(const Endpoint& where) {
  constexpr std::size_t fragment = 4 << 10;
  PARC_TRY(side, Side::make(where));
  Figures figures;
  for (const bool delayed : {true, false}) {
    PARC_TRY(side.set_no_delay(!delayed));
    for (const std::size_t bytes : stalling_sizes) {
      Bytes message(bytes, std::byte{1}), answer(8, std::byte{2});
      PARC_TRY(seconds, side.time_of([&]() -> Result<void> {
        if (side.first()) {
          PARC_TRY(side.send(message, fragment));
          return side.receive(answer);
        }
        PARC_TRY(side.receive(message));
        return side.send(answer);
      }));
      figures[keyed(bytes, delayed ? "delayed" : "at once")] = seconds;
    }
  }
  return side.first() ? figures : Figures();
}

Result<Figures> zero_window(const Endpoint& where) {
  constexpr int buffer = 16 << 10, rounds = 4; // the system doubles a buffer, and there are two
  constexpr std::size_t bytes = 256 << 10;
  PARC_TRY(side, Side::make({where.peer, where.port, buffer}));
  Bytes message(bytes, std::byte{1});
  Figures figures;
  for (const bool reads_late : {false, true}) {
    double rest = 0, sending = 0, uncounted = 0;
    PARC_TRY(to_receiver(side, message, reads_late, uncounted, uncounted));
    for (int i = 0; i < rounds; ++i) {
      PARC_TRY(to_receiver(side, message, reads_late, rest, sending));
    }
    const std::string when = reads_late ? "late" : "at once";
    figures[when] = rest / rounds;
    figures["send " + when] = sending / rounds;
  }
  return side.first() ? figures : Figures();
}

} // namespace parc::bench
