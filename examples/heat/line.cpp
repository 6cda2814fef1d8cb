// SPDX-License-Identifier: BSD-3-Clause
#include "examples/heat/line.hpp"

#include "examples/heat/stream.hpp"

#include <chrono>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace parc::heat {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(20);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const Place& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int code = getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &list))
    return error(EINVAL, "cannot find {}:{}: {}", place.host, place.port, gai_strerror(code));
  return Addresses(list);
}

// Before the connection is made, because the window that TCP offers is negotiated then.
void set_options(int socket, int buffer) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (buffer <= 0) return;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
}

Result<Fd> listen_at(const Place& place, int buffer) {
  PARC_TRY(addresses, resolve(place));
  Fd listener(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) return system_error("cannot make a socket");
  set_options(listener.get(), buffer);
  if (bind(listener.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 || listen(listener.get(), 1) != 0)
    return system_error("cannot listen on {}:{}", place.host, place.port);
  return listener;
}

// The neighbour may not listen yet: tries until it does.
Result<Fd> connect_to(const Place& place, int buffer) {
  PARC_TRY(addresses, resolve(place));
  for (const auto give_up = Clock::now() + patience;;) {
    Fd connection(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!connection) return system_error("cannot make a socket");
    set_options(connection.get(), buffer);
    if (::connect(connection.get(), addresses->ai_addr, addresses->ai_addrlen) == 0) return connection;
    if (errno != ECONNREFUSED || Clock::now() >= give_up)
      return system_error("cannot connect to {}:{}", place.host, place.port);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Result<Fd> accept_from(const Fd& listener, const Place& place) {
  pollfd ready{listener.get(), POLLIN, 0};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  if (poll(&ready, 1, static_cast<int>(milliseconds)) <= 0)
    return error(ETIMEDOUT, "nobody connected to {}:{} within {} s; is the next rank running?", place.host,
                 place.port, milliseconds / 1000);
  Fd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return system_error("cannot accept a connection on {}:{}", place.host, place.port);
  return connection;
}

} // namespace

Result<std::vector<Place>> parse_places(const std::string& text) {
  std::vector<Place> places;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    const std::size_t colon = item.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == item.size())
      return error(EINVAL, "\"{}\" is no place; write HOST:PORT for each rank, separated by commas", item);
    places.push_back({item.substr(0, colon), item.substr(colon + 1)});
    at = end + 1;
  }
  return places;
}

Result<Line> Line::connect(std::span<const Place> places, int rank, int buffer) {
  const auto here = static_cast<std::size_t>(rank);
  Line line;
  Fd listener;
  if (here + 1 < places.size()) {
    PARC_TRY(opened, listen_at(places[here], buffer));
    listener = std::move(opened);
  }
  if (here > 0) {
    PARC_TRY(left, connect_to(places[here - 1], buffer));
    line.left_ = std::move(left);
  }
  if (listener) {
    PARC_TRY(right, accept_from(listener, places[here]));
    set_options(right.get(), buffer);
    line.right_ = std::move(right);
  }
  return line;
}

// A token goes to the last rank, which then has heard of all, and comes back.
Result<void> Line::barrier() const {
  char token = 0;
  if (has(Side::Left)) {
    PARC_TRY(receive_all(socket(Side::Left), &token, 1));
  }
  if (has(Side::Right)) {
    PARC_TRY(send_all(socket(Side::Right), &token, 1));
    PARC_TRY(receive_all(socket(Side::Right), &token, 1));
  }
  return has(Side::Left) ? send_all(socket(Side::Left), &token, 1) : success();
}

} // namespace parc::heat
