// SPDX-License-Identifier: BSD-3-Clause
// What bad input gets: libfabric's error code. What is said on stderr is the caller's to look at.
//
//   refusals no_domain CODE   there is no kernel that this process can use
//   refusals hints            that cannot be met
//   refusals address FILE     the one in the file cannot be reached, and what is none is none
//   refusals queue            more has ended than a queue was to hold
//   refusals buffers          that nobody can reach, or that are too long
//   refusals memory           that is not there, and so is not registered
#include "harness.h"

static void no_domain(int code) {
  struct fi_info* hints = hints_for(FI_TAGGED);
  check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info)); // asks no kernel
  check(fi_fabric(info->fabric_attr, &fabric, NULL));
  expect(fi_domain(fabric, info, &domain, NULL) == -code);
  check(fi_close(&fabric->fid));
  fi_freeinfo(hints);
  fi_freeinfo(info);
}

static void not_met(struct fi_info* hints) {
  expect(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == -FI_ENODATA);
  fi_freeinfo(hints);
}

static void hints_that_cannot_be_met(void) {
  not_met(hints_for(FI_RMA));
  not_met(hints_for(FI_ATOMIC)); // with keys of the program's
  not_met(hints_for(FI_MSG | FI_RMA));
  struct fi_info* hints = hints_for(FI_MSG);
  hints->ep_attr->type = FI_EP_DGRAM;
  not_met(hints);
  hints = hints_for(FI_MSG);
  hints->ep_attr->max_msg_size = SIZE_MAX;
  not_met(hints);
  hints = hints_for(FI_MSG);
  hints->tx_attr->inject_size = 1u << 30;
  not_met(hints);
  hints = hints_for(FI_MSG);
  hints->rx_attr->iov_limit = 1u << 20;
  not_met(hints);
  hints = hints_for(FI_MSG);
  hints->tx_attr->msg_order = FI_ORDER_RAR;
  not_met(hints);
  hints = hints_for(FI_MSG);
  hints->domain_attr->cq_data_size = 16;
  not_met(hints);
  hints = hints_for(FI_MSG);
  hints->addr_format = FI_SOCKADDR_IN;
  not_met(hints);
}

static void addresses(const char* path) {
  char address[64] = {0}, none[64];
  fi_addr_t number = 0;
  int error = 0;
  open_domain(FI_TAGGED);
  open_endpoint(FI_WAIT_NONE);
  const int file = open(path, O_RDONLY);
  expect(file >= 0 && read(file, address, sizeof address) == sizeof address && close(file) == 0);
  expect(fi_av_insert(vector, address, 1, &number, FI_SYNC_ERR, &error) == 0);
  expect(number == FI_ADDR_NOTAVAIL && error == FI_EHOSTUNREACH);
  memset(none, 'x', sizeof none); // without an end
  expect(fi_av_insert(vector, none, 1, &number, FI_SYNC_ERR, &error) == 0 && error == FI_EINVAL);
  strcpy(none, "build17:7272");
  expect(fi_av_insert(vector, none, 1, &number, FI_SYNC_ERR, &error) == 0 && error == FI_EINVAL);
  expect(fi_tsend(endpoint, none, 1, NULL, number, 1, NULL) == -FI_EINVAL);
  expect(fi_tsend(endpoint, none, 1, NULL, 17, 1, NULL) == -FI_EINVAL);
  close_all();
}

// This process's address, for when it is gone.
static void leave_address(const char* path) {
  char address[64];
  size_t length = sizeof address;
  open_domain(FI_TAGGED);
  open_endpoint(FI_WAIT_NONE);
  check(fi_getname(&endpoint->fid, address, &length));
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  expect(file >= 0 && write(file, address, length) == (ssize_t)length && close(file) == 0);
  close_all();
}

static void crowded_queue(void) {
  enum { messages = 3000 };
  static char in[messages];
  struct fi_cq_tagged_entry entry;
  struct fi_av_attr of_vector = {.type = FI_AV_TABLE};
  struct fi_cq_attr of_queue = {.size = 1, .format = FI_CQ_FORMAT_TAGGED};
  open_domain(FI_TAGGED);
  check(fi_av_open(domain, &of_vector, &vector, NULL));
  check(fi_cq_open(domain, &of_queue, &queue, NULL));
  check(fi_endpoint(domain, info, &endpoint, NULL));
  check(fi_ep_bind(endpoint, &vector->fid, 0));
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
  check(fi_enable(endpoint));
  meet(NULL, 0);
  for (int i = 0; i < messages; ++i) {
    check(fi_trecv(endpoint, &in[i], 1, NULL, peer, (uint64_t)i, 0, &in[i]));
    check(fi_tsend(endpoint, "x", 1, NULL, peer, (uint64_t)i, in));
  }
  for (int i = 0; i < 2 * messages; ++i) {
    entry = next_completion();
    expect((entry.flags & FI_TAGGED) != 0);
  }
  expect(fi_cq_read(queue, &entry, 1) == -FI_EAGAIN);
  for (int i = 0; i < messages; ++i) expect(in[i] == 'x');
  close_all();
}

