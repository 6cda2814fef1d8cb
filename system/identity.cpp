// SPDX-License-Identifier: BSD-3-Clause
// The facts behind system/identity.hpp, each asked from the operating system at every call.
#include "system/identity.hpp"

#include "system/fd.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace parc {
namespace {

Result<std::string> home_directory() {
  if (const char* home = secure_getenv("HOME"); home && home[0] == '/') return std::string(home);
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found &&
      found->pw_dir[0] == '/')
    return std::string(found->pw_dir);
  return error(ENOENT, "user {} has no home directory; set HOME", geteuid());
}

Result<std::string> user_dir(const char* variable, std::string_view below_home) {
  // The XDG rules: a relative path is to be ignored.
  if (const char* chosen = secure_getenv(variable); chosen && chosen[0] == '/') return std::string(chosen);
  auto home = home_directory();
  if (!home) return error(ENOENT, "{} or {}", home.error().text, variable);
  return home.value() + std::string(below_home);
}

// What proc(5) says of a process behind its name, which may hold anything, also blanks and parentheses.
std::string stat_of(pid_t pid) {
  const Fd file(open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> buffer{};
  const ssize_t got = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
  if (got <= 0) return {};
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  const std::size_t at = text.rfind(')');
  return at == text.npos ? std::string() : std::string(text.substr(std::min(at + 2, text.size())));
}

// What this process's time namespace (time_namespaces(7)) adds to the time since boot: "boottime SECONDS
// NANOSECONDS". Negative numbers wrap around, and the sum does back.
std::uint64_t boot_offset_ticks() {
  const auto ticks = static_cast<std::int64_t>(sysconf(_SC_CLK_TCK));
  std::ifstream offsets("/proc/self/timens_offsets");
  std::string clock;
  std::int64_t seconds = 0, nanoseconds = 0;
  while (offsets >> clock >> seconds >> nanoseconds)
    if (clock == "boottime")
      return static_cast<std::uint64_t>(seconds * ticks + nanoseconds / (1'000'000'000 / ticks));
  return 0;
}

} // namespace

bool means_this_host(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "::1";
}

std::string short_host_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == '\0') return "localhost";
  const std::string_view full(buffer.data());
  return std::string(full.substr(0, full.find('.')));
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      std::perror("parc: cannot draw a random number");
      std::abort();
    }
  }
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

Result<std::string> user_config_dir() {
  return user_dir("XDG_CONFIG_HOME", "/.config");
}
Result<std::string> user_state_dir() {
  return user_dir("XDG_STATE_HOME", "/.local/state");
}

std::string path_of_this_program() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).string();
}

Result<void> make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      // A parent that is there but may not be written answers EROFS or EACCES; only its absence matters.
      const int why = errno;
      struct stat status {};
      if (stat(part.c_str(), &status) != 0)
        return error(why, "cannot make directory {}: {}", part, strerror(why));
    }
    if (end == std::string::npos) return success();
  }
}

std::string program_of(pid_t pid) {
  const Fd file(open(fmt::format("/proc/{}/comm", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 64> buffer{};
  const ssize_t got = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
  if (got <= 0) return {};
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  return std::string(text.substr(0, text.find('\n')));
}

std::uint64_t process_start_time(pid_t pid) {
  const std::string text = stat_of(pid); // which begins with the state, field 3; field 22 is the start time
  if (text.empty() || text[0] == 'Z' || text[0] == 'X') return 0;
  std::size_t at = 0;
  for (int field = 3; field < 22 && at != text.npos; ++field) at = text.find(' ', at + 1);
  if (at == text.npos) return 0;
  std::uint64_t ticks = 0;
  std::from_chars(text.data() + at + 1, text.data() + text.size(), ticks);
  static const std::uint64_t offset = boot_offset_ticks();
  return ticks - offset;
}

bool is_stopped(pid_t pid) {
  const std::string text = stat_of(pid);
  return text.starts_with('T') || text.starts_with('t');
}

} // namespace parc
