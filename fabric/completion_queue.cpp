// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/completion_queue.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

namespace parc::fabric {
namespace {

std::size_t size_of(fi_cq_format format) {
  switch (format) {
  case FI_CQ_FORMAT_MSG: return sizeof(fi_cq_msg_entry);
  case FI_CQ_FORMAT_DATA: return sizeof(fi_cq_data_entry);
  case FI_CQ_FORMAT_TAGGED: return sizeof(fi_cq_tagged_entry);
  default: return sizeof(fi_cq_entry);
  }
}

// Each format is the beginning of the next.
static_assert(offsetof(fi_cq_tagged_entry, flags) == offsetof(fi_cq_msg_entry, flags) &&
              offsetof(fi_cq_tagged_entry, len) == offsetof(fi_cq_msg_entry, len) &&
              offsetof(fi_cq_tagged_entry, buf) == offsetof(fi_cq_data_entry, buf) &&
              offsetof(fi_cq_tagged_entry, data) == offsetof(fi_cq_data_entry, data));

} // namespace

thread_local CompletionQueue::Reader* CompletionQueue::reader_ = nullptr;

CompletionQueue::CompletionQueue(Domain& domain, const fi_cq_attr& attributes)
    : Child(domain), entry_size_(size_of(attributes.format)),
      counts_(attributes.wait_cond == FI_CQ_COND_THRESHOLD) {}

// In order: nothing that came before is in the queue. What has failed is read by read_error.
bool CompletionQueue::hand_over(Reader& reader, const Completion& completion) {
  if (completion.error != 0 || reader.taken == reader.room) return false;
  std::memcpy(reader.buffer + reader.taken * reader.queue->entry_size_, &completion.entry,
              reader.queue->entry_size_);
  if (reader.sources) reader.sources[reader.taken] = completion.source;
  ++reader.taken;
  return true;
}

void CompletionQueue::add(const Completion& completion) {
  if (reader_ && reader_->queue == this && !any_.load(std::memory_order_acquire) &&
      hand_over(*reader_, completion))
    return;
  const std::lock_guard hold(lock_);
  completions_.push_back(completion);
  any_.store(true, std::memory_order_release);
  failed_ += completion.error != 0;
  if (completions_.size() == 1) wait_object.ring();
}

// What failed stands among the others, and is read by read_error alone.
ssize_t CompletionQueue::take(void* buffer, std::size_t count, fi_addr_t* sources) {
  if (!any_.load(std::memory_order_acquire)) return -FI_EAGAIN;
  const std::lock_guard hold(lock_);
  std::size_t taken = 0;
  for (; taken < count && !completions_.empty(); ++taken) {
    const Completion& first = completions_.front();
    if (first.error != 0) return taken != 0 ? static_cast<ssize_t>(taken) : -FI_EAVAIL;
    std::memcpy(static_cast<std::byte*>(buffer) + taken * entry_size_, &first.entry, entry_size_);
    if (sources) sources[taken] = first.source;
    completions_.pop_front();
  }
  any_.store(!completions_.empty(), std::memory_order_relaxed);
  return taken != 0 ? static_cast<ssize_t>(taken) : -FI_EAGAIN;
}

ssize_t CompletionQueue::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  const ssize_t there = take(buffer, count, sources);
  if (there != -FI_EAGAIN) return there;
  {
    const Reader reader(this, buffer, count, sources);
    try {
      (void)parent.session->poll(); // a kernel that has gone is told by what was under way
    } catch (const std::exception&) {
      if (reader.taken == 0) throw; // it is met again
    }
    if (reader.taken != 0) return static_cast<ssize_t>(reader.taken);
  }
  return take(buffer, count, sources);
}

bool CompletionQueue::holds(std::size_t entries) {
  const std::lock_guard hold(lock_);
  return completions_.size() >= entries || failed_ != 0;
}

ssize_t CompletionQueue::wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources,
                                       const void* condition, int timeout_ms) {
  if (!wait_object.blocks()) return -FI_ENOSYS;
  const std::size_t asked_for = counts_ ? reinterpret_cast<std::uintptr_t>(condition) : 1;
  const std::size_t wanted = std::max<std::size_t>(std::min(asked_for, count), 1);
  std::optional<Clock::time_point> end;
  if (timeout_ms >= 0) end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  (void)parent.session->wait([&] { return holds(wanted) || signaled_.exchange(false); }, end);
  return take(buffer, count, sources);
}

int CompletionQueue::signal() {
  signaled_.store(true);
  wait_object.ring();
  parent.session->wake();
  return 0;
}

int CompletionQueue::try_wait() {
  return wait_object.try_wait([this] { return holds(1) || signaled_.exchange(false); });
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& entry) {
  const std::lock_guard hold(lock_);
  if (completions_.empty() || completions_.front().error == 0) return -FI_EAGAIN;
  const Completion& failed = completions_.front();
  entry.op_context = failed.entry.op_context;
  entry.flags = failed.entry.flags;
  entry.len = failed.entry.len;
  entry.buf = failed.entry.buf;
  entry.data = failed.entry.data;
  entry.tag = failed.entry.tag;
  entry.olen = failed.missed;
  entry.err = failed.error < 0 ? errno_of(failed.error) : failed.error;
  entry.prov_errno = failed.error;
  entry.err_data_size = 0;
  completions_.pop_front();
  any_.store(!completions_.empty(), std::memory_order_relaxed);
  --failed_;
  return 1;
}

namespace {

// `code` is what read_error has put into prov_errno.
const char* sentence_of(fid_cq*, int code, const void*, char* buffer, std::size_t length) {
  const char* const sentence = code < 0 ? parc_error_string(code) : fi_strerror(code);
  if (!buffer || length == 0) return sentence;
  std::snprintf(buffer, length, "%s", sentence);
  return buffer;
}

fi_ops_cq queue_calls{
    .size = sizeof(fi_ops_cq),
    .read =
        [](fid_cq* of, void* buffer, std::size_t count) {
          return guarded([&] { return object_of<CompletionQueue>(of).read(buffer, count, nullptr); });
        },
    .readfrom =
        [](fid_cq* of, void* buffer, std::size_t count, fi_addr_t* sources) {
          return guarded([&] { return object_of<CompletionQueue>(of).read(buffer, count, sources); });
        },
    .readerr = [](fid_cq* of, fi_cq_err_entry* entry,
                  std::uint64_t) { return object_of<CompletionQueue>(of).read_error(*entry); },
    .sread =
        [](fid_cq* of, void* buffer, std::size_t count, const void* condition, int timeout) {
          return guarded([&] {
            return object_of<CompletionQueue>(of).wait_and_read(buffer, count, nullptr, condition, timeout);
          });
        },
    .sreadfrom =
        [](fid_cq* of, void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
           int timeout) {
          return guarded([&] {
            return object_of<CompletionQueue>(of).wait_and_read(buffer, count, sources, condition, timeout);
          });
        },
    .signal = [](fid_cq* of) { return object_of<CompletionQueue>(of).signal(); },
    .strerror = sentence_of,
};

} // namespace

int open_completion_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context) {
  if (attributes->format == FI_CQ_FORMAT_UNSPEC) attributes->format = FI_CQ_FORMAT_CONTEXT;
  const auto complete = [&](CompletionQueue& made) {
    made.ops = &queue_calls;
    return made.wait_object.open(made.parent.session, attributes->wait_obj);
  };
  return open_object<CompletionQueue>(FI_CLASS_CQ, context, queue, complete, object_of<Domain>(domain),
                                      *attributes);
}

} // namespace parc::fabric
