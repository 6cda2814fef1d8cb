// SPDX-License-Identifier: BSD-3-Clause
// Single transfers: what each costs, and what is done with its bytes meanwhile.
#include "bench/figures/bench.hpp"
#include "bench/one_sided/asker.hpp"
#include "bench/one_sided/work.hpp"

#include <array>
#include <csetjmp>
#include <csignal>
#include <iostream>
#include <sys/mman.h>

namespace parc::bench {
namespace {

void print(const std::string& name, double seconds) {
  std::cout << Json(Measured{name, seconds, 0, {}}).dump() << '\n';
}

sigjmp_buf touched;

// A touch of a page that may not be touched, its handler, and the way back: HUNT's I.
double seconds_of_a_fault(unsigned char* page_of_it) {
  struct sigaction ours {
  }, before{};
  ours.sa_handler = [](int) { siglongjmp(touched, 1); };
  sigaction(SIGSEGV, &ours, &before);
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    mprotect(page_of_it, page, PROT_NONE);
    const double begin = seconds_now();
    if (sigsetjmp(touched, 1) == 0) *static_cast<volatile unsigned char*>(page_of_it) = 1;
    times.push_back(seconds_now() - begin);
    mprotect(page_of_it, page, PROT_READ | PROT_WRITE);
  }
  sigaction(SIGSEGV, &before, nullptr);
  return median(times);
}

double seconds_of_mprotect(unsigned char* memory, std::size_t bytes) {
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    times.push_back(Asker::once([&] { mprotect(memory, bytes, PROT_NONE); }));
    mprotect(memory, bytes, PROT_READ | PROT_WRITE);
    for (std::size_t at = 0; at < bytes; at += page) memory[at] = 1;
  }
  return median(times);
}

} // namespace

// Table 1, and figures 6 and 7: what the terms of section 5.1 are here.
void measure_machine(Asker& asker) {
  std::vector<double> starts;
  for (int i = 0; i < 50; ++i) {
    parc_op get = PARC_OP_NULL;
    starts.push_back(Asker::once([&] { get = asker.start(0, 8); }));
    must(parc_wait(asker.parc(), get, nullptr));
  }
  print("o", median(starts));
  double least = 0, most = 0;
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{4} << 10, std::size_t{16} << 10, std::size_t{64} << 10,
        std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{4} << 20}) {
    most = Asker::time([&] { asker.get(0, bytes); });
    if (bytes == 8) least = most;
    print("a get of " + size_text(bytes), most);
  }
  print("RTT", least);
  print("G", (most - least) / 4096);
  void* const memory =
      mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) must(PARC_ENOMEM);
  auto* const bytes = static_cast<unsigned char*>(memory);
  print("I", seconds_of_a_fault(bytes));
  for (const std::size_t size :
       {page, std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{4} << 20})
    print(size == page ? std::string("mprotect") : "mprotect of " + size_text(size),
          seconds_of_mprotect(bytes, size));
  munmap(memory, window_bytes);
}

// Table 2: a value that is used at once, and two of one page.
void measure_short(Asker& asker) {
  const auto get_early = [&asker](std::size_t at) {
    const parc_place from{1, the_window, at};
    const parc_op get = parc_initget(asker.parc(), &from, asker.to() + at, 8, PARC_EARLY);
    must(get);
    must(parc_wait(asker.parc(), get, nullptr));
  };
  asker.report(
      "8 bytes",
      {{"blocking", [&] { asker.get(0, 8), asker.use(0); }}, {"early", [&] { get_early(0), asker.use(0); }}},
      30);
  asker.report("two gets of 8 bytes in a page",
               {{"blocking", [&] { asker.get(0, 8), asker.get(64, 8), asker.use(0), asker.use(64); }},
                {"non-blocking",
                 [&] {
                   parc_op gets[] = {asker.start(0, 8), asker.start(64, 8)};
                   must(parc_waitall(asker.parc(), 2, gets, nullptr));
                   asker.use(0), asker.use(64);
                 }},
                {"early", [&] { get_early(0), get_early(64), asker.use(0), asker.use(64); }}},
               30);
}

