// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/counter.hpp"

#include <memory>

namespace parc::fabric {

std::uint64_t Counter::read(Count& count) {
  (void)domain_.session->poll();
  const std::uint64_t value = count.value.load();
  count.read.store(value);
  return value;
}

int Counter::try_wait() {
  return wait_object.try_wait([this] { return ready(); });
}

int Counter::add(Count& count, std::uint64_t more) {
  count.value.fetch_add(more);
  return changed();
}

int Counter::set(Count& count, std::uint64_t to) {
  count.value.store(to);
  return changed();
}

int Counter::changed() {
  wait_object.ring();
  domain_.session->wake();
  return 0;
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
  if (!wait_object.blocks()) return -FI_ENOSYS;
  const std::uint64_t failed = failures.value.load();
  std::optional<Clock::time_point> end;
  if (timeout_ms >= 0) end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto over = [&] { return successes.value.load() >= threshold || failures.value.load() != failed; };
  if (!domain_.session->wait(over, end)) return -FI_ETIMEDOUT;
  return failures.value.load() != failed ? -FI_EAVAIL : 0;
}

namespace {

int close_counter(fid* of) {
  auto& counter = object_of_fid<Counter, fid_cntr>(of);
  if (counter.users.load() != 0) return -FI_EBUSY;
  delete &counter;
  return 0;
}

fi_ops counter_object_calls{.size = sizeof(fi_ops),
                            .close = close_counter,
                            .bind = no_bind,
                            .control =
                                [](fid* of, int command, void* answer) {
                                  return object_of_fid<Counter, fid_cntr>(of).wait_object.control(command,
                                                                                                  answer);
                                },
                            .ops_open = no_ops_open,
                            .tostr = nullptr,
                            .ops_set = nullptr};

fi_ops_cntr counter_calls{
    .size = sizeof(fi_ops_cntr),
    .read = [](fid_cntr* of) { return object_of<Counter>(of).read(object_of<Counter>(of).successes); },
    .readerr = [](fid_cntr* of) { return object_of<Counter>(of).read(object_of<Counter>(of).failures); },
    .add =
        [](fid_cntr* of, std::uint64_t value) {
          auto& counter = object_of<Counter>(of);
          return counter.add(counter.successes, value);
        },
    .set =
        [](fid_cntr* of, std::uint64_t value) {
          auto& counter = object_of<Counter>(of);
          return counter.set(counter.successes, value);
        },
    .wait = [](fid_cntr* of, std::uint64_t threshold,
               int timeout) { return object_of<Counter>(of).wait(threshold, timeout); },
    .adderr =
        [](fid_cntr* of, std::uint64_t value) {
          auto& counter = object_of<Counter>(of);
          return counter.add(counter.failures, value);
        },
    .seterr =
        [](fid_cntr* of, std::uint64_t value) {
          auto& counter = object_of<Counter>(of);
          return counter.set(counter.failures, value);
        },
};

} // namespace

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context) {
  return guarded([&] {
    auto& in = object_of<Domain>(domain);
    auto made = std::make_unique<Counter>(in);
    if (const int code = made->wait_object.open(in.session, attributes->wait_obj); code != 0) return code;
    made->fid = {.fclass = FI_CLASS_CNTR, .context = context, .ops = &counter_object_calls};
    made->ops = &counter_calls;
    *counter = made.release();
    return 0;
  });
}

} // namespace parc::fabric
