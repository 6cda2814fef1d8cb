// SPDX-License-Identifier: BSD-3-Clause
// Early release under stress. Ranks on several hosts send each other what a seed says, and read it into any
// kind of memory by any kind of wait, at any level; several threads start and wait, touch each other's
// buffers while those are guarded, and store beside and into them; the buffers are written from, read over,
// grown, cut, freed and forked with before anybody has looked at them. Every byte is compared at some time.
//
// In every round a thread starts all its writes before it waits for anything, so no order of waits can
// deadlock. What a round has read is finished with in the middle of the next one, while other threads start
// reads; only what is written from then stays to its end.
//
// Usage: early_stress [--seed N] [--messages M] [--threads T]; M is for all ranks together.
#include "tests/support/programs/stress/endings.hpp"
#include "tests/support/programs/stress/meeting.hpp"

#include <cinttypes>
#include <malloc.h>
#include <thread>
#include <utility>

RANK_WITHOUT_LEAK_CHECK

namespace {

using namespace stress;

// What lies on the same pages would be a sanitizer's own.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t edge = 4096;
#else
constexpr std::size_t edge = 16;
#endif
constexpr std::size_t area_size = 2 << 20, data_size = 1 << 20, stack_size = 192 << 10;
unsigned char in_bss[area_size + 2 * edge];
unsigned char in_data[data_size + 2 * edge] = {1};

parc_context* parc = nullptr;
Meeting* meeting = nullptr;

class Worker {
public:
  Worker(int thread, const std::array<Area, 4>& areas)
      : thread_(thread), plan_(seed, messages, parc_size(parc)), random_(own_seed()),
        places_(own_seed() + 1, areas) {}

  void run() {
    for (auto round = plan_.next(); !round.empty(); round = plan_.next()) {
      pthread_barrier_wait(&meeting->barrier);
      run_round(round);
      ++number_;
    }
    pthread_barrier_wait(&meeting->barrier);
    free_passed_on();
    finish_last();
    ++number_;
    free_passed_on(); // what would have been passed on next
  }

private:
  struct Written {
    parc_op id;
    Place place; // to be freed; without pieces: another message's
  };

  [[nodiscard]] std::uint64_t own_seed() const {
    return seed * 1000 + static_cast<std::uint64_t>(rank::number * 100 + thread_ * 10);
  }
  auto& now() { return meeting->rounds[number_ % 2]; }
  auto& last() { return meeting->rounds[(number_ + 1) % 2]; }
  auto& touchable() { return meeting->touchable[number_ % 2]; }

  void run_round(const std::vector<Message>& round) {
    free_passed_on();
    places_.start_round(number_);
    const std::uint64_t when = random_.below(3);
    if (thread_ == 0 && random_.chance(30)) change_level();
    if (when == 0) finish_last();
    start(round);
    if (when == 1) finish_last();
    wait_for_reads();
    for (std::uint64_t touches = random_.below(10); touches > 0; --touches) touch_any();
    if (when == 2) finish_last();
    wait_for_writes();
    if (thread_ == 0 && number_ % 64 == 63) rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  }

  void change_level() {
    const std::uint64_t kind = random_.below(10);
    const int level = kind < 1 ? PARC_RELEASE_OFF : kind < 4 ? PARC_RELEASE_ENVELOPE : PARC_RELEASE_FULL;
    rank::expect_code(parc_set_release(parc, level), PARC_OK, "set_release");
  }

  // ---- Starting

  // Message `index` is read by one thread and written by one, not always the same.
  [[nodiscard]] bool reads(std::size_t index, const Message& message) const {
    return message.to == rank::number && index % static_cast<std::size_t>(threads) == at();
  }
  [[nodiscard]] bool writes(std::size_t index, const Message& message) const {
    return message.from == rank::number && index / 3 % static_cast<std::size_t>(threads) == at();
  }
  [[nodiscard]] std::size_t at() const { return static_cast<std::size_t>(thread_); }

