// SPDX-License-Identifier: BSD-3-Clause
#include "client/base/pages.hpp"
#include "client/early/adoption.hpp"
#include "client/early/guards.hpp"
#include "client/early/page_exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace parc::client {

// Without a session nothing is guarded.
template <class Exchange> bool Adoption::exchange_pages(const Exchange& exchange) {
  return guards_ != nullptr ? guards_->exchange_pages(exchange) : exchange();
}

// What is still ours there becomes private memory with the same bytes and the access that the program gave
// it: of this thread alone one mapping with what lies beside it, as it was before. Its end may lie behind
// that of the extent, where a chunk has grown, and is cut off at `end`.
template <class Exchange>
bool Adoption::make_private(std::uintptr_t begin, std::uintptr_t end, How how, const Exchange& exchange) {
  // Looked up once the guards have let go of what a trace keeps closed.
  const auto exchange_next = [&] {
    const auto mapping = mappings_.find(begin);
    const std::uintptr_t stop = mapping ? std::min(mapping->end, end) : begin + page_size();
    const bool exchanged = !mapping || !is_ours(*mapping) || exchange_for_private(begin, stop, *mapping, how);
    begin = stop;
    return exchanged;
  };
  while (begin < end)
    if (!exchange(exchange_next)) return false;
  return true;
}

bool Adoption::exchange_for_private(std::uintptr_t begin, std::uintptr_t end, const Mapping& was, How how) {
  const std::size_t bytes = end - begin;
  const int access = (was.read ? PROT_READ : 0) | (was.write ? PROT_WRITE : 0);
  void* const copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  bool exchanged = false;
  if (mprotect(pointer(begin), bytes, PROT_READ) == 0) {
    copy_pages(copy, pointer(begin), bytes);
    // Nobody sees that it is empty for a moment.
    if (how == How::alone && put_private(pointer(begin), bytes)) {
      copy_pages(pointer(begin), copy, bytes);
      munmap(copy, bytes);
      exchanged = true;
    } else {
      exchanged = put_mapping(copy, bytes, pointer(begin), bytes);
    }
    if (!exchanged || access != (PROT_READ | PROT_WRITE)) (void)mprotect(pointer(begin), bytes, access);
  }
  if (!exchanged) munmap(copy, bytes);
  return exchanged;
}

bool Adoption::overlaps(std::uintptr_t begin, std::uintptr_t end) {
  const std::lock_guard hold(lock_);
  return holds_ours(begin, end);
}

bool Adoption::holds_ours(std::uintptr_t begin, std::uintptr_t end) {
  return std::ranges::any_of(extents_, [&](const Extent& each) { return lies_in(each, begin, end); });
}

bool Adoption::lies_in(const Extent& extent, std::uintptr_t begin, std::uintptr_t end) {
  return !extent.free() && !extent.gone && extent.begin < end && begin < end_of(extent);
}

// Behind its end, where a chunk has grown.
std::uintptr_t Adoption::end_of(const Extent& extent) {
  std::uintptr_t end = extent.end;
  for (auto next = mappings_.find(end); next && is_ours(*next, extent); next = mappings_.find(end))
    end = next->end;
  return end;
}

bool Adoption::change(std::uintptr_t begin, std::uintptr_t end, PageChange how, bool of_arena) {
  const std::lock_guard hold(lock_);
  switch (how) {
  case PageChange::look: return true;
  case PageChange::unprotect: protected_pages.remove(begin, end); return true;
  case PageChange::protect:
    if (of_arena || holds_ours(begin, end)) protected_pages.add(begin, end);
    return true;
  case PageChange::discard: return retreat(begin, end, Unless::used);
  case PageChange::pin:
    (void)retreat(begin, end, Unless::used);
    pinned_.add(begin, end);
    return true;
  case PageChange::unpin: pinned_.remove(begin, end); return true;
  case PageChange::move: (void)retreat(begin, end, Unless::never); [[fallthrough]];
  case PageChange::unmap:
    protected_pages.remove(begin, end);
    pinned_.remove(begin, end);
    return true;
  }
  return true;
}

