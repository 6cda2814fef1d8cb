// SPDX-License-Identifier: BSD-3-Clause
// Every way to wait for a completion queue or a counter, or to look at several, each while another thread
// sends what is waited for, which may come before the wait, in it, or as it begins.
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <sys/epoll.h>

enum { rounds = 300 };

static void* send_all(void* first) {
  for (int i = 0; i < rounds; ++i) {
    check(fi_tinject(endpoint, &i, sizeof i, peer, (uint64_t)(uintptr_t)first));
    if (i % 3 == 0) sched_yield();
  }
  return NULL;
}

// Waits with `sleep` until all that another thread sends has come.
static void receive_all(uint64_t tag, void (*sleep_for_it)(void)) {
  static int in[rounds];
  int received = 0;
  pthread_t sender;
  for (int i = 0; i < rounds; ++i) check(fi_trecv(endpoint, &in[i], sizeof in[i], NULL, peer, tag, 0, NULL));
  expect(pthread_create(&sender, NULL, send_all, (void*)(uintptr_t)tag) == 0);
  while (received < rounds) {
    struct fi_cq_tagged_entry entries[7];
    sleep_for_it();
    ssize_t taken = 0;
    while ((taken = fi_cq_read(queue, entries, 7)) > 0) received += (int)taken;
    expect(taken == -FI_EAGAIN);
  }
  for (int i = 0; i < rounds; ++i) expect(in[i] == i);
  expect(pthread_join(sender, NULL) == 0);
}

static int epoll = -1;

static int may_sleep(void) {
  struct fid* fids[] = {&queue->fid};
  const int code = fi_trywait(fabric, fids, 1);
  expect(code == 0 || code == -FI_EAGAIN);
  return code == 0;
}

static void by_poll(void) {
  struct pollfd waits = {.events = POLLIN};
  check(fi_control(&queue->fid, FI_GETWAIT, &waits.fd));
  if (may_sleep()) expect(poll(&waits, 1, -1) == 1);
}

static void by_epoll(void) {
  struct epoll_event readable;
  if (may_sleep()) expect(epoll_wait(epoll, &readable, 1, -1) == 1);
}

static void by_pollfds(void) {
  struct pollfd waits = {.fd = -1};
  struct fi_wait_pollfd polled = {.nfds = 0};
  expect(fi_control(&queue->fid, FI_GETWAIT, &polled) == -FI_ETOOSMALL && polled.nfds == 1);
  polled.fd = &waits;
  check(fi_control(&queue->fid, FI_GETWAIT, &polled));
  if (may_sleep()) expect(poll(&waits, polled.nfds, -1) == 1);
}

// Reads none: what is there stays for the caller.
static void by_sread(void) {
  struct fi_cq_tagged_entry entry;
  expect(fi_cq_sread(queue, &entry, 0, NULL, -1) == -FI_EAGAIN);
}

static void* signal_queue(void* unused) {
  (void)unused;
  check(fi_cq_signal(queue));
  return NULL;
}

// Nothing comes, but somebody ends the wait.
static void signalled(void) {
  struct fi_cq_tagged_entry entry;
  pthread_t signaller;
  expect(pthread_create(&signaller, NULL, signal_queue, NULL) == 0);
  expect(fi_cq_sread(queue, &entry, 1, NULL, -1) == -FI_EAGAIN);
  expect(pthread_join(signaller, NULL) == 0);
  expect(fi_cq_sread(queue, &entry, 1, NULL, 1) == -FI_EAGAIN);
  // Before the wait, too, and once.
  check(fi_cq_signal(queue));
  expect(!may_sleep());
  expect(may_sleep());
}

static void waits_by(enum fi_wait_obj object) {
  enum fi_wait_obj said;
  int descriptor = -1;
  open_domain(FI_TAGGED);
  open_endpoint(object);
  meet(NULL, 0);
  check(fi_control(&queue->fid, FI_GETWAITOBJ, &said));
  expect(said == object);
  switch (object) {
  case FI_WAIT_FD:
    receive_all(1, by_poll);
    check(fi_control(&queue->fid, FI_GETWAIT, &descriptor));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    expect(epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &(struct epoll_event){.events = EPOLLIN}) == 0);
    receive_all(2, by_epoll);
    close(epoll);
    break;
  case FI_WAIT_POLLFD: receive_all(3, by_pollfds); break;
  default: expect(fi_control(&queue->fid, FI_GETWAIT, &descriptor) == -FI_ENOSYS); break;
  }
  receive_all(4, by_sread);
  signalled();
  close_all();
}

