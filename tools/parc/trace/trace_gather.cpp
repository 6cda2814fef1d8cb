// SPDX-License-Identifier: BSD-3-Clause
// The files of MPI's ranks, WORLD.RANK.RANKS in one directory, made into one trace. Peers are numbered by
// each rank for itself: what their addresses say makes ranks of them.
#include "tools/parc/trace/trace.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <tuple>

namespace parc::tools {
namespace {

namespace fs = std::filesystem;

struct RankFile {
  fs::path path;
  std::string world;
  std::uint64_t rank = 0, ranks = 0;
  RankTrace said;

  [[nodiscard]] std::uint64_t opened() const {
    for (const trace::Record& record : said.records)
      if (record.kind == trace::Kind::opened) return record.begin + record.end;
    return UINT64_MAX;
  }
};

// Takes the number behind the last dot off a name.
bool take_number(std::string& name, std::uint64_t& number) {
  const auto dot = name.rfind('.');
  if (dot == name.npos) return false;
  const char* const end = name.data() + name.size();
  const auto [rest, failure] = std::from_chars(name.data() + dot + 1, end, number);
  name.resize(dot);
  return failure == std::errc() && rest == end;
}

std::vector<RankFile> read_files(const fs::path& directory, std::error_code& failure) {
  std::vector<RankFile> files;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    RankFile file;
    file.path = entry.path();
    file.world = entry.path().filename();
    if (!take_number(file.world, file.ranks) || !take_number(file.world, file.rank)) continue;
    std::ifstream in(file.path, std::ios::binary);
    TraceCollector collector;
    collector.add(0, std::string(std::istreambuf_iterator<char>(in), {}));
    file.said = collector.ranks().at(0);
    files.push_back(std::move(file));
  }
  return files;
}

bool is_complete(const std::vector<RankFile>& files) {
  std::map<std::string, std::uint64_t> missing;
  for (const RankFile& file : files) missing.try_emplace(file.world, file.ranks).first->second -= 1;
  return !files.empty() && std::ranges::all_of(missing, [](const auto& world) { return world.second == 0; });
}

// What was spawned comes behind what was there before it.
void number_worlds(std::vector<RankFile>& files, const std::string& why) {
  std::map<std::string, std::uint64_t> opened;
  for (const RankFile& file : files) {
    const auto [world, first] = opened.emplace(file.world, file.opened());
    if (!first) world->second = std::min(world->second, file.opened());
  }
  std::ranges::sort(files, {}, [&](const RankFile& file) {
    return std::tuple(opened.at(file.world), file.world, file.rank);
  });
  std::uint64_t base = 0;
  for (auto first = files.begin(); first != files.end();) {
    const std::string world = first->world;
    const std::uint64_t ranks = first->ranks;
    const auto end =
        std::find_if(first, files.end(), [&](const RankFile& file) { return file.world != world; });
    if (static_cast<std::uint64_t>(end - first) < ranks)
      std::cerr << fmt::format("parc: {} of {} ranks have left no trace in {}, here or on their hosts{}\n",
                               ranks - static_cast<std::uint64_t>(end - first), ranks,
                               first->path.parent_path().string(),
                               why.empty() ? "; what was killed leaves little" : ": " + why);
    for (; first != end; ++first) first->rank += base;
    base += ranks;
  }
}

void name_peers(std::vector<RankFile>& files) {
  std::map<std::uint64_t, std::int32_t> rank_of;
  for (const RankFile& file : files)
    if (const auto own = file.said.peers.find(-1); own != file.said.peers.end())
      rank_of[own->second] = static_cast<std::int32_t>(file.rank);
  for (RankFile& file : files)
    for (trace::Record& record : file.said.records) {
      if (record.kind != trace::Kind::message) continue;
      const auto named = file.said.peers.find(record.peer == 0 ? -1 : record.peer); // its group has it alone
      const auto known = named == file.said.peers.end() ? rank_of.end() : rank_of.find(named->second);
      record.peer = known == rank_of.end() ? -1 : known->second;
    }
}

} // namespace

Result<std::map<std::uint64_t, RankTrace>> gather_ranks(const std::string& file) {
  const fs::path directory = file + trace::directory_suffix;
  std::error_code failure;
  std::vector<RankFile> files = read_files(directory, failure);
  std::string why; // some are missing
  if (!failure && !is_complete(files)) {
    if (const auto fetched = fetch_traces(directory); !fetched) why = fetched.error().text;
    files = read_files(directory, failure);
  }
  if (failure) return error(failure.value(), "cannot read {}: {}", directory.string(), failure.message());
  if (files.empty()) {
    fs::remove(directory, failure); // where there is nothing in it
    return error(ENOENT,
                 "no rank has written a trace into {}: nothing in this job is an MPI program over parc",
                 directory.string());
  }
  number_worlds(files, why);
  name_peers(files);
  std::map<std::uint64_t, RankTrace> ranks;
  for (RankFile& each : files) ranks[each.rank] = std::move(each.said);
  return ranks;
}

void remove_ranks(const std::string& file) {
  const fs::path directory = file + trace::directory_suffix;
  std::error_code failure;
  for (const RankFile& each : read_files(directory, failure)) fs::remove(each.path, failure);
  fs::remove(directory, failure);
}

Result<void> gather_trace(const std::vector<std::string>& command, const std::string& file,
                          std::uint64_t ended) {
  std::error_code failure;
  if (!fs::is_directory(file + trace::directory_suffix, failure)) return success();
  PARC_TRY(ranks, gather_ranks(file));
  PARC_TRY(write_trace(ranks, command, file, ended));
  remove_ranks(file);
  return success();
}

} // namespace parc::tools
