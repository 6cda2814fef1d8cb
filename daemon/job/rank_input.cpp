// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/rank_input.hpp"

#include <cerrno>
#include <unistd.h>

namespace parc::daemon {

RankInput::RankInput(event_base* loop, Fd pipe, std::function<void()> progress)
    : pipe_(std::move(pipe)), progress_(std::move(progress)),
      writable_(loop, pipe_.get(), EV_WRITE, [this](short) { write_some(); }) {}

void RankInput::add(std::string_view bytes) {
  if (!pipe_) { // it has closed its input, or is dead
    taken_ += bytes.size();
    return progress_();
  }
  waiting_ += bytes;
  write_some();
}

void RankInput::end() {
  ended_ = true;
  if (waiting_.empty()) close();
}

void RankInput::close() {
  writable_.remove();
  pipe_.reset();
}

void RankInput::discard() {
  close();
  taken_ += waiting_.size();
  waiting_.clear();
  progress_();
}

void RankInput::write_some() {
  while (pipe_ && !waiting_.empty()) {
    const ssize_t written = write(pipe_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) return discard(); // nobody reads it
    waiting_.erase(0, static_cast<std::size_t>(written));
    taken_ += static_cast<std::uint64_t>(written);
  }
  if (!waiting_.empty())
    writable_.add();
  else if (ended_)
    close();
  progress_();
}

} // namespace parc::daemon
