// SPDX-License-Identifier: BSD-3-Clause
// What a tool and its kernel say to each other over the Unix socket: frames, each a JSON object and, where
// its member "bytes" says so, raw bytes behind it (program output, arguments).
//
//   u32 length of the text, little-endian | the text | the bytes
//
// Invariant: a length is checked against its limit before anything is kept for it; what is not a frame is an
// error, after which the connection is of no use.
#pragma once

#include "system/error.hpp"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

struct Frame {
  nlohmann::json message; // an object
  std::string bytes;
};

inline constexpr std::size_t max_frame_text = std::size_t{1} << 20;
inline constexpr std::size_t max_frame_bytes = std::size_t{2} << 20;

// Text that is not UTF-8 (a file's name) arrives with the strange bytes replaced; names that matter travel as
// bytes.
[[nodiscard]] std::string encode_frame(nlohmann::json message, std::string_view bytes = {});

// An object; none: it is not JSON, nothing or something else, or nested deeper than anything that we say: the
// library copies and prints what is nested by recursion, and whoever wrote this may not be well-meaning.
[[nodiscard]] std::optional<nlohmann::json> parse_object(std::string_view text);

class FrameReader {
public:
  void feed(std::string_view data) { buffer_.append(data); }

  // The next whole frame, or none until more has been fed.
  [[nodiscard]] Result<std::optional<Frame>> next();

private:
  [[nodiscard]] std::string_view left() const { return std::string_view(buffer_).substr(begin_); }
  Result<bool> take_text(); // into begun_; false: it is not all there
  void consume(std::size_t length);

  std::string buffer_;
  std::size_t begin_ = 0;      // of what has not been consumed
  std::optional<Frame> begun_; // its text has been consumed, its bytes have not
  std::size_t bytes_ = 0;      // of begun_
};

// Members of an object that somebody else wrote: none when it is missing, of another type, or outside the
// limit.
[[nodiscard]] std::optional<std::uint64_t> number_in(const nlohmann::json& message, const char* key,
                                                     std::uint64_t most);
[[nodiscard]] std::string text_in(const nlohmann::json& message, const char* key); // or empty
[[nodiscard]] std::optional<std::vector<std::uint64_t>> numbers_in(const nlohmann::json& message,
                                                                   const char* key, std::size_t most_numbers);

} // namespace parc
