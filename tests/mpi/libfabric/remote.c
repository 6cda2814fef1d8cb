// SPDX-License-Identifier: BSD-3-Clause
// Remote memory: rank 0 reads, writes and counts in rank 1's, which calls nothing meanwhile, beside an
// endpoint for messages of the same process.
#include "harness.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

enum { bytes = 300000, words = 8 };
static struct {
  uint64_t key, closed_key;
  uint64_t word[words];
  unsigned char text[bytes];
} shared;
static struct fid_cntr *reads, *writes;

static struct fi_info* remote_hints(void) {
  struct fi_info* hints = hints_for(FI_RMA | FI_ATOMIC);
  hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR;
  return hints;
}

static void open_remote(void) {
  struct fi_info* hints = remote_hints();
  check(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, hints, &info));
  fi_freeinfo(hints);
  expect((info->caps & (FI_RMA | FI_ATOMIC)) == (FI_RMA | FI_ATOMIC));
  expect(info->domain_attr->mr_mode == FI_MR_PROV_KEY && info->domain_attr->mr_key_size == 8);
  check(fi_fabric(info->fabric_attr, &fabric, NULL));
  check(fi_domain(fabric, info, &domain, NULL));
  struct fi_av_attr of_vector = {.type = FI_AV_MAP};
  struct fi_cq_attr of_queue = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
  struct fi_cntr_attr of_counter = {.events = FI_CNTR_EVENTS_COMP};
  check(fi_av_open(domain, &of_vector, &vector, NULL));
  check(fi_cq_open(domain, &of_queue, &queue, NULL));
  check(fi_cntr_open(domain, &of_counter, &reads, NULL));
  check(fi_cntr_open(domain, &of_counter, &writes, NULL));
  check(fi_endpoint(domain, info, &endpoint, NULL));
  struct fid_ep* another = NULL;
  expect(fi_endpoint(domain, info, &another, NULL) == -FI_EBUSY);
  check(fi_ep_bind(endpoint, &vector->fid, 0));
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT));
  check(fi_ep_bind(endpoint, &reads->fid, FI_READ));
  check(fi_ep_bind(endpoint, &writes->fid, FI_WRITE));
  check(fi_enable(endpoint));
}

static struct fid_mr* registered(void* memory, size_t length, uint64_t access) {
  struct fid_mr* region = NULL;
  check(fi_mr_reg(domain, memory, length, access, 0, 0, 0, &region, NULL));
  return region;
}

static void next_is(void* context, uint64_t flags) {
  const struct fi_cq_tagged_entry entry = next_completion();
  expect(entry.op_context == context && (entry.flags & flags) == flags);
}

