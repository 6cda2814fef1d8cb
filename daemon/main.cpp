// SPDX-License-Identifier: BSD-3-Clause
// parcd: one kernel per host. From the command line to a running kernel, and every way in which that can fail
// in words.
#include "daemon/base/instance.hpp"
#include "daemon/base/logging.hpp"
#include "daemon/base/memory_reserve.hpp"
#include "daemon/kernel.hpp"
#include "daemon/link/link_secrets.hpp"
#include "daemon/link/tls_settings.hpp"
#include "daemon/settings/config.hpp"
#include "shm/leftovers.hpp"
#include "system/limits.hpp"
#include "system/oom_score.hpp"
#include "system/orphans.hpp"
#include "system/standard_streams.hpp"
#include "system/start_kernel.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr std::string_view key_on_stdin = "-";

// What would keep a kernel with these settings from starting, as far as that can be known without changing
// anything. The port may be in use: by the kernel that runs.
// Whether the library can do what links need: it may be told not to, by its own configuration.
Result<void> check_encryption(const Config& config, const Keys& keys) {
  if (config.encryption == "none") {
    if (keys.use == KeyUse::link) return success();
    return error(EINVAL,
                 "the links of a kernel that only relays are encrypted: encryption = \"none\" is to go");
  }
  const TlsSettings settings(keys);
  if (settings.problem().empty()) return success();
  return error(EPROTONOSUPPORT,
               "links cannot be encrypted here, as OpenSSL says: {}; mend its configuration "
               "(openssl.cnf), or say encryption = \"none\" on all hosts",
               settings.problem());
}

// In words for who made it.
Result<std::string> make_named_key(const std::string& path) {
  if (path == key_on_stdin) return error(EINVAL, "a key is made in a file: name it with --key-file");
  if (auto made = make_key(path); !made) {
    if (made.error().code != EEXIST) return std::move(made).error();
    const auto there = read_keys(path);
    if (!there) return error(EEXIST, "there is a file {} already, which is no key: it stays", path);
    return error(
        EEXIST,
        "there is a key {} already ({}), which kernels may use: it stays; name another file for a new one",
        path, fingerprint(there.value().own));
  }
  PARC_TRY(keys, read_keys(path));
  return fmt::format("made the key {} ({})", path, fingerprint(keys.own));
}

Result<std::string> relay_key_of(const std::string& path) {
  PARC_TRY(keys, path == key_on_stdin ? take_keys(STDIN_FILENO) : read_keys(path));
  return to_text(relay_keys(keys));
}

Result<void> check_start(Config config) {
  const auto dir = find_runtime_dir(config.runtime_dir);
  if (!dir && dir.error().code != ENOENT) return dir.error();
  if (config.key_file != key_on_stdin && access(config.key_file.c_str(), F_OK) == 0) {
    PARC_TRY(read_keys(config.key_file));
  }
  config.port = {0, 0, true};
  PARC_TRY(bind_listeners(config));
  PARC_TRY(SchedulingClass::acquire(config.realtime));
  return success();
}

// Keys that were handed over stay.
Result<Kernel::World::Fresh> read_again(int argc, char** argv, const std::optional<Keys>& given) {
  PARC_TRY(line, read_command_line(argc, argv));
  PARC_TRY(keys, given ? Result<Keys>(*given) : read_keys(line.config.key_file));
  return Kernel::World::Fresh{std::move(line.config), keys};
}

