// SPDX-License-Identifier: BSD-3-Clause
// One endpoint for messages and remote memory, as MPICH opens it: without hints at first, and then with all
// that it was offered.
#include "harness.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

enum { bytes = 100000 };
static unsigned char shared[bytes];

static void open_both(void) {
  struct fi_info *found = NULL, *hints = hints_for(0);
  expect(setenv("PARC_FABRIC", "1", 1) == 0);
  check(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, NULL, &found));
  const struct fi_info* parc = found;
  while (parc && strcmp(parc->fabric_attr->prov_name, "parc") != 0) parc = parc->next;
  expect(parc != NULL);
  const uint64_t all = FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC;
  expect((parc->caps & all) == all);
  hints->caps = parc->caps;
  hints->domain_attr->mr_mode = parc->domain_attr->mr_mode;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
  hints->tx_attr->msg_order = parc->tx_attr->msg_order;
  check(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
  fi_freeinfo(found);
  fi_freeinfo(hints);
  expect(info->domain_attr->threading == FI_THREAD_DOMAIN);
  check(fi_fabric(info->fabric_attr, &fabric, NULL));
  check(fi_domain(fabric, info, &domain, NULL));
  open_endpoint(FI_WAIT_NONE);
  struct fid_ep* another = NULL;
  expect(fi_endpoint(domain, info, &another, NULL) == -FI_EBUSY);
}

static void be_target(void) {
  struct fid_mr* region = NULL;
  int context = 0;
  check(fi_mr_reg(domain, shared, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &region, NULL));
  uint64_t key = fi_mr_key(region);
  check(fi_tinject(endpoint, &key, sizeof key, peer, 1));
  check(fi_trecv(endpoint, &key, sizeof key, NULL, peer, 2, 0, &context));
  expect(next_completion().op_context == &context);
  for (size_t i = 0; i < bytes; ++i) expect(shared[i] == (unsigned char)(i * 11));
  check(fi_close(&region->fid));
}

// Of several buffers for several messages each is filled in its turn, whatever is longer.
static void receive_in_order(void) {
  enum { messages = 40 };
  static char buffers[3][20000];
  const size_t least = 9000;
  check(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
  for (int i = 0; i < 3; ++i) {
    const struct iovec all = {buffers[i], sizeof buffers[i]};
    const struct fi_msg message = {
        .msg_iov = &all, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buffers[i]};
    check(fi_recvmsg(endpoint, &message, FI_MULTI_RECV));
  }
  check(fi_tinject(endpoint, NULL, 0, peer, 3));
  for (int i = 0; i < messages;) {
    const struct fi_cq_tagged_entry entry = next_completion();
    if ((entry.flags & FI_RECV) && entry.len != 0) {
      expect(((const unsigned char*)entry.buf)[0] == i && entry.len == (size_t)(i % 2 ? 8000 : 40));
      ++i;
    }
    if ((entry.flags & FI_MULTI_RECV) == 0) continue;
    char* const buffer = entry.op_context;
    const struct iovec all = {buffer, sizeof buffers[0]};
    const struct fi_msg message = {
        .msg_iov = &all, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buffer};
    check(fi_recvmsg(endpoint, &message, FI_MULTI_RECV));
  }
}

static void send_in_order(void) {
  static unsigned char bytes_of[40][8000];
  int context = 0;
  check(fi_trecv(endpoint, NULL, 0, NULL, peer, 3, 0, &context));
  (void)next_completion();
  for (int i = 0; i < 40; ++i) {
    bytes_of[i][0] = (unsigned char)i;
    check(fi_send(endpoint, bytes_of[i], i % 2 ? 8000 : 40, NULL, peer, &context));
  }
  for (int i = 0; i < 40; ++i) (void)next_completion();
}

static void reach_target(void) {
  static unsigned char out[bytes], in[bytes];
  uint64_t key = 0;
  int context = 0;
  for (size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 7);
  check(fi_trecv(endpoint, &key, sizeof key, NULL, peer, 1, 0, &context));
  expect(next_completion().op_context == &context);
  check(fi_write(endpoint, out, bytes, NULL, peer, 0, key, &context));
  check(fi_read(endpoint, in, bytes, NULL, peer, 0, key, &context));
  (void)next_completion();
  (void)next_completion();
  expect(memcmp(in, out, bytes) == 0);
  for (size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 11);
  check(fi_write(endpoint, out, bytes, NULL, peer, 0, key, &context));
  (void)next_completion();
  check(fi_tsend(endpoint, &key, sizeof key, NULL, peer, 2, &context));
  (void)next_completion();
}

int main(int count, char** words) {
  expect(count == 3);
  const int rank = atoi(words[2]);
  open_both();
  meet(words[1], rank);
  if (rank == 1) {
    be_target();
    receive_in_order();
  } else {
    reach_target();
    send_in_order();
  }
  close_all();
  puts("ok");
  return 0;
}
