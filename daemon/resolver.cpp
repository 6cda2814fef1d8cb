// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/resolver.hpp"

#include <cstring>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <thread>

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
  struct Done {
    Answer answer;
    Result<std::vector<Address>> result;
  };
  Fd bell;
  std::mutex lock;
  std::vector<Done> done;
};

Resolver::Resolver(event_base* loop) : shared_(std::make_shared<Shared>()) {
  shared_->bell.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  bell_ = Event(loop, shared_->bell.get(), EV_READ | EV_PERSIST, [this](short) { deliver(); });
  bell_.add();
}

Resolver::~Resolver() = default;

void Resolver::resolve(const std::string& name, std::uint16_t port, Answer answer) {
  std::thread([shared = shared_, name, port, answer = std::move(answer)]() mutable {
    Result<std::vector<Address>> result = ask(name, port, 0);
    const std::lock_guard hold(shared->lock);
    shared->done.push_back({std::move(answer), std::move(result)});
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(shared->bell.get(), &one, sizeof one);
  }).detach();
}

void Resolver::deliver() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(shared_->bell.get(), &count, sizeof count);
  std::vector<Shared::Done> done;
  {
    const std::lock_guard hold(shared_->lock);
    done.swap(shared_->done);
  }
  for (Shared::Done& each : done) each.answer(std::move(each.result));
}

std::string Address::text() const {
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host, sizeof host, service,
                  sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return std::string(host) + " port " + service;
}

Result<Address> numeric_address(const std::string& address, std::uint16_t port) {
  PARC_TRY(found, ask(address, port, AI_NUMERICHOST));
  return found.front();
}

} // namespace parc::daemon
