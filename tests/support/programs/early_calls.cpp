// SPDX-License-Identifier: BSD-3-Clause
// Random calls of the system and of malloc on buffers in flight. In each step one rank sends to another,
// which waits for what it gets into memory of any kind, in the middle of bytes of its own, and at once does
// something to it or to what lies beside it: takes bytes out or brings some in by a system call, changes its
// pages, frees or resizes its block, looks at it in a child, a handler or a thread, passes it on. All ranks
// draw the same steps from SEED, and nothing that is done depends on whether a wait was released early: so
// each rank sees the same bytes and results at every level, and prints their digest for a comparison. Every
// byte is compared with what it must be when it is seen, too.
//
// Usage: early_calls SEED STEPS FILE [THREADS]. FILE is made; by it a rank says, behind everybody's back, how
// far its waits are. With several threads each has steps of its own. With EARLY_CALLS_TELL in the environment
// each call is told with the digest behind it, on standard error.
#include "tests/support/programs/calls/rare_calls.hpp"

#include <atomic>
#include <malloc.h>
#include <string>
#include <thread>

RANK_WITHOUT_LEAK_CHECK

namespace {

using namespace calls;

parc_context* parc = nullptr;
std::uint64_t seed = 0, steps = 0;
int threads = 1;
bool tells = false;
bool at_once = false; // waits return before their messages are sent
std::atomic<std::uint64_t>* said = nullptr;

constexpr int most_threads = 4;
constexpr std::size_t bss_size = 1 << 20, data_size = 256 << 10, stack_size = 192 << 10;
alignas(page) unsigned char in_bss[most_threads * bss_size];
alignas(page) unsigned char in_data[most_threads * data_size] = {1};

struct Step {
  int from, to, passed_to; // to whom the first message is sent on; -1: to nobody
  std::vector<std::size_t> lengths;
  enum When : std::uint8_t { now, when_waiting, when_returned } when;
  useconds_t delay;
};

Step draw_step(Random& plan) {
  const auto ranks = static_cast<std::uint64_t>(parc_size(parc));
  const auto other_than = [&](int rank) {
    return static_cast<int>((static_cast<std::uint64_t>(rank) + plan.between(1, ranks - 1)) % ranks);
  };
  Step step{};
  step.from = static_cast<int>(plan.below(ranks));
  step.to = other_than(step.from);
  step.passed_to = plan.chance(20) ? other_than(step.to) : -1;
  for (std::uint64_t count = plan.chance(60) ? 1 : plan.between(2, 3); count > 0; --count) {
    const std::uint64_t kind =
        plan.below(step.lengths.empty() ? 100 : 90); // one region has room for the longest
    step.lengths.push_back(kind < 10   ? plan.between(1, page)
                           : kind < 45 ? plan.between(page, 40'000)
                           : kind < 90 ? plan.between(40'000, 240'000)
                                       : plan.between(240'000, 4 << 20));
  }
  const std::uint64_t when = plan.below(100);
  step.when = when < 10 ? Step::now : when < 50 ? Step::when_waiting : Step::when_returned;
  step.delay = plan.chance(50) ? 0 : static_cast<useconds_t>(plan.below(1500));
  return step;
}

class Player {
public:
  Player(int thread, unsigned char* on_stack)
      : thread_(thread), plan_(seed * 100 + static_cast<std::uint64_t>(thread)),
        at_(parc, seed * 100'000 + static_cast<std::uint64_t>(rank::number * 100 + thread), tag(0, of_self),
            at_once ? PARC_EARLY : 0U, threads > 1) {
    here.seed = seed;
    here.thread = thread;
    const auto size_in = [](std::size_t bytes) { return bytes - 2 * page; };
    const auto number = static_cast<std::size_t>(thread);
    for (const std::size_t size : {std::size_t{1} << 20, std::size_t{300} << 10})
      at_.add_region(Kind::arena, parc_alloc(parc, size + 2 * page), size);
    at_.add_region(Kind::bss, in_bss + number * bss_size, size_in(bss_size));
    at_.add_region(Kind::data, in_data + number * data_size, size_in(data_size));
    at_.add_region(Kind::stack, on_stack, size_in(stack_size));
    for (const std::size_t size : {60'000UL, 100'000UL})
      at_.add_region(Kind::heap, std::malloc(size + 2 * page), size);
    for (const std::size_t size : {std::size_t{1} << 20, Region::most - 2 * page})
      at_.add_region(Kind::chunk, std::malloc(size + 2 * page), size);
    at_.add_region(Kind::anonymous, map((1 << 20) + 2 * page), 1 << 20);
    const int file = memfd_create("early_calls", MFD_CLOEXEC);
    constexpr std::size_t file_size = 512 << 10;
    if (file < 0 || ftruncate(file, file_size + 2 * page) != 0) wrong("no file");
    void* const mapped = mmap(nullptr, file_size + 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    at_.add_region(Kind::file, mapped == MAP_FAILED ? nullptr : mapped, file_size, file);
  }

  std::uint64_t play() {
    for (; here.step < steps; ++here.step) {
      const Step step = draw_step(plan_);
      here.call = "message";
      if (step.from == rank::number) send(step);
      if (step.to == rank::number) receive(step);
      if (step.passed_to == rank::number) {
        here.call = "message that was passed on";
        read_all({step.to, {step.lengths[0]}}, {key(0)}, passed_on);
        make_calls();
      }
      here.call = "all";
      if (here.step % 16 == 15) at_.check_all();
    }
    here.call = "end";
    at_.check_all();
    return at_.digest.value();
  }

private:
  static constexpr int tags = 8, passed_on = 6, of_self = 7; // of a step
  [[nodiscard]] int tag(std::uint64_t step, int index) const {
    return (static_cast<int>(step) * tags + index) * threads + thread_;
  }
  // Of what message `index` of this step says.
  [[nodiscard]] std::uint64_t key(int index) const {
    return seed * 1'000'003 + static_cast<std::uint64_t>(tag(here.step, index));
  }
  [[nodiscard]] std::atomic<std::uint64_t>& said_by(int rank) const { return said[rank * threads + thread_]; }
  [[nodiscard]] std::uint64_t waiting() const { return 2 * here.step + 1; }
  [[nodiscard]] std::uint64_t returned() const { return 2 * here.step + 2; }

  // ---- Sending

  void await_reader(const Step& step) const {
    if (step.when == Step::now) return;
    while (said_by(step.to).load() < waiting()) usleep(50);
    // It is not released where that does not pay, or cannot be.
    if (step.when == Step::when_returned && at_once)
      for (int i = 0; i < 60 && said_by(step.to).load() < returned(); ++i) usleep(50);
    if (step.delay > 0) usleep(step.delay);
  }

  void send(const Step& step) {
    std::vector<Range> sources;
    for (std::size_t i = 0; i < step.lengths.size(); ++i) {
      const Range source = apart_from(sources, step.lengths[i]);
      rank::fill(source.memory(), source.bytes, key(static_cast<int>(i)));
      rank::fill(source.expected(), source.bytes, key(static_cast<int>(i)));
      sources.push_back(source);
    }
    await_reader(step);
    std::vector<parc_op> writes;
    for (std::size_t i = 0; i < sources.size(); ++i)
      writes.push_back(write(step.to, tag(here.step, static_cast<int>(i)), sources[i]));
    wait_for_all(writes);
    for (const Range& source : sources) at_.note(source);
    if (at_.random.chance(40)) make_calls();
  }

  parc_op write(int to, int number, const Range& source) {
    const parc_envelope envelope = parc_envelope_of(to, 0, number);
    const iovec whole{source.memory(), source.bytes};
    const unsigned flags = at_.random.chance(50) ? at_.early_flags : 0;
    const parc_op id = parc_initwritev(parc, &envelope, &whole, 1, flags);
    if (id < 0) wrong("cannot write: %s", parc_error_detail());
    return id;
  }

  void wait_for_all(std::vector<parc_op>& ids) {
    int code = PARC_OK;
    if (at_.random.chance(50)) {
      code = parc_waitall(parc, static_cast<int>(ids.size()), ids.data(), nullptr);
    } else {
      for (const parc_op id : ids)
        if (code == PARC_OK) code = parc_wait(parc, id, nullptr);
    }
    if (code != PARC_OK) wrong("a wait gave %d: %s", code, parc_error_detail());
  }

  // ---- Receiving

  struct From {
    int rank;
    std::vector<std::size_t> lengths;
  };

  void receive(const Step& step) {
    std::vector<std::uint64_t> keys;
    for (std::size_t i = 0; i < step.lengths.size(); ++i) keys.push_back(key(static_cast<int>(i)));
    const Range first = read_all({step.from, step.lengths}, keys, 0);
    if (step.passed_to >= 0) {
      const parc_op id = write(step.passed_to, tag(here.step, passed_on), first);
      if (at_.random.chance(30)) at_.check(first, "while it is passed on");
      if (parc_wait(parc, id, nullptr) != PARC_OK) wrong("not passed on: %s", parc_error_detail());
    }
    make_calls();
  }

  // Into any places. The first one's.
  Range read_all(const From& from, const std::vector<std::uint64_t>& keys, int first_tag) {
    std::vector<Range> buffers; // some are larger than their messages
    for (const std::size_t length : from.lengths)
      buffers.push_back(apart_from(buffers, length + (at_.random.chance(80) ? 0 : at_.random.below(8000))));
    const bool blocking = at_.random.chance(40);
    if (blocking) {
      say(waiting());
      for (std::size_t i = 0; i < buffers.size(); ++i) read_blocking(from, first_tag, i, buffers[i]);
    } else {
      std::vector<parc_op> reads;
      for (std::size_t i = 0; i < buffers.size(); ++i)
        reads.push_back(start_read(from.rank, tag(here.step, first_tag + static_cast<int>(i)), buffers[i]));
      if (at_.random.chance(20)) call_beside(buffers);
      say(waiting());
      wait_for_all(reads);
    }
    say(returned());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      buffers[i].bytes = from.lengths[i];
      rank::fill(buffers[i].expected(), buffers[i].bytes, keys[i]);
      at_.note(buffers[i]);
    }
    return buffers[0];
  }

  void say(std::uint64_t what) const { said_by(rank::number).store(what); }

  void read_blocking(const From& from, int first_tag, std::size_t index, const Range& buffer) {
    const int number = tag(here.step, first_tag + static_cast<int>(index));
    parc_status status;
    const bool wanted = at_.random.chance(20);
    const int code =
        parc_read(parc, from.rank, number, buffer.memory(), buffer.bytes, wanted ? &status : nullptr);
    if (code != PARC_OK) wrong("a read gave %d: %s", code, parc_error_detail());
    if (wanted &&
        (status.source != from.rank || status.tag != number || status.length != from.lengths[index]))
      wrong("its status says rank %d, tag %d, %" PRIu64 " bytes", status.source, status.tag, status.length);
  }

  parc_op start_read(int from, int number, const Range& buffer) {
    const parc_envelope envelope = parc_envelope_of(from, 0, number);
    std::vector<iovec> pieces;
    const std::size_t count = at_.random.chance(70) ? 1 : at_.random.between(2, 4);
    for (std::size_t i = 0, done = 0; i < count; ++i) {
      const std::size_t part =
          i + 1 == count ? buffer.bytes - done : at_.random.below(buffer.bytes - done + 1);
      pieces.push_back({buffer.memory() + done, part});
      done += part;
    }
    const unsigned flags = at_.random.chance(50) ? at_.early_flags : 0;
    const parc_op id = parc_initreadv(parc, &envelope, pieces.data(), static_cast<int>(pieces.size()), flags);
    if (id < 0) wrong("cannot read: %s", parc_error_detail());
    return id;
  }

  // Sometimes over what came last, which nobody may have touched.
  Range apart_from(const std::vector<Range>& others, std::size_t bytes) {
    for (;;) {
      Range place = at_.place_for(bytes);
      if (!at_.last.empty() && at_.random.chance(30)) {
        const Range old = at_.last[at_.random.below(at_.last.size())];
        if (old.region->size >= bytes)
          place = {old.region, std::min(old.at + at_.random.below(3000), old.region->size - bytes), bytes};
      }
      if (std::ranges::none_of(others, [&](const Range& each) { return each.meets(place); })) return place;
    }
  }

  // ---- Calls

  void call(const Range& target) {
    static constexpr auto total = [] {
      unsigned sum = 0;
      for (const Call& each : data_calls) sum += each.weight;
      for (const Call& each : page_calls) sum += each.weight;
      for (const Call& each : rare_calls) sum += each.weight;
      return sum;
    }();
    std::uint64_t drawn = at_.random.below(total);
    const auto take = [&](const Call& each) {
      if (drawn >= each.weight) return drawn -= each.weight, false;
      here.call = each.name;
      each.make(at_, target);
      if (tells) tell(target);
      return true;
    };
    (void)(std::ranges::any_of(data_calls, take) || std::ranges::any_of(page_calls, take) ||
           std::ranges::any_of(rare_calls, take));
  }

  // Where two runs differ first.
  void tell(const Range& range) const {
    std::fprintf(stderr, "rank %d, thread %d, step %" PRIu64 ", %s, bytes [%zu, %zu) of %s: %016" PRIx64 "\n",
                 rank::number, thread_, here.step, here.call, range.at, range.end(),
                 kind_names[static_cast<int>(range.region->kind)], at_.digest.value());
  }

  void make_calls() {
    for (std::uint64_t count = at_.random.between(1, 4); count > 0; --count) call(at_.target());
    here.call = "touch";
    if (at_.random.chance(40) && !at_.last.empty()) at_.check(at_.last.back());
  }

  // While messages are under way, on another region; but no message to oneself, which may choose these.
  void call_beside(const std::vector<Range>& buffers) {
    const Range target = at_.target();
    const bool close =
        std::ranges::any_of(buffers, [&](const Range& each) { return each.region == target.region; });
    if (!close) data_calls[at_.random.below(std::size(data_calls) - 1)].make(at_, target);
  }

  int thread_;
  Random plan_;
  State at_;
};

void open_file(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  rank::expect(file >= 0 && ftruncate(file, page) == 0, "cannot make %s", path);
  void* const there = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  rank::expect(there != MAP_FAILED, "cannot map %s", path);
  said = static_cast<std::atomic<std::uint64_t>*>(there);
  close(file);
}

std::uint64_t play(int thread) {
  unsigned char on_stack[stack_size];
  return Player(thread, on_stack).play();
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  seed = std::strtoull(argv[1], nullptr, 10);
  steps = std::strtoull(argv[2], nullptr, 10);
  if (argc == 5)
    threads = static_cast<int>(std::clamp(std::strtol(argv[4], nullptr, 10), 1L, long{most_threads}));
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(chunk_threshold));
  std::signal(SIGUSR1, sum_in_handler);
  struct sigaction on_own_stack {};
  on_own_stack.sa_handler = sum_in_handler;
  on_own_stack.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &on_own_stack, nullptr);
  std::signal(SIGSEGV, on_fault);
  tells = getenv("EARLY_CALLS_TELL") != nullptr;
  const char* const level = getenv("PARC_EARLY_RELEASE");
  at_once = level != nullptr && std::string(level) == "full" && threads == 1;
  open_file(argv[3]);
  parc = rank::open();
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(threads));
  if (threads == 1) {
    digests[0] = play(0);
  } else {
    std::vector<std::thread> others;
    others.reserve(digests.size());
    for (int i = 0; i < threads; ++i)
      others.emplace_back([&digests, i] { digests[static_cast<std::size_t>(i)] = play(i); });
    for (std::thread& each : others) each.join();
  }
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  Digest all;
  for (const std::uint64_t each : digests) all.add(each);
  std::printf("rank %d saw %016" PRIx64 "\n", rank::number, all.value());
  std::printf("released %" PRIu64 "\n", counts.released);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
