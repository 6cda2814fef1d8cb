// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/hosts.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace parc::heat::demo {

namespace {

constexpr int plain_port = 7400; // of the ranks that talk over plain sockets, on a host of their own each

// Ports of loopback that nobody listens on. All are held until all are known, so that they differ.
Result<std::vector<int>> free_ports(std::size_t count) {
  std::vector<Fd> held;
  std::vector<int> ports;
  while (ports.size() < count) {
    const Fd& listener = held.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
      return system_error("cannot find a free port on loopback");
    ports.push_back(ntohs(address.sin_port));
  }
  return ports;
}

std::string host_name(std::size_t host) {
  return std::string(1, static_cast<char>('a' + host));
}

} // namespace

std::string program(const std::string& name) {
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? name : (self.parent_path() / name).string();
}

bool RelayCounters::was_late(const RelayCounters& before, const RelayCounters& after) {
  return (after.late - before.late) * 100 > after.packets - before.packets;
}

Result<LoopbackDirectory> LoopbackDirectory::make(const std::string& path) {
  LoopbackDirectory made;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error("cannot make {}", path);
  made.lock_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (!made.lock_ || fstat(made.lock_.get(), &about) != 0) return system_error("cannot use {}", path);
  if (about.st_uid != getuid()) return error(EPERM, "cannot use {}: it belongs to another user", path);
  if (flock(made.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return error(EBUSY, "another demo is using {}; wait for it or stop it", path);
  for (const auto& left : std::filesystem::directory_iterator(path)) std::filesystem::remove_all(left);
  made.path_ = path;
  return made;
}

LoopbackDirectory::~LoopbackDirectory() {
  std::error_code ignored;
  if (lock_) std::filesystem::remove_all(path_, ignored);
}

Result<Hosts> Hosts::of_emulation(std::size_t count) {
  Hosts hosts;
  for (std::size_t host = 0; host < count; ++host) {
    hosts.names_.push_back(host_name(host));
    hosts.places_.push_back(fmt::format("{}:{}", host_name(host), plain_port));
  }
  return hosts;
}

Result<Hosts> Hosts::on_loopback(std::size_t count, const std::string& path) {
  PARC_TRY(directory, LoopbackDirectory::make(path));
  PARC_TRY(ports, free_ports(2 * count));
  std::filesystem::create_directories(directory.path() + "/config/parc");
  std::ofstream settings(directory.path() + "/config/parc/parcd.toml");
  settings << "[hosts]\n";
  Hosts hosts;
  for (std::size_t host = 0; host < count; ++host) {
    hosts.names_.push_back(host_name(host));
    hosts.places_.push_back(fmt::format("127.0.0.1:{}", ports[host]));
    hosts.kernel_ports_.push_back(ports[count + host]);
    settings << fmt::format("{} = \"127.0.0.1:{}\"\n", host_name(host), ports[count + host]);
  }
  hosts.directory_ = std::move(directory);
  return hosts;
}

Command Hosts::on(std::size_t host, const Command& command) const {
  Command all = {program("wanlink"), "exec", names_[host], "--"};
  if (directory_) {
    const std::string& path = directory_->path();
    all = {"env", fmt::format("XDG_CONFIG_HOME={}/config", path),
           fmt::format("PARC_RUNTIME_DIR={}/{}", path, names_[host])};
  }
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

Command Hosts::kernel(std::size_t host) const {
  Command command = {program("parcd"), "--name", names_[host], "--log-level", "warning"};
  if (emulated())
    command.insert(command.end(), {"--listen", "0.0.0.0"});
  else
    command.insert(command.end(), {"--port", std::to_string(kernel_ports_[host])});
  return command;
}

std::string Hosts::places() const {
  return fmt::format("{}", fmt::join(places_, ","));
}

std::string Hosts::slots() const {
  return fmt::format("{}:1", fmt::join(names_, ":1,"));
}

Result<std::optional<RelayCounters>> Hosts::relay() const {
  if (!emulated()) return std::optional<RelayCounters>();
  const std::vector<Command> ask = {{program("wanlink"), "status", "--json"}};
  PARC_TRY(answers, run_together(ask, std::chrono::seconds(10)));
  const auto status = nlohmann::json::parse(answers[0].output, nullptr, false);
  if (answers[0].exit_status != 0 || status.is_discarded())
    return error(EIO, "cannot read the counters of the emulated link: {}", answers[0].errors);
  const auto& relay = status.at("relay");
  return std::optional<RelayCounters>({relay.at("packets"), relay.at("late_over_1ms"), relay.at("cpu_s")});
}

Result<Kernels> Kernels::start(const Hosts& hosts, const Settings& settings) {
  constexpr auto patience = std::chrono::seconds(10);
  const std::string buffer = std::to_string(settings.socket_buffer);
  const char* realtime = !settings.realtime ? "auto" : *settings.realtime ? "on" : "off";
  Kernels all;
  for (std::size_t host = 0; host < hosts.count(); ++host) {
    Command command = hosts.kernel(host);
    command.insert(command.end(),
                   {"--realtime", realtime, "--send-buffer", buffer, "--receive-buffer", buffer});
    command.insert(command.end(), settings.options.begin(), settings.options.end());
    PARC_TRY(started, Child::start(hosts.on(host, command)));
    Child& kernel = all.kernels_.emplace_back(std::move(started));
    // It answers itself: status would also tell of one that has ended.
    const std::vector<Command> ask = {hosts.on(host, {program("parc"), "hosts", "--hosts", host_name(host)})};
    for (const auto give_up = Clock::now() + patience;;) {
      PARC_TRY(Child::wait_for_any({&kernel, 1}, Clock::now() + std::chrono::milliseconds(20)));
      if (!kernel.running())
        return error(ECHILD, "the kernel of host {} ended: {}", host_name(host), kernel.errors());
      PARC_TRY(answer, run_together(ask, patience));
      if (answer[0].exit_status == 0) break;
      if (Clock::now() >= give_up)
        return error(ETIMEDOUT, "the kernel of host {} does not answer: {}", host_name(host),
                     answer[0].errors);
    }
  }
  return all;
}

void Kernels::stop() {
  for (Child& kernel : kernels_) kernel.terminate();
  kernels_.clear();
}

} // namespace parc::heat::demo
