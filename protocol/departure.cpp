// SPDX-License-Identifier: BSD-3-Clause
// Jobs, endpoints and links come and go. A departure is announced behind the last envelope of its rank, so
// that a read fails only when nothing announced or stored can match it any more.
#include "protocol/engine.hpp"

#include <algorithm>
#include <cassert>

namespace parc::protocol {
namespace {

constexpr std::uint64_t least_window = 16;    // fragments that a link gets while the pool has them
constexpr std::uint64_t share_of_window = 32; // of what no link has yet

void add_totals(Engine::Totals& all, const Link& link) {
  all.trains_in += link.trains_in;
  all.trains_out += link.trains_out;
  all.fragments_in += link.fragments_in;
  all.fragments_out += link.fragments_out;
  all.bytes_in += link.bytes_in;
  all.bytes_out += link.bytes_out;
}

} // namespace

Engine::Engine(const Settings& settings, Listener& listener) : settings_(settings), listener_(listener) {
  auto& job = jobs_[0] = std::make_unique<Job>();
  job->local = {};
  auto endpoint = std::make_unique<Endpoint>();
  kernel_ = endpoint->id = ++last_endpoint_;
  endpoint->job = job.get();
  endpoint->rank = kernel_rank;
  endpoints_.emplace(kernel_, std::move(endpoint));
}

Engine::~Engine() = default;

Job* Engine::find_job(std::uint64_t id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

Endpoint* Engine::find_endpoint(std::uint64_t id) {
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : found->second.get();
}

void Engine::add_job(std::uint64_t id, std::span<const std::int32_t> place) {
  assert(id != 0 && find_job(id) == nullptr);
  auto job = std::make_unique<Job>();
  job->id = id;
  job->place.assign(place.begin(), place.end());
  job->departed.assign(place.size(), false);
  job->how.assign(place.size(), Departure::none);
  job->local.assign(place.size(), nullptr);
  for (std::uint32_t rank = 0; rank < place.size(); ++rank) {
    if (place[rank] != here) {
      const auto index = static_cast<std::uint32_t>(place[rank]);
      job->departed[rank] = links_[index] == nullptr;
      if (!job->departed[rank]) job->links.push_back(index);
      if (job->departed[rank]) job->how[rank] = Departure::lost;
      job->any_departed = job->any_departed || job->departed[rank];
      continue;
    }
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->id = ++last_endpoint_;
    endpoint->job = job.get();
    endpoint->rank = rank;
    endpoint->ranks = static_cast<std::uint32_t>(place.size());
    job->local[rank] = endpoint.get();
    endpoints_.emplace(endpoint->id, std::move(endpoint));
  }
  std::sort(job->links.begin(), job->links.end());
  job->links.erase(std::unique(job->links.begin(), job->links.end()), job->links.end());
  jobs_.emplace(id, std::move(job));
}

std::uint64_t Engine::open(std::uint64_t id, std::uint32_t rank, std::uint64_t cookie) {
  Job* job = find_job(id);
  if (id == 0 || job == nullptr || job->dropped || rank >= job->local.size() || job->local[rank] == nullptr)
    return 0;
  job->local[rank]->cookie = cookie;
  job->local[rank]->opened = true;
  return job->local[rank]->id;
}

void Engine::drop_job(std::uint64_t id) {
  Job* job = find_job(id);
  if (job == nullptr || id == 0) return;
  job->dropped = true;
  for (std::size_t rank = 0; rank < job->local.size(); ++rank)
    if (Endpoint* endpoint = job->local[rank]) kill(endpoint->id);
  forget_if_over(*job);
}

void Engine::forget_if_over(Job& job) {
  const auto gone = [](const Endpoint* endpoint) { return endpoint == nullptr; };
  if (!job.dropped || !std::all_of(job.local.begin(), job.local.end(), gone)) return;
  // Messages that are still arriving for nobody outlive the job that counted them.
  incoming_.each([&](Incoming& message) {
    if (message.returns == nullptr || message.returns->job != &job) return;
    message.returns = nullptr;
    message.counted = false;
  });
  jobs_.erase(job.id);
}

void Engine::leave(std::uint64_t id) {
  Endpoint* endpoint = find_endpoint(id);
  if (endpoint == nullptr || endpoint->departed) return;
  std::vector<std::uint64_t> gated; // nothing can hold them back any more
  for (const Outgoing& write : endpoint->writes)
    if (write.gated) gated.push_back(write.id);
  for (const std::uint64_t write : gated) pass(write);
  depart(*endpoint);
}

void Engine::kill(std::uint64_t id) {
  Endpoint* endpoint = find_endpoint(id);
  if (endpoint == nullptr) return;
  if (!endpoint->departed) endpoint->job->how[endpoint->rank] = Departure::killed;
  endpoint->killing = true; // it must not go while its writes are taken from it
  while (!endpoint->writes.empty()) fail_write(endpoint->writes.front(), Fault::canceled);
  endpoint->killing = false;
  if (endpoint->departed)
    check_drained(*endpoint);
  else
    depart(*endpoint);
}

void Engine::depart(Endpoint& endpoint) {
  if (Departure& how = endpoint.job->how[endpoint.rank]; how == Departure::none) how = Departure::left;
  endpoint.killing = true;
  while (!endpoint.reads.empty()) {
    Reading& read = endpoint.reads.front();
    Outgoing* local = read.message != nullptr ? read.message->local : nullptr;
    fail_read(read, Fault::canceled);
    if (local != nullptr) fail_write(*local, Fault::peer);
  }
  while (!endpoint.arrivals.empty() || !endpoint.claimed.empty()) {
    Incoming& message = endpoint.arrivals.empty() ? endpoint.claimed.front() : endpoint.arrivals.front();
    tell_unread(*endpoint.job, endpoint.rank, message);
    if (message.local != nullptr)
      fail_write(*message.local, Fault::peer);
    else
      discard(message);
  }
  endpoint.departed = true;
  settle_departed(*endpoint.job, endpoint.rank);
  for (const std::uint32_t index : endpoint.job->links) {
    if (links_[index] == nullptr) continue;
    Stream& stream = stream_of(endpoint, *links_[index]);
    stream.departs_after = stream.link->reading;
    owe_departure(stream);
  }
  endpoint.killing = false;
  check_drained(endpoint);
}

// One that was killed could not read it.
void Engine::tell_unread(const Job& job, std::uint32_t rank, const Incoming& message) {
  if (job.how[rank] != Departure::left) return;
  listener_.unread(job.id, rank,
                   {.fault = Fault::none,
                    .source = static_cast<std::int32_t>(message.source),
                    .space = message.space,
                    .tag = message.tag,
                    .data = message.data,
                    .total = message.total});
}

// Local ranks learn that nothing comes from, or goes to, `rank` any more.
void Engine::settle_departed(Job& job, std::uint32_t rank) {
  job.departed[rank] = job.any_departed = true;
  for (std::size_t other = 0; other < job.local.size(); ++other) {
    Endpoint* endpoint = job.local[other];
    if (endpoint == nullptr || endpoint->killing) continue;
    endpoint->killing = true;
    fail_hopeless(*endpoint, rank);
    for (auto it = endpoint->writes.begin(); it != endpoint->writes.end();) {
      Outgoing& write = *it++;
      if (write.destination == rank) fail_write(write, Fault::peer);
    }
    endpoint->killing = false;
    check_drained(*endpoint); // one that had left may have waited for these writes
  }
}

// Reads and probes that wait for `departed`, or for anybody when nobody is left.
void Engine::fail_hopeless(Endpoint& endpoint, std::uint32_t departed) {
  for (auto it = endpoint.reads.begin(); it != endpoint.reads.end();) {
    Reading& read = *it++;
    const bool waits = read.message == nullptr && read.hook::Hook<hook::Queue>::is_linked();
    if (waits && (read.source < 0 || read.source == departed) && hopeless(read)) fail_read(read, Fault::peer);
  }
}

void Engine::lose_rank(std::uint64_t id, std::uint32_t rank) {
  Job* job = find_job(id);
  if (id == 0 || job == nullptr || rank >= job->place.size() || job->departed[rank]) return;
  job->how[rank] = Departure::lost;
  const auto returns = job->returns.find(rank); // none: nothing of it ever came
  incoming_.each([&](Incoming& message) {
    if (returns == job->returns.end() || message.returns != &returns->second) return;
    if (message.whole && message.arrived == message.promised) return; // it is all here and may be read
    if (message.read != nullptr) fail_read(*message.read, Fault::peer);
    discard(message);
  });
  settle_departed(*job, rank);
}

// An endpoint goes when it has left, nothing of it is under way and everybody has been told.
void Engine::check_drained(Endpoint& endpoint) {
  if (!endpoint.departed || endpoint.killing || !endpoint.writes.empty()) return;
  for (const auto& [index, stream] : endpoint.streams)
    if (stream->owed() || stream->fresh != 0) return;
  forget_endpoint(endpoint);
}

void Engine::forget_endpoint(Endpoint& endpoint) {
  const std::uint64_t cookie = endpoint.cookie;
  const bool opened = endpoint.opened;
  endpoint.job->local[endpoint.rank] = nullptr;
  endpoints_.erase(endpoint.id);
  if (opened) listener_.drained(cookie);
}

Stream& Engine::stream_of(Endpoint& from, Link& link) {
  std::unique_ptr<Stream>& stream = from.streams[link.index];
  if (stream == nullptr) stream = std::make_unique<Stream>(&from, &link);
  return *stream;
}

std::uint32_t Engine::add_link(const LinkSettings& settings) {
  const auto index = static_cast<std::uint32_t>(links_.size());
  Link& link = *links_.emplace_back(std::make_unique<Link>());
  link.index = index;
  link.open = true;
  link.fragment = settings.fragment;
  link.self = settings.self;
  link.peer = settings.peer;
  link.write_table = settings.write_table;
  link.train_bytes = max_entries * link.fragment;
  const std::uint64_t room =
      settings_.pool > pool_reserved_ ? (settings_.pool - pool_reserved_) / link.fragment : 0;
  link.reserved =
      std::min({settings_.link_window / link.fragment, std::max(room / share_of_window, least_window), room});
  pool_reserved_ += link.reserved * link.fragment;
  open_links_.push_back(&link);
  Job& kernels = *jobs_[0];
  kernels.place.push_back(static_cast<std::int32_t>(index));
  kernels.departed.push_back(false);
  find_endpoint(kernel_)->ranks = index + 1;
  attach(index);
  return index;
}

void Engine::break_link(std::uint32_t index) {
  if (links_[index] == nullptr) return;
  Link& link = *links_[index];
  link.open = false;
  for (auto& [id, job] : jobs_)
    for (std::size_t rank = 0; id != 0 && rank < job->place.size(); ++rank)
      if (job->place[rank] == static_cast<std::int32_t>(index) && !job->departed[rank])
        job->how[rank] = Departure::lost;
  outgoing_.each([&](Outgoing& message) {
    if (message.link != &link) return;
    if (message.abandoned)
      outgoing_.drop(message);
    else
      finish_write(message, Fault::peer);
  });
  incoming_.each([&](Incoming& message) {
    if (message.link != &link) return;
    if (message.read == nullptr && message.to != nullptr && message.whole &&
        message.arrived == message.promised) {
      message.link = nullptr; // it is all here and may still be read
      message.returns = nullptr;
      for (const Incoming::Chunk& chunk : message.chunks) pool_reserved_ += chunk.length;
      return;
    }
    if (message.read != nullptr) fail_read(*message.read, Fault::peer);
    drop_incoming(message);
  });
  link.answers.clear();
  link.departing.clear();
  for (auto& [id, endpoint] : endpoints_) endpoint->streams.erase(index);
  for (auto& [id, job] : jobs_)
    for (std::uint32_t rank = 0; rank < job->place.size(); ++rank)
      if (job->place[rank] == static_cast<std::int32_t>(index) && !job->departed[rank]) {
        if (id == 0)
          lose_kernel(index);
        else
          settle_departed(*job, rank);
      }
  pool_reserved_ -= link.reserved * link.fragment;
  for (Due& due : link.carrier.due)
    if (due.chunk != nullptr) pool_used_ -= due.length;
  add_totals(totals_, link);
  std::erase(open_links_, &link);
  links_[index].reset();
  std::vector<Endpoint*> leaving;
  for (auto& [id, endpoint] : endpoints_)
    if (endpoint->departed) leaving.push_back(endpoint.get());
  for (Endpoint* endpoint : leaving) check_drained(*endpoint);
  std::vector<Job*> jobs;
  for (auto& [id, job] : jobs_) jobs.push_back(job.get());
  for (Job* job : jobs) forget_if_over(*job);
}

// The kernel at the other end is gone: reads of ours that name it fail.
void Engine::lose_kernel(std::uint32_t index) {
  jobs_[0]->departed[index] = true;
  fail_hopeless(*find_endpoint(kernel_), index);
  jobs_[0]->returns.erase(index);
  auto& pairs = find_endpoint(kernel_)->pairs;
  if (const auto pair = pairs.find(index); pair != pairs.end() && pair->second.unexpected.empty())
    pairs.erase(pair);
}

const Link& Engine::link(std::uint32_t index) const {
  static const Link broken;
  return links_[index] != nullptr ? *links_[index] : broken;
}

Engine::Totals Engine::totals() const {
  Totals all = totals_;
  for (const Link* link : open_links_) add_totals(all, *link);
  return all;
}

} // namespace parc::protocol
