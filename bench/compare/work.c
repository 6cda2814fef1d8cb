/* SPDX-License-Identifier: BSD-3-Clause */
/* The work that bench/compare/run gives to every way to send messages: two ranks, which print a line for each
 * row: `name size value`, in seconds, bytes a second, messages a second or shares.
 *
 * Words: --rows NAME,... --sizes BYTES,... --seconds S --work MS,... --bytes N --halo N --pass S, and behind
 * `--` those of the transport. With --calibrate alone: what --pass is.
 *
 * Rank 0 measures, and says before each round whether there is another one, so that both make as many. */
#include "transport.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { most_sizes = 32, most_rounds = 10000, window = 8, rate_window = 64 };
enum { tag_data = 1, tag_small, tag_order };

static int rank;
static double seconds = 0.2; /* that a row may take, but one round at least */
static size_t sizes[most_sizes], size_count, size_measured;
static double latencies[most_sizes]; /* seconds one way */
static double work_ms[most_sizes];
static size_t work_count, halo = 800000, long_bytes = 256 << 20;
static char *out, *in; /* as large as the largest message */

void fail(const char* format, ...) {
  va_list words;
  va_start(words, format);
  fputs("work: ", stderr);
  vfprintf(stderr, format, words);
  fputc('\n', stderr);
  va_end(words);
  exit(1);
}

