// SPDX-License-Identifier: BSD-3-Clause
// Sends that there is no memory for, more than are started, until a file appears in a directory: then there
// is memory, and all that was put off comes.
//
//   later DIRECTORY
#include "harness.h"

#include <sys/resource.h>

enum { sends = 64, room = 4 << 20, left = 24 << 20 };

static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  expect(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
  return pages * (rlim_t)getpagesize();
}

int main(int count, char** words) {
  expect(count == 2);
  char name[4096];
  snprintf(name, sizeof name, "%s/memory", words[1]);
  char* const buffers = malloc((size_t)sends * room);
  expect(buffers != NULL);
  open_domain(FI_TAGGED | FI_DIRECTED_RECV);
  open_endpoint(FI_WAIT_NONE);
  meet(NULL, 0);
  struct rlimit whole, little;
  expect(getrlimit(RLIMIT_AS, &whole) == 0);
  little = whole;
  little.rlim_cur = address_space() + left;
  expect(setrlimit(RLIMIT_AS, &little) == 0);
  for (int i = 0; i < sends; ++i)
    check(fi_tsend(endpoint, buffers + (size_t)i * room, room, NULL, peer, (uint64_t)i, NULL));
  struct fi_cq_tagged_entry entry;
  int over = 0;
  while (access(name, F_OK) != 0) over += fi_cq_read(queue, &entry, 1) == 1;
  expect(over < sends);
  expect(setrlimit(RLIMIT_AS, &whole) == 0);
  for (int i = 0; i < sends; ++i) check(fi_trecv(endpoint, NULL, 0, NULL, peer, (uint64_t)i, 0, NULL));
  int failed = 0; // receives without room for their messages
  while (over < sends || failed < sends) {
    struct fi_cq_err_entry error = {0};
    if (fi_cq_read(queue, &entry, 1) == 1) ++over;
    if (fi_cq_readerr(queue, &error, 0) != 1) continue;
    expect(error.err == FI_ETRUNC);
    ++failed;
  }
  close_all();
  free(buffers);
  printf("ok\n");
  return 0;
}
