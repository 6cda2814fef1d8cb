// SPDX-License-Identifier: BSD-3-Clause
// A completion says that there is remote data where the sender has sent some, 0 or not, and only there.
#include "harness.h"

enum way { plain, with_data, injected, injected_data, by_message, by_message_with_data, ways };

static const uint64_t values[] = {0, 1, UINT64_MAX};
enum { value_count = 3, longest = 20000 };

static char out[longest], in[longest];

static int has_data(enum way way) {
  return way == with_data || way == injected_data || way == by_message_with_data;
}

static void send_one(enum way way, uint64_t data, size_t length, int tagged) {
  const struct iovec piece = {out, length};
  const struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = peer, .data = data};
  const struct fi_msg_tagged with_tag = {.msg_iov = &piece,
                                         .iov_count = 1,
                                         .addr = peer,
                                         .tag = 7,
                                         .ignore = 1, // which holds for receives alone
                                         .data = data};
  const uint64_t flags = way == by_message_with_data ? FI_REMOTE_CQ_DATA : 0;
  switch (way) {
  case plain:
    check(tagged ? fi_tsend(endpoint, out, length, NULL, peer, 7, NULL)
                 : fi_send(endpoint, out, length, NULL, peer, NULL));
    break;
  case with_data:
    check(tagged ? fi_tsenddata(endpoint, out, length, NULL, data, peer, 7, NULL)
                 : fi_senddata(endpoint, out, length, NULL, data, peer, NULL));
    break;
  case injected:
    check(tagged ? fi_tinject(endpoint, out, length, peer, 7) : fi_inject(endpoint, out, length, peer));
    break;
  case injected_data:
    check(tagged ? fi_tinjectdata(endpoint, out, length, data, peer, 7)
                 : fi_injectdata(endpoint, out, length, data, peer));
    break;
  default:
    check(tagged ? fi_tsendmsg(endpoint, &with_tag, flags) : fi_sendmsg(endpoint, &message, flags));
    break;
  }
}

static struct fi_cq_tagged_entry receive_one(int tagged, void* context) {
  struct fi_cq_tagged_entry entry;
  check(tagged ? fi_trecv(endpoint, in, sizeof in, NULL, peer, 7, 0, context)
               : fi_recv(endpoint, in, sizeof in, NULL, peer, context));
  do entry = next_completion();
  while (entry.op_context != context);
  return entry;
}

int main(int count, char** words) {
  static const size_t lengths[] = {0, 100, 3000, longest};
  const int rank = count > 2 ? atoi(words[2]) : 0;
  open_domain(FI_MSG | FI_TAGGED);
  open_endpoint(FI_WAIT_NONE);
  meet(count > 2 ? words[1] : NULL, rank);
  for (int way = 0; way < ways; ++way)
    for (int value = 0; value < value_count; ++value)
      for (int size = 0; size < 4; ++size)
        for (int tagged = 0; tagged < 2; ++tagged) {
          const int injects = way == injected || way == injected_data;
          if (injects && lengths[size] > info->tx_attr->inject_size) continue;
          if (rank == 0) {
            send_one(way, values[value], lengths[size], tagged);
            if (!injects) (void)next_completion();
            continue;
          }
          const struct fi_cq_tagged_entry entry = receive_one(tagged, in);
          expect(((entry.flags & FI_REMOTE_CQ_DATA) != 0) == has_data(way));
          expect(entry.data == (has_data(way) ? values[value] : 0) && entry.len == lengths[size]);
        }
  close_all();
  puts("ok");
  return 0;
}
