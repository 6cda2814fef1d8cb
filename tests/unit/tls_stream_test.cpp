// SPDX-License-Identifier: BSD-3-Clause
// What an encrypted stream refuses, and with which words; that two ends of one connection know something that
// nobody else does; and what is derived from a key.
#include "daemon/link/tls_stream.hpp"

#include "daemon/link/handshake.hpp"
#include "daemon/link/link_secrets.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <openssl/ssl.h>
#include <thread>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(tls_stream)

using Status = Transfer::Status;

namespace {

using Bytes = std::deque<std::byte>;

// One end of a connection in memory, whose bytes somebody on the way may change.
class MemoryStream final : public Stream {
public:
  MemoryStream(Bytes& in, Bytes& out) : Stream({}, {}), in_(in), out_(out) {}
  int opened() override { return 0; }
  [[nodiscard]] bool readable() const override { return !in_.empty() || ended_; }
  [[nodiscard]] bool writable() const override { return true; }
  Transfer read(std::span<const iovec> to) override {
    if (in_.empty()) return {.status = ended_ ? Status::ended : Status::would_block};
    std::size_t got = 0;
    for (const iovec& part : to)
      for (std::size_t i = 0; i < part.iov_len && !in_.empty(); ++i, ++got, in_.pop_front())
        static_cast<std::byte*>(part.iov_base)[i] = in_.front();
    return {.bytes = got};
  }
  Transfer write(std::span<const iovec> from) override {
    std::size_t went = 0;
    for (const iovec& part : from)
      for (std::size_t i = 0; i < part.iov_len; ++i, ++went)
        out_.push_back(static_cast<const std::byte*>(part.iov_base)[i]);
    return {.bytes = went};
  }
  void end_output() override {}
  [[nodiscard]] std::optional<PathReport> path() const override { return {}; }
  void limit(const PathLimits&) override {}
  void limit_silence(std::chrono::milliseconds) override {}
  void end() { ended_ = true; }

private:
  Bytes &in_, &out_;
  bool ended_ = false;
};

Key key_of(int number) {
  Key key{};
  key[0] = static_cast<std::byte>(number);
  return key;
}

struct Connection {
  explicit Connection(int key_of_acceptor = 1) : Connection(key_of(1), key_of(key_of_acceptor)) {}
  Connection(const Keys& of_dialer, const Keys& of_acceptor, KeyUse use = KeyUse::link)
      : use_(use), one_(std::make_shared<TlsSettings>(of_dialer)),
        other_(std::make_shared<TlsSettings>(of_acceptor)) {}

  Bytes to_acceptor, to_dialer;
  KeyUse use_;
  std::shared_ptr<const TlsSettings> one_, other_;
  std::unique_ptr<Stream> dialer_ =
      TlsStream::make(one_, std::make_unique<MemoryStream>(to_dialer, to_acceptor), TlsStream::Side::dials,
                      use_)
          .value();
  std::unique_ptr<Stream> acceptor_ =
      TlsStream::make(other_, std::make_unique<MemoryStream>(to_acceptor, to_dialer),
                      TlsStream::Side::accepts)
          .value();
  TlsStream& dialer = static_cast<TlsStream&>(*dialer_);
  TlsStream& acceptor = static_cast<TlsStream&>(*acceptor_);

