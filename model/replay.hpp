// SPDX-License-Identifier: BSD-3-Clause
// A traced run, played again: what its ranks calculated stays as long as it was, and when messages arrive
// follows from when they are sent now, on these wires or on others, with the program's waits where they are,
// or where what they wait for is first touched. What of a step is calculated beside messages, and by how many
// cores, is as it was.
//
// A wire takes the messages of one direction between two hosts, one behind the other, as they were begun:
// what TCP has taken of one goes before the next. All arrive a latency later. Two ranks of one host have
// wires of their own.
//
// Pure: no clock, no system call. Times are seconds. A run is trusted: its indices are valid, and every
// transfer that is waited for is begun by somebody, before its rank waits for what needs it; what is not
// begun in the end leaves its rank where it is, and marks behind that are missing in the result. Threads:
// any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace parc::model {

struct Wire {
  double latency = 0;   // s, one way
  double bandwidth = 0; // bytes/s; infinite where bytes cost nothing
};

// Bytes that go from one rank to another: a message, a put, or what a get brings.
struct Transfer {
  std::uint32_t from, to;
  double bytes;
};

struct Action {
  enum class Kind : std::uint8_t {
    calculate, // for `seconds`
    begin,     // the rank's part in a transfer: who sends it sends it, who gets it asks for it
    wait,      // until its transfers are whole: here, or known to be there; and then for `seconds`
    touch,     // of the first bytes of a transfer, as many as `part` says
    mark,      // its time is part of the result
  };
  Kind kind;
  bool asks = false;       // begin: a get's
  double seconds = 0;      // calculate, wait
  double part = 1;         // touch: 0 to 1
  std::uint32_t place = 0; // wait: where in the program
  std::vector<std::uint32_t> transfers = {};
};

struct Run {
  std::vector<std::vector<Action>> ranks; // what each does, in order
  std::vector<std::uint32_t> host_of;     // by rank
  std::vector<Transfer> transfers;
  std::size_t hosts = 0;
};

// By pair of hosts.
class Wires {
public:
  explicit Wires(std::size_t hosts) : hosts_(hosts), wires_(hosts * hosts) {}
  [[nodiscard]] Wire& between(std::size_t from, std::size_t to) { return wires_[from * hosts_ + to]; }
  [[nodiscard]] const Wire& between(std::size_t from, std::size_t to) const {
    return wires_[from * hosts_ + to];
  }
  [[nodiscard]] std::size_t hosts() const { return hosts_; }

private:
  std::size_t hosts_;
  std::vector<Wire> wires_;
};

// What becomes of waits for what is received, where its first touches are known.
struct Waits {
  enum class Where : std::uint8_t {
    there,       // as the program has them
    first_touch, // there, for all of it
    released, // early (erMPI 2005): each touch waits for its part, and nothing else does; at a cost, and what
              // is sent behind such a wait leaves when what was waited for has begun to arrive
    begun,    // the same, where the wait itself is for that beginning
  };
  static constexpr std::uint32_t everywhere = std::numeric_limits<std::uint32_t>::max();

  Where where = Where::there;
  std::uint32_t place = everywhere; // only at this one
  double release = 0;               // s, what releasing a wait costs
  double wake = 0;                  // s, what a touch costs that has to wait
};

struct Replayed {
  std::vector<double> marks; // of all ranks, by time
};
[[nodiscard]] Replayed replay(const Run& run, const Wires& wires, const Waits& waits);

// The same program without its calculation, and without what its calls cost besides waiting.
[[nodiscard]] Run only_messages(Run run);

} // namespace parc::model
