// SPDX-License-Identifier: BSD-3-Clause
#include "system/read_file.hpp"

#include "system/fd.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace parc {

Result<std::string> read_file(const std::string& path, std::string_view what) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("cannot read {}{}", what, path);
  std::string text;
  std::array<char, 16384> part;
  for (;;) {
    const ssize_t got = read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read {}{}", what, path);
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

} // namespace parc
