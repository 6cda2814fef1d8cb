// SPDX-License-Identifier: BSD-3-Clause
// Processes that a program spawns: they become rows of its table before the first of them runs, and it may
// ask when they end.
#include "daemon/link/peers.hpp"
#include "daemon/program/session.hpp"
#include "include/parc/parc.h"
#include "jobs/placement.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t most_spawned_at_once = 16;                  // calls
constexpr std::uint64_t most_spawn_text = std::uint64_t{1} << 19; // bytes, of texts or of rows
constexpr std::size_t most_exits_awaited = 64;                    // operations for one process
static_assert(most_spawn_text >= max_ranks * sizeof(std::int32_t));

} // namespace

// One call of parc_spawn, as long as it blocks.
struct Session::Spawning {
  std::uint64_t slot, generation;
  std::uint64_t address, length; // of the program's memory for the answer
  std::uint64_t job = 0;
  std::vector<EndpointAddress> ranks = {};
  std::map<std::uint64_t, std::int32_t> links = {}; // by the identity of their kernels
  std::size_t unreached = 0;
  std::optional<Error> failure = {};
  std::vector<std::int32_t> rows = {};
  SpawnListener::Ready ready = {};
};

void Session::spawn(const shm::Request& request) {
  const auto memory = take_text(request, most_spawn_text);
  if (!memory) return;
  const std::uint64_t slot = shm::slot_of(request.id);
  if (request.tag > memory->size() || request.extra > request.length / sizeof(std::int32_t))
    return answer(slot, PARC_EINVAL);
  std::string texts(request.tag, '\0');
  memory->copy_out(0, reinterpret_cast<std::byte*>(texts.data()), texts.size());
  auto wish = parse_spawn_request(texts, request.extra);
  if (!wish) return answer(slot, PARC_EINVAL);
  if (spawning_ == most_spawned_at_once) return answer(slot, PARC_EAGAIN);
  wish->parent = to_text(peers_.describe({protocol::here, place_.endpoint}));
  ++spawning_;
  const auto asked = std::make_shared<Spawning>(Spawning{.slot = slot,
                                                         .generation = slots_[slot].generation,
                                                         .address = request.address,
                                                         .length = request.length});
  loop_.after_step(
      [&sessions = sessions_, place = place_, pid = pid_, wish = std::move(*wish),
       listener = listen_to_spawn(asked)] { sessions.hooks_.spawn(place, pid, wish, listener); });
}

// What comes when this session is gone has nobody to hear it.
SpawnListener Session::listen_to_spawn(const std::shared_ptr<Spawning>& asked) {
  const std::weak_ptr<Session*> weak = self_;
  return {
      .prepared =
          [weak, asked](std::uint64_t job, std::vector<EndpointAddress> ranks, SpawnListener::Ready ready) {
            const auto session = weak.lock();
            if (session == nullptr || !(*session)->has_table())
              return ready(error(ESRCH, "the program that spawns it has gone"));
            asked->job = job;
            asked->ranks = std::move(ranks);
            asked->ready = std::move(ready);
            (*session)->reach_spawned(asked);
          },
      .started =
          [weak, asked](const Result<void>& how) {
            if (const auto session = weak.lock()) (*session)->answer_spawn(*asked, how);
          },
      .exited =
          [weak, asked](std::uint32_t rank, std::uint32_t status) {
            const auto session = weak.lock();
            if (session != nullptr && rank < asked->rows.size())
              (*session)->spawned_exited(asked->rows[rank], status);
          }};
}

void Session::reach_spawned(const std::shared_ptr<Spawning>& asked) {
  std::map<std::uint64_t, EndpointAddress> kernels;
  for (const EndpointAddress& rank : asked->ranks) kernels.emplace(rank.identity, rank);
  asked->unreached = kernels.size();
  for (const auto& [identity, address] : kernels)
    peers_.connect(address, [weak = std::weak_ptr(self_), asked, identity](Result<std::int32_t> link) {
      const auto session = weak.lock();
      if (link)
        asked->links[identity] = link.value();
      else
        asked->failure = std::move(link).error();
      if (--asked->unreached != 0) return;
      if (session == nullptr || !(*session)->has_table())
        asked->failure = Error{ESRCH, "the program that spawns it has gone"};
      else if (!asked->failure)
        (*session)->add_spawned(*asked);
      asked->ready(asked->failure ? Result<void>(*asked->failure) : success());
    });
}