namespace {

void measure_overlap_of(Asker& asker, std::size_t bytes, double part) {
  unsigned char* const own = asker.buffer(bytes);
  const double alone = Asker::time([&] { asker.get(0, bytes); });
  Work work(bytes, alone * part);
  Measured found{size_text(bytes) + ", work " + (part < 1 ? "half" : "equal"), alone, 0, {}};
  found.work = Asker::time([&] { work.on_all(asker.to()); });
  Asker::Ways ways{
      {"blocking", [&] { asker.get(0, bytes), work.on_all(asker.to()); }},
      {"early", [&] { asker.released(own, [&] { asker.get(0, bytes), work.on_all(asker.to()); }); }}};
  for (std::size_t strip :
       {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{256} << 10, bytes / 2}) {
    if (strip >= bytes || bytes / strip > 256 ||
        (strip == bytes / 2 && ways.back().first == "strips of " + size_text(strip)))
      continue;
    ways.emplace_back("strips of " + size_text(strip), [&, strip] {
      asker.started().clear();
      for (std::size_t at = 0; at < bytes; at += strip) asker.started().push_back(asker.start(at, strip));
      for (std::size_t i = 0; i < asker.started().size(); ++i) {
        asker.wait(i);
        work.on(asker.to(), i * strip, (i + 1) * strip);
      }
    });
  }
  asker.report(std::move(found), ways);
}

// Something else is calculated before its bytes are used (figures 8 and 9, "independent overlap").
void measure_independent_of(Asker& asker, std::size_t bytes) {
  unsigned char* const own = asker.buffer(bytes);
  const double alone = Asker::time([&] { asker.get(0, bytes); });
  Work copy(bytes, 0), other(bytes, alone * 1.1);
  std::vector<unsigned char> apart(bytes);
  const auto calculate = [&] { other.on_all(apart.data()); };
  Measured found{size_text(bytes) + ", work elsewhere", alone, 0, {}};
  found.work = Asker::time([&] { calculate(), copy.on_all(asker.to()); });
  const auto program = [&] { asker.get(0, bytes), calculate(), copy.on_all(asker.to()); };
  asker.report(std::move(found), {{"blocking", program},
                                  {"non-blocking",
                                   [&] {
                                     const parc_op get = asker.start(0, bytes);
                                     calculate();
                                     must(parc_wait(asker.parc(), get, nullptr));
                                     copy.on_all(asker.to());
                                   }},
                                  {"early", [&] { asker.released(own, program); }}});
}

} // namespace

// Figures 8 and 9: what was got is copied and calculated with, from its first page to its last.
void measure_overlap(Asker& asker) {
  constexpr std::array<std::size_t, 6> sizes{32, 64, 128, 256, 1024, 4096};
  for (const std::size_t kib : sizes)
    for (const double part : {0.5, 1.0}) measure_overlap_of(asker, kib << 10, part);
  for (const std::size_t kib : sizes) measure_independent_of(asker, kib << 10);
}

namespace {

double several(Asker& asker, std::size_t bytes) {
  std::vector<double> times;
  const double end = seconds_now() + computing / 2;
  do times.push_back(Asker::once([&] { asker.get(0, bytes); }));
  while (seconds_now() < end);
  return median(times);
}

} // namespace

// The kernel of the target answers while its program computes.
void measure_computing(Asker& asker) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
    Measured found{size_text(bytes), 0, 0, {}};
    for (int i = 0; i < asker.repeats(); ++i) {
      found.samples["idle"].push_back(several(asker, bytes));
      must(parc_write(asker.parc(), 1, tag_compute, nullptr, 0));
      asker.get(0, 8); // behind which the program has been told
      found.samples["computing"].push_back(several(asker, bytes));
      must(parc_read(asker.parc(), 1, tag_compute, nullptr, 0, nullptr));
    }
    std::cout << Json(found).dump() << '\n';
  }
}

// Until the target has heard of what was put, and said so.
void measure_flag(Asker& asker) {
  const auto put = [&asker](std::size_t bytes) {
    const parc_place to{1, the_window, 0};
    must(parc_put(asker.parc(), &to, asker.to(), bytes));
  };
  const auto tell = [&asker] {
    must(parc_write(asker.parc(), 1, tag_flag, nullptr, 0));
    must(parc_read(asker.parc(), 1, tag_flag, nullptr, 0, nullptr));
  };
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10})
    asker.report("put of " + size_text(bytes) + " and a message",
                 {{"message", [&, bytes] { put(bytes), tell(); }},
                  {"quiet, message", [&, bytes] { put(bytes), must(parc_quiet(asker.parc())), tell(); }}},
                 30);
}

} // namespace parc::bench
