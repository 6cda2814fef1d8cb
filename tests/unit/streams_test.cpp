// SPDX-License-Identifier: BSD-3-Clause
// What every stream between kernels promises, over TCP, over a Unix socket, and encrypted: what stands above
// the seam may not know which it is.
#include "daemon/link/socket_stream.hpp"

#include "daemon/link/listeners.hpp"
#include "daemon/link/resolver.hpp"
#include "daemon/link/tls_stream.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <sys/socket.h>
#include <thread>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(streams)

using Status = Transfer::Status;

// Both ends of a stream, on one loop.
struct BothEnds {
  explicit BothEnds(const std::string& kind)
      : streams(kind == "tls" ? static_cast<StreamMaker&>(encrypted.emplace(Key{}, sockets)) : sockets) {
    config.listen = {"127.0.0.1"};
    config.port = {0, 0, false};
    streams.accept_for(
        {.room = [this] { return room; },
         .accepted = [this](std::unique_ptr<Stream> stream) { accepted = std::move(stream); }});
    if (kind != "unix") {
      auto listeners = bind_listeners(config).value();
      address = numeric_address("127.0.0.1", listeners.at.port).value();
      sockets.listen(std::move(listeners.sockets.front()));
    } else {
      address = unix_address(scratch.path() + "/link").value();
      Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      BOOST_REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) ==
                    0);
      BOOST_REQUIRE(listen(socket.get(), 8) == 0);
      sockets.listen(std::move(socket));
    }
  }

  template <class Condition> void go_until(Condition holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(50);
    while (!holds()) {
      BOOST_REQUIRE(std::chrono::steady_clock::now() < end);
      go_round();
    }
  }
  void go_round() {
    loop.ring();
    event_base_loop(loop.events(), EVLOOP_NONBLOCK);
    loop.end_step();
    std::this_thread::yield();
  }
  void connect() {
    dialed = streams.dial(address, KeyUse::link).value();
    go_until([&] { return accepted != nullptr && dialed->opened() == 0 && accepted->opened() == 0; });
    say_hello(*dialed, *accepted);
    say_hello(*accepted, *dialed);
  }
  // A byte, as soon as one can go: what is encrypted takes some rounds to begin.
  void say_hello(Stream& from, Stream& to) {
    char byte = 'h';
    const iovec part{&byte, 1};
    bool went = false, came = false;
    go_until([&] {
      if (!went && from.writable()) went = from.write({&part, 1}).bytes == 1;
      if (!came && to.readable()) came = to.read({&part, 1}).bytes == 1;
      return went && came;
    });
  }

  test::Scratch scratch;
  Config config;
  Loop loop;
  SocketStreams sockets{loop, config};
  std::optional<TlsStreams> encrypted;
  StreamMaker& streams;
  Address address;
  bool room = true;
  std::unique_ptr<Stream> dialed, accepted;
};

namespace {

// All that there is now.
std::string taken(Stream& from, Status& last) {
  std::string all;
  while (from.readable()) {
    char buffer[1000];
    const iovec to{buffer, sizeof buffer};
    const Transfer got = from.read({&to, 1});
    last = got.status;
    if (got.status != Status::moved) break;
    all.append(buffer, got.bytes);
  }
  return all;
}

const auto kinds = boost::unit_test::data::make({"tcp", "unix", "tls"});

} // namespace

BOOST_DATA_TEST_CASE(bytes_go_both_ways_and_ends_are_read, kinds, kind) {
  BothEnds two(kind);
  two.connect();
  BOOST_TEST(two.dialed->peer().text() == two.address.text());
  std::string first = "first ", second = "second";
  const iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  two.go_until([&] { return two.dialed->writable(); });
  BOOST_TEST(two.dialed->write(parts).bytes == 12U);
  two.dialed->end_output();
  std::string got;
  Status last = Status::moved;
  two.go_until([&] {
    got += taken(*two.accepted, last);
    return last == Status::ended;
  });
  BOOST_TEST(got == "first second");
  two.go_until([&] { return two.accepted->writable(); });
  const iovec back{second.data(), second.size()};
  BOOST_TEST(two.accepted->write({&back, 1}).bytes == 6U);
  got.clear();
  two.go_until([&] { return (got += taken(*two.dialed, last)).size() == 6; });
  BOOST_TEST(got == "second");
}

