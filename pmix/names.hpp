// SPDX-License-Identifier: BSD-3-Clause
// What ranks publish and look up. The first server of a job keeps what its ranks have published, as long as
// the job runs. It looks there first, and then asks those of the other jobs of which its kernel tells it
// whether they have it, and one that does for it: what may be read once goes to one who wants it. Who finds
// something of another job's is to know that job, and so are all that are connected with it: it is answered
// when they do (jobs.hpp).
//
// Threads: that of the messenger.
#pragma once

#include "pmix/jobs.hpp"
#include "pmix/messenger.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace parc::pmix {

struct Entry {
  std::string key, value; // as libpmix packs it
  std::string job;        // of the rank that has published it
  std::uint32_t rank = 0;
  bool once = false;    // it goes when it is read
  bool own_job = false; // others do not see it
};

class Names {
public:
  Names(Messenger& messenger, const Jobs& jobs);

  // Ranks of this host ask for these; statuses are PMIx's.
  void publish(const std::vector<Entry>& entries, Messenger::Answer answer);
  void unpublish(std::uint32_t rank, const std::vector<std::string>& keys, Messenger::Answer answer);
  struct Wanted {
    std::vector<std::string> keys;
    bool waits = false;                // until they are published
    std::chrono::seconds at_most = {}; // 0: no limit
  };
  void look_up(const Wanted& wanted, std::function<void(int status, std::vector<Entry> found)> answer);

  // From the kernel, of the first server: a job of MPI has begun. `address`: its first server's.
  void job_begins(const std::string& name, const std::string& address);
  void server_lost(int server);
  void forget(const std::string& job) { known_.erase(job); }

private:
  struct Other { // job
    std::string address;
    std::optional<int> peer = {}; // once it is reached
    int failures = 0;             // to reach it, one after the other
  };
  struct Search { // for one key
    std::string key;
    bool waits = false;
    std::set<std::string> asked = {};   // jobs that have not answered
    std::set<std::string> have_it = {}; // as they say
    std::string taken_from = {};        // it has been asked for it; empty: none has
    std::optional<Entry> found = {};
    std::vector<Job> jobs = {}; // of whoever had it
    bool late = false;          // it ends when what is under way has ended
    std::function<void(const Search&)> then;
  };
  struct Waiting { // another job's search
    int from;
    std::uint64_t search; // by its own number
    std::string key;
    Messenger::Answer answer;
  };
  struct LookUp;

  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] std::optional<Entry> take(const std::string& key, bool for_own_job);
  void published(std::string_view body, const Messenger::Answer& answer);
  void unpublished(std::string_view body, const Messenger::Answer& answer);
  void looked_up(std::string_view body, const Messenger::Answer& answer);
  void ended(const std::shared_ptr<LookUp>& look_up);
  void begin(std::uint64_t search);
  void ask(std::uint64_t search, const std::string& job);
  void ask(std::uint64_t search, const std::string& job, int peer);
  void heard(std::uint64_t search, const std::string& job, int status);
  void go_on(std::uint64_t search);
  void taken(std::uint64_t search, const std::string& job, int status, std::string_view body);
  void end_late(std::uint64_t search);
  void end(std::uint64_t search);
  void give(std::string_view body, const Messenger::Answer& answer);
  void asked(int from, std::string_view body, const Messenger::Answer& answer);
  void forgotten(int from, std::string_view body);
  void give_to_waiting();
  void make_known(const LookUp& look_up, const std::function<void(int status)>& then);

  Messenger& messenger_;
  const Jobs& jobs_;
  std::list<Entry> entries_;
  std::map<std::string, Other> others_; // by job
  std::map<std::uint64_t, Search> searches_;
  std::uint64_t last_search_ = 0;
  std::list<Waiting> waiting_;
  std::set<std::string> known_; // jobs that all servers of this one know
};

} // namespace parc::pmix
