// SPDX-License-Identifier: BSD-3-Clause
// pmix: the PMIx server of one host of a job of MPI programs. parcd starts it before the ranks there, as a
// rank in the job of servers, and reads what it says: the variables of the ranks' environment, a line each,
// an empty line when they may start, and later "in RANK", "out RANK" and "abort RANK STATUS", and what ranks
// spawn. It hears from it, a line each, what has become of that, and of other jobs (pmix/spawns.hpp,
// Server::hear). It ends when its kernel ends it or has gone; its files are the kernel's to remove.
#include "control/words/host_words.hpp"
#include "pmix/server.hpp"
#include "system/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/ranges.h>
#include <iostream>
#include <thread>

namespace parc::pmix {
namespace {

struct Leave {
  void operator()(parc_context* context) const { parc_close(context); }
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// "0,4,6"
std::vector<std::uint32_t> numbers_in(std::string_view list) {
  std::vector<std::uint32_t> numbers;
  while (!list.empty()) {
    const char* const end =
        std::from_chars(list.data(), list.data() + list.size(), numbers.emplace_back()).ptr;
    list.remove_prefix(std::min(static_cast<std::size_t>(end - list.data()) + 1, list.size()));
  }
  return numbers;
}

Result<Job> job_in_environment() {
  Job job{.name = name_of_job(variable(env_job)), .host_of_rank = {}, .servers = {}};
  const std::string ranks = variable(env_mpi_ranks);
  std::size_t size = 0;
  std::from_chars(ranks.data(), ranks.data() + ranks.size(), size);
  auto hosts = control::hosts_in(variable(env_mpi_hosts), size);
  if (!hosts || hosts->empty() || variable(env_mpi_directory).empty())
    return error(EINVAL, "it is not for users: parcd starts it for parc run --mpi");
  job.host_of_rank = std::move(*hosts);
  if (auto apps = numbers_in(variable(env_mpi_apps)); has_apps(apps, size)) job.apps = std::move(apps);
  return job;
}

// For the messenger, as long as there is a kernel to say something.
void listen_to_kernel(Server& server) {
  std::string line;
  while (std::getline(std::cin, line)) server.hear(line);
}

Result<std::vector<std::string>> addresses_of_servers(parc_context* parc) {
  std::vector<std::string> all;
  std::array<char, PARC_ADDRESS_BYTES> text{};
  for (int server = 0; server < parc_size(parc); ++server) {
    if (const int code = parc_address_of(parc, server, text.data(), text.size()); code < 0)
      return error(code, "{}", parc_error_detail());
    all.emplace_back(text.data());
  }
  return all;
}

void complain(const Error& error) {
  std::fprintf(stderr, "pmix: %s\n", error.text.c_str());
}

Result<void> serve() {
  PARC_TRY(job, job_in_environment());
  parc_context* opened = nullptr;
  if (const int code = parc_open(&opened); code < 0) return error(code, "{}", parc_error_detail());
  const std::unique_ptr<parc_context, Leave> parc(opened);
  if (static_cast<std::size_t>(parc_size(opened)) != job.hosts().size())
    return error(EINVAL, "its job has {} hosts, and that of the servers {}", job.hosts().size(),
                 parc_size(opened));
  PARC_TRY(addresses, addresses_of_servers(opened));
  job.servers = std::move(addresses);
  PARC_TRY(server, Server::start(job, variable(env_mpi_directory), opened));
  say(fmt::format("{}\n\n", fmt::join(server->variables(), "\n")));
  std::thread([&server = *server] { listen_to_kernel(server); }).detach();
  const auto served = server->serve();
  complain(served.error());
  std::_Exit(1); // while somebody listens to the kernel, and files are the kernel's to remove
}

} // namespace
} // namespace parc::pmix

int main() {
  std::signal(SIGPIPE, SIG_IGN); // of ranks that are killed
  if (const auto served = parc::pmix::serve(); !served) {
    parc::pmix::complain(served.error());
    return 1;
  }
  return 0;
}
