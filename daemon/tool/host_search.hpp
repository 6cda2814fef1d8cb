// SPDX-License-Identifier: BSD-3-Clause
// A question of a tool to several hosts (parc up, hosts, doctor, ps and kill): the kernel of the tool
// connects to each, asks its kernel, and hands on what it says, or why it says nothing, as that is known.
// Where the tool said where hosts are, every kernel that this one is linked to hears of them before it ends;
// then, where it is asked for, those of few hosts say which of the others they reach.
#pragma once

#include "daemon/link/peers.hpp"
#include "daemon/tool/inquiry.hpp"
#include "daemon/tool/tool_connection.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace parc::daemon {

class HostSearch {
public:
  // `over` is called once, last of all, unless this goes first.
  HostSearch(Loop& loop, Post& post, Peers& peers, std::uint64_t token, ToolConnection& connection,
             std::function<void()> over);

  void ask(const tool::Search& search);
  void answered(std::int32_t from, const kernel::Answer& message);

private:
  void connect(std::size_t place);
  void connected(std::size_t place, const Result<std::int32_t>& link);
  void relays(Inquiry::Host& host, std::int32_t link);
  void failed(Inquiry::Host& host, const std::string& why);
  void all_over();
  void tell_where();
  void check_pairs();

  Peers& peers_;
  ToolConnection& connection_;
  std::function<void()> over_;
  control::HostQuestion question_;
  bool pairs_ = false;           // are asked for
  bool all_known_ = false;       // none was named
  std::set<std::int32_t> asked_; // links, where all are
  bool learned_ = false;         // where some of them are
  struct OtherWay {
    HostAddress direct, through_ssh;
    std::string why_not_direct = {}; // empty: that is to be seen
  };
  std::map<std::string, OtherWay> other_ways_;                   // by host
  enum class Stage : std::uint8_t { asking, telling, checking }; // the question, where hosts are, their pairs
  Stage stage_ = Stage::asking;
  std::shared_ptr<HostSearch*> self_ = std::make_shared<HostSearch*>(this); // for links that come after it
  Inquiry inquiry_;
};

} // namespace parc::daemon
