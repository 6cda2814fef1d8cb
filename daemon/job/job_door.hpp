// SPDX-License-Identifier: BSD-3-Clause
// Who asked for a job and hears of it: a parc run (ToolDoor), or a program that has spawned it (SpawnDoor).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace parc::daemon {

class JobDoor {
public:
  virtual ~JobDoor() = default;
  virtual void send(const nlohmann::json& message) = 0;
  virtual void send_output(std::uint32_t rank, std::uint64_t stream, std::string_view bytes) = 0;
  [[nodiscard]] virtual bool open() const = 0;
};

} // namespace parc::daemon
