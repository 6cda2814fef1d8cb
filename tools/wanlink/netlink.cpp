// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/netlink.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace parc::wanlink {
namespace {

// One request: a header, a body of a fixed type and attributes, which may hold attributes.
class Request {
public:
  template <class Body> Request(std::uint16_t type, std::uint16_t flags, const Body& body) {
    header().nlmsg_type = type;
    header().nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&body, sizeof body);
  }
  void attribute(std::uint16_t type, const void* value, std::size_t size) {
    const std::size_t begin = open_attribute(type);
    append(value, size);
    close_attribute(begin);
  }
  std::size_t open_attribute(std::uint16_t type) {
    const rtattr attribute{.rta_len = 0, .rta_type = type};
    const std::size_t begin = size_;
    append(&attribute, sizeof attribute);
    return begin;
  }
  void close_attribute(std::size_t begin) {
    const auto length = static_cast<std::uint16_t>(size_ - begin);
    std::memcpy(bytes_.data() + begin, &length, sizeof length);
    size_ = NLMSG_ALIGN(size_);
  }

  // Sends it and takes the kernel's answer: 0 or an errno value.
  [[nodiscard]] int ask(int socket) {
    header().nlmsg_len = static_cast<std::uint32_t>(size_);
    if (send(socket, bytes_.data(), size_, 0) < 0) return errno;
    alignas(nlmsghdr) std::array<char, 1024> reply{};
    if (recv(socket, reply.data(), reply.size(), 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(int))))
      return EIO;
    int result = 0; // nlmsgerr begins with it
    std::memcpy(&result, reply.data() + NLMSG_HDRLEN, sizeof result);
    return -result;
  }

private:
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(bytes_.data()); }
  void append(const void* data, std::size_t size) {
    std::memcpy(bytes_.data() + size_, data, size);
    size_ += size;
  }

  alignas(nlmsghdr) std::array<char, 512> bytes_{};
  std::size_t size_ = NLMSG_HDRLEN;
};

} // namespace

Result<Netlink> Netlink::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return system_error("cannot open a netlink socket");
  return Netlink(std::move(socket));
}

Result<void> Netlink::limit_segments(int device, std::uint32_t bytes) const {
  ifinfomsg link{};
  link.ifi_index = device;
  Request request(RTM_NEWLINK, 0, link);
  request.attribute(IFLA_GSO_MAX_SIZE, &bytes, sizeof bytes);
  errno = request.ask(socket_.get());
  if (errno != 0) return system_error("cannot limit TCP segments to {} bytes", bytes);
  return success();
}

Result<void> Netlink::set_congestion_control(int device, std::span<const std::uint8_t> network, int bits,
                                             const std::string& name) const {
  rtmsg route{};
  route.rtm_family = network.size() == 4 ? AF_INET : AF_INET6;
  route.rtm_dst_len = static_cast<unsigned char>(bits);
  route.rtm_table = RT_TABLE_MAIN;
  route.rtm_protocol = RTPROT_KERNEL;
  route.rtm_scope = network.size() == 4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_UNICAST;
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route);
  request.attribute(RTA_DST, network.data(), network.size());
  request.attribute(RTA_OIF, &device, sizeof device);
  if (network.size() == 16) {
    // The priority of the kernel's own route to a connected network, so that this one takes its place.
    const std::uint32_t priority = 256;
    request.attribute(RTA_PRIORITY, &priority, sizeof priority);
  }
  const std::size_t metrics = request.open_attribute(RTA_METRICS);
  request.attribute(RTAX_CC_ALGO, name.c_str(), name.size() + 1);
  request.close_attribute(metrics);
  errno = request.ask(socket_.get());
  if (errno != 0) return system_error("cannot set the route with congestion control {}", name);
  return success();
}

} // namespace parc::wanlink
