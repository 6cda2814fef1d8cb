/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preconditioned conjugate gradients as a plain MPI program: the Laplacian of five points on a square grid, a
 * strip of its rows on each rank, whose incomplete Cholesky factor L is the preconditioner. Two numbers an
 * iteration are summed over all ranks, at once (blocking) or while the sweeps of the preconditioner are
 * calculated (hidden; de Sturler and van der Vorst 1995); the iterates are the same up to rounding. The rows
 * for the neighbours are hidden behind the interior either way.
 *
 *     mpicc -O2 cg.c -o cg -lm && mpirun -np 4 cg [hidden|blocking [SIZE [STEPS [MS,MS,MS,MS,MS,MS]]]]
 *
 * With six times the program sleeps for so long in place of calculating: the interior, the border, the
 * forward sweep, the residual, the backward sweep and the new direction of an iteration. So more ranks than
 * there are cores show what their messages take.
 */
#include "result.h"

#include <errno.h>
#include <math.h>
#include <sys/prctl.h>
#include <time.h>

enum Phase { INTERIOR, BORDER, FORWARD, RESIDUAL, BACKWARD, ADVANCE, PHASES };
enum Message { HALO, START, SUMS, MESSAGES };

typedef struct Solver {
  int hidden;
  int columns, all_rows;
  int first, rows;  /* of the grid; row 0 and row rows+1 here are the neighbours', or zeros */
  int above, below; /* ranks */
  double* inverse;  /* of the diagonal of L, which is all of it: beside it stand -inverse of the column's */
  double* x;        /* hidden: as of the iteration before */
  double *r, *s;    /* r blocking alone, s = L^-1 r */
  double *p, *last; /* the latter hidden alone: p of the iteration before, until x has got it */
  double *q, *z;    /* A p; L^-1 q, then L^-T s */
  double alpha, beta, rho;
  double part, sum;
  MPI_Request summing;
  int asleep;
  double asleep_s[PHASES], late_s;
  int step;
  double message_s[MESSAGES]; /* of the timed steps */
} Solver;

/* Of a field with zeros on all sides; -1 and `columns` may be read, too. */
static double* row_of(const Solver* solver, double* field, int row) {
  return field + (size_t)row * ((size_t)solver->columns + 2) + 1;
}

static double laplacian(const Solver* solver, const double* here, int j) {
  const int width = solver->columns + 2;
  return 4 * here[j] - (here[j - width] + here[j + width]) - (here[j - 1] + here[j + 1]);
}

/* ---- What is calculated ---- */

static double multiply_row(Solver* solver, int row) {
  const double* const here = row_of(solver, solver->p, row);
  double* const to = row_of(solver, solver->q, row);
  double product = 0;
  for (int j = 0; j < solver->columns; ++j) to[j] = laplacian(solver, here, j);
  for (int j = 0; j < solver->columns; ++j) product += here[j] * to[j];
  return product;
}

static void interior(Solver* solver) {
  solver->part = 0;
  for (int row = 2; row < solver->rows; ++row) solver->part += multiply_row(solver, row);
}

static void border(Solver* solver) {
  solver->part += multiply_row(solver, 1);
  if (solver->rows > 1) solver->part += multiply_row(solver, solver->rows);
}

static void add(const Solver* solver, double factor, double* from, double* to) {
  for (int row = 1; row <= solver->rows; ++row) {
    const double* const source = row_of(solver, from, row);
    double* const target = row_of(solver, to, row);
    for (int j = 0; j < solver->columns; ++j) target[j] += factor * source[j];
  }
}

/* In both sweeps a point waits for the one before it: what does not depend on that is kept out of the chain.
 */
static void solve_forward(const Solver* solver, double* from, double* to) {
  const int width = solver->columns + 2;
  for (int row = 1; row <= solver->rows; ++row) {
    const double *const inverse = row_of(solver, solver->inverse, row), *const source =
                                                                            row_of(solver, from, row);
    double* const here = row_of(solver, to, row);
    for (int j = 0; j < solver->columns; ++j)
      here[j] = inverse[j] * (source[j] + inverse[j - width] * here[j - width]) +
                inverse[j] * inverse[j - 1] * here[j - 1];
  }
}

static void backward(Solver* solver) {
  const int width = solver->columns + 2;
  for (int row = solver->rows; row >= 1; --row) {
    const double* const inverse = row_of(solver, solver->inverse, row);
    const double* const source = row_of(solver, solver->s, row);
    double* const here = row_of(solver, solver->z, row);
    for (int j = solver->columns - 1; j >= 0; --j)
      here[j] =
          inverse[j] * (source[j] + inverse[j] * here[j + width]) + inverse[j] * inverse[j] * here[j + 1];
  }
}

