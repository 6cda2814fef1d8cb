// SPDX-License-Identifier: BSD-3-Clause
#include "client/session/inherited_pipe.hpp"

#include "parc/parc.h"

#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>

namespace parc::client {
namespace {

template <class Number> std::optional<Number> to_number(std::string_view text) {
  Number number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number < 0) return {};
  return number;
}

Error cannot_use(int number) {
  auto failure = system_error("cannot use file descriptor {} as a pipe to the kernel", number);
  failure.code = PARC_EINVAL;
  return failure;
}

} // namespace

Result<Fd> inherited_pipe(std::string_view text, PipeEnd end, const char* variable) {
  const auto colon = std::min(text.find(':'), text.size());
  const auto number = to_number<int>(text.substr(0, colon));
  const auto inode = colon == text.size() ? std::optional<std::uint64_t>(0)
                                          : to_number<std::uint64_t>(text.substr(colon + 1));
  if (!number || !inode)
    return error(PARC_EINVAL,
                 "{}={} in the environment makes no sense; it is set by parc run for its ranks alone",
                 variable, text);
  struct stat status {};
  const int flags = fcntl(*number, F_GETFL);
  if (flags < 0 || fstat(*number, &status) != 0) return cannot_use(*number);
  const int other_end = end == PipeEnd::read ? O_WRONLY : O_RDONLY;
  if (!S_ISFIFO(status.st_mode) || (flags & O_ACCMODE) == other_end ||
      (*inode != 0 && status.st_ino != *inode))
    return error(
        PARC_EINVAL,
        "file descriptor {} is not the pipe any more that parc run has left to this process ({}={}): the "
        "program, or a script around it, has opened something else there (as exec {}>file does); use "
        "another number for that",
        *number, variable, text, *number);
  if (fcntl(*number, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(*number, F_SETFD, FD_CLOEXEC) < 0)
    return cannot_use(*number);
  return Fd(*number);
}

} // namespace parc::client