  void start(const std::vector<Message>& round) {
    std::vector<std::pair<std::size_t, bool>> all; // index, and that it is a write
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (i % static_cast<std::size_t>(threads) == at()) now()[i].mine = false;
      if (reads(i, round[i])) all.emplace_back(i, false);
      if (writes(i, round[i])) all.emplace_back(i, true);
    }
    random_.shuffle(all);
    // What the others wait for meanwhile has not even begun.
    if (number_ % static_cast<std::uint64_t>(parc_size(parc)) == static_cast<std::uint64_t>(rank::number))
      usleep(static_cast<useconds_t>(random_.below(1000)));
    for (const auto& [i, is_write] : all) is_write ? start_write(round[i]) : start_read(i, round[i]);
  }

  void start_read(std::size_t index, const Message& message) {
    Received& in = now()[index];
    const std::size_t more = random_.chance(80) ? 0 : random_.below(6000);
    const bool hidden = !message.kept && random_.chance(20);
    in = {message, places_.take(message.length + more), true, false, !hidden};
    if (random_.chance(50)) { // else there is what was there before, and sometimes a guard
      in.place.filler = static_cast<int>(random_.below(256));
      in.place.each_piece(0, in.place.capacity, [&](std::size_t, unsigned char* memory, std::size_t bytes) {
        std::memset(memory, in.place.filler, bytes);
      });
    }
    if (random_.chance(30) && in.place.pieces.size() == 1) return blocking_.push_back(index);
    reading_.push_back(index);
    ids_.push_back(started(read(in), "initread"));
  }

  parc_op read(const Received& in) {
    const Message& message = in.message;
    const int from = random_.chance(10) ? PARC_ANY_SOURCE : message.from;
    const auto& pieces = in.place.pieces;
    if (pieces.size() == 1 && random_.chance(60))
      return parc_initread(parc, from, message.number, pieces[0].iov_base, pieces[0].iov_len);
    const parc_envelope envelope = parc_envelope_of(from, 0, message.number);
    return parc_initreadv(parc, &envelope, pieces.data(), static_cast<int>(pieces.size()),
                          (random_.chance(30) ? PARC_EARLY : 0) | (random_.chance(30) ? PARC_FROM_END : 0));
  }

  void start_write(const Message& message) {
    Place place{};
    std::vector<iovec> pieces;
    if (message.passes_on >= 0) {
      const Received& source = last()[static_cast<std::size_t>(message.passes_on)];
      source.place.each_piece(message.first - source.message.first, message.length,
                              [&](std::size_t, unsigned char* memory, std::size_t bytes) {
                                pieces.push_back({memory, bytes});
                              });
    } else {
      place = places_.take(message.length);
      place.each_piece(0, message.length, [&](std::size_t from, unsigned char* memory, std::size_t bytes) {
        rank::fill(memory, bytes, message.key, message.first + from);
      });
      pieces = place.pieces;
    }
    const parc_envelope envelope = parc_envelope_of(message.to, 0, message.number);
    const unsigned flags = (random_.chance(30) ? PARC_FROM_END : 0) | (random_.chance(40) ? PARC_EARLY : 0);
    const parc_op id =
        parc_initwritev(parc, &envelope, pieces.data(), static_cast<int>(pieces.size()), flags);
    written_.push_back({started(id, "initwrite"), std::move(place)});
  }

  static parc_op started(parc_op id, const char* what) {
    rank::expect(id > 0, "seed %" PRIu64 ": %s gave %" PRId64, seed, what, id);
    return id;
  }

  // ---- Waiting

  void wait_for_reads() {
    while (!reading_.empty() || !blocking_.empty()) {
      const bool block = reading_.empty() || (!blocking_.empty() && random_.chance(50));
      if (block)
        read_blocking();
      else if (const std::uint64_t how = random_.below(100); how < 65)
        wait_for_one();
      else if (how < 85)
        wait_for_several();
      else
        wait_for_any();
      for (std::uint64_t touches = random_.below(4); touches > 0; --touches) touch_any();
    }
  }

