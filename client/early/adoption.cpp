// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/adoption.hpp"

#include "client/base/pages.hpp"
#include "client/early/guards.hpp"
#include "client/early/page_exchange.hpp"
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

constexpr std::uintptr_t coarse_grain = 1 << 20; // of what is adopted at once, where places are few
constexpr std::uintptr_t most_beside = 2 << 20;  // in a chunk, of what is no buffer
constexpr std::size_t most_scanned = 1 << 16;    // pages in which the front of a chunk is looked for
constexpr int most_around = 64;                  // mappings that its pages may have become
constexpr std::size_t room_to_grow = std::size_t{1} << 30; // for the front of a chunk

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

void Adoption::serve(ControlCalls* control_calls, Guards* guards, const shm::Segment* control) {
  const std::lock_guard hold(lock_);
  control_calls_ = control_calls;
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
  if (control_calls_ == nullptr || !device_) return false;
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
    if (!make_places(1)) return false; // before anything is looked for
    const auto range = adoptable(at, end);
    if (!range || pinned_.overlaps(range->begin, range->end) || holds_a_stack(range->begin, range->end) ||
        is_exposed(range->begin, range->end))
      return false;
    // The front of a chunk for itself: where that is cut short, it still is two, down to its first page.
    const bool front = range->begin == range->chunk;
    const std::uintptr_t middle = front ? range->begin + page_size() : range->end;
    const std::uintptr_t chunk = front ? range->chunk : 0;
    if (middle != range->end && !make_places(2)) return false;
    if (!make_extent(range->begin, middle, front ? Kind::front : Kind::whole, chunk) ||
        (middle != range->end && !make_extent(middle, range->end, Kind::whole, chunk)))
      return false;
    at = range->end;
  }
  return contains(begin, end);
}

bool Adoption::is_exposed(std::uintptr_t begin, std::uintptr_t end) const {
  const std::array range{iovec{pointer(begin), end - begin}};
  return guards_ != nullptr && guards_->exposed().has_any_of(range);
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
  if (guards_ != nullptr) guards_->let_untouched_go(); // what is looked for may lie there
  const auto mapping = mappings_.find(address);
  if (!mapping || !mapping->read || !mapping->write || mapping->execute || mapping->shared || mapping->stack)
    return {};
  const std::uintptr_t low = std::max(mapping->begin, round_down(address, grain()));
  const std::uintptr_t high = std::min(mapping->end, round_up(end, grain()));
  if (const DataRange data = data_of_executable(); address >= data.begin && address < data.end)
    return without_extents({std::max(data.begin, low), std::min(data.end, high)}, address);
  if (mapping->inode != 0 || !malloc_is_glibcs()) return {};
  // What lies behind the buffer may be the heap's top, which another thread's free() cuts off meanwhile.
  if (mapping->heap)
    return without_extents({low, __libc_single_threaded ? high : std::min(high, end)}, address);
  const auto chunk = mapped_chunk(*mapping, address, end);
  if (!chunk) return {};
  const bool whole = chunk->end - chunk->begin <= end - address + most_beside;
  return without_extents({std::max({chunk->begin, mapping->begin, whole ? 0 : low}),
                          std::min({chunk->end, mapping->end, whole ? UINTPTR_MAX : high}), chunk->begin},
                         address);
}

Adoption::Range Adoption::without_extents(Range range, std::uintptr_t address) const {
  for (const Extent& extent : extents_) {
    if (extent.free() || extent.gone) continue;
    if (extent.end <= address) range.begin = std::max(range.begin, extent.end);
    if (extent.begin > address) range.end = std::min(range.end, extent.begin);
  }
  return range;
}

