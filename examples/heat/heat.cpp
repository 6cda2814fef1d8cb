// SPDX-License-Identifier: BSD-3-Clause
// heat: the two-dimensional heat equation on strips of a plate, one strip a rank.
//   heat --variant sequential                      alone
//   heat --variant ping-pong --rank 0 --places ... over plain sockets, started by hand once per rank
//   parc run -n 2 --hosts a:1,b:1 heat             over parc (I.3)
// Strip calculates (strip.hpp), a variant exchanges (sockets.cpp, messages.cpp), run.hpp times and checks.
#include "examples/heat/line.hpp"
#include "examples/heat/messages.hpp"
#include "examples/heat/run.hpp"
#include "examples/heat/sockets.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

namespace {

using namespace parc;
using namespace parc::heat;

struct Options {
  std::string variant = "I.3";
  Shape shape;
  Length length;
  std::string places;
  int socket_buffer = 0;
  bool check = false;
  bool json = false;
  std::string field;
};

void describe(CLI::App& app, Options& options) {
  app.add_option("--variant", options.variant, "How ranks exchange borders")
      ->check(
          CLI::IsMember({"I.1", "I.2", "I.2-nocopy", "I.3", "ping-pong", "exchange", "calc", "sequential"}))
      ->capture_default_str();
  app.add_option("--nx", options.shape.columns, "Columns of each rank")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--ny", options.shape.points, "Points of a column: a border is 8 times as many bytes")
      ->check(CLI::Range(3, 1 << 28))
      ->capture_default_str();
  app.add_option("--work", options.shape.work, "Calculate each column so many times into the same target")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--column-ms", options.shape.column_ms,
                 "Let a column take so long, and sleep for what its calculation leaves of that")
      ->check(CLI::Range(0.0, 1e6));
  app.add_flag(
      "--towards", options.shape.towards,
      "Odd ranks calculate from right to left, so that two neighbours need each other's border last");
  app.add_option("--steps", options.length.steps, "Timed steps")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--warm-up", options.length.warm_up, "Steps before them")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--places", options.places,
                 "ping-pong, exchange, calc: HOST:PORT of every rank, with commas");
  app.add_option("--rank", options.shape.rank, "ping-pong, exchange, calc: which of them this is");
  app.add_option("--ranks", options.shape.ranks, "sequential: the strips to calculate, all of them here")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--socket-buffer", options.socket_buffer,
                 "Bytes of the plain sockets' buffers (0: the system's)");
  app.add_flag("--check", options.check, "Compare with the sequential solution, bit for bit");
  app.add_option("--field", options.field, "Write the temperatures of the whole plate to this file");
  app.add_flag("--json", options.json, "Say it as one line of JSON");
}

void say(const Options& options, const Strip& strip, const Timing& timing,
         const std::optional<Difference>& wrong) {
  const Shape& shape = strip.shape();
  if (options.json) {
    nlohmann::json line = {{"schema", 1},
                           {"variant", options.variant},
                           {"rank", shape.rank},
                           {"ranks", shape.ranks},
                           {"nx", shape.columns},
                           {"ny", shape.points},
                           {"work", shape.work},
                           {"steps", options.length.steps},
                           {"step_ms", timing.step_ms},
                           {"step_ms_min", timing.step_ms_min},
                           {"step_ms_max", timing.step_ms_max},
                           {"calculation_ms", timing.calculation_ms},
                           {"cpu_ms", timing.cpu_ms}};
    if (options.check) line["correct"] = !wrong;
    std::cout << line.dump() + "\n" << std::flush;
    return;
  }
  std::string text =
      fmt::format("rank {} of {}: {} x {} points, {:.3f} ms per step, {:.3f} of it calculation", shape.rank,
                  shape.ranks, shape.columns, shape.points, timing.step_ms, timing.calculation_ms);
  if (options.check && !wrong) text += "; equal to the sequential solution bit for bit";
  std::cout << text + "\n" << std::flush;
}

