// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/job.hpp"

#include <algorithm>

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

void write(Writer& writer, const Job& job) {
  writer.text(job.name).texts(job.hosts()).texts(job.servers);
  const auto places = job.server_of_rank();
  writer.number(places.size());
  for (const std::uint32_t place : places) writer.number(place);
}

Job read_job(Reader& reader) {
  Job job{.name = reader.text(), .host_of_rank = {}, .servers = {}};
  const std::vector<std::string> hosts = reader.texts();
  job.servers = reader.texts();
  job.host_of_rank.resize(reader.count());
  for (std::string& host : job.host_of_rank)
    if (const std::uint64_t place = reader.number(); place < hosts.size()) host = hosts[place];
  const auto is_host = [](const std::string& name) {
    return !name.empty() && name.find_first_of(",;") == name.npos; // libpmix takes them in one text
  };
  if (job.name.empty() || job.host_of_rank.empty() || !std::ranges::all_of(job.host_of_rank, is_host) ||
      job.servers.size() != job.hosts().size())
    reader.fail();
  return job;
}

} // namespace parc::pmix
