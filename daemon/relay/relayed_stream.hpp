// SPDX-License-Identifier: BSD-3-Clause
// One end of a relayed connection.
#pragma once

#include "daemon/link/stream.hpp"
#include "daemon/relay/relays.hpp"

#include <deque>
#include <string>
#include <vector>

namespace parc::daemon {

class RelayedStream final : public Stream {
public:
  // To whom it is asked for: of each link in turn; via one host: when relay_reached(). Accepted: with the leg
  // that it is the end of.
  RelayedStream(Relays& relays, const Address& to, std::vector<std::int32_t> links);
  // `ordered`: by who dialed.
  RelayedStream(Relays& relays, const Address& from, const Relays::Key& leg, std::uint64_t window,
                bool ordered);
  ~RelayedStream() override;

  int opened() override;
  [[nodiscard]] bool readable() const override;
  [[nodiscard]] bool writable() const override;
  Transfer read(std::span<const iovec> to) override;
  Transfer write(std::span<const iovec> from) override;
  void end_output() override;
  [[nodiscard]] bool is_ordered() const override { return ordered_; }
  [[nodiscard]] std::string describe(int code) const override;

  // From its relay, or the other end.
  void relay_reached(const Result<std::int32_t>& link);
  void is_open(std::uint64_t window);
  void came(std::string bytes);
  void may_send(std::uint64_t bytes);
  void is_closed(const std::string& why);

private:
  enum class Stage : std::uint8_t { opening, open, closed };
  void ask_next();
  void silent();
  void enter(Stage next);
  [[nodiscard]] bool is_via() const { return !peer().relay_target().via.empty(); }

  Relays& relays_;
  Stage stage_;
  bool ordered_;
  std::optional<Relays::Key> leg_;  // none: nobody is asked, or it is over
  std::vector<std::int32_t> links_; // to ask still, the next one last
  std::optional<Timer> patience_;   // with who is asked
  std::string why_not_;             // what the one that was asked last has said
  bool was_open_ = false;
  bool silent_ = false;      // one of those that were asked
  std::uint64_t window_ = 0; // from when it is open
  std::uint64_t credit_ = 0;
  std::deque<std::string> in_; // an empty one: the end
  std::size_t read_ = 0;       // of the first
  std::uint64_t unsaid_ = 0;   // of the window, and not credited back yet
};

} // namespace parc::daemon