/* Hidden, alpha is not known yet: x gets its step of the iteration before, and s its own in residual(). */
static void forward(Solver* solver) {
  if (solver->hidden) {
    add(solver, solver->alpha, solver->last, solver->x);
    solve_forward(solver, solver->q, solver->z);
  } else {
    add(solver, solver->alpha, solver->p, solver->x);
    add(solver, -solver->alpha, solver->q, solver->r);
    solve_forward(solver, solver->r, solver->s);
  }
}

static void residual(Solver* solver) {
  solver->part = 0;
  for (int row = 1; row <= solver->rows; ++row) {
    double* const s = row_of(solver, solver->s, row);
    const double* const v = row_of(solver, solver->z, row);
    double product = 0;
    if (solver->hidden)
      for (int j = 0; j < solver->columns; ++j) s[j] -= solver->alpha * v[j];
    for (int j = 0; j < solver->columns; ++j) product += s[j] * s[j];
    solver->part += product;
  }
}

static void advance(Solver* solver) {
  double* const next = solver->hidden ? solver->last : solver->p;
  for (int row = 1; row <= solver->rows; ++row) {
    const double *const w = row_of(solver, solver->z, row), *const p = row_of(solver, solver->p, row);
    double* const to = row_of(solver, next, row);
    for (int j = 0; j < solver->columns; ++j) to[j] = w[j] + solver->beta * p[j];
  }
  if (!solver->hidden) return;
  solver->last = solver->p;
  solver->p = next;
}

/* ---- How long that takes, and what takes as long ---- */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A calculation on a core of its own does not end late: what a sleep overran, the next one is shorter. */
static void sleep_for(Solver* solver, double seconds) {
  const double end = now() + seconds - solver->late_s;
  struct timespec time = {.tv_sec = (time_t)end};
  time.tv_nsec = (long)((end - (double)time.tv_sec) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
  }
  solver->late_s = now() > end ? now() - end : 0;
}

static void calculate(Solver* solver, enum Phase phase) {
  static void (*const work[PHASES])(Solver*) = {interior, border, forward, residual, backward, advance};
  if (solver->asleep)
    sleep_for(solver, solver->asleep_s[phase]);
  else
    work[phase](solver);
}

static void count(Solver* solver, enum Message message, double begin) {
  if (solver->step > warm_up) solver->message_s[message] += now() - begin;
}

/* ---- Messages ---- */

static void start_sum(Solver* solver) {
  const double begin = now();
  if (solver->hidden)
    MPI_Iallreduce(&solver->part, &solver->sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &solver->summing);
  count(solver, START, begin);
}

