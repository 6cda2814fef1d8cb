// SPDX-License-Identifier: BSD-3-Clause
#include "client/trace/trace.hpp"

#include "client/base/without_sigpipe.hpp"
#include "client/session/inherited_pipe.hpp"
#include "parc/parc.h"
#include "system/environment.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::client {
namespace {

// A pipe takes so many in one piece, or none.
constexpr std::size_t batch = PIPE_BUF / sizeof(trace::Record);

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

trace::Record site_record(trace::Kind kind, std::uint64_t address, std::string_view text) {
  trace::Site site{};
  site.kind = kind;
  site.address = address;
  text.copy(site.text.data(), site.text.size() - 1);
  return std::bit_cast<trace::Record>(site);
}

// As it can be found by others: the name of the program itself is what it was called as.
std::string path_of(std::string_view name) {
  std::array<char, PATH_MAX> path;
  if (name.empty()) {
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
  }
  return realpath(std::string(name).c_str(), path.data()) == nullptr ? std::string(name) : path.data();
}

} // namespace

thread_local std::uint64_t Trace::site_ = 0;

std::uint32_t Trace::thread() {
  __attribute__((tls_model("initial-exec"))) static thread_local std::uint32_t number = 0;
  if (number == 0) number = static_cast<std::uint32_t>(gettid());
  return number;
}

Result<Fd> Trace::pipe_from_environment() {
  const char* const value = getenv(env_trace);
  if (value == nullptr) return Fd();
  if (*value == '/') return file_in(value);
  if (std::strspn(value, "0123456789:") != std::strlen(value) || *value == '\0')
    return error(PARC_EINVAL,
                 "{}={} in the environment is no descriptor and no directory's whole path; parc run --trace "
                 "and parc mpi --trace set "
                 "it",
                 env_trace, value);
  const std::string text = value;
  unsetenv(env_trace); // it is no other program's
  return inherited_pipe(text, PipeEnd::write, env_trace);
}

Trace::Trace(Fd pipe, const std::string& host) : pipe_(std::move(pipe)), host_(host) {
  if (!pipe_) return;
  records_.emplace();
  struct stat status {};
  under_mpi_ =
      getenv("PMIX_NAMESPACE") != nullptr || (fstat(pipe_.get(), &status) == 0 && S_ISREG(status.st_mode));
  const char* const pages = getenv(env_trace_pages);
  of_pages_ = pages != nullptr;
  unreleased_ = of_pages_ && std::string_view(pages) == trace_pages_unreleased;
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  trace::Record opened{};
  opened.kind = trace::Kind::opened;
  opened.begin = trace::now();
  opened.end = static_cast<std::uint64_t>(real.tv_sec) * 1'000'000'000 +
               static_cast<std::uint64_t>(real.tv_nsec) - opened.begin;
  opened.id = static_cast<std::uint64_t>(getpid());
  add(opened);
}

void Trace::add(trace::Record record) {
  if (!on()) return;
  if (record.thread == 0) record.thread = thread();
  if (record.site != 0) note_site(record.site);
  if (records_->bounded_push(record))
    waiting_.fetch_add(1, std::memory_order_relaxed);
  else
    lost_.fetch_add(1, std::memory_order_relaxed);
}

void Trace::note_site(std::uint64_t site) {
  for (auto& known : sites_) {
    std::uint64_t there = known.load(std::memory_order_relaxed);
    if (there == site || (there == 0 && known.compare_exchange_strong(there, site)) || there == site) return;
  }
}

void Trace::write_some() {
  if (waiting_.load(std::memory_order_relaxed) < batch) return;
  if (writing_.test_and_set(std::memory_order_acquire)) return;
  while (waiting_.load(std::memory_order_relaxed) >= batch && write_batch()) continue;
  writing_.clear(std::memory_order_release);
}

void Trace::flush() {
  if (!on() || writing_.test_and_set(std::memory_order_acquire)) return;
  while (write_batch()) continue;
  writing_.clear(std::memory_order_release);
}

struct Trace::Batch {
  std::array<trace::Record, batch> records;
  std::size_t count = 0;
};

