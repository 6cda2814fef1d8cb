// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/input.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <unistd.h>

namespace parc::tools {

bool Input::in_background() {
  const pid_t foreground = tcgetpgrp(STDIN_FILENO);
  return foreground >= 0 && foreground != getpgrp();
}

// What cannot be read is as if it had ended.
Result<void> Input::pass_on(KernelConnection& kernel) {
  std::array<char, 32768> buffer;
  const auto room =
      static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), window - (given_ - taken_)));
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), room);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return success();
  ended_ = got <= 0;
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  given_ += bytes;
  auto sent = kernel.send(tool::Input{.end = ended_ ? 1u : 0u, .payload = std::string(buffer.data(), bytes)});
  if (sent || (sent.error().code != EPIPE && sent.error().code != ECONNRESET)) return sent;
  ended_ = true; // the job is over: why, is still to be read
  return success();
}

} // namespace parc::tools
