// SPDX-License-Identifier: BSD-3-Clause
// A world of some hosts, their engines, their programs and the network between them, all from one seed: the
// same seed gives the same run, byte for byte.
#pragma once

#include "protocol/engine.hpp"
#include "protocol/gate.hpp"
#include "tests/sim/memory.hpp"
#include "tests/sim/network.hpp"
#include "tests/sim/oracle.hpp"
#include "tests/sim/windows.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parc::sim {

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t steps = 1500;
  bool hostile = false; // one host's headers are changed on their way
  bool trace = false;
};

struct Tally { // what the runs have covered
  std::uint64_t messages = 0, bytes = 0, matched = 0, truncated = 0, canceled = 0, lost = 0, refusals = 0;
  std::uint64_t gated = 0;    // of the matched ones: written behind a gate
  std::uint64_t claimed = 0;  // of the matched ones
  std::uint64_t taken = 0;    // reads, by libraries
  std::uint64_t carriers = 0; // that have ended, and were followed by others
  std::uint64_t late = 0;     // messages whose memory came when they were matched
  std::uint64_t held = 0;     // looks at a link that had no place for somebody's writes
  std::uint64_t subflows = 0; // that have ended while a link went on
  std::uint64_t doubted = 0;  // subflows, whose payload was dealt again
  std::uint64_t between = 0;  // progress of reads that tells of bytes between others
  std::uint64_t gets = 0, bytes_got = 0, adds = 0, puts = 0, bytes_put = 0, places_refused = 0;
};

class World {
public:
  explicit World(const Options& options);
  ~World();
  void run(); // throws Violation
  [[nodiscard]] const Tally& tally() const { return tally_; }

private:
  static constexpr std::uint64_t of_get = std::uint64_t{1} << 62; // of cookies
  static constexpr std::uint64_t of_put = std::uint64_t{1} << 61;
  static constexpr std::uint64_t of_add = std::uint64_t{1} << 60;
  struct Host;
  class Ears;
  struct Write {
    std::uint64_t handle = 0;
    std::vector<std::unique_ptr<Memory>> memory; // the last one holds all that the engine may name...
    bool mixed = false;                          // ...unless only a part was handed over
    bool gated = false;
    bool late = false; // the engine has not been told its memory
    protocol::Progress progress;
  };
  // The carriers that two hosts have had: each is a wire to either side. The smaller host says which one
  // counts; the other may use the one before for a while, in which it still reads what was sent and writes in
  // vain.
  struct Line {
    struct Carrier {
      Wire up, down; // to the larger host, to the smaller one
    };
    std::size_t room = 0;
    std::uint64_t delay = 0;
    std::map<std::uint64_t, Carrier> carriers;
    std::uint64_t newest = 0;
    bool given_up = false; // by one of them: the other hears of it when it asks for a carrier
    struct Subflow {
      Wire up, down;
      std::array<std::uint32_t, 2> numbers{}; // at the smaller host and the larger one; 0: not there
      std::array<bool, 2> over{};             // for each
    };
    std::vector<std::unique_ptr<Subflow>> subflows;
  };
  struct Reading {
    std::uint64_t handle = 0;
    std::uint64_t claim = 0; // of a probe that has claimed a message which nobody has read yet: its name
    std::unique_ptr<Memory> memory;
    protocol::Progress progress;
    std::unique_ptr<std::atomic<std::uint64_t>> shared; // a claim word: its library may take it, too
  };

  void make_hosts();
  void make_job(std::uint64_t job);
  [[nodiscard]] protocol::Address address(std::size_t host, std::size_t actor) const;

  // The network.
  void turn(std::size_t host, bool calm);
  bool read_links(std::size_t host, bool calm);
  bool write_links(std::size_t host, bool calm);
  bool connect(std::size_t host, bool calm);
  bool read(Wire& from, std::size_t host, std::size_t other, bool calm, std::uint32_t subflow);
  bool write(Wire& to, std::size_t host, std::size_t other, bool calm, std::uint32_t subflow);
  void add_carrier(std::size_t low, std::size_t high);
  void break_carrier(std::size_t host, std::size_t other);
  void detach(std::size_t host, std::size_t other);
  void cut(std::size_t a, std::size_t b);
  void close(std::size_t host, std::size_t other);
  void settle();
  [[nodiscard]] std::uint64_t fragments_in() const;
  // subflows.cpp
  bool read_subflows(std::size_t host, std::size_t other, bool calm);
  bool write_subflows(std::size_t host, std::size_t other, bool calm);
  void change_subflows(std::size_t host);
  void drop(Line::Subflow& subflow, std::size_t host, std::size_t other);
  bool sweep_subflows(std::size_t host, std::size_t other, bool calm);
  void check_bounds(std::size_t host);

