// SPDX-License-Identifier: BSD-3-Clause
// Whatever another kernel or a tool says in control messages is refused with a sentence, or is a message that
// comes back when it is said again: no crash, and no more memory than its length allows.
#include "control/frames.hpp"
#include "control/words/door.hpp"
#include "control/words/host_words.hpp"
#include "tests/fuzz/control_target.hpp"
#include "tests/support/control_messages.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::size_t in_use = 0, most_in_use = 0; // bytes of the heap

void* counted(void* memory) {
  if (memory == nullptr) std::abort();
  in_use += malloc_usable_size(memory);
  most_in_use = std::max(most_in_use, in_use);
  return memory;
}

void release(void* memory) {
  in_use -= memory == nullptr ? 0 : malloc_usable_size(memory);
  std::free(memory);
}

} // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(std::max<std::size_t>(size, 1)));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size); // as libFuzzer asks for what it gives back by the others
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}

namespace parc::fuzz {
namespace {

using namespace control;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "control_fuzz: %s\n", what);
  std::abort();
}

// What may be taken while `length` bytes are read, and what is kept of them. An array in an array takes 16
// bytes for each of its own in the library, and twice as much while the outer one grows.
class Bound {
public:
  explicit Bound(std::size_t length) : most_(in_use + (std::size_t{64} << 10) + 128 * length) {
    most_in_use = in_use;
  }
  void check() const { require(most_in_use <= most_, "reading took more memory than the length allows"); }

private:
  std::size_t most_;
};

// A sentence for a log and a terminal: one short line, with nothing that a terminal would obey.
void check_sentence(const Error& why) {
  require(!why.text.empty() && why.text.size() < 500, "a refusal is no sentence");
  require(std::ranges::all_of(why.text, [](char each) { return each >= ' ' && each <= '~'; }),
          "a refusal says what is no text");
}

template <class Message> void check_program(Message message) {
  const nlohmann::json said = to_json(message);
  const auto program = decode_program(message.program, message.payload);
  if (!program) return check_sentence(program.error());
  require(encode_program(program.value(), message.program) == message.payload && to_json(message) == said,
          "a program does not come back");
}

template <class Message> void check_message(const Frame& frame, std::size_t length) {
  const Bound bound(length);
  const auto read = from_json<Message>(frame.message, frame.payload);
  bound.check();
  if (!read) return check_sentence(read.error());
  const Message& message = read.value();
  const nlohmann::json said = to_json(message);
  if constexpr (HasPayload<Message>) require(message.payload == frame.payload, "a payload changes");
  const auto text = read_posted(encode_posted(said, frame.payload));
  require(text && text.value().message == said && text.value().payload == frame.payload,
          "what is said is not what is heard");
  const auto again = from_json<Message>(text.value().message, text.value().payload);
  require(again && to_json(again.value()) == said, "a message does not come back");
  if constexpr (requires { message.program; }) check_program(message);
}

void hear(const Frame& frame, std::size_t length) {
  const std::string kind = kind_of(frame.message);
  const auto each = [&]<class Message> {
    if (name(Message::kind) == kind) check_message<Message>(frame, length);
  };
  Kernels::each(each);
  Tools::each(each);
}

void hear_posted(std::string_view bytes) {
  const Bound bound(bytes.size());
  const auto posted = read_posted(bytes);
  bound.check();
  if (!posted) return check_sentence(posted.error());
  hear(posted.value(), bytes.size());
}

void hear_frames(std::string_view bytes, std::size_t piece) {
  FrameReader reader;
  const std::size_t length = bytes.size();
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      const Bound bound(length);
      const auto frame = reader.next();
      bound.check();
      if (!frame) return check_sentence(frame.error());
      if (!frame.value()) break;
      hear(*frame.value(), length);
    }
  }
}

// Changes of its bytes leave it an object more often than those of a text do.
void hear_object(std::string_view bytes, std::size_t payload) {
  constexpr std::size_t longest = 2048; // the library reads what is nested by recursion
  if (bytes.size() > longest || bytes.size() < payload) return;
  nlohmann::json object;
  try {
    object = nlohmann::json::from_cbor(bytes.substr(payload), false);
  } catch (const nlohmann::json::exception&) {
    return;
  }
  hear_posted(encode_posted(object, bytes.substr(0, payload)));
}

void hear_words(std::string_view bytes, std::size_t ranks) {
  if (const auto wish = door::wish_in(bytes); wish && bytes.size() <= door::most_wanted) {
    const std::string said = door::joiner_says(*wish);
    require(door::length_of_wish(said) == bytes.size() && said.substr(door::begin_of_wish) == bytes,
            "a wish does not come back");
  }
  if (const auto refusal = door::refusal_in(bytes)) {
    const std::string said = door::refusal_says(refusal->code, refusal->text);
    const auto again = door::refusal_in(std::string_view(said).substr(1));
    require(again && again->code == refusal->code && again->text == refusal->text,
            "a refusal does not come back");
  }
  const auto hosts = hosts_in(bytes, ranks);
  if (!hosts) return;
  require(hosts->size() == ranks, "there are other hosts than ranks");
  std::vector<std::uint32_t> places;
  for (std::size_t i = 0; i < ranks; ++i)
    places.push_back(static_cast<std::uint32_t>(std::ranges::find(*hosts, (*hosts)[i]) - hosts->begin()));
  require(hosts_in(host_words(places, *hosts), ranks) == hosts, "hosts do not come back");
}

} // namespace
} // namespace parc::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace parc::fuzz;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  switch (static_cast<Form>(data[0] % forms)) {
  case Form::posted: hear_posted(bytes); break;
  case Form::frames: hear_frames(bytes, std::size_t{data[1]} + 1); break;
  case Form::object: hear_object(bytes, data[1]); break;
  case Form::words: hear_words(bytes, std::size_t{data[1]} + 1); break;
  }
  return 0;
}
