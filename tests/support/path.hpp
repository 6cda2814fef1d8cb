// SPDX-License-Identifier: BSD-3-Clause
// A TCP path to a kernel that a test can cut: it listens on a port of loopback, passes on what comes to
// another port, and ends connections at any byte when it is told to.
#pragma once

#include "system/fd.hpp"

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace parc::test {

class Path {
public:
  explicit Path(std::uint16_t to);
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t passed() const { return passed_; } // bytes so far, both ways
  [[nodiscard]] std::uint64_t cuts() const { return cuts_; }     // connections that it has ended, so far

  void cut();                           // all connections, where they are
  void cut_often(std::uint64_t bytes);  // each connection after less than so many; 0: no more
  void hold_after(std::uint64_t bytes); // so many more pass, and then nothing moves
  void hold_newest();                   // of the connections: nothing moves over that one any more
  void go_on();                         // what was held moves
  void down();                          // cut, and who connects gets no answer
  void up();

private:
  struct Connection {
    Fd near, far;           // none: nobody answers
    std::uint64_t left = 0; // before it is cut; 0: for ever
    bool held = false;
    std::vector<std::byte> to_far, to_near;
  };
  void run();
  void accept();
  bool pass(Connection& connection, short near, short far);
  bool move(Connection& connection, int from, int to, std::vector<std::byte>& held, bool readable);
  static void reset(Connection& connection);
  void wake() const;

  std::uint16_t to_;
  std::uint16_t port_ = 0;
  Fd listener_;
  Fd bell_;
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::uint64_t most_ = 0;
  std::uint64_t held_at_ = UINT64_MAX; // of passed_
  bool down_ = false;
  bool over_ = false;
  std::mt19937_64 random_{20261122};
  std::atomic<std::uint64_t> passed_{0}, cuts_{0};
  std::thread thread_;
};

} // namespace parc::test
