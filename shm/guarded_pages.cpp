// SPDX-License-Identifier: BSD-3-Clause
#include "shm/guarded_pages.hpp"

#include <algorithm>
#include <cassert>
#include <sys/mman.h>
#include <utility>

namespace parc::shm {
namespace {

using Clock = std::chrono::steady_clock;

// As parc_alloc's memory: what is guarded is a part of a segment, so that closing it makes three mappings of
// one.
constexpr std::size_t before_it = std::size_t{1} << 20, behind_it = std::size_t{1} << 20;

// What the handler knows. It runs in the thread that touched, between two of its instructions.
struct Guarded {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  Clock::time_point entered, left;
};
Guarded guarded;

bool protect(int access) {
  return mprotect(guarded.begin, guarded.bytes, access) == 0;
}

void open_pages(int signal, siginfo_t* about, void*) {
  guarded.entered = Clock::now();
  const auto* const address = static_cast<std::byte*>(about->si_addr);
  const bool ours = address >= guarded.begin && address < guarded.begin + guarded.bytes;
  if (!ours || !protect(PROT_READ | PROT_WRITE)) std::signal(signal, SIG_DFL); // the next one is the end
  guarded.left = Clock::now();
}

} // namespace

Result<GuardedPages> GuardedPages::make(std::size_t bytes) {
  assert(guarded.begin == nullptr);
  PARC_TRY(segment, Segment::create(before_it + bytes + behind_it));
  std::fill_n(segment.data(), segment.size(), std::byte{1}); // every page is there
  return GuardedPages(std::move(segment), bytes);
}

GuardedPages::GuardedPages(Segment segment, std::size_t bytes) : segment_(std::move(segment)), bytes_(bytes) {
  guarded = {segment_.data() + before_it, bytes_, {}, {}};
  struct sigaction action {};
  action.sa_sigaction = open_pages;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before_);
}

GuardedPages::GuardedPages(GuardedPages&& other) noexcept
    : segment_(std::move(other.segment_)), bytes_(std::exchange(other.bytes_, 0)), before_(other.before_) {}

GuardedPages::~GuardedPages() {
  if (bytes_ == 0) return; // moved from
  sigaction(SIGSEGV, &before_, nullptr);
  guarded = {};
}

bool GuardedPages::close() {
  return protect(PROT_NONE);
}

bool GuardedPages::open() {
  return protect(PROT_READ | PROT_WRITE);
}

void GuardedPages::touch() {
  *static_cast<volatile std::byte*>(guarded.begin) = std::byte{2};
}

std::chrono::nanoseconds GuardedPages::time_fault() {
  const auto begin = Clock::now();
  touch();
  return guarded.entered - begin + (Clock::now() - guarded.left);
}

} // namespace parc::shm
