// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/model.hpp"

#include <algorithm>
#include <array>

namespace parc::model {
namespace {

enum class Item : std::uint8_t { nothing, envelope, fragment, want, acknowledgement };
enum class Owed : std::uint8_t { no, yes, sent };

constexpr std::size_t most_hosts = 3;
constexpr std::size_t pairs = most_hosts * most_hosts;

// One message, from both sides.
struct Message {
  std::uint8_t envelope_sent : 1;
  std::uint8_t wanted : 1; // the sender knows
  std::uint8_t done : 1;   // acknowledged
  std::uint8_t announced : 1;
  std::uint8_t sent : 2;
  std::uint8_t received : 2;
  Owed want : 4;
  Owed acknowledgement : 4;
};
static_assert(sizeof(Message) == 2);

struct Socket {
  Item first : 4;
  Item second : 4;
};

struct State {
  std::array<Message, pairs> messages;          // [from * most_hosts + to]
  std::array<Socket, pairs> sockets;            // as much
  std::array<std::uint8_t, most_hosts> program; // sends started, then reads posted
  std::array<std::uint8_t, most_hosts> busy;    // a blocking kernel's write: to * 8 + item; 0: none
};

class Model final : public Explorer<State> {
public:
  explicit Model(const Setting& setting) : set_(setting) {}

private:
  [[nodiscard]] bool sends(std::size_t from, std::size_t to) const {
    return from != to && (!set_.ring || to == (from + 1) % set_.hosts);
  }
  // The program of `host` has taken as many steps as it takes to get to this one of its sends (or reads).
  [[nodiscard]] bool reached(const State& s, std::size_t host, std::size_t peer, bool read) const {
    std::size_t step = 0;
    for (std::size_t p = 0; p < set_.hosts; ++p)
      if (sends(host, p) && (read || p <= peer)) ++step;
    for (std::size_t p = 0; read && p <= peer; ++p)
      if (sends(p, host)) ++step;
    return s.program[host] >= step;
  }
  [[nodiscard]] std::uint8_t program_steps(std::size_t host) const {
    std::uint8_t steps = 0;
    for (std::size_t p = 0; p < set_.hosts; ++p)
      steps = static_cast<std::uint8_t>(steps + sends(host, p) + sends(p, host));
    return steps;
  }

  void step(const State& state) override {
    for (std::uint8_t host = 0; host < set_.hosts; ++host) step(state, host);
  }

  void step(const State& s, std::uint8_t host) {
    if (s.program[host] < program_steps(host)) {
      State next = s;
      ++next.program[host];
      for (std::size_t from = 0; from < set_.hosts; ++from) consider_want(next, from, host);
      visit(next);
    }
    if (set_.kernels == Kernels::parc) {
      read(s, host);
      write(s, host);
    } else if (s.busy[host] != 0) {
      State next = s;
      next.busy[host] = 0;
      if (put(next, host, s.busy[host] / 8u, static_cast<Item>(s.busy[host] % 8u))) visit(next);
    } else if (!begin_write(s, host)) {
      read(s, host);
    }
  }

  // Takes the first item of any socket that has one: there is always a place for it.
  void read(const State& s, std::uint8_t host) {
    for (std::size_t from = 0; from < set_.hosts; ++from) {
      const Item item = s.sockets[from * most_hosts + host].first;
      if (item == Item::nothing) continue;
      State next = s;
      Socket& socket = next.sockets[from * most_hosts + host];
      socket.first = socket.second;
      socket.second = Item::nothing;
      Message& in = next.messages[from * most_hosts + host];
      Message& out = next.messages[host * most_hosts + from];
      switch (item) {
      case Item::envelope:
        in.announced = 1;
        consider_want(next, from, host);
        break;
      case Item::fragment:
        in.received = static_cast<std::uint8_t>(in.received + 1) & 3;
        if (!reached(next, host, from, true) && in.received > set_.credit) broken(picture(next));
        if (in.received == set_.fragments) in.acknowledgement = Owed::yes;
        break;
      case Item::want: out.wanted = 1; break;
      case Item::acknowledgement: out.done = 1; break;
      case Item::nothing: break;
      }
      visit(next);
    }
  }

