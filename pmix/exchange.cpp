// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <pmix_common.h>
#include <utility>

namespace parc::pmix {
namespace {

constexpr int tag = 1;

} // namespace

Exchange::Exchange(parc_context* parc, std::vector<std::uint32_t> server_of_rank, Local local)
    : parc_(parc), server_of_rank_(std::move(server_of_rank)),
      self_(static_cast<std::uint32_t>(parc_rank(parc))), local_(std::move(local)) {}

std::set<std::uint32_t> Exchange::servers_of(const Ranks& ranks) const {
  if (ranks.empty()) return {server_of_rank_.begin(), server_of_rank_.end()};
  std::set<std::uint32_t> servers;
  for (const std::uint32_t rank : ranks) servers.insert(server_of_rank_[rank]);
  return servers;
}

// ---- What ranks of this host ask for.

void Exchange::fence(Ranks ranks, std::string_view data, Answer answer) {
  if (!ranks.empty() && *ranks.rbegin() >= server_of_rank_.size()) return answer(PMIX_ERR_BAD_PARAM, {});
  if (ranks.size() == server_of_rank_.size()) ranks.clear();
  const std::uint64_t number = fences_begun_[ranks]++;
  std::string body(ranks.size() * sizeof(std::uint32_t), 0);
  std::size_t place = 0;
  for (const std::uint32_t rank : ranks) {
    std::memcpy(body.data() + place, &rank, sizeof rank);
    place += sizeof rank;
  }
  body += data;
  const Header header{.kind = Kind::contribution,
                      .rank = 0,
                      .number = number,
                      .status = 0,
                      .ranks = static_cast<std::uint32_t>(ranks.size())};
  for (const std::uint32_t server : servers_of(ranks))
    if (server != self_) send(server, header, body);
  fences_[{ranks, number}].answer = std::move(answer);
  contribute(ranks, number, self_, data);
}

void Exchange::modex(std::uint32_t rank, Answer answer) {
  if (rank >= server_of_rank_.size()) return answer(PMIX_ERR_NOT_FOUND, {});
  const std::uint64_t number = ++last_request_;
  requests_.emplace(number, std::move(answer));
  send(server_of_rank_[rank],
       {.kind = Kind::request, .rank = rank, .number = number, .status = 0, .ranks = 0}, {});
}

// ---- What other servers send.

void Exchange::contribute(const Ranks& ranks, std::uint64_t number, std::uint32_t server,
                          std::string_view data) {
  Fence& fence = fences_[{ranks, number}];
  if (!fence.servers.insert(server).second) return;
  fence.data += data;
  answer_if_complete(ranks, number);
}

void Exchange::answer_if_complete(const Ranks& ranks, std::uint64_t number) {
  const auto found = fences_.find({ranks, number});
  if (!found->second.answer || found->second.servers != servers_of(ranks)) return;
  const Fence fence = std::move(fences_.extract(found).mapped());
  fence.answer(PMIX_SUCCESS, fence.data);
}

void Exchange::received(std::uint32_t from, std::string_view message) {
  Header header{};
  if (message.size() < sizeof header) return;
  std::memcpy(&header, message.data(), sizeof header);
  const std::string_view body = message.substr(sizeof header);
  switch (header.kind) {
  case Kind::contribution: return received_contribution(from, header, body);
  case Kind::request:
    if (header.rank >= server_of_rank_.size() || server_of_rank_[header.rank] != self_) return;
    return local_(header.rank, [this, from, number = header.number](int status, std::string data) {
      post([this, from, number, status, data = std::move(data)] {
        send(from, {.kind = Kind::reply, .rank = 0, .number = number, .status = status, .ranks = 0}, data);
      });
    });
  case Kind::reply:
    if (auto request = requests_.extract(header.number)) request.mapped()(header.status, std::string(body));
    return;
  }
}

void Exchange::received_contribution(std::uint32_t from, const Header& header, std::string_view body) {
  if (header.ranks > body.size() / sizeof(std::uint32_t)) return;
  Ranks ranks;
  for (std::uint32_t i = 0; i < header.ranks; ++i) {
    std::uint32_t rank = 0;
    std::memcpy(&rank, body.data() + i * sizeof rank, sizeof rank);
    if (rank >= server_of_rank_.size()) return;
    ranks.insert(rank);
  }
  const std::set<std::uint32_t> servers = servers_of(ranks);
  if (!servers.contains(from) || !servers.contains(self_)) return;
  contribute(ranks, header.number, from, body.substr(header.ranks * sizeof(std::uint32_t)));
}

// ---- As messages.

void Exchange::send(std::uint32_t server, const Header& header, std::string_view body) {
  std::vector<char> message(sizeof header + body.size());
  std::memcpy(message.data(), &header, sizeof header);
  std::ranges::copy(body, message.begin() + sizeof header);
  const parc_envelope envelope = parc_envelope_of(static_cast<int>(server), 0, tag);
  const iovec piece{message.data(), message.size()};
  const parc_op write = parc_initwritev(parc_, &envelope, &piece, 1, PARC_QUEUED);
  if (write > 0)
    writes_.emplace(write, std::move(message));
  else
    fail(static_cast<int>(write));
}

// Of a host that is lost its kernel hears.
void Exchange::fail(int code) {
  if (code != PARC_EPEER && !failure_)
    failure_ = error(code, "cannot tell another server something: {}", parc_error_string(code));
}

Result<void> Exchange::look_for_messages() {
  const parc_envelope envelope = parc_envelope_of(PARC_ANY_SOURCE, 0, tag);
  if (const parc_op probe = parc_initprobe(parc_, &envelope, PARC_CLAIM | PARC_QUEUED); probe < 0)
    return error(static_cast<int>(probe), "{}", parc_error_detail());
  return success();
}

Result<void> Exchange::begin_read(const parc_completion& claim) {
  std::vector<char> message(claim.status.length);
  const iovec piece{message.data(), message.size()};
  const parc_op read = parc_initread_claimed(parc_, claim.operation, &piece, 1, PARC_QUEUED);
  if (read < 0) return error(static_cast<int>(read), "{}", parc_error_detail());
  reads_.emplace(read, std::move(message));
  return look_for_messages();
}

Result<void> Exchange::completed(const parc_completion& completion) {
  if (writes_.erase(completion.operation) != 0) {
    if (completion.status.error != PARC_OK) fail(completion.status.error);
    return success();
  }
  if (auto read = reads_.extract(completion.operation)) {
    if (completion.status.error == PARC_OK)
      received(static_cast<std::uint32_t>(completion.status.source),
               {read.mapped().data(), read.mapped().size()});
    else
      fail(completion.status.error);
    return success();
  }
  if (completion.status.error != PARC_OK)
    return error(completion.status.error, "{}", parc_error_string(completion.status.error));
  return begin_read(completion);
}

void Exchange::post(std::function<void()> action) {
  {
    const std::lock_guard lock(mutex_);
    actions_.push_back(std::move(action));
  }
  parc_wake(parc_);
}

void Exchange::take_actions() {
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(mutex_);
    actions.swap(actions_);
  }
  for (const auto& action : actions) action();
}

Result<void> Exchange::run() {
  PARC_TRY(look_for_messages());
  std::array<parc_completion, 64> all{};
  for (;;) {
    const int count = parc_completions(parc_, all.data(), static_cast<int>(all.size()), -1);
    if (count < 0) return error(count, "{}", parc_error_detail());
    for (int i = 0; i < count; ++i) {
      PARC_TRY(completed(all[static_cast<std::size_t>(i)]));
    }
    take_actions();
    if (failure_) return std::move(*failure_);
  }
}

} // namespace parc::pmix