// False: there is no room for its object in this batch.
bool Trace::describe(std::uint64_t site, Batch& batch) {
  // A return address is that of the instruction behind the call, which may be another line's.
  const std::uint64_t call = site - 1;
  std::string text = fmt::format("{:#x}", site);
  dl_find_object object{};
  if (_dl_find_object(reinterpret_cast<void*>(call), &object) == 0) {
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<void*>(call), &info) != 0 && info.dli_fname != nullptr;
    const auto base = known ? reinterpret_cast<std::uint64_t>(info.dli_fbase) : 0;
    if (known && !name_object(base, object.dlfo_link_map->l_name, batch)) return false;
    if (known) text = fmt::format("{}+{:#x}", file_name(info.dli_fname), call - base);
    if (known && info.dli_sname != nullptr) text += fmt::format(" {}", info.dli_sname);
  }
  batch.records[batch.count++] = site_record(trace::Kind::site, site, text);
  return true;
}

// With room for one record more.
bool Trace::name_object(std::uint64_t base, std::string_view name, Batch& batch) {
  if (std::ranges::find(objects_written_, base) != objects_written_.end()) return true;
  constexpr std::size_t most = sizeof(trace::Site::text) - 1;
  const std::string path = path_of(name);
  const std::size_t parts = (path.size() + most - 1) / most;
  if (parts <= batch.records.size() / 2) { // else nobody hears of its path
    if (batch.count + parts + 1 > batch.records.size()) return false;
    for (std::size_t at = 0; at < path.size(); at += most)
      batch.records[batch.count++] =
          site_record(trace::Kind::object, base, std::string_view(path).substr(at, most));
  }
  objects_written_.push_back(base);
  return true;
}

// False: the pipe is full, or nobody reads it.
bool Trace::write_batch() {
  pollfd room{.fd = pipe_.get(), .events = POLLOUT, .revents = 0};
  if (poll(&room, 1, 0) <= 0 || (room.revents & POLLOUT) == 0) return false; // else PIPE_BUF has a place
  Batch out;
  auto& [records, count] = out;
  const std::size_t lost = lost_.exchange(0, std::memory_order_relaxed);
  if (lost != 0) {
    records[count] = {};
    records[count].kind = trace::Kind::lost;
    records[count++].bytes = lost;
  }
  if (!std::exchange(host_written_, true)) records[count++] = site_record(trace::Kind::site, 0, host_);
  for (; sites_written_ < most_sites && count < batch; ++sites_written_) {
    const std::uint64_t address = sites_[sites_written_].load(std::memory_order_relaxed);
    if (address == 0 || !describe(address, out)) break;
  }
  std::size_t taken = 0;
  while (count < batch && records_->pop(records[count])) {
    ++count;
    ++taken;
  }
  waiting_.fetch_sub(taken, std::memory_order_relaxed);
  if (count == 0) return false;
  WithoutSigpipe held;
  while (write(pipe_.get(), records.data(), count * sizeof records[0]) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE) held.take_signal();
    lost_.fetch_add(lost + taken, std::memory_order_relaxed);
    return false;
  }
  return true;
}

void Trace::close() {
  if (!on() || !pipe_) return;
  trace::Record closed{};
  closed.kind = trace::Kind::closed;
  closed.begin = trace::now();
  end_looks(looks_, false);
  add(closed);
  while (writing_.test_and_set(std::memory_order_acquire)) sched_yield();
  for (;;) {
    pollfd room{.fd = pipe_.get(), .events = POLLOUT, .revents = 0};
    if (poll(&room, 1, -1) < 0 && errno == EINTR) continue;
    if ((room.revents & POLLOUT) == 0 || !write_batch()) break;
  }
  pipe_.reset();
  writing_.clear(std::memory_order_release);
}

Trace::InCall::InCall(Trace* trace, trace::Call call, std::uint64_t id, const void* site)
    : trace_(trace != nullptr && trace->on() ? trace : nullptr), site_before_(site_) {
  if (trace_ == nullptr) {
    if (site != nullptr) site_ = reinterpret_cast<std::uintptr_t>(site);
    return;
  }
  call_ = call;
  id_ = id;
  site_ = trace_->site_of_call(site);
  begin_ = trace::now();
}

Trace::InCall::~InCall() {
  const std::uint64_t site = std::exchange(site_, site_before_);
  if (trace_ == nullptr) return;
  if (call_ != trace::Call::other) {
    trace::Record record{};
    record.kind = trace::Kind::call;
    record.call = call_;
    record.begin = begin_;
    record.end = trace::now();
    record.id = id_;
    record.site = site;
    trace_->add(record);
  }
  trace_->write_some();
}

} // namespace parc::client