// A wait for so many entries at once, and for a counter.
static void waits_for_many(void) {
  static int in[rounds];
  const void* const wanted = (const void*)(uintptr_t)rounds; // fi_cq(3): the threshold itself
  struct fi_cq_tagged_entry entries[rounds];
  struct fi_cntr_attr of_counter = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
  struct fi_av_attr of_vector = {.type = FI_AV_MAP};
  struct fi_cq_attr of_queue = {
      .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC, .wait_cond = FI_CQ_COND_THRESHOLD};
  struct fid_cntr* counter = NULL;
  struct pollfd waits = {.events = POLLIN};
  pthread_t sender;
  open_domain(FI_TAGGED);
  check(fi_cntr_open(domain, &of_counter, &counter, NULL));
  check(fi_av_open(domain, &of_vector, &vector, NULL));
  check(fi_cq_open(domain, &of_queue, &queue, NULL));
  check(fi_endpoint(domain, info, &endpoint, NULL));
  check(fi_ep_bind(endpoint, &vector->fid, 0));
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
  check(fi_ep_bind(endpoint, &counter->fid, FI_RECV));
  check(fi_enable(endpoint));
  meet(NULL, 0);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < rounds; ++i) check(fi_trecv(endpoint, &in[i], sizeof in[i], NULL, peer, 5, 0, NULL));
    expect(pthread_create(&sender, NULL, send_all, (void*)(uintptr_t)5) == 0);
    const uint64_t count = (uint64_t)(round + 1) * rounds;
    if (round == 0) {
      check(fi_cntr_wait(counter, count, -1));
    } else if (round == 1) {
      struct fid* fids[] = {&counter->fid};
      check(fi_control(&counter->fid, FI_GETWAIT, &waits.fd));
      while (fi_cntr_read(counter) != count)
        if (fi_trywait(fabric, fids, 1) == 0) expect(poll(&waits, 1, -1) == 1);
    }
    expect(fi_cq_sread(queue, entries, rounds, wanted, -1) == rounds);
    expect(fi_cntr_read(counter) == count && fi_cntr_readerr(counter) == 0);
    expect(pthread_join(sender, NULL) == 0);
  }
  expect(fi_cntr_wait(counter, rounds * 4, 1) == -FI_ETIMEDOUT);
  check(fi_close(&endpoint->fid));
  check(fi_close(&counter->fid));
  check(fi_close(&queue->fid));
  check(fi_close(&vector->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

// A poll set knows which of its members have something.
static void poll_set(void) {
  char in = 0;
  void* contexts[3] = {NULL};
  struct fi_poll_attr of_set = {.flags = 0};
  struct fi_cntr_attr of_counter = {.events = FI_CNTR_EVENTS_COMP};
  struct fid_poll* set = NULL;
  struct fid_cntr* counter = NULL;
  open_domain(FI_TAGGED);
  check(fi_poll_open(domain, &of_set, &set));
  check(fi_cntr_open(domain, &of_counter, &counter, &counter));
  open_endpoint(FI_WAIT_NONE);
  queue->fid.context = &queue;
  meet(NULL, 0);
  check(fi_poll_add(set, &queue->fid, 0));
  check(fi_poll_add(set, &counter->fid, 0));
  expect(fi_poll_add(set, &counter->fid, 0) == -FI_EINVAL && fi_poll_add(set, &vector->fid, 0) == -FI_EINVAL);
  expect(fi_poll(set, contexts, 3) == 0);
  check(fi_cntr_add(counter, 1));
  expect(fi_poll(set, contexts, 3) == 1 && contexts[0] == &counter);
  (void)fi_cntr_read(counter);
  check(fi_trecv(endpoint, &in, 1, NULL, peer, 1, 0, NULL));
  check(fi_tinject(endpoint, "x", 1, peer, 1));
  while (fi_poll(set, contexts, 3) == 0) {
  }
  expect(contexts[0] == &queue && fi_poll(set, contexts, 0) == 0);
  (void)next_completion();
  expect(fi_poll(set, contexts, 3) == 0 && in == 'x');
  expect(fi_close(&set->fid) == -FI_EBUSY && fi_close(&counter->fid) == -FI_EBUSY);
  check(fi_poll_del(set, &queue->fid, 0));
  check(fi_poll_del(set, &counter->fid, 0));
  expect(fi_poll_del(set, &counter->fid, 0) == -FI_EINVAL);
  check(fi_close(&set->fid));
  check(fi_close(&counter->fid));
  close_all();
}

// What is new in a counter stays so until it is read: who reads its failures has not seen its successes.
static void halves_of_a_counter(void) {
  struct fi_cntr_attr of_counter = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
  struct fid_cntr* counter = NULL;
  open_domain(FI_TAGGED);
  check(fi_cntr_open(domain, &of_counter, &counter, NULL));
  struct fid* fids[] = {&counter->fid};
  check(fi_cntr_add(counter, 2));
  expect(fi_cntr_readerr(counter) == 0 && fi_trywait(fabric, fids, 1) == -FI_EAGAIN);
  expect(fi_cntr_read(counter) == 2 && fi_trywait(fabric, fids, 1) == 0);
  check(fi_cntr_adderr(counter, 1));
  expect(fi_cntr_read(counter) == 2 && fi_trywait(fabric, fids, 1) == -FI_EAGAIN);
  expect(fi_cntr_readerr(counter) == 1 && fi_trywait(fabric, fids, 1) == 0);
  check(fi_close(&counter->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

// What cannot be waited for is refused, and a queue that was to have no waits has none.
static void not_waited_for(void) {
  struct fi_cq_tagged_entry entry;
  open_domain(FI_TAGGED);
  for (int object = 0; object < 2; ++object) {
    struct fi_cq_attr of_queue = {.wait_obj = object ? FI_WAIT_SET : FI_WAIT_MUTEX_COND};
    expect(fi_cq_open(domain, &of_queue, &queue, NULL) == -FI_ENOSYS);
  }
  open_endpoint(FI_WAIT_NONE);
  expect(fi_cq_sread(queue, &entry, 1, NULL, 0) == -FI_ENOSYS);
  close_all();
}

// What a program writes itself into an event queue.
static void event_queue(void) {
  struct fi_eq_attr of_events = {.flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
  struct fid_eq* events = NULL;
  struct fi_eq_entry entry = {.data = 17};
  struct pollfd waits = {.events = POLLIN};
  uint32_t kind = 0;
  open_domain(FI_TAGGED);
  check(fi_eq_open(fabric, &of_events, &events, NULL));
  check(fi_control(&events->fid, FI_GETWAIT, &waits.fd));
  struct fid* fids[] = {&events->fid};
  check(fi_trywait(fabric, fids, 1));
  expect(poll(&waits, 1, 0) == 0);
  check(fi_eq_write(events, FI_NOTIFY, &entry, sizeof entry, 0));
  expect(poll(&waits, 1, -1) == 1 && fi_trywait(fabric, fids, 1) == -FI_EAGAIN);
  entry.data = 0;
  expect(fi_eq_sread(events, &kind, &entry, sizeof entry, -1, 0) == sizeof entry);
  expect(kind == FI_NOTIFY && entry.data == 17 && fi_trywait(fabric, fids, 1) == 0);
  check(fi_close(&events->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

static void* receive_by_sread(void* of) {
  struct fi_cq_tagged_entry entry;
  for (int i = 0; i < rounds; ++i) {
    int in = -1;
    check(fi_trecv(endpoint, &in, sizeof in, NULL, peer, 6, 0, NULL));
    expect(fi_cq_sread(of, &entry, 1, NULL, -1) == 1 && in == i);
  }
  return NULL;
}

// Two threads wait, each for a queue of its own, and each takes what the other waits for.
static void two_queues(void) {
  struct fi_av_attr of_vector = {.type = FI_AV_MAP};
  struct fi_cq_attr of_queue = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
  struct fi_cq_tagged_entry entry;
  struct fid_cq* received = NULL;
  pthread_t receiver;
  open_domain(FI_TAGGED);
  check(fi_av_open(domain, &of_vector, &vector, NULL));
  check(fi_cq_open(domain, &of_queue, &queue, NULL));
  check(fi_cq_open(domain, &of_queue, &received, NULL));
  check(fi_endpoint(domain, info, &endpoint, NULL));
  check(fi_ep_bind(endpoint, &vector->fid, 0));
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT));
  check(fi_ep_bind(endpoint, &received->fid, FI_RECV));
  check(fi_enable(endpoint));
  meet(NULL, 0);
  expect(pthread_create(&receiver, NULL, receive_by_sread, received) == 0);
  for (int i = 0; i < rounds; ++i) {
    const struct iovec out = {&i, sizeof i};
    const struct fi_msg_tagged message = {.msg_iov = &out, .iov_count = 1, .addr = peer, .tag = 6};
    check(fi_tsendmsg(endpoint, &message, FI_DELIVERY_COMPLETE)); // ends when it has been received
    expect(fi_cq_sread(queue, &entry, 1, NULL, -1) == 1);
  }
  expect(pthread_join(receiver, NULL) == 0);
  check(fi_close(&endpoint->fid));
  check(fi_close(&received->fid));
  check(fi_close(&queue->fid));
  check(fi_close(&vector->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

int main(void) {
  waits_by(FI_WAIT_UNSPEC);
  waits_by(FI_WAIT_YIELD);
  waits_by(FI_WAIT_FD);
  waits_by(FI_WAIT_POLLFD);
  waits_for_many();
  two_queues();
  halves_of_a_counter();
  not_waited_for();
  event_queue();
  poll_set();
  puts("ok");
  return 0;
}
