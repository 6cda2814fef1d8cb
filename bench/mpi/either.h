/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs that run over libparc (-DPARC) or over MPI have in common, for bench/mpi.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

static int rank;

#ifdef PARC
#include <parc/parc.h>
static parc_context* parc;
static void need(int good) {
  if (good) return;
  fprintf(stderr, "%s\n", parc_error_detail());
  exit(1);
}
static void open_all(int* argc, char*** argv) {
  (void)argc, (void)argv;
  need(parc_open(&parc) == PARC_OK);
  rank = parc_rank(parc);
}
static double now(void) { /* s */
  return parc_clock();
}
static void meet(void) {
  need(parc_barrier(parc) == PARC_OK);
}
#else
#include <mpi.h>
static void open_all(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}
static double now(void) {
  return MPI_Wtime();
}
static void meet(void) {
  MPI_Barrier(MPI_COMM_WORLD);
}
#endif
