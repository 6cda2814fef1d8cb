// SPDX-License-Identifier: BSD-3-Clause
// A program that loads libparc for itself alone, as Python's ctypes does: what stands before the C library
// has to find it all the same. Rank 1 is released from a read and gives the buffer to the system; rank 0
// writes when the file is there. Usage: loaded LIBRARY FILE
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <parc/parc.h>
#include <unistd.h>

namespace {

constexpr std::size_t bytes = 1 << 16;
void* library = nullptr;

template <class Function> Function* call(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}
#define CALL(NAME) call<decltype(NAME)>(#NAME)

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(3);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, "libparc cannot be loaded");
  check(dlsym(RTLD_DEFAULT, "parc_open") == nullptr, "libparc is there for all");
  parc_context* parc = nullptr;
  check(CALL(parc_open)(&parc) == PARC_OK, "parc_open failed");
  auto* const memory = static_cast<char*>(CALL(parc_alloc)(parc, bytes));
  check(memory != nullptr, "no memory");
  if (CALL(parc_rank)(parc) == 0) {
    while (access(argv[2], F_OK) != 0) usleep(1000);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = 'x';
    check(CALL(parc_write)(parc, 1, 0, memory, bytes) == PARC_OK, "parc_write failed");
  } else {
    check(CALL(parc_read)(parc, 0, 0, memory, bytes, nullptr) == PARC_OK, "parc_read failed");
    const int file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    check(file >= 0, "no file");
    check(write(file, memory, bytes) == static_cast<ssize_t>(bytes), "write gave up at a guarded page");
  }
  check(CALL(parc_close)(parc) == PARC_OK, "parc_close failed");
}
