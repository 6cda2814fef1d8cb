// SPDX-License-Identifier: BSD-3-Clause
// The key file. It is written whole under no name (or a private one, where the file system cannot do that)
// and then linked to its name, which fails if another kernel was first: that one's key counts.
#include "daemon/link/key.hpp"

#include "system/fd.hpp"
#include "system/identity.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace parc::daemon {
namespace {

constexpr std::size_t digits = 2 * sizeof(Key);
constexpr std::string_view of_relay = "relay:";                      // what a relay key begins with
constexpr std::size_t longest = 2 * (of_relay.size() + digits) + 16; // of two keys, and white space
constexpr std::string_view white = " \r\n";

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool from_hex(std::string_view text, Key& key) {
  if (text.size() != digits) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key[i] = static_cast<std::byte>(high << 4 | low);
  }
  return true;
}

// One or two lines of one kind, and white space behind them, as an editor or echo leaves it.
std::optional<Keys> parse(std::string_view text) {
  std::vector<Key> found;
  std::size_t for_relays = 0;
  while (true) {
    const auto begin = text.find_first_not_of(white);
    if (begin == text.npos) break;
    text.remove_prefix(begin);
    std::string_view word = text.substr(0, text.find_first_of(white));
    text.remove_prefix(word.size());
    if (word.starts_with(of_relay)) {
      word.remove_prefix(of_relay.size());
      ++for_relays;
    }
    if (found.size() == 2 || !from_hex(word, found.emplace_back())) return {};
  }
  if (found.empty() || (for_relays != 0 && for_relays != found.size())) return {};
  Keys keys(found[0], {}, for_relays != 0 ? KeyUse::relay : KeyUse::link);
  if (found.size() == 2) keys.other = found[1];
  return keys;
}

std::string digits_of(const Key& key) {
  std::string text;
  for (const std::byte b : key) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

Result<void> write_whole(int file, std::string_view text, const std::string& path) {
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || fsync(file) != 0)
    return system_error("cannot write the key for {}", path);
  return success();
}

// Links what `from` names to `path`.
Result<void> publish(const std::string& from, const std::string& path, int flags) {
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), flags) == 0) return success();
  if (errno == EEXIST) return error(EEXIST, "there is a file {} already", path);
  return system_error("cannot put the key at {}", path);
}

} // namespace

Result<void> make_key(const std::string& path) {
  if (path.find('/') == std::string::npos) return make_key("./" + path);
  const std::string directory = path.substr(0, path.rfind('/'));
  PARC_TRY(make_directories(directory.empty() ? "/" : directory));
  Key key;
  fill_random(key);
  const std::string text = digits_of(key) + "\n";

  const Fd nameless(open((directory + "/").c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (nameless) {
    PARC_TRY(write_whole(nameless.get(), text, path));
    return publish(fmt::format("/proc/self/fd/{}", nameless.get()), path, AT_SYMLINK_FOLLOW);
  }
  std::string name = directory + "/.key.XXXXXX";
  const Fd named(mkostemp(name.data(), O_CLOEXEC)); // O_EXCL and 0600 by definition
  if (!named) return system_error("cannot make a key in {}", directory);
  auto made = write_whole(named.get(), text, path);
  if (made) made = publish(name, path, 0);
  unlink(name.c_str());
  return made;
}

Result<Keys> read_keys(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a pipe there must not hold us up
  if (!file) return system_error("cannot open the key {}", path);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return system_error("cannot examine the key {}", path);
  if (!S_ISREG(status.st_mode))
    return error(EINVAL, "the key {} is not a file; name another with --key-file", path);
  if (status.st_uid != geteuid())
    return error(
        EPERM, "the key {} belongs to user {}, not to us (user {}); name a copy of your own with --key-file",
        path, status.st_uid, geteuid());
  if ((status.st_mode & 077) != 0)
    return error(EPERM,
                 "the key {} can be read by others (mode {:04o}); make it private with: chmod 600 {} "
                 "(and make another if it may have been read: remove it everywhere and start again)",
                 path, status.st_mode & 07777, path);
  std::array<char, longest> buffer{};
  const ssize_t got = read(file.get(), buffer.data(), buffer.size());
  if (got < 0) return system_error("cannot read the key {}", path);
  if (auto keys = parse({buffer.data(), static_cast<std::size_t>(got)})) return *keys;
  return error(
      EINVAL,
      "the key {} is malformed: it must be one line of {} hexadecimal digits (behind \"relay:\" on a host "
      "that only relays), or two while keys are being changed; copy it again from another host, or remove it "
      "to have one made",
      path, digits);
}

std::string to_text(const Keys& keys) {
  const std::string begin(keys.use == KeyUse::relay ? of_relay : "");
  const std::string own = begin + digits_of(keys.own);
  return keys.other ? own + "\n" + begin + digits_of(*keys.other) : own;
}

Result<Keys> take_keys(int from) {
  std::array<char, longest> buffer{};
  std::size_t length = 0;
  for (ssize_t got = 1; got != 0 && length < buffer.size();) {
    got = read(from, buffer.data() + length, buffer.size() - length);
    if (got < 0 && errno != EINTR) return system_error("cannot read the key from standard input");
    if (got > 0) length += static_cast<std::size_t>(got);
  }
  if (auto keys = parse({buffer.data(), length})) return *keys;
  return error(EINVAL, "standard input has no key: that is one line of {} hexadecimal digits, or two",
               digits);
}

// Of several that make one, the first counts.
Result<Keys> read_or_make_key(const std::string& path) {
  if (path.find('/') == std::string::npos) return read_or_make_key("./" + path);
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT)
    if (auto made = make_key(path); !made && made.error().code != EEXIST)
      return std::move(made).error().in("there is no key yet");
  return read_keys(path);
}

} // namespace parc::daemon
