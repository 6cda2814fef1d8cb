// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/adoption.hpp"

#include "client/early/guards.hpp"
#include "client/pages.hpp"
#include "parc/parc.h"

#include <algorithm>
#include <csignal>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/single_threaded.h>
#include <sys/uio.h>
#include <unistd.h>

namespace parc::client {
namespace {

constexpr std::uintptr_t coarse_grain = 1 << 20;           // of what is adopted at once, where places are few
constexpr std::size_t room_to_grow = std::size_t{1} << 30; // for the front of a chunk

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

// malloc is the one of the C library: what the program calls by that name lies beside another of its
// functions.
bool malloc_is_glibcs() {
  static const bool is = [] {
    Dl_info allocator{}, library{};
    return dladdr(reinterpret_cast<void*>(&std::malloc), &allocator) != 0 &&
           dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &library) != 0 &&
           allocator.dli_fbase == library.dli_fbase;
  }();
  return is;
}

// Pages that are all zero need no memory at the other place, which is zeros to begin with. Word by word, and
// not through the C library: a sanitizer would object to what lies between the program's objects.
[[gnu::no_sanitize("address", "undefined")]] void copy_pages(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t words = 4096 / sizeof(std::uint64_t);
  const auto* source = static_cast<const volatile std::uint64_t*>(from);
  auto* target = static_cast<volatile std::uint64_t*>(to);
  for (std::size_t page = 0; page < bytes / 4096; ++page, source += words, target += words) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < words; ++i) any |= source[i];
    if (any == 0) continue;
    for (std::size_t i = 0; i < words; ++i) target[i] = source[i];
  }
}

struct DataRange {
  std::uintptr_t begin = 0, end = 0;
};

// The writable part of the executable, without what the loader has made read-only: whole pages.
DataRange data_of_executable() {
  static const DataRange range = [] {
    DataRange found;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* result) {
          DataRange& data = *static_cast<DataRange*>(result);
          std::uintptr_t relro_end = 0;
          for (int i = 0; i < object->dlpi_phnum; ++i) {
            const auto& header = object->dlpi_phdr[i];
            const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
            if (header.p_type == PT_GNU_RELRO) relro_end = begin + header.p_memsz;
            if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0)
              data = {begin, begin + header.p_memsz};
          }
          data.begin = round_down(std::max(data.begin, relro_end), page_size());
          if (relro_end > data.begin) data.begin += page_size();
          data.end = round_up(data.end, page_size());
          return 1; // the first object is the executable
        },
        &found);
    return found;
  }();
  return range;
}

} // namespace

void Adoption::serve(Errand* errand, Guards* guards, const shm::Segment* control) {
  const std::lock_guard hold(lock_);
  errand_ = errand;
  guards_ = guards;
  for (Extent& extent : extents_) extent.known = false;
  if (control == nullptr) return;
  for (auto& uses : uses_) uses.store(0, std::memory_order_relaxed); // the last session's
  if (const auto mapping = mappings_.find(address_of(control->data()))) device_ = mapping->device;
}

