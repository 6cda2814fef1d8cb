// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawned_programs.hpp"

#include "daemon/link/peers.hpp"
#include "jobs/placement.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <string>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t most_spawned_at_once = 16; // calls
constexpr std::size_t most_exits_awaited = 64;   // operations for one process
static_assert(SpawnedPrograms::most_text >= max_ranks * sizeof(std::int32_t));

Error gone() {
  return {ESRCH, "the program that spawns it has gone"};
}

} // namespace

// One call of parc_spawn, as long as it blocks.
struct SpawnedPrograms::Call {
  std::uint64_t operation;
  std::uint64_t address, length; // of the program's memory for the answer
  std::uint64_t job = 0;
  std::vector<EndpointAddress> ranks = {};
  std::map<std::uint64_t, std::int32_t> links = {}; // by the identity of their kernels
  std::size_t unreached = 0;
  std::optional<Error> failure = {};
  std::vector<std::int32_t> rows = {};
  SpawnListener::Ready ready = {};
};

std::optional<Completion> SpawnedPrograms::spawn(const shm::Request& request, const protocol::Pieces& memory,
                                                 pid_t process) {
  const auto [bytes, count] = request.spawned;
  if (bytes > memory.size() || count > request.length / sizeof(std::int32_t)) return Completion{PARC_EINVAL};
  std::string texts(bytes, '\0');
  memory.copy_out(0, reinterpret_cast<std::byte*>(texts.data()), texts.size());
  auto wish = parse_spawn(texts, count);
  if (!wish) return Completion{PARC_EINVAL};
  if (calling_ == most_spawned_at_once) return Completion{PARC_EAGAIN};
  wish->parent = to_text(needs_.peers.describe({protocol::here, needs_.member.endpoint}));
  ++calling_;
  const auto call = std::make_shared<Call>(
      Call{.operation = request.id, .address = request.address, .length = request.length});
  needs_.loop.after_step([&events = needs_.events, member = needs_.member, process, wish = std::move(*wish),
                          listener = listen(call)] { events.spawn(member, process, wish, listener); });
  return {};
}

// What comes when this session is gone has nobody to hear it.
SpawnListener SpawnedPrograms::listen(const std::shared_ptr<Call>& call) {
  const std::weak_ptr<SpawnedPrograms*> weak = self_;
  return {
      .prepared =
          [weak, call](std::uint64_t job, std::vector<EndpointAddress> ranks, SpawnListener::Ready ready) {
            const auto self = weak.lock();
            if (self == nullptr || !(*self)->needs_.has_table()) return ready(gone());
            call->job = job;
            call->ranks = std::move(ranks);
            call->ready = std::move(ready);
            (*self)->reach(call);
          },
      .started =
          [weak, call](const Result<void>& how) {
            if (const auto self = weak.lock()) (*self)->started(*call, how);
          },
      .exited =
          [weak, call](std::uint32_t rank, std::uint32_t status) {
            const auto self = weak.lock();
            if (self != nullptr && rank < call->rows.size()) (*self)->exited(call->rows[rank], status);
          }};
}

void SpawnedPrograms::reach(const std::shared_ptr<Call>& call) {
  std::map<std::uint64_t, EndpointAddress> kernels;
  for (const EndpointAddress& rank : call->ranks) kernels.emplace(rank.identity, rank);
  call->unreached = kernels.size();
  for (const auto& [identity, address] : kernels)
    needs_.peers.connect(address,
                         [weak = std::weak_ptr(self_), call, identity = identity](Result<std::int32_t> link) {
                           const auto self = weak.lock();
                           if (link)
                             call->links[identity] = link.value();
                           else
                             call->failure = std::move(link).error();
                           if (--call->unreached != 0) return;
                           if (self == nullptr || !(*self)->needs_.has_table())
                             call->failure = gone();
                           else if (!call->failure)
                             (*self)->add_rows(*call);
                           call->ready(call->failure ? Result<void>(*call->failure) : success());
                         });
}

