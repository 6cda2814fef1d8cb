// SPDX-License-Identifier: BSD-3-Clause
// The traces of a job's ranks on their way into one file (parc run --trace, parc mpi --trace) in the Trace
// Event format: what a rank calculated and what it waited for as slices of its threads, messages as spans of
// their own with an arrow from the write to its read. Times of ranks on different hosts are brought together
// by the hosts' CLOCK_REALTIME.
//
// Invariant: whatever begins in the file ends in it. What a rank had not finished ends with it, marked
// "unfinished", and with the job where the rank could not say when it ended.
#pragma once

#include "system/error.hpp"
#include "system/observe/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace parc::tools {

inline constexpr int trace_schema = 1; // of our own words in the file

// What one rank said.
struct RankTrace {
  std::vector<trace::Record> records; // all but sites
  std::map<std::uint64_t, std::string> sites;
  std::map<std::uint64_t, std::string> objects; // by where they are loaded: paths
  std::string host;
  std::uint64_t lost = 0;
  std::string rest; // the beginning of a record
  std::map<std::uint64_t, std::size_t>
      under_way;                               // messages whose record may yet be replaced: where it stands
  std::map<std::int32_t, std::uint64_t> peers; // which of all programs they are; -1: this one
};

class TraceCollector {
public:
  // A rank's pipe, in pieces as they come.
  void add(std::uint64_t rank, std::string_view bytes);
  [[nodiscard]] const std::map<std::uint64_t, RankTrace>& ranks() const { return ranks_; }

private:
  std::map<std::uint64_t, RankTrace> ranks_;
};

// What MPI's ranks have written into FILE.ranks, here or on other hosts; says on stderr which are missing.
[[nodiscard]] Result<std::map<std::uint64_t, RankTrace>> gather_ranks(const std::string& file);
void remove_ranks(const std::string& file); // that directory, and what they have written there

// Makes FILE of that, and removes it. Nothing happens where there is no such directory. `ended`: as for
// write_trace.
[[nodiscard]] Result<void> gather_trace(const std::vector<std::string>& command, const std::string& file,
                                        std::uint64_t ended = 0);

// Brings what ranks have written into this directory on other hosts here, where it is not the same one.
[[nodiscard]] Result<void> fetch_traces(const std::filesystem::path& directory);

// `ended`: when the job did, in ns of CLOCK_REALTIME; 0: with the last that was heard of it.
[[nodiscard]] Result<void> write_trace(const std::map<std::uint64_t, RankTrace>& ranks,
                                       const std::vector<std::string>& command, const std::string& file,
                                       std::uint64_t ended = 0);

[[nodiscard]] std::uint64_t real_time(); // now, as `ended` says it

} // namespace parc::tools
