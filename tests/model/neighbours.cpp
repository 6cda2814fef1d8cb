// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/neighbours.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace parc::model {
namespace {

using Word = std::uint8_t;
constexpr std::size_t most_senders = 2, reads = 2, most_threads = 2, actors = most_senders + most_threads;
constexpr std::uint8_t most_messages = 2; // of one sender
constexpr Word remote_message = most_senders * most_messages + 1, given_up = remote_message + 1;

// What others may read. Each word has one writer, but claim words and the lock, which change by
// compare-and-swap.
enum Place : std::uint8_t {
  posted,                 // how many reads the receiver has published
  claims,                 // of each read
  tails = claims + reads, // of each sender's ring
  drained = tails + most_senders,
  asked = drained + most_senders, // by senders, for the copy to a read: the message
  lock = asked + reads,           // of the receiver's threads
  asleep,                         // the receiver's first thread
  places,
};
enum Claim : Word {
  unpublished,
  open,
  by_receiver,
  by_kernel,
  by_sender
}; // the last one and those behind it
enum Lock : Word { unlocked, locked };

struct Store {
  std::uint8_t place;
  Word value;
};

struct Sender {
  enum Step : std::uint8_t { begin, look, take, ask, publish, bell, finished };
  Step step;
  std::uint8_t message, read, published;
  std::uint8_t entries[most_messages];
  bool dead;
};

struct Thread { // of the receiver
  enum Step : std::uint8_t {
    acquire,
    check,
    offer,
    tell,
    load,
    match,
    swap,
    said,
    release,
    wait,
    announced, // that it sleeps
    sleeps,
    finished
  };
  Step step;
  std::uint8_t post;   // the read that it posts next
  std::uint8_t sender; // whose ring it drains
  std::uint8_t tail, read;
  bool told; // that read is published, or there is none: what is left is to drain
};

struct State {
  Word memory[places];
  Store buffers[actors][4]; // not seen by others yet, the oldest first; place `places`: none
  Sender senders[most_senders];
  Thread threads[most_threads];
  // Of the receiver's process, under its lock.
  std::uint8_t heads[most_senders];
  std::uint8_t stored[most_senders * most_messages]; // messages that no read has fitted, the oldest first
  std::uint8_t matched[reads];                       // the message that has each read
  bool done[reads];                                  // and is in it
  bool remote_taken, death_known;
  bool must_know, asking; // the kernel: the reads; it is about to ring
  bool shares;            // the receiver has seen that
  std::uint8_t known;     // reads that it has told the kernel
  bool rung;              // the kernel has, and the receiver has not woken since
};

class Model final : public Explorer<State> {
public:
  explicit Model(const Neighbours& setting) : set_(setting) {}

  Explored run() {
    State start{};
    for (auto& buffer : start.buffers)
      for (Store& store : buffer) store.place = places;
    for (std::size_t s = set_.senders; s < most_senders; ++s) start.senders[s].step = Sender::finished;
    start.threads[0].step = first_step();
    start.threads[1].step = set_.threads == 2 ? Thread::acquire : Thread::finished;
    start.threads[1].told = true;
    return Explorer::run(start);
  }

private:
  void step(const State& state) override {
    for (std::size_t actor = 0; actor < actors; ++actor) flush(state, actor);
    for (std::size_t s = 0; s < set_.senders; ++s) step_sender(state, s);
    for (std::size_t t = 0; t < set_.threads; ++t) step_thread(state, t);
    step_kernel(state);
  }

  void visit(const State& state) {
    check(state);
    Explorer::visit(state);
  }

  // No message twice, and each behind those that its sender sent before.
  void check(const State& s) {
    for (std::size_t read = 0; read < reads; ++read) {
      const std::uint8_t message = s.matched[read];
      if (message == 0 || message >= remote_message) continue;
      const auto has = [&](std::size_t from, std::size_t to, int which) {
        return std::any_of(s.matched + from, s.matched + to,
                           [&](std::uint8_t each) { return each == which; });
      };
      const bool second = (message - 1) % most_messages != 0;
      if (has(read + 1, reads, message)) broken("doubled: " + picture(s));
      if (second && !has(0, read, message - 1)) broken("overtaken: " + picture(s));
    }
  }

