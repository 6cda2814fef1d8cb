// SPDX-License-Identifier: BSD-3-Clause
// A tool's end of the conversation with the kernel of its host: blocking to send, and to be polled for what
// comes. Invariant: a kernel that hangs is told from one that has nothing to say, as it answers a ping before
// anything else; the first has been answered where there is a connection.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"
#include "system/frames.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace parc::tools {

class KernelConnection {
public:
  // To the kernel on this runtime directory; where none runs, one is started.
  [[nodiscard]] static Result<KernelConnection> open(const std::string& runtime_dir,
                                                     const std::vector<std::string>& options_of_parcd = {});
  // The same without starting one.
  [[nodiscard]] static Result<KernelConnection> open_running(const std::string& runtime_dir);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] Result<void> send(const nlohmann::json& message, std::string_view bytes = {});

  // Asks whether it still hears; what comes next answers that. Before due(), or it is silent() and hangs.
  [[nodiscard]] Result<void> ping();
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::optional<Clock::time_point> due() const { return due_; } // none: nothing was asked
  [[nodiscard]] Error silent() const;

  // Takes what has come; an error when the kernel has gone.
  [[nodiscard]] Result<void> receive();
  [[nodiscard]] Result<std::optional<Frame>> next() { return frames_.next(); }
  // The next frame, when it is there; an error when the kernel hangs, which is asked meanwhile.
  [[nodiscard]] Result<Frame> await();

private:
  explicit KernelConnection(Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] static Result<KernelConnection> introduce(Fd socket);
  [[nodiscard]] Result<void> await_first_answer();
  Fd socket_;
  std::optional<Clock::time_point> due_;
  FrameReader frames_;
};

} // namespace parc::tools
