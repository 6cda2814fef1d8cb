// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/listeners.hpp"

#include "daemon/base/acceptor.hpp"
#include "daemon/link/interfaces.hpp"
#include "daemon/link/resolver.hpp"
#include "daemon/link/tcp_stream.hpp"
#include "system/identity.hpp"
#include "system/port_holder.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

Result<std::uint16_t> bind_one(const std::string& text, std::uint16_t port, const Config& config,
                               Fd& listener) {
  PARC_TRY(address, numeric_address(text, port));
  listener.reset(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) return system_error("cannot make a socket for {}", address.text());
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family() == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  PARC_TRY(prepare_socket(listener.get(), config));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 ||
      ::listen(listener.get(), accept_backlog) != 0)
    return system_error("cannot listen on {}", address.text());
  return local_address(listener.get()).port();
}

Result<std::vector<std::string>> addresses_to_advertise(const Config& config, std::uint16_t port) {
  const auto found = resolve(config.advertise, port);
  if (!found)
    return error(ENOENT, "advertise: host {} is not known here; give its address", config.advertise);
  const bool near = std::ranges::all_of(config.listen, is_loopback);
  std::vector<std::string> addresses;
  for (const Address& each : found.value()) {
    const std::string host = each.host();
    if (host != "0.0.0.0" && host != "::" && (near || !is_loopback(host))) addresses.push_back(host);
  }
  if (!addresses.empty()) return addresses;
  return error(
      EINVAL,
      "advertise: {} is {}, where another host would look for itself; give the address that others see",
      config.advertise, found.value().front().host());
}

Result<Listeners> bind_range(const Config& config, const PortRange& ports) {
  Error last;
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    Listeners made;
    made.at.port = static_cast<std::uint16_t>(port);
    std::vector<std::string> addresses;
    bool all = true;
    for (const std::string& address : config.listen) {
      Fd listener;
      Result<std::uint16_t> result = bind_one(address, made.at.port, config, listener);
      if (!result) {
        last = std::move(result).error();
        if (last.code == EADDRNOTAVAIL && config.listen.size() > 1)
          continue; // no IPv6 here, say; one address is enough
        all = false;
        break;
      }
      made.at.port = result.value();
      made.at.hosts.push_back(local_address(listener.get()).host());
      made.sockets.push_back(std::move(listener));
      addresses.push_back(address);
    }
    if (!all || addresses.empty()) continue;
    if (!config.advertise.empty()) {
      PARC_TRY(advertised, addresses_to_advertise(config, made.at.port));
      made.at.advertised = std::move(advertised);
    }
    made.words = fmt::format("{}, port {}{}", fmt::join(addresses, " and "), made.at.port,
                             std::ranges::all_of(addresses, is_loopback) ? ", on loopback only" : "");
    return made;
  }
  if (last.code == EADDRINUSE)
    last.text += fmt::format("; {} has that port: choose another, or a range of them, by port in parcd.toml, "
                             "PARC_PORT or parcd --port",
                             holder_of_port(ports.last));
  if (last.code == EADDRNOTAVAIL)
    last.text += "; no interface here has that address (ip address): correct listen (in parcd.toml, "
                 "PARC_LISTEN or parcd --listen)";
  if (last.code == EACCES)
    last.text += "; choose one from 1024 on, by port in parcd.toml, PARC_PORT or parcd --port";
  return last;
}

} // namespace

// Two users of one host need say nothing: others hear of the port from parc up.
Result<Listeners> bind_listeners(const Config& asked) {
  Config config = asked;
  PARC_TRY(addresses, addresses_of(asked.listen));
  config.listen = std::move(addresses);
  Result<Listeners> made = bind_range(config, config.port);
  const bool any_will_do = !config.port.chosen && std::ranges::all_of(config.listen, is_loopback);
  if (!made && made.error().code == EADDRINUSE && any_will_do) return bind_range(config, {0, 0, false});
  return made;
}

} // namespace parc::daemon
