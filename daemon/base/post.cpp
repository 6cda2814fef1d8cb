// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/post.hpp"

#include "control/frames.hpp"
#include "system/quote.hpp"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

} // namespace

Post::Post(Loop& loop, protocol::Engine& engine, Nonsense nonsense)
    : loop_(loop), engine_(engine), nonsense_(std::move(nonsense)) {}

void Post::listen(std::uint32_t link, bool only_relaying) {
  Inbox& inbox = inboxes_[link];
  inbox.only_relaying = only_relaying;
  inbox.lost = !engine_.link(link).open; // again: what it has brought takes room until it is read
  probe(link, inbox);
}

bool Post::write(std::uint32_t link, kernel::Kind kind, const nlohmann::json& message,
                 std::string_view payload, std::function<void()> taken) {
  if (!engine_.link(link).open) return true;
  const auto inbox = inboxes_.find(link);
  const bool only_relaying = inbox != inboxes_.end() && inbox->second.only_relaying;
  // Nobody is told of such a link but who asks for a relay: this is for who finds it otherwise.
  if (only_relaying && !kernel::of_relays(kind)) return true;
  const bool counts = only_relaying && kind != kernel::Kind::relay_bytes;
  std::string all = control::encode_posted(message, payload);
  if (all.size() > max_message) {
    spdlog::warn("a message of {} bytes to another kernel is longer than {}, and is not sent", all.size(),
                 max_message);
    return false;
  }
  if (counts && ++inbox->second.answers == most_answers) {
    inbox->second.lost = true;
    loop_.after_step([this, link] { nonsense_(link, error(ENOBUFS, "it takes no answers")); });
  }
  std::string& kept = (writes_[++last_write_] = {link, counts, std::move(all), std::move(taken)}).bytes;
  protocol::WriteRequest request;
  request.cookie = Cookie::of_control_write(last_write_).word();
  request.destination = link;
  request.space = protocol::Space::kernels;
  request.memory = {bytes_of(kept).data(), kept.size()};
  engine_.write(engine_.kernel(), request);
  return true;
}

std::uint64_t Post::room(std::int32_t link) {
  constexpr std::uint64_t least = 512 << 10;
  const protocol::Link& state = engine_.link(static_cast<std::uint32_t>(link));
  std::uint64_t& widest = inboxes_[static_cast<std::uint32_t>(link)].widest;
  widest = std::max(widest, (state.credit - state.credit_used) * state.fragment);
  if (state.delay_product_kib == 0) return widest; // nobody measures the path
  return std::min(std::max(least, std::uint64_t{state.delay_product_kib} * 2048), widest);
}

void Post::probe(std::uint32_t link, Inbox& inbox) {
  inbox.probing = true;
  protocol::ReadRequest request;
  request.cookie = Cookie::of_control_read(link).word();
  request.source = static_cast<std::int32_t>(link);
  request.space = protocol::Space::kernels;
  request.probe = true;
  engine_.read(engine_.kernel(), request);
}

void Post::finished(Cookie cookie, const protocol::Outcome& outcome) {
  // The engine may be in the middle of anything: what follows waits for the step's end.
  if (cookie.owner() == Cookie::Owner::control_write)
    loop_.after_step([this, number = cookie.write()] { written(number); });
  else
    loop_.after_step([this, link = cookie.link(), outcome] { advance(link, outcome); });
}

void Post::written(std::uint64_t number) {
  const auto write = writes_.extract(number);
  if (write.empty()) return;
  if (write.mapped().taken) write.mapped().taken();
  if (!write.mapped().counts) return;
  if (const auto inbox = inboxes_.find(write.mapped().link); inbox != inboxes_.end()) --inbox->second.answers;
}

void Post::advance(std::uint32_t link, const protocol::Outcome& outcome) {
  Inbox& inbox = inboxes_[link];
  if (outcome.fault == protocol::Fault::truncated) {
    probe(link, inbox);
    refuse(link, inbox,
           error(EMSGSIZE, "a message of {} bytes is longer than {}", outcome.total, max_message));
  } else if (outcome.fault == protocol::Fault::peer && !inbox.probing) {
    inbox.lost = true;
    probe(link, inbox); // there may be others behind it, which take room until they are read
  } else if (outcome.fault != protocol::Fault::none) {
    inboxes_.erase(link); // the link broke, or the kernel is shutting down
  } else if (inbox.probing) {
    inbox.probing = false;
    inbox.room.resize(std::min<std::uint64_t>(outcome.total, max_message));
    protocol::ReadRequest request;
    request.cookie = Cookie::of_control_read(link).word();
    request.source = static_cast<std::int32_t>(link);
    request.space = protocol::Space::kernels;
    request.memory = {bytes_of(inbox.room).data(), inbox.room.size()};
    engine_.read(engine_.kernel(), request);
  } else {
    const std::string message = std::exchange(inbox.room, {});
    probe(link, inbox);
    if (inbox.lost) return;
    if (const Result<void> good = deliver(link, message, inbox.only_relaying); !good)
      refuse(link, inbox, good.error());
  }
}

void Post::refuse(std::uint32_t link, Inbox& inbox, const Error& why) {
  inbox.lost = true;
  nonsense_(link, why);
}

Result<void> Post::deliver(std::uint32_t link, std::string_view incoming, bool only_relaying) {
  PARC_TRY(posted, control::read_posted(incoming));
  const std::string named = control::kind_of(posted.message);
  const auto kind = kernel::kind_named(named);
  const Receiver* const receiver = kind ? &receivers_[static_cast<std::size_t>(*kind)] : nullptr;
  if (receiver == nullptr || !receiver->hear) return error(EPROTO, "there is no message {}", quote(named));
  if (only_relaying && !kernel::of_relays(*kind))
    return error(EACCES, "it has proved a relay key alone, and sent a message {}", quote(named));
  return receiver->read(*receiver, static_cast<std::int32_t>(link), posted.message,
                        std::move(posted.payload));
}

} // namespace parc::daemon
