// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/event_queue.hpp"

#include "fabric/fabric.hpp"
#include "fabric/wait_object.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace parc::fabric {
namespace {

struct EventQueue final : fid_eq {
  struct Event {
    std::uint32_t kind;
    std::vector<std::byte> bytes;
  };
  Fabric* fabric = nullptr;
  bool writable = false;
  WaitObject wait_object;
  std::mutex lock;
  std::condition_variable written;
  std::deque<Event> events; // under lock

  // Under lock.
  ssize_t take(std::uint32_t* kind, void* buffer, std::size_t length, std::uint64_t flags) {
    if (events.empty()) return -FI_EAGAIN;
    const Event& first = events.front();
    if (length < first.bytes.size()) return -FI_ETOOSMALL;
    *kind = first.kind;
    std::memcpy(buffer, first.bytes.data(), first.bytes.size());
    const auto size = static_cast<ssize_t>(first.bytes.size());
    if (!(flags & FI_PEEK)) events.pop_front();
    return size;
  }
};

int close_event_queue(fid* of) {
  auto& queue = object_of_fid<EventQueue, fid_eq>(of);
  --queue.fabric->users;
  delete &queue;
  return 0;
}

ssize_t read_queue(fid_eq* of, std::uint32_t* kind, void* buffer, std::size_t length, std::uint64_t flags) {
  auto& queue = object_of<EventQueue>(of);
  const std::lock_guard hold(queue.lock);
  return queue.take(kind, buffer, length, flags);
}

ssize_t wait_and_read(fid_eq* of, std::uint32_t* kind, void* buffer, std::size_t length, int timeout,
                      std::uint64_t flags) {
  auto& queue = object_of<EventQueue>(of);
  if (!queue.wait_object.blocks()) return -FI_ENOSYS;
  std::unique_lock hold(queue.lock);
  const auto any = [&] { return !queue.events.empty(); };
  if (timeout < 0)
    queue.written.wait(hold, any);
  else
    queue.written.wait_for(hold, std::chrono::milliseconds(timeout), any);
  return queue.take(kind, buffer, length, flags);
}

ssize_t write_queue(fid_eq* of, std::uint32_t kind, const void* buffer, std::size_t length, std::uint64_t) {
  auto& queue = object_of<EventQueue>(of);
  if (!queue.writable) return -FI_EINVAL;
  return guarded([&]() -> ssize_t {
    const auto* const bytes = static_cast<const std::byte*>(buffer);
    const std::lock_guard hold(queue.lock);
    queue.events.push_back({kind, {bytes, bytes + length}});
    queue.written.notify_all();
    queue.wait_object.ring();
    return static_cast<ssize_t>(length);
  });
}

fi_ops event_object_calls{.size = sizeof(fi_ops),
                          .close = close_event_queue,
                          .bind = no_bind,
                          .control =
                              [](fid* of, int command, void* answer) {
                                return object_of_fid<EventQueue, fid_eq>(of).wait_object.control(command,
                                                                                                 answer);
                              },
                          .ops_open = no_ops_open,
                          .tostr = nullptr,
                          .ops_set = nullptr};

fi_ops_eq event_calls{
    .size = sizeof(fi_ops_eq),
    .read = read_queue,
    .readerr = [](fid_eq*, fi_eq_err_entry*, std::uint64_t) -> ssize_t { return -FI_EAGAIN; },
    .write = write_queue,
    .sread = wait_and_read,
    .strerror = [](fid_eq*, int code, const void*, char*, std::size_t) { return fi_strerror(code); },
};

} // namespace

int try_wait(fid_eq& of) {
  auto& queue = static_cast<EventQueue&>(of);
  return queue.wait_object.try_wait([&] {
    const std::lock_guard hold(queue.lock);
    return !queue.events.empty();
  });
}

int open_event_queue(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context) {
  return guarded([&] {
    auto made = std::make_unique<EventQueue>();
    if (const int code = made->wait_object.open(nullptr, attributes->wait_obj); code != 0) return code;
    made->fid = {.fclass = FI_CLASS_EQ, .context = context, .ops = &event_object_calls};
    made->ops = &event_calls;
    made->fabric = &object_of<Fabric>(fabric);
    made->writable = (attributes->flags & FI_WRITE) != 0;
    ++made->fabric->users;
    *queue = made.release();
    return 0;
  });
}

} // namespace parc::fabric
