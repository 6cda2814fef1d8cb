// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/rank.hpp"

#include "daemon/job/job_part.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t chunk = 32768; // of output in one message

// Before Linux 5.16 such a signal ends all processes that share the memory of who gets it, and between vfork
// and exec that is the kernel.
bool dumps_core(int signal) {
  constexpr std::array all{SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                           SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
  return std::ranges::find(all, signal) != all.end();
}

} // namespace

Rank::Rank(JobPart& part, event_base* loop, const Processes& processes, std::uint32_t number,
           StartedProcess& process, std::uint64_t credit)
    : part_(part), processes_(processes), number_(number), id_(process.id), most_credit_(credit),
      credit_(credit), process_(std::move(process.process)), report_(std::move(process.report)),
      ended_(loop, process_.get(), EV_READ, [this](short) { process_ended(); }),
      reported_(loop, report_.get(), EV_READ, [this](short) { read_start_report(); }) {
  outputs_[0].pipe = std::move(process.output);
  outputs_[1].pipe = std::move(process.errors);
  outputs_[2].pipe = std::move(process.trace);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].pipe) continue;
    outputs_[i].readable =
        Event(loop, outputs_[i].pipe.get(), EV_READ | EV_PERSIST, [this, i](short) { read_output(i); });
    outputs_[i].readable.add();
  }
  if (process.input) input_.emplace(loop, std::move(process.input), [this] { part_.input_taken(); });
  ended_.add();
  reported_.add();
}

Rank::~Rank() {
  if (alive()) signal(SIGKILL);
}

void Rank::signal(int number) {
  if (!alive()) return;
  if (report_ && dumps_core(number))
    early_.insert(number);
  else
    processes_.signal(id_, number);
}

void Rank::read_start_report() {
  if (!report_) return;
  const auto failure = read_report(report_);
  reported_.remove();
  report_.reset();
  if (failure) return part_.not_started(*this, *failure);
  for (const int number : std::exchange(early_, {})) signal(number);
  part_.started();
}

// The process is a zombie until it is reaped below: until then its group's number is its own.
void Rank::process_ended() {
  read_start_report();
  signal(SIGKILL);
  const RankExit how = processes_.reap(process_);
  ended_.remove();
  process_.reset();
  if (input_) input_->discard();
  part_.died(*this, how);
  drain();
  end_if_over();
}

void Rank::read_output(std::size_t index) {
  OutputPipe& output = outputs_[index];
  char buffer[chunk];
  const std::size_t room = discards_ ? chunk : std::min<std::uint64_t>(chunk, credit_);
  const ssize_t got = read(output.pipe.get(), buffer, room);
  if (got < 0 && (errno == EINTR || (errno == EAGAIN && alive()))) return;
  if (got <= 0) { // its end; or the process is dead, and what still holds the pipe writes for nobody
    close(output);
    return end_if_over();
  }
  if (discards_) return;
  credit_ -= static_cast<std::uint64_t>(got);
  part_.output(*this, index + 1, std::string(buffer, static_cast<std::size_t>(got)));
  if (credit_ != 0) return;
  for (OutputPipe& each : outputs_)
    if (each.pipe) each.readable.remove();
}

// After the death: all that is there, as far as the credit goes; the rest when there is more of it.
void Rank::drain() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (discards_ && outputs_[i].pipe) close(outputs_[i]);
    while (outputs_[i].pipe && credit_ != 0) read_output(i);
  }
}

void Rank::add_credit(std::uint64_t bytes) {
  if (credit_ == 0 && bytes != 0)
    for (OutputPipe& output : outputs_)
      if (output.pipe) output.readable.add();
  credit_ = std::min(credit_ + bytes, most_credit_); // whatever its origin says
  if (alive()) return;
  drain();
  end_if_over();
}

void Rank::discard_output() {
  discards_ = true;
  for (OutputPipe& output : outputs_)
    if (output.pipe) output.readable.add();
  if (alive()) return;
  drain();
  end_if_over();
}

void Rank::close(OutputPipe& output) {
  output.readable.remove();
  output.pipe.reset();
}

void Rank::end_if_over() {
  if (over_told_ || !ended()) return;
  over_told_ = true;
  part_.ended(*this);
}

} // namespace parc::daemon
