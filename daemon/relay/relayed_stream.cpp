// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/relay/relayed_stream.hpp"

#include "system/quote.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace parc::daemon {
namespace {

constexpr double patience_with_one_s = 1;

} // namespace

RelayedStream::RelayedStream(Relays& relays, const Address& to, std::vector<std::int32_t> links)
    : Stream(to, to), relays_(relays), stage_(Stage::opening), ordered_(is_via()), links_(std::move(links)) {
  std::ranges::reverse(links_);
  patience_.emplace(relays.loop_, [this] { silent(); });
  if (!is_via()) ask_next();
}

RelayedStream::RelayedStream(Relays& relays, const Address& from, const Relays::Key& leg,
                             std::uint64_t window, bool ordered)
    : Stream(from, from), relays_(relays), stage_(Stage::open), ordered_(ordered), leg_(leg), was_open_(true),
      window_(window), credit_(window) {}

RelayedStream::~RelayedStream() {
  if (leg_) relays_.forget(*leg_, "its end has gone");
  relays_.stop_reaching(*this);
}

void RelayedStream::relay_reached(const Result<std::int32_t>& link) {
  if (stage_ != Stage::opening) return;
  if (!link)
    why_not_ = link.error().text;
  else if (link.value() == this_host)
    why_not_ = fmt::format("host {} is this one by another name: call it in [hosts] as it calls itself",
                           peer().relay_target().via);
  else
    links_ = {link.value()};
  ask_next();
}

void RelayedStream::enter(Stage next) {
  assert(stage_ < next);
  stage_ = next;
}

void RelayedStream::ask_next() {
  leg_.reset();
  in_.clear();
  if (!is_via()) patience_->set(patience_with_one_s);
  while (!leg_ && !links_.empty()) {
    leg_ = relays_.ask(links_.back(), peer(), *this);
    links_.pop_back();
  }
  if (leg_) return;
  patience_->cancel();
  enter(Stage::closed);
}

// Who does not answer is not waited for: another one may relay.
void RelayedStream::silent() {
  if (stage_ != Stage::opening || !leg_) return;
  silent_ = true;
  relays_.forget(*leg_, "it took too long");
  ask_next();
}

int RelayedStream::opened() {
  switch (stage_) {
  case Stage::opening: return EINPROGRESS;
  case Stage::open: return 0;
  case Stage::closed: break;
  }
  if (was_open_) return 0;         // what came before the end is to be read
  if (is_via()) return ECONNRESET; // it is the way there that was not, and may be in a moment
  return silent_ ? ETIMEDOUT : ENETUNREACH;
}

void RelayedStream::is_open(std::uint64_t window) {
  if (stage_ != Stage::opening) return;
  window_ = credit_ = window;
  enter(Stage::open);
  was_open_ = true;
  why_not_.clear();
  patience_->cancel();
}

std::string RelayedStream::describe(int code) const {
  return why_not_.empty() ? Stream::describe(code) : why_not_;
}

void RelayedStream::may_send(std::uint64_t bytes) {
  credit_ += std::min(bytes, window_ - credit_);
}

void RelayedStream::is_closed(const std::string& why) {
  if (stage_ == Stage::opening) {
    why_not_ = harmless(why);
    return ask_next();
  }
  leg_.reset();
  enter(Stage::closed);
}

void RelayedStream::came(std::string bytes) {
  if (stage_ == Stage::open) in_.push_back(std::move(bytes));
}

bool RelayedStream::readable() const {
  return !in_.empty() || stage_ == Stage::closed;
}

bool RelayedStream::writable() const {
  return stage_ == Stage::closed ||
         (stage_ == Stage::open && credit_ > kernel::cost_of_relayed(0) && relays_.takes(*leg_));
}

Transfer RelayedStream::read(std::span<const iovec> to) {
  std::size_t moved = 0;
  for (const iovec& part : to) {
    for (std::size_t done = 0; done < part.iov_len && !in_.empty() && !in_.front().empty();) {
      const std::string& first = in_.front();
      const std::size_t some = std::min(part.iov_len - done, first.size() - read_);
      std::memcpy(static_cast<char*>(part.iov_base) + done, first.data() + read_, some);
      done += some;
      moved += some;
      read_ += some;
      if (read_ < first.size()) continue;
      unsaid_ += kernel::cost_of_relayed(first.size());
      in_.pop_front();
      read_ = 0;
    }
  }
  if (unsaid_ >= kernel::least_told(window_) && unsaid_ != 0 && leg_)
    relays_.send_taken(*leg_, std::exchange(unsaid_, 0));
  if (moved != 0) return {.bytes = moved};
  if (!in_.empty() && in_.front().empty()) return {.status = Transfer::Status::ended};
  if (stage_ == Stage::closed) return {.status = Transfer::Status::broken, .code = ECONNRESET};
  return {.status = Transfer::Status::would_block};
}

Transfer RelayedStream::write(std::span<const iovec> from) {
  if (stage_ == Stage::closed) return {.status = Transfer::Status::broken, .code = ECONNRESET};
  if (!writable()) return {.status = Transfer::Status::would_block};
  std::string bytes;
  const std::size_t most =
      std::min<std::uint64_t>(credit_ - kernel::cost_of_relayed(0), kernel::most_relayed_bytes);
  for (const iovec& part : from)
    bytes.append(static_cast<const char*>(part.iov_base), std::min(part.iov_len, most - bytes.size()));
  if (bytes.empty()) return {.status = Transfer::Status::would_block};
  const std::size_t moved = bytes.size();
  credit_ -= kernel::cost_of_relayed(moved);
  relays_.send_bytes(*leg_, std::move(bytes));
  return {.bytes = moved};
}

void RelayedStream::end_output() {
  if (stage_ == Stage::open) relays_.send_bytes(*leg_, {});
}

} // namespace parc::daemon
