/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a message between two ranks is hidden behind a calculation, for bench/rendezvous/rendezvous:
 *
 *     bench-rendezvous receiver|sender|both BYTES ROUNDS PASSES [malloc]
 *     bench-rendezvous bandwidth BYTES ROUNDS PASSES [malloc]
 *
 * The first three are the method of Sandia's benchmark (SMB, host processor overhead): the exchange alone, a
 * calculation alone, and both together. Application availability is the part of the exchange that the
 * calculation does not pay for: 1 - (together - calculation) / exchange. Who is named computes between
 * starting its operation and waiting for it; the other one blocks. The exchange is what the slower of the two
 * sees, since a sender may have its memory back long before, when that was copied. Prints the median of the
 * passes: availability with a calculation as long as the exchange, with one of 1.5 times that, and the
 * exchange in microseconds; with both, the lower availability. It is not clamped: noise takes it out of 0
 * to 1. bandwidth is OSU's: windows of messages that are all started and then waited for; in MB/s.
 *
 * Every byte that arrives is looked at, outside of what is timed. Rank 0 receives, rank 1 sends. With
 * bench/mpi/parc_over_mpi.c it runs over MPI.
 */
#include <parc/parc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { receiver, sender };      /* ranks */
enum { message_tag, word_tag }; /* what is measured, and what the ranks tell each other */
enum { most_window = 64, lengths = 2, most_passes = 100 };
static const double length_of[lengths] = {1, 1.5}; /* of the calculation, in exchanges */

static parc_context* parc;
static int rank, computes;
static size_t bytes;
static int rounds;
static uint64_t* buffer;

static void need(int good) {
  if (good) return;
  fprintf(stderr, "bench-rendezvous: %s\n", parc_error_detail());
  exit(1);
}

/* ---- Between the ranks, outside of what is timed ---- */

static void tell(double word) {
  need(parc_write(parc, 1 - rank, word_tag, &word, sizeof word) == PARC_OK);
}

static double hear(void) {
  double word;
  need(parc_wait(parc, parc_initread(parc, 1 - rank, word_tag, &word, sizeof word), NULL) == PARC_OK);
  return word;
}

static double exchanged(double mine) {
  double theirs;
  const parc_op operation = parc_initread(parc, 1 - rank, word_tag, &theirs, sizeof theirs);
  tell(mine);
  need(parc_wait(parc, operation, NULL) == PARC_OK);
  return theirs;
}

static void fill(uint64_t* words, uint64_t message) {
  for (size_t i = 0; i < bytes / sizeof *words; ++i) words[i] = (message << 32) + i;
}

static void check(const uint64_t* words, uint64_t message) {
  for (size_t i = 0; i < bytes / sizeof *words; ++i) {
    if (words[i] == (message << 32) + i) continue;
    fprintf(stderr, "bench-rendezvous: message %llu is wrong at byte %zu of %zu\n",
            (unsigned long long)message, i * sizeof *words, bytes);
    exit(1);
  }
}

/* ---- The calculation: so many dependent operations in registers ---- */

static volatile uint64_t result;

__attribute__((noinline)) static void calculate(uint64_t operations) {
  uint64_t x = result;
  for (uint64_t i = 0; i < operations; ++i) x = x * 6364136223846793005U + 1442695040888963407U;
  result = x;
}

static double operations_per_second(void) {
  const uint64_t operations = 2000000;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const double begin = parc_clock();
    calculate(operations);
    const double rate = (double)operations / (parc_clock() - begin);
    if (rate > best) best = rate;
  }
  return best;
}

/* ---- Overlap ---- */

static void wait_for(parc_op operation, uint64_t operations) {
  need(operation > 0);
  calculate(operations);
  need(parc_wait(parc, operation, NULL) == PARC_OK);
}

/* The sender begins when the read is posted: one that came first would be matched by the posting itself. */
static double exchange(uint64_t operations) {
  static uint64_t message;
  double begin;
  ++message;
  if (rank == sender) {
    fill(buffer, message);
    tell(0);
    hear();
    begin = parc_clock();
    if (computes)
      wait_for(parc_initwrite(parc, receiver, message_tag, buffer, bytes), operations);
    else
      need(parc_write(parc, receiver, message_tag, buffer, bytes) == PARC_OK);
    return parc_clock() - begin;
  }
  hear();
  begin = parc_clock();
  const parc_op operation = parc_initread(parc, sender, message_tag, buffer, bytes);
  tell(0);
  wait_for(operation, computes ? operations : 0);
  const double time = parc_clock() - begin;
  check(buffer, message);
  return time;
}

