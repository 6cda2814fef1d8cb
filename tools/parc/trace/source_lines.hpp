// SPDX-License-Identifier: BSD-3-Clause
// Places of a traced program as its source has them: file and line by the debug information of what they lie
// in, where that is here and has any. A place in a header of parc's or of the compiler's that is inlined is
// that of who called it.
#pragma once

#include "tools/parc/trace/trace.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace parc::tools {

class SourceLines {
public:
  SourceLines();
  ~SourceLines();

  // "solver.c:92"; where no line is known "solver+0x1234 exchange(int)", or what the trace has of that. A
  // file below the working directory is named from there.
  [[nodiscard]] std::string place(const RankTrace& rank, std::uint64_t site);

  // Why lines of some places are not known, a sentence for each object; empty: all are.
  [[nodiscard]] const std::map<std::string, std::string>& missing() const { return missing_; }

private:
  class Object;
  struct Offset {
    std::uint64_t base, offset;
    const std::string* path;
  };
  [[nodiscard]] static std::optional<Offset> offset_of(const RankTrace& rank, std::uint64_t site);
  [[nodiscard]] std::string line_of(const RankTrace& rank, std::uint64_t site); // empty: not known
  [[nodiscard]] std::string name_of(const RankTrace& rank, std::uint64_t site, const std::string& text);
  [[nodiscard]] Object& object(const std::string& path);

  std::map<std::string, std::unique_ptr<Object>> objects_;
  std::map<std::string, std::string> missing_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> known_; // object and offset
  std::map<std::string, std::string> named_;                           // as ranks have it
};

} // namespace parc::tools
