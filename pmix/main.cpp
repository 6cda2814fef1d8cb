// SPDX-License-Identifier: BSD-3-Clause
// pmix: the PMIx server of one host of a job of MPI programs. parcd starts it before the ranks there, as a
// rank in the job of servers, and reads what it says: the variables of the ranks' environment, a line each,
// an empty line when they may start, and later "in RANK", "out RANK" and "abort RANK STATUS". It ends when
// its kernel ends it or has gone; its files are the kernel's to remove.
#include "control/words/host_words.hpp"
#include "pmix/server.hpp"
#include "system/environment.hpp"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace parc::pmix {
namespace {

struct Leave {
  void operator()(parc_context* context) const { parc_close(context); }
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

Result<Job> job_in_environment() {
  Job job{.name = "parc-" + variable(env_job), .directory = variable(env_mpi_directory), .host_of_rank = {}};
  const std::string ranks = variable(env_mpi_ranks);
  std::size_t size = 0;
  std::from_chars(ranks.data(), ranks.data() + ranks.size(), size);
  auto hosts = control::hosts_in(variable(env_mpi_hosts), size);
  if (!hosts || hosts->empty() || job.directory.empty())
    return error(EINVAL, "it is not for users: parcd starts it for parc run --mpi");
  job.host_of_rank = std::move(*hosts);
  return job;
}

Result<void> serve() {
  PARC_TRY(job, job_in_environment());
  parc_context* opened = nullptr;
  if (const int code = parc_open(&opened); code < 0) return error(code, "{}", parc_error_detail());
  const std::unique_ptr<parc_context, Leave> parc(opened);
  if (static_cast<std::size_t>(parc_size(opened)) != job.hosts().size())
    return error(EINVAL, "its job has {} hosts, and that of the servers {}", job.hosts().size(),
                 parc_size(opened));
  PARC_TRY(server, Server::start(job, opened));
  PARC_TRY(variables, server->variables());
  std::string lines;
  for (const std::string& each : variables) lines += each + "\n";
  say(lines + "\n");
  return server->serve();
}

} // namespace
} // namespace parc::pmix

int main() {
  std::signal(SIGPIPE, SIG_IGN); // of ranks that are killed
  if (const auto served = parc::pmix::serve(); !served) {
    std::fprintf(stderr, "pmix: %s\n", served.error().text.c_str());
    return 1;
  }
  return 0;
}
