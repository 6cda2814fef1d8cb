// SPDX-License-Identifier: BSD-3-Clause
// libpmix's server of one host, and the job as its ranks are told of it. There is one in a process. libpmix
// calls back on a thread of its own, where calls are only posted to the exchange.
#pragma once

#include "pmix/exchange.hpp"

#include <memory>
#include <string>
#include <vector>

namespace parc::pmix {

struct Job {
  std::string name;      // the namespace of PMIx
  std::string directory; // where everything of this host's server and ranks lies that is a file
  std::vector<std::string> host_of_rank;

  [[nodiscard]] std::vector<std::string> hosts() const; // each once, in the order of their first ranks
  [[nodiscard]] std::vector<std::uint32_t> server_of_rank() const; // places in hosts()
};

class Server {
public:
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const Job& job, parc_context* parc);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // What a rank of this host needs in its environment, besides its number.
  [[nodiscard]] Result<std::vector<std::string>> variables() const;

  // Until the kernel has gone.
  Result<void> serve() { return exchange_.run(); }

private:
  friend struct Callbacks;
  Server(const Job& job, parc_context* parc);
  Result<void> register_job();

  const Job job_;
  const std::vector<std::string> hosts_;
  const std::vector<std::uint32_t> server_of_rank_;
  const std::uint32_t self_; // among hosts_
  Exchange exchange_;
};

// A line to whoever started this, at once. Threads: any.
void say(const std::string& text);

} // namespace parc::pmix
