// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/device.hpp"

#include "tools/wanlink/address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace parc::wanlink {
namespace {

constexpr char device_name[] = "wan0";
constexpr std::uint32_t largest_segment = 65'536;

ifreq request_for(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  return request;
}

sockaddr ipv4_sockaddr(std::uint32_t address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(address);
  sockaddr result;
  std::memcpy(&result, &in, sizeof result);
  return result;
}

// A message that carries a device's state, and its two descriptors beside it.
struct DeviceMessage {
  explicit DeviceMessage(void* state, std::size_t size) : body{state, size} {
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
  }
  int fds[2] = {-1, -1};
  iovec body;
  msghdr message{};
  alignas(cmsghdr) unsigned char ancillary[CMSG_SPACE(sizeof fds)] = {};
};

// A setting of the present network namespace that not every system has, and that we can live without.
void set_if_there(const std::string& name, std::string_view value) {
  if (const Fd file(open(("/proc/sys/net/" + name).c_str(), O_WRONLY | O_CLOEXEC)); file)
    (void)!write(file.get(), value.data(), value.size());
}

// TCP makes segments of about a millisecond, and all the segments of an acknowledgement small once one was
// small; on a fast network adapter it makes them as large as they may be when the round trip is short. This
// tells it that every round trip is (Linux 5.18), so that limit_segments() decides.
void prefer_large_segments() {
  set_if_there("ipv4/tcp_tso_rtt_log", "31");
}

Result<void> start(int socket, const char* name) {
  ifreq request = request_for(name);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) return system_error("cannot start network device {}", name);
  return success();
}

Result<void> set_ipv4(int socket, unsigned host) {
  std::uint32_t network = 0;
  for (std::uint8_t byte : ipv4_prefix) network = network << 8 | byte;
  ifreq request = request_for(device_name);
  request.ifr_addr = ipv4_sockaddr(network << 8 | host);
  if (ioctl(socket, SIOCSIFADDR, &request) != 0)
    return system_error("cannot set address {}", ipv4_address(host));
  request.ifr_netmask = ipv4_sockaddr(~0U << (32 - ipv4_prefix_bits));
  if (ioctl(socket, SIOCSIFNETMASK, &request) != 0) return system_error("cannot set the network mask");
  return success();
}

// The address is usable when the kernel has gone through duplicate address detection, which it does on its
// own time even where it has nothing to do; a connection made before would use another address.
Result<void> set_ipv6(int socket, int index, unsigned host) {
  in6_ifreq request{};
  std::ranges::copy(ipv6_prefix, request.ifr6_addr.s6_addr);
  request.ifr6_addr.s6_addr[15] = static_cast<std::uint8_t>(host);
  request.ifr6_prefixlen = ipv6_prefix_bits;
  request.ifr6_ifindex = index;
  if (ioctl(socket, SIOCSIFADDR, &request) != 0)
    return system_error("cannot set address {}", ipv6_address(host));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = request.ifr6_addr;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return success();
    usleep(1000);
  }
  return system_error("cannot use address {}", ipv6_address(host));
}

} // namespace

Result<Fd> open_tun() {
  Fd tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (tun) return tun;
  if (errno == EACCES || errno == EPERM)
    return error(errno, "may not open /dev/net/tun; run as root or allow it: chmod 0666 /dev/net/tun");
  return system_error(
      "cannot open /dev/net/tun, which carries the emulated network (is the kernel module tun "
      "loaded? modprobe tun)");
}

Result<Device> Device::make(unsigned host, const std::string& congestion_control) {
  Device device;
  PARC_TRY(tun, open_tun());
  set_if_there("ipv6/conf/default/addr_gen_mode", "1"); // no link-local address: nothing would answer it
  ifreq request = request_for(device_name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(tun.get(), TUNSETIFF, &request) != 0) return system_error("cannot make a TUN device");
  device.tun_ = std::move(tun);
  PARC_TRY(device.configure(host));
  prefer_large_segments();
  PARC_TRY(device.set_congestion_control(congestion_control));
  PARC_TRY(device.limit_segments(largest_segment));
  return device;
}

