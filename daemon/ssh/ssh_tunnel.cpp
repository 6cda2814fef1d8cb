// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/ssh/ssh_tunnel.hpp"

#include "jobs/launcher.hpp"

#include <array>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr double longest_start_s = 30;                      // two of ssh's own, at ten seconds
constexpr double first_pause_s = 0.1, longest_pause_s = 10; // between two starts
constexpr double short_pause_s = 1;
constexpr auto long_enough = 10s; // for one that ends to be started again at once
constexpr int last_reads = 64;
constexpr auto time_of_refusal = 1s, time_unsaid = 60s;
constexpr std::size_t longest_line = 4096, most_lines = 1000; // of what is said besides, in a start

// What runs over there says these among whatever else is said at a login.
constexpr std::string_view sign_of_socket = "parc-link-socket ", sign_of_tunnel = "parc-tunnel-is-open";
constexpr const char* question_script =
    R"sh(parc status --json | sed -n 's/.*"link_socket": "\(.*\)".*/parc-link-socket \1/p')sh";
// Until the connection ends, or who keeps its input open does.
constexpr const char* tunnel_script = "echo parc-tunnel-is-open; exec cat >/dev/null";

std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' '))
    line.remove_suffix(1);
  return line;
}

// What is whole of it; of what is longer than a line should be, the end stays.
void take_lines(std::string& text, const std::function<void(std::string_view)>& take) {
  for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.erase(0, end + 1))
    take(without_end(std::string_view(text).substr(0, end)));
  if (text.size() > longest_line) text.erase(0, text.size() - longest_line);
}

} // namespace

SshTunnel::SshTunnel(Loop& loop, const Processes& processes, SshAddress to, std::string command,
                     std::string near)
    : loop_(loop), processes_(processes), to_(std::move(to)), command_(std::move(command)),
      near_(std::move(near)), far_(to_.socket), limit_(loop, [this] { out_of_time(); }),
      again_(loop,
             [this] {
               pausing_ = false;
               loop_.after_step([this] { start_if_wanted(); });
             }),
      pause_s_(first_pause_s) {}

// Who is still dying is the system's.
SshTunnel::~SshTunnel() {
  if (ssh_.process) processes_.signal(ssh_.id, SIGKILL);
  unlink(near_.c_str());
}

void SshTunnel::enter(Stage next) {
  assert(next == Stage::closed || stage_ < next);
  stage_ = next;
}

// Who asks in a long pause hears why.
void SshTunnel::open(Resolver::Answer answer) {
  if (stage_ == Stage::open && access(near_.c_str(), F_OK) != 0) fail("its socket has been removed");
  if (pausing_ && pause_s_ > short_pause_s) return answer(why_not());
  waiting_.push_back(std::move(answer));
  if (stage_ == Stage::open) return answer_all();
  start_if_wanted();
}

void SshTunnel::start_if_wanted() {
  if (stage_ == Stage::closed && !pausing_ && !waiting_.empty()) start();
}

Error SshTunnel::why_not() const {
  return error(EHOSTUNREACH, "ssh to {}: {}", to_.host, why_);
}

std::string SshTunnel::why_refused() const {
  if (stage_ != Stage::open || !refused_at_ || loop_.now() - *refused_at_ > time_of_refusal) return {};
  return fmt::format("ssh to {}: {}; either its kernel does not listen any more, or sshd there forwards no "
                     "sockets (AllowStreamLocalForwarding in sshd_config(5))",
                     to_.host, complaint_);
}

void SshTunnel::start() {
  limit_.set(longest_start_s);
  if (far_.empty()) {
    enter(Stage::asking);
    run(ssh_command(command_, to_.host, beside_parc(question_script, to_.prefix)));
  } else {
    enter(Stage::opening);
    run(ssh_tunnel(command_, to_.host, near_, far_, {"sh", "-c", tunnel_script}));
  }
}

void SshTunnel::run(const std::vector<std::string>& words) {
  program_ = {.arguments = words, .environment = {}, .directory = "/", .limits = {}};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("PARC_")) program_.environment.emplace_back(*variable);
  said_.clear();
  complained_.clear();
  complaint_.clear();
  lines_ = 0;
  auto started = processes_.start(program_, {}, true, nullptr);
  if (!started) return fail(started.error().text);
  ssh_ = std::move(started).value();
  ssh_.from_program.reset();
  ssh_.to_program.reset();
  output_ = Event(loop_.events(), ssh_.output.get(), EV_READ | EV_PERSIST, [this](short) { hear(); });
  complaints_ =
      Event(loop_.events(), ssh_.errors.get(), EV_READ | EV_PERSIST, [this](short) { hear_complaints(); });
  end_ = Event(loop_.events(), ssh_.process.get(), EV_READ,
               [this](short) { loop_.after_step([this] { ended(); }); });
  output_.add();
  complaints_.add();
  end_.add();
}

// Line by line; who says no end of one, or of them, says nothing of ours.
bool SshTunnel::hear() {
  std::array<char, longest_line> bytes;
  const ssize_t got = read(ssh_.output.get(), bytes.data(), bytes.size());
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) output_.remove();
    return false;
  }
  if (stage_ == Stage::open || lines_ > most_lines) return true;
  said_.append(bytes.data(), static_cast<std::size_t>(got));
  take_lines(said_, [this](std::string_view line) {
    ++lines_;
    heard(line);
  });
  return true;
}

