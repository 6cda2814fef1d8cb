// SPDX-License-Identifier: BSD-3-Clause
// How many streams a link should have: one on a short path, and on a long one twice as many as before while
// that brings a tenth more, or twice as many again do. (A connection is fast until it loses its first packet:
// what one brought then says little of what it will bring.) Those that fill the path as they are need no
// others: that they are held up by their windows is what others would mend. Pure: no clock, no socket.
#pragma once

#include <cstdint>

namespace parc::daemon {

struct StreamSample {
  double seconds = 0;       // since the last one
  std::uint64_t bytes = 0;  // acknowledged in that time
  bool backlog = false;     // there was more to send
  bool held_up = true;      // by a window of one of them
  std::uint32_t rtt_us = 0; // the path's lowest; 0: not known
  unsigned streams = 1;     // that there are
};

class StreamCount {
public:
  static constexpr unsigned most = 16;
  static constexpr std::uint32_t short_path_us = 5000;
  static constexpr double least_settled_s = 10; // then the path may be another

  unsigned take(const StreamSample& sample); // how many there should be
  [[nodiscard]] unsigned wanted() const { return wanted_; }

private:
  enum class Stage : std::uint8_t {
    growing,   // the streams are being made, and find out what the path holds
    measuring, // what they bring
    settled,   // more would bring nothing
  };
  void enter(Stage next);
  void judge(double rate);

  Stage stage_ = Stage::growing;
  unsigned wanted_ = 1;
  unsigned best_ = 1;
  double best_rate_ = 0;               // bytes per second, with so many
  unsigned failures_ = 0;              // of more than that
  double stage_s_ = 0;                 // with a backlog
  double settled_s_ = least_settled_s; // it stays settled for so long
  unsigned settled_at_ = 0;
  double idle_s_ = 0;
  std::uint64_t bytes_ = 0;
  double held_up_s_ = 0; // of the stage
};

} // namespace parc::daemon
