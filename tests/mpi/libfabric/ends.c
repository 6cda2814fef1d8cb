// SPDX-License-Identifier: BSD-3-Clause
// How an endpoint begins and ends: what can be bound to it, what it holds, and what is given up when it is
// closed.
//
//   ends DIRECTORY RANK
#include "harness.h"

enum { many = 3000 }; // more than libparc starts at once

// Binds an endpoint's queue, with a vector and a counter that cannot be bound in any way but one.
static void bound(void) {
  struct fi_av_attr of_vector = {.type = FI_AV_TABLE};
  struct fi_cq_attr of_queue = {.format = FI_CQ_FORMAT_TAGGED};
  struct fi_cntr_attr of_counter = {.events = FI_CNTR_EVENTS_COMP};
  struct fid_cntr* counter = NULL;
  check(fi_av_open(domain, &of_vector, &vector, NULL));
  check(fi_cq_open(domain, &of_queue, &queue, NULL));
  check(fi_cntr_open(domain, &of_counter, &counter, NULL));
  check(fi_endpoint(domain, info, &endpoint, NULL));
  check(fi_ep_bind(endpoint, &vector->fid, 0));
  expect(fi_ep_bind(endpoint, &vector->fid, 0) == -FI_EINVAL);
  expect(fi_ep_bind(endpoint, &queue->fid, 0) == -FI_EINVAL);
  expect(fi_ep_bind(endpoint, &queue->fid, FI_SELECTIVE_COMPLETION) == -FI_EINVAL);
  expect(fi_ep_bind(endpoint, &counter->fid, 0) == -FI_EINVAL);
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
  check(fi_enable(endpoint));
  expect(fi_ep_bind(endpoint, &counter->fid, FI_SEND) == -FI_EOPBADSTATE);
  expect(fi_close(&vector->fid) == -FI_EBUSY && fi_close(&queue->fid) == -FI_EBUSY);
  check(fi_close(&counter->fid));
}

static struct fi_msg_tagged message(struct iovec* piece, uint64_t tag, void* context) {
  return (struct fi_msg_tagged){
      .msg_iov = piece, .iov_count = 1, .addr = peer, .tag = tag, .context = context};
}

// Receives, a message that nobody receives and one that was claimed: nobody hears of them.
static void given_up(void) {
  static char in[many];
  struct fi_cq_tagged_entry entry;
  struct iovec piece = {.iov_base = in, .iov_len = 1};
  const struct fi_msg_tagged unmatched = message(&piece, many, in), looked = message(&piece, many + 1, in);
  open_domain(FI_TAGGED);
  bound();
  meet(NULL, 0);
  check(fi_tinject(endpoint, "x", 1, peer, many + 1));
  ssize_t code = 0;
  do { // until the message is there
    check(fi_trecvmsg(endpoint, &looked, FI_PEEK | FI_CLAIM));
    while ((code = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) {
    }
    struct fi_cq_err_entry error = {.err = 0};
    if (code == -FI_EAVAIL) expect(fi_cq_readerr(queue, &error, 0) == 1 && error.err == FI_ENOMSG);
  } while (code != 1);
  for (int i = 0; i < many; ++i) check(fi_trecv(endpoint, &in[i], 1, NULL, peer, (uint64_t)i, 0, &in[i]));
  expect(fi_cancel(&endpoint->fid, NULL) == -FI_ENOENT); // each has a context
  check(fi_tsendmsg(endpoint, &unmatched, FI_DELIVERY_COMPLETE));
  check(fi_close(&endpoint->fid));
  expect(fi_cq_read(queue, &entry, 1) == -FI_EAGAIN);
  check(fi_close(&queue->fid));
  check(fi_close(&vector->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

// A send without a context fails as loudly as one with.
static void lost(const char* directory, int rank) {
  char byte = 'x';
  struct iovec piece = {.iov_base = &byte, .iov_len = 1};
  struct fi_cq_err_entry error = {.err = 0};
  open_domain(FI_TAGGED);
  open_endpoint(FI_WAIT_NONE);
  meet(directory, rank);
  if (rank == 0) {
    const struct fi_msg_tagged unmatched = message(&piece, 2, NULL);
    check(fi_tsendmsg(endpoint, &unmatched, FI_DELIVERY_COMPLETE));
    check(fi_tsend(endpoint, &byte, 1, NULL, peer, 1, NULL)); // that the other may go
    (void)next_completion();
    struct fi_cq_tagged_entry entry;
    ssize_t code = 0;
    while ((code = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) {
    }
    expect(code == -FI_EAVAIL && fi_cq_readerr(queue, &error, 0) == 1);
    expect(error.err != 0 && error.op_context == NULL && (error.flags & FI_SEND) != 0);
  } else {
    check(fi_trecv(endpoint, &byte, 1, NULL, peer, 1, 0, NULL));
    (void)next_completion();
  }
  close_all();
}

int main(int count, char** words) {
  expect(count == 3);
  given_up();
  lost(words[1], atoi(words[2]));
  puts("ok");
  return 0;
}
