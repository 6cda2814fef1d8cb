/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Particles under pairwise forces (N-Body of erMPI 2005) as a plain MPI program, as many on each rank. In
 * every step a rank sums the forces on its particles, its own block of sources first and then those of the
 * other ranks, moves them, and sends them to all others.
 *
 *     mpicc -O2 nbody.c -o nbody -lm && mpirun -np 4 nbody [PARTICLES [STEPS]]
 */
#include "result.h"

#include <math.h>

typedef struct Particle {
  double x, y, z, mass;
} Particle;
typedef struct Vector {
  double x, y, z;
} Vector;

typedef struct Cloud {
  int rank, ranks;
  int particles;     /* of all ranks */
  Particle** blocks; /* of each rank */
  Vector *velocities, *forces;
  MPI_Request* requests;
} Cloud;

static int first_of(const Cloud* cloud, int rank) {
  return (int)((long)cloud->particles * rank / cloud->ranks);
}

static int size_of(const Cloud* cloud, int rank) {
  return first_of(cloud, rank + 1) - first_of(cloud, rank);
}

/* The same particles however many ranks there are. */
static Particle* make_block(int first, int size) {
  Particle* const block = room_for((size_t)size, sizeof *block);
  for (int i = 0; i < size; ++i) {
    const double t = first + i;
    const Particle made = {fmod(t * 0.754877666, 1), fmod(t * 0.569840290, 1), fmod(t * 0.438579021, 1),
                           1 + fmod(t * 0.31, 1)};
    block[i] = made;
  }
  return block;
}

static void add_forces(Cloud* cloud, int from) {
  const double softening = 1e-2;
  const Particle* const targets = cloud->blocks[cloud->rank];
  const Particle* const sources = cloud->blocks[from];
  const int count = size_of(cloud, from);
  for (int i = 0; i < size_of(cloud, cloud->rank); ++i) {
    Vector sum = cloud->forces[i];
    for (int k = 0; k < count; ++k) {
      const double x = sources[k].x - targets[i].x, y = sources[k].y - targets[i].y,
                   z = sources[k].z - targets[i].z;
      const double squared = x * x + y * y + z * z + softening;
      const double pull = sources[k].mass / (squared * sqrt(squared));
      sum.x += pull * x;
      sum.y += pull * y;
      sum.z += pull * z;
    }
    cloud->forces[i] = sum;
  }
}

static void move(Cloud* cloud) {
  const double time_step = 1e-3;
  Particle* const own = cloud->blocks[cloud->rank];
  for (int i = 0; i < size_of(cloud, cloud->rank); ++i) {
    Vector* const velocity = &cloud->velocities[i];
    velocity->x += time_step * cloud->forces[i].x;
    velocity->y += time_step * cloud->forces[i].y;
    velocity->z += time_step * cloud->forces[i].z;
    own[i].x += time_step * velocity->x;
    own[i].y += time_step * velocity->y;
    own[i].z += time_step * velocity->z;
  }
}

/* Nearest first, as they are needed there: the rank before this one needs this block next after its own. */
static void exchange(Cloud* cloud) {
  for (int i = 1; i < cloud->ranks; ++i) {
    const int from = (cloud->rank + i) % cloud->ranks;
    MPI_Irecv(cloud->blocks[from], 4 * size_of(cloud, from), MPI_DOUBLE, from, 0, MPI_COMM_WORLD,
              &cloud->requests[i - 1]);
  }
  for (int i = 1; i < cloud->ranks; ++i)
    MPI_Send(cloud->blocks[cloud->rank], 4 * size_of(cloud, cloud->rank), MPI_DOUBLE,
             (cloud->rank + cloud->ranks - i) % cloud->ranks, 0, MPI_COMM_WORLD);
  MPI_Waitall(cloud->ranks - 1, cloud->requests, MPI_STATUSES_IGNORE);
}

static void step(void* state) {
  Cloud* const cloud = state;
  memset(cloud->forces, 0, (size_t)size_of(cloud, cloud->rank) * sizeof *cloud->forces);
  for (int i = 0; i < cloud->ranks; ++i) add_forces(cloud, (cloud->rank + i) % cloud->ranks);
  move(cloud);
  exchange(cloud);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Cloud cloud = {.particles = number(argc, argv, 1, 1024)};
  MPI_Comm_rank(MPI_COMM_WORLD, &cloud.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &cloud.ranks);
  const int steps = number(argc, argv, 2, 20);
  const size_t ranks = (size_t)cloud.ranks, own = (size_t)size_of(&cloud, cloud.rank);
  cloud.blocks = room_for(ranks, sizeof *cloud.blocks);
  for (int i = 0; i < cloud.ranks; ++i) cloud.blocks[i] = make_block(first_of(&cloud, i), size_of(&cloud, i));
  cloud.velocities = room_for(own, sizeof *cloud.velocities);
  cloud.forces = room_for(own, sizeof *cloud.forces);
  cloud.requests = room_for(ranks, sizeof *cloud.requests);

  const double step_ms = time_steps(step, &cloud, steps);
  say("nbody", steps, step_ms,
      digest_of(&cloud.blocks[cloud.rank]->x, 4 * own, 4 * (uint64_t)first_of(&cloud, cloud.rank)));
  for (int i = 0; i < cloud.ranks; ++i) free(cloud.blocks[i]);
  free(cloud.blocks);
  free(cloud.velocities);
  free(cloud.forces);
  free(cloud.requests);
  MPI_Finalize();
  return 0;
}
