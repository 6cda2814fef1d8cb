// SPDX-License-Identifier: BSD-3-Clause
// A way to one host through ssh: an ssh of this user's that forwards a Unix socket here to the one on which
// the kernel over there hears others, so that no port is open on either side. What the links say to each
// other through it is encrypted and proved as on any connection: ssh, and who is on the way, see no more of
// it.
//
// It is opened for who asks, and stays. That it ends is a connection that broke, never a kernel that died;
// who asks again then gets another one, after a pause that grows while there is none.
#pragma once

#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/link/locator.hpp"
#include "daemon/process/start_process.hpp"
#include "daemon/settings/config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class SshTunnel {
public:
  // `command`: ssh, and its options; `near`: where its socket is to be, in a directory of this user's alone.
  SshTunnel(Loop& loop, const Processes& processes, SshAddress to, std::string command, std::string near);
  SshTunnel(const SshTunnel&) = delete;
  SshTunnel& operator=(const SshTunnel&) = delete;
  ~SshTunnel();

  void open(Resolver::Answer answer); // this and the next as in Tunnels
  void renew() { fail("nothing comes through it any more"); }
  [[nodiscard]] std::string why_refused() const;
  [[nodiscard]] const std::string& near() const { return near_; }

private:
  enum class Stage : std::uint8_t {
    closed,
    asking,  // ssh runs: where does the kernel over there listen?
    opening, // ssh runs: it has not said that all is there
    open,
    ending // it was killed
  };
  void enter(Stage next);
  void start_if_wanted();
  void start();
  void run(const std::vector<std::string>& words);
  bool hear(); // false: nothing more is there
  void heard(std::string_view line);
  bool hear_complaints();
  void complained(std::string_view line);
  void ended();
  void out_of_time();
  void fail(std::string why);
  void pause();
  void answer_all();
  void forget_process();
  [[nodiscard]] Error why_not() const;

  Loop& loop_;
  const Processes& processes_;
  const SshAddress to_;
  const std::string command_, near_;
  Stage stage_ = Stage::closed;
  std::string far_; // empty: it is not known
  Program program_;
  StartedProcess ssh_;
  Event output_, complaints_, end_;
  std::string said_;       // of its output, what is not a whole line yet
  std::string complained_; // the same of its errors
  std::string complaint_;  // the last line of those
  std::size_t lines_ = 0;
  Loop::Time opened_at_{};
  Timer limit_; // of a start
  Timer again_; // when it may be started next
  bool pausing_ = false;
  double pause_s_;
  std::string why_;                      // there is none
  std::optional<Loop::Time> refused_at_; // when sshd over there last connected nobody to the kernel's socket
  std::vector<Resolver::Answer> waiting_;
};

} // namespace parc::daemon