Result<void> finish(const Options& options, const Strip& strip, const Timing& timing) {
  std::optional<Difference> wrong;
  if (options.check) wrong = compare_with_sequential(strip, options.length.warm_up + options.length.steps);
  if (!options.field.empty()) {
    PARC_TRY(write_field(strip, options.field));
  }
  say(options, strip, timing, wrong);
  if (wrong)
    return error(EDOM,
                 "rank {} is wrong: point {} of column {} is {:.17g}, the sequential solution has {:.17g}",
                 strip.shape().rank, wrong->point, wrong->column, wrong->here, wrong->sequential);
  return success();
}

Result<void> calculate_only(Strip& strip) {
  strip.calculate_all();
  return success();
}

Result<void> run_alone(const Options& options) {
  Shape shape = options.shape;
  shape.columns *= static_cast<std::size_t>(shape.ranks);
  shape.rank = 0;
  shape.ranks = 1;
  Strip strip(shape);
  PARC_TRY(timing, run(strip, calculate_only, options.length));
  return finish(options, strip, timing);
}

Result<void> run_over_sockets(const Options& options) {
  PARC_TRY(places, parse_places(options.places));
  Shape shape = options.shape;
  shape.ranks = static_cast<int>(places.size());
  if (shape.rank < 0 || shape.rank >= shape.ranks)
    return error(EINVAL, "--rank {} has no place: --places names {}", shape.rank, shape.ranks);
  Strip strip(shape);
  PARC_TRY(line, Line::connect(places, shape.rank, options.socket_buffer));
  PARC_TRY(line.barrier());
  const Step step = [&](Strip& s) -> Result<void> {
    if (options.variant == "calc") return calculate_only(s);
    return options.variant == "exchange" ? exchange(line, s) : ping_pong(line, s);
  };
  PARC_TRY(timing, run(strip, step, options.length));
  PARC_TRY(line.barrier());
  return finish(options, strip, timing);
}

Result<void> barrier(parc_context* parc) {
  if (const int code = parc_barrier(parc); code < 0) return error(code, "{}", parc_error_detail());
  return success();
}

struct Leave {
  void operator()(parc_context* context) const { parc_close(context); }
};

Result<void> run_over_parc(const Options& options) {
  parc_context* opened = nullptr;
  if (const int code = parc_open(&opened); code < 0) return error(code, "{}", parc_error_detail());
  const std::unique_ptr<parc_context, Leave> parc(opened);
  if (options.variant == "I.2-nocopy") parc_set_copy_room(parc.get(), 0);

  Shape shape = options.shape;
  shape.rank = parc_rank(parc.get());
  shape.ranks = parc_size(parc.get());
  const std::size_t bytes = travelling_columns * shape.points * sizeof(double);
  auto* travelling = static_cast<double*>(parc_alloc(parc.get(), bytes));
  if (!travelling) return error(ENOMEM, "{}", parc_error_detail());
  Strip strip(shape, travelling);

  using Variant = Result<void> (*)(parc_context*, Strip&);
  static const std::map<std::string, Variant> variants = {
      {"I.1", simultaneous}, {"I.2", borders_first}, {"I.2-nocopy", borders_first_uncopied}, {"I.3", hidden}};
  const Variant variant = variants.at(options.variant);
  PARC_TRY(barrier(parc.get()));
  PARC_TRY(timing, run(
                       strip, [&](Strip& s) { return variant(parc.get(), s); }, options.length));
  PARC_TRY(barrier(parc.get()));
  return finish(options, strip, timing);
}

Result<void> run_variant(const Options& options) {
  if (options.variant == "sequential") return run_alone(options);
  if (options.variant == "ping-pong" || options.variant == "exchange" || options.variant == "calc")
    return run_over_sockets(options);
  return run_over_parc(options);
}

} // namespace

int main(int count, char** arguments) {
  Options options;
  CLI::App app("The heat equation on strips of a plate, one strip a rank");
  describe(app, options);
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  if (const auto result = run_variant(options); !result) {
    std::cerr << "heat: " + result.error().text + "\n";
    return 1;
  }
  return 0;
}