void* new_memory(size_t bytes) {
  void* const made = malloc(bytes);
  if (!made) fail("there is no memory");
  return made;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void say(const char* row, double size, double value) {
  if (rank == 0) printf("%s %.6g %.9g\n", row, size, value), fflush(stdout);
}

static void send_(const void* data, size_t bytes, int tag) {
  transport_wait(transport_send(data, bytes, tag));
}

static void receive(void* data, size_t bytes, int tag) {
  transport_wait(transport_receive(data, bytes, tag));
}

/* Both are here when it returns: rank 0 last. */
static void meet(void) {
  char word = 0;
  if (rank == 0) send_(&word, 1, tag_order);
  receive(&word, 1, tag_order);
  if (rank == 1) send_(&word, 1, tag_order);
}

static int is_told_to_go_on(int wants) {
  char word = (char)wants;
  if (rank == 0)
    send_(&word, 1, tag_order);
  else
    receive(&word, 1, tag_order);
  return word;
}

static int by_value(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

static double median(double* values, size_t count) {
  qsort(values, count, sizeof *values, by_value);
  return values[count / 2];
}

/* The median of what rounds return, but for the first, which warms up. Of what takes long there is one. */
static double rounds(double (*round)(size_t), size_t size) {
  enum { least = 3 };
  static double taken[most_rounds];
  const double too_long = 0.5, end = now() + seconds;
  double begin;
  size_t count = 0;
  do {
    begin = now();
    taken[count++] = round(size);
  } while (
      is_told_to_go_on((now() < end || (count < least && now() - begin < too_long)) && count < most_rounds));
  return count > 2 ? median(taken + 1, count - 1) : taken[count - 1];
}

/* ---- Latency and bandwidth */

static double ping_pongs(size_t size) {
  const int times = size <= 65536 ? 4 : 1;
  static char stamp;
  const double begin = now();
  for (int i = 0; i < times; ++i) {
    out[0] = out[size - 1] = ++stamp;
    if (rank == 0) send_(out, size, tag_data);
    receive(in, size, tag_data);
    if (rank == 1) send_(out, size, tag_data);
    if (in[0] != stamp || in[size - 1] != stamp) fail("a message of %zu bytes came wrong", size);
  }
  return (now() - begin) / times / 2;
}

/* So many messages one way; returns when they have been waited for here. */
static void send_many(size_t size, size_t times) {
  Transfer* under_way[window];
  for (size_t i = 0; i < times; ++i) {
    Transfer** const place = &under_way[i % window];
    if (i >= window) transport_wait(*place);
    *place = rank == 0 ? transport_send(out, size, tag_data)
                       : transport_receive(in + i % window * size, size, tag_data);
  }
  for (size_t i = times > window ? times - window : 0; i < times; ++i) transport_wait(under_way[i % window]);
}

/* Bytes a second until the last has come. */
static double stream(size_t size) {
  const size_t least = 1 << 20, most = 64 << 20;
  const size_t times = size < least / window ? least / size : size > most / window ? most / size : window;
  char word = 0;
  const double begin = now();
  send_many(size, times);
  if (rank == 1) send_(&word, 1, tag_small);
  if (rank == 0) receive(&word, 1, tag_small);
  return (double)(times * size) / (now() - begin);
}

/* Messages a second. */
static double rate(size_t size) {
  enum { times = 64 * rate_window };
  Transfer* under_way[rate_window];
  char word = 0;
  const double begin = now();
  for (int i = 0; i < times; i += rate_window) {
    for (int k = 0; k < rate_window; ++k)
      under_way[k] = rank == 0 ? transport_send(out, size, tag_data)
                               : transport_receive(in + (size_t)k * size, size, tag_data);
    for (int k = 0; k < rate_window; ++k) transport_wait(under_way[k]);
  }
  if (rank == 1) send_(&word, 1, tag_small);
  if (rank == 0) receive(&word, 1, tag_small);
  return times / (now() - begin);
}

/* Half a round trip of 8 bytes that are sent right behind a long message. */
static double behind(size_t size) {
  char there[8] = {0}, back[8];
  double answered = 0;
  meet(); /* a wait for a send may end long before its receiver has it */
  const double begin = now();
  if (rank == 0) {
    Transfer* const going = transport_send(out, size, tag_data);
    send_(there, sizeof there, tag_small);
    receive(back, sizeof back, tag_small);
    answered = now();
    transport_wait(going);
  } else {
    Transfer* const coming = transport_receive(in, size, tag_data);
    receive(back, sizeof back, tag_small);
    send_(there, sizeof there, tag_small);
    transport_wait(coming);
  }
  return (answered - begin) / 2;
}

/* ---- Calculation */

enum { field_cells = 2048 };
static double field[field_cells];
static double pass_seconds; /* of one over it, as --calibrate has found it: the same for all ways */

static void calculate(double time) {
  for (double passes = time / pass_seconds; passes >= 1; --passes)
    for (int i = 1; i + 1 < field_cells; ++i)
      field[i] = 0.25 * field[i - 1] + 0.5 * field[i] + 0.25 * field[i + 1];
}

static double calculated(double time) {
  const double begin = now();
  calculate(time);
  return now() - begin;
}

/* How long a pass takes; who starts this starts two at once, as ranks share what cores share. */
static int calibrate(void) {
  enum { tries = 21 };
  double taken[tries];
  pass_seconds = 1e-6;
  for (int i = 0; i < tries; ++i) taken[i] = calculated(20e-3) / 20e3;
  printf("%.6g\n", median(taken, tries));
  return 0;
}

/* ---- Overlap, as Sandia's micro-benchmark measures it: a message is started, waited for behind a
 * calculation that is longer than it takes, and what that takes more than the calculation alone is set beside
 * what the message takes. That is until its receiver has it: a send that is copied ends before. */

static double work_seconds; /* of the round; 0: none, and the round is what the message takes */

static double one_send(size_t size) {
  char word = 0;
  if (rank == 1) {
    receive(in, size, tag_data);
    send_(&word, 1, tag_small);
    return 0;
  }
  const double begin = now();
  Transfer* const going = transport_send(out, size, tag_data);
  if (work_seconds > 0) calculate(work_seconds);
  transport_wait(going);
  const double end = now();
  receive(&word, 1, tag_small);
  return (work_seconds > 0 ? end : now()) - begin;
}

static double one_receive(size_t size) {
  char word = 0;
  if (rank == 1) {
    receive(&word, 1, tag_small);
    send_(out, size, tag_data);
    return 0;
  }
  const double begin = now();
  Transfer* const coming = transport_receive(in, size, tag_data);
  send_(&word, 1, tag_small);
  if (work_seconds > 0) calculate(work_seconds);
  transport_wait(coming);
  return now() - begin;
}

static double work_alone(size_t size) {
  (void)size;
  return rank == 0 ? calculated(work_seconds) : 0;
}

/* Nothing is said where the calls take less than a few passes of the calculation. */
static void availability(const char* row, double (*one)(size_t), size_t size) {
  enum { least_passes = 10 };
  work_seconds = 0;
  const double base = rounds(one, size);
  work_seconds = 1.5 * base;
  if (!is_told_to_go_on(base > least_passes * pass_seconds)) return;
  const double alone = rounds(work_alone, size), with = rounds(one, size);
  const double share = 1 - (with - alone) / base;
  say(row, (double)size, share > 1 ? 1 : share);
}

/* ---- Exchanges, both ways at once, and calculations that do not need them: the heat equation's halos. */

/* Seconds, with so much calculated before the exchange is waited for, and behind that. */
static double exchange(size_t size, double before, double behind) {
  const double begin = now();
  Transfer* const coming = transport_receive(in, size, tag_data);
  Transfer* const going = transport_send(out, size, tag_data);
  calculate(before);
  transport_wait(coming);
  transport_wait(going);
  calculate(behind);
  return now() - begin;
}

/* Bytes a second in each direction. */
static double both_ways(size_t size) {
  return (double)size / exchange(size, 0, 0);
}

/* Mean of steps without anything between them, as in a program. */
static double steps(int warm_up, double before, double behind) {
  enum { counted = 8 };
  for (int i = 0; i < warm_up; ++i) (void)exchange(halo, before, behind);
  meet();
  const double begin = now();
  for (int i = 0; i < counted; ++i) (void)exchange(halo, before, behind);
  return (now() - begin) / counted;
}

static void heat(double ms, int warm_up) {
  const double time = ms / 1e3;
  double alone[3];
  meet();
  for (int i = 0; i < 3; ++i) alone[i] = calculated(time);
  say("heat-alone", ms, median(alone, 3));
  say("heat-blocking", ms, steps(warm_up, 0, time));
  say("heat-hidden", ms, steps(2, time, 0));
}

/* ---- What it takes from the processors */

static double cpu_used(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Of both ranks, a GiB. Who started this counts daemons from cpu-begin to cpu-end. */
static void cpu_of_stream(void) {
  const size_t piece = 1 << 20, most = 128 << 20, bytes = long_bytes < most ? long_bytes : most;
  double other = 0;
  meet();
  say("cpu-begin", 0, 0);
  const double before = cpu_used(), begin = now();
  const size_t times = bytes / piece;
  send_many(piece, times);
  double mine = cpu_used() - before;
  if (rank == 1) send_(&mine, sizeof mine, tag_small);
  if (rank == 0) receive(&other, sizeof other, tag_small);
  const double gib = (double)(times * piece) / (1 << 30);
  const double took = now() - begin;
  say("cpu-end", gib, 0); /* first: daemons are looked at now */
  say("cpu-ranks", gib, (mine + other) / gib);
  say("cpu-elapsed", gib, took / gib);
}

/* A calculation beside messages in both directions, which are started before and waited for behind it: what
 * it loses, and which share of the bytes' time it hid. */
static void beside(void) {
  const size_t piece = long_bytes / 8;
  meet();
  const double whole = exchange(piece, 0, 0), time = whole < 0.05 ? 0.05 : whole;
  double alone[3], with[3], left[3];
  for (int i = 0; i < 3; ++i) {
    meet();
    alone[i] = calculated(time);
    meet();
    Transfer* const coming = transport_receive(in, piece, tag_data);
    Transfer* const going = transport_send(out, piece, tag_data);
    with[i] = calculated(time);
    const double begin = now();
    transport_wait(coming);
    transport_wait(going);
    left[i] = now() - begin;
  }
  say("beside-loss", (double)piece, median(with, 3) / median(alone, 3) - 1);
  say("beside-left", (double)piece, median(left, 3) / whole);
}

/* ---- A link that is cut, for a second from ticks-begin on: the longest pause between answers. */
static void ticks(void) {
  char word[8] = {0};
  double longest = 0;
  meet();
  say("ticks-begin", 0, 0);
  const double begin = now();
  for (int go_on = 1; go_on;) {
    const double sent = now();
    if (rank == 0) send_(word, sizeof word, tag_data);
    receive(word, sizeof word, tag_data);
    if (rank == 1) send_(word, sizeof word, tag_data);
    const double took = now() - sent;
    longest = took > longest ? took : longest;
    go_on = is_told_to_go_on(now() < begin + 3);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  say("ticks-longest", 0, longest);
}

/* ---- */

/* What would take longer than this at the latency that was measured is left out. */
static const double longest = 4;

static int is_worth(double bytes) {
  const size_t last = size_measured - 1; /* none: nothing is known, and all is done */
  const double a_byte = size_measured ? latencies[last] / (double)sizes[last] : 0;
  return is_told_to_go_on(bytes * a_byte < longest);
}

static void row_of_size(const char* name, size_t i) {
  const size_t size = sizes[i];
  if (!strcmp(name, "latency")) {
    if (!is_told_to_go_on(i == 0 || latencies[i - 1] * 20 < longest)) return;
    latencies[i] = rounds(ping_pongs, size);
    size_measured = i + 1;
    say(name, (double)size, latencies[i]);
  }
  if (size < 1024 || !is_told_to_go_on(i < size_measured && latencies[i] * 2 * window < longest)) return;
  if (!strcmp(name, "stream")) say(name, (double)size, rounds(stream, size));
  if (!strcmp(name, "both")) say(name, (double)size, rounds(both_ways, size));
  if (!strcmp(name, "overlap")) {
    const double whole = seconds;
    seconds /= 3; /* each has four of them */
    availability("overlap-send", one_send, size);
    availability("overlap-receive", one_receive, size);
    seconds = whole;
  }
}

static void row(const char* name) {
  if (!strcmp(name, "rate")) say(name, 8, rounds(rate, 8));
  if (!strcmp(name, "behind") && is_worth((double)long_bytes))
    say(name, (double)long_bytes, rounds(behind, long_bytes));
  if (!strcmp(name, "cpu") && is_worth((double)long_bytes)) cpu_of_stream();
  if (!strcmp(name, "beside") && is_worth((double)long_bytes)) beside();
  if (!strcmp(name, "ticks")) ticks();
  if (!strcmp(name, "heat") && is_worth(16 * (double)halo))
    for (size_t i = 0; i < work_count; ++i)
      heat(work_ms[i], i == 0 ? 6 : 2); /* connections that carried something else take some to grow */
  for (size_t i = 0; i < size_count; ++i)
    if (strstr("latency stream both overlap", name)) row_of_size(name, i);
}

static size_t numbers(char* list, double* to) {
  size_t count = 0;
  for (char* word = strtok(list, ","); word && count < most_sizes; word = strtok(NULL, ","))
    to[count++] = atof(word);
  return count;
}

int main(int count, char** words) {
  double wanted[most_sizes];
  char* names = NULL;
  int i = 1;
  for (; i + 1 < count && strcmp(words[i], "--"); i += 2) {
    if (!strcmp(words[i], "--rows")) names = words[i + 1];
    if (!strcmp(words[i], "--pass")) pass_seconds = atof(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) seconds = atof(words[i + 1]);
    if (!strcmp(words[i], "--bytes")) long_bytes = (size_t)atof(words[i + 1]);
    if (!strcmp(words[i], "--halo")) halo = (size_t)atof(words[i + 1]);
    if (!strcmp(words[i], "--work")) work_count = numbers(strdup(words[i + 1]), work_ms);
    if (!strcmp(words[i], "--sizes")) {
      size_count = numbers(strdup(words[i + 1]), wanted);
      for (size_t k = 0; k < size_count; ++k) sizes[k] = (size_t)wanted[k];
    }
  }
  if (count == 2 && !strcmp(words[1], "--calibrate")) return calibrate();
  if (!names || pass_seconds <= 0) fail("the beginning of work.c says how it is used");
  size_t largest = long_bytes > halo ? long_bytes : halo;
  for (size_t k = 0; k < size_count; ++k) largest = window * sizes[k] > largest ? window * sizes[k] : largest;
  rank = transport_begin(count, words, words[i] ? i : count);
  out = transport_memory(largest);
  in = transport_memory(largest);
  if (!out || !in) fail("there is no memory for messages of %zu bytes", largest);
  memset(out, 1, largest);
  memset(in, 2, largest);
  meet();
  char* rest = NULL;
  for (char* name = strtok_r(strdup(names), ",", &rest); name; name = strtok_r(NULL, ",", &rest)) row(name);
  meet();
  say("end", 0, 0);
  transport_end();
  return 0;
}
