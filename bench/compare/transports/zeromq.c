/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: rank, where to listen and connect; `zero-copy` for zmq_msg_init_data in place of a copy,
 * `buffers=BYTES` for those of its sockets. ZeroMQ's own thread moves the bytes; a message is received whole
 * and copied out. */
#include "transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

/* A message is a frame, its tag and its bytes; or, not copied, two frames. */
enum { least_not_copied = 65536 };

struct Transfer {
  void* data;
  size_t bytes;
  int tag, receives;
  atomic_int sent; /* ZeroMQ needs the memory no more */
};
typedef struct Unexpected {
  zmq_msg_t message;
  size_t begin; /* of its bytes */
  int tag;
  struct Unexpected* next;
} Unexpected;

static Unexpected *first, **last = &first;
static void *context, *socket_;
static int zero_copy;

static Transfer* take(int receives) {
  Transfer* const taken = new_memory(sizeof *taken);
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
  for (int i = 3; i < count; ++i) {
    if (!strcmp(words[i], "zero-copy")) zero_copy = 1;
  }
  context = zmq_ctx_new();
  socket_ = zmq_socket(context, ZMQ_DEALER);
  const int none = 0;
  zmq_setsockopt(socket_, ZMQ_SNDHWM, &none, sizeof none); /* no call blocks for want of a receiver */
  zmq_setsockopt(socket_, ZMQ_RCVHWM, &none, sizeof none);
  if ((rank ? zmq_connect : zmq_bind)(socket_, words[2]) != 0)
    fail("%s: %s", words[2], zmq_strerror(zmq_errno()));
  return rank;
}

void* transport_memory(size_t bytes) {
  return new_memory(bytes);
}

static void give(zmq_msg_t* message, int flags) {
  if (zmq_msg_send(message, socket_, flags) < 0) fail("zmq_msg_send: %s", zmq_strerror(zmq_errno()));
}

Transfer* transport_send(const void* data, size_t bytes, int tag) {
  Transfer* const made = take(0);
  const int copies = !zero_copy || bytes < least_not_copied;
  zmq_msg_t message;
  zmq_msg_init_size(&message, copies ? sizeof tag + bytes : sizeof tag);
  memcpy(zmq_msg_data(&message), &tag, sizeof tag);
  if (copies) memcpy((char*)zmq_msg_data(&message) + sizeof tag, data, bytes);
  give(&message, copies ? 0 : ZMQ_SNDMORE);
  if (copies) return made;
  made->sent = 0;
  zmq_msg_init_data(&message, (void*)data, bytes, no_more, made);
  give(&message, 0);
  return made;
}

Transfer* transport_receive(void* data, size_t bytes, int tag) {
  Transfer* const made = take(1);
  made->data = data;
  made->bytes = bytes;
  made->tag = tag;
  return made;
}

static void copy_out(const Transfer* transfer, zmq_msg_t* message, size_t begin) {
  if (zmq_msg_size(message) - begin != transfer->bytes)
    fail("a message of %zu bytes came", zmq_msg_size(message) - begin);
  memcpy(transfer->data, (char*)zmq_msg_data(message) + begin, transfer->bytes);
  zmq_msg_close(message);
}

static int take_unexpected(const Transfer* transfer) {
  for (Unexpected** at = &first; *at; at = &(*at)->next) {
    Unexpected* const found = *at;
    if (found->tag != transfer->tag) continue;
    *at = found->next;
    if (last == &found->next) last = at;
    copy_out(transfer, &found->message, found->begin);
    free(found);
    return 1;
  }
  return 0;
}

/* Returns where its bytes begin. */
static size_t next_message(zmq_msg_t* message, int* tag) {
  zmq_msg_init(message);
  if (zmq_msg_recv(message, socket_, 0) < 0) fail("zmq_msg_recv: %s", zmq_strerror(zmq_errno()));
  memcpy(tag, zmq_msg_data(message), sizeof *tag);
  if (!zmq_msg_more(message)) return sizeof *tag;
  if (zmq_msg_recv(message, socket_, 0) < 0) fail("zmq_msg_recv: %s", zmq_strerror(zmq_errno()));
  return 0;
}

static void receive(const Transfer* transfer) {
  if (take_unexpected(transfer)) return;
  for (;;) {
    int tag = 0;
    zmq_msg_t message;
    const size_t begin = next_message(&message, &tag);
    if (tag == transfer->tag) {
      copy_out(transfer, &message, begin);
      return;
    }
    Unexpected* const kept = new_memory(sizeof *kept);
    zmq_msg_init(&kept->message);
    zmq_msg_move(&kept->message, &message);
    kept->begin = begin;
    kept->tag = tag;
    kept->next = NULL;
    *last = kept;
    last = &kept->next;
  }
}

void transport_wait(Transfer* transfer) {
  if (transfer->receives) receive(transfer);
  while (!atomic_load(&transfer->sent)) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  free(transfer);
}

void transport_end(void) {
  zmq_close(socket_);
  zmq_ctx_term(context); /* what was sent has left */
}
