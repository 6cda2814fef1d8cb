// SPDX-License-Identifier: BSD-3-Clause
// Who asked for a job and hears of it: a parc run (ToolConnection), or a program that has spawned it
// (SpawnClient).
#pragma once

#include "control/tool_messages.hpp"

#include <cstdint>
#include <string>

namespace parc::daemon {

namespace tool = control::tool;

class JobClient {
public:
  virtual ~JobClient() = default;
  virtual void send(const tool::Unreached& message) = 0;
  virtual void send(const tool::InputTaken& message) = 0;
  virtual void send(const tool::Done& message) = 0; // the last
  // Its bytes are credited (JobOrigin::credit) when they have been taken.
  virtual void send_output(std::uint32_t rank, std::uint32_t stream, std::string bytes) = 0;
  [[nodiscard]] virtual bool open() const = 0;
};

} // namespace parc::daemon