  // Sometimes over what another message has been read into and nobody has looked at.
  void read_blocking() {
    const std::size_t index = take_out(blocking_, random_.below(blocking_.size()));
    Received& in = now()[index];
    for (const std::size_t other : hidden_) {
      Received& under = now()[other];
      if (under.place.pieces.size() != 1 || under.place.capacity < in.message.length) continue;
      in.place.free_block();
      in.place = under.place;
      in.place.filler = -1;
      under.gone = true;
      std::erase(hidden_, other);
      break;
    }
    parc_status* const status = status_for(in);
    const iovec& piece = in.place.pieces[0];
    const int code =
        parc_read(parc, in.message.from, in.message.number, piece.iov_base, piece.iov_len, status);
    waited(index, code, status);
  }

  // Sometimes beside the buffer, where its page may be guarded before the call returns.
  parc_status* status_for(Received& in) {
    const std::uint64_t where = random_.below(10);
    return where < 8 ? nullptr : where < 9 ? &status_ : in.place.status_inside();
  }

  void wait_for_one() {
    const std::size_t place = random_.below(reading_.size());
    const std::size_t index = take_out(reading_, place);
    const parc_op id = take_out(ids_, place);
    parc_status* const status = status_for(now()[index]);
    waited(index, parc_wait(parc, id, status), status);
  }

  // Reads, and sometimes writes with them.
  void wait_for_several() {
    const std::uint64_t count = random_.between(1, reading_.size());
    std::vector<std::size_t> indices(reading_.end() - static_cast<std::ptrdiff_t>(count), reading_.end());
    std::vector<parc_op> ids(ids_.end() - static_cast<std::ptrdiff_t>(count), ids_.end());
    reading_.resize(reading_.size() - count);
    ids_.resize(reading_.size());
    if (random_.chance(30))
      for (Written& each : written_) ids.push_back(std::exchange(each.id, PARC_OP_NULL));
    std::vector<parc_status> statuses(ids.size());
    const bool wanted = random_.chance(20);
    const int code =
        parc_waitall(parc, static_cast<int>(ids.size()), ids.data(), wanted ? statuses.data() : nullptr);
    for (std::size_t i = 0; i < indices.size(); ++i)
      waited(indices[i], code, wanted ? &statuses[i] : nullptr);
  }

  // Never released early.
  void wait_for_any() {
    int which = -1;
    const int code = parc_waitany(parc, static_cast<int>(ids_.size()), ids_.data(), &which, &status_);
    rank::expect(which >= 0, "seed %" PRIu64 ": waitany found nothing", seed);
    const auto place = static_cast<std::size_t>(which);
    (void)take_out(ids_, place);
    waited(take_out(reading_, place), code, &status_);
  }

  void waited(std::size_t index, int code, const parc_status* status) {
    Received& in = now()[index];
    if (code != PARC_OK) wrong(in, 0, 0, "its wait gave %d: %s", code, parc_error_detail());
    if (status != nullptr && (status->source != in.message.from || status->tag != in.message.number ||
                              status->length != in.message.length || status->error != PARC_OK))
      wrong(in, 0, 0, "its status says rank %d, tag %d, %" PRIu64 " bytes, error %d", status->source,
            status->tag, status->length, status->error);
    // Beside it, while it is guarded.
    if (status == in.place.status_inside() || random_.chance(20))
      in.place.write_gaps(static_cast<unsigned char>(random_.below(256)));
    if (in.shown)
      touchable()[index].store(true, std::memory_order_release);
    else
      hidden_.push_back(index);
  }

  void wait_for_writes() {
    std::vector<parc_op> ids;
    for (const Written& each : written_) ids.push_back(each.id);
    rank::expect_code(parc_waitall(parc, static_cast<int>(ids.size()), ids.data(), nullptr), PARC_OK,
                      "waitall of writes");
    for (const Written& each : written_) each.place.free_block();
    written_.clear();
    hidden_.clear();
  }

