// SPDX-License-Identifier: BSD-3-Clause
// What programs do with several transfers (HUNT 2005, section 6.2): the exchanges of FT, IS and MG, one and
// many, and puts whose source is used again.
#include "bench/one_sided/asker.hpp"
#include "bench/one_sided/work.hpp"

#include <climits>
#include <cstring>

namespace parc::bench {
namespace {

// All gets in strips, whatever is under way: HUNT's message decomposition alone.
constexpr Release decomposed{.order = PARC_ORDER_UP, .strip = 0, .train = INT_MAX};
// Beyond two under way they are a train.
constexpr Release scheduled{.order = PARC_ORDER_UP, .strip = 0, .train = 2};

std::string named(const std::string& what, double part) {
  return what + ", work " + (part < 1 ? "half" : "equal");
}

void measure_ft_of(Asker& asker, std::size_t count, std::size_t bytes, double part) {
  unsigned char* const own = asker.buffer(count * bytes);
  const double alone = Asker::time([&] { asker.start_all(count, bytes), asker.wait_all(); });
  Work work(bytes, alone / static_cast<double>(count) * part);
  const auto work_on = [&](std::size_t i) { work.on_all(asker.to() + i * bytes); };
  Measured found{named(std::to_string(count) + " gets of " + size_text(bytes), part), alone, 0, {}};
  found.work = Asker::time([&] {
    for (std::size_t i = 0; i < count; ++i) work_on(i);
  });
  const auto program = [&] {
    for (std::size_t i = 0; i < count; ++i) asker.get(i * bytes, bytes);
    for (std::size_t i = 0; i < count; ++i) work_on(i);
  };
  const auto non_blocking = [&] {
    asker.start_all(count, bytes);
    for (std::size_t i = 0; i < count; ++i) {
      asker.wait(i);
      work_on(i);
    }
  };
  asker.report(std::move(found), {{"blocking", program},
                                  {"non-blocking", non_blocking},
                                  {"early", [&] { asker.released(own, program); }},
                                  {"decomposed", [&] { asker.released(own, decomposed, program); }},
                                  {"scheduled", [&] { asker.released(own, scheduled, program); }}});
}

} // namespace

// A transposition: everything comes, and then there is work on each part.
void measure_ft(Asker& asker) {
  for (const double part : {0.5, 1.0}) {
    measure_ft_of(asker, 8, 256 << 10, part);
    measure_ft_of(asker, 16, 128 << 10, part);
    measure_ft_of(asker, 16, 16 << 10, part);
  }
}

// A sort: of each of four, how many keys there are, and then these, which are counted. The program is one
// that does not block, already (section 5.3, the third rule).
void measure_is(Asker& asker) {
  constexpr std::size_t parts = 4, counts = 2048, keys = std::size_t{256} << 10, apart = keys + page;
  for (const double part : {0.5, 1.0}) {
    unsigned char* const own = asker.buffer(parts * apart);
    const auto start_keys = [&] {
      asker.started().clear();
      for (std::size_t i = 0; i < parts; ++i) asker.started().push_back(asker.start(i * apart + page, keys));
    };
    const double alone = Asker::time([&] { start_keys(), asker.wait_all(); });
    Work work(keys, alone / parts * part);
    const auto count_keys = [&](std::size_t i) { work.on_all(asker.to() + i * apart + page); };
    Measured found{named("counts, and 4 times 256 KiB of keys", part), alone, 0, {}};
    found.work = Asker::time([&] {
      for (std::size_t i = 0; i < parts; ++i) count_keys(i);
    });
    const auto blocking = [&] {
      for (std::size_t i = 0; i < parts; ++i) asker.get(i * apart, counts), asker.use(i * apart);
      for (std::size_t i = 0; i < parts; ++i) asker.get(i * apart + page, keys);
      for (std::size_t i = 0; i < parts; ++i) count_keys(i);
    };
    const auto non_blocking = [&] {
      asker.started().clear();
      for (std::size_t i = 0; i < parts; ++i) asker.started().push_back(asker.start(i * apart, counts));
      asker.wait_all();
      for (std::size_t i = 0; i < parts; ++i) asker.use(i * apart);
      start_keys();
      for (std::size_t i = 0; i < parts; ++i) {
        asker.wait(i);
        count_keys(i);
      }
    };
    asker.report(std::move(found), {{"blocking", blocking},
                                    {"non-blocking", non_blocking},
                                    {"early", [&] { asker.released(own, blocking); }},
                                    {"decomposed", [&] { asker.released(own, decomposed, blocking); }},
                                    {"non-blocking, early", [&] { asker.released(own, non_blocking); }}});
  }
}

namespace {

// Every other stretch of the target's window.
struct Face {
  std::size_t row, rows;
  [[nodiscard]] std::size_t bytes() const { return row * rows; }
  [[nodiscard]] std::int64_t stride() const { return static_cast<std::int64_t>(2 * row); }
};

void get_face(Asker& asker, const Face& face) {
  const parc_place from{1, the_window, 0};
  const iovec whole{asker.to(), face.bytes()};
  const parc_op get = parc_initget_rows(asker.parc(), &from, face.row, face.stride(), &whole, 1, 0);
  must(get);
  must(parc_wait(asker.parc(), get, nullptr));
}

} // namespace

// A cycle of grids, each of a quarter of the one before: a face of each, and work on it.
void measure_mg(Asker& asker) {
  constexpr Face faces[] = {{512, 512}, {256, 256}, {128, 128}, {64, 64}, {32, 32}, {8, 4}};
  std::vector<Work> works;
  std::vector<unsigned char*> own;
  double get = 0;
  for (const Face& face : faces) {
    const double alone = Asker::time([&] { get_face(asker, face); });
    get += alone;
    works.emplace_back(face.bytes(), alone);
    own.push_back(asker.buffer(window_bytes)); // whose pages are its own
  }
  const auto stage = [&](std::size_t i) { get_face(asker, faces[i]), works[i].on_all(asker.to()); };
  const auto early = [&](std::size_t i) { asker.released(own[i], [&] { stage(i); }); };
  for (std::size_t i = 0; i < std::size(faces); ++i)
    asker.report("a face of " + size_text(faces[i].bytes()) + " in " + std::to_string(faces[i].rows) +
                     " rows",
                 {{"blocking", [&, i] { stage(i); }}, {"early", [&, i] { early(i); }}}, 9);
  asker.report(Measured{"six faces", get, get, {}}, {{"blocking",
                                                      [&] {
                                                        for (std::size_t i = 0; i < std::size(faces); ++i)
                                                          stage(i);
                                                      }},
                                                     {"early", [&] {
                                                        for (std::size_t i = 0; i < std::size(faces); ++i)
                                                          early(i);
                                                      }}});
}

namespace {

// Puts whose source is written again behind other work: what there is to hide is the put.
void report_puts(Asker& asker, const std::string& name, int targets, std::size_t bytes) {
  parc_context* const parc = asker.parc();
  unsigned char* const blocking = asker.buffer(static_cast<std::size_t>(targets) * bytes);
  unsigned char* const guarded = asker.buffer(static_cast<std::size_t>(targets) * bytes);
  unsigned char round = 0;
  const auto put_all = [&](const unsigned char* source) {
    for (int target = 1; target <= targets; ++target) {
      const parc_place to{target, the_window, 0};
      must(parc_put(parc, &to, source + static_cast<std::size_t>(target - 1) * bytes, bytes));
    }
  };
  const auto without_copies = [&](const std::function<void()>& what) {
    must(parc_set_copy_room(parc, 0)); // a wait lasts until the network has taken it
    what();
    must(parc_set_copy_room(parc, std::size_t{64} << 20));
  };
  const double alone =
      Asker::time([&] { without_copies([&] { put_all(blocking), must(parc_quiet(parc)); }); });
  Work work(bytes, alone);
  std::vector<unsigned char> other(bytes);
  const auto program = [&](unsigned char* source) {
    put_all(source);
    work.on_all(other.data());
    std::memset(source, ++round, static_cast<std::size_t>(targets) * bytes);
    must(parc_quiet(parc));
  };
  Measured found{name, alone, 0, {}};
  found.work = Asker::time([&] {
    work.on_all(other.data());
    std::memset(blocking, 1, static_cast<std::size_t>(targets) * bytes);
  });
  asker.report(std::move(found), {{"blocking", [&] { without_copies([&] { program(blocking); }); }},
                                  {"copied", [&] { program(blocking); }},
                                  {"guarded", [&] { asker.released(guarded, [&] { program(guarded); }); }}});
}

} // namespace

// Its source is overwritten: "similar trends for write".
void measure_puts(Asker& asker) {
  report_puts(asker, "put of " + size_text(1 << 20), 1, 1 << 20);
}

// One and the others: what it gathers, and what it scatters.
void measure_many(Asker& asker) {
  const int targets = parc_size(asker.parc()) - 1;
  const auto all = static_cast<std::size_t>(targets);
  constexpr std::size_t bytes = std::size_t{256} << 10;
  const auto start_all = [&] {
    asker.started().clear();
    for (std::size_t i = 0; i < all; ++i)
      asker.started().push_back(asker.start_to(i * bytes, 0, bytes, static_cast<int>(i) + 1));
  };
  const double alone = Asker::time([&] { start_all(), asker.wait_all(); });
  for (const double part : {0.5, 1.0}) {
    unsigned char* const own = asker.buffer(all * bytes);
    Work work(bytes, alone / static_cast<double>(all) * part);
    const auto work_on = [&](std::size_t i) { work.on_all(asker.to() + i * bytes); };
    const auto program = [&] {
      for (std::size_t i = 0; i < all; ++i) asker.get_to(i * bytes, 0, bytes, static_cast<int>(i) + 1);
      for (std::size_t i = 0; i < all; ++i) work_on(i);
    };
    Measured found{named("gather of 256 KiB from " + std::to_string(targets), part), alone, 0, {}};
    found.work = Asker::time([&] {
      for (std::size_t i = 0; i < all; ++i) work_on(i);
    });
    asker.report(std::move(found), {{"blocking", program},
                                    {"non-blocking",
                                     [&] {
                                       start_all();
                                       for (std::size_t i = 0; i < all; ++i) {
                                         asker.wait(i);
                                         work_on(i);
                                       }
                                     }},
                                    {"early", [&] { asker.released(own, program); }},
                                    {"scheduled", [&] { asker.released(own, scheduled, program); }}});
  }
  report_puts(asker, "scatter of " + size_text(bytes) + " to " + std::to_string(targets), targets, bytes);
}

} // namespace parc::bench
