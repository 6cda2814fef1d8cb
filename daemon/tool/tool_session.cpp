// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/tool_session.hpp"

#include "control/exit_status.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "system/frames.hpp"

#include <utility>

namespace parc::daemon {

ToolSession::ToolSession(Loop& loop, Peers& peers, Jobs& jobs, std::uint64_t number, Fd tool)
    : loop_(loop), peers_(peers), jobs_(jobs), number_(number),
      door_(std::make_shared<ToolDoor>(
          loop.events(), std::move(tool),
          ToolDoor::Actions{.frame = [this](Frame frame) { heard(std::move(frame)); },
                            .taken = [this](std::uint32_t rank, std::uint64_t bytes) { taken(rank, bytes); },
                            .idle = [this] { idle(); },
                            .gone = [this] { gone(); }})) {}

void ToolSession::heard(Frame frame) {
  if (stage_ == Stage::of_job) {
    if (JobOrigin* const job = jobs_.origin(number_)) job->asked(std::move(frame));
    return;
  }
  const std::string kind = text_in(frame.message, "kind");
  if (stage_ != Stage::asked) return; // it has its answer, or will have
  if (kind == "run") {
    enter(Stage::of_job);
    jobs_.begin(number_, door_, std::move(frame));
  } else if (kind == "dump") {
    dump(frame);
  } else if (kind == "search") {
    search(frame);
  } else if (kind == "key") {
    answer({{"kind", "done"}, {"status", 0}, {"text", ""}, {"key", peers_.key_text()}});
  } else {
    fail(fmt::format("parcd does not know the request \"{}\"; upgrade parcd", kind));
  }
}

void ToolSession::dump(const Frame& frame) {
  enter(Stage::answering);
  dump_.emplace(loop_, peers_.self().name, jobs_, number_, *door_, [this] { enter(Stage::over); });
  const auto asked = dump_->ask(number_in(frame.message, "job", UINT64_MAX).value_or(0));
  if (!asked) fail(asked.error().text);
}

void ToolSession::search(const Frame& frame) {
  enter(Stage::answering);
  search_.emplace(loop_, peers_, jobs_, number_, *door_, [this] { enter(Stage::over); });
  if (!search_->ask(frame.message.value("hosts", nlohmann::json()),
                    frame.message.value("question", nlohmann::json())))
    fail("parc sent hosts that make no sense");
}

void ToolSession::seen(std::int32_t from, const nlohmann::json& message) {
  if (dump_) dump_->answered(from, message);
}

void ToolSession::answered(std::int32_t from, const nlohmann::json& message) {
  if (search_) search_->answered(from, message);
}

// The last that it hears; it goes when it has that.
void ToolSession::answer(const nlohmann::json& message) {
  enter(Stage::over);
  door_->send(message);
}

void ToolSession::fail(const std::string& why) {
  answer({{"kind", "done"}, {"status", status_failed}, {"text", why}});
}

void ToolSession::taken(std::uint32_t rank, std::uint64_t bytes) {
  if (JobOrigin* const job = jobs_.origin(number_)) job->credit(rank, bytes);
}

void ToolSession::idle() {
  const JobOrigin* const job = jobs_.origin(number_);
  if (stage_ == Stage::of_job ? job != nullptr && !job->over() : stage_ != Stage::over) return;
  if (job != nullptr) jobs_.forget_origin(number_);
  jobs_.forget_tool(number_);
}

void ToolSession::gone() {
  if (JobOrigin* const job = jobs_.origin(number_)) job->tool_gone();
  jobs_.forget_tool(number_);
}

void ToolSession::shutting_down() {
  if (stage_ == Stage::asked || stage_ == Stage::answering)
    fail(fmt::format("the kernel of host {} was stopped", peers_.self().name));
}

} // namespace parc::daemon
