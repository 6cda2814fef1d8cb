// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/control.hpp"

#include "daemon/cookie.hpp"
#include "daemon/kernel.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

constexpr std::uint64_t write_bit = std::uint64_t{1} << 55; // in a cookie; the rest is the write's number

std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

} // namespace

Control::Control(Kernel& kernel, Receive receive) : kernel_(kernel), receive_(std::move(receive)) {
  probe();
}

// On the wire: u32 length of the JSON text, the text, the raw bytes.
void Control::send(std::uint32_t link, const nlohmann::json& message, const std::string& bytes) {
  if (!kernel_.engine().link(link).open) return;
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string& kept = writes_[++last_write_];
  kept.resize(sizeof length);
  std::memcpy(kept.data(), &length, sizeof length);
  kept += text;
  kept += bytes;
  protocol::WriteRequest request;
  request.cookie = make_cookie(Owner::control, write_bit | last_write_);
  request.destination = link;
  request.context = protocol::kernel_context;
  request.memory = {bytes_of(kept).data(), kept.size()};
  kernel_.engine().write(kernel_.engine().kernel(), request);
}

void Control::probe() {
  probing_ = true;
  protocol::ReadRequest request;
  request.cookie = make_cookie(Owner::control, 0);
  request.context = protocol::kernel_context;
  request.probe = true;
  kernel_.engine().read(kernel_.engine().kernel(), request);
}

void Control::finished(std::uint64_t cookie, const protocol::Outcome& outcome) {
  const std::uint64_t rest = rest_of(cookie);
  // The engine may be in the middle of anything: what follows waits for the step's end.
  if ((rest & write_bit) != 0)
    kernel_.after_step([this, number = rest & ~write_bit] { writes_.erase(number); });
  else
    kernel_.after_step([this, outcome] { advance(outcome); });
}

void Control::advance(const protocol::Outcome& outcome) {
  if (!probing_) {
    if (outcome.fault == protocol::Fault::none) deliver(static_cast<std::uint32_t>(outcome.source));
    probe();
    return;
  }
  if (outcome.fault != protocol::Fault::none) return; // the kernel is shutting down
  probing_ = false;
  incoming_.resize(std::min<std::uint64_t>(outcome.total, max_message));
  protocol::ReadRequest request;
  request.cookie = make_cookie(Owner::control, 0);
  request.source = outcome.source;
  request.context = protocol::kernel_context;
  request.memory = {bytes_of(incoming_).data(), incoming_.size()};
  kernel_.engine().read(kernel_.engine().kernel(), request);
}

void Control::deliver(std::uint32_t link) {
  std::uint32_t length = 0;
  if (incoming_.size() >= sizeof length) std::memcpy(&length, incoming_.data(), sizeof length);
  if (incoming_.size() < sizeof length || length > incoming_.size() - sizeof length) {
    spdlog::warn("ignored a malformed message from the kernel of host {}", kernel_.peers().name_of(link));
    return;
  }
  const char* text = incoming_.data() + sizeof length;
  nlohmann::json message = nlohmann::json::parse(text, text + length, nullptr, false);
  if (!message.is_object()) {
    spdlog::warn("ignored a message that is not JSON from the kernel of host {}",
                 kernel_.peers().name_of(link));
    return;
  }
  receive_(link, std::move(message), incoming_.substr(sizeof length + length));
}

} // namespace parc::daemon