void SshTunnel::heard(std::string_view line) {
  if (stage_ == Stage::asking && line.starts_with(sign_of_socket))
    far_ = line.substr(sign_of_socket.size()); // it ends by itself now
  if (stage_ != Stage::opening || line != sign_of_tunnel) return;
  limit_.cancel();
  if (access(near_.c_str(), F_OK) != 0) return loop_.after_step([this] { fail("it forwards no sockets"); });
  enter(Stage::open);
  opened_at_ = loop_.now();
  complaint_.clear();
  spdlog::info("a tunnel to {} through ssh is open", to_.host);
  loop_.after_step([this] { answer_all(); });
}

bool SshTunnel::hear_complaints() {
  std::array<char, longest_line> bytes;
  const ssize_t got = read(ssh_.errors.get(), bytes.data(), bytes.size());
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) complaints_.remove();
    return false;
  }
  complained_.append(bytes.data(), static_cast<std::size_t>(got));
  take_lines(complained_, [this](std::string_view line) { complained(line); });
  return true;
}

void SshTunnel::complained(std::string_view line) {
  // Which say that it is closed, and what its first connection has noted.
  if (line.empty() || line.starts_with("Connection to ") || line.starts_with("Warning: Permanently added"))
    return;
  complaint_ = line;
  if (stage_ != Stage::open) return;
  const bool is_known = refused_at_ && loop_.now() - *refused_at_ < time_unsaid;
  spdlog::log(is_known ? spdlog::level::debug : spdlog::level::warn, "ssh to {}: {}", to_.host, complaint_);
  if (line.find("open failed") == line.npos) return;
  refused_at_ = loop_.now();
  if (to_.socket.empty()) // the kernel there may listen elsewhere by now: that is asked anew
    loop_.after_step([this] {
      if (stage_ == Stage::open) fail(complaint_);
    });
}

// What a proxy of its leaves running ends with it.
void SshTunnel::ended() {
  processes_.signal(ssh_.id, SIGKILL);
  for (int reads = 0; reads < last_reads && hear(); ++reads) {
  }
  for (int reads = 0; reads < last_reads && hear_complaints(); ++reads) {
  }
  complained(without_end(complained_));
  const auto report = read_report(ssh_.report);
  const RankExit how = processes_.reap(ssh_.process);
  const Stage was = std::exchange(stage_, Stage::closed);
  forget_process();
  if (was == Stage::ending) return pause();
  if (was == Stage::asking && !far_.empty()) return start();
  if (was == Stage::open && loop_.now() - opened_at_ > long_enough) pause_s_ = first_pause_s;
  why_ = complaint_;
  if (report)
    why_ = fmt::format("cannot start {} here: {}", program_.arguments[0], std::strerror(report->error));
  if (why_.empty() && was == Stage::asking && how.status == 0) why_ = "no kernel runs there";
  if (why_.empty())
    why_ = how.signal != 0 ? fmt::format("it was ended by signal {}", how.signal)
                           : fmt::format("it ended with {}", how.status);
  if (was == Stage::open) spdlog::warn("the tunnel to {} through ssh has ended: {}", to_.host, why_);
  pause();
}

void SshTunnel::out_of_time() {
  loop_.after_step([this] {
    if (stage_ == Stage::ending) {
      limit_.set(longest_start_s); // it does not end: who has asked meanwhile hears that there is none
      answer_all();
    } else if (stage_ == Stage::asking || stage_ == Stage::opening)
      fail(fmt::format("it was not through within {} s", longest_start_s));
  });
}

// It ends before another one starts, in its own time.
void SshTunnel::fail(std::string why) {
  if (stage_ == Stage::closed || stage_ == Stage::ending) return;
  why_ = std::move(why);
  if (!ssh_.process) {
    enter(Stage::closed);
    return pause();
  }
  if (stage_ == Stage::open && loop_.now() - opened_at_ > long_enough) pause_s_ = first_pause_s;
  enter(Stage::ending);
  processes_.signal(ssh_.id, SIGKILL);
  answer_all();
  limit_.set(longest_start_s);
}

// A far end that was asked for may have changed.
void SshTunnel::pause() {
  limit_.cancel();
  unlink(near_.c_str());
  if (to_.socket.empty()) far_.clear();
  pausing_ = true;
  again_.set(pause_s_);
  pause_s_ = std::min(2 * pause_s_, longest_pause_s);
  answer_all();
}

void SshTunnel::answer_all() {
  const auto near = unix_address(near_);
  for (Resolver::Answer& answer : std::exchange(waiting_, {})) {
    if (stage_ != Stage::open)
      answer(why_not());
    else if (!near)
      answer(near.error());
    else
      answer(std::vector{near.value()});
  }
}

void SshTunnel::forget_process() {
  for (Event* each : {&output_, &complaints_, &end_}) *each = Event();
  ssh_ = {};
}

} // namespace parc::daemon
