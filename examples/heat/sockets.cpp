// SPDX-License-Identifier: BSD-3-Clause
// The exchange over plain sockets. Two neighbours that both send first block each other as soon as a border
// is larger than the sockets' buffers, so there are two ways: to take turns (the paper's reference), or to
// watch both directions with poll. Neither moves a byte while the program calculates more than fits the
// buffers.
#include "examples/heat/sockets.hpp"

#include "examples/heat/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

namespace parc::heat {

namespace {

// What is left of one direction of one connection.
struct Piece {
  int socket;
  bool sending;
  char* at;
  std::size_t left;

  [[nodiscard]] Result<void> move() {
    const ssize_t moved = sending ? ::send(socket, at, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : ::recv(socket, at, left, MSG_DONTWAIT);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return success();
    if (moved < 0) return system_error("cannot exchange borders with the neighbour");
    if (moved == 0) return error(EPIPE, "the neighbour has ended before its border came");
    at += moved;
    left -= static_cast<std::size_t>(moved);
    return success();
  }
};

Result<void> move_all(std::vector<Piece> pieces) {
  while (true) {
    std::vector<pollfd> wanted;
    std::erase_if(pieces, [](const Piece& piece) { return piece.left == 0; });
    if (pieces.empty()) return success();
    for (const Piece& piece : pieces)
      wanted.push_back({piece.socket, static_cast<short>(piece.sending ? POLLOUT : POLLIN), 0});
    if (poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return system_error("cannot poll");
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (wanted[i].revents) {
        PARC_TRY(pieces[i].move());
      }
  }
}

Result<void> send_then_receive(int socket, Strip& strip, Side side) {
  PARC_TRY(send_all(socket, strip.border(side), strip.column_bytes()));
  return receive_all(socket, strip.ghost(side), strip.column_bytes());
}

Result<void> receive_then_send(int socket, Strip& strip, Side side) {
  PARC_TRY(receive_all(socket, strip.ghost(side), strip.column_bytes()));
  return send_all(socket, strip.border(side), strip.column_bytes());
}

} // namespace

// Even ranks send first, odd ranks receive first; all pairs (0,1), (2,3) ... before the pairs (1,2), (3,4)
// ...
Result<void> ping_pong(const Line& line, Strip& strip) {
  strip.calculate_all();
  const bool even = strip.shape().rank % 2 == 0;
  for (const Side side : {even ? Side::Right : Side::Left, even ? Side::Left : Side::Right}) {
    if (!line.has(side)) continue;
    PARC_TRY(even ? send_then_receive(line.socket(side), strip, side)
                  : receive_then_send(line.socket(side), strip, side));
  }
  return success();
}

Result<void> exchange(const Line& line, Strip& strip) {
  std::vector<Piece> pieces;
  for (const Side side : sides) {
    if (!line.has(side)) continue;
    const int socket = line.socket(side);
    pieces.push_back({socket, true, reinterpret_cast<char*>(strip.border(side)), strip.column_bytes()});
    pieces.push_back({socket, false, reinterpret_cast<char*>(strip.ghost(side)), strip.column_bytes()});
  }
  return move_all(std::move(pieces));
}

} // namespace parc::heat
