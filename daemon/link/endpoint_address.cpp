// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/endpoint_address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/ranges.h>
#include <span>

namespace parc::daemon {
namespace {

constexpr std::uint8_t version = 2;
constexpr std::size_t v4_bytes = 4, v6_bytes = 16;

// What the text says, in network byte order.
struct [[gnu::packed]] Packed {
  std::uint8_t version;
  std::uint8_t port[2];
  std::uint8_t name[4];
  std::uint8_t identity[8];
  std::uint8_t number[5];
  std::uint8_t v6;        // the bits of those hosts that are; the first has the lowest
  std::uint8_t hosts[26]; // one behind the other; one of zeros is none, nor is what follows it
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

// As many as there is room for, the first ones first.
void put_hosts(Packed& to, const std::vector<std::string>& hosts) {
  std::span<std::uint8_t> room(to.hosts);
  unsigned host = 0;
  for (const std::string& text : hosts) {
    std::uint8_t bytes[v6_bytes];
    const bool v6 = text.find(':') != text.npos;
    const std::size_t length = v6 ? v6_bytes : v4_bytes;
    if (length > room.size() || inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), bytes) != 1) continue;
    std::ranges::copy(std::span(bytes).first(length), room.begin());
    room = room.subspan(length);
    to.v6 = static_cast<std::uint8_t>(to.v6 | unsigned{v6} << host++);
  }
}

std::vector<std::string> get_hosts(const Packed& from) {
  std::vector<std::string> hosts;
  std::span<const std::uint8_t> rest(from.hosts);
  for (unsigned host = 0;; ++host) {
    const bool v6 = (unsigned{from.v6} >> host & 1) != 0;
    const std::size_t length = v6 ? v6_bytes : v4_bytes;
    if (length > rest.size()) return hosts;
    const auto bytes = rest.first(length);
    rest = rest.subspan(length);
    char text[INET6_ADDRSTRLEN];
    const bool none = std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
    if (none || inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text) == nullptr) return hosts;
    hosts.emplace_back(text);
  }
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
  put_hosts(packed, address.hosts);
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
                          .hosts = get_hosts(packed)};
  if (address.identity == 0) return error(EINVAL, "\"{}\" is no address: it names nobody", text);
  return address;
}

std::string in_words(const EndpointAddress& address) {
  const std::string kernel = fmt::format("kernel {:x}", address.identity);
  if (address.port == 0 || address.hosts.empty()) return fmt::format("{}, which listens nowhere", kernel);
  return fmt::format("{}, port {} ({})", fmt::join(address.hosts, " or "), address.port, kernel);
}

} // namespace parc::daemon
