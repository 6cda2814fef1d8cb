// SPDX-License-Identifier: BSD-3-Clause
// Calls with arguments that are wrong: says on stderr what the library says of it, and ends with that code,
// negated.
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <parc/parc.h>
#include <string>

namespace {

using Mistake = std::function<int(parc_context*)>;

char bytes[64];
parc_op operations[2] = {PARC_OP_NULL, PARC_OP_NULL};

parc_op wait(parc_context* parc, parc_op operation) {
  return operation < 0 ? operation : parc_wait(parc, operation, nullptr);
}

int say(int code) {
  if (code >= 0) return 0;
  std::fprintf(stderr, "mistaken: %s\n", parc_error_detail());
  return -code;
}

const std::map<std::string, Mistake>& mistakes() {
  static const std::map<std::string, Mistake> all{
      {"open", [](parc_context*) { return 0; }},
      {"open-nowhere", [](parc_context*) { return parc_open(nullptr); }},
      {"open-twice",
       [](parc_context*) {
         parc_context* second = nullptr;
         return parc_open(&second);
       }},
      {"rank-beyond",
       [](parc_context* p) { return static_cast<int>(wait(p, parc_initread(p, 7, 0, bytes, 8))); }},
      {"rank-below", [](parc_context* p) { return parc_write(p, -7, 0, bytes, 8); }},
      {"tag-below", [](parc_context* p) { return parc_write(p, 0, -7, bytes, 8); }},
      {"no-buffer", [](parc_context* p) { return parc_read(p, 0, 0, nullptr, 8, nullptr); }},
      {"negative-length",
       [](parc_context* p) { return parc_write(p, 0, 0, bytes, static_cast<std::size_t>(-1)); }},
      {"negative-count", [](parc_context* p) { return parc_waitall(p, -1, operations, nullptr); }},
      {"no-operations", [](parc_context* p) { return parc_waitall(p, 2, nullptr, nullptr); }},
      {"no-operation", [](parc_context* p) { return parc_wait(p, 12345, nullptr); }},
      {"no-level", [](parc_context* p) { return parc_set_release(p, 99); }},
      {"no-order", [](parc_context* p) { return parc_set_order(p, 99); }},
      {"no-train", [](parc_context* p) { return parc_set_train(p, -1); }},
      {"no-counts", [](parc_context* p) { return parc_get_release_counts(p, nullptr); }},
      {"no-room", [](parc_context* p) { return parc_completions(p, nullptr, -1, 0); }},
      {"address-of-nobody", [](parc_context* p) { return parc_address_of(p, 7, bytes, sizeof bytes); }},
      {"address-in-no-room", [](parc_context* p) { return parc_address_of(p, 0, bytes, 3); }},
      {"no-address", [](parc_context* p) { return parc_add_peer(p, nullptr); }},
      {"bad-address", [](parc_context* p) { return parc_add_peer(p, "zebra"); }},
      {"host-of-nobody", [](parc_context* p) { return parc_host(p, 7) == nullptr ? PARC_EINVAL : PARC_OK; }},
      {"close-twice",
       [](parc_context* p) {
         const int first = parc_close(p);
         return first != PARC_OK ? 0 : parc_close(p);
       }},
      {"read-after-close",
       [](parc_context* p) {
         (void)parc_close(p);
         return static_cast<int>(parc_initread(p, 0, 0, bytes, 8));
       }},
      {"alloc-everything",
       [](parc_context* p) {
         return parc_alloc(p, static_cast<std::size_t>(-1)) == nullptr ? PARC_ENOMEM : PARC_OK;
       }},
      {"nobody", [](parc_context*) { return parc_rank(nullptr); }},
      {"start", [](parc_context*) { return parc_start_kernel(); }},
  };
  return all;
}

} // namespace

int main(int argc, char** argv) {
  const auto mistake = mistakes().find(argc > 1 ? argv[1] : "");
  if (mistake == mistakes().end()) return 99;
  parc_context* parc = nullptr;
  if (std::strcmp(argv[1], "start") != 0 && std::strcmp(argv[1], "open-nowhere") != 0)
    if (const int opened = parc_open(&parc); opened != PARC_OK) return say(opened);
  return say(mistake->second(parc));
}
