// SPDX-License-Identifier: BSD-3-Clause
#include "examples/heat/run.hpp"
#include "system/fd.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>

namespace parc::heat {

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double processor_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

} // namespace

Result<Timing> run(Strip& strip, const Step& step, const Length& length) {
  for (int k = 0; k < length.warm_up; ++k) {
    PARC_TRY(step(strip));
    strip.advance();
  }
  std::vector<double> steps, calculations;
  const double processor_before = processor_ms();
  for (int k = 0; k < length.steps; ++k) {
    const double calculated = strip.calculation_seconds();
    const auto start = std::chrono::steady_clock::now();
    PARC_TRY(step(strip));
    steps.push_back(milliseconds_since(start));
    calculations.push_back((strip.calculation_seconds() - calculated) * 1e3);
    strip.advance();
  }
  Timing timing;
  timing.cpu_ms = (processor_ms() - processor_before) / length.steps;
  timing.step_ms = median(steps);
  timing.step_ms_min = *std::min_element(steps.begin(), steps.end());
  timing.step_ms_max = *std::max_element(steps.begin(), steps.end());
  timing.calculation_ms = median(calculations);
  return timing;
}

std::optional<Difference> compare_with_sequential(const Strip& strip, int steps) {
  const Shape& part = strip.shape();
  Shape whole = part;
  whole.columns *= static_cast<std::size_t>(part.ranks);
  whole.ranks = 1;
  whole.rank = 0;
  whole.work = 1;
  Strip plate(whole);
  for (int k = 0; k < steps; ++k) {
    plate.calculate_all();
    plate.advance();
  }
  const std::size_t first = static_cast<std::size_t>(part.rank) * part.columns;
  for (std::size_t x = 1; x <= part.columns; ++x) {
    const double* here = strip.column(x);
    const double* there = plate.column(first + x);
    if (std::memcmp(here, there, strip.column_bytes()) == 0) continue;
    std::size_t y = 0;
    while (std::memcmp(here + y, there + y, sizeof(double)) == 0) ++y;
    return Difference{first + x, y, here[y], there[y]};
  }
  return std::nullopt;
}

Result<void> write_field(const Strip& strip, const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file) return system_error("cannot write the field to {}", path);
  const std::size_t bytes = strip.column_bytes();
  for (std::size_t x = 1; x <= strip.shape().columns; ++x) {
    const std::size_t place =
        (static_cast<std::size_t>(strip.shape().rank) * strip.shape().columns + x - 1) * bytes;
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t wrote = pwrite(file.get(), reinterpret_cast<const char*>(strip.column(x)) + done,
                                   bytes - done, static_cast<off_t>(place + done));
      if (wrote < 0) return system_error("cannot write the field to {}", path);
      done += static_cast<std::size_t>(wrote);
    }
  }
  return success();
}

} // namespace parc::heat