  void consider_want(State& s, std::size_t from, std::size_t host) const {
    Message& in = s.messages[from * most_hosts + host];
    if (in.announced != 0 && in.want == Owed::no && set_.credit < set_.fragments &&
        reached(s, host, from, true))
      in.want = Owed::yes;
  }

  template <class Use> void each_item_to_write(const State& s, std::uint8_t host, Use use) const {
    for (std::uint8_t to = 0; to < set_.hosts; ++to) {
      const Message& out = s.messages[host * most_hosts + to];
      const Message& in = s.messages[to * most_hosts + host];
      if (in.want == Owed::yes) use(to, Item::want);
      if (in.acknowledgement == Owed::yes) use(to, Item::acknowledgement);
      if (sends(host, to) && out.envelope_sent == 0 && reached(s, host, to, false)) use(to, Item::envelope);
      const std::uint8_t may = out.wanted != 0
                                   ? set_.fragments
                                   : std::min<std::uint8_t>(set_.credit + set_.overdraft, set_.fragments);
      if (out.envelope_sent != 0 && out.sent < may) use(to, Item::fragment);
    }
  }

  void write(const State& s, std::uint8_t host) {
    each_item_to_write(s, host, [&](std::uint8_t to, Item item) {
      State next = s;
      if (put(next, host, to, item)) visit(next);
    });
  }

  bool begin_write(const State& s, std::uint8_t host) {
    bool any = false;
    each_item_to_write(s, host, [&](std::uint8_t to, Item item) {
      State next = s;
      next.busy[host] = static_cast<std::uint8_t>(to * 8 + static_cast<std::uint8_t>(item));
      visit(next);
      any = true;
    });
    return any;
  }

  bool put(State& s, std::size_t host, std::size_t to, Item item) const {
    Socket& socket = s.sockets[host * most_hosts + to];
    if (socket.first == Item::nothing)
      socket.first = item;
    else if (set_.room == 2 && socket.second == Item::nothing)
      socket.second = item;
    else
      return false;
    Message& out = s.messages[host * most_hosts + to];
    Message& in = s.messages[to * most_hosts + host];
    switch (item) {
    case Item::envelope: out.envelope_sent = 1; break;
    case Item::fragment: out.sent = static_cast<std::uint8_t>(out.sent + 1) & 3; break;
    case Item::want: in.want = Owed::sent; break;
    case Item::acknowledgement: in.acknowledgement = Owed::sent; break;
    case Item::nothing: break;
    }
    return true;
  }

  [[nodiscard]] bool all_done(const State& s) const override {
    for (std::size_t from = 0; from < set_.hosts; ++from)
      for (std::size_t to = 0; to < set_.hosts; ++to)
        if (sends(from, to) && s.messages[from * most_hosts + to].done == 0) return false;
    return true;
  }

  [[nodiscard]] std::string picture(const State& s) const override {
    static constexpr const char* names = "-EFWA";
    std::string text;
    for (std::size_t from = 0; from < set_.hosts; ++from)
      for (std::size_t to = 0; to < set_.hosts; ++to) {
        if (from == to) continue;
        const Socket& socket = s.sockets[from * most_hosts + to];
        const Message& m = s.messages[from * most_hosts + to];
        text += std::to_string(from) + "->" + std::to_string(to) + " socket " +
                names[static_cast<int>(socket.first)] + names[static_cast<int>(socket.second)] + ", sent " +
                std::to_string(m.sent) + ", received " + std::to_string(m.received) + "; ";
      }
    return text;
  }

  Setting set_;
};

} // namespace

Explored explore(const Setting& setting) {
  return Model(setting).run({});
}

} // namespace parc::model
