// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/interfaces.hpp"

#include "daemon/link/resolver.hpp"
#include "daemon/settings/config.hpp"
#include "system/fd.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <string_view>
#include <sys/ioctl.h>
#include <tuple>

namespace parc::daemon {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

// One that means something beyond its interface; empty: it does not.
std::string text_of(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN];
  const void* bytes = nullptr;
  if (address.sa_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    constexpr in_addr_t link_local = 0xa9fe0000, its_mask = 0xffff0000;
    if ((ntohl(v4.s_addr) & its_mask) != link_local) bytes = &v4;
  } else if (address.sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&v6)) bytes = &v6;
  }
  return bytes != nullptr && inet_ntop(address.sa_family, bytes, text, sizeof text) != nullptr ? text : "";
}

// By its driver: what /sys shows may be another namespace's.
bool is_bridge(const Fd& socket, const char* interface) {
  ethtool_drvinfo about{};
  about.cmd = ETHTOOL_GDRVINFO;
  ifreq asked{};
  std::strncpy(asked.ifr_name, interface, sizeof asked.ifr_name - 1);
  asked.ifr_data = reinterpret_cast<char*>(&about);
  return socket && ioctl(socket.get(), SIOCETHTOOL, &asked) == 0 &&
         std::string_view(about.driver) == "bridge";
}

enum class Sight : std::uint8_t { in_use, given, shown, usual, idle, bridge };
struct Seen {
  Sight sight;
  bool v6;
  std::string text;
};

Seen seen(Sight sight, std::string text) {
  const bool v6 = text.find(':') != text.npos;
  return {sight, v6, std::move(text)};
}

struct OwnAddress {
  int family;
  std::string interface, text;
  bool runs;
};

// Of the interfaces that are up.
std::vector<OwnAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> all(list);
  std::vector<OwnAddress> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    if (std::string text = text_of(*each->ifa_addr); !text.empty())
      found.push_back(
          {each->ifa_addr->sa_family, each->ifa_name, std::move(text), (each->ifa_flags & IFF_RUNNING) != 0});
  }
  return found;
}

std::vector<Seen> seen_of_family(int family) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::vector<Seen> found;
  for (OwnAddress& own : own_addresses())
    if (own.family == family)
      found.push_back(seen(is_bridge(socket, own.interface.c_str()) ? Sight::bridge
                           : own.runs                               ? Sight::usual
                                                                    : Sight::idle,
                           std::move(own.text)));
  return found;
}

using Bits = std::array<std::uint8_t, sizeof(in6_addr)>;

bool is_in(const std::string& address, const std::string& network, unsigned bits) {
  Bits one{}, other{};
  const int family = network.find(':') == network.npos ? AF_INET : AF_INET6;
  if (inet_pton(family, address.c_str(), one.data()) != 1 ||
      inet_pton(family, network.c_str(), other.data()) != 1)
    return false;
  for (unsigned i = 0; i < bits; ++i)
    if (((one[i / 8] ^ other[i / 8]) & (0x80 >> i % 8)) != 0) return false;
  return true;
}

bool stands_for(const std::string& place, const OwnAddress& own) {
  const auto slash = place.find('/');
  if (slash == place.npos) return own.interface == place;
  return is_in(own.text, place.substr(0, slash), static_cast<unsigned>(std::stoul(place.substr(slash + 1))));
}

// From which this host would speak to one of the documentation's networks, that is, to anywhere. To connect a
// datagram socket sends nothing.
std::string shown_address(int family) {
  const Result<Address> anywhere = numeric_address(family == AF_INET ? "192.0.2.1" : "2001:db8::1", 9);
  const Fd socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!anywhere || !socket ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&anywhere.value().storage),
              anywhere.value().length) != 0)
    return {};
  return local_address(socket.get()).host();
}

} // namespace

std::vector<std::string> reachable_at(std::span<const std::string> listens,
                                      std::span<const std::string> in_use) {
  std::vector<Seen> all;
  for (const std::string& each : listens) {
    if (each != "0.0.0.0" && each != "::") {
      const bool used = std::ranges::find(in_use, each) != in_use.end();
      all.push_back(seen(used ? Sight::in_use : Sight::given, each));
      continue;
    }
    const int family = each == "::" ? AF_INET6 : AF_INET;
    const std::string shown = shown_address(family);
    for (Seen& own : seen_of_family(family)) {
      if (own.text == shown) own.sight = Sight::shown;
      if (std::ranges::find(in_use, own.text) != in_use.end()) own.sight = Sight::in_use;
      all.push_back(std::move(own));
    }
  }
  const auto is_far = [](const Seen& host) { return !is_loopback(host.text); };
  if (std::ranges::any_of(all, is_far)) std::erase_if(all, std::not_fn(is_far));
  const auto order = [&](const Seen& host) {
    return std::tuple(host.sight, std::ranges::find(in_use, host.text) - in_use.begin(), host.v6);
  };
  std::ranges::stable_sort(all, {}, order);
  std::vector<std::string> hosts;
  for (Seen& each : all)
    if (std::ranges::find(hosts, each.text) == hosts.end()) hosts.push_back(std::move(each.text));
  return hosts;
}

Result<std::vector<std::string>> addresses_of(std::span<const std::string> places) {
  std::vector<std::string> all;
  std::vector<Error> missing;
  const auto add = [&all](const std::string& address) {
    if (std::ranges::find(all, address) == all.end()) all.push_back(address);
  };
  for (const std::string& place : places) {
    if (numeric_address(place, 0)) {
      add(place);
      continue;
    }
    bool found = false;
    for (const OwnAddress& own : own_addresses()) {
      if (!stands_for(place, own)) continue;
      add(own.text);
      found = true;
    }
    if (found) continue;
    const bool is_network = place.find('/') != place.npos;
    missing.push_back(
        is_network ? error(ENODEV, "listen: this host has no address in {} (ip address)", place)
                   : error(ENODEV,
                           "listen: {} is not a numeric address (such as 127.0.0.1, ::1 or 0.0.0.0), and no "
                           "interface of that name has one here (ip address)",
                           quote(place)));
  }
  if (all.empty() && !missing.empty()) return missing.front();
  for (const Error& each : missing) spdlog::warn("{}", each.text);
  return all;
}

} // namespace parc::daemon
