// SPDX-License-Identifier: BSD-3-Clause
// The types of all control messages, for tests that do the same with each.
#pragma once

#include "control/link_messages.hpp"
#include "control/tool_messages.hpp"

namespace parc::control {

template <class... Messages> struct All {
  static void each(auto visit) { (visit.template operator()<Messages>(), ...); }
};

using Kernels =
    All<kernel::Prepare, kernel::Prepared, kernel::Start, kernel::Failed, kernel::Output, kernel::Taken,
        kernel::Input, kernel::InputTaken, kernel::Departed, kernel::Exited, kernel::Ended, kernel::Abort,
        kernel::Parted, kernel::Stopping, kernel::Started, kernel::Spawn, kernel::Signal, kernel::MpiJob,
        kernel::End, kernel::Kill, kernel::Finish, kernel::SpawnPrepared, kernel::SpawnKnown,
        kernel::SpawnStarted, kernel::SpawnFailed, kernel::SpawnExit, kernel::EndSpawned, kernel::SignalRank,
        kernel::Join, kernel::Unjoin, kernel::Joined, kernel::Formed, kernel::Go, kernel::JoinRefused,
        kernel::SignalJoined, kernel::MpiBegins, kernel::Look, kernel::Seen, kernel::Question, kernel::Answer,
        kernel::KillJob, kernel::RelayOpen, kernel::RelayOpened, kernel::RelayBytes, kernel::RelayTaken,
        kernel::RelayClose, kernel::Ping, kernel::Pong, kernel::Streams>;
using Tools = All<tool::Ping, tool::Heard, tool::Run, tool::Input, tool::Signal, tool::Kill, tool::TimedOut,
                  tool::Output, tool::InputTaken, tool::Unreached, tool::Dump, tool::DumpBegins, tool::Ranks,
                  tool::Dumped, tool::Search, tool::Reached, tool::Tried, tool::AskForKey, tool::Done>;

} // namespace parc::control
