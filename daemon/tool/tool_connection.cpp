// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/tool_connection.hpp"

#include <cassert>
#include <event2/buffer.h>
#include <event2/event.h>
#include <spdlog/spdlog.h>
#include <vector>

namespace parc::daemon {
namespace {

constexpr std::size_t read_at_once = 65536;

} // namespace

ToolConnection::ToolConnection(event_base* loop, Fd socket, Events events)
    : events_(std::move(events)),
      connection_(
          bufferevent_socket_new(loop, socket.release(), BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS)) {
  bufferevent_setcb(
      connection_.get(), [](bufferevent*, void* self) { static_cast<ToolConnection*>(self)->read(); },
      nullptr, [](bufferevent*, short, void* self) { static_cast<ToolConnection*>(self)->went(); }, this);
  evbuffer_add_cb(
      bufferevent_get_output(connection_.get()),
      [](evbuffer*, const evbuffer_cb_info* change, void* self) {
        if (change->n_deleted != 0) static_cast<ToolConnection*>(self)->took(change->n_deleted);
      },
      this);
  bufferevent_enable(connection_.get(), EV_READ | EV_WRITE);
}

void ToolConnection::queue(const std::string& frame) {
  if (gone_ || said_all_) return;
  sent_ += frame.size();
  bufferevent_write(connection_.get(), frame.data(), frame.size());
}

void ToolConnection::send_output(std::uint32_t rank, std::uint32_t stream, std::string bytes) {
  assert(!said_all_);
  const std::size_t size = bytes.size();
  const std::string frame =
      control::frame_of(tool::Output{.rank = rank, .stream = stream, .payload = std::move(bytes)});
  outputs_.push_back({rank, size, sent_ + frame.size()});
  queue(frame);
}

void ToolConnection::took(std::uint64_t bytes) {
  if (gone_) return; // what had not been taken was told then
  taken_ += bytes;
  while (!outputs_.empty() && outputs_.front().end <= taken_) {
    const Output output = outputs_.front();
    outputs_.pop_front();
    events_.taken(output.rank, output.bytes);
  }
  if (idle()) events_.idle();
}

void ToolConnection::read() {
  std::vector<char> bytes(read_at_once);
  std::size_t got = 0;
  while (!gone_ && (got = bufferevent_read(connection_.get(), bytes.data(), bytes.size())) != 0) {
    reader_.feed({bytes.data(), got});
    for (;;) {
      auto frame = reader_.next();
      if (!frame) {
        spdlog::warn("dropped a tool's connection: {}", frame.error().text);
        return went();
      }
      if (!frame.value()) break;
      if (control::kind_of(frame.value()->message) == name(tool::Kind::ping))
        answer_ping();
      else
        events_.frame(std::move(*frame.value()));
    }
  }
}

// Whatever else the tool is busy with. One answer on its way does for all who have asked.
void ToolConnection::answer_ping() {
  if (taken_ < heard_end_) return;
  send(tool::Heard{});
  heard_end_ = sent_;
}

void ToolConnection::went() {
  if (gone_) return;
  gone_ = true;
  bufferevent_disable(connection_.get(), EV_READ | EV_WRITE);
  for (const Output& output : outputs_) events_.taken(output.rank, output.bytes);
  outputs_.clear();
  events_.gone();
}

} // namespace parc::daemon
