// SPDX-License-Identifier: BSD-3-Clause
#include "system/frames.hpp"

#include <cassert>
#include <cerrno>

namespace parc {
namespace {

constexpr std::size_t prefix_size = 4;

std::uint32_t read_length(std::string_view prefix) {
  std::uint32_t length = 0;
  for (std::size_t i = prefix_size; i-- > 0;) length = length << 8 | static_cast<unsigned char>(prefix[i]);
  return length;
}

// A message that never was text may hold a signed number.
std::optional<std::uint64_t> natural(const nlohmann::json& value) {
  if (!value.is_number_integer()) return {};
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return {};
  return value.get<std::uint64_t>();
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

std::optional<nlohmann::json> parse_object(std::string_view text) {
  if (is_nested_too_deep(text)) return {};
  auto value = nlohmann::json::parse(text, nullptr, false);
  return value.is_object() ? std::optional(std::move(value)) : std::nullopt;
}

std::string encode_frame(nlohmann::json message, std::string_view bytes) {
  assert(!message.contains("bytes")); // which says how many follow
  if (!bytes.empty()) message["bytes"] = bytes.size();
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string frame;
  frame.reserve(prefix_size + text.size() + bytes.size());
  for (std::size_t i = 0; i < prefix_size; ++i) frame += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return frame.append(text).append(bytes);
}

Result<std::optional<Frame>> FrameReader::next() {
  if (!begun_) {
    PARC_TRY(whole, take_text());
    if (!whole) return std::optional<Frame>{};
  }
  if (left().size() < bytes_) return std::optional<Frame>{};
  Frame frame = std::move(*begun_);
  begun_.reset();
  frame.bytes = left().substr(0, bytes_);
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
  if (!message) return error(EPROTO, "a frame is not a JSON object");
  bytes_ = 0;
  if (message->contains("bytes")) {
    const auto announced = number_in(*message, "bytes", max_frame_bytes);
    if (!announced) return error(EPROTO, "a frame announces more than {} bytes", max_frame_bytes);
    bytes_ = *announced;
  }
  begun_ = Frame{std::move(*message), {}};
  consume(prefix_size + length);
  return true;
}

void FrameReader::consume(std::size_t length) {
  begin_ += length;
  if (begin_ < buffer_.size() && begin_ < buffer_.size() / 2) return;
  buffer_.erase(0, begin_);
  begin_ = 0;
}

std::optional<std::uint64_t> number_in(const nlohmann::json& message, const char* key, std::uint64_t most) {
  const auto found = message.find(key);
  if (found == message.end()) return {};
  const auto number = natural(*found);
  return number && *number <= most ? number : std::nullopt;
}

std::string text_in(const nlohmann::json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

std::optional<std::vector<std::uint64_t>> numbers_in(const nlohmann::json& message, const char* key,
                                                     std::size_t most_numbers) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_array() || found->size() > most_numbers) return {};
  std::vector<std::uint64_t> numbers;
  for (const auto& element : *found) {
    const auto number = natural(element);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

} // namespace parc
