// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on words of a peer's window: its kernel makes them, with the CPU's atomics, so that they
// are atomic to programs and kernels alike that share the memory. On memory that the program does not share
// it makes them itself when it is asked (CrossMemory::operate): until then what comes behind them waits, as
// behind a put.
//
// One is a get of nothing whose request brings its operands, and whose answer is what was there before. It
// takes effect in its pair's order (puts.cpp), once: no carrier brings a request again that was taken.
#include "protocol/atomic_operation.hpp"
#include "protocol/engine.hpp"

#include <cstring>
#include <utility>

namespace parc::protocol {

// What `atomic` is made on, and that it is held. None: there is no such word, or not for `peer`.
std::optional<Engine::Word> Engine::find_word(const Pair& peer, const Place& place) {
  Pieces memory;
  Word word;
  if (!find_place(peer, place, memory, word.hold)) return {};
  memory.each_piece(0, 1, [&](const Piece& piece) {
    word.at = piece.base;
    word.of = piece.of;
  });
  if (memory.count() == 1 && reinterpret_cast<std::uintptr_t>(word.at) % place.length == 0) return word;
  listener_.let_go(word.hold);
  return {};
}

// Of a program of this host, whose own message it is.
void Engine::make_atomic_here(Incoming& message, Pair& asker) {
  const Atomic atomic = atomic_of(message);
  const std::uint64_t offset = std::exchange(message.data, 0);
  const auto word = find_word(asker, {message.tag, offset, atomic.width, true});
  if (!word) return finish_atomic(message, {});
  if (word->of != nullptr) return ask_for_atomic(message, asker, *word, atomic);
  const std::uint64_t before = operate(word->at, atomic);
  listener_.let_go(word->hold);
  finish_atomic(message, before);
}

void Engine::answer_atomic(Link& link, Pair& asker, const Envelope& e, const Atomic& atomic) {
  const auto word = find_word(asker, {e.tag, e.data, atomic.width, true});
  if (word && word->of != nullptr) {
    Incoming& request = keep_request(link, asker, e);
    request.what = Incoming::What::atomic;
    return ask_for_atomic(request, asker, *word, atomic);
  }
  return_place(link, &asker);
  if (!word) return say_end(link, refused(e.message, Refused::place));
  const std::uint64_t before = operate(word->at, atomic);
  listener_.let_go(word->hold);
  say_end(link, {e.message, Kind::result, 0, before});
}

// The pair stays as long as that: its asker may go meanwhile.
void Engine::ask_for_atomic(Incoming& message, Pair& asker, const Word& word, const Atomic& atomic) {
  if (message.link != nullptr) message.enter(Incoming::Stage::behind); // what its program has to do before
  asking_.push_back(message);
  asker.atomic_asked = true;
  ++asker.messages;
  asked_atomics_.push_back(
      {.message = message.id, .pair = &asker, .name = ++steps_, .word = word, .atomic = atomic});
  look_at_atomics();
}

// What programs have made meanwhile is over, and others may be asked for.
void Engine::look_at_atomics() {
  for (std::size_t i = 0; i < asked_atomics_.size();) {
    const AskedAtomic& asked = asked_atomics_[i];
    std::uint64_t before = 0;
    const Operated how = asked.word.of->operate(asked.word.at, asked.atomic, asked.name, before);
    if (how == Operated::not_yet) {
      ++i;
      continue;
    }
    end_atomic(i, how == Operated::made ? std::optional(before) : std::nullopt);
    i = 0; // what was behind it may have asked for others
  }
}

// None: it was not made, or nobody knows.
void Engine::end_atomic(std::size_t index, std::optional<std::uint64_t> before) {
  const AskedAtomic asked = asked_atomics_[index];
  asked_atomics_.erase(asked_atomics_.begin() + static_cast<std::ptrdiff_t>(index));
  Pair& pair = *asked.pair;
  pair.atomic_asked = false;
  if (Incoming* const message = incoming_.find(asked.message)) finish_atomic(*message, before);
  listener_.let_go(asked.word.hold);
  put_is_over(pair);
  if (--pair.messages == 0) note_through(pair);
}

void Engine::finish_atomic(Incoming& message, std::optional<std::uint64_t> before) {
  const Endpoint& target =
      message.link != nullptr ? *message.pair->at : *find_endpoint(message.pair->peer->address.number);
  if (message.link != nullptr) {
    const Refused why = !target.departed()              ? Refused::place
                        : target.how == Departure::left ? Refused::left
                                                        : Refused::killed;
    say_end(*message.link,
            before ? Link::End{message.message, Kind::result, 0, *before} : refused(message.message, why));
    return drop_incoming(message);
  }
  if (before) {
    message.data = *before;
    return check_read_done(message);
  }
  fail_read(*message.read, target.departed() ? Fault::peer : Fault::place);
  drop_incoming(message);
}

// Its program makes none any more.
void Engine::give_up_atomics(const Endpoint& target) {
  for (std::size_t i = 0; i < asked_atomics_.size();) {
    const AskedAtomic& asked = asked_atomics_[i];
    if (asked.pair->at != &target) {
      ++i;
      continue;
    }
    asked.word.of->forget(asked.name);
    end_atomic(i, {});
    i = 0;
  }
}

Refusal Engine::take_result(Link& link, const Descriptor& d) {
  Incoming* const message = find_get(link, d.message);
  if (message == nullptr) return Refusal::none;
  if (message->what != Incoming::What::atomic) return Refusal::request;
  message->data = d.extra;
  if (message->matched())
    check_read_done(*message);
  else
    drop_incoming(*message);
  return Refusal::none;
}

Atomic Engine::atomic_of(const Incoming& message) {
  Atomic atomic;
  std::memcpy(&atomic, message.rode.get(), sizeof atomic);
  return atomic;
}

} // namespace parc::protocol
