// SPDX-License-Identifier: BSD-3-Clause
// echo serve FILE: answers every message of strangers with its bytes, whatever becomes of them, until one of
// them tells it to stop. echo ask FILE COUNT SEED: sends it COUNT messages (0: for ever) of all lengths, some
// at once, and looks at the answers; says its process's number after the first ones. echo stop FILE.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t longest = 200'000;
constexpr int tag_stop = 1'000'000, at_once = 8;

void write_address(parc_context* parc, const std::string& path) {
  char text[PARC_ADDRESS_BYTES];
  rank::expect_code(parc_address_of(parc, 0, text, sizeof text), PARC_OK, "parc_address_of");
  std::ofstream(path + ".new") << text << '\n';
  rank::expect(std::rename((path + ".new").c_str(), path.c_str()) == 0, "cannot write the address");
}

int server_in(parc_context* parc, const std::string& path) {
  std::string address;
  std::ifstream(path) >> address;
  const int server = parc_add_peer(parc, address.c_str());
  rank::expect(server >= parc_size(parc), "parc_add_peer gave %d", server);
  return server;
}

// Who asks may be killed: then what is done for it fails, and nothing else.
void serve(parc_context* parc) {
  std::array<unsigned char*, at_once> memory{};
  std::array<parc_op, at_once> reads{};
  const auto post = [&](std::size_t i) {
    reads[i] = parc_initread(parc, PARC_ANY_SOURCE, PARC_ANY_TAG, memory[i], longest);
    rank::expect(reads[i] > 0, "initread");
  };
  for (std::size_t i = 0; i < at_once; ++i) {
    memory[i] = static_cast<unsigned char*>(i % 2 != 0 ? std::malloc(longest) : parc_alloc(parc, longest));
    rank::expect(memory[i] != nullptr, "no memory");
    post(i);
  }
  for (;;) {
    int index = -1;
    parc_status status;
    const int code = parc_waitany(parc, at_once, reads.data(), &index, &status);
    const auto i = static_cast<std::size_t>(index);
    rank::expect(code == PARC_OK || code == PARC_EPEER, "a read gave %d", code);
    if (code == PARC_OK && status.tag == tag_stop) return;
    if (code == PARC_OK) {
      rank::expect(rank::filled(memory[i], status.length, static_cast<std::uint64_t>(status.tag)),
                   "wrong bytes of %d, tag %d", status.source, status.tag);
      const int answered = parc_write(parc, status.source, status.tag, memory[i], status.length);
      rank::expect(answered == PARC_OK || answered == PARC_EPEER, "an answer gave %d", answered);
    }
    post(i);
  }
}

void ask(parc_context* parc, int server, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> out(longest);
  std::array<unsigned char*, at_once> in{};
  std::array<std::size_t, at_once> lengths{};
  std::array<parc_op, 2 * at_once> under_way{};
  for (auto& memory : in) memory = static_cast<unsigned char*>(parc_alloc(parc, longest));
  for (int sent = 0; count == 0 || sent < count; sent += at_once) {
    for (std::size_t i = 0; i < at_once; ++i) {
      const int tag = sent + static_cast<int>(i);
      lengths[i] = random() % 3 == 0 ? random() % longest : random() % 2000;
      rank::fill(out.data(), lengths[i], static_cast<std::uint64_t>(tag));
      under_way[2 * i] = parc_initread(parc, server, tag, in[i], longest);
      under_way[2 * i + 1] = PARC_OP_NULL;
      rank::expect_code(parc_write(parc, server, tag, out.data(), lengths[i]), PARC_OK, "a question");
    }
    rank::expect_code(parc_waitall(parc, 2 * at_once, under_way.data(), nullptr), PARC_OK, "answers");
    for (std::size_t i = 0; i < at_once; ++i)
      rank::expect(rank::filled(in[i], lengths[i], static_cast<std::uint64_t>(sent) + i), "a wrong answer");
    if (sent == 0) {
      std::printf("%d\n", getpid());
      std::fflush(stdout);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  rank::expect(argc > 2, "usage: echo serve|ask|stop FILE");
  const std::string what = argv[1], path = argv[2];
  parc_context* const parc = rank::open();
  if (what == "serve") {
    write_address(parc, path);
    serve(parc);
  } else if (what == "stop") {
    rank::expect_code(parc_write(parc, server_in(parc, path), tag_stop, nullptr, 0), PARC_OK, "stop");
  } else {
    ask(parc, server_in(parc, path), std::atoi(argv[3]),
        static_cast<unsigned>(std::atoi(argv[4]) + rank::number));
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
