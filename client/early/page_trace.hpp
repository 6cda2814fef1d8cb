// SPDX-License-Identifier: BSD-3-Clause
// When a program first touches the pages of what it has read or got (HUNT 2005, section 7), where its trace
// tells of pages (PARC_TRACE_PAGES): a page that has come stays without access until it is touched, or used
// in a call, or its buffer is used again. Only pages that lie whole in the buffer, as what lies beside it is
// others'.
//
// Touches of a transfer page by page, up or down, are one record; of one that nobody has touched before its
// buffer was used again there is one, too. The table is bounded: where a touch would
// leave more stretches than have room, all of the stretch that it lies in is opened, and not heard of.
//
// As the guards' table it makes no system call, and from its construction on takes no memory; it is used
// under the guards' lock, by the fault's handler too. What opens pages is given as `open`, once they are open
// here.
#pragma once

#include "client/early/guard_table.hpp"
#include "client/trace/trace.hpp"

namespace parc::client {

class PageTrace {
public:
  struct Touch {
    std::uintptr_t page;
    std::uint64_t begin, end; // of its fault
    std::uint64_t site;
  };

  // `on`: a trace tells of pages, and the program's system calls are told of (libparc-early.so).
  PageTrace(Trace& trace, bool on, std::uintptr_t page_size);

  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] bool empty() const { return runs_.empty(); }

  // The guard's buffer, of whose pages none is closed here. False: it has no whole page, or there is no room.
  [[nodiscard]] bool add(const Guard& guard);
  // Gives `apply` these pages, stretch by stretch, and whether they are closed. Stops where it returns false.
  template <class Apply> [[nodiscard]] bool each_stretch(const Pages& pages, const Apply& apply) const;
  // False: that page is not closed here.
  template <class Open> bool touch(const Touch& touch, const Open& open);
  // A call is about to use what of these pages is closed; somebody is, and nothing is said of it.
  template <class Open> void use(const Pages& pages, std::uint64_t site, const Open& open);
  template <class Open> void open(const Pages& pages, const Open& open);
  // The same, as the buffer gets other bytes: nobody has needed those that were there.
  template <class Open> void overwrite(const Pages& pages, const Open& open);

private:
  static constexpr std::size_t most_runs = 8192, most_transfers = 256;

  struct Transfer {
    std::uint32_t runs; // 0: it is none
    std::uint32_t pieces;
    std::array<iovec, Guard::most_pieces> piece;
    Adopted adopted;
    bool touched;
    bool opened;           // some of it, for another reason than that it is stored into again
    trace::Record touches; // in a row; `context` is how many
  };
  struct Run { // of pages that are closed
    Pages pages;
    std::uint32_t transfer;
  };
  struct Cut {
    Pages pages;
    Adopted adopted;
  };

  [[nodiscard]] std::size_t first_run(std::uintptr_t address) const;
  [[nodiscard]] Transfer* new_transfer(const Guard& guard);
  void put(std::size_t at, const Run& run);
  void erase(std::size_t at);
  void note(Transfer& transfer, const Touch& touch);
  [[nodiscard]] Cut cut(std::size_t at, const Pages& pages);
  [[nodiscard]] bool goes_on(const trace::Record& touches, std::uint64_t offset, const Touch& touch) const;
  void say(Transfer& transfer);

  Trace& trace_;
  const bool on_;
  const std::uintptr_t page_size_;
  std::vector<Run, OwnMemory<Run>> runs_; // by address
  std::vector<Transfer, OwnMemory<Transfer>> transfers_;
};

template <class Apply> bool PageTrace::each_stretch(const Pages& pages, const Apply& apply) const {
  std::uintptr_t at = pages.begin;
  for (std::size_t i = first_run(at); at < pages.end; ++i) {
    const bool any = i < runs_.size() && runs_[i].pages.begin < pages.end;
    const std::uintptr_t closed = any ? std::max(at, runs_[i].pages.begin) : pages.end;
    if (at < closed && !apply(Pages{at, closed}, false)) return false;
    if (!any) break;
    at = std::min(runs_[i].pages.end, pages.end);
    if (!apply(Pages{closed, at}, true)) return false;
  }
  return true;
}

template <class Open> void PageTrace::open(const Pages& pages, const Open& open) {
  for (std::size_t i = first_run(pages.begin); i < runs_.size() && runs_[i].pages.begin < pages.end; ++i)
    transfers_[runs_[i].transfer].opened = true;
  overwrite(pages, open);
}

template <class Open> void PageTrace::overwrite(const Pages& pages, const Open& open) {
  for (std::size_t i = first_run(pages.begin); i < runs_.size() && runs_[i].pages.begin < pages.end;
       i = first_run(pages.begin)) {
    const Cut opened = cut(i, pages);
    open(opened.adopted, opened.pages);
  }
}

template <class Open> bool PageTrace::touch(const Touch& touch, const Open& open) {
  const std::size_t at = first_run(touch.page);
  if (at == runs_.size() || touch.page < runs_[at].pages.begin) return false;
  note(transfers_[runs_[at].transfer], touch);
  this->open({touch.page, touch.page + page_size_}, open);
  return true;
}

template <class Open> void PageTrace::use(const Pages& pages, std::uint64_t site, const Open& open) {
  const std::uint64_t now = trace::now();
  for (std::size_t i = first_run(pages.begin); i < runs_.size() && runs_[i].pages.begin < pages.end; ++i) {
    const std::uintptr_t end = std::min(pages.end, runs_[i].pages.end);
    for (std::uintptr_t at = std::max(pages.begin, runs_[i].pages.begin); at < end; at += page_size_)
      note(transfers_[runs_[i].transfer], {at, now, now, site});
  }
  this->open(pages, open);
}

} // namespace parc::client
