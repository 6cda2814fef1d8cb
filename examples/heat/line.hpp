// SPDX-License-Identifier: BSD-3-Clause
// Ranks in a line over plain TCP sockets, as a program without a message system would connect them: what the
// ping-pong reference and the measurement of the exchange alone stand on.
#pragma once

#include "examples/heat/strip.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <span>
#include <string>
#include <vector>

namespace parc::heat {

struct Place {
  std::string host;
  std::string port;
};
// "a:7400,b:7400": where each rank can be reached.
[[nodiscard]] Result<std::vector<Place>> parse_places(const std::string& text);

class Line {
public:
  // Blocks until the neighbours of `rank` are connected, at most 20 s. `buffer` is the size of the sockets'
  // send and receive buffers; 0 leaves them to the system.
  [[nodiscard]] static Result<Line> connect(std::span<const Place> places, int rank, int buffer);

  [[nodiscard]] int socket(Side side) const { return (side == Side::Left ? left_ : right_).get(); }
  [[nodiscard]] bool has(Side side) const { return socket(side) >= 0; }

  // Blocks until every rank has called it.
  [[nodiscard]] Result<void> barrier() const;

private:
  Fd left_, right_;
};

} // namespace parc::heat
