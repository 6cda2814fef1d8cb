// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/resolver.hpp"

#include "system/limits.hpp"

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <system_error>

namespace parc::daemon {
namespace {

struct AddrinfoFree {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<std::vector<Address>> ask(const std::string& name, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return error(ENOENT, "unknown host {}: {}; name it under [hosts] in parcd.toml or in /etc/hosts", name,
                 failed == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(failed));
  const std::unique_ptr<addrinfo, AddrinfoFree> list(found);
  std::vector<Address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
  }
  return addresses;
}

} // namespace

struct Resolver::Shared {
  struct Found {
    std::string name;
    Result<std::vector<Address>> addresses;
  };
  Fd bell;
  std::mutex lock;
  std::condition_variable asked;
  std::deque<std::string> names; // to look up
  unsigned asking = 0;           // threads that are not at their rest
  std::vector<Found> found;
  bool over = false;
};

Resolver::Resolver(Loop& loop, StartThread start)
    : loop_(loop), shared_(std::make_shared<Shared>()), start_(std::move(start)) {
  shared_->bell.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  bell_ = Event(loop.events(), shared_->bell.get(), EV_READ | EV_PERSIST, [this](short) { deliver(); });
  bell_.add();
}

Resolver::~Resolver() {
  const std::lock_guard hold(shared_->lock);
  shared_->over = true;
  shared_->asked.notify_all();
}

// In a thread, which was counted as asking when it was started.
void Resolver::serve(Shared& shared) {
  std::unique_lock hold(shared.lock);
  for (;;) {
    --shared.asking;
    shared.asked.wait(hold, [&] { return shared.over || !shared.names.empty(); });
    ++shared.asking;
    if (shared.over) return;
    const std::string name = std::move(shared.names.front());
    shared.names.pop_front();
    hold.unlock();
    auto addresses = ask(name, 0, 0);
    hold.lock();
    shared.found.push_back({name, std::move(addresses)});
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(shared.bell.get(), &one, sizeof one);
  }
}

// One that has nothing else to do, as far as there can be another. The names that wait are others' business.
Result<void> Resolver::have_thread() {
  {
    const std::lock_guard hold(shared_->lock);
    if (threads_ == most_threads || shared_->asking + shared_->names.size() < threads_) return success();
    ++shared_->asking;
  }
  try {
    start_([shared = shared_] { serve(*shared); });
  } catch (const std::system_error& failure) {
    const std::lock_guard hold(shared_->lock);
    --shared_->asking;
    if (threads_ != 0) return success(); // it waits for one that there is
    return error(failure.code().value(),
                 "no thread could be started to look it up: {}{}, or give a numeric address under [hosts] in "
                 "parcd.toml",
                 failure.code().message(), process_advice);
  }
  ++threads_;
  return success();
}

void Resolver::resolve(const std::string& name, std::uint16_t port, std::chrono::seconds patience,
                       Answer answer) {
  if (auto numeric = numeric_address(name, port)) return answer(std::vector{numeric.value()});
  const bool is_asked = waiting_.contains(name);
  if (!is_asked)
    if (auto thread = have_thread(); !thread) return answer(std::move(thread).error());
  const std::uint64_t number = ++asked_;
  auto end = std::make_unique<Timer>(loop_, [this, name, number, patience] {
    loop_.after_step([this, name, number, patience] { out_of_time(name, number, patience); });
  });
  end->set(static_cast<double>(patience.count()));
  waiting_[name].emplace(number, Question{port, std::move(answer), std::move(end)});
  if (is_asked) return;
  const std::lock_guard hold(shared_->lock);
  shared_->names.push_back(name);
  shared_->asked.notify_one();
}

// The name is still being looked up: who asks for it now gets that answer, if it comes.
void Resolver::out_of_time(const std::string& name, std::uint64_t number, std::chrono::seconds patience) {
  const auto at = waiting_.find(name);
  if (at == waiting_.end()) return;
  const auto question = at->second.extract(number);
  if (question.empty()) return;
  question.mapped().answer(
      error(ETIMEDOUT,
            "no name server has answered for host {} within {} s; name it under [hosts] in parcd.toml or in "
            "/etc/hosts",
            name, patience.count()));
}

void Resolver::deliver() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(shared_->bell.get(), &count, sizeof count);
  std::vector<Shared::Found> found;
  {
    const std::lock_guard hold(shared_->lock);
    found.swap(shared_->found);
  }
  for (Shared::Found& each : found) {
    const auto questions = waiting_.extract(each.name);
    for (auto& [number, question] : questions.mapped()) {
      auto addresses = each.addresses;
      if (addresses)
        for (Address& address : addresses.value()) address.set_port(question.port);
      question.answer(std::move(addresses));
    }
  }
}

Result<std::vector<Address>> resolve(const std::string& name, std::uint16_t port) {
  return ask(name, port, 0);
}

Result<Address> numeric_address(const std::string& address, std::uint16_t port) {
  PARC_TRY(found, ask(address, port, AI_NUMERICHOST));
  return found.front();
}

} // namespace parc::daemon
