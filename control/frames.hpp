// SPDX-License-Identifier: BSD-3-Clause
// What a tool and its kernel say to each other over the Unix socket (control/tool_messages.hpp): frames, each
// a JSON object and, where its member "bytes" says so, raw bytes behind it (program output, arguments).
//
//   u32 length of the text, little-endian | the text | the bytes
//
// What kernels say to each other (control/kernel_messages.hpp) looks the same, and has no "bytes": they carry
// it in messages whose lengths are known.
//
// Invariant: a length is checked against its limit before anything is kept for it; what is not a frame is an
// error, after which the connection is of no use.
#pragma once

#include "control/message.hpp"
#include "system/error.hpp"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parc::control {

struct Frame {
  nlohmann::json message; // an object, without "bytes"
  std::string payload;
};

inline constexpr std::size_t max_frame_text = std::size_t{1} << 20;
inline constexpr std::size_t max_frame_bytes = std::size_t{2} << 20;

// Text that is not UTF-8 (a file's name) arrives with the strange bytes replaced; names that matter travel as
// bytes.
[[nodiscard]] std::string encode_frame(nlohmann::json message, std::string_view payload = {});

// What one kernel says to another, and how that is taken apart again.
[[nodiscard]] std::string encode_posted(const nlohmann::json& message, std::string_view payload = {});
[[nodiscard]] Result<Frame> read_posted(std::string_view bytes);

// The object that a text is. An error where it is none, names a member twice, or is nested deeper than
// anything that we say: the library copies and prints what is nested by recursion, and whoever wrote this may
// not be well-meaning.
[[nodiscard]] Result<nlohmann::json> parse_object(std::string_view text);

template <class Message> [[nodiscard]] std::string frame_of(const Message& message) {
  if constexpr (HasPayload<Message>)
    return encode_frame(to_json(message), message.payload);
  else
    return encode_frame(to_json(message));
}

// The kind that it says it is of; empty: none.
[[nodiscard]] std::string kind_of(const nlohmann::json& message);

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

} // namespace parc::control
