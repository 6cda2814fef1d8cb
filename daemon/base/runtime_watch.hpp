// SPDX-License-Identifier: BSD-3-Clause
// Says when something of the runtime directory has gone, or the directory itself: cleaners of temporary
// files, and the end of a login, remove what nobody has touched for some time.
#pragma once

#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "system/fd.hpp"

#include <functional>
#include <string>

namespace parc::daemon {

class RuntimeWatch {
public:
  // `look` is called some time after something has gone, when whoever removes it has done with the rest; at a
  // step's end.
  RuntimeWatch(Loop& loop, std::string path, std::function<void()> look);

  void watch();      // the directory that is at the path now
  void look_later(); // once more, though nothing is heard of

private:
  void hear();

  std::string path_;
  Fd changes_;
  Event heard_;
  Timer look_;
};

} // namespace parc::daemon