bool Adoption::use(const void* memory, std::size_t bytes, bool may_adopt, Adopted& adopted) {
  const std::lock_guard hold(lock_);
  const std::uintptr_t begin = address_of(memory), end = begin + bytes;
  if (!contains(begin, end) && !(may_adopt && adopt(begin, end))) return false;
  for (Extent& extent : extents_) {
    if (!extent.overlaps(begin, end)) continue;
    extent.last = ++uses_so_far_;
    const std::size_t index = index_of(extent);
    if (adopted.has_extent(index)) continue;
    adopted.add(index, extent.id);
    uses_[index].fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

void Adoption::end_uses(const Adopted& adopted) {
  for (std::size_t i = 0; i < Adopted::most; ++i)
    if (adopted.has_extent(i)) uses_[i].fetch_sub(1, std::memory_order_release);
}

bool Adoption::contains(std::uintptr_t begin, std::uintptr_t end) {
  while (begin < end) {
    const Extent* const extent = find(begin);
    if (extent == nullptr || !extent->known) return false;
    const auto mapping = mappings_.find(begin);
    if (!mapping || !is_ours(*mapping, *extent)) return false;
    begin = std::min(mapping->end, extent->end);
  }
  return true;
}

Adoption::Extent* Adoption::find(std::uintptr_t address) {
  const auto found =
      std::ranges::find_if(extents_, [&](const Extent& each) { return each.overlaps(address, address + 1); });
  return found == extents_.end() ? nullptr : &*found;
}

std::size_t Adoption::index_of(const Extent& extent) const {
  return static_cast<std::size_t>(&extent - extents_.data());
}

bool Adoption::in_use(const Extent& extent) const {
  return std::ranges::any_of(extents_, [&](const Extent& each) {
    const bool same = &each == &extent || (extent.chunk != 0 && each.chunk == extent.chunk && !each.gone);
    return same && uses_[index_of(each)].load(std::memory_order_acquire) != 0;
  });
}

bool Adoption::is_ours(const Mapping& mapping, const Extent& extent) const {
  return mapping.shared && device_ && mapping.device == *device_ &&
         mapping.inode == static_cast<std::uint64_t>(extent.id) &&
         mapping.begin - mapping.offset == extent.begin;
}

bool Adoption::is_ours(const Mapping& mapping) const {
  return std::ranges::any_of(
      extents_, [&](const Extent& each) { return !each.free() && !each.gone && is_ours(mapping, each); });
}

// Half of the table for buffers one by one; then neighbours of the heap, and of the data, get one together.
std::uintptr_t Adoption::grain() const {
  const auto used = std::ranges::count_if(extents_, [](const Extent& each) { return !each.free(); });
  return static_cast<std::size_t>(used) < Adopted::most / 2 ? page_size() : coarse_grain;
}

bool Adoption::adopt(std::uintptr_t begin, std::uintptr_t end) {
  if (errand_ == nullptr || !device_) return false;
  drop_stale();
  begin = round_down(begin, page_size());
  end = round_up(end, page_size());
  for (Extent& extent : extents_)
    if (extent.overlaps(begin, end) && !make_good(extent, begin, end)) return false;
  for (std::uintptr_t at = begin; at < end;) {
    if (const Extent* const extent = find(at)) {
      at = extent->end;
      continue;
    }
    const auto range = adoptable(at, end);
    if (!range || holds_a_stack(range->begin, range->end)) return false;
    // Two for a chunk that malloc mapped: where it is cut short, it still is two, down to its first page.
    const std::uintptr_t middle = range->chunk ? range->begin + page_size() : range->end;
    const std::uintptr_t chunk = range->chunk ? range->begin : 0;
    if ((range->chunk && middle == range->end) || !make_places(range->chunk ? 2 : 1)) return false;
    if (!make_extent(range->begin, middle, range->chunk ? Kind::front : Kind::whole, chunk) ||
        (middle != range->end && !make_extent(middle, range->end, Kind::whole, chunk)))
      return false;
    at = range->end;
  }
  return contains(begin, end);
}

// Of an extent of which a part has gone the rest goes, too; what then lies there may be adopted again.
bool Adoption::make_good(Extent& extent, std::uintptr_t begin, std::uintptr_t end) {
  if (!extent.known && !tell_kernel(extent)) return false;
  if (contains(std::max(begin, extent.begin), std::min(end, extent.end))) return true;
  return !in_use(extent) && give_back(extent);
}

// Of this thread, for a while that its pages are read-only: where it is now (a coroutine's stack may come
// from malloc), and where its signals go.
bool Adoption::holds_a_stack(std::uintptr_t begin, std::uintptr_t end) {
  const auto here = address_of(__builtin_frame_address(0));
  stack_t signals{};
  const bool alternate = sigaltstack(nullptr, &signals) == 0 && (signals.ss_flags & SS_DISABLE) == 0;
  const std::uintptr_t low = address_of(signals.ss_sp), high = low + signals.ss_size;
  return (here >= begin && here < end) || (alternate && low < end && begin < high);
}

// What may be adopted around an address, of which something up to `end` is wanted.
std::optional<Adoption::Range> Adoption::adoptable(std::uintptr_t address, std::uintptr_t end) {
  const auto mapping = mappings_.find(address);
  if (!mapping || !mapping->read || !mapping->write || mapping->shared || mapping->stack) return {};
  const std::uintptr_t low = std::max(mapping->begin, round_down(address, grain()));
  const std::uintptr_t high = std::min(mapping->end, round_up(end, grain()));
  if (const DataRange data = data_of_executable(); address >= data.begin && address < data.end)
    return without_extents({std::max(data.begin, low), std::min(data.end, high), false}, address);
  if (mapping->inode != 0 || !malloc_is_glibcs()) return {};
  // What lies behind the buffer may be the heap's top, which another thread's free() cuts off meanwhile.
  if (mapping->heap)
    return without_extents({low, __libc_single_threaded ? high : std::min(high, end), false}, address);
  return mapped_chunk(*mapping, address, end);
}

Adoption::Range Adoption::without_extents(Range range, std::uintptr_t address) const {
  for (const Extent& extent : extents_) {
    if (extent.free() || extent.gone) continue;
    if (extent.end <= address) range.begin = std::max(range.begin, extent.end);
    if (extent.begin > address) range.end = std::min(range.end, extent.begin);
  }
  return range;
}

// malloc keeps the size of a chunk that it mapped, and the mark that it did, in front of what it gives out:
// in the first page of the mapping, which may lie beside others in one of the system's. Looked for through
// the system: where this is no chunk, what lies below may be another's, which its thread is just giving back.
std::optional<Adoption::Range> Adoption::mapped_chunk(const Mapping& mapping, std::uintptr_t address,
                                                      std::uintptr_t end) {
  constexpr std::uint64_t is_mapped = 2, flags = 7;
  struct Front {
    std::uint64_t skipped, size; // what is before the chunk, for alignment; with flags
  };
  constexpr std::size_t at_once = 64;
  std::array<Front, at_once> fronts;
  std::array<iovec, at_once> there;
  std::uintptr_t next = round_down(address, page_size()) + page_size();
  while (next > mapping.begin) {
    const std::size_t count = std::min(at_once, (next - mapping.begin) / page_size());
    for (std::size_t i = 0; i < count; ++i) there[i] = {pointer(next - (i + 1) * page_size()), sizeof(Front)};
    const iovec here{fronts.data(), count * sizeof(Front)};
    const ssize_t got = process_vm_readv(getpid(), &here, 1, there.data(), count, 0);
    for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof(Front); ++i) {
      next -= page_size();
      const std::uint64_t size = fronts[i].size & ~flags;
      if ((fronts[i].size & flags) == is_mapped && fronts[i].skipped == 0 && size % page_size() == 0 &&
          size != 0 && size <= mapping.end - next && next + size >= end)
        return Range{next, next + size, true};
    }
    if (got != static_cast<ssize_t>(here.iov_len)) return {};
  }
  return {};
}

// The kernel attaches first: what it refuses has not been touched.
bool Adoption::make_extent(std::uintptr_t begin, std::uintptr_t end, Kind kind, std::uintptr_t chunk) {
  const auto into = std::ranges::find_if(extents_, &Extent::free); // make_places has seen to it
  const auto segment =
      kind == Kind::front ? shm::Segment::create_sparse(room_to_grow) : shm::Segment::create(end - begin);
  if (!segment) return false;
  Extent made{.begin = begin, .end = end, .id = segment.value().id(), .chunk = chunk};
  if (!tell_kernel(made)) return false;
  const bool attached = guards_->exchange_pages([&] {
    if (mprotect(pointer(begin), end - begin, PROT_READ) != 0) return false;
    copy_pages(segment.value().data(), pointer(begin), end - begin);
    // shmat knows whole segments only.
    void* const there = kind == Kind::front ? mremap(segment.value().data(), end - begin, end - begin,
                                                     MREMAP_MAYMOVE | MREMAP_FIXED, pointer(begin))
                                            : shmat(made.id, pointer(begin), SHM_REMAP);
    if (there == pointer(begin)) return true;
    (void)mprotect(pointer(begin), end - begin, PROT_READ | PROT_WRITE);
    return false;
  });
  if (!attached) {
    tell_kernel_gone(made);
    return false;
  }
  *into = made;
  return true;
}

bool Adoption::tell_kernel(Extent& extent) {
  shm::Request request{};
  request.kind = shm::RequestKind::map;
  request.address = extent.begin;
  request.length = extent.end - extent.begin;
  request.extra = static_cast<std::uint64_t>(extent.id);
  extent.known = errand_->run(request) == PARC_OK;
  return extent.known;
}

void Adoption::tell_kernel_gone(Extent& extent) {
  shm::Request request{};
  request.kind = shm::RequestKind::unmap;
  request.address = extent.begin;
  request.length = extent.end - extent.begin;
  request.flags = shm::flag_no_wait; // a read may still be under way, into memory that was freed
  if (std::exchange(extent.known, false)) (void)errand_->run(request);
}

// Extents of which nothing is attached any more: the kernel has the last mapping, and gives it up.
void Adoption::drop_stale() {
  for (Extent& extent : extents_) {
    bool attached = extent.free() || extent.gone;
    for (std::uintptr_t at = extent.begin; at < extent.end && !attached;) {
      const auto mapping = mappings_.find(at);
      attached = mapping && is_ours(*mapping, extent);
      at = mapping ? mapping->end : at + page_size();
    }
    if (!attached) {
      tell_kernel_gone(extent);
      extent.gone = true;
    }
    if (extent.gone && uses_[index_of(extent)].load(std::memory_order_acquire) == 0) extent = {};
  }
}

// One that was used lately is not given up for another.
bool Adoption::make_places(std::ptrdiff_t count) {
  while (std::ranges::count_if(extents_, &Extent::free) < count) {
    const std::uint64_t lately = std::min<std::uint64_t>(uses_so_far_, 4 * Adopted::most);
    Extent* const old = oldest_unused(uses_so_far_ - lately);
    if (old == nullptr || !give_back(*old)) return false;
  }
  return true;
}

// That was last used before so many uses.
Adoption::Extent* Adoption::oldest_unused(std::uint64_t before) {
  Extent* oldest = nullptr;
  for (Extent& extent : extents_) {
    if (extent.free() || extent.gone || extent.last >= before || in_use(extent)) continue;
    if (oldest == nullptr || extent.last < oldest->last) oldest = &extent;
  }
  return oldest;
}

void Adoption::drop_freed() {
  const std::lock_guard hold(lock_);
  if (errand_ != nullptr) drop_stale();
}

bool Adoption::give_back_one() {
  const std::lock_guard hold(lock_);
  if (errand_ == nullptr) return false;
  drop_stale();
  Extent* const oldest = oldest_unused(UINT64_MAX);
  return oldest != nullptr && give_back(*oldest);
}

// With the other part of its chunk. False: its pages cannot be exchanged. Nobody holds a buffer there that
// the program may not be freeing: where it has other threads, what is copied here could be gone, or be
// another's.
bool Adoption::give_back(Extent& extent) {
  if (!alone()) return false;
  std::uintptr_t begin = extent.begin, end = extent.end;
  const std::uintptr_t chunk = extent.chunk;
  const auto goes = [&](const Extent& each) {
    return &each == &extent || (chunk != 0 && each.chunk == chunk && !each.gone);
  };
  for (const Extent& each : extents_) {
    if (!goes(each)) continue;
    begin = std::min(begin, each.begin);
    end = std::max(end, each.end);
  }
  const auto guarded = [this](const auto& exchange) { return guards_->exchange_pages(exchange); };
  if (holds_a_stack(begin, end) || !make_private(begin, end, guarded)) return false;
  for (Extent& each : extents_) {
    if (!goes(each) || &each == &extent) continue;
    tell_kernel_gone(each);
    each = {};
  }
  tell_kernel_gone(extent);
  extent = {};
  return true;
}

// What is still ours there becomes private memory with the same bytes: one mapping where it has no gaps, as a
// chunk was before. Its end may lie behind `end`, where the chunk has grown.
template <class Exchange>
bool Adoption::make_private(std::uintptr_t begin, std::uintptr_t end, const Exchange& exchange) {
  for (std::uintptr_t at = begin; at < end;) {
    auto mapping = mappings_.find(at);
    if (!mapping || !is_ours(*mapping)) {
      at = mapping ? mapping->end : at + page_size();
      continue;
    }
    std::uintptr_t stop = mapping->end;
    while (stop < end && (mapping = mappings_.find(stop)) && is_ours(*mapping)) stop = mapping->end;
    const std::size_t bytes = stop - at;
    void* const copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return false;
    const bool exchanged = exchange([&] {
      if (mprotect(pointer(at), bytes, PROT_READ) != 0) return false;
      copy_pages(copy, pointer(at), bytes);
      if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(at)) == pointer(at)) return true;
      (void)mprotect(pointer(at), bytes, PROT_READ | PROT_WRITE);
      return false;
    });
    if (!exchanged) {
      munmap(copy, bytes);
      return false;
    }
    at = stop;
  }
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
    if (!extent.free() && !extent.gone && !make_private(extent.begin, extent.end, directly)) _exit(127);
  extents_.fill({});
  errand_ = nullptr;
  for (const int end : fork_pipe_)
    if (end >= 0) close(end);
  lock_.unlock();
}

} // namespace parc::client
