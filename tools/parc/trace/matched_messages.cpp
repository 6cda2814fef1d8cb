// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/trace/matched_messages.hpp"

#include "include/parc/parc.h"

#include <algorithm>
#include <tuple>

namespace parc::tools {

using trace::Record;

bool is_write(const Record& message) {
  return (message.flags & trace::flag_write) != 0;
}

bool is_one_sided(const Record& message) {
  return (message.flags & trace::flag_one_sided) != 0;
}

bool came(const Record& message) {
  return message.error == PARC_OK || message.error == PARC_ETRUNCATE;
}

std::vector<MatchedPair> matched_messages(const std::map<std::uint64_t, RankTrace>& ranks) {
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::int32_t>; // from, to, context, tag
  struct Ends {
    std::vector<const Record*> writes, reads;
  };
  std::map<Key, Ends> pairs;
  for (const auto& [rank, said] : ranks)
    for (const Record& record : said.records) {
      if (record.kind != trace::Kind::message || !came(record) || record.peer < 0 || is_one_sided(record))
        continue;
      const auto peer = static_cast<std::uint64_t>(record.peer);
      if (is_write(record))
        pairs[{rank, peer, record.context, record.tag}].writes.push_back(&record);
      else if (record.first != 0 && record.end != 0)
        pairs[{peer, rank, record.context, record.tag}].reads.push_back(&record);
    }
  std::vector<MatchedPair> matched;
  for (auto& [key, ends] : pairs) {
    std::ranges::stable_sort(ends.writes, {}, &Record::begin);
    std::ranges::stable_sort(ends.reads, {}, &Record::first);
    for (std::size_t i = 0; i < std::min(ends.writes.size(), ends.reads.size()); ++i)
      matched.push_back({std::get<0>(key), std::get<1>(key), ends.writes[i], ends.reads[i]});
  }
  return matched;
}

} // namespace parc::tools
