// SPDX-License-Identifier: BSD-3-Clause
// Allocates nothing: it is called where the program's memory must not change, and in forked children.
#include "client/early/mappings.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace parc::client {
namespace {

constexpr const char* maps_file = "/proc/self/maps";
constexpr std::string_view heap_name = "[heap]", stack_name = "[stack]";

// struct procmap_query of linux/fs.h, which older headers lack.
struct Query {
  std::uint64_t size = sizeof(Query);
  std::uint64_t flags = 0; // 0: the mapping that covers the address
  std::uint64_t address = 0;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t access = 0;
  std::uint64_t page_size = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::uint32_t device_major = 0, device_minor = 0;
  std::uint32_t name_size = 0;
  std::uint32_t build_id_size = 0;
  std::uint64_t name_address = 0;
  std::uint64_t build_id_address = 0;
};
static_assert(sizeof(Query) == 104);
constexpr auto procmap_query = _IOWR('f', 17, Query);
constexpr std::uint64_t readable = 1, writable = 2, executable = 4, is_shared = 8;

// "begin-end perms offset major:minor inode   name"
class Line {
public:
  explicit Line(std::string_view text) : rest_(text) {}

  std::optional<Mapping> parse() {
    Mapping mapping{};
    std::uint64_t major = 0, minor = 0;
    const bool good = number(mapping.begin, 16, '-') && number(mapping.end, 16, ' ') && rest_.size() > 5;
    if (!good) return {};
    mapping.read = rest_[0] == 'r';
    mapping.write = rest_[1] == 'w';
    mapping.execute = rest_[2] == 'x';
    mapping.shared = rest_[3] == 's';
    rest_.remove_prefix(5);
    if (!number(mapping.offset, 16, ' ') || !number(major, 16, ':') || !number(minor, 16, ' ') ||
        !number(mapping.inode, 10, ' '))
      return {};
    mapping.device = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
    mapping.heap = rest_.ends_with(heap_name);
    mapping.stack = rest_.ends_with(stack_name);
    return mapping;
  }

private:
  template <class T> bool number(T& value, int base, char after) {
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (problem != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.empty()) return true; // a line without a name
    if (rest_.front() != after) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
};

} // namespace

bool Mappings::ready() {
  if (!maps_) maps_.reset(open(maps_file, O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(maps_);
}

std::optional<Mapping> Mappings::find(std::uintptr_t address) {
  if (!answers_) return find_in_text(address);
  if (!ready()) return {};
  std::array<char, 64> name{};
  Query query;
  query.address = address;
  query.name_size = name.size();
  query.name_address = reinterpret_cast<std::uintptr_t>(name.data());
  if (ioctl(maps_.get(), procmap_query, &query) != 0) {
    if (errno == ENOENT) return {};
    if (errno == ENAMETOOLONG) { // a file's: no heap
      query.name_size = 0;
      query.name_address = 0;
      name[0] = '\0';
    }
    if (errno != ENAMETOOLONG || ioctl(maps_.get(), procmap_query, &query) != 0) {
      answers_ = false;
      return find_in_text(address);
    }
  }
  return Mapping{.begin = query.begin,
                 .end = query.end,
                 .offset = query.offset,
                 .inode = query.inode,
                 .device = makedev(query.device_major, query.device_minor),
                 .read = (query.access & readable) != 0,
                 .write = (query.access & writable) != 0,
                 .execute = (query.access & executable) != 0,
                 .shared = (query.access & is_shared) != 0,
                 .heap = heap_name == name.data(),
                 .stack = stack_name == name.data()};
}

std::optional<Mapping> Mappings::find_in_text(std::uintptr_t address) {
  if (!ready()) return {};
  off_t place = 0;
  std::size_t filled = 0;
  for (;;) {
    const ssize_t got = pread(maps_.get(), text_.data() + filled, text_.size() - filled, place);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    filled += static_cast<std::size_t>(got);
    place += got;
    std::size_t at = 0;
    while (const void* const newline = std::memchr(text_.data() + at, '\n', filled - at)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - text_.data());
      const auto mapping = Line({text_.data() + at, end - at}).parse();
      if (mapping && address < mapping->begin) return {};
      if (mapping && address < mapping->end) return mapping;
      at = end + 1;
    }
    std::memmove(text_.data(), text_.data() + at, filled - at);
    filled -= at;
  }
}

} // namespace parc::client
