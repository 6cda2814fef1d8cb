// SPDX-License-Identifier: BSD-3-Clause
#include "control/frames.hpp"

#include "system/quote.hpp"

#include <cassert>
#include <cerrno>
#include <set>
#include <vector>

namespace parc::control {
namespace {

constexpr std::size_t prefix_size = 4;

std::uint32_t read_length(std::string_view prefix) {
  std::uint32_t length = 0;
  for (std::size_t i = prefix_size; i-- > 0;) length = length << 8 | static_cast<unsigned char>(prefix[i]);
  return length;
}

bool is_nested_too_deep(std::string_view text) {
  constexpr int deepest = 32;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i; // what it escapes
    if (!in_string && (c == '[' || c == '{') && ++depth > deepest) return true;
    if (!in_string && (c == ']' || c == '}')) --depth;
  }
  return false;
}

} // namespace

Result<nlohmann::json> parse_object(std::string_view text) {
  if (is_nested_too_deep(text)) return error(EPROTO, "it is nested too deep");
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> names; // of each object that has begun
  std::optional<std::string> twice;
  auto value = nlohmann::json::parse(
      text,
      [&](int, Event event, const nlohmann::json& parsed) {
        if (event == Event::object_start) names.emplace_back();
        if (event == Event::object_end) names.pop_back();
        if (event == Event::key && !names.back().insert(parsed.get<std::string>()).second)
          twice = parsed.get<std::string>();
        return true;
      },
      false);
  if (!value.is_object()) return error(EPROTO, "it is not a JSON object");
  if (twice) return error(EPROTO, "it has more than one {}", quote(*twice));
  return value;
}

std::string encode_frame(nlohmann::json message, std::string_view payload) {
  assert(!message.contains("bytes")); // which says how many follow
  if (!payload.empty()) message["bytes"] = payload.size();
  return encode_posted(message, payload);
}

std::string encode_posted(const nlohmann::json& message, std::string_view payload) {
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string all;
  all.reserve(prefix_size + text.size() + payload.size());
  for (std::size_t i = 0; i < prefix_size; ++i) all += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return all.append(text).append(payload);
}

Result<Frame> read_posted(std::string_view bytes) {
  const std::size_t length = bytes.size() < prefix_size ? 0 : read_length(bytes);
  if (bytes.size() < prefix_size || length > bytes.size() - prefix_size)
    return error(EPROTO, "a message is shorter than it says");
  auto message = parse_object(bytes.substr(prefix_size, length));
  if (!message) return std::move(message).error().in("what is said in a message makes no sense");
  return Frame{std::move(message).value(), std::string(bytes.substr(prefix_size + length))};
}

Result<std::optional<Frame>> FrameReader::next() {
  if (!begun_) {
    PARC_TRY(whole, take_text());
    if (!whole) return std::optional<Frame>{};
  }
  if (left().size() < bytes_) return std::optional<Frame>{};
  Frame frame = std::move(*begun_);
  begun_.reset();
  frame.payload = left().substr(0, bytes_);
  consume(bytes_);
  return std::optional<Frame>(std::move(frame));
}

Result<bool> FrameReader::take_text() {
  if (left().size() < prefix_size) return false;
  const std::size_t length = read_length(left());
  if (length > max_frame_text)
    return error(EPROTO, "a frame of {} bytes is longer than {}", length, max_frame_text);
  if (left().size() < prefix_size + length) return false;
  auto message = parse_object(left().substr(prefix_size, length));
  if (!message) return std::move(message).error().in("what is said in a frame makes no sense");
  bytes_ = 0;
  if (const auto bytes = message.value().find("bytes"); bytes != message.value().end()) {
    if (!take_value(*bytes, bytes_, max_frame_bytes))
      return error(EPROTO, "a frame announces more than {} bytes", max_frame_bytes);
    message.value().erase(bytes);
  }
  begun_ = Frame{std::move(message).value(), {}};
  consume(prefix_size + length);
  return true;
}

void FrameReader::consume(std::size_t length) {
  begin_ += length;
  if (begin_ < buffer_.size() && begin_ < buffer_.size() / 2) return;
  buffer_.erase(0, begin_);
  begin_ = 0;
}

std::string kind_of(const nlohmann::json& message) {
  const auto found = message.find("kind");
  return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

} // namespace parc::control