  [[nodiscard]] std::string picture(const State& s) const override {
    std::string text;
    for (std::size_t i = 0; i < reads; ++i)
      text += "read " + std::to_string(i) + ": claim " + std::to_string(s.memory[claims + i]) + ", got " +
              std::to_string(s.matched[i]) + (s.done[i] ? "; " : " (not there yet); ");
    for (std::size_t i = 0; i < most_senders; ++i)
      text += "sender " + std::to_string(i) + ": step " + std::to_string(s.senders[i].step) +
              (s.senders[i].dead ? " (dead)" : "") + ", published " + std::to_string(s.senders[i].published) +
              ", drained " + std::to_string(s.heads[i]) + "; ";
    return text + "stored " + std::to_string(s.stored[0]);
  }

  [[nodiscard]] bool all_done(const State& s) const override {
    return std::all_of(s.done, s.done + reads, [](bool each) { return each; });
  }
  static void give(State& s, std::size_t read, std::uint8_t message) {
    s.matched[read] = message;
    s.done[read] = true;
  }

  // ---- Memory

  static Word seen_by(const State& s, std::size_t actor, std::size_t place) {
    Word value = s.memory[place];
    for (const Store& store : s.buffers[actor])
      if (store.place == place) value = store.value;
    return value;
  }
  static void store(State& s, std::size_t actor, std::size_t place, Word value) {
    for (Store& each : s.buffers[actor])
      if (each.place == places) {
        each = {static_cast<std::uint8_t>(place), value};
        return;
      }
  }
  static bool has_room(const State& s, std::size_t actor) { return s.buffers[actor][3].place == places; }
  // A compare-and-swap has to wait for the stores before it.
  static bool may_swap(const State& s, std::size_t actor) { return s.buffers[actor][0].place == places; }
  static void drain_one(State& s, std::size_t actor) {
    Store(&buffer)[4] = s.buffers[actor];
    s.memory[buffer[0].place] = buffer[0].value;
    std::rotate(buffer, buffer + 1, buffer + 4);
    buffer[3] = {places, 0};
  }
  static void drain_all(State& s) {
    for (std::size_t actor = 0; actor < std::size(s.buffers); ++actor)
      while (!may_swap(s, actor)) drain_one(s, actor);
  }
  void flush(const State& s, std::size_t actor) {
    if (may_swap(s, actor)) return;
    State next = s;
    drain_one(next, actor);
    visit(next);
  }

  // ---- A sender

  void step_sender(const State& s, std::size_t number) {
    const Sender& now = s.senders[number];
    if (now.dead || now.step == Sender::finished) return;
    if (set_.dies && number == 0) {
      State next = s;
      next.senders[number].dead = true;
      visit(next);
    }
    State next = s;
    if (go_on(next, number)) visit(next);
  }

  bool go_on(State& s, std::size_t number) const {
    Sender& me = s.senders[number];
    switch (me.step) {
    case Sender::begin:
      if (me.message == set_.messages) {
        if (!may_swap(s, number)) return false; // its leave is asked for behind what it has stored
        me.step = Sender::finished;
        s.rung = s.rung || !set_.stays;
      } else {
        const bool behind = me.published > s.memory[drained + number] && !set_.overtakes;
        me.step = behind ? Sender::publish : Sender::look;
        me.read = 0;
      }
      return true;
    case Sender::look:
      if (me.read >= s.memory[posted])
        me.step = Sender::publish;
      else if (s.memory[claims + me.read] == open)
        me.step = Sender::take;
      else
        ++me.read;
      return true;
    case Sender::take:
      if (!may_swap(s, number)) return false;
      if (s.memory[claims + me.read] == open) {
        s.memory[claims + me.read] = static_cast<Word>(by_sender + number);
        s.matched[me.read] = name(number, me.message);
        me.step = Sender::ask;
      } else {
        ++me.read;
        me.step = Sender::look;
      }
      return true;
    case Sender::ask:
      if (!has_room(s, number)) return false;
      store(s, number, asked + me.read, name(number, me.message++));
      me.step = Sender::begin;
      return true;
    case Sender::publish:
      if (!has_room(s, number)) return false;
      me.entries[me.published++] = name(number, me.message++);
      store(s, number, tails + number, me.published);
      me.step = Sender::bell;
      return true;
    case Sender::bell:
      if (!may_swap(s, number) && !set_.publishes_unfenced && !set_.barriers) return false;
      if (s.memory[asleep] != 0) s.rung = true;
      me.step = Sender::begin;
      return true;
    default: return false;
    }
  }
  static std::uint8_t name(std::size_t sender, std::uint8_t message) {
    return static_cast<std::uint8_t>(sender * most_messages + message + 1);
  }

