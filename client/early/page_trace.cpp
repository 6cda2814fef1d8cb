// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/page_trace.hpp"

#include <cassert>

namespace parc::client {

PageTrace::PageTrace(Trace& trace, bool on, std::uintptr_t page_size)
    : trace_(trace), on_(on), page_size_(page_size) {
  if (!on) return;
  runs_.reserve(most_runs);
  transfers_.resize(most_transfers);
}

// That ends behind the address.
std::size_t PageTrace::first_run(std::uintptr_t address) const {
  const auto found =
      std::ranges::upper_bound(runs_, address, {}, [](const Run& run) { return run.pages.end; });
  return static_cast<std::size_t>(found - runs_.begin());
}

bool PageTrace::add(const Guard& guard) {
  assert(on_);
  if (runs_.size() + guard.pieces > most_runs) return false;
  Transfer* const transfer = new_transfer(guard);
  if (transfer == nullptr) return false;
  std::uint64_t left = guard.length;
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    const std::uintptr_t begin = address_of(guard.piece[i].iov_base);
    const std::uint64_t bytes = std::min<std::uint64_t>(left, guard.piece[i].iov_len);
    left -= bytes;
    const Pages pages{round_up(begin, page_size_), round_down(begin + bytes, page_size_)};
    if (pages.empty()) continue;
    const std::size_t at = first_run(pages.begin);
    if (at < runs_.size() && runs_[at].pages.begin < pages.end) continue; // of two pieces the first
    put(at, {pages, static_cast<std::uint32_t>(transfer - transfers_.data())});
  }
  return transfer->runs != 0;
}

PageTrace::Transfer* PageTrace::new_transfer(const Guard& guard) {
  const auto found = std::ranges::find(transfers_, 0u, &Transfer::runs);
  if (found == transfers_.end()) return nullptr;
  *found = {.runs = 0,
            .pieces = guard.pieces,
            .piece = guard.piece,
            .adopted = guard.adopted,
            .touched = false,
            .opened = false,
            .touches = {}};
  found->touches.id = static_cast<std::uint64_t>(guard.id);
  return &*found;
}

void PageTrace::put(std::size_t at, const Run& run) {
  assert(runs_.size() < most_runs);
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(at), run);
  ++transfers_[run.transfer].runs;
}

void PageTrace::erase(std::size_t at) {
  Transfer& transfer = transfers_[runs_[at].transfer];
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at));
  if (--transfer.runs != 0) return;
  say(transfer);
  if (transfer.touched || transfer.opened) return;
  transfer.touches.kind = trace::Kind::touches;
  transfer.touches.thread = Trace::thread();
  transfer.touches.begin = transfer.touches.end = trace::now();
  trace_.add(transfer.touches);
}

// What of a run is opened.
PageTrace::Cut PageTrace::cut(std::size_t at, const Pages& pages) {
  assert(pages.begin % page_size_ == 0 && (pages.end % page_size_ == 0 || pages.end == UINTPTR_MAX));
  const Run run = runs_[at];
  Pages opened{std::max(run.pages.begin, pages.begin), std::min(run.pages.end, pages.end)};
  const bool below = run.pages.begin < opened.begin, above = opened.end < run.pages.end;
  Cut result{opened, transfers_[run.transfer].adopted};
  if (below && above && runs_.size() == most_runs) {
    result.pages = run.pages;
    erase(at);
  } else if (below && above) {
    runs_[at].pages.end = opened.begin;
    put(at + 1, {{opened.end, run.pages.end}, run.transfer});
  } else if (below) {
    runs_[at].pages.end = opened.begin;
  } else if (above) {
    runs_[at].pages.begin = opened.end;
  } else {
    erase(at);
  }
  return result;
}

void PageTrace::note(Transfer& transfer, const Touch& touch) {
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < transfer.pieces; offset += transfer.piece[i++].iov_len) {
    const std::uintptr_t begin = address_of(transfer.piece[i].iov_base);
    if (begin <= touch.page && touch.page < begin + transfer.piece[i].iov_len) {
      offset += touch.page - begin;
      break;
    }
  }
  trace::Record& touches = transfer.touches;
  if (touches.context != 0 && !goes_on(touches, offset, touch)) say(transfer);
  if (touches.context == 0) {
    touches.kind = trace::Kind::touches;
    touches.thread = Trace::thread();
    touches.begin = touch.begin;
    touches.address = touch.page;
    touches.bytes = offset;
    touches.site = touch.site;
  }
  transfer.touched = true;
  ++touches.context;
  touches.first = offset;
  touches.end = touch.end;
  touches.released += touch.end - touch.begin;
}

// The next page in the same direction, and no pause that the others have not had.
bool PageTrace::goes_on(const trace::Record& touches, std::uint64_t offset, const Touch& touch) const {
  if (touches.thread != Trace::thread()) return false;
  const std::uint64_t step = offset - touches.first, before = touches.first - touches.bytes; // modulo 2^64
  if (step != page_size_ && step != 0 - page_size_) return false;
  if (touches.context == 1) return true;
  constexpr std::uint64_t pause = 20'000;                 // ns
  const std::uint64_t took = touches.end - touches.begin; // a handler's touch lies in another's fault
  const std::uint64_t mean = (took - std::min(took, touches.released)) / (touches.context - 1);
  return (step == page_size_) == (before >> 63 == 0) && touch.begin - touches.end <= 8 * mean + pause;
}

void PageTrace::say(Transfer& transfer) {
  if (transfer.touches.context == 0) return;
  const std::uint64_t id = transfer.touches.id;
  trace_.add(transfer.touches);
  transfer.touches = {};
  transfer.touches.id = id;
}

} // namespace parc::client