  static Transfer write(TlsStream& from, std::string text) {
    const iovec part{text.data(), text.size()};
    return from.write({&part, 1});
  }
  static std::string read(TlsStream& from, Transfer& how) {
    std::string text(100'000, '\0');
    const iovec part{text.data(), text.size()};
    how = from.read({&part, 1});
    text.resize(how.bytes);
    return text;
  }
  // Until it says something else than to wait.
  std::string go(TlsStream& from, TlsStream& to, const std::string& text, Transfer& how) {
    bool went = false;
    for (int round = 0; round < 100; ++round) {
      if (!went) went = write(from, text).status == Status::moved;
      const std::string got = read(to, how);
      if (how.status != Status::would_block) return got;
    }
    return {};
  }
};

LocalHost plain_host() {
  LocalHost host;
  host.identity = 1;
  host.name = "plain";
  return host;
}

bool mentions(const Stream& stream, const Transfer& how, std::string_view words, int code = EPROTO) {
  BOOST_TEST((how.status == Status::broken));
  BOOST_TEST(how.code == code);
  return stream.describe(how.code).find(words) != std::string::npos;
}

// Of somebody who is no kernel, and begins in this way.
Bytes first_words_of(SSL* client) {
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(client, BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(client);
  (void)SSL_do_handshake(client);
  std::array<std::byte, 4096> said;
  const int bytes = BIO_read(out, said.data(), static_cast<int>(said.size()));
  BOOST_REQUIRE(bytes > 0);
  return {said.begin(), said.begin() + bytes};
}

} // namespace

BOOST_AUTO_TEST_CASE(what_is_said_arrives_and_is_not_seen_on_the_way) {
  Connection two;
  Transfer how;
  const std::string secret(50'000, 's');
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  (void)Connection::write(two.dialer, secret);
  const std::string on_the_way(reinterpret_cast<const char*>(&*two.to_acceptor.begin()), 64);
  BOOST_TEST(on_the_way.find("ssss") == std::string::npos);
  std::string got;
  while (got.size() < secret.size()) {
    got += Connection::read(two.acceptor, how);
    if (how.status == Status::would_block) (void)Connection::write(two.dialer, secret.substr(got.size()));
  }
  BOOST_TEST(got == secret);
  BOOST_TEST((two.dialer.binding() == two.acceptor.binding()));
  Connection others;
  BOOST_TEST(others.go(others.dialer, others.acceptor, "hello", how) == "hello");
  BOOST_TEST((two.dialer.binding() != others.dialer.binding()));
}

// Behind its part of the greeting, which the other side's first words are an answer to.
BOOST_AUTO_TEST_CASE(who_accepts_may_write_first) {
  Connection two;
  Transfer how;
  BOOST_TEST((Connection::write(two.acceptor, "early").status == Status::would_block));
  BOOST_TEST(!two.acceptor.writable());
  (void)Connection::write(two.dialer, "");
  BOOST_TEST(two.acceptor.writable());
  BOOST_TEST(Connection::write(two.acceptor, "early ").bytes == 6u);
  BOOST_TEST(Connection::write(two.acceptor, "bird").bytes == 4u);
  std::string heard = Connection::read(two.dialer, how);
  heard += Connection::read(two.dialer, how);
  BOOST_TEST(heard == "early bird");
  BOOST_TEST(two.go(two.dialer, two.acceptor, "answer", how) == "answer");
  BOOST_TEST(two.go(two.acceptor, two.dialer, "and more", how) == "and more");
  BOOST_TEST((two.dialer.binding() == two.acceptor.binding()));
  Connection wrong(2);
  (void)Connection::write(wrong.dialer, "");
  BOOST_TEST((Connection::write(wrong.acceptor, "early").status == Status::broken)); // nobody is told
}

BOOST_AUTO_TEST_CASE(another_key_is_named_as_such_on_both_sides) {
  Connection two(2);
  Transfer how;
  (void)two.go(two.dialer, two.acceptor, "hello", how);
  BOOST_TEST(mentions(two.acceptor, how, "does not hold the key of this host", EKEYREJECTED));
  (void)Connection::read(two.dialer, how);
  BOOST_TEST(mentions(two.dialer, how, "does not hold the key of this host", EKEYREJECTED));
}

// While keys are being changed.
BOOST_AUTO_TEST_CASE(a_second_key_convinces_an_acceptor) {
  Connection two(key_of(2), Keys(key_of(1), key_of(2)));
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  Connection late(Keys(key_of(2), key_of(1)), key_of(1)); // in the wrong order
  BOOST_TEST(late.go(late.dialer, late.acceptor, "hello", how).empty());
  BOOST_TEST(how.code == EKEYREJECTED);
}

BOOST_AUTO_TEST_CASE(a_relay_has_a_key_of_its_own) {
  const Keys all = key_of(1), relay = relay_keys(all);
  Transfer how;
  Connection to_relay(all, relay, KeyUse::relay);
  BOOST_TEST(to_relay.go(to_relay.dialer, to_relay.acceptor, "hello", how) == "hello");
  Connection from_relay(relay, all);
  BOOST_TEST(from_relay.go(from_relay.dialer, from_relay.acceptor, "hello", how) == "hello");
  Connection neither(all, relay);
  BOOST_TEST(neither.go(neither.dialer, neither.acceptor, "hello", how).empty());
  BOOST_TEST(how.code == EKEYREJECTED);
}

// Of what is cut off early as much as can be is of use.
BOOST_AUTO_TEST_CASE(the_first_records_are_short) {
  Connection two;
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  const auto before = two.to_acceptor.size();
  BOOST_TEST_REQUIRE((Connection::write(two.dialer, std::string(16'000, 'x')).status == Status::moved));
  BOOST_TEST_REQUIRE(two.to_acceptor.size() > before + 16'000);
  two.to_acceptor.resize(before + 9'000);
  BOOST_TEST(Connection::read(two.acceptor, how).size() == 8192u);
}

// The library lets sessions grow old, and a key is none.
BOOST_AUTO_TEST_CASE(a_kernel_that_has_run_for_long) {
  Connection two;
  for (const auto& each : {two.one_, two.other_})
    SSL_SESSION_set_time(each->identities().front().session.get(), 1000);
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
}

BOOST_AUTO_TEST_CASE(what_is_changed_on_the_way_is_refused) {
  Connection two;
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  (void)Connection::write(two.dialer, "more");
  two.to_acceptor.back() ^= std::byte{1};
  BOOST_TEST(Connection::read(two.acceptor, how).empty());
  BOOST_TEST(mentions(two.acceptor, how, "encryption is not right"));
}

BOOST_AUTO_TEST_CASE(what_is_said_twice_is_refused) {
  Connection two;
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  (void)Connection::write(two.dialer, "more");
  const Bytes record = two.to_acceptor;
  BOOST_TEST(Connection::read(two.acceptor, how) == "more");
  two.to_acceptor = record;
  (void)Connection::read(two.acceptor, how);
  BOOST_TEST(mentions(two.acceptor, how, "encryption is not right"));
}

BOOST_AUTO_TEST_CASE(what_is_reordered_on_the_way_is_refused) {
  Connection two;
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  std::array<Bytes, 2> records;
  for (Bytes& each : records) {
    (void)Connection::write(two.dialer, "one of two");
    each = std::exchange(two.to_acceptor, {});
  }
  for (const std::size_t which : {1u, 0u})
    two.to_acceptor.insert(two.to_acceptor.end(), records[which].begin(), records[which].end());
  BOOST_TEST(Connection::read(two.acceptor, how).empty());
  BOOST_TEST(mentions(two.acceptor, how, "encryption is not right"));
}

// Who holds the key and offers no more than TLS 1.2: another program, or who is on the way and would have
// something weaker.
BOOST_AUTO_TEST_CASE(an_older_version_is_refused) {
  Connection two;
  const auto other = two.one_->make();
  BOOST_REQUIRE(SSL_set_min_proto_version(other.get(), TLS1_2_VERSION) == 1);
  BOOST_REQUIRE(SSL_set_max_proto_version(other.get(), TLS1_2_VERSION) == 1);
  BOOST_REQUIRE(SSL_set_cipher_list(other.get(), "ALL") == 1);
  two.to_acceptor = first_words_of(other.get());
  const Transfer how = Connection::write(two.acceptor, "in clear");
  BOOST_TEST(mentions(two.acceptor, how, "offers a version of TLS before 1.3, and links have no other"),
             two.acceptor.describe(how.code));
  // What it is told, a kernel would understand.
  const Transfer heard = Connection::write(two.dialer, "hello");
  BOOST_TEST(mentions(two.dialer, heard, "takes no TLS 1.3, and links have no other"),
             two.dialer.describe(heard.code));
}

// Who does not encrypt reads why in the language of all versions.
BOOST_AUTO_TEST_CASE(a_kernel_that_does_not_encrypt) {
  Connection two;
  Handshake plain(Role::Initiator, plain_host(), credentials(key_of(1)), Nonce{});
  const auto hello = plain.outgoing();
  two.to_acceptor.assign(hello.begin(), hello.end());
  Transfer how;
  (void)Connection::read(two.acceptor, how);
  BOOST_TEST(mentions(two.acceptor, how, "the other side does not", EPROTOTYPE));
  const std::vector<std::byte> answer(two.to_dialer.begin(), two.to_dialer.end());
  (void)plain.feed(answer);
  BOOST_TEST((plain.state() == Handshake::State::Failed));
  BOOST_TEST(plain.failure().text.find("encryption = \"none\"") != std::string::npos, plain.failure().text);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_encrypts_where_nobody_does) {
  Connection two;
  (void)Connection::write(two.dialer, "hello");
  Handshake plain(Role::Acceptor, plain_host(), credentials(key_of(1)), Nonce{});
  const std::vector<std::byte> greeting(two.to_acceptor.begin(), two.to_acceptor.end());
  (void)plain.feed(greeting);
  BOOST_TEST((plain.state() == Handshake::State::Failed));
  BOOST_TEST(plain.failure().text.find("encrypts what it sends") != std::string::npos, plain.failure().text);
  const auto answer = plain.outgoing();
  two.to_dialer.assign(answer.begin(), answer.end());
  Transfer how;
  (void)Connection::read(two.dialer, how);
  BOOST_TEST(mentions(two.dialer, how, "the other side does not", EPROTOTYPE));
}

BOOST_AUTO_TEST_CASE(another_program_and_a_certificate_are_no_kernel) {
  Transfer how;
  for (const std::string_view said : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01garbage that is no greeting"}) {
    Connection two;
    for (const char c : said) two.to_acceptor.push_back(static_cast<std::byte>(c));
    (void)Connection::read(two.acceptor, how);
    BOOST_TEST((how.status == Status::broken || how.status == Status::would_block));
  }
}

// Who is not known yet costs no more than a greeting does: here one that announces 131,000 bytes.
BOOST_AUTO_TEST_CASE(a_greeting_without_end) {
  Connection two;
  std::string said("\x16\x03\x01\x00\x04\x01\x01\xff\xb8", 9);
  for (int i = 0; i < 5000; ++i) said += std::string("\x16\x03\x01\x00\x01\x00", 6);
  for (const char c : said) two.to_acceptor.push_back(static_cast<std::byte>(c));
  Transfer how;
  (void)Connection::read(two.acceptor, how);
  BOOST_TEST(mentions(two.acceptor, how, "too much"));
  BOOST_TEST(two.to_acceptor.size() > 20'000U);
}

// Whose key exchange is another, so that the library asks it to begin anew: although it holds the key, it is
// no kernel, and what goes to it would not be encrypted yet.
BOOST_AUTO_TEST_CASE(a_greeting_that_has_to_be_said_anew) {
  Connection two;
  const auto other = two.one_->make();
  BOOST_REQUIRE(SSL_set1_groups_list(other.get(), "P-256:X25519") == 1);
  two.to_acceptor = first_words_of(other.get());
  const Transfer how = Connection::write(two.acceptor, "in clear");
  BOOST_TEST(mentions(two.acceptor, how, "not a kernel's"));
  std::string heard;
  for (const std::byte each : two.to_dialer) heard.push_back(static_cast<char>(each));
  BOOST_TEST(heard.find("clear") == heard.npos);
}

// Its first words come in pieces.
BOOST_AUTO_TEST_CASE(a_kernel_that_does_not_encrypt_and_speaks_slowly) {
  Connection two;
  const std::vector<std::byte> hello = handshake::refusal("x");
  Transfer how;
  for (std::size_t i = 0; i < hello.size() && how.status != Status::broken; ++i) {
    two.to_acceptor.push_back(hello[i]);
    (void)Connection::read(two.acceptor, how);
  }
  BOOST_TEST(mentions(two.acceptor, how, "the other side does not", EPROTOTYPE));
}

// An endless stream of key updates costs its connection.
BOOST_AUTO_TEST_CASE(endless_updates_of_keys) {
  Connection two;
  Transfer how;
  BOOST_TEST(two.go(two.dialer, two.acceptor, "hello", how) == "hello");
  int updates = 0;
  do {
    two.dialer.renew_keys();
    (void)Connection::write(two.dialer, "x");
    (void)Connection::read(two.acceptor, how);
  } while (how.status == Status::moved && ++updates < 100);
  BOOST_TEST(updates > 5);
  BOOST_TEST(mentions(two.acceptor, how, "too much besides data"));
}

// RFC 5869: the name of a key tells nothing of it, and secrets for two purposes differ.
BOOST_AUTO_TEST_CASE(secrets_of_a_key) {
  const Key key = key_of(7);
  BOOST_TEST(tls_identity(key).size() == 5 + 32U);
  BOOST_TEST(tls_identity(key) != tls_identity(key_of(8)));
  BOOST_TEST((tls_secret(key) != derive(key, "something else")));
  BOOST_TEST(std::memcmp(tls_secret(key).data(), key.data(), key.size()) != 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