static double finish_sum(Solver* solver) {
  const double begin = now();
  if (solver->hidden)
    MPI_Wait(&solver->summing, MPI_STATUS_IGNORE);
  else
    MPI_Allreduce(&solver->part, &solver->sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  count(solver, SUMS, begin);
  return solver->sum;
}

/* Where nothing is left of a residual, nothing changes any more. */
static double ratio(double over, double under) {
  return under > 0 ? over / under : 0;
}

static void finish_gamma(Solver* solver) {
  solver->alpha = ratio(solver->rho, finish_sum(solver));
}

static void finish_rho(Solver* solver) {
  const double before = solver->rho;
  solver->rho = finish_sum(solver);
  solver->beta = ratio(solver->rho, before);
}

static void start_halo(Solver* solver, MPI_Request* requests) {
  enum { down, up };
  const double begin = now();
  const int n = solver->columns, last = solver->rows;
  double* const p = solver->p;
  MPI_Irecv(row_of(solver, p, 0), n, MPI_DOUBLE, solver->above, down, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(row_of(solver, p, last + 1), n, MPI_DOUBLE, solver->below, up, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(row_of(solver, p, 1), n, MPI_DOUBLE, solver->above, up, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(row_of(solver, p, last), n, MPI_DOUBLE, solver->below, down, MPI_COMM_WORLD, &requests[3]);
  count(solver, HALO, begin);
}

static void wait_halo(Solver* solver, MPI_Request* requests) {
  const double begin = now();
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  count(solver, HALO, begin);
}

static void step(void* state) {
  Solver* const solver = state;
  MPI_Request halo[4];
  ++solver->step;
  start_halo(solver, halo);
  calculate(solver, INTERIOR);
  wait_halo(solver, halo);
  calculate(solver, BORDER);
  start_sum(solver);
  if (!solver->hidden) finish_gamma(solver);
  calculate(solver, FORWARD);
  if (solver->hidden) finish_gamma(solver);
  calculate(solver, RESIDUAL);
  start_sum(solver);
  if (!solver->hidden) finish_rho(solver);
  calculate(solver, BACKWARD);
  if (solver->hidden) finish_rho(solver);
  calculate(solver, ADVANCE);
}

/* ---- The problem ---- */

/* The x that b is made for: zero around the grid, whose row and column 0 that is. */
static double exact_solution(const Solver* solver, int row, int column) {
  const double y = (double)row / (solver->all_rows + 1), x = (double)column / (solver->columns + 1);
  return x * (1 - x) * y * (1 - y) * (1 + x + 2 * y);
}

/* r = b, with the exact x in p for a moment; a diagonal element of L squared is what the products of the
 * row's other two elements leave of A's 4. */
static void fill(Solver* solver) {
  for (int row = 0; row <= solver->rows + 1; ++row)
    for (int j = 0; j < solver->columns; ++j)
      row_of(solver, solver->p, row)[j] = exact_solution(solver, solver->first + row, j + 1);
  for (int row = 1; row <= solver->rows; ++row) {
    const double* const x = row_of(solver, solver->p, row);
    double *const b = row_of(solver, solver->r, row), *const inverse = row_of(solver, solver->inverse, row);
    for (int j = 0; j < solver->columns; ++j) {
      const double above = inverse[j - solver->columns - 2], left = inverse[j - 1];
      b[j] = laplacian(solver, x, j);
      inverse[j] = 1 / sqrt(4 - above * above - left * left);
    }
  }
  memset(solver->p, 0, ((size_t)solver->rows + 2) * ((size_t)solver->columns + 2) * sizeof(double));
}

static void begin(Solver* solver) {
  fill(solver);
  solve_forward(solver, solver->r, solver->s);
  residual(solver);
  start_sum(solver);
  solver->rho = finish_sum(solver);
  backward(solver);
  advance(solver);
}

/* One that is not calculated has no more rows than it sends. */
static void fall_asleep(Solver* solver, const char* lengths) {
  for (int phase = 0; phase < PHASES; ++phase) {
    char* end;
    solver->asleep_s[phase] = strtod(lengths, &end) / 1e3;
    if (end == lengths || *end != (phase + 1 < PHASES ? ',' : 0)) MPI_Abort(MPI_COMM_WORLD, 2);
    lengths = end + 1;
  }
  solver->asleep = 1;
  if (solver->rows > 2) solver->rows = 2;
  prctl(PR_SET_TIMERSLACK, 1UL); /* the usual 50 us a sleep are much of a short phase */
}

static Solver make_solver(int hidden, int size, const char* asleep, int rank, int ranks) {
  const int first = (int)((long)size * rank / ranks), end = (int)((long)size * (rank + 1) / ranks);
  Solver solver = {.hidden = hidden,
                   .columns = size,
                   .all_rows = size,
                   .first = first,
                   .rows = end - first,
                   .above = rank > 0 ? rank - 1 : MPI_PROC_NULL,
                   .below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL};
  if (asleep) fall_asleep(&solver, asleep);
  double** const fields[] = {&solver.inverse, &solver.x,    &solver.r, &solver.s,
                             &solver.p,       &solver.last, &solver.q, &solver.z};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i)
    *fields[i] = room_for(((size_t)solver.rows + 2) * ((size_t)size + 2), sizeof(double));
  return solver;
}

static uint64_t digest(Solver* solver) {
  uint64_t all = 0;
  if (solver->hidden) add(solver, solver->alpha, solver->last, solver->x);
  for (int row = 1; row <= solver->rows; ++row)
    all ^= digest_of(row_of(solver, solver->x, row), (size_t)solver->columns,
                     (uint64_t)(solver->first + row - 1) * (uint64_t)solver->columns);
  return all;
}

/* The greatest error of x, of all ranks. */
static double error_of(Solver* solver) {
  double most = 0, all = 0;
  for (int row = 1; row <= solver->rows; ++row)
    for (int j = 0; j < solver->columns; ++j)
      most = fmax(
          most, fabs(row_of(solver, solver->x, row)[j] - exact_solution(solver, solver->first + row, j + 1)));
  MPI_Reduce(&most, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int hidden = argc < 2 || strcmp(argv[1], "blocking") != 0;
  const int size = number(argc, argv, 2, 512), steps = number(argc, argv, 3, 20);
  if (size < ranks) MPI_Abort(MPI_COMM_WORLD, 2);
  Solver solver = make_solver(hidden, size, argc > 4 ? argv[4] : NULL, rank, ranks);
  begin(&solver);

  const double step_ms = time_steps(step, &solver, steps);
  say("cg", steps, step_ms, digest(&solver));
  const double error = error_of(&solver), *const seconds = solver.message_s, each = 1e3 / steps;
  if (rank == 0) {
    fprintf(stderr, "cg: starting sums %.3f ms, waiting for them %.3f ms, for the halo %.3f ms\n",
            seconds[START] * each, seconds[SUMS] * each, seconds[HALO] * each);
    if (!solver.asleep) fprintf(stderr, "cg: greatest error %.3g\n", error);
  }
  double* const fields[] = {solver.inverse, solver.x,    solver.r, solver.s,
                            solver.p,       solver.last, solver.q, solver.z};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) free(fields[i]);
  MPI_Finalize();
  return 0;
}
