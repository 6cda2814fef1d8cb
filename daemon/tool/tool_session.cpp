// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/tool_session.hpp"

#include "control/exit_status.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/tool/local_jobs.hpp"
#include "daemon/tool/tools.hpp"
#include "system/quote.hpp"

#include <utility>

namespace parc::daemon {

ToolSession::ToolSession(const Needs& needs, std::uint64_t number, Fd tool)
    : needs_(needs), number_(number),
      connection_(std::make_shared<ToolConnection>(
          needs.loop.events(), std::move(tool),
          ToolConnection::Events{
              .frame = [this](const control::Frame& frame) { heard(frame); },
              .taken = [this](std::uint32_t rank, std::uint64_t bytes) { taken(rank, bytes); },
              .idle = [this] { idle(); },
              .gone = [this] { gone(); }})) {}

// ---- What it asks

void ToolSession::heard(const control::Frame& frame) {
  const std::string named = control::kind_of(frame.message);
  switch (tool::kind_named(named).value_or(tool::Kind::heard)) {
  case tool::Kind::run: return take<tool::Run>(frame);
  case tool::Kind::dump: return take<tool::Dump>(frame);
  case tool::Kind::search: return take<tool::Search>(frame);
  case tool::Kind::key: return take<tool::AskForKey>(frame);
  case tool::Kind::input: return take<tool::Input>(frame);
  case tool::Kind::signal: return take<tool::Signal>(frame);
  case tool::Kind::kill: return take<tool::Kill>(frame);
  case tool::Kind::timeout: return take<tool::TimedOut>(frame);
  default: refuse(fmt::format("parcd does not know the request {}; upgrade parcd", quote(named)));
  }
}

template <class Message> void ToolSession::take(const control::Frame& frame) {
  const auto message = control::from_json<Message>(frame.message, frame.payload);
  if (!message) return refuse(fmt::format("this parcd does not understand parc: {}", message.error().text));
  constexpr bool asks = requires {
    heard(message.value());
  };
  if constexpr (!asks)
    of_job(message.value());
  else if (stage_ == Stage::asked)
    heard(message.value());
  else
    refuse("parc asks a second time on one connection");
}

template <class Message> void ToolSession::of_job(const Message& message) {
  if (stage_ == Stage::asked) return refuse("parc speaks of a job that it has not asked for");
  if (JobOrigin* const job = needs_.jobs.origin(number_)) job->asked(message);
}

void ToolSession::heard(const tool::Run& message) {
  enter(Stage::of_job);
  needs_.jobs.begin(number_, connection_, message);
}

void ToolSession::heard(const tool::Dump& message) {
  enter(Stage::answering);
  dump_.emplace(needs_.loop, needs_.post, needs_.peers.self().name, needs_.local_jobs, number_, *connection_,
                [this] { enter(Stage::over); });
  if (const auto asked = dump_->ask(message.job); !asked) refuse(asked.error().text);
}

void ToolSession::heard(const tool::Search& message) {
  enter(Stage::answering);
  search_.emplace(needs_.loop, needs_.post, needs_.peers, number_, *connection_,
                  [this] { enter(Stage::over); });
  search_->ask(message);
}

void ToolSession::heard(const tool::AskForKey&) {
  const Keys& keys = needs_.peers.keys(); // one that only relays has none for others
  answer({.key = keys.use == KeyUse::link ? std::optional(to_text(keys)) : std::nullopt,
          .prefixes = needs_.peers.prefixes(),
          .relays = needs_.peers.relays()});
}

void ToolSession::answered(std::int32_t from, const kernel::Seen& message) {
  if (dump_) dump_->answered(from, message);
}

void ToolSession::answered(std::int32_t from, const kernel::Answer& message) {
  if (search_) search_->answered(from, message);
}

// ---- What it hears

// The last; it goes when it has that.
void ToolSession::answer(const tool::Done& message) {
  enter(Stage::over);
  connection_->send(message);
}

void ToolSession::refuse(const std::string& why) {
  if (stage_ == Stage::over) return; // it has its answer
  if (stage_ != Stage::of_job) return answer({.status = status_failed, .text = why});
  if (JobOrigin* const job = needs_.jobs.origin(number_)) job->refuse(error(EPROTO, "{}", why));
}

void ToolSession::taken(std::uint32_t rank, std::uint64_t bytes) {
  if (JobOrigin* const job = needs_.jobs.origin(number_)) job->credit(rank, bytes);
}

void ToolSession::idle() {
  const JobOrigin* const job = needs_.jobs.origin(number_);
  if (stage_ == Stage::of_job ? job != nullptr && !job->over() : stage_ != Stage::over) return;
  if (job != nullptr) needs_.jobs.forget_origin(number_);
  needs_.tools.forget(number_);
}

void ToolSession::gone() {
  if (JobOrigin* const job = needs_.jobs.origin(number_)) job->tool_gone();
  needs_.tools.forget(number_);
}

void ToolSession::shutting_down() {
  if (stage_ == Stage::asked || stage_ == Stage::answering)
    refuse(fmt::format("the kernel of host {} was stopped", needs_.peers.self().name));
}

} // namespace parc::daemon
