// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/address.hpp"

#include <charconv>
#include <cstring>

namespace parc::fabric {
namespace {

template <class Number> bool number_from(std::string_view text, Number& number, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, base);
  return failure == std::errc() && rest == end;
}

template <class Number> void append_number(std::string& text, Number number, int base = 10) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr);
}

} // namespace

// HOST[:PORT]/IDENTITY/NUMBER
bool read_address(std::string_view text, Address& address) {
  const auto last = text.rfind('/');
  if (last == text.npos || last == 0) return false;
  const auto middle = text.rfind('/', last - 1);
  if (middle == text.npos || !number_from(text.substr(last + 1), address.number) ||
      !number_from(text.substr(middle + 1, last - middle - 1), address.identity, 16))
    return false;
  std::string_view host = text.substr(0, middle);
  if (const auto colon = host.rfind(':'); colon != host.npos) {
    if (!number_from(host.substr(colon + 1), address.port)) return false;
    host = host.substr(0, colon);
  }
  if (host.empty() || host.size() >= sizeof address.host) return false;
  host.copy(address.host, host.size());
  return true;
}

std::string text_of(const Address& address) {
  const std::size_t length = strnlen(address.host, sizeof address.host);
  if (address.magic != Address::right_magic || address.version != Address::right_version || length == 0 ||
      length == sizeof address.host)
    return {};
  std::string text(address.host, length);
  if (address.port != 0) append_number(text += ':', address.port);
  append_number(text += '/', address.identity, 16);
  append_number(text += '/', address.number);
  return text;
}

} // namespace parc::fabric
