// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/exchange.hpp"

#include "pmix/bytes.hpp"

#include <algorithm>
#include <pmix_common.h>

namespace parc::pmix {

Exchange::Exchange(Messenger& messenger, const Jobs& jobs, Local local)
    : messenger_(messenger), jobs_(jobs), local_(std::move(local)) {
  messenger_.on(Kind::contribution,
                [this](int from, std::string_view body, const Answer&) { received(from, body); });
  messenger_.on(Kind::modex,
                [this](int, std::string_view body, const Answer& answer) { asked(body, answer); });
}

// ---- Fences.

// Where others take part, this job may be over as soon as its ranks are through, and this server with it: by
// then those of the others have what it had to say.
void Exchange::fence(What what, const Members& named, std::string_view data, Answer answer) {
  const auto members = jobs_.normal(named);
  if (!members) return answer(PMIX_ERR_NOT_FOUND, {});
  const Group group{what, *members};
  const Name name{group, fences_begun_[group]++};
  Writer body;
  body.number(name.second).number(static_cast<std::uint64_t>(what)).number(members->size());
  for (const Member& each : *members) body.text(each.job).number(each.rank);
  body.text(data);
  const std::string text = body.take();
  const bool is_own = jobs_.is_own(*members);
  Fence& fence = fences_[name];
  fence.answer = std::move(answer);
  fence.servers = jobs_.servers_of(*members);
  fence.contributions[messenger_.self()] = data;
  for (const int server : fence.servers) {
    if (server < 0 || server == messenger_.self()) continue;
    Messenger::Action taken;
    if (!is_own) {
      ++fence.unsent;
      taken = [this, name] { sent(name); };
    }
    messenger_.tell(server, Kind::contribution, text, taken);
  }
  check(name);
}

void Exchange::sent(const Name& name) {
  const auto found = fences_.find(name);
  if (found == fences_.end()) return;
  --found->second.unsent;
  check(name);
}

void Exchange::check(const Name& name) {
  const auto found = fences_.find(name);
  const Fence& fence = found->second;
  if (!fence.answer) return;
  if (*fence.servers.begin() < 0) return end(name, PMIX_ERR_LOST_CONNECTION, {});
  std::string data;
  for (const int server : fence.servers) {
    const auto contribution = fence.contributions.find(server);
    if (contribution == fence.contributions.end()) return;
    data += contribution->second;
  }
  if (fence.unsent == 0) end(name, PMIX_SUCCESS, std::move(data));
}

void Exchange::end(const Name& name, int status, std::string data) {
  const Answer answer = std::move(fences_.at(name).answer);
  fences_.erase(name);
  answer(status, std::move(data));
}

// What it has contributed is enough of it: it may be through.
void Exchange::server_lost(int server) {
  std::vector<Name> waiting;
  for (const auto& [name, fence] : fences_)
    if (fence.servers.contains(server) && !fence.contributions.contains(server)) waiting.push_back(name);
  for (const Name& each : waiting) end(each, PMIX_ERR_LOST_CONNECTION, {});
}

void Exchange::forget(const std::string& job) {
  const auto names_it = [&job](const Group& group) {
    return std::ranges::any_of(group.second, [&job](const Member& each) { return each.job == job; });
  };
  std::erase_if(fences_begun_, [&](const auto& each) { return names_it(each.first); });
  std::erase_if(fences_, [&](const auto& each) { return names_it(each.first.first) && !each.second.answer; });
}

void Exchange::received(int from, std::string_view body) {
  Reader reader(body);
  Name name{{}, reader.number()};
  name.first.first = static_cast<What>(reader.number());
  for (std::uint64_t left = reader.count(); left > 0; --left) {
    std::string job = reader.text();
    name.first.second.insert({std::move(job), static_cast<std::uint32_t>(reader.number())});
  }
  std::string data = reader.text();
  if (!reader.good()) return;
  fences_[name].contributions.emplace(from, std::move(data));
  check(name);
}

// ---- What a rank has for others.

void Exchange::modex(const std::string& job, std::uint32_t rank, Answer answer) {
  const auto server = jobs_.server_of(job, rank);
  if (!server) return answer(PMIX_ERR_NOT_FOUND, {});
  messenger_.ask(*server, Kind::modex, Writer().number(rank).take(), std::move(answer));
}

void Exchange::asked(std::string_view body, const Answer& answer) {
  Reader reader(body);
  const auto rank = static_cast<std::uint32_t>(reader.number());
  if (!reader.good() || jobs_.server_of(jobs_.own().name, rank) != messenger_.self())
    return answer(PMIX_ERR_NOT_FOUND, {});
  local_(rank, [this, answer](int status, std::string data) {
    messenger_.post([answer, status, data = std::move(data)] { answer(status, data); });
  });
}

} // namespace parc::pmix