  // The programs (programs.cpp).
  void act(std::size_t actor);
  [[nodiscard]] protocol::Space space(std::size_t actor);
  [[nodiscard]] std::uint64_t tag();
  [[nodiscard]] bool may_read(std::size_t actor) const;
  void read(std::size_t actor);
  void probe(std::size_t actor);
  void read_claimed(std::size_t actor);
  void take_shared(std::size_t actor);
  void add_row(std::size_t actor);
  void ask_for_any(protocol::ReadRequest& request, Read& read);
  void write(std::size_t actor);
  void write_to(std::size_t actor, std::uint32_t row, std::uint64_t most_bytes);
  void burst(std::size_t actor);
  void get(std::size_t actor);
  [[nodiscard]] std::optional<protocol::Rows> in_rows(protocol::Place& place, std::uint64_t bytes);
  void put(std::size_t actor);
  void add(std::size_t actor);
  void use_window(std::size_t actor);
  void cancel(std::size_t actor);
  void hand_over(std::size_t actor);
  bool place(std::size_t host, bool calm);
  bool make_atomics(std::size_t host, bool calm);
  void unplace(std::size_t actor);
  void release(std::size_t actor);
  void give_up(std::size_t actor);
  bool pass_gates(std::size_t host, bool calm);
  void leave(std::size_t actor);
  void kill(std::size_t actor);
  void drop_job(std::uint64_t job, std::size_t host);
  void post(protocol::ReadRequest request, Read read);
  std::size_t pick_unfinished(std::size_t actor, bool of_reads);
  void check_silent(std::size_t actor);
  void cancel_reads();
  void read_all();
  void finale();

  // From the engines.
  void begun(std::uint64_t cookie, const protocol::Outcome& outcome);
  void progressed(std::uint64_t cookie, const protocol::Progress& progress);
  void wanted(std::uint64_t cookie);
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome);

  void say(const std::string& what) const;
  [[nodiscard]] std::string state() const;
  [[nodiscard]] protocol::Engine& engine_of(std::size_t actor);
  // In the carrier that `from` or `to`, whoever is `at`, is attached to; none: nowhere.
  Wire* wire(std::size_t at, std::size_t from, std::size_t to);
  Line& line(std::size_t a, std::size_t b) { return lines_.at(std::minmax(a, b)); }

  Options options_;
  Random random_;
  Tally tally_;
  Oracle oracle_;
  Windows windows_{oracle_};
  std::uint64_t now_ = 0;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::pair<std::size_t, std::size_t>, Line> lines_;             // the smaller host first
  std::map<std::uint64_t, std::vector<std::size_t>> jobs_;                // actors by rank
  std::map<std::pair<std::uint64_t, std::size_t>, std::uint64_t> groups_; // by job and host
  std::vector<protocol::Gate> gates_;                                     // by actor
  std::vector<Write> writes_;                                             // as the oracle's messages
  std::vector<std::uint64_t> adds_;                                       // handles, as those of the windows
  std::vector<std::uint64_t> puts_;                                       // handles, as those of the windows
  protocol::Rows rows_{};                                                 // of the last place that has some
  std::vector<Reading> readings_;                                         // as the oracle's reads
  std::vector<std::size_t> wanted_;                                       // late writes that are matched
  std::uint64_t longest_ = 0;
  std::uint64_t early_ = 0;   // one in so many acts of a program is to be released from a read; 0: none
  std::uint64_t trouble_ = 0; // one in so many steps brings a disaster; 0: none
  std::uint64_t outage_ = 0;  // one in so many steps breaks a carrier; 0: none
  std::size_t most_subflows_ = 0;
  std::size_t most_writes_ = 0; // unfinished ones of an actor
  std::size_t burst_ = 0;       // operations that some acts are; 0: one
};

} // namespace parc::sim
