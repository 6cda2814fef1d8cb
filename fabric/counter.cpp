// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/counter.hpp"

namespace parc::fabric {

std::uint64_t Counter::read(Count& count) {
  (void)parent.session->poll();
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
  parent.session->wake();
  return 0;
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
  if (!wait_object.blocks()) return -FI_ENOSYS;
  // What had failed before, and was not read, is as good: who waits for successes would wait for ever.
  std::optional<Clock::time_point> end;
  if (timeout_ms >= 0) end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto over = [&] { return successes.value.load() >= threshold || failures.changed(); };
  if (!parent.session->wait(over, end)) return -FI_ETIMEDOUT;
  return failures.changed() ? -FI_EAVAIL : 0;
}

namespace {

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
  const auto complete = [&](Counter& made) {
    made.ops = &counter_calls;
    return made.wait_object.open(made.parent.session, attributes->wait_obj);
  };
  return open_object<Counter>(FI_CLASS_CNTR, context, counter, complete, object_of<Domain>(domain));
}

} // namespace parc::fabric
