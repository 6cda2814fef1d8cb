// SPDX-License-Identifier: BSD-3-Clause
// Bodies of messages between servers: numbers of eight bytes in the order of this machine, as all of parc's,
// and texts with their length in front.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace parc::pmix {

class Writer {
public:
  Writer& number(std::uint64_t number) {
    body_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Writer& text(std::string_view text) {
    number(text.size());
    body_ += text;
    return *this;
  }
  Writer& texts(const std::vector<std::string>& texts) {
    number(texts.size());
    for (const std::string& each : texts) text(each);
    return *this;
  }
  [[nodiscard]] std::string take() { return std::move(body_); }

private:
  std::string body_;
};

// What is not there reads as 0 or empty, and makes it bad.
class Reader {
public:
  explicit Reader(std::string_view body) : rest_(body) {}
  [[nodiscard]] std::uint64_t number() {
    std::uint64_t number = 0;
    if (rest_.size() < sizeof number) return fail();
    std::memcpy(&number, rest_.data(), sizeof number);
    rest_.remove_prefix(sizeof number);
    return number;
  }
  // How many follow, of which each takes eight bytes or more.
  [[nodiscard]] std::uint64_t count() {
    const std::uint64_t count = number();
    return count <= rest_.size() / sizeof count ? count : fail();
  }
  [[nodiscard]] std::string text() {
    const std::uint64_t size = number();
    if (size > rest_.size()) fail();
    const std::string text(rest_.substr(0, good_ ? size : 0));
    rest_.remove_prefix(text.size());
    return text;
  }
  [[nodiscard]] std::vector<std::string> texts() {
    std::vector<std::string> texts(count());
    for (std::string& each : texts) each = text();
    return texts;
  }
  [[nodiscard]] bool good() const { return good_; }
  std::uint64_t fail() {
    good_ = false;
    rest_ = {};
    return 0;
  }

private:
  std::string_view rest_;
  bool good_ = true;
};

} // namespace parc::pmix
