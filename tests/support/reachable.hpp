// SPDX-License-Identifier: BSD-3-Clause
// A host with a kernel, and others that a real sshd each leads to, whose kernels are started through it.
#pragma once

#include "system/fd.hpp"
#include "tests/support/hosts.hpp"
#include "tests/support/ports.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace parc::test {

// Where sshd of the superuser wants a directory. Tests that run at the same time share one, whose mode says
// that it is theirs, and whoever is the last removes it (tests/support/emulated_sshd.sh does so, too).
class PrivilegeSeparation {
public:
  PrivilegeSeparation() {
    while (geteuid() == 0 && !lock()) mkdir(path, mode_of_ours);
  }
  PrivilegeSeparation(const PrivilegeSeparation&) = delete;
  PrivilegeSeparation& operator=(const PrivilegeSeparation&) = delete;
  ~PrivilegeSeparation() {
    struct stat found {};
    if (held_ && fstat(held_.get(), &found) == 0 && (found.st_mode & 07777) == mode_of_ours &&
        flock(held_.get(), LOCK_EX | LOCK_NB) == 0)
      rmdir(path);
  }

private:
  static constexpr const char* path = "/run/sshd";
  static constexpr mode_t mode_of_ours = 0711;

  // False: there is none, or who had it last has just removed it.
  bool lock() {
    held_.reset(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat held {
    }, found{};
    return held_ && flock(held_.get(), LOCK_SH) == 0 && fstat(held_.get(), &held) == 0 &&
           stat(path, &found) == 0 && held.st_ino == found.st_ino;
  }

  Fd held_;
};

// Host a has a kernel; b, c and d have an sshd each, and homes of their own. That of d forwards no sockets.
class Reachable {
public:
  static constexpr std::array others{"b", "c", "d"};
  Hosts hosts;

  explicit Reachable(std::vector<std::string> options = {}) : hosts(1, std::move(options), unused_ports()) {
    const std::string& dir = hosts.directory();
    run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir + "/host_key"});
    run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir + "/user_key"});
    const auto ports = free_ports(others.size());
    std::ofstream client(ssh_config());
    for (std::size_t i = 0; i < others.size(); ++i) {
      const std::string host = others[i], home = dir + "/" + host;
      for (const char* part : {"", "/config", "/state", "/run", "/tmp"})
        std::filesystem::create_directory(home + part);
      chmod((home + "/run").c_str(), 0700);
      std::ofstream(home + "/sshd_config")
          << "Port " << ports[i] << "\nListenAddress 127.0.0.1\nHostKey " << dir << "/host_key\n"
          << "PidFile none\nAuthorizedKeysFile " << dir << "/user_key.pub\nStrictModes no\nUsePAM no\n"
          << "MaxStartups 100\nSetEnv XDG_CONFIG_HOME=" << home << "/config XDG_STATE_HOME=" << home
          << "/state XDG_RUNTIME_DIR=" << home << "/run TMPDIR=" << home << "/tmp\n"
          << (host == "d" ? "AllowStreamLocalForwarding no\n" : "");
      client << "Host " << host << " alias-of-" << host << "\n  HostName 127.0.0.1\n  Port " << ports[i]
             << "\n";
      servers_.push_back(std::make_unique<Process>(
          Process::Start{.command = {"/usr/sbin/sshd", "-D", "-e", "-f", home + "/sshd_config"},
                         .output = home + "/sshd.out",
                         .errors = home + "/sshd.err",
                         .environment = {},
                         .directory = {}}));
    }
    client << "Host *\n  IdentityFile " << dir << "/user_key\n  StrictHostKeyChecking no\n"
           << "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n";
    for (std::size_t i = 0; i < others.size(); ++i)
      BOOST_REQUIRE(eventually([&] { return is_listened_on(ports[i]); }));
  }
  Reachable(const Reachable&) = delete;
  Reachable& operator=(const Reachable&) = delete;
  ~Reachable() {
    for (const char* host : others) end_kernel(host);
  }

  [[nodiscard]] std::string ssh_config() const { return hosts.directory() + "/ssh_config"; }
  void stop_sshd(std::size_t host) { servers_[host].reset(); }

  // parc COMMAND --hosts HOSTS: its status, what it prints and what it complains of.
  struct Ended {
    int status;
    std::string output, errors;
  };
  Ended command(const std::string& command, const std::string& named,
                const std::vector<std::string>& of_kernels = {}) {
    std::vector<std::string> words{"--ssh", "ssh -F " + ssh_config(), "--hosts", named};
    if (command == "up") words.insert(words.end(), {"--", "--port", "0"});
    words.insert(words.end(), of_kernels.begin(), of_kernels.end());
    words.insert(words.begin(), {PARC_TEST_BIN "/parc", command});
    if (command == "up") words.insert(words.begin() + 2, {"--runtime-dir", hosts[0].runtime_dir()});
    Process process = hosts.start(std::move(words));
    const int status = process.wait();
    return {status, process.output(), process.errors()};
  }
  bool is_up(const std::string& host) const {
    return access((hosts.directory() + "/" + host + "/run/parc/kernel.sock").c_str(), F_OK) == 0;
  }

private:
  // Where a looks for the others before it is told where they are: nobody listens there.
  static std::string unused_ports() {
    std::string lines;
    const auto ports = free_ports(others.size());
    for (std::size_t i = 0; i < others.size(); ++i)
      lines += std::string(others[i]) + " = \"127.0.0.1:" + std::to_string(ports[i]) + "\"\n";
    return lines;
  }
  void run(std::vector<std::string> words) {
    Process process = hosts.start(std::move(words));
    BOOST_REQUIRE(process.wait() == 0);
  }
  void end_kernel(const std::string& host) {
    Process stop = hosts.start(
        {PARC_TEST_BIN "/parc", "stop", "--runtime-dir", hosts.directory() + "/" + host + "/run/parc"});
    BOOST_TEST(stop.wait() == 0);
  }

  PrivilegeSeparation directory_;
  std::vector<std::unique_ptr<Process>> servers_;
};

} // namespace parc::test
