// SPDX-License-Identifier: BSD-3-Clause
// Which write of a job's traces each read belongs to: messages of one pair, context and tag are matched in
// the order in which they were written, and begin in that order. Pure.
#pragma once

#include "tools/parc/trace/trace.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace parc::tools {

[[nodiscard]] bool is_write(const trace::Record& message); // or a put
[[nodiscard]] bool is_one_sided(const trace::Record& message);
// It came, whole or more than its buffer had room for.
[[nodiscard]] bool came(const trace::Record& message);

struct MatchedPair {
  std::uint64_t from, to; // ranks
  const trace::Record *write, *read;
};
// Nothing of one-sided operations, nor of what has failed or has no rank at its other end. Those that belong
// to none are left out.
[[nodiscard]] std::vector<MatchedPair> matched_messages(const std::map<std::uint64_t, RankTrace>& ranks);

} // namespace parc::tools
