// SPDX-License-Identifier: BSD-3-Clause
// libpmix's server of one host of a job. There is one in a process. libpmix calls back on a thread of its own
// (pmix/callbacks.cpp), where calls are only posted to the messenger's.
#pragma once

#include "pmix/exchange.hpp"
#include "pmix/jobs.hpp"
#include "pmix/messenger.hpp"
#include "pmix/names.hpp"
#include "pmix/spawns.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parc::pmix {

class Server {
public:
  // `directory`: where everything of this host's server and ranks lies that is a file.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(const Job& job, const std::string& directory,
                                                             parc_context* parc);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // What a rank of this host needs in its environment, besides its number.
  [[nodiscard]] const std::vector<std::string>& variables() const { return variables_; }

  void hear(const std::string& line); // from the kernel; threads: any
  // Until the kernel has gone.
  Result<void> serve() { return messenger_.run(); }

private:
  friend struct Callbacks;
  Server(const Job& job, const std::string& directory, parc_context* parc);
  Result<void> begin();
  Result<void> set_variables();
  void learn(std::string_view body, const Messenger::Answer& answer);
  void reached(const Job& job, std::vector<int> peers);
  void server_lost(int server);
  void tell_of_event(const std::string& event);

  const std::string directory_;
  Messenger messenger_;
  Jobs jobs_;
  Exchange exchange_;
  Names names_;
  Spawns spawns_;
  std::vector<std::string> variables_;
};

// As PMIx knows it; `number`: as PARC_JOB has it.
[[nodiscard]] std::string name_of_job(std::string_view number);

} // namespace parc::pmix
