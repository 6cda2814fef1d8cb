// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/complaint.hpp"

#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

constexpr unsigned interval_s = 10;

} // namespace

Complaint::Complaint(Loop& loop, std::string kind)
    : loop_(loop), kind_(std::move(kind)), interval_(loop, [this] { interval_over(); }) {}

void Complaint::say(std::string text, ErrorKind of, const Error& error) {
  loop_.errors().note(of, error.code, error.text);
  say(std::move(text));
}

void Complaint::say_of_stranger(std::string text, const Error& error) {
  loop_.errors().note_stranger(error.code, error.text);
  say(std::move(text));
}

void Complaint::say(std::string text) {
  if (quiet_) {
    ++more_;
    last_ = std::move(text);
    return;
  }
  spdlog::warn("{}", text);
  quiet_ = true;
  interval_.set(interval_s);
}

void Complaint::interval_over() {
  quiet_ = more_ != 0;
  if (!quiet_) return;
  spdlog::warn("{} more {} within {} s; the last: {}", std::exchange(more_, 0), kind_, interval_s, last_);
  interval_.set(interval_s);
}

} // namespace parc::daemon
