// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's name is what fi_av_straddr makes of its address: by that it is found again.
#include "harness.h"

static void send_and_receive(fi_addr_t to) {
  char out = 'x', in = 0;
  check(fi_recv(endpoint, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
  check(fi_send(endpoint, &out, 1, NULL, to, NULL));
  (void)next_completion();
  (void)next_completion();
  expect(in == 'x');
}

int main(void) {
  char address[64], name[100], there[64];
  size_t length = sizeof address, room = sizeof name;
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  struct fi_info* found = NULL;
  struct fi_info* hints = hints_for(FI_MSG);
  open_domain(FI_MSG);
  open_endpoint(FI_WAIT_NONE);
  check(fi_getname(&endpoint->fid, address, &length));
  expect(length == sizeof address);
  expect(strlen(fi_av_straddr(vector, address, name, &room)) + 1 == room);

  check(fi_av_insertsvc(vector, name, NULL, &number, 0, NULL));
  length = sizeof there;
  check(fi_av_lookup(vector, number, there, &length));
  expect(length == sizeof there && memcmp(there, address, sizeof there) == 0);
  send_and_receive(number);

  check(fi_getinfo(FI_VERSION(1, 17), name, NULL, 0, hints, &found));
  expect(found->dest_addrlen == sizeof address && memcmp(found->dest_addr, address, sizeof address) == 0);
  expect(fi_av_insert(vector, found->dest_addr, 1, &number, 0, NULL) == 1);
  send_and_receive(number);
  fi_freeinfo(found);

  // Ports and names of hosts say nothing here.
  expect(fi_av_insertsvc(vector, "localhost", "7272", &number, 0, NULL) == -FI_ENOSYS);
  expect(fi_getinfo(FI_VERSION(1, 17), "localhost", "7272", 0, hints, &found) == -FI_ENODATA);
  expect(fi_getinfo(FI_VERSION(1, 17), name, NULL, FI_SOURCE, hints, &found) == -FI_ENODATA);
  fi_freeinfo(hints);
  close_all();
  puts("ok");
  return 0;
}