namespace {

// malloc keeps the size of a chunk that it mapped, and the mark that it did, in front of what it gives out:
// in the first page of the mapping, which may lie beside others in one of the system's. Looked for through
// the system: where this is no chunk, what lies there may be another's, which its thread is just giving back.
struct Front {
  std::uint64_t skipped, size_and_flags; // what is before the chunk, for alignment
  [[nodiscard]] std::uint64_t size() const { return size_and_flags & ~std::uint64_t{7}; }
  [[nodiscard]] bool is_one() const {
    constexpr std::uint64_t is_mapped = 2;
    return (size_and_flags & 7) == is_mapped && skipped == 0 && size() % page_size() == 0 && size() != 0;
  }
};

// How many could be read of the pages that end at `last`, downwards.
constexpr std::size_t fronts_at_once = 64;
std::size_t read_fronts(std::array<Front, fronts_at_once>& fronts, std::uintptr_t last, std::size_t count) {
  std::array<iovec, fronts_at_once> there;
  for (std::size_t i = 0; i < count; ++i) there[i] = {pointer(last - i * page_size()), sizeof(Front)};
  const iovec here{fronts.data(), count * sizeof(Front)};
  const ssize_t got = process_vm_readv(getpid(), &here, 1, there.data(), count, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(Front);
}

} // namespace

// The mapping, and what lies beside it without a gap and may be a part of the same chunk: adopted memory is a
// mapping of its own.
Adoption::Range Adoption::around(const Mapping& mapping) {
  Range found{mapping.begin, mapping.end};
  const auto may_belong = [this](const std::optional<Mapping>& each) {
    return each && (is_ours(*each) || (each->read && each->write && !each->shared && each->inode == 0));
  };
  for (int i = 0; i < most_around; ++i) {
    const auto below = mappings_.find(found.begin - 1);
    if (!may_belong(below)) break;
    found.begin = below->begin;
  }
  for (int i = 0; i < most_around; ++i) {
    const auto above = mappings_.find(found.end);
    if (!may_belong(above)) break;
    found.end = above->end;
  }
  return found;
}

// Of chunk after chunk from the lowest, where they lie so; else by a look at every page below the address.
std::optional<Adoption::Range> Adoption::mapped_chunk(const Mapping& mapping, std::uintptr_t address,
                                                      std::uintptr_t end) {
  const bool known_to_be_none = std::ranges::any_of(
      no_chunks_, [&](const Range& each) { return each.begin == mapping.begin && each.end == mapping.end; });
  if (known_to_be_none) return {};
  const Range there = around(mapping);
  std::array<Front, fronts_at_once> fronts;
  const auto holds = [&](std::uintptr_t at) {
    return fronts[0].size() <= there.end - at && at + fronts[0].size() >= end;
  };
  for (std::uintptr_t at = there.begin;
       at <= address && read_fronts(fronts, at, 1) == 1 && fronts[0].is_one(); at += fronts[0].size())
    if (at + fronts[0].size() > address) {
      if (holds(at)) return Range{at, at + fronts[0].size(), at};
      break;
    }
  std::uintptr_t next = round_down(address, page_size());
  const std::uintptr_t lowest = next - std::min(next - there.begin, most_scanned * page_size());
  for (bool readable = true; readable && next >= lowest;) {
    const std::size_t count = std::min(fronts_at_once, (next - lowest) / page_size() + 1);
    const std::size_t got = read_fronts(fronts, next, count);
    for (std::size_t i = 0; i < got; ++i, next -= page_size()) {
      fronts[0] = fronts[i];
      if (fronts[0].is_one() && holds(next)) return Range{next, next + fronts[0].size(), next};
    }
    readable = got == count;
  }
  no_chunks_[next_no_chunk_++ % no_chunks_.size()] = {mapping.begin, mapping.end};
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
    // shmat knows whole segments only. The segment itself stays where it is, whole: libraries that stand
    // before shmdt look for it there.
    const bool there = kind == Kind::front
                           ? put_mapping(segment.value().data(), 0, pointer(begin), end - begin)
                           : put_segment(made.id, pointer(begin));
    if (there) return true;
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
  request.attached.segment = static_cast<std::uint64_t>(extent.id);
  extent.known = control_calls_->run(request) == PARC_OK;
  return extent.known;
}

void Adoption::tell_kernel_gone(Extent& extent) {
  shm::Request request{};
  request.kind = shm::RequestKind::unmap;
  request.address = extent.begin;
  request.length = extent.end - extent.begin;
  request.flags = MessageFlags::no_wait; // a read may still be under way, into memory that was freed
  if (std::exchange(extent.known, false)) (void)control_calls_->run(request);
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
  if (control_calls_ != nullptr) drop_stale();
}

} // namespace parc::client
