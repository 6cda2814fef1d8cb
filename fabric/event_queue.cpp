// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/event_queue.hpp"

#include "fabric/fabric.hpp"
#include "fabric/wait_object.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

namespace parc::fabric {
namespace {

struct EventQueue final : Child<fid_eq, Fabric> {
  using Child::Child;
  int control(int command, void* answer) const { return wait_object.control(command, answer); }

  struct Event {
    std::uint32_t kind;
    std::vector<std::byte> bytes;
  };
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
  const auto complete = [&](EventQueue& made) {
    made.ops = &event_calls;
    made.writable = (attributes->flags & FI_WRITE) != 0;
    return made.wait_object.open(nullptr, attributes->wait_obj);
  };
  return open_object<EventQueue>(FI_CLASS_EQ, context, queue, complete, object_of<Fabric>(fabric));
}

} // namespace parc::fabric