  template <class T> static T take_out(std::vector<T>& list, std::size_t place) {
    const T taken = list[place];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(place));
    return taken;
  }

  // ---- Touching

  // Part of any thread's message of this round.
  void touch_any() {
    const std::size_t index = random_.below(Plan::most);
    for (std::size_t i = 0; i < Plan::most; ++i) {
      const std::size_t each = (index + i) % Plan::most;
      if (!touchable()[each].load(std::memory_order_acquire)) continue;
      const Received& in = now()[each];
      const std::size_t from = random_.below(in.message.length);
      return check(in, from, std::min<std::size_t>(in.message.length - from, random_.between(1, 6000)),
                   "a touched byte is wrong");
    }
  }

  // What nobody else uses: this thread's messages of the last round that no message of this one is written
  // from.
  void finish_last() {
    for (std::size_t i = at(); i < Plan::most; i += static_cast<std::size_t>(threads)) {
      meeting->touchable[(number_ + 1) % 2][i].store(false, std::memory_order_relaxed);
      Received& in = last()[i];
      if (in.mine && !in.gone && !in.message.kept) finish(in);
    }
  }

  void finish(Received& in) {
    const std::uint64_t how = random_.below(100);
    if (how < 12) store_into(in, random_);
    if (how >= 12 && how < 32 && in.place.from_malloc()) return reallocate(in, random_);
    if (how >= 32 && how < 34) look_in_child(in);
    if (how >= 34 && how < 44) settle(in);
    if (how < 80) check_all(in, "a byte is wrong in the end");
    discard(in); // else nobody has looked
  }

  void settle(const Received& in) {
    const bool all = random_.chance(20);
    rank::expect_code(parc_settle(parc, all ? nullptr : in.place.base, all ? 0 : in.place.span), PARC_OK,
                      "settle");
  }

  static void discard(Received& in) {
    if (!in.gone) in.place.free_block();
    in.gone = true;
  }

  // Messages of the round before the last, written from in the last one.
  void free_passed_on() {
    for (std::size_t i = at(); i < Plan::most; i += static_cast<std::size_t>(threads)) {
      Received& in = now()[i];
      if (!in.mine || in.gone) continue;
      check_all(in, "a byte of what was passed on is wrong");
      discard(in);
    }
  }

  const int thread_;
  Plan plan_;
  Random random_;
  Places places_;
  std::uint64_t number_ = 0; // of the round
  std::vector<std::size_t> reading_, blocking_;
  std::vector<parc_op> ids_; // of reading_
  std::vector<std::size_t> hidden_;
  std::vector<Written> written_;
  parc_status status_{};
};

Area slice(unsigned char* memory, std::size_t size, int thread) {
  const std::size_t each = size / static_cast<std::size_t>(threads);
  return {memory + static_cast<std::size_t>(thread) * each, each, 0};
}

void work(int thread, unsigned char* in_arena) {
  unsigned char on_stack[stack_size];
  std::memset(on_stack, 0, sizeof on_stack);
  std::array<Area, 4> areas;
  areas[arena] = slice(in_arena, area_size, thread);
  areas[bss] = slice(in_bss + edge, area_size, thread);
  areas[data] = slice(in_data + edge, data_size, thread);
  areas[stack] = {on_stack, sizeof on_stack, 0};
  Worker(thread, areas).run();
}

} // namespace

int main(int argc, char** argv) {
  read_options(argc, argv);
  mallopt(M_MMAP_THRESHOLD, chunk_threshold);
  if (seed % 2 == 0) mallopt(M_ARENA_MAX, 1); // else other threads' memory is in heaps that are bounced
  parc = rank::open();
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
  auto* const in_arena = static_cast<unsigned char*>(parc_alloc(parc, area_size));
  rank::expect(in_arena != nullptr, "no memory");
  meeting = make_meeting();
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread, in_arena);
    work(0, in_arena);
  }
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  // With several threads that is the scheduler's choice.
  rank::expect(counts.released > 0 || messages < 1000 || threads > 1, "nothing was released");
  std::printf("%" PRIu64 " released, %" PRIu64 " faults, %" PRIu64 " of them late, %" PRIu64 " openings\n",
              counts.released, counts.faults, counts.late_faults, counts.openings);
  // A read from anybody fails when all others have left, though this rank itself may still write to it.
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
