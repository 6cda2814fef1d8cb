// SPDX-License-Identifier: BSD-3-Clause
// Prometheus' text format, version 0.0.4: a family of samples has one HELP and one TYPE before all of them.
// Invariant: what it prints parses, whatever bytes a label's value has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parc::tools {

class Exposition {
public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // `common`: labels of every sample.
  explicit Exposition(Labels common) : common_(std::move(common)) {}

  // Samples follow. A name that ends in _total is a counter, any other a gauge.
  void family(std::string_view name, std::string_view help);
  void sample(const Labels& labels, double value);
  void sample(const Labels& labels, std::uint64_t value);

  [[nodiscard]] const std::string& text() const { return text_; }

private:
  void sample(const Labels& labels, const std::string& value);
  void add(const Labels& labels, bool& first);

  Labels common_;
  std::string name_; // of the family
  std::string text_;
};

} // namespace parc::tools
