// SPDX-License-Identifier: BSD-3-Clause
// The main function of a bench, as far as all benches have the same: standard streams, the command line,
// where it measures, and how it ends.
#pragma once

#include "bench/figures/figures.hpp"
#include "bench/figures/places.hpp"

#include <functional>

namespace parc::bench {

// Where a bench measures.
struct Place {
  std::string_view preset = {}; // of wanlink's, whose hosts it emulates; none: two hosts on loopback
  std::size_t hosts = 2;
  bool kernels = true; // of the usual settings, on all of them; else it starts its own
};

class Bench : public CLI::App { // whose options are added to it
public:
  // `name` is the program's, "bench-" and more.
  Bench(const char* name, const char* about);

  // The program ends here where its command line asks for help, or is wrong.
  void begin(int count, char** arguments);

  // These return the exit status: 1 after a sentence where nothing could be measured, or what was could not
  // be written. In an emulation the process becomes `wanlink run`, with the same program and arguments in it.
  [[nodiscard]] int end(const Result<void>& result) const;
  [[nodiscard]] int run(const Place& place, const std::function<Result<void>(const Hosts&)>& use) const;
  [[nodiscard]] int measure(const Place& place, const Options& options,
                            const std::function<Result<std::vector<Row>>(const Hosts&)>& rows) const;

private:
  char** arguments_ = nullptr;
};

} // namespace parc::bench