  // ---- A thread of the receiver

  void step_thread(const State& s, std::size_t number) {
    State next = s;
    if (go_on(next, number, most_senders + number)) visit(next);
  }

  bool go_on(State& s, std::size_t number, std::size_t actor) const {
    Thread& me = s.threads[number];
    switch (me.step) {
    case Thread::acquire: return acquire(s, me, actor);
    case Thread::check: // what waits goes first, and such a read is published to nobody
      me.step = Thread::offer;
      if (s.stored[0] == 0) return true;
      give(s, me.post, take_stored(s));
      store(s, actor, claims + me.post, by_receiver);
      me.step = Thread::tell;
      return true;
    case Thread::offer:
      store(s, actor, claims + me.post, open);
      me.step = Thread::tell;
      return true;
    case Thread::tell:
      store(s, actor, posted, ++me.post);
      if (s.shares) s.known = me.post;
      me.told = true;
      me.step = set_.posts_unlocked ? Thread::acquire : Thread::load;
      return true;
    case Thread::load:
      if (s.must_know && !std::exchange(s.shares, true)) s.known = s.threads[0].post;
      me.tail = s.memory[tails + me.sender];
      me.read = 0;
      me.step = Thread::match;
      return true;
    case Thread::match: return match(s, me, actor);
    case Thread::swap: return swap(s, me, actor);
    case Thread::said:
      if (!has_room(s, actor)) return false;
      store(s, actor, drained + me.sender, s.heads[me.sender]);
      me.step = Thread::match;
      me.read = 0;
      return true;
    case Thread::release:
      if (!may_swap(s, actor)) return false;
      s.memory[lock] = unlocked;
      me.sender = 0;
      me.told = number == 1;
      me.step = number == 1 ? Thread::finished : me.post < reads ? first_step() : Thread::wait;
      return true;
    case Thread::wait: return wait(s, me, actor);
    case Thread::announced: return announced(s, me, actor);
    case Thread::sleeps:
      if (!s.rung || !has_room(s, actor)) return false;
      s.rung = false;
      store(s, actor, asleep, 0);
      me.step = Thread::wait;
      return true;
    default: return false;
    }
  }

  // Who posts has to have the lock; who only drains leaves that to who has it.
  bool acquire(State& s, Thread& me, std::size_t actor) const {
    if (!may_swap(s, actor)) return false;
    if (s.memory[lock] == unlocked) {
      s.memory[lock] = locked;
      me.step = me.told ? Thread::load : Thread::check;
      return true;
    }
    if (!me.told) return false;
    me.told = actor != most_senders;
    me.step = me.told ? Thread::finished : me.post < reads ? first_step() : Thread::wait;
    return true;
  }
  [[nodiscard]] Thread::Step first_step() const {
    return set_.posts_unlocked ? Thread::check : Thread::acquire;
  }

  bool match(State& s, Thread& me, std::size_t actor) const {
    if (s.heads[me.sender] >= me.tail) {
      me.step = me.sender + 1 < set_.senders ? Thread::load : Thread::release;
      if (me.step == Thread::load) ++me.sender;
      return true;
    }
    while (me.read < reads && seen_by(s, actor, claims + me.read) != open) ++me.read;
    if (me.read < reads) {
      me.step = Thread::swap;
      return true;
    }
    *std::find(std::begin(s.stored), std::end(s.stored), 0) =
        s.senders[me.sender].entries[s.heads[me.sender]++];
    me.step = Thread::said;
    return true;
  }

  bool swap(State& s, Thread& me, std::size_t actor) const {
    if (!may_swap(s, actor)) return false;
    me.step = Thread::match;
    if (s.memory[claims + me.read] != open) {
      ++me.read;
      return true;
    }
    s.memory[claims + me.read] = by_receiver;
    give(s, me.read, s.senders[me.sender].entries[s.heads[me.sender]++]);
    me.step = Thread::said;
    return true;
  }

  // Such a read had its message, and fails with it. (Were it free again, messages that found it taken would
  // be overtaken by later ones.)
  [[nodiscard]] std::size_t taken_by_dead(const State& s) const {
    std::size_t read = 0;
    if (!s.death_known || set_.leaves_claims) return reads;
    while (read < reads && (s.memory[claims + read] != by_sender || s.done[read])) ++read;
    return read;
  }

