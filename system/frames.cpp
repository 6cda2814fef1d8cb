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

} // namespace

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
  if (left().size() < prefix_size) return std::optional<Frame>{};
  const std::size_t length = read_length(left());
  if (length > max_frame_text)
    return error(EPROTO, "a frame of {} bytes is longer than {}", length, max_frame_text);
  if (left().size() < prefix_size + length) return std::optional<Frame>{};
  const std::string_view text = left().substr(prefix_size, length);
  Frame frame{nlohmann::json::parse(text.begin(), text.end(), nullptr, false), {}};
  if (!frame.message.is_object()) return error(EPROTO, "a frame is not a JSON object");
  std::size_t bytes = 0;
  if (frame.message.contains("bytes")) {
    const auto announced = number_in(frame.message, "bytes", max_frame_bytes);
    if (!announced) return error(EPROTO, "a frame announces more than {} bytes", max_frame_bytes);
    bytes = *announced;
  }
  if (left().size() < prefix_size + length + bytes) return std::optional<Frame>{};
  frame.bytes = left().substr(prefix_size + length, bytes);
  consume(prefix_size + length + bytes);
  return std::optional<Frame>(std::move(frame));
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
