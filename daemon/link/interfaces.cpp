// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/interfaces.hpp"

#include "daemon/settings/config.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>

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

// Of the interfaces that are up; those that have a carrier first.
std::vector<std::string> own_addresses(int family) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeInterfaces> all(list);
  std::vector<std::string> found;
  for (const bool running : {true, false})
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      if ((each->ifa_flags & IFF_UP) == 0 || ((each->ifa_flags & IFF_RUNNING) != 0) != running) continue;
      if (std::string text = text_of(*each->ifa_addr); !text.empty()) found.push_back(std::move(text));
    }
  return found;
}

} // namespace

std::vector<std::string> reachable_at(std::span<const std::string> listens) {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& host) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  };
  for (const std::string& each : listens) {
    if (each == "0.0.0.0" || each == "::")
      std::ranges::for_each(own_addresses(each == "::" ? AF_INET6 : AF_INET), add);
    else
      add(each);
  }
  const auto is_far = [](const std::string& host) { return !is_loopback(host); };
  if (std::ranges::any_of(hosts, is_far)) std::erase_if(hosts, is_loopback);
  const auto is_v4 = [](const std::string& host) { return host.find(':') == host.npos; };
  std::stable_partition(hosts.begin(), hosts.end(), is_v4);
  return hosts;
}

} // namespace parc::daemon
