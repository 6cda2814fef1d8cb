/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: rank, where to listen and connect; `zero-copy` for zmq_msg_init_data in place of a copy,
 * `buffers=BYTES` for those of its sockets. ZeroMQ's own thread moves the bytes; a message is received whole
 * and copied out. */
#include "transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* A message is two frames: its tag, and its bytes. */
struct Transfer {
  void* data;
  size_t bytes;
  int tag, receives;
  atomic_int sent; /* ZeroMQ needs the memory no more */
  Transfer* next_free;
};
typedef struct Unexpected {
  zmq_msg_t message;
  int tag;
  struct Unexpected* next;
} Unexpected;

static Transfer* free_ones;
static Unexpected *first, **last = &first;
static void *context, *socket_;
static int zero_copy;

static Transfer* take(int receives) {
  Transfer* const taken = free_ones ? free_ones : malloc(sizeof *taken);
  if (!taken) fail("there is no memory");
  if (taken == free_ones) free_ones = taken->next_free;
  taken->receives = receives;
  taken->sent = 1;
  return taken;
}

static void no_more(void* data, void* transfer) {
  (void)data;
  atomic_store(&((Transfer*)transfer)->sent, 1);
}

int transport_begin(int count, char** words, int own) {
  count -= own;
  words += own;
  if (count < 3) fail("words: rank, address");
  const int rank = atoi(words[1]);
  int buffers = 0;
  for (int i = 3; i < count; ++i) {
    if (!strcmp(words[i], "zero-copy")) zero_copy = 1;
    if (!strncmp(words[i], "buffers=", 8)) buffers = atoi(words[i] + 8);
  }
  context = zmq_ctx_new();
  socket_ = zmq_socket(context, ZMQ_PAIR);
  const int none = 0;
  zmq_setsockopt(socket_, ZMQ_SNDHWM, &none, sizeof none); /* no call blocks for want of a receiver */
  zmq_setsockopt(socket_, ZMQ_RCVHWM, &none, sizeof none);
  if (buffers) {
    zmq_setsockopt(socket_, ZMQ_SNDBUF, &buffers, sizeof buffers);
    zmq_setsockopt(socket_, ZMQ_RCVBUF, &buffers, sizeof buffers);
  }
  if ((rank ? zmq_connect : zmq_bind)(socket_, words[2]) != 0)
    fail("%s: %s", words[2], zmq_strerror(zmq_errno()));
  return rank;
}

void* transport_memory(size_t bytes) {
  return malloc(bytes);
}

Transfer* transport_send(const void* data, size_t bytes, int tag) {
  Transfer* const made = take(0);
  if (zmq_send(socket_, &tag, sizeof tag, ZMQ_SNDMORE) < 0) fail("zmq_send: %s", zmq_strerror(zmq_errno()));
  if (!zero_copy) {
    if (zmq_send(socket_, data, bytes, 0) < 0) fail("zmq_send: %s", zmq_strerror(zmq_errno()));
    return made;
  }
  zmq_msg_t message;
  made->sent = 0;
  zmq_msg_init_data(&message, (void*)data, bytes, no_more, made);
  if (zmq_msg_send(&message, socket_, 0) < 0) fail("zmq_msg_send: %s", zmq_strerror(zmq_errno()));
  return made;
}

Transfer* transport_receive(void* data, size_t bytes, int tag) {
  Transfer* const made = take(1);
  made->data = data;
  made->bytes = bytes;
  made->tag = tag;
  return made;
}

static void copy_out(const Transfer* transfer, zmq_msg_t* message) {
  if (zmq_msg_size(message) != transfer->bytes) fail("a message of %zu bytes came", zmq_msg_size(message));
  memcpy(transfer->data, zmq_msg_data(message), transfer->bytes);
  zmq_msg_close(message);
}

static int take_unexpected(const Transfer* transfer) {
  for (Unexpected** at = &first; *at; at = &(*at)->next) {
    Unexpected* const found = *at;
    if (found->tag != transfer->tag) continue;
    *at = found->next;
    if (last == &found->next) last = at;
    copy_out(transfer, &found->message);
    free(found);
    return 1;
  }
  return 0;
}

static void receive(const Transfer* transfer) {
  if (take_unexpected(transfer)) return;
  for (;;) {
    int tag = 0;
    if (zmq_recv(socket_, &tag, sizeof tag, 0) != sizeof tag) fail("zmq_recv: %s", zmq_strerror(zmq_errno()));
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (zmq_msg_recv(&message, socket_, 0) < 0) fail("zmq_msg_recv: %s", zmq_strerror(zmq_errno()));
    if (tag == transfer->tag) {
      copy_out(transfer, &message);
      return;
    }
    Unexpected* const kept = malloc(sizeof *kept);
    if (!kept) fail("there is no memory");
    zmq_msg_init(&kept->message);
    zmq_msg_move(&kept->message, &message);
    kept->tag = tag;
    kept->next = NULL;
    *last = kept;
    last = &kept->next;
  }
}

void transport_wait(Transfer* transfer) {
  if (transfer->receives) receive(transfer);
  while (!atomic_load(&transfer->sent))
    zmq_poll(NULL, 0, 0); /* gives no core away where its thread has its own */
  transfer->next_free = free_ones;
  free_ones = transfer;
}

void transport_end(void) {
  zmq_close(socket_);
  zmq_ctx_term(context); /* what was sent has left */
}
