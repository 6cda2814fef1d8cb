// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's name is what fi_av_straddr makes of its address: by that it is found again.
#include "harness.h"

static fi_addr_t send_and_receive(fi_addr_t to) {
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  char out = 'x', in = 0;
  check(fi_recv(endpoint, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
  check(fi_send(endpoint, &out, 1, NULL, to, NULL));
  for (int ended = 0; ended < 2;) {
    struct fi_cq_tagged_entry entry;
    fi_addr_t of_one = FI_ADDR_NOTAVAIL;
    const ssize_t code = fi_cq_readfrom(queue, &entry, 1, &of_one);
    if (code == -FI_EAGAIN) continue;
    check(code);
    if ((entry.flags & FI_RECV) != 0) source = of_one;
    ++ended;
  }
  expect(in == 'x');
  return source;
}

// Programs for all providers do so; local memory needs it nowhere here.
static void register_memory(void) {
  static char memory[100];
  struct fid_mr* region = NULL;
  const struct iovec pieces[] = {{memory, 50}, {memory + 50, 50}};
  const struct fi_mr_attr attributes = {
      .mr_iov = pieces, .iov_count = 2, .access = FI_SEND | FI_RECV, .requested_key = 18, .context = memory};
  check(fi_mr_reg(domain, memory, sizeof memory, FI_SEND | FI_RECV, 0, 17, 0, &region, memory));
  expect(fi_mr_key(region) == 17 && region->fid.context == memory);
  expect(fi_close(&domain->fid) == -FI_EBUSY);
  check(fi_close(&region->fid));
  check(fi_mr_regv(domain, pieces, 2, FI_SEND, 0, 16, 0, &region, NULL));
  check(fi_close(&region->fid));
  check(fi_mr_regattr(domain, &attributes, 0, &region));
  expect(fi_mr_key(region) == 18 && region->fid.context == memory);
  check(fi_close(&region->fid));
  expect(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_READ, 0, 17, 0, &region, NULL) == -FI_EOPNOTSUPP);
}

int main(void) {
  char address[64], name[100], there[64];
  size_t length = sizeof address, room = sizeof name;
  fi_addr_t number = FI_ADDR_NOTAVAIL, again = FI_ADDR_NOTAVAIL;
  struct fi_info* found = NULL;
  struct fi_info* hints = hints_for(FI_MSG);
  open_domain(FI_MSG | FI_SOURCE);
  open_endpoint(FI_WAIT_NONE);
  check(fi_getname(&endpoint->fid, address, &length));
  expect(length == sizeof address);
  expect(strlen(fi_av_straddr(vector, address, name, &room)) + 1 == room);

  check(fi_av_insertsvc(vector, name, NULL, &number, 0, NULL));
  length = sizeof there;
  check(fi_av_lookup(vector, number, there, &length));
  expect(length == sizeof there && memcmp(there, address, sizeof there) == 0);
  expect(send_and_receive(number) == number);

  check(fi_getinfo(FI_VERSION(1, 17), name, NULL, 0, hints, &found));
  expect(found->dest_addrlen == sizeof address && memcmp(found->dest_addr, address, sizeof address) == 0);
  expect(fi_av_insert(vector, found->dest_addr, 1, &again, 0, NULL) == 1);
  expect(again != number && send_and_receive(again) == number);
  check(fi_av_remove(vector, &number, 1, 0)); // it has its other number still
  expect(send_and_receive(again) == again);
  fi_freeinfo(found);

  // Ports and names of hosts say nothing here.
  expect(fi_av_insertsvc(vector, "localhost", "7272", &number, 0, NULL) == -FI_ENOSYS);
  expect(fi_getinfo(FI_VERSION(1, 17), "localhost", "7272", 0, hints, &found) == -FI_ENODATA);
  expect(fi_getinfo(FI_VERSION(1, 17), name, NULL, FI_SOURCE, hints, &found) == -FI_ENODATA);
  // A port of this process's own is no hindrance.
  check(fi_getinfo(FI_VERSION(1, 17), NULL, "7272", FI_SOURCE, hints, &found));
  expect(strcmp(found->fabric_attr->prov_name, "parc") == 0 && found->dest_addr == NULL);
  fi_freeinfo(found);
  expect(fi_getinfo(FI_VERSION(1, 17), NULL, "7272", 0, hints, &found) == -FI_ENODATA);
  register_memory();
  fi_freeinfo(hints);
  close_all();
  puts("ok");
  return 0;
}
