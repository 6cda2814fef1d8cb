// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/job.hpp"

#include <algorithm>
#include <functional>

namespace parc::pmix {

std::vector<std::string> Job::hosts() const {
  std::vector<std::string> all;
  for (const std::string& host : host_of_rank)
    if (std::ranges::find(all, host) == all.end()) all.push_back(host);
  return all;
}

std::vector<std::uint32_t> Job::server_of_rank() const {
  const std::vector<std::string> all = hosts();
  std::vector<std::uint32_t> places;
  for (const std::string& host : host_of_rank)
    places.push_back(static_cast<std::uint32_t>(std::ranges::find(all, host) - all.begin()));
  return places;
}

Job::App Job::app_of(std::uint32_t rank) const {
  const auto first = std::ranges::upper_bound(apps, rank) - 1;
  return {static_cast<std::uint32_t>(first - apps.begin()), rank - *first};
}

void write(Writer& writer, const Job& job) {
  writer.text(job.name).texts(job.hosts()).texts(job.servers);
  writer.number(job.apps.size());
  for (const std::uint32_t first : job.apps) writer.number(first);
  const auto places = job.server_of_rank();
  writer.number(places.size());
  for (const std::uint32_t place : places) writer.number(place);
}

bool has_apps(const std::vector<std::uint32_t>& apps, std::size_t ranks) {
  return !apps.empty() && apps.front() == 0 && apps.back() < ranks &&
         std::ranges::adjacent_find(apps, std::greater_equal<>()) == apps.end();
}

Job read_job(Reader& reader) {
  Job job{.name = reader.text(), .host_of_rank = {}, .servers = {}};
  const std::vector<std::string> hosts = reader.texts();
  job.servers = reader.texts();
  job.apps.resize(reader.count());
  for (std::uint32_t& first : job.apps) first = static_cast<std::uint32_t>(reader.number());
  job.host_of_rank.resize(reader.count());
  for (std::string& host : job.host_of_rank)
    if (const std::uint64_t place = reader.number(); place < hosts.size()) host = hosts[place];
  const auto is_host = [](const std::string& name) {
    return !name.empty() && name.find_first_of(",;") == name.npos; // libpmix takes them in one text
  };
  if (job.name.empty() || job.host_of_rank.empty() || !std::ranges::all_of(job.host_of_rank, is_host) ||
      job.servers.size() != job.hosts().size() || !has_apps(job.apps, job.host_of_rank.size()))
    reader.fail();
  return job;
}

} // namespace parc::pmix
