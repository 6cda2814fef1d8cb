// SPDX-License-Identifier: BSD-3-Clause
// What tests of files and environment stand on: a private directory that goes with its test, and environment
// variables that come back as they were.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace parc::test {

class Scratch {
public:
  Scratch() {
    std::string pattern = "/tmp/parc-unit-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a directory in /tmp");
    path_ = pattern;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

class Environment {
public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_)
      if (value)
        setenv(name.c_str(), value->c_str(), 1);
      else
        unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    remember(name);
    setenv(name.c_str(), value.c_str(), 1);
  }
  void unset(const std::string& name) {
    remember(name);
    unsetenv(name.c_str());
  }

private:
  void remember(const std::string& name) {
    const char* value = getenv(name.c_str());
    before_.try_emplace(name, value ? std::optional<std::string>(value) : std::nullopt);
  }
  std::map<std::string, std::optional<std::string>> before_;
};

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

} // namespace parc::test
