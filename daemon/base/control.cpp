// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/control.hpp"

#include "system/frames.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

} // namespace

Control::Control(Loop& loop, protocol::Engine& engine, Receive receive)
    : loop_(loop), engine_(engine), receive_(std::move(receive)) {}

void Control::listen(std::uint32_t link, const std::string& host) {
  Inbox& inbox = inboxes_[link];
  inbox.host = host;
  inbox.lost = !engine_.link(link).open; // again: what it has brought takes room until it is read
  probe(link, inbox);
}

// On the wire: u32 length of the JSON text, the text, the raw bytes.
void Control::send(std::uint32_t link, const nlohmann::json& message, const std::string& bytes) {
  if (!engine_.link(link).open) return;
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string& kept = writes_[++last_write_];
  kept.resize(sizeof length);
  std::memcpy(kept.data(), &length, sizeof length);
  kept += text;
  kept += bytes;
  protocol::WriteRequest request;
  request.cookie = Cookie::of_control_write(last_write_).word();
  request.destination = link;
  request.space = protocol::Space::kernels;
  request.memory = {bytes_of(kept).data(), kept.size()};
  engine_.write(engine_.kernel(), request);
}

void Control::probe(std::uint32_t link, Inbox& inbox) {
  inbox.probing = true;
  protocol::ReadRequest request;
  request.cookie = Cookie::of_control_read(link).word();
  request.source = static_cast<std::int32_t>(link);
  request.space = protocol::Space::kernels;
  request.probe = true;
  engine_.read(engine_.kernel(), request);
}

void Control::finished(Cookie cookie, const protocol::Outcome& outcome) {
  // The engine may be in the middle of anything: what follows waits for the step's end.
  if (cookie.owner() == Cookie::Owner::control_write)
    loop_.after_step([this, number = cookie.write()] { writes_.erase(number); });
  else
    loop_.after_step([this, link = cookie.link(), outcome] { advance(link, outcome); });
}

void Control::advance(std::uint32_t link, const protocol::Outcome& outcome) {
  Inbox& inbox = inboxes_[link];
  if (outcome.fault == protocol::Fault::truncated) {
    spdlog::warn("ignored a message of {} bytes from the kernel of host {}", outcome.total, inbox.host);
    probe(link, inbox);
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
    if (!inbox.lost) deliver(link, inbox.host, message);
  }
}

void Control::deliver(std::uint32_t link, const std::string& host, std::string_view incoming) {
  std::uint32_t length = 0;
  if (incoming.size() >= sizeof length) std::memcpy(&length, incoming.data(), sizeof length);
  if (incoming.size() < sizeof length || length > incoming.size() - sizeof length) {
    spdlog::warn("ignored a malformed message from the kernel of host {}", host);
    return;
  }
  auto message = parse_object(incoming.substr(sizeof length, length));
  if (!message) {
    spdlog::warn("ignored a message that is no JSON object from the kernel of host {}", host);
    return;
  }
  receive_(link, *std::move(message), std::string(incoming.substr(sizeof length + length)));
}

} // namespace parc::daemon
