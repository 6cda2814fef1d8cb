// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/local_jobs.hpp"

#include "daemon/job/jobs.hpp"
#include "daemon/join/joins.hpp"
#include "daemon/link/link_secrets.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/tool/known_hosts.hpp"
#include "daemon/tool/reach_hosts.hpp"

#include <algorithm>
#include <iterator>

namespace parc::daemon {

// A kernel that may ask is one of this user's: it has the key.
LocalJobs::LocalJobs(Loop& loop, Post& post, Peers& peers, Jobs& jobs, Joins& joins)
    : peers_(peers), jobs_(jobs), joins_(joins) {
  post.on<kernel::Look>([this, &post](std::int32_t from, const kernel::Look& message) {
    post.send(from, kernel::Seen{.token = message.token, .place = message.place, .ranks = look(message.job)});
  });
  post.on<kernel::Question>([this, &loop, &post](std::int32_t from, const kernel::Question& message) {
    if (message.question.reach)
      return reach_hosts(loop, post, peers_, from, *message.question.reach,
                         {.token = message.token, .place = message.place});
    post.send(from, kernel::Answer{.token = message.token,
                                   .place = message.place,
                                   .answer = answer(from, message.question)});
  });
}

std::vector<std::uint64_t> LocalJobs::known() const {
  std::vector<std::uint64_t> all = jobs_.known();
  std::ranges::copy(joins_.jobs().numbers(), std::back_inserter(all));
  return all;
}

std::vector<std::pair<std::string, std::int32_t>> LocalJobs::hosts_of(std::uint64_t job) const {
  auto hosts = jobs_.hosts_of(job);
  const bool ours = jobs_.part(job) != nullptr || jobs_.origin(job) != nullptr;
  return ours ? hosts : joins_.hosts_of(job);
}

std::vector<RankState> LocalJobs::look(std::uint64_t job) const {
  const JobPart* const at = jobs_.part(job);
  return at != nullptr ? at->look() : joins_.jobs().look(job, peers_.self().name);
}

control::HostAnswer LocalJobs::answer(std::int32_t from, const control::HostQuestion& question) {
  control::HostAnswer said{.version = PARC_VERSION,
                           .keys = {fingerprint(peers_.keys().own)},
                           .jobs = jobs_.list(),
                           .waiting = joins_.waiting()};
  if (peers_.keys().other) said.keys.push_back(fingerprint(*peers_.keys().other));
  std::ranges::copy(joins_.jobs().list(), std::back_inserter(said.jobs));
  if (said.jobs.size() > said.most_jobs) said.jobs.resize(said.most_jobs);
  if (said.waiting.size() > said.most_jobs) said.waiting.resize(said.most_jobs);
  for (control::JobRow& job : said.jobs)
    if (job.program.size() > job.longest_program) job.program.resize(job.longest_program);
  if (question.hosts) learn_hosts(peers_, from, *question.hosts);
  if (question.signal) said.killed = kill(question.job.value_or(0), *question.signal);
  return said;
}

// Each kernel does it for its own of a job that programs have joined.
bool LocalJobs::kill(std::uint64_t job, std::uint32_t signal) {
  return jobs_.kill(job, signal) || joins_.signal(job, signal);
}

} // namespace parc::daemon
