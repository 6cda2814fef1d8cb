// SPDX-License-Identifier: BSD-3-Clause
// Buffers that take several messages each (FI_MULTI_RECV), and what becomes of their rests.
#include "harness.h"

enum { messages = 400, longest = 900, buffers = 3, room = 10000 };

static int length_of(int message) {
  return 4 + message * 37 % (longest - 4);
}

static void fill(char* to, int message) {
  memcpy(to, &message, sizeof message);
  for (int i = 4; i < length_of(message); ++i) to[i] = (char)(message + i);
}

static void post(char* buffer, uint64_t flags) {
  const struct iovec piece = {buffer, room};
  const struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = peer, .context = buffer};
  check(fi_recvmsg(endpoint, &message, flags));
}

// Every message lies whole in the buffer of its completion, behind what that holds already.
static void receive_all(void) {
  static char memory[buffers][room];
  static char seen[messages];
  size_t used[buffers] = {0};
  int received = 0, released = 0;
  for (int i = 0; i < buffers; ++i) post(memory[i], FI_MULTI_RECV);
  while (received < messages) {
    char one[longest];
    const struct fi_cq_tagged_entry entry = next_completion();
    const int at = (int)(((char*)entry.op_context - memory[0]) / room);
    expect(at >= 0 && at < buffers && entry.op_context == memory[at]);
    expect((entry.flags & (FI_RECV | FI_MSG)) == (FI_RECV | FI_MSG));
    expect(entry.buf == memory[at] + used[at]);
    used[at] += entry.len;
    int message = -1;
    memcpy(&message, entry.buf, sizeof message);
    expect(message >= 0 && message < messages && !seen[message] && entry.len == (size_t)length_of(message));
    fill(one, message);
    expect(memcmp(entry.buf, one, entry.len) == 0);
    seen[message] = 1;
    ++received;
    expect(((entry.flags & FI_MULTI_RECV) != 0) == (room - used[at] < longest));
    if (entry.flags & FI_MULTI_RECV) {
      ++released;
      used[at] = 0;
      post(memory[at], FI_MULTI_RECV);
    }
  }
  expect(released > buffers);
  // Each that is given up comes back.
  for (int i = 0; i < buffers; ++i) {
    struct fi_cq_err_entry error = {.err = 0};
    struct fi_cq_tagged_entry entry;
    check(fi_cancel(&endpoint->fid, memory[i]));
    ssize_t code = 0;
    while ((code = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) {
    }
    expect(code == -FI_EAVAIL && fi_cq_readerr(queue, &error, 0) == 1);
    expect(error.err == FI_ECANCELED && error.op_context == memory[i] && (error.flags & FI_MULTI_RECV) != 0);
  }
  post(memory[0], FI_MULTI_RECV); // for close_all to give up
}

static void send_all(void) {
  static char out[messages][longest];
  for (int i = 0; i < messages; ++i) {
    fill(out[i], i);
    check(fi_send(endpoint, out[i], (size_t)length_of(i), NULL, peer, out[i]));
  }
  for (int i = 0; i < messages; ++i) expect((next_completion().flags & FI_SEND) != 0);
}

int main(int count, char** words) {
  const int rank = count > 2 ? atoi(words[2]) : 0;
  size_t least = 0, length = sizeof least;
  open_domain(FI_MSG | FI_MULTI_RECV);
  open_endpoint(FI_WAIT_NONE);
  meet(count > 2 ? words[1] : NULL, rank);
  check(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length));
  expect(least != 0 && length == sizeof least);
  least = longest;
  check(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
  if (rank == 0) {
    receive_all();
    check(fi_inject(endpoint, "x", 1,
                    peer)); // the other may go: while it is there nothing but a cancel ends a receive
  } else {
    send_all();
    char byte;
    check(fi_recv(endpoint, &byte, 1, NULL, peer, NULL));
    (void)next_completion();
  }
  close_all();
  puts("ok");
  return 0;
}
