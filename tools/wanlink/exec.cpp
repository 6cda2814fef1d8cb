// SPDX-License-Identifier: BSD-3-Clause
// `wanlink exec`: the calling process moves onto a host and becomes the command there, so the command's
// standard files, exit status and parent are the caller's.
#include "system/standard_streams.hpp"
#include "tools/wanlink/commands.hpp"
#include "tools/wanlink/isolation.hpp"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <unistd.h>

namespace parc::wanlink {

int execute(const Command& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  give_signals_back();
  execvp(arguments[0], arguments.data());
  const int code = errno;
  std::cerr << fmt::format("wanlink: cannot execute {}: {}\n", command.front(), std::strerror(code));
  return code == ENOENT || code == ENOTDIR ? status_not_found : status_not_executable;
}

Result<int> exec(const std::string& host, const Command& command) {
  PARC_TRY(paths, present_emulation());
  PARC_TRY(enter_host(paths, host));
  return execute(command);
}

} // namespace parc::wanlink