  // Having said that it sleeps it looks once more: whoever publishes from then on rings.
  bool announced(State& s, Thread& me, std::size_t actor) const {
    if (!may_swap(s, actor) && !set_.sleeps_unfenced) return false;
    if (set_.barriers && !set_.sleeps_unfenced) drain_all(s);
    bool something = false;
    for (std::size_t sender = 0; sender < set_.senders; ++sender)
      something |= s.memory[tails + sender] != s.heads[sender];
    something |= s.must_know && !s.shares && !set_.sleeps_unasked;
    me.step = something ? Thread::wait : Thread::sleeps;
    if (something) {
      if (!has_room(s, actor)) return false;
      store(s, actor, asleep, 0);
    }
    return true;
  }

  // What there is: a tail that moved, the death of a sender, the end of all that may come. Else it sleeps.
  bool wait(State& s, Thread& me, std::size_t actor) const {
    if (all_done(s)) {
      me.step = Thread::finished;
      return true;
    }
    if (!may_swap(s, actor) || s.memory[lock] != unlocked) return false;
    bool something = s.must_know && !s.shares;
    for (std::size_t sender = 0; sender < set_.senders; ++sender)
      something |= s.memory[tails + sender] != s.heads[sender];
    if (something) {
      s.memory[lock] = locked;
      me.step = Thread::load;
      return true;
    }
    if (const std::size_t lost = taken_by_dead(s); lost != reads) {
      give(s, lost, given_up);
      return true;
    }
    const Word* const first = std::find(s.memory + claims, s.memory + claims + reads, open);
    const auto free = static_cast<std::size_t>(first - s.memory) - claims;
    if (free == reads || s.stored[0] != 0 || !nothing_comes(s)) {
      store(s, actor, asleep, 1);
      me.step = Thread::announced;
      return true;
    }
    s.memory[claims + free] = by_receiver;
    give(s, free, given_up);
    return true;
  }
  bool nothing_comes(const State& s) const {
    const auto over = [&](const Sender& sender) {
      return (sender.step == Sender::finished && !set_.stays) || (sender.dead && s.death_known);
    };
    return std::all_of(s.senders, s.senders + set_.senders, over) && (!set_.remote || s.remote_taken);
  }
  static std::uint8_t take_stored(State& s) {
    const std::uint8_t first = s.stored[0];
    std::rotate(std::begin(s.stored), std::begin(s.stored) + 1, std::end(s.stored));
    std::end(s.stored)[-1] = 0;
    return first;
  }

  // ---- The kernel

  void step_kernel(const State& s) {
    for (std::size_t read = 0; read < reads; ++read)
      if (asks_for(s, read)) {
        State next = s;
        next.done[read] = true;
        next.rung = true;
        visit(next);
      }
    if (set_.remote && !s.must_know) {
      State next = s;
      next.must_know = next.asking = true;
      visit(next);
    }
    if (s.asking) {
      State next = s;
      next.asking = false;
      next.rung = s.rung || (s.memory[asleep] != 0 && !set_.asks_silently);
      visit(next);
    }
    const Word* const published = s.memory + claims + std::min(s.memory[posted], s.known);
    const Word* const free = std::find(s.memory + claims, published, open);
    if (set_.remote && !s.remote_taken && free != published) {
      State next = s;
      const auto read = static_cast<std::size_t>(free - s.memory) - claims;
      next.memory[claims + read] = by_kernel;
      give(next, read, remote_message);
      next.remote_taken = true;
      next.rung = true;
      visit(next);
    }
    // What the dead one has stored is seen by then, and what it has asked for is done.
    if (!s.senders[0].dead || s.death_known || !may_swap(s, 0)) return;
    for (std::size_t read = 0; read < reads; ++read)
      if (asks_for(s, read) && s.memory[claims + read] == by_sender) return;
    State next = s;
    next.death_known = true;
    next.rung = true;
    visit(next);
  }
  static bool asks_for(const State& s, std::size_t read) {
    return s.memory[claims + read] >= by_sender && s.memory[asked + read] == s.matched[read] && !s.done[read];
  }

  Neighbours set_;
};

} // namespace

Explored explore(const Neighbours& setting) {
  return Model(setting).run();
}

} // namespace parc::model