void SpawnedPrograms::add_rows(Call& call) {
  // Those that have ended and whose rows were given up: a program that spawns for ever would be left with
  // all.
  std::erase_if(processes_, [this](const auto& each) {
    const Process& process = each.second;
    return process.exit && process.waiting.empty() &&
           !needs_.engine.address(needs_.member.endpoint, each.first);
  });
  for (std::uint32_t rank = 0; rank < call.ranks.size(); ++rank) {
    const std::int32_t link = call.links.at(call.ranks[rank].identity);
    if (needs_.peers.link_to(call.ranks[rank].identity) != link) {
      call.failure = Error{ECONNRESET, "the link to a host of what it spawns broke meanwhile"};
      return;
    }
    const std::int32_t row = needs_.engine.add_row(
        needs_.member.endpoint, {link == this_host ? protocol::here : link, call.ranks[rank].number});
    if (row == protocol::Engine::no_room_for_row) {
      call.failure =
          Error{ENOSPC, "this program has 65,536 peers that are not of its job, and can have no more"};
      return;
    }
    if (row < 0) { // on this host: its part has given it up meanwhile
      call.failure = Error{ECANCELED, "the job of what it spawns has ended"};
      return;
    }
    needs_.engine.acquaint(needs_.member.endpoint, row);
    call.rows.push_back(row);
    processes_.insert_or_assign(row, Process{.job = call.job, .rank = rank, .exit = {}, .waiting = {}});
  }
}

void SpawnedPrograms::started(const Call& call, const Result<void>& how) {
  --calling_;
  events_.ended(call.operation, needs_.has_table() ? answer(call, how) : Completion{PARC_ECANCELED});
}

// Memory that the program has taken away meanwhile is its loss.
Completion SpawnedPrograms::answer(const Call& call, const Result<void>& how) const {
  protocol::Pieces memory;
  Extents::Used used;
  if (!needs_.memory.resolve(call.address, call.length, memory, used)) return {PARC_EINVAL};
  const std::string text = how ? std::string() : how.error().text;
  const auto* const bytes = reinterpret_cast<const std::byte*>(
      how ? static_cast<const void*>(call.rows.data()) : static_cast<const void*>(text.data()));
  const std::uint64_t length =
      std::min<std::uint64_t>(how ? call.rows.size() * sizeof(std::int32_t) : text.size(), call.length);
  memory.copy_in(0, bytes, length);
  return {PARC_OK, {.source = how ? *std::ranges::max_element(call.rows) : -1, .total = length}};
}

Completion SpawnedPrograms::signal(std::int32_t row, std::uint64_t number) const {
  if (number >= NSIG) return {PARC_EINVAL};
  const auto send = [this, number](std::uint64_t job, std::uint32_t rank) {
    return needs_.events.signal(job, rank, static_cast<int>(number));
  };
  if (const auto known = processes_.find(row); known != processes_.end()) {
    const Process& process = known->second;
    return {!process.exit && send(process.job, process.rank) ? PARC_OK : PARC_EPEER};
  }
  const bool of_job = row >= 0 && row < needs_.member.size;
  return {of_job && send(needs_.member.job, static_cast<std::uint32_t>(row)) ? PARC_OK : PARC_EINVAL};
}

std::optional<Completion> SpawnedPrograms::await_exit(std::uint64_t operation, std::int32_t row) {
  const auto known = processes_.find(row);
  if (known == processes_.end()) return Completion{PARC_EINVAL};
  Process& process = known->second;
  if (process.exit) return end_of(row, *process.exit);
  if (process.waiting.size() == most_exits_awaited) return Completion{PARC_EAGAIN};
  process.waiting.push_back(operation);
  return {};
}

void SpawnedPrograms::exited(std::int32_t row, std::uint32_t status) {
  Process& process = processes_.at(row);
  process.exit = status;
  for (const std::uint64_t operation : std::exchange(process.waiting, {}))
    events_.ended(operation, end_of(row, status));
}

Completion SpawnedPrograms::end_of(std::int32_t row, std::uint32_t status) {
  return {PARC_OK, {.source = row, .data = status, .flags = protocol::MessageFlags::with_data}};
}

bool SpawnedPrograms::cancel(std::uint64_t operation) {
  for (auto& [row, process] : processes_) {
    if (std::erase(process.waiting, operation) == 0) continue;
    events_.ended(operation, {PARC_ECANCELED});
    return true;
  }
  return false;
}

void SpawnedPrograms::cancel_all() {
  for (auto& [row, process] : processes_)
    for (const std::uint64_t operation : std::exchange(process.waiting, {}))
      events_.ended(operation, {PARC_ECANCELED});
}

} // namespace parc::daemon
