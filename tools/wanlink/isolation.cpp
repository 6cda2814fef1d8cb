// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/isolation.hpp"

#include "system/environment.hpp"
#include "tools/wanlink/address.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::wanlink {
namespace {

struct NamespaceKind {
  const char* name; // in /proc/self/ns
  int flag;
};
constexpr std::array host_namespaces{NamespaceKind{"net", CLONE_NEWNET}, NamespaceKind{"uts", CLONE_NEWUTS},
                                     NamespaceKind{"ipc", CLONE_NEWIPC}};

// proc and sysfs take a value in one write.
Result<void> write_file(const std::string& path, std::string_view text, mode_t mode = 0644) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!file) return system_error("cannot open {}", path);
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_error("cannot write {}", path);
  return success();
}

std::string read_word(const char* path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

Result<void> make_dir(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 || chmod(path.c_str(), mode) != 0)
    return system_error("cannot make directory {}", path);
  return success();
}

Result<void> bind_mount(const std::string& source, const std::string& target, unsigned long flags = 0) {
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | flags, nullptr) != 0)
    return system_error("cannot mount {} on {}", source, target);
  return success();
}

// Which switch of this system keeps unprivileged users from emulating a network.
Error no_user_namespaces(int code) {
  constexpr std::string_view or_root = "or run as root";
  if (read_word("/proc/sys/kernel/unprivileged_userns_clone") == "0")
    return error(code,
                 "this system allows user namespaces to root only; enable them (sysctl -w "
                 "kernel.unprivileged_userns_clone=1) {}",
                 or_root);
  if (read_word("/proc/sys/user/max_user_namespaces") == "0")
    return error(code,
                 "this system allows no user namespaces; enable them (sysctl -w "
                 "user.max_user_namespaces=10000) {}",
                 or_root);
  if (read_word("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1")
    return error(code,
                 "AppArmor keeps user namespaces from unprivileged programs; allow them (sysctl -w "
                 "kernel.apparmor_restrict_unprivileged_userns=0) {}",
                 or_root);
  return error(
      code,
      "neither root's privileges (CAP_SYS_ADMIN) nor user namespaces are available here ({}); run as "
      "root outside containers and chroots, or start the container with --privileged",
      std::strerror(code));
}

Result<void> enter_user_namespace() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return no_user_namespaces(errno);
  auto mapped = [&]() -> Result<void> {
    PARC_TRY(write_file("/proc/self/setgroups", "deny"));
    PARC_TRY(write_file("/proc/self/uid_map", fmt::format("{0} {0} 1", uid)));
    PARC_TRY(write_file("/proc/self/gid_map", fmt::format("{0} {0} 1", gid)));
    return success();
  }();
  if (!mapped) return no_user_namespaces(mapped.error().code);
  return success();
}

// Mounts made from here on stay in this mount namespace. In a chroot "/" is no mount, so the change is made
// from the root of the namespace.
Result<void> make_mounts_private() {
  if (unshare(CLONE_NEWNS) != 0) return no_user_namespaces(errno);
  constexpr unsigned long all_private = MS_REC | MS_PRIVATE;
  if (mount(nullptr, "/", nullptr, all_private, nullptr) == 0) return success();
  const Fd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd here(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd mounts(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!root || !here || !mounts || setns(mounts.get(), CLONE_NEWNS) != 0 ||
      mount(nullptr, "/", nullptr, all_private, nullptr) != 0 || fchdir(root.get()) != 0 ||
      chroot(".") != 0 || fchdir(here.get()) != 0)
    return system_error("cannot make the mounts private");
  return success();
}

std::string etc_hosts(const std::vector<std::string>& names, bool ipv6) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n";
  unsigned number = 0;
  for (const std::string& name : names) {
    text += fmt::format("{} {} {}.v4\n", ipv4_address(++number), name, name);
    if (ipv6) text += fmt::format("{} {}.v6\n", ipv6_address(number), name);
  }
  return text;
}

Result<std::string> random_key() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return system_error("cannot get random bytes for the key");
  return fmt::format("{:02x}\n", fmt::join(bytes, ""));
}

// In the host's namespaces, which are then kept alive by bind mounts.
Result<Device> furnish_host(const Paths& paths, const std::string& name, unsigned number,
                            const std::string& congestion_control) {
  if (sethostname(name.data(), name.size()) != 0) return system_error("cannot set the host name");
  PARC_TRY(device, Device::make(number, congestion_control));
  PARC_TRY(make_dir(paths.host(name), 0755));
  PARC_TRY(make_dir(paths.ns(name), 0755));
  PARC_TRY(make_dir(paths.run(name), 0700));
  PARC_TRY(make_dir(paths.run(name) + "/parc", 0700));
  PARC_TRY(make_dir(paths.shm(name), 01777));
  PARC_TRY(make_dir(paths.shm(name) + "/wanlink", 0755));
  for (const NamespaceKind& kind : host_namespaces) {
    const std::string target = fmt::format("{}/{}", paths.ns(name), kind.name);
    PARC_TRY(write_file(target, ""));
    PARC_TRY(bind_mount(fmt::format("/proc/self/ns/{}", kind.name), target));
  }
  return device;
}