// The next completion that is no success.
static void expect_failure(const void* context, int error) {
  struct fi_cq_tagged_entry entry;
  struct fi_cq_err_entry failed = {.err = 0};
  ssize_t code = 0;
  do code = fi_cq_read(queue, &entry, 1);
  while (code == -FI_EAGAIN || code == 1);
  expect(code == -FI_EAVAIL && fi_cq_readerr(queue, &failed, 0) == 1);
  expect(failed.err == error && failed.op_context == context);
}

static void bad_buffers(void) {
  char byte = 0;
  int contexts[16], next = 0;
  open_domain(FI_MSG | FI_TAGGED);
  open_endpoint(FI_WAIT_NONE);
  meet(NULL, 0);
  const size_t too_long = info->ep_attr->max_msg_size + 1;
  // What is not there need not be anywhere.
  check(fi_trecv(endpoint, NULL, 0, NULL, peer, 1, 0, NULL));
  check(fi_tsend(endpoint, NULL, 0, NULL, peer, 1, NULL));
  (void)next_completion();
  (void)next_completion();
  // Who does not look at what a start returns, and waits for its completion, hears of it there.
  const struct iovec pieces[] = {{&byte, 1}, {NULL, 8}};
  const struct fi_msg_tagged tagged = {.msg_iov = pieces, .iov_count = 2, .addr = peer, .tag = 1};
  const struct fi_msg message = {.msg_iov = pieces, .iov_count = 2, .addr = peer};
  struct fi_msg_tagged of_tagged = tagged;
  struct fi_msg of_message = message;
#define refused(start)                                                                                       \
  do {                                                                                                       \
    int* const context = of_tagged.context = of_message.context = &contexts[next++];                         \
    check(start);                                                                                            \
    expect_failure(context, FI_EINVAL);                                                                      \
  } while (0)
  for (int crowded = 0; crowded < 2; ++crowded) {
    next = 0;
    refused(fi_tsend(endpoint, NULL, 8, NULL, peer, 1, context));
    refused(fi_tsenddata(endpoint, NULL, 8, NULL, 5, peer, 1, context));
    refused(fi_tsendv(endpoint, pieces, NULL, 2, peer, 1, context));
    refused(fi_tsendmsg(endpoint, &of_tagged, FI_COMPLETION));
    refused(fi_tsendmsg(endpoint, &of_tagged, FI_COMPLETION | FI_INJECT));
    refused(fi_trecv(endpoint, NULL, 8, NULL, peer, 1, 0, context));
    refused(fi_trecvv(endpoint, pieces, NULL, 2, peer, 1, 0, context));
    refused(fi_trecvmsg(endpoint, &of_tagged, FI_COMPLETION));
    refused(fi_send(endpoint, NULL, 8, NULL, peer, context));
    refused(fi_sendv(endpoint, pieces, NULL, 2, peer, context));
    refused(fi_sendmsg(endpoint, &of_message, FI_COMPLETION));
    refused(fi_recv(endpoint, NULL, 8, NULL, peer, context));
    refused(fi_recvmsg(endpoint, &of_message, FI_COMPLETION));
    // Of these there is no completion.
    expect(fi_tinject(endpoint, NULL, 8, peer, 1) == -FI_EINVAL);
    expect(fi_tinjectdata(endpoint, NULL, 8, 5, peer, 1) == -FI_EINVAL);
    expect(fi_inject(endpoint, NULL, 8, peer) == -FI_EINVAL);
    // The same where other operations wait for their turn.
    for (int i = 0; crowded == 0 && i < 3000; ++i)
      check(fi_trecv(endpoint, &byte, 1, NULL, peer, 77, 0, &contexts[15]));
    for (int i = 0; crowded == 0 && i < 3000; ++i) check(fi_tsend(endpoint, &byte, 1, NULL, peer, 78, NULL));
  }
#undef refused
  check(fi_send(endpoint, &byte, too_long, NULL, peer, &byte));
  expect_failure(&byte, FI_EMSGSIZE);
  expect(fi_tinject(endpoint, &byte, info->tx_attr->inject_size + 1, peer, 1) == -FI_EMSGSIZE);
  close_all();
}

static void memory_that_is_not_there(void) {
  struct fi_info* hints = hints_for(FI_RMA | FI_ATOMIC);
  struct fid_mr* region = NULL;
  hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR;
  check(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info));
  check(fi_fabric(info->fabric_attr, &fabric, NULL));
  check(fi_domain(fabric, info, &domain, NULL));
  for (int times = 0; times < 3; ++times)
    expect(fi_mr_reg(domain, (void*)4096, 8192, FI_REMOTE_READ, 0, 0, 0, &region, NULL) < 0);
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(hints);
  fi_freeinfo(info);
}

int main(int count, char** words) {
  expect(count > 1);
  if (strcmp(words[1], "no_domain") == 0) no_domain(atoi(words[2]));
  if (strcmp(words[1], "hints") == 0) hints_that_cannot_be_met();
  if (strcmp(words[1], "leave_address") == 0) leave_address(words[2]);
  if (strcmp(words[1], "address") == 0) addresses(words[2]);
  if (strcmp(words[1], "queue") == 0) crowded_queue();
  if (strcmp(words[1], "buffers") == 0) bad_buffers();
  if (strcmp(words[1], "memory") == 0) memory_that_is_not_there();
  puts("ok");
  return 0;
}
