// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/endpoint_address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/ranges.h>
#include <span>

namespace parc::daemon {
namespace {

constexpr std::uint8_t version = 1;

// What the text says, in network byte order; an address of zeros is none.
struct [[gnu::packed]] Packed {
  std::uint8_t version;
  std::uint8_t port[2];
  std::uint8_t name[4];
  std::uint8_t identity[8];
  std::uint8_t number[8];
  std::uint8_t v4[2][4];
  std::uint8_t v6[16];
};
static_assert((sizeof(Packed) * 8 + 5) / 6 == endpoint_text);

template <std::size_t bytes> void put(std::uint8_t (&to)[bytes], std::uint64_t number) {
  for (std::size_t i = bytes; i-- != 0; number >>= 8) to[i] = static_cast<std::uint8_t>(number);
}
template <std::size_t bytes> std::uint64_t get(const std::uint8_t (&from)[bytes]) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : from) number = number << 8 | byte;
  return number;
}

// base64url of RFC 4648, without padding.
constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(std::span<const std::uint8_t> bytes) {
  std::string text;
  std::uint32_t bits = 0, held = 0;
  for (const std::uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    for (held += 8; held >= 6; held -= 6) text += digits[bits >> (held - 6) & 63];
  }
  if (held != 0) text += digits[bits << (6 - held) & 63];
  return text;
}

bool decode(std::string_view text, std::span<std::uint8_t> bytes) {
  std::uint32_t bits = 0, held = 0;
  auto to = bytes.begin();
  for (const char digit : text) {
    const auto value = digits.find(digit);
    if (value == digits.npos) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8 && to != bytes.end()) *to++ = static_cast<std::uint8_t>(bits >> (held -= 8));
  }
  return to == bytes.end() && held < 6 && (bits & ((1u << held) - 1)) == 0;
}

template <std::size_t bytes> void unpack(int family, const std::uint8_t (&from)[bytes], EndpointAddress& to) {
  char text[INET6_ADDRSTRLEN];
  const bool none = std::ranges::all_of(from, [](std::uint8_t byte) { return byte == 0; });
  if (!none && inet_ntop(family, from, text, sizeof text) != nullptr) to.hosts.emplace_back(text);
}

} // namespace

// FNV-1a.
std::uint32_t name_tag(std::string_view name) {
  std::uint32_t tag = 0x811c9dc5;
  for (const char c : name) tag = (tag ^ static_cast<std::uint8_t>(c)) * 0x01000193;
  return tag;
}

std::string to_text(const EndpointAddress& address) {
  Packed packed{};
  packed.version = version;
  put(packed.port, address.port);
  put(packed.name, address.name);
  put(packed.identity, address.identity);
  put(packed.number, address.number);
  std::size_t v4 = 0;
  bool v6 = false;
  for (const std::string& host : address.hosts) {
    if (v4 < std::size(packed.v4) && inet_pton(AF_INET, host.c_str(), packed.v4[v4]) == 1) ++v4;
    if (!v6) v6 = inet_pton(AF_INET6, host.c_str(), packed.v6) == 1;
  }
  std::array<std::uint8_t, sizeof packed> bytes;
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return encode(bytes);
}

Result<EndpointAddress> parse_endpoint_address(std::string_view text) {
  std::array<std::uint8_t, sizeof(Packed)> bytes;
  if (text.size() != endpoint_text || !decode(text, bytes))
    return error(EINVAL, "\"{}\" is no address: one has {} letters, digits, '-' and '_'", text,
                 endpoint_text);
  Packed packed;
  std::memcpy(&packed, bytes.data(), sizeof packed);
  if (packed.version != version)
    return error(EINVAL, "\"{}\" is an address of another version of parc ({}, not {})", text, packed.version,
                 version);
  EndpointAddress address{.identity = get(packed.identity),
                          .number = get(packed.number),
                          .name = static_cast<std::uint32_t>(get(packed.name)),
                          .port = static_cast<std::uint16_t>(get(packed.port)),
                          .hosts = {}};
  for (const auto& v4 : packed.v4) unpack(AF_INET, v4, address);
  unpack(AF_INET6, packed.v6, address);
  if (address.identity == 0) return error(EINVAL, "\"{}\" is no address: it names nobody", text);
  return address;
}

std::string in_words(const EndpointAddress& address) {
  const std::string kernel = fmt::format("kernel {:x}", address.identity);
  if (address.port == 0 || address.hosts.empty()) return fmt::format("{}, which listens nowhere", kernel);
  return fmt::format("{}, port {} ({})", fmt::join(address.hosts, " or "), address.port, kernel);
}

} // namespace parc::daemon
