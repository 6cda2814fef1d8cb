// SPDX-License-Identifier: BSD-3-Clause
// strange_windows serve FILE: exposes two windows to anybody, one of parc_alloc memory and one of malloc's,
// and looks again and again for what nobody has put there, until it is told to stop. strange_windows ask FILE
// WORD: gets and puts at random, adds to the word of that number, and looks at what it gets, until there is
// FILE.over; says its process's number when the first ones are over. strange_windows lose FILE WORD: does so
// until who serves has gone. strange_windows stop FILE.
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::array<std::uint64_t, 2> windows{7, 8};
// A window is units; each begins with what may be put, of one of the versions, and ends with what nobody
// puts: but for the words, at the end of all.
constexpr std::size_t unit = 1 << 18, units = 4, puttable = 3 * unit / 4, bytes = units * unit;
constexpr std::size_t words = 256, words_at = bytes - words * sizeof(std::uint64_t);
constexpr std::size_t versions = 4, beside = 4096; // not exposed, before and behind
constexpr unsigned char untouched = 0xa5;
constexpr int tag_stop = 1;

using Text = std::vector<unsigned char>; // as long as a window
std::array<Text, versions> make_texts() {
  std::array<Text, versions> texts;
  for (std::size_t version = 0; version < versions; ++version) {
    texts[version].resize(bytes);
    rank::fill(texts[version].data(), bytes, version);
  }
  return texts;
}

// Bytes from `offset` on of a window, all of which may be put, or have not been yet.
void expect_of_texts(const unsigned char* memory, std::size_t offset, std::size_t length,
                     const std::array<Text, versions>& texts) {
  for (std::size_t i = 0; i < length; ++i) {
    const unsigned char byte = memory[i];
    bool known = byte == 0;
    for (const Text& text : texts) known |= byte == text[offset + i];
    rank::expect(known, "byte %zu of a window is %u, which nobody has put", offset + i, byte);
  }
}

class Exposed {
public:
  Exposed(parc_context* parc, std::uint64_t window, unsigned char* memory)
      : window_(window), memory_(memory) {
    rank::expect(memory != nullptr, "there is no memory");
    std::memset(memory, untouched, beside + bytes + beside);
    std::memset(memory + beside, 0, bytes);
    rank::expect_code(
        parc_expose(parc, window, memory + beside, bytes, PARC_MAY_GET | PARC_MAY_PUT | PARC_MAY_ANYBODY),
        PARC_OK, "parc_expose");
  }
  void look(const std::array<Text, versions>& texts) const {
    expect(memory_, beside, untouched);
    expect(memory_ + beside + bytes, beside, untouched);
    for (std::size_t at = 0; at < bytes; at += unit) {
      expect_of_texts(memory_ + beside + at, at, puttable, texts);
      const std::size_t rest = at + unit == bytes ? words_at - at - puttable : unit - puttable;
      expect(memory_ + beside + at + puttable, rest, 0);
    }
  }
  [[nodiscard]] std::uint64_t window() const { return window_; }

private:
  void expect(const unsigned char* from, std::size_t length, unsigned char byte) const {
    for (std::size_t i = 0; i < length; ++i)
      rank::expect(from[i] == byte, "byte %td of window %d is %u, where nobody puts",
                   from + i - memory_ - beside, static_cast<int>(window_), from[i]);
  }
  std::uint64_t window_;
  unsigned char* memory_;
};

void serve(parc_context* parc, const std::string& path) {
  const auto texts = make_texts();
  constexpr std::size_t all = beside + bytes + beside;
  const std::unique_ptr<unsigned char[]> own(new unsigned char[all]);
  auto* const shared = static_cast<unsigned char*>(parc_alloc(parc, all));
  const std::array<Exposed, 2> exposed{Exposed(parc, windows[0], shared),
                                       Exposed(parc, windows[1], own.get())};
  const parc_op stop = parc_initread(parc, PARC_ANY_SOURCE, tag_stop, nullptr, 0);
  char text[PARC_ADDRESS_BYTES];
  rank::expect_code(parc_address_of(parc, 0, text, sizeof text), PARC_OK, "parc_address_of");
  std::ofstream(path + ".new") << text << '\n';
  rank::expect(std::rename((path + ".new").c_str(), path.c_str()) == 0, "cannot write the address");
  while (parc_done(parc, stop) == 0)
    for (const Exposed& each : exposed) each.look(texts);
  rank::expect_code(parc_wait(parc, stop, nullptr), PARC_OK, "waiting for the end");
  for (const Exposed& each : exposed) { // nobody is in there any more
    rank::expect_code(parc_unexpose(parc, each.window()), PARC_OK, "parc_unexpose");
    each.look(texts);
  }
  parc_free(parc, shared);
}

int server_in(parc_context* parc, const std::string& path) {
  std::string address;
  std::ifstream(path) >> address;
  const int server = parc_add_peer(parc, address.c_str());
  rank::expect(server >= parc_size(parc), "parc_add_peer gave %d", server);
  return server;
}

