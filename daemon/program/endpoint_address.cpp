// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/endpoint_address.hpp"

#include <cerrno>
#include <charconv>

namespace parc::daemon {
namespace {

// All of `text` as one number.
template <class Number> bool read_number(std::string_view text, Number& number, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, base);
  return failure == std::errc() && rest == end;
}

} // namespace

std::string to_text(const EndpointAddress& address) {
  const std::string port = address.port != 0 ? fmt::format(":{}", address.port) : std::string();
  return fmt::format("{}{}/{:x}/{}", address.host, port, address.identity, address.number);
}

Result<EndpointAddress> parse_endpoint_address(std::string_view text) {
  const auto malformed = [&] {
    return error(EINVAL, "\"{}\" is no address: one looks like HOST:PORT/IDENTITY/NUMBER", text);
  };
  EndpointAddress address;
  const auto last = text.rfind('/');
  const auto middle = last == std::string_view::npos || last == 0 ? last : text.rfind('/', last - 1);
  if (middle == std::string_view::npos || middle == 0 || last == 0) return malformed();
  std::string_view host = text.substr(0, middle);
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos) {
    if (!read_number(host.substr(colon + 1), address.port) || address.port == 0) return malformed();
    host = host.substr(0, colon);
  }
  if (host.empty() || host.find_first_of("/ \t\n") != std::string_view::npos ||
      !read_number(text.substr(middle + 1, last - middle - 1), address.identity, 16) ||
      !read_number(text.substr(last + 1), address.number) || address.number == 0)
    return malformed();
  address.host = host;
  return address;
}

} // namespace parc::daemon
