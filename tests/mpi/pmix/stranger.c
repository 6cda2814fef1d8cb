// SPDX-License-Identifier: BSD-3-Clause
// A client of the PMIx server of its host, as who it is or, by the word "another", as another user who says
// that it is the same. Prints whether it gets in.
#define _GNU_SOURCE
#include <pmix.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uid_t user;
static gid_t group;

// What libpmix asks, and tells its server.
uid_t getuid(void) {
  return user;
}
uid_t geteuid(void) {
  return user;
}
gid_t getgid(void) {
  return group;
}
gid_t getegid(void) {
  return group;
}

int main(int count, char** words) {
  const int nobody = 65534;
  user = (uid_t)syscall(SYS_geteuid);
  group = (gid_t)syscall(SYS_getegid);
  if (count > 1 && strcmp(words[1], "another") == 0 &&
      (syscall(SYS_setresgid, nobody, nobody, nobody) != 0 ||
       syscall(SYS_setresuid, nobody, nobody, nobody) != 0)) {
    perror("cannot be another user");
    return 1;
  }
  pmix_proc_t self;
  const int in = PMIx_Init(&self, NULL, 0) == PMIX_SUCCESS;
  printf("%s\n", in ? "in" : "out");
  if (in) PMIx_Finalize(NULL, 0);
  return 0;
}