Result<void> serve(Config config, const std::optional<Keys>& given, const RuntimeDir& dir,
                   Readiness& readiness, Logging& logging, int argc, char** argv) {
  raise_descriptor_limit(); // a rank takes several; its own limit is that of its parc run
  if (descriptor_limit() < least_descriptors)
    return error(EMFILE, "parcd needs {} descriptors at least{}", least_descriptors,
                 descriptor_advice(EMFILE));
  PARC_TRY(instance, Instance::acquire(dir));
  if (const unsigned ended = end_orphans(dir); ended != 0)
    spdlog::info("ended {} processes of jobs of a kernel that was killed", ended);
  PARC_TRY(removed, shm::remove_leftovers());
  if (removed != 0) spdlog::info("removed {} System V segments of programs that were killed", removed);
  PARC_TRY(keys, given ? Result<Keys>(*given) : read_or_make_key(config.key_file));
  PARC_TRY(check_encryption(config, keys));
  if (keys.use == KeyUse::relay) spdlog::info("holds a relay key: it only relays between others");
  PARC_TRY(scheduling, SchedulingClass::acquire(config.realtime));
  std::error_code failure;
  const auto directory = std::filesystem::current_path(failure); // of paths on the command line
  const auto reload = [&logging, &given, directory, argc, argv]() -> std::optional<Kernel::World::Fresh> {
    std::error_code ignored;
    const auto here = std::filesystem::current_path(ignored);
    (void)!chdir(directory.c_str());
    Result<Kernel::World::Fresh> fresh = read_again(argc, argv, given);
    (void)!chdir(here.c_str());
    if (!fresh) {
      spdlog::error("kept the settings as they were: {}", fresh.error().text);
      return {};
    }
    logging.set_level(fresh.value().config.log_level);
    return std::move(fresh).value();
  };
  const auto dropped = [&logging] { return logging.lines_dropped(); };
  let_children_go_first();
  const MemoryReserve reserve;
  Kernel kernel({std::move(config), dir, keys, std::move(scheduling), reload, dropped, &instance});
  PARC_TRY(kernel.start());
  readiness.ready();
  kernel.run();
  readiness.stopping();
  end_strays(kernel_variable(getpid())); // what its ranks have started outside of their process groups
  return success();
}

int fail(const Error& error, int status) {
  std::fprintf(stderr, "parcd: %s\n", error.text.c_str());
  return status;
}

// A home that may not be written, or none at all, keeps nobody from computing.
std::string usable_log(const std::string& host) {
  const Result<std::string> path = log_path(host);
  const Result<Fd> log = path ? open_log(path.value()) : Result<Fd>(path.error());
  if (log) return path.value();
  std::fprintf(stderr, "%s%s; it logs nowhere\n", start_warning, log.error().text.c_str());
  return "/dev/null";
}

int main(int argc, char** argv) {
  Result<CommandLine> read = read_command_line(argc, argv);
  if (!read) return fail(read.error(), read.error().code == EINVAL ? exit_usage : exit_failed);
  CommandLine line = std::move(read).value();
  if (line.print) line.config.runtime_dir = runtime_dir_path(line.config.runtime_dir);
  if (line.answer || line.print) {
    std::fputs(line.answer ? line.answer->c_str() : to_toml(line.config).c_str(), stdout);
    return 0; // whether it could be written, the end looks
  }
  if (line.make_key || line.relay_key) {
    const Result<std::string> said =
        line.make_key ? make_named_key(line.config.key_file) : relay_key_of(line.config.key_file);
    if (!said) return fail(said.error(), exit_failed);
    std::printf("%s\n", said.value().c_str());
    return 0;
  }
  if (line.check) {
    const auto good = check_start(line.config);
    return good ? 0 : fail(good.error(), exit_failed);
  }

  const Result<RuntimeDir> dir = make_runtime_dir(line.config.runtime_dir);
  if (!dir) return fail(dir.error(), exit_failed);
  std::optional<Keys> keys; // before the input goes
  if (line.config.key_file == key_on_stdin) {
    const Result<Keys> taken = take_keys(STDIN_FILENO);
    if (!taken) return fail(taken.error(), exit_failed);
    keys = taken.value();
  }
  Readiness readiness;
  std::string log;
  if (line.detach || line.announce) {
    log = usable_log(line.config.name);
    Result<Readiness> told = line.detach ? Readiness::detach(log) : Readiness::announce(log);
    if (!told) return fail(told.error(), exit_failed);
    readiness = std::move(told).value();
  }
  Logging logging(STDERR_FILENO, line.config.log_level, form_for(STDERR_FILENO), log);
  const Result<void> served =
      serve(std::move(line.config), keys, dir.value(), readiness, logging, argc, argv);
  if (served) return 0;
  readiness.failed(served.error());
  return fail(served.error(), exit_failed);
}

} // namespace
} // namespace parc::daemon

int main(int argc, char** argv) {
  parc::open_standard_streams();
  return parc::end_of_output("parcd", parc::daemon::main(argc, argv), parc::daemon::exit_failed);
}