class Asker {
public:
  Asker(parc_context* parc, int server, unsigned word)
      : parc_(parc), server_(server), word_(word), random_(word + static_cast<unsigned>(getpid())),
        shared_(static_cast<unsigned char*>(parc_alloc(parc, bytes))) {
    rank::expect(shared_ != nullptr, "there is no memory");
    std::memcpy(shared_, texts_[0].data(), bytes);
  }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  ~Asker() { parc_free(parc_, shared_); }

  // Many at once, of all kinds. Whether all were made: who serves may have gone.
  bool ask() {
    bool made = true;
    for (Operation& each : operations_) begin(each);
    for (Operation& each : operations_) {
      const int code =
          each.number > 0 ? parc_wait(parc_, each.number, nullptr) : static_cast<int>(each.number);
      rank::expect(code == PARC_OK || code == PARC_EPEER, "an operation gave %d", code);
      rank::expect(code == PARC_OK || std::strstr(parc_error_detail(), " of window ") != nullptr,
                   "the detail names no window");
      made &= code == PARC_OK;
      if (code == PARC_OK) look(each);
    }
    const int code = parc_quiet(parc_);
    rank::expect(code == PARC_OK || code == PARC_EPEER, "parc_quiet gave %d", code);
    return made && code == PARC_OK;
  }

private:
  enum class Kind : unsigned { get, put, put_rows, add };
  struct Operation {
    Kind kind = Kind::get;
    parc_op number = 0;
    std::size_t window = 0, offset = 0, length = 0;
    std::uint64_t before = 0;
    Text got{};
  };

  void begin(Operation& operation) {
    operation.kind = static_cast<Kind>(random_() % 4);
    operation.window = random_() % windows.size();
    operation.offset = random_() % puttable;
    operation.length = std::min<std::size_t>(random_() % 2 == 0 ? 1 + random_() % 2000 : puttable,
                                             puttable - operation.offset);
    parc_place place{server_, windows[operation.window], operation.offset};
    const std::size_t version = random_() % versions;
    const unsigned char* const text = version == 0 ? shared_ : texts_[version].data();
    const unsigned flags = random_() % 2 == 0 ? PARC_SYNCHRONOUS : 0u;
    switch (operation.kind) {
    case Kind::get:
      operation.got.resize(operation.length);
      operation.number = parc_initget(parc_, &place, operation.got.data(), operation.length, 0);
      break;
    case Kind::put:
      operation.number = parc_initput(parc_, &place, text + place.offset, operation.length, flags);
      break;
    case Kind::put_rows: { // one into each unit
      std::array<iovec, units> rows{};
      for (std::size_t i = 0; i < units; ++i)
        rows[i] = {const_cast<unsigned char*>(text) + place.offset + i * unit, operation.length};
      operation.number = parc_initput_rows(parc_, &place, operation.length, unit, rows.data(), units, flags);
      break;
    }
    case Kind::add:
      place.offset = words_at + word_ * sizeof(std::uint64_t);
      operation.number = parc_initatomic(parc_, &place, PARC_ADD, 8, 1, 0, &operation.before, 0);
      break;
    }
  }

  // Nobody else adds to that word.
  void look(const Operation& operation) {
    if (operation.kind == Kind::get)
      expect_of_texts(operation.got.data(), operation.offset, operation.length, texts_);
    if (operation.kind != Kind::add) return;
    std::uint64_t& next = next_[operation.window];
    rank::expect(operation.before == next, "an addition has found %llu, not %llu",
                 static_cast<unsigned long long>(operation.before), static_cast<unsigned long long>(next));
    ++next;
  }

  parc_context* parc_;
  int server_;
  unsigned word_;
  std::minstd_rand random_;
  const std::array<Text, versions> texts_ = make_texts();
  unsigned char* shared_; // the first version
  std::array<Operation, 12> operations_;
  std::array<std::uint64_t, windows.size()> next_{};
};

} // namespace

int main(int argc, char** argv) {
  rank::expect(argc > 2, "usage: strange_windows serve|ask|lose|stop FILE [WORD]");
  const std::string what = argv[1], path = argv[2];
  parc_context* const parc = rank::open();
  if (what == "serve") {
    serve(parc, path);
  } else if (what == "stop") {
    rank::expect_code(parc_write(parc, server_in(parc, path), tag_stop, nullptr, 0), PARC_OK, "stop");
  } else {
    const int server = server_in(parc, path);
    const unsigned word = static_cast<unsigned>(std::atoi(argv[3]) + rank::number);
    rank::expect(word < words, "there is no word %u", word);
    Asker asker(parc, server, word);
    const bool there = asker.ask();
    rank::expect(there, "who serves has gone");
    std::printf("%d\n", getpid());
    std::fflush(stdout);
    if (what == "ask") {
      while (access((path + ".over").c_str(), F_OK) != 0) rank::expect(asker.ask(), "who serves has gone");
    } else {
      while (asker.ask()) continue;
      rank::expect(!asker.ask(), "who had gone is there");
    }
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