// Makes one host in a process of its own, because an unprivileged process could not come back from it.
Result<Host> make_host(const Paths& paths, const std::string& name, unsigned number,
                       const std::string& congestion_control) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("cannot make a socket pair");
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t child = fork();
  if (child < 0) return system_error("cannot start a process");
  if (child == 0) {
    const auto made = [&]() -> Result<void> {
      if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0) return no_user_namespaces(errno);
      PARC_TRY(device, furnish_host(paths, name, number, congestion_control));
      return device.send_over(theirs.get());
    }();
    // An error travels as text, which is told from a device by its having no descriptors.
    if (!made) (void)send(theirs.get(), made.error().text.data(), made.error().text.size(), MSG_NOSIGNAL);
    _exit(made ? 0 : 1);
  }
  theirs.reset();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) {
    PARC_TRY(device, Device::receive_from(ours.get()));
    return Host{name, number, std::move(device)};
  }
  std::array<char, 2048> text{};
  const ssize_t length = recv(ours.get(), text.data(), text.size(), MSG_DONTWAIT);
  return error(EIO, "cannot make host {}: {}", name,
               length > 0 ? std::string_view(text.data(), static_cast<std::size_t>(length))
                          : std::string_view("the process that makes it died"));
}

} // namespace

Result<void> isolate_children() {
  if (unshare(CLONE_NEWPID) == 0) return success();
  if (errno != EPERM) return system_error("cannot make a process namespace");
  return enter_user_namespace();
}

Result<void> isolate_mounts(const Paths& paths) {
  PARC_TRY(make_mounts_private());
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return system_error(
        "cannot mount /proc for the emulated hosts (inside a container, start it with --privileged)");
  if (mount("wanlink", shm_mount, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    return system_error("cannot mount a tmpfs on {}", shm_mount);
  PARC_TRY(make_dir(paths.dir, 0755));
  PARC_TRY(make_dir(paths.hosts(), 0755));
  PARC_TRY(make_dir(paths.config(), 0755));
  PARC_TRY(make_dir(paths.config() + "/parc", 0700));
  PARC_TRY(key, random_key());
  return write_file(paths.config() + "/parc/key", key, 0600);
}

Result<std::vector<Host>> make_hosts(const Paths& paths, const std::vector<std::string>& names,
                                     const std::string& congestion_control) {
  std::vector<Host> hosts;
  for (const std::string& name : names) {
    PARC_TRY(host, make_host(paths, name, static_cast<unsigned>(hosts.size()) + 1, congestion_control));
    hosts.push_back(std::move(host));
  }
  PARC_TRY(write_file(paths.etc_hosts(), etc_hosts(names, hosts.front().device.has_ipv6())));
  return hosts;
}

Result<void> let_children_enter_hosts() {
  if (geteuid() == 0) return success(); // root's programs have all capabilities
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return system_error("cannot read the capabilities");
  sets[0].inheritable |= 1U << CAP_SYS_ADMIN;
  if (syscall(SYS_capset, &header, sets.data()) != 0 ||
      prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) != 0)
    return system_error("cannot keep the capability to enter the hosts");
  return success();
}

Result<void> enter_host(const Paths& paths, const std::string& name) {
  PARC_TRY(check_host(paths, name));
  for (const NamespaceKind& kind : host_namespaces) {
    const std::string path = fmt::format("{}/{}", paths.ns(name), kind.name);
    const Fd ns(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!ns || setns(ns.get(), kind.flag) != 0) return system_error("cannot enter {}", path);
  }
  // A mount namespace of its own, copied from the caller's: a shared one could only be entered by giving up
  // the working directory and, in a chroot, the root.
  if (unshare(CLONE_NEWNS) != 0) return system_error("cannot make a mount namespace");
  PARC_TRY(bind_mount(paths.etc_hosts(), "/etc/hosts"));
  const Fd dir(open(paths.dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return system_error("cannot open {}", paths.dir);
  PARC_TRY(bind_mount(paths.shm(name), shm_mount));
  PARC_TRY(bind_mount(fmt::format("/proc/self/fd/{}", dir.get()), default_dir, MS_REC));

  setenv(dir_variable, default_dir, 1);
  setenv("WANLINK_HOST", name.c_str(), 1);
  setenv("XDG_CONFIG_HOME", paths.config().c_str(), 1);
  setenv("XDG_RUNTIME_DIR", paths.run(name).c_str(), 1);
  setenv(env_runtime_dir, (paths.run(name) + "/parc").c_str(), 1);
  return success();
}

} // namespace parc::wanlink
