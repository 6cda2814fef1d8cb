// SPDX-License-Identifier: BSD-3-Clause
// What tests of a session's members begin with: a kernel's loop, engine and peers, without links and in
// virtual time, a program's endpoint there, and memory that it shares.
#pragma once

#include "daemon/link/peers.hpp"
#include "daemon/program/completion.hpp"
#include "daemon/program/sessions.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <map>
#include <spdlog/spdlog.h>
#include <string>
#include <vector>

namespace parc::test {

class NoStreams final : public daemon::StreamMaker {
  Result<std::unique_ptr<daemon::Stream>> dial(const daemon::Address& to, daemon::KeyUse) override {
    return error(EHOSTUNREACH, "{} cannot be reached", to.text());
  }
  void accept_for(Acceptance) override {}
  void resume() override {}
};

struct ProgramHost : protocol::Listener {
  ProgramHost() : engine({}, *this), peers(loop, engine, streams, config, key, self(), {}) {
    spdlog::set_level(spdlog::level::off); // refusals are what these tests are made of
    add_program(0);
    member.endpoint = 1;
  }
  ~ProgramHost() override { spdlog::set_level(level); }

  std::uint64_t add_program(std::uint64_t cookie) {
    const std::uint64_t endpoint = engine.add_endpoint();
    BOOST_REQUIRE(engine.open(endpoint, cookie));
    return endpoint;
  }
  // As text, of an endpoint here.
  [[nodiscard]] std::string address(std::uint64_t endpoint) const {
    return daemon::to_text(peers.describe({protocol::here, endpoint}));
  }
  // On a host that nobody reaches.
  [[nodiscard]] static daemon::EndpointAddress elsewhere() {
    return {.identity = 99, .number = 1, .name = 0, .port = 0, .hosts = {}};
  }
  [[nodiscard]] std::int32_t error_of(std::uint64_t operation) const { return over.at(operation).error; }

  spdlog::level::level_enum level = spdlog::get_level();
  daemon::Loop::Time time{};
  daemon::Loop loop{&time};
  daemon::Config config;
  daemon::Key key;
  protocol::Engine engine;
  NoStreams streams;
  daemon::Peers peers;
  daemon::Sessions::Member member{.job = 5, .rank = 0, .size = 2, .endpoint = 0};
  bool has_table = true;
  std::map<std::uint64_t, daemon::Completion> over;     // operations that have been told of
  std::map<std::uint64_t, protocol::Outcome> finished_; // in the engine, by cookie

private:
  static daemon::LocalHost self() {
    daemon::LocalHost made;
    made.name = "a";
    made.identity = 7;
    return made;
  }
  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    finished_.emplace(cookie, outcome);
  }
  void drained(std::uint64_t) override {}
};

// A string as a message's memory.
inline protocol::Pieces pieces(std::string& bytes) {
  return {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()};
}

} // namespace parc::test
