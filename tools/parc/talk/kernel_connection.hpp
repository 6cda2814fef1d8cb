// SPDX-License-Identifier: BSD-3-Clause
// A tool's end of the conversation with the kernel of its host: blocking to send, and to be polled for what
// comes. Invariant: a kernel that hangs is told from one that has nothing to say, as it answers a ping before
// anything else; the first has been answered where there is a connection.
#pragma once

#include "control/frames.hpp"
#include "control/tool_messages.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parc::tools {

namespace tool = control::tool;

// What the kernel has said, where its frame is of that kind.
template <class Message> [[nodiscard]] Result<Message> read(const control::Frame& frame) {
  auto message = control::from_json<Message>(frame.message, frame.payload);
  if (!message) return std::move(message).error().in("the kernel of this host (parcd) cannot be understood");
  return message;
}

class KernelConnection {
public:
  // To the kernel on this runtime directory; where none runs, one is started.
  [[nodiscard]] static Result<KernelConnection> open(const std::string& runtime_dir,
                                                     const std::vector<std::string>& options_of_parcd = {});
  // The same without starting one.
  [[nodiscard]] static Result<KernelConnection> open_running(const std::string& runtime_dir);

  [[nodiscard]] int fd() const { return socket_.get(); }
  template <class Message> [[nodiscard]] Result<void> send(const Message& message) {
    return write(control::frame_of(message));
  }

  // Asks whether it still hears; what comes next answers that. Before due(), or it is silent() and hangs.
  [[nodiscard]] Result<void> ping();
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::optional<Clock::time_point> due() const { return due_; } // none: nothing was asked
  [[nodiscard]] Error silent() const;

  // Takes what has come; an error when the kernel has gone.
  [[nodiscard]] Result<void> receive();
  [[nodiscard]] Result<std::optional<control::Frame>> next() { return frames_.next(); }
  // The next frame, when it is there; an error when the kernel hangs, which is asked meanwhile.
  [[nodiscard]] Result<control::Frame> await();

private:
  explicit KernelConnection(Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] static Result<KernelConnection> introduce(Fd socket);
  [[nodiscard]] Result<void> await_first_answer();
  [[nodiscard]] Result<void> write(std::string_view frame);
  Fd socket_;
  std::optional<Clock::time_point> due_;
  control::FrameReader frames_;
};

} // namespace parc::tools
