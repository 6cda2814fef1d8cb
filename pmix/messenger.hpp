// SPDX-License-Identifier: BSD-3-Clause
// What the PMIx servers of all jobs tell and ask each other, as messages of parc, and the thread on which all
// of that is dealt with. Those of one's own job are its first peers, by their places; others are reached by
// their addresses.
//
// Invariant: whoever asks is answered once: by who was asked, or with PMIX_ERR_LOST_CONNECTION when that has
// gone.
//
// Threads: post() any, everything else that of run().
#pragma once

#include "include/parc/parc.h"
#include "system/error.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace parc::pmix {

enum class Kind : std::uint32_t {
  answer,
  contribution, // to a fence
  modex,        // what a rank has for others
  publish,      // to the first server of one's own job
  unpublish,
  lookup,
  find, // to the first server of another job: whether it has something
  take, // that
  forget,
  know, // of jobs
  event,
};
inline constexpr std::size_t kinds = static_cast<std::size_t>(Kind::event) + 1;

class Messenger {
public:
  using Clock = std::chrono::steady_clock;
  using Action = std::function<void()>;
  using Answer = std::function<void(int status, std::string body)>; // status of PMIx
  // `answer` counts once; of what was told nobody waits for it.
  using Handler = std::function<void(int from, std::string_view body, const Answer& answer)>;

  explicit Messenger(parc_context* parc);
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  ~Messenger();

  [[nodiscard]] int self() const { return self_; }
  void on(Kind kind, Handler handler) { handlers_[static_cast<std::size_t>(kind)] = std::move(handler); }
  // `taken`: who is told has it, or has gone.
  void tell(int peer, Kind kind, std::string_view body, Action taken = {});
  void ask(int peer, Kind kind, std::string_view body, Answer answer);

  // Servers of other jobs. Who is reached is watched.
  void reach(const std::string& address, std::function<void(std::optional<int> peer)> reached);
  void watch(int peer); // of another job: on_lost() says when it has gone, and what it has said is heard
  [[nodiscard]] bool is_watched(int peer) const { return watched_.contains(peer); }
  void on_lost(std::function<void(int peer)> lost) { lost_ = std::move(lost); }

  // Has run() do this.
  void post(Action action);
  void at(Clock::time_point when, Action action);
  // Until the kernel has gone.
  Result<void> run();

private:
  struct Header {
    Kind kind;
    std::int32_t status;  // of an answer
    std::uint64_t number; // of a question, with who asks; 0: nobody waits for an answer
  };
  struct Write {
    int peer;
    std::uint64_t question; // 0: it is none
    std::vector<char> message;
    Action taken;
  };
  struct Read {
    int from;
    std::vector<char> message;
    bool is_too_long;
  };
  struct Question {
    int peer;
    Answer answer;
  };

  void send(int peer, const Header& header, std::string_view body, Action taken);
  [[nodiscard]] bool is_of_own_job(int peer) const { return peer < parc_size(parc_); }
  void fail_questions(int peer);
  void lose_departed();
  void fail(int code);
  Result<void> probe(int source);
  Result<void> completed(const parc_completion& completion);
  Result<void> probed(int source, const parc_completion& completion);
  void written(const Write& write, int code);
  void received(int from, std::string_view message);
  void answered(int from, std::uint64_t number, int status, std::string body);
  [[nodiscard]] double seconds_to_next() const;
  void take_actions();
  void reach_all(const std::stop_token& stop);

  parc_context* parc_;
  const int self_;
  std::array<Handler, kinds> handlers_;
  std::function<void(int peer)> lost_;
  std::unordered_map<std::uint64_t, Question> questions_;
  std::uint64_t last_question_ = 0;
  std::unordered_map<parc_op, int> probes_; // and whose messages they look for
  std::unordered_map<parc_op, Read> reads_;
  std::unordered_map<parc_op, Write> writes_;
  std::set<int> watched_, departed_; // departed: what they have said may still be being read
  std::multimap<Clock::time_point, Action> timers_;
  std::optional<Error> failure_; // of a message that could not be sent: somebody would wait for it for ever
  std::mutex mutex_;
  std::vector<Action> actions_; // under mutex_
  struct Reach {
    std::string address;
    std::function<void(std::optional<int>)> reached;
  };
  std::condition_variable_any reaches_changed_;
  std::deque<Reach> reaches_;            // under mutex_
  std::array<std::jthread, 4> reachers_; // parc_add_peer waits; after what they use
};

} // namespace parc::pmix