Result<void> Device::send_over(int socket) const {
  State state = state_;
  DeviceMessage out(&state, sizeof state);
  out.fds[0] = tun_.get();
  out.fds[1] = netlink_.fd();
  cmsghdr* header = CMSG_FIRSTHDR(&out.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof out.fds);
  std::memcpy(CMSG_DATA(header), out.fds, sizeof out.fds);
  if (sendmsg(socket, &out.message, MSG_NOSIGNAL) < 0) return system_error("cannot hand a device over");
  return success();
}

Result<Device> Device::receive_from(int socket) {
  Device device;
  DeviceMessage in(&device.state_, sizeof device.state_);
  const ssize_t length = recvmsg(socket, &in.message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = CMSG_FIRSTHDR(&in.message);
  if (length != sizeof device.state_ || !header || header->cmsg_len != CMSG_LEN(sizeof in.fds))
    return error(EIO, "no device came from the process that makes a host");
  std::memcpy(in.fds, CMSG_DATA(header), sizeof in.fds);
  device.tun_ = Fd(in.fds[0]);
  device.netlink_ = Netlink(Fd(in.fds[1]));
  return device;
}

Result<void> Device::configure(unsigned host) {
  const Fd ipv4(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!ipv4) return system_error("cannot open a socket to configure the network");
  ifreq request = request_for(device_name);
  if (ioctl(ipv4.get(), SIOCGIFINDEX, &request) != 0) return system_error("cannot find {}", device_name);
  state_.index = request.ifr_ifindex;
  request.ifr_mtu = mtu;
  if (ioctl(ipv4.get(), SIOCSIFMTU, &request) != 0)
    return system_error("cannot set the MTU of {}", device_name);
  PARC_TRY(set_ipv4(ipv4.get(), host));
  PARC_TRY(start(ipv4.get(), "lo"));
  PARC_TRY(start(ipv4.get(), device_name));
  // A system without IPv6 gets hosts without IPv6.
  if (const Fd ipv6(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)); ipv6)
    state_.has_ipv6 = set_ipv6(ipv6.get(), state_.index, host).has_value();
  PARC_TRY(netlink, Netlink::open());
  netlink_ = std::move(netlink);
  return success();
}

Result<void> Device::set_congestion_control(const std::string& name) const {
  // The default of the namespace is for loopback. It takes only what the system does not restrict; the routes
  // of the emulated network take all.
  set_if_there("ipv4/tcp_congestion_control", name);
  std::array<std::uint8_t, 4> ipv4{};
  std::ranges::copy(ipv4_prefix, ipv4.begin());
  std::array<std::uint8_t, 16> ipv6{};
  std::ranges::copy(ipv6_prefix, ipv6.begin());
  auto set = netlink_.set_congestion_control(state_.index, ipv4, ipv4_prefix_bits, name);
  if (set && state_.has_ipv6)
    set = netlink_.set_congestion_control(state_.index, ipv6, ipv6_prefix_bits, name);
  if (set) return success();
  if (set.error().code != EINVAL) return set;
  std::string available;
  std::getline(std::ifstream("/proc/sys/net/ipv4/tcp_available_congestion_control"), available);
  return error(EINVAL, "this system has no congestion control \"{}\" (--cc); it has {}", name, available);
}

Result<void> Device::limit_segments(std::uint32_t bytes) {
  const std::uint32_t limit = std::min(bytes, largest_segment);
  if (limit == state_.segment_limit) return success();
  const bool large = limit > static_cast<std::uint32_t>(mtu);
  const unsigned long offload = TUN_F_CSUM | (large ? TUN_F_TSO4 | TUN_F_TSO6 : 0);
  if (ioctl(tun_.get(), TUNSETOFFLOAD, offload) != 0)
    return system_error("cannot set the offloads of {}", device_name);
  state_.segment_limit = limit;
  return large ? netlink_.limit_segments(state_.index, limit) : success();
}

} // namespace parc::wanlink
