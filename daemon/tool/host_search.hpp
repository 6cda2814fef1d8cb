// SPDX-License-Identifier: BSD-3-Clause
// A question of a tool to several hosts (parc up, hosts, ps and kill): the kernel of the tool connects to
// each, asks its kernel, and hands on what it says, or why it says nothing, as that is known. Where the tool
// said where hosts are, every kernel that this one is linked to hears of them before it ends.
//
// Invariant: it ends, with whatever hosts have answered by then.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/job/job_door.hpp"
#include "daemon/link/peers.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace parc::daemon {

class Jobs;

class HostSearch {
public:
  // `token` names this one in what kernels say to each other. `over` is called once, last of all, unless this
  // goes first.
  HostSearch(Loop& loop, Peers& peers, Jobs& jobs, std::uint64_t token, JobDoor& door,
             std::function<void()> over);

  // `hosts`: an array of names, or [name, address, port] where that is; none: all that are known here. The
  // question is Jobs::answer's. False: the hosts make no sense; then `over` is not called.
  [[nodiscard]] bool ask(const nlohmann::json& hosts, nlohmann::json question);
  void answered(std::int32_t from, const nlohmann::json& message);

private:
  enum class State { connecting, asked, over };
  struct Host {
    std::string name;
    std::int32_t link = this_host;
    State state = State::connecting;
  };
  void connected(std::size_t place, const Result<std::int32_t>& link);
  void failed(Host& host, const std::string& why);
  void settle(Host& host, nlohmann::json answer);
  void over(Host& host);
  void tell_where();
  void put(std::int32_t link, std::size_t place, const nlohmann::json& question);
  void finish();
  [[nodiscard]] bool all(State at_least) const;
  void out_of_patience();

  Peers& peers_;
  Jobs& jobs_;
  std::uint64_t token_;
  JobDoor& door_;
  std::function<void()> over_;
  nlohmann::json question_;
  std::vector<Host> hosts_;
  bool all_known_ = false;                                                  // none was named
  std::set<std::int32_t> asked_;                                            // links, where all are
  bool learned_ = false;                                                    // where some of them are
  bool telling_ = false;                                                    // all have answered
  std::shared_ptr<HostSearch*> self_ = std::make_shared<HostSearch*>(this); // for links that come after it
  Timer patience_; // with those that are asked, when all are
};

} // namespace parc::daemon
