// SPDX-License-Identifier: BSD-3-Clause
// strangers serve|ask FILE ASKERS [undialed]: two jobs that get to know each other by addresses in a file.
// Every rank of the job that asks writes to every rank of the one that serves, which answers whoever wrote;
// then those that asked leave, and what the server does for one of them fails. Who was not dialed, but
// relayed or tunnelled to, has an address that says who it is and not where.
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t bytes = 300'000;
constexpr int tag_ask = 1, tag_answer = 2, tag_bye = 3, tag_never = 4;

std::string address_of(parc_context* parc, int peer) {
  char text[PARC_ADDRESS_BYTES];
  rank::expect_code(parc_address_of(parc, peer, text, sizeof text), PARC_OK, "parc_address_of");
  char small[4];
  rank::expect_code(parc_address_of(parc, peer, small, sizeof small), PARC_ETRUNCATE,
                    "an address without room");
  return text;
}

// Letters of an address (daemon/link/endpoint_address.cpp).
constexpr std::size_t in_identity = 16, in_number = 24, who = 10, who_letters = 16;
std::string changed(std::string address, std::size_t at) {
  address[at] = address[at] == 'B' ? 'C' : 'B';
  return address;
}

void serve(parc_context* parc, const char* path, int askers) {
  const int size = parc_size(parc);
  if (rank::number == 0) { // any rank knows the addresses of all
    const std::string fresh = std::string(path) + ".new";
    std::ofstream file(fresh);
    for (int peer = 0; peer < size; ++peer) file << address_of(parc, peer) << '\n';
    file.close();
    rank::expect(std::rename(fresh.c_str(), path) == 0, "cannot write the addresses");
  }
  std::vector<unsigned char> memory(bytes);
  int last = -1;
  for (int i = 0; i < askers; ++i) {
    parc_status status;
    rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, tag_ask, memory.data(), bytes, &status), PARC_OK,
                      "a question");
    rank::expect(status.source >= size && status.length == bytes, "it is from %d", status.source);
    rank::expect(rank::filled(memory.data(), bytes, 7), "wrong bytes");
    last = status.source;
    const int known = parc_add_peer(parc, address_of(parc, last).c_str());
    rank::expect(known == last, "the stranger has two numbers, %d and %d", last, known);
    rank::fill(memory.data(), bytes, 8);
    rank::expect_code(parc_write(parc, last, tag_answer, memory.data(), bytes), PARC_OK, "an answer");
  }
  for (int i = 0; i < askers; ++i)
    rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, tag_bye, nullptr, 0, nullptr), PARC_OK, "a last word");
  rank::expect_code(parc_read(parc, last, tag_never, nullptr, 0, nullptr), PARC_EPEER,
                    "a read of who has left");
}

void ask(parc_context* parc, const char* path, bool undialed) {
  std::ifstream file;
  for (int tries = 0; !file.is_open() && tries < 3000; ++tries) {
    file.open(path);
    if (!file.is_open()) usleep(10'000);
  }
  std::vector<int> servers;
  for (std::string address; std::getline(file, address);) {
    const int peer = parc_add_peer(parc, address.c_str());
    rank::expect(peer >= parc_size(parc), "parc_add_peer gave %d", peer);
    rank::expect(parc_add_peer(parc, address.c_str()) == peer, "another number for the same address");
    const std::string known = address_of(parc, peer);
    rank::expect(undialed ? known.substr(who, who_letters) == address.substr(who, who_letters)
                          : known == address,
                 "the address has become %s", known.c_str());
    servers.push_back(peer);
  }
  rank::expect(parc_add_peer(parc, address_of(parc, rank::number).c_str()) == rank::number,
               "no number for itself");
  std::vector<unsigned char> out(bytes), in(bytes);
  rank::fill(out.data(), bytes, 7);
  for (const int server : servers) {
    const parc_op answer = parc_initread(parc, server, tag_answer, in.data(), bytes);
    rank::expect_code(parc_write(parc, server, tag_ask, out.data(), bytes), PARC_OK, "a question");
    rank::expect_code(parc_wait(parc, answer, nullptr), PARC_OK, "an answer");
    rank::expect(rank::filled(in.data(), bytes, 8), "wrong bytes");
  }
  const std::string ours = address_of(parc, rank::number), first = address_of(parc, servers[0]);
  for (const std::string& bad : {std::string(), std::string("nothing"), ours + "A", ours.substr(1)})
    rank::expect_code(parc_add_peer(parc, bad.c_str()), PARC_EINVAL, "an address that is none");
  const std::string gone = changed(ours, in_identity);
  rank::expect_code(parc_add_peer(parc, gone.c_str()), PARC_EPEER, "the address of a kernel that is no more");
  // A number that nobody has: on a host with a link, that link goes on.
  const std::string nobody = changed(first, in_number);
  const int made_up = parc_add_peer(parc, nobody.c_str());
  if (made_up != PARC_EPEER) { // here it is known at once
    rank::expect(made_up > 0, "an address that was made up gave %d", made_up);
    rank::expect_code(parc_read(parc, made_up, tag_never, nullptr, 0, nullptr), PARC_EPEER,
                      "a read of nobody");
  }
  for (const int server : servers)
    rank::expect_code(parc_write(parc, server, tag_bye, nullptr, 0), PARC_OK, "a last word");
}

} // namespace

int main(int argc, char** argv) {
  parc_context* parc = rank::open();
  rank::expect(argc == 4 || argc == 5, "usage: strangers serve|ask FILE ASKERS [undialed]");
  if (std::strcmp(argv[1], "serve") == 0)
    serve(parc, argv[2], std::atoi(argv[3]));
  else
    ask(parc, argv[2], argc == 5);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
