/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: rank, host and port, and `poll` for one who looks all the time in place of sleeping in poll(2). One
 * connection of TCP, by hand: whoever waits sends and receives what it can, as a careful program without
 * threads does. */
#include "transport.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

typedef struct Head {
  uint64_t bytes;
  int64_t tag;
} Head;

struct Transfer {
  Head head;
  char* data;
  size_t moved; /* of a send, with its head */
  int done;
  Transfer* early; /* of a receive: its message, which came before */
  Transfer* next;
};
typedef struct Transfers {
  Transfer *first, **last;
} Transfers;

static Transfers sends = {NULL, &sends.first}, receives = {NULL, &receives.first},
                 unexpected = {NULL, &unexpected.first};
static Head coming;
static size_t come; /* of its head */
static Transfer* filling;
static int fd = -1, polls;

static void append(Transfers* list, Transfer* added) {
  added->next = NULL;
  *list->last = added;
  list->last = &added->next;
}

static Transfer* take_tagged(Transfers* list, int64_t tag) {
  for (Transfer** at = &list->first; *at; at = &(*at)->next) {
    Transfer* const found = *at;
    if (found->head.tag != tag) continue;
    *at = found->next;
    if (list->last == &found->next) list->last = at;
    return found;
  }
  return NULL;
}

static Transfer* make(const void* data, size_t bytes, int tag) {
  Transfer* const made = new_memory(sizeof *made);
  *made = (Transfer){.head = {bytes, tag}, .data = (char*)data};
  return made;
}

static void connect_(int rank, const char* host, const char* port) {
  const struct addrinfo hints = {
      .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = rank ? 0 : AI_PASSIVE};
  struct addrinfo* found;
  if (getaddrinfo(rank ? host : NULL, port, &hints, &found) != 0) fail("cannot resolve %s", host);
  const int yes = 1;
  if (rank == 0) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, found->ai_addr, found->ai_addrlen) != 0 || listen(listener, 1) != 0)
      fail("cannot listen on %s", port);
    fd = accept(listener, NULL, NULL);
    close(listener);
  }
  for (int tries = 0; fd < 0 && tries < 1000; ++tries) {
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(made, found->ai_addr, found->ai_addrlen) == 0) {
      fd = made;
    } else {
      close(made);
      nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
  }
  freeaddrinfo(found);
  if (fd < 0) fail("cannot connect to %s", host);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

int transport_begin(int count, char** words, int own) {
  count -= own;
  words += own;
  if (count < 4) fail("words: rank, host, port");
  const int rank = atoi(words[1]);
  for (int i = 4; i < count; ++i) polls |= !strcmp(words[i], "poll");
  connect_(rank, words[2], words[3]);
  return rank;
}

void* transport_memory(size_t bytes) {
  return new_memory(bytes);
}

static int moved(ssize_t bytes) {
  if (bytes > 0) return 1;
  if (bytes == 0) fail("the connection is closed");
  if (errno != EAGAIN && errno != EINTR) fail("the connection: %s", strerror(errno));
  return 0;
}

static int send_some(void) {
  Transfer* const first = sends.first;
  if (!first) return 0;
  const size_t head = sizeof first->head, in_head = first->moved < head ? first->moved : head;
  struct iovec pieces[] = {
      {(char*)&first->head + in_head, head - in_head},
      {first->data + (first->moved - in_head), first->head.bytes - (first->moved - in_head)}};
  const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
  const ssize_t sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (!moved(sent)) return 0;
  first->moved += (size_t)sent;
  if (first->moved == head + first->head.bytes) {
    sends.first = first->next;
    if (!sends.first) sends.last = &sends.first;
    first->done = 1;
  }
  return 1;
}

/* Of a message that nobody has asked for the memory is its own. */
static void begin_filling(void) {
  filling = take_tagged(&receives, coming.tag);
  if (!filling) {
    char* const own = new_memory(coming.bytes + 1);
    filling = make(own, coming.bytes, (int)coming.tag);
    append(&unexpected, filling);
  } else if (filling->head.bytes != coming.bytes) {
    fail("a message of %zu bytes came", (size_t)coming.bytes);
  }
}

static void end_filling(void) {
  filling->done = 1;
  filling = NULL;
  come = 0;
}

static int receive_some(void) {
  if (come < sizeof coming) {
    const ssize_t got = recv(fd, (char*)&coming + come, sizeof coming - come, MSG_DONTWAIT);
    if (!moved(got)) return 0;
    come += (size_t)got;
    if (come < sizeof coming) return 1;
    begin_filling();
    if (coming.bytes == 0) end_filling();
    return 1;
  }
  const ssize_t got =
      recv(fd, filling->data + filling->moved, filling->head.bytes - filling->moved, MSG_DONTWAIT);
  if (!moved(got)) return 0;
  filling->moved += (size_t)got;
  if (filling->moved == filling->head.bytes) end_filling();
  return 1;
}

static void progress_until(const int* done) {
  while (!*done) {
    const int any = send_some() | receive_some();
    if (any || polls || *done) continue;
    struct pollfd ready = {.fd = fd, .events = (short)(POLLIN | (sends.first ? POLLOUT : 0))};
    (void)poll(&ready, 1, -1);
  }
}

Transfer* transport_send(const void* data, size_t bytes, int tag) {
  Transfer* const made = make(data, bytes, tag);
  append(&sends, made);
  (void)send_some();
  return made;
}

Transfer* transport_receive(void* data, size_t bytes, int tag) {
  Transfer* const made = make(data, bytes, tag);
  made->early = take_tagged(&unexpected, tag);
  if (!made->early) append(&receives, made);
  return made;
}

void transport_wait(Transfer* transfer) {
  Transfer* const early = transfer->early;
  progress_until(early ? &early->done : &transfer->done);
  if (early) {
    memcpy(transfer->data, early->data, early->head.bytes);
    free(early->data);
    free(early);
  }
  free(transfer);
}

void transport_end(void) {
  while (sends.first) progress_until(&sends.first->done);
  shutdown(fd, SHUT_WR);
  close(fd);
}