static void next_fails(const void* context, int error) {
  struct fi_cq_err_entry failure = {.err = 0};
  struct fi_cq_tagged_entry entry;
  ssize_t code = 0;
  while ((code = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) {
  }
  expect(code == -FI_EAVAIL && fi_cq_readerr(queue, &failure, 0) == 1);
  expect(failure.err == error && failure.op_context == context);
}

static uint64_t at(const void* place) {
  return (uint64_t)((const char*)place - (const char*)&shared);
}

static void transfer(uint64_t key) {
  static unsigned char in[bytes], out[bytes];
  for (size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 13 + i / 251);
  int context = 0;
  check(fi_write(endpoint, out, bytes, NULL, peer, at(shared.text), key, &context));
  check(fi_read(endpoint, in, bytes, NULL, peer, at(shared.text), key, &context)); // they end in any order
  expect(((next_completion().flags ^ next_completion().flags) & (FI_READ | FI_WRITE)) ==
         (FI_READ | FI_WRITE));
  expect(memcmp(in, out, bytes) == 0);
  check(fi_inject_write(endpoint, "abc", 3, peer, at(shared.text) + 7, key));
  const struct iovec pieces[2] = {{in, 5}, {in + 100, 20}};
  check(fi_readv(endpoint, pieces, NULL, 2, peer, at(shared.text) + 5, key, &context));
  next_is(&context, FI_RMA | FI_READ);
  memcpy(out + 7, "abc", 3);
  expect(memcmp(in, out + 5, 5) == 0 && memcmp(in + 100, out + 10, 20) == 0);
  expect(fi_writedata(endpoint, out, 3, NULL, 1, peer, 0, key, NULL) == -FI_ENOSYS);
}

static unsigned char theirs[bytes], ours[bytes];

// As a message of all of it: `places` here and there, in pieces that do not fit them.
static struct fi_msg_rma message_of(struct iovec* pieces, const struct fi_rma_iov* places, size_t count,
                                    void* context) {
  size_t length = 0;
  for (size_t i = 0; i < count; ++i) length += places[i].len;
  pieces[0] = (struct iovec){ours + 9, length / 3};
  pieces[1] = (struct iovec){ours + 9 + length / 3, 0};
  pieces[2] = (struct iovec){ours + 9 + length / 3, length - length / 3};
  return (struct fi_msg_rma){.msg_iov = pieces,
                             .iov_count = 3,
                             .addr = peer,
                             .rma_iov = places,
                             .rma_iov_count = count,
                             .context = context};
}

static void vectors_are(const struct fi_rma_iov* places, size_t count) {
  struct iovec pieces[3];
  int context = 0;
  const struct fi_msg_rma message = message_of(pieces, places, count, &context);
  memset(ours, 0, sizeof ours);
  check(fi_readmsg(endpoint, &message, FI_COMPLETION));
  next_is(&context, FI_RMA | FI_READ);
  for (size_t i = 0, at_ours = 9; i < count; at_ours += places[i++].len)
    expect(memcmp(ours + at_ours, theirs + places[i].addr - at(shared.text), places[i].len) == 0);
  for (size_t i = 0; i < bytes; ++i) ours[i] = (unsigned char)(ours[i] + 3 * i + 1);
  check(fi_writemsg(endpoint, &message, FI_COMPLETION));
  next_is(&context, FI_RMA | FI_WRITE);
  for (size_t i = 0, at_ours = 9; i < count; at_ours += places[i++].len)
    memcpy(theirs + places[i].addr - at(shared.text), ours + at_ours, places[i].len);
  check(fi_read(endpoint, ours, bytes, NULL, peer, at(shared.text), places[0].key, &context));
  next_is(&context, FI_RMA | FI_READ);
  expect(memcmp(ours, theirs, bytes) == 0);
}

static struct fi_rma_iov place(size_t offset, size_t length, uint64_t key) {
  return (struct fi_rma_iov){.addr = at(shared.text) + offset, .len = length, .key = key};
}

// Several places of remote memory are one operation with one end.
static void vectors(uint64_t key) {
  int context = 0;
  check(fi_read(endpoint, theirs, bytes, NULL, peer, at(shared.text), key, &context));
  next_is(&context, FI_RMA | FI_READ);
  struct fi_rma_iov places[65];
  for (size_t i = 0; i < 65; ++i) places[i] = place(1000 + 300 * i, 100, key); // rows
  vectors_are(places, 64);
  vectors_are(places, 2);
  for (size_t i = 0; i < 64; ++i) places[i] = place(200000 - 128 * i, 128, key); // downwards
  vectors_are(places, 40);
  for (size_t i = 0; i < 64; ++i) places[i] = place(1000 * i, i * 7 % 50, key); // of any length, and of none
  vectors_are(places, 64);
  for (size_t i = 0; i < 12; ++i)
    places[i] = place(2000 + 100 * i, 100, key); // one behind the other, then rows
  for (size_t i = 12; i < 20; ++i) places[i] = place(300 * i, 100, key);
  vectors_are(places, 20);
  for (size_t i = 0; i < 64; ++i) places[i] = place(50 * i, 100, key); // a later one on an earlier one
  places[3].addr = places[60].addr;
  struct iovec pieces[3];
  struct fi_msg_rma message = message_of(pieces, places, 65, &context);
  expect(fi_readmsg(endpoint, &message, 0) == -FI_EINVAL);
  message.rma_iov_count = 64;
  expect(fi_readmsg(endpoint, &message, 0) == -FI_EINVAL); // not as long as what it goes into
  struct fi_rma_iov wrapping[3] = {place(0, (size_t)1 << 63, key), place(0, (size_t)1 << 63, key),
                                   place(0, 100, key)};
  struct fi_msg_rma too_long = message_of(pieces, places, 1, &context);
  too_long.rma_iov = wrapping;
  too_long.rma_iov_count = 3;
  expect(fi_readmsg(endpoint, &too_long, 0) == -FI_EINVAL);
  message = message_of(pieces, places, 64, &context);
  check(fi_readmsg(endpoint, &message, FI_COMPLETION));
  next_is(&context, FI_RMA | FI_READ);
  for (size_t i = 0; i < 64; ++i)
    expect(memcmp(ours + 9 + 100 * i, theirs + places[i].addr - at(shared.text), 100) == 0);
  places[1] = (struct fi_rma_iov){.addr = sizeof shared - 50, .len = 100, .key = key};
  check(fi_readmsg(endpoint, &message, FI_COMPLETION)); // one of them is outside
  next_fails(&context, FI_EKEYREJECTED);
  for (size_t i = 0; i < 4; ++i) places[i] = place(70000 + 1111 * i * i, 8, key);
  message = message_of(pieces, places, 4, NULL);
  memcpy(ours + 9, "some bytes that are injected....", 32);
  check(fi_writemsg(endpoint, &message, FI_INJECT | FI_COMPLETION));
  memset(ours, 0, 64);
  next_is(NULL, FI_RMA | FI_WRITE);
  check(fi_read(endpoint, ours, 8, NULL, peer, at(shared.text) + 70000 + 1111, key, &context));
  next_is(&context, FI_RMA | FI_READ);
  expect(memcmp(ours, "es that ", 8) == 0);
}

static void operate(uint64_t key) {
  uint64_t operand = 5, before = 0, compare = 0, narrow[2] = {0, 0};
  int context = 0;
  size_t count = 0;
  expect(fi_atomicvalid(endpoint, FI_UINT64, FI_SUM, &count) == 0 && count == 1);
  expect(fi_fetch_atomicvalid(endpoint, FI_INT32, FI_ATOMIC_READ, &count) == 0 && count == 1);
  expect(fi_compare_atomicvalid(endpoint, FI_UINT64, FI_CSWAP, &count) == 0 && count == 1);
  expect(fi_atomicvalid(endpoint, FI_DOUBLE, FI_SUM, &count) == -FI_EOPNOTSUPP);
  check(fi_atomic(endpoint, &operand, 1, NULL, peer, at(&shared.word[0]), key, FI_UINT64, FI_SUM, &context));
  next_is(&context, FI_ATOMIC | FI_WRITE);
  check(fi_fetch_atomic(endpoint, &operand, 1, NULL, &before, NULL, peer, at(&shared.word[0]), key, FI_UINT64,
                        FI_SUM, &context));
  next_is(&context, FI_ATOMIC | FI_READ);
  expect(before == 5);
  operand = 77, compare = 10;
  check(fi_compare_atomic(endpoint, &operand, 1, NULL, &compare, NULL, &before, NULL, peer,
                          at(&shared.word[0]), key, FI_UINT64, FI_CSWAP, &context));
  next_is(&context, FI_ATOMIC | FI_READ);
  expect(before == 10);
  check(fi_fetch_atomic(endpoint, NULL, 1, NULL, &before, NULL, peer, at(&shared.word[0]), key, FI_UINT64,
                        FI_ATOMIC_READ, &context));
  next_is(&context, FI_ATOMIC | FI_READ);
  expect(before == 77);
  const uint32_t bit = 4; // and what is beside the word, and its result, stays
  check(fi_fetch_atomic(endpoint, &bit, 1, NULL, &narrow[1], NULL, peer, at(&shared.word[1]) + 4, key,
                        FI_UINT32, FI_BOR, &context));
  next_is(&context, FI_ATOMIC | FI_READ);
  check(fi_inject_atomic(endpoint, &operand, 1, peer, at(&shared.word[2]), key, FI_UINT64, FI_ATOMIC_WRITE));
  check(fi_read(endpoint, &before, 8, NULL, peer, at(&shared.word[1]), key, &context));
  next_is(&context, FI_RMA | FI_READ);
  expect(before == (uint64_t)4 << 32 && narrow[0] == 0 && narrow[1] == 0);
}

static void refused(uint64_t key, uint64_t closed_key) {
  unsigned char byte = 0;
  uint64_t word = 0;
  int context = 0;
  check(fi_read(endpoint, &byte, 1, NULL, peer, 0, key + 1, &context));
  next_fails(&context, FI_EKEYREJECTED);
  check(fi_write(endpoint, &byte, 1, NULL, peer, sizeof shared, key, &context));
  next_fails(&context, FI_EKEYREJECTED);
  check(fi_write(endpoint, &byte, 1, NULL, peer, 0, closed_key, &context));
  next_fails(&context, FI_EKEYREJECTED);
  check(fi_atomic(endpoint, &word, 1, NULL, peer, 0, closed_key, FI_UINT64, FI_SUM, &context));
  next_fails(&context, FI_EKEYREJECTED);
  expect(fi_read(endpoint, &byte, 1, NULL, 1000, 0, key, &context) == -FI_EINVAL);
}

// The keys go where addresses go: behind the address, in a file of their own.
static void tell_keys(const char* directory) {
  char name[4096], temporary[4100];
  snprintf(name, sizeof name, "%s/keys", directory);
  snprintf(temporary, sizeof temporary, "%s.new", name);
  const uint64_t keys[2] = {shared.key, shared.closed_key};
  const int file = open(temporary, O_WRONLY | O_CREAT, 0600);
  expect(file >= 0 && write(file, keys, sizeof keys) == sizeof keys && close(file) == 0);
  expect(rename(temporary, name) == 0);
}

static void hear_keys(const char* directory, uint64_t keys[2]) {
  char name[4096];
  snprintf(name, sizeof name, "%s/keys", directory);
  int file = -1;
  while ((file = open(name, O_RDONLY)) < 0) sched_yield();
  expect(read(file, keys, 2 * sizeof *keys) == 2 * sizeof *keys && close(file) == 0);
}

static void close_remote(void) {
  check(fi_close(&endpoint->fid));
  check(fi_close(&reads->fid));
  check(fi_close(&writes->fid));
  endpoint = NULL;
  check(fi_close(&queue->fid));
  check(fi_close(&vector->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

int main(int count, char** arguments) {
  expect(count == 3);
  const int rank = atoi(arguments[2]);
  open_remote();
  struct fid_mr* const region =
      registered(&shared, sizeof shared, FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE);
  struct fid_mr* const closed = registered(&shared, sizeof shared, FI_REMOTE_READ);
  struct fid_mr* const local = registered(&shared, sizeof shared, FI_READ | FI_WRITE);
  shared.key = fi_mr_key(region);
  shared.closed_key = fi_mr_key(closed);
  expect(shared.key != 0 && shared.closed_key != 0 && shared.key != shared.closed_key);
  if (rank == 1) tell_keys(arguments[1]);
  meet(arguments[1], rank);
  if (rank == 0) {
    uint64_t keys[2];
    hear_keys(arguments[1], keys);
    transfer(keys[0]);
    operate(keys[0]);
    refused(keys[0], keys[1]);
    expect(fi_cntr_read(reads) == 7 && fi_cntr_read(writes) == 2 + 2);
    expect(fi_cntr_readerr(reads) == 1 && fi_cntr_readerr(writes) == 3);
    vectors(keys[0]);
    expect(fi_cntr_read(reads) == 7 + 1 + 5 * 2 + 1 + 1 && fi_cntr_read(writes) == 2 + 2 + 5 + 1);
    expect(fi_cntr_readerr(reads) == 1 + 1 && fi_cntr_readerr(writes) == 3);
    const uint64_t over = 1;
    check(fi_inject_atomic(endpoint, &over, 1, peer, at(&shared.word[7]), keys[0], FI_UINT64, FI_SUM));
  } else {
    while (__atomic_load_n(&shared.word[7], __ATOMIC_ACQUIRE) == 0) sched_yield(); // it calls nothing
    expect(shared.word[0] == 77 && shared.word[1] == (uint64_t)4 << 32 && shared.word[2] == 77);
    expect(memcmp(shared.text + 7, "abc", 3) == 0);
  }
  check(fi_close(&region->fid));
  check(fi_close(&closed->fid));
  check(fi_close(&local->fid));
  close_remote();
  puts("ok");
}
