// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/hosts.hpp"

#include "system/fd.hpp"
#include "system/runtime_dir.hpp"
#include "tests/support/ports.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>

namespace parc::test {
namespace {

std::string name_of(std::size_t host) {
  return host < 26 ? std::string(1, static_cast<char>('a' + host)) : "host" + std::to_string(host);
}

bool answers(const std::string& socket_path) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

} // namespace

Host::Host(const Hosts& all, std::string name, std::uint16_t port)
    : all_(all), name_(std::move(name)), port_(port) {}

Host::~Host() {
  kill_strangers_kernel();
}

void Host::kill_strangers_kernel() {
  const auto dir = find_runtime_dir(runtime_dir());
  if (!dir) return; // no kernel ever ran
  const auto gone = [&] {
    const auto running = running_kernel(dir.value());
    if (!running || !running.value() || (kernel_ && *running.value() == kernel_->id())) return true;
    kill(*running.value(), SIGKILL);
    return false;
  };
  (void)eventually(gone);
}

std::string Host::runtime_dir() const {
  return all_.directory() + "/" + name_;
}

std::string Host::log() const {
  return kernel_->errors();
}

void Host::start() {
  kernel_.reset();
  kill_strangers_kernel();
  std::vector<std::string> command{PARC_TEST_BIN "/parcd",
                                   "--name",
                                   name_,
                                   "--port",
                                   std::to_string(port_),
                                   "--listen",
                                   "127.0.0.1",
                                   "--runtime-dir",
                                   runtime_dir(),
                                   "--config",
                                   all_.directory() + "/parcd.toml"};
  command.insert(command.end(), all_.options().begin(), all_.options().end());
  kernel_ = std::make_unique<Process>(Process::Start{.command = command,
                                                     .output = all_.directory() + "/" + name_ + ".out",
                                                     .errors = all_.directory() + "/" + name_ + ".log",
                                                     .environment = all_.environment(),
                                                     .directory = {}});
  const bool ready =
      eventually([this] { return answers(runtime_dir() + "/kernel.sock") || !kernel_->running(); });
  if (!ready || !kernel_->running()) throw std::runtime_error("parcd of host " + name_ + ": " + log());
}

Hosts::Hosts(std::size_t count, std::vector<std::string> options, const std::string& more_hosts,
             const Way& way)
    : options_(std::move(options)) {
  const char* scratch = std::getenv("TMPDIR");
  directory_ = std::string(scratch != nullptr ? scratch : "/tmp") + "/parc-hosts-XXXXXX";
  if (mkdtemp(directory_.data()) == nullptr) throw std::runtime_error("cannot make " + directory_);
  const auto ports = free_ports(count);
  std::ofstream config(directory_ + "/parcd.toml");
  config << "key_file = \"" << directory_ << "/key\"\n[hosts]\n";
  for (std::size_t i = 0; i < count; ++i) {
    hosts_.push_back(std::make_unique<Host>(*this, name_of(i), ports[i]));
    config << hosts_.back()->name() << " = \"127.0.0.1:" << way(ports[i]) << "\"\n";
  }
  config << more_hosts;
  config.close();
  for (const auto& host : hosts_) host->start();
}

Hosts::~Hosts() {
  hosts_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::pair<std::string, std::string>> Hosts::environment() const {
  return {{"XDG_CONFIG_HOME", directory_ + "/config"},
          {"XDG_STATE_HOME", directory_ + "/state"},
          {"XDG_RUNTIME_DIR", directory_ + "/none"},
          {"PARC_SSH", "false"}, // no kernel of another host is started
          {"TMPDIR", directory_}};
}

Process Hosts::start(std::vector<std::string> words) {
  const std::string base = directory_ + "/process" + std::to_string(++processes_);
  return Process({.command = std::move(words),
                  .output = base + ".out",
                  .errors = base + ".err",
                  .environment = environment(),
                  .directory = directory_});
}

Process Hosts::parc(const std::string& command, std::vector<std::string> words, std::size_t on) {
  words.insert(words.begin(), {PARC_TEST_BIN "/parc", command, "--runtime-dir", hosts_[on]->runtime_dir()});
  return start(std::move(words));
}

nlohmann::json Hosts::status(std::size_t on) {
  Process status = parc("status", {"--json"}, on);
  if (const int code = status.wait(); code != 0)
    throw std::runtime_error("parc status ends with " + std::to_string(code) + ": " + status.errors());
  return nlohmann::json::parse(status.output());
}

Process Hosts::parcd(std::vector<std::string> words) {
  words.insert(words.begin(), PARC_TEST_BIN "/parcd");
  return start(std::move(words));
}

std::string Hosts::logs() const {
  std::string all;
  for (const auto& host : hosts_) all += "\n-- log of host " + host->name() + ":\n" + host->log();
  return all;
}

std::ostream& operator<<(std::ostream& to, const Hosts& hosts) {
  return to << hosts.logs();
}

std::vector<pid_t> Hosts::ranks() const {
  std::vector<pid_t> found;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find("PARC_RUNTIME_DIR=" + directory_ + "/") != environment.npos &&
        environment.find("PARC_KERNEL=") != environment.npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

bool Hosts::ranks_sleep() const {
  return std::ranges::all_of(ranks(), [](pid_t rank) {
    std::ifstream file("/proc/" + std::to_string(rank) + "/stat");
    const std::string status{std::istreambuf_iterator<char>(file), {}};
    return status.find(") S ") != status.npos;
  });
}

Fd visit(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOOST_REQUIRE(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

} // namespace parc::test