// Pages that the program holds, and nobody is freeing. Of one that has other threads no more than these, as
// of an extent that is used: what an operation uses lies elsewhere then, or the program breaks its contract.
bool Adoption::retreat(std::uintptr_t begin, std::uintptr_t end, Unless unless) {
  bool all = true;
  for (Extent& extent : extents_) {
    if (!lies_in(extent, begin, end)) continue;
    const bool used = in_use(extent);
    if (!used && give_back(extent)) continue;
    const bool may = !(used && unless == Unless::used) && (guards_ != nullptr || alone());
    all = may &&
          make_private(std::max(begin, extent.begin), std::min(end, end_of(extent)),
                       alone() && !is_exposed(begin, end) ? How::alone : How::beside_others,
                       [this](const auto& exchange) { return exchange_pages(exchange); }) &&
          all;
  }
  return all;
}

bool Adoption::give_back_one() {
  const std::lock_guard hold(lock_);
  if (control_calls_ == nullptr) return false;
  drop_stale();
  Extent* const oldest = oldest_unused(UINT64_MAX);
  return oldest != nullptr && give_back(*oldest);
}

// With the other part of its chunk. False: its pages cannot be exchanged. Nobody holds a buffer there that
// the program may not be freeing: where it has other threads, what is copied here could be gone, or be
// another's.
bool Adoption::give_back(Extent& extent) {
  if (!alone() || pinned_.overlaps(extent.begin, extent.end)) return false;
  std::uintptr_t begin = extent.begin, end = extent.end;
  const std::uintptr_t chunk = extent.chunk;
  const auto goes = [&](const Extent& each) {
    return &each == &extent || (chunk != 0 && each.chunk == chunk && !each.gone);
  };
  for (const Extent& each : extents_) {
    if (!goes(each)) continue;
    begin = std::min(begin, each.begin);
    end = std::max(end, end_of(each));
  }
  const auto guarded = [this](const auto& exchange) { return exchange_pages(exchange); };
  if (holds_a_stack(begin, end) || is_exposed(begin, end) || !make_private(begin, end, How::alone, guarded))
    return false;
  for (Extent& each : extents_) {
    if (!goes(each) || &each == &extent) continue;
    tell_kernel_gone(each);
    each = {};
  }
  tell_kernel_gone(extent);
  extent = {};
  return true;
}

// The parent waits: what it stores before the child has its copies would be seen there.
void Adoption::before_fork() {
  lock_.lock();
  fork_pipe_ = {-1, -1};
  if (has_extents() && pipe2(fork_pipe_.data(), O_CLOEXEC) != 0) fork_pipe_ = {-1, -1};
}

void Adoption::after_fork_in_parent() {
  if (fork_pipe_[0] >= 0) {
    close(fork_pipe_[1]);
    char none;
    while (read(fork_pipe_[0], &none, 1) < 0 && errno == EINTR) continue;
    close(fork_pipe_[0]);
  }
  lock_.unlock();
}

bool Adoption::has_extents() const {
  return std::ranges::any_of(extents_, [](const Extent& each) { return !each.free(); });
}

void Adoption::after_fork_in_child() {
  mappings_.forget();
  if (has_extents() && !mappings_.ready()) _exit(127); // it must not write into its parent's memory
  const auto directly = [](const auto& exchange) { return exchange(); };
  for (const Extent& extent : extents_)
    if (!extent.free() && !extent.gone &&
        !make_private(extent.begin, end_of(extent), How::beside_others, directly))
      _exit(127);
  extents_.fill({});
  control_calls_ = nullptr;
  for (const int end : fork_pipe_)
    if (end >= 0) close(end);
  lock_.unlock();
}

} // namespace parc::client