// Whoever has met `would_block` hears of it when there is room again, and nothing is lost meanwhile.
BOOST_DATA_TEST_CASE(what_a_full_stream_does_not_take_waits, kinds, kind) {
  BothEnds two(kind);
  two.connect();
  std::vector<char> bytes(1 << 20);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 1000);
  std::size_t sent = 0, got = 0, blocked = 0;
  const std::size_t total = 16 * bytes.size();
  Status last = Status::moved;
  bool same = true;
  two.go_until([&] {
    while (two.dialed->writable() && (sent < total || two.dialed->holds())) {
      const std::size_t from = sent % bytes.size();
      const iovec part{bytes.data() + from, sent < total ? bytes.size() - from : 0};
      const Transfer moved = two.dialed->write({&part, 1});
      BOOST_REQUIRE((moved.status == Status::moved || moved.status == Status::would_block));
      sent += moved.bytes;
      if (!two.dialed->writable()) ++blocked;
    }
    if (blocked == 0) return false;
    const std::string text = taken(*two.accepted, last);
    for (std::size_t i = 0; i < text.size(); ++i) same &= text[i] == bytes[(got + i) % bytes.size()];
    got += text.size();
    return got == total;
  });
  BOOST_TEST(same);
  BOOST_TEST(blocked > 0U);
}

BOOST_DATA_TEST_CASE(nobody_listens, kinds, kind) {
  std::optional<BothEnds> gone(std::in_place, kind);
  const Address address = gone->address;
  gone.reset();
  BothEnds two(kind);
  auto stream = two.streams.dial(address, KeyUse::link);
  if (stream) { // a Unix socket is refused at once
    int code = EINPROGRESS;
    two.go_until([&] { return (code = stream.value()->opened()) != EINPROGRESS; });
    BOOST_TEST(code == ECONNREFUSED);
  } else {
    BOOST_TEST((stream.error().code == ECONNREFUSED || stream.error().code == ENOENT));
    BOOST_TEST(stream.error().text.find(address.text()) != std::string::npos, stream.error().text);
  }
}

// Who is gone is a stream's end or its break, never silence.
BOOST_DATA_TEST_CASE(the_other_side_goes, kinds, kind) {
  BothEnds two(kind);
  two.connect();
  two.accepted.reset();
  Status last = Status::moved;
  two.go_until([&] {
    (void)taken(*two.dialed, last);
    return last == Status::ended || last == Status::broken;
  });
  BOOST_TEST((last == Status::ended || last == Status::broken));
}

BOOST_DATA_TEST_CASE(without_room_they_wait, kinds, kind) {
  BothEnds two(kind);
  two.room = false;
  two.dialed = two.streams.dial(two.address, KeyUse::link).value();
  for (int round = 0; round < 1000; ++round) two.go_round();
  BOOST_TEST(two.accepted == nullptr);
  two.room = true;
  two.streams.resume();
  two.go_until([&] { return two.accepted != nullptr; });
}

BOOST_AUTO_TEST_CASE(what_is_known_of_a_path) {
  BothEnds tcp("tcp"), path("unix");
  tcp.connect();
  path.connect();
  BOOST_TEST(tcp.dialed->path().has_value());
  BOOST_TEST(!path.dialed->path().has_value());
  path.dialed->limit({.train = 1000, .delay_product_kib = 1, .unsent = 1000, .flight = 1000});
  path.dialed->limit_silence(std::chrono::seconds(1));
}

BOOST_AUTO_TEST_CASE(paths_of_unix_sockets) {
  const Address address = unix_address("/run/parc/link").value();
  BOOST_TEST(address.text() == "the Unix socket /run/parc/link");
  BOOST_TEST(address.host() == "/run/parc/link");
  BOOST_TEST(address.port() == 0);
  BOOST_TEST((address == unix_address("/run/parc/link").value()));
  BOOST_TEST((address != unix_address("/run/parc/lin").value()));
  BOOST_TEST(unix_address(std::string(108, 'a')).error().code == ENAMETOOLONG);
  BOOST_TEST(unix_address(std::string(107, 'a')).value().host() == std::string(107, 'a'));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
