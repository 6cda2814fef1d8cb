// SPDX-License-Identifier: BSD-3-Clause
// The connection of one tool (parc run): frames both ways. Output of ranks is queued here, and credited when
// the tool's socket has taken it. A ping, by which the tool sees whether this kernel hangs, is answered here.
//
// Invariants: its events are called from the event loop, never from inside a call of its owner; what is
// queued is bounded by the credit of the ranks whose output it is.
#pragma once

#include "control/frames.hpp"
#include "daemon/job/job_client.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <deque>
#include <event2/bufferevent.h>
#include <functional>
#include <memory>

struct event_base;
struct evbuffer;
struct evbuffer_cb_info;

namespace parc::daemon {

class ToolConnection : public JobClient {
public:
  struct Events {
    std::function<void(control::Frame)> frame;
    std::function<void(std::uint32_t rank, std::uint64_t bytes)> taken;
    std::function<void()> idle; // everything sent so far has been taken
    std::function<void()> gone; // it has closed, or does not speak our language; after the last taken
  };
  ToolConnection(event_base* loop, Fd socket, Events events);
  ToolConnection(const ToolConnection&) = delete;
  ToolConnection& operator=(const ToolConnection&) = delete;

  template <class Message> void send(const Message& message) { queue(control::frame_of(message)); }
  void send(const tool::Unreached& message) override { queue(control::frame_of(message)); }
  void send(const tool::InputTaken& message) override { queue(control::frame_of(message)); }
  void send(const tool::Done& message) override { // nothing is said behind that
    queue(control::frame_of(message));
    said_all_ = true;
  }
  void send_output(std::uint32_t rank, std::uint32_t stream, std::string bytes) override;
  [[nodiscard]] bool open() const override { return !gone_; }
  [[nodiscard]] bool idle() const { return sent_ == taken_; }

private:
  struct Free {
    void operator()(bufferevent* connection) const { bufferevent_free(connection); }
  };
  struct Output { // on its way
    std::uint32_t rank;
    std::uint64_t bytes;
    std::uint64_t end; // in the stream to the tool
  };
  void queue(const std::string& frame);
  void read();
  void answer_ping();
  void took(std::uint64_t bytes);
  void went();

  Events events_;
  control::FrameReader reader_;
  std::deque<Output> outputs_;
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t heard_end_ = 0; // of the last answer to a ping, in the stream to the tool
  bool said_all_ = false;
  bool gone_ = false;
  std::unique_ptr<bufferevent, Free> connection_; // before the rest goes
};

} // namespace parc::daemon
