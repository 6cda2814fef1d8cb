// SPDX-License-Identifier: BSD-3-Clause
// A process that a test started: what it prints goes to files, so that nobody has to read while it runs. It
// dies with the test.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace parc::test {

// Ten times what the product promises: a test that waits this long has failed.
inline constexpr std::chrono::seconds patience{50};

// So many rounds of what is done again and again to meet a race or to fill something; a sanitizer sees in a
// few what it can see.
constexpr int rounds_of([[maybe_unused]] int of, [[maybe_unused]] int sanitized) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return sanitized;
#else
  return of;
#endif
}

// Asks again and again until it is so; false when patience has run out.
[[nodiscard]] bool eventually(const std::function<bool()>& is_so);

class Process {
public:
  struct Start {
    std::vector<std::string> command;
    std::string output; // files; made anew
    std::string errors;
    std::vector<std::pair<std::string, std::string>> environment; // over that of the test
    std::string directory;
    bool own_group = false; // as a shell gives one, which we could continue
  };
  explicit Process(const Start& start);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) = delete;
  ~Process(); // kills it

  [[nodiscard]] pid_t id() const { return id_; }
  void signal(int number) const;
  // Its exit status, 128 + N when signal N killed it, -1 when patience ran out.
  [[nodiscard]] int wait();
  [[nodiscard]] bool running();
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string errors() const;

private:
  pid_t id_ = -1;
  int status_ = -1; // of waitpid, once it has ended
  std::string output_;
  std::string errors_;
};

// What it has printed by then: of a check's message, whose words are made before the check is.
std::ostream& operator<<(std::ostream& to, const Process& process);

} // namespace parc::test