static double mean_exchange(uint64_t operations) {
  double sum = 0;
  need(parc_barrier(parc) == PARC_OK);
  for (int i = 0; i < rounds; ++i) sum += exchange(operations);
  return sum / rounds;
}

static double mean_calculation(uint64_t operations) {
  need(parc_barrier(parc) == PARC_OK);
  const double begin = parc_clock();
  for (int i = 0; i < rounds && computes; ++i) calculate(operations);
  return (parc_clock() - begin) / rounds;
}

/* One pass of all rounds: availability with each length, and the exchange in microseconds. */
static void overlap(double rate, double values[lengths + 1]) {
  const double mine = mean_exchange(0), theirs = exchanged(mine), alone = mine > theirs ? mine : theirs;
  values[lengths] = alone * 1e6;
  for (int i = 0; i < lengths; ++i) {
    const uint64_t operations = (uint64_t)(alone * length_of[i] * rate);
    const double calculation = mean_calculation(operations), together = mean_exchange(operations);
    const double here = computes ? 1 - (together - calculation) / alone : 1e9, there = exchanged(here);
    values[i] = here < there ? here : there;
  }
}

/* ---- Bandwidth ---- */

static void bandwidth(double rate, double values[lengths + 1]) {
  (void)rate;
  static uint64_t message;
  const size_t words = bytes / sizeof *buffer;
  const size_t window = bytes > 1 << 20 ? 4 : most_window;
  parc_op operations[most_window];
  for (size_t i = 0; i < window; ++i) fill(buffer + i * words, rank == sender ? message + i : ~0U);
  need(parc_barrier(parc) == PARC_OK);
  const double begin = parc_clock();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < window; ++i)
      need((operations[i] = rank == sender
                                ? parc_initwrite(parc, receiver, message_tag, buffer + i * words, bytes)
                                : parc_initread(parc, sender, message_tag, buffer + i * words, bytes)) > 0);
    need(parc_waitall(parc, (int)window, operations, NULL) == PARC_OK);
    if (rank == sender)
      hear();
    else
      tell(0);
  }
  values[0] = (double)(bytes * window) * rounds / (parc_clock() - begin) / 1e6;
  for (size_t i = 0; i < window && rank == receiver; ++i) check(buffer + i * words, message + i);
  message += window;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  const char* const what = argc > 4 ? argv[1] : "";
  const int streams = strcmp(what, "bandwidth") == 0, both = strcmp(what, "both") == 0;
  const int at_receiver = both || strcmp(what, "receiver") == 0,
            at_sender = both || strcmp(what, "sender") == 0;
  bytes = argc > 4 ? strtoul(argv[2], NULL, 0) : 0;
  rounds = argc > 4 ? atoi(argv[3]) : 0;
  const int passes = argc > 4 ? atoi(argv[4]) : 0, plain = argc > 5 && strcmp(argv[5], "malloc") == 0;
  if ((!streams && !at_receiver && !at_sender) || bytes < sizeof *buffer || bytes % sizeof *buffer ||
      rounds < 1 || passes < 1 || passes > most_passes || argc > 5 + plain) {
    fprintf(stderr,
            "usage: bench-rendezvous receiver|sender|both|bandwidth BYTES ROUNDS PASSES [malloc]\n"
            "two ranks; BYTES a multiple of 8; at most %d passes\n",
            most_passes);
    return 2;
  }
  need(parc_open(&parc) == PARC_OK);
  rank = parc_rank(parc);
  computes = rank == receiver ? at_receiver : at_sender;
  const size_t memory = streams ? bytes * (bytes > 1 << 20 ? 4 : most_window) : bytes;
  buffer = plain ? malloc(memory) : parc_alloc(parc, memory);
  need(buffer != NULL);
  memset(buffer, 0, memory);
  static double values[lengths + 1][most_passes];
  const double rate = operations_per_second();
  for (int pass = 0; pass < passes; ++pass) {
    double pass_values[lengths + 1] = {0};
    (streams ? bandwidth : overlap)(rate, pass_values);
    for (int i = 0; i <= lengths; ++i) values[i][pass] = pass_values[i];
  }
  for (int i = 0; i <= lengths; ++i) qsort(values[i], (size_t)passes, sizeof values[i][0], by_size);
  if (rank == receiver && streams) printf("%.1f\n", values[0][passes / 2]);
  if (rank == receiver && !streams)
    printf("%.4f %.4f %.2f\n", values[0][passes / 2], values[1][passes / 2], values[lengths][passes / 2]);
  need(parc_close(parc) == PARC_OK);
  return 0;
}