void Session::add_spawned(Spawning& asked) {
  // Those that have ended and whose rows were given up: a program that spawns for ever would be left with
  // all.
  std::erase_if(children_, [this](const auto& each) {
    const Child& process = each.second;
    return process.exit && process.waiting.empty() && !engine_.address(place_.endpoint, each.first);
  });
  for (std::uint32_t rank = 0; rank < asked.ranks.size(); ++rank) {
    const std::int32_t link = asked.links.at(asked.ranks[rank].identity);
    if (peers_.link_to(asked.ranks[rank].identity) != link) {
      asked.failure = Error{ECONNRESET, "the link to a host of what it spawns broke meanwhile"};
      return;
    }
    const std::int32_t row = engine_.add_row(
        place_.endpoint, {link == this_host ? protocol::here : link, asked.ranks[rank].number});
    if (row == protocol::Engine::no_room_for_row) {
      asked.failure =
          Error{ENOSPC, "this program has 65,536 peers that are not of its job, and can have no more"};
      return;
    }
    if (row < 0) { // on this host: its part has given it up meanwhile
      asked.failure = Error{ECANCELED, "the job of what it spawns has ended"};
      return;
    }
    asked.rows.push_back(row);
    children_.insert_or_assign(row, Child{.job = asked.job, .rank = rank, .exit = {}, .waiting = {}});
  }
}

// Memory that the program has taken away meanwhile is its loss.
void Session::answer_spawn(const Spawning& asked, const Result<void>& how) {
  --spawning_;
  if (!open() || !slots_[asked.slot].busy || slots_[asked.slot].generation != asked.generation) return;
  if (state_ == State::leaving) return answer(asked.slot, PARC_ECANCELED);
  protocol::Pieces memory;
  Extents::Used used;
  if (!extents_.resolve(asked.address, asked.length, memory, used)) return answer(asked.slot, PARC_EINVAL);
  const std::string text = how ? std::string() : how.error().text;
  const auto* const bytes = reinterpret_cast<const std::byte*>(
      how ? static_cast<const void*>(asked.rows.data()) : static_cast<const void*>(text.data()));
  const std::uint64_t length =
      std::min<std::uint64_t>(how ? asked.rows.size() * sizeof(std::int32_t) : text.size(), asked.length);
  memory.copy_in(0, bytes, length);
  const std::int32_t last = how ? *std::ranges::max_element(asked.rows) : -1;
  complete(asked.slot, {.source = last, .total = length}, PARC_OK);
}

void Session::signal_peer(const shm::Request& request) {
  if (take_slot(request, shm::is_read) == nullptr) return;
  const std::uint64_t slot = shm::slot_of(request.id);
  const auto known = children_.find(request.peer);
  if (request.extra >= NSIG) return answer(slot, PARC_EINVAL);
  const auto number = static_cast<int>(request.extra);
  if (known != children_.end()) {
    const Child& process = known->second;
    const bool told = !process.exit && sessions_.hooks_.signal(process.job, process.rank, number);
    return answer(slot, told ? PARC_OK : PARC_EPEER);
  }
  const bool of_job = request.peer >= 0 && request.peer < place_.size;
  const bool told =
      of_job && sessions_.hooks_.signal(place_.job, static_cast<std::uint32_t>(request.peer), number);
  answer(slot, told ? PARC_OK : PARC_EINVAL);
}

void Session::await_exit(const shm::Request& request) {
  Slot* const slot = take_slot(request, shm::is_read);
  if (slot == nullptr) return;
  slot->queued = (request.flags & shm::flag_queued) != 0;
  const std::uint64_t number = shm::slot_of(request.id);
  const auto process = children_.find(request.peer);
  if (process == children_.end()) return answer(number, PARC_EINVAL);
  if (process->second.waiting.size() == most_exits_awaited) return answer(number, PARC_EAGAIN);
  process->second.waiting.push_back(request.id);
  if (process->second.exit) spawned_exited(request.peer, *process->second.exit);
}

void Session::spawned_exited(std::int32_t row, std::uint32_t status) {
  Child& process = children_.at(row);
  process.exit = status;
  for (const std::uint64_t id : std::exchange(process.waiting, {}))
    if (attached() && slots_.find(id) != nullptr)
      complete(shm::slot_of(id), {.source = row, .data = status, .with_data = true}, PARC_OK);
}

bool Session::cancel_exit(std::uint64_t id) {
  for (auto& [row, process] : children_) {
    if (std::erase(process.waiting, id) == 0) continue;
    answer(shm::slot_of(id), PARC_ECANCELED);
    return true;
  }
  return false;
}

void Session::cancel_exits() {
  for (auto& [row, process] : children_)
    for (const std::uint64_t id : std::exchange(process.waiting, {}))
      answer(shm::slot_of(id), PARC_ECANCELED);
}

} // namespace parc::daemon
