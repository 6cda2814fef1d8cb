// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen.hpp"

#include <cerrno>

namespace parc::tools {

Result<std::unique_ptr<Screen>> Screen::open() {
  return error(ENOSYS, "this parc was built without ncurses and cannot draw on a terminal; parc top --batch "
                       "prints tables");
}

} // namespace parc::tools
