// SPDX-License-Identifier: BSD-3-Clause
// What `parc up` asks the kernel of its host: here are the kernels that it has started; connect to each. The
// kernel keeps where they are, and says of each whether it was reached, as it is known.
#pragma once

#include "daemon/job/tool_door.hpp"
#include "daemon/link/peers.hpp"

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

namespace parc::daemon {

class HostSearch {
public:
  // `over` is called once, last of all, unless this goes first.
  HostSearch(Peers& peers, ToolDoor& door, std::function<void()> over);

  // An array of [name, address, port]. False: it makes no sense; then `over` is not called.
  [[nodiscard]] bool ask(const nlohmann::json& hosts);

private:
  void answered(const std::string& host, const Result<std::int32_t>& link);

  Peers& peers_;
  ToolDoor& door_;
  std::function<void()> over_;
  std::size_t open_ = 0;                                                    // hosts without an answer
  std::shared_ptr<HostSearch*> self_ = std::make_shared<HostSearch*>(this); // for answers that come after it
};

} // namespace parc::daemon
