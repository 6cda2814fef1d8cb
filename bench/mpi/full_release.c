/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What early release of level full would bring to MPI: receives that return before their envelope is known,
 * for bench/mpi/full. Preloaded into programs that receive contiguous data from named sources, ignore
 * statuses and have one thread; a study, no part of what is installed.
 *
 * A receive goes into a buffer of this file's, and its own pages are closed until the program touches them:
 * the first touch waits for it, and each page is copied when it is touched. Where libparc's early release is
 * on, too, that wait ends with the envelope and the copy of a page with its bytes. Pages that others share
 * with the buffer are closed with it: nothing is known yet that could be put there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most = 256, page = 4096, least = 2 * page };

enum state { unused, posted, closed };
typedef struct Release {
  enum state state;
  char *buffer, *shadow;
  void* block;            /* that the shadow is in */
  size_t length, room;    /* of the shadow */
  unsigned char* is_open; /* each page, once it has been touched */
  char *begin, *end;      /* whole pages */
  size_t closed_pages;
  MPI_Request request;
} Release;
static Release releases[most];
static struct sigaction before;

static char* page_of(const void* place) {
  return (char*)((uintptr_t)place & ~(uintptr_t)(page - 1));
}

static void arrive(Release* release) {
  if (release->request != MPI_REQUEST_NULL) PMPI_Wait(&release->request, MPI_STATUS_IGNORE);
}

static int covers(const Release* release, const char* at) {
  return release->state == closed && release->begin <= at && at < release->end &&
         !release->is_open[(at - release->begin) / page];
}

static void copy_page(Release* release, char* at) {
  char* const first = at > release->buffer ? at : release->buffer;
  char* const last = release->buffer + release->length;
  char* const end = at + page < last ? at + page : last;
  release->is_open[(at - release->begin) / page] = 1;
  if (first < end) memcpy(first, release->shadow + (first - release->buffer), (size_t)(end - first));
  if (--release->closed_pages == 0) release->state = unused;
}

/* Of all that share it. */
static int touch(char* at) {
  int found = 0;
  for (Release* each = releases; each < releases + most; ++each)
    if (covers(each, at)) {
      arrive(each);
      found = 1;
    }
  if (found) mprotect(at, page, PROT_READ | PROT_WRITE);
  for (Release* each = releases; each < releases + most; ++each)
    if (covers(each, at)) copy_page(each, at);
  return found;
}

static void settle(Release* release) {
  for (char* at = release->begin; release->state == closed && at < release->end; at += page)
    if (covers(release, at)) touch(at);
}

static void settle_range(const void* buffer, size_t length) {
  const char *const begin = page_of(buffer), *const end = (const char*)buffer + length;
  for (Release* each = releases; each < releases + most; ++each)
    if (each->state == closed && begin < each->end && each->begin < end) settle(each);
}

static void settle_all(void) {
  for (Release* each = releases; each < releases + most; ++each) settle(each);
}

static void on_fault(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGSEGV);
  sigprocmask(SIG_UNBLOCK, &mine, NULL); /* the copy may touch what libparc has closed */
  const int found = touch(page_of(info->si_addr));
  errno = kept;
  if (found) return;
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(number, info, context);
  else
    signal(SIGSEGV, SIG_DFL);
}

static size_t bytes_of(int count, MPI_Datatype type) {
  MPI_Aint least_bound, extent;
  int size = 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &least_bound, &extent);
  return least_bound == 0 && extent == size ? (size_t)count * (size_t)size : 0;
}

static MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint least_bound, extent;
  PMPI_Type_get_extent(type, &least_bound, &extent);
  return extent;
}

/* None: it is not one that may return early. */
static Release* post(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm) {
  const size_t length = bytes_of(count, type);
  settle_range(buffer, (size_t)count * (size_t)extent_of(type));
  if (length < least || source < 0) return NULL;
  Release* free_one = releases;
  while (free_one < releases + most && free_one->state != unused) ++free_one;
  if (free_one == releases + most) return NULL;
  Release* const made = free_one;
  made->buffer = buffer;
  made->length = length;
  made->begin = page_of(buffer);
  made->end = page_of((char*)buffer + length + page - 1);
  const size_t pages = (size_t)(made->end - made->begin) / page;
  if (length > made->room) {
    free(made->block);
    made->block = malloc(length + page);
    made->is_open = realloc(made->is_open, pages + 1);
    if (!made->block || !made->is_open) MPI_Abort(comm, 1);
    made->shadow = page_of((char*)made->block + page - 1);
    made->room = length;
  }
  memset(made->is_open, 0, pages);
  PMPI_Irecv(made->shadow, count, type, source, tag, comm, &made->request);
  made->state = posted;
  return made;
}

static void close_pages(Release* release) {
  release->closed_pages = (size_t)(release->end - release->begin) / page;
  release->state = closed;
  mprotect(release->begin, (size_t)(release->end - release->begin), PROT_NONE);
}

/* Mapped for itself, so it is zero, and free() finds its chunk. */
void* calloc(size_t count, size_t size) {
  static void* (*usual)(size_t, size_t);
  static char first[4096]; /* of dlsym */
  static size_t taken;
  if (!usual) {
    if (taken) { /* within dlsym */
      void* const part = first + taken;
      taken += (count * size + 15) / 16 * 16;
      return taken <= sizeof first ? part : NULL;
    }
    taken = 16;
    usual = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
  }
  void* block = NULL;
  if (count * size < least || posix_memalign(&block, page, count * size) != 0) return usual(count, size);
  return memset(block, 0, count * size);
}

int MPI_Init(int* count, char*** words) {
  const int code = PMPI_Init(count, words);
  const struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &ours, &before);
  return code;
}

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  const int may_go = status == MPI_STATUS_IGNORE;
  if (!may_go) settle_range(buffer, (size_t)count * (size_t)extent_of(type));
  Release* const release = may_go ? post(buffer, count, type, source, tag, comm) : NULL;
  if (!release) return PMPI_Recv(buffer, count, type, source, tag, comm, status);
  close_pages(release);
  return MPI_SUCCESS;
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  Release* const release = post(buffer, count, type, source, tag, comm);
  if (!release) return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
  *request = release->request;
  return MPI_SUCCESS;
}

static void release_early(MPI_Request* request) {
  for (Release* each = releases; *request != MPI_REQUEST_NULL && each < releases + most; ++each)
    if (each->state == posted && each->request == *request) {
      close_pages(each);
      *request = MPI_REQUEST_NULL;
    }
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  for (int i = 0; i < count; ++i) release_early(&requests[i]);
  return PMPI_Waitall(count, requests, statuses);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  release_early(request);
  return PMPI_Wait(request, status);
}

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  settle_range(buffer, bytes_of(count, type));
  return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  settle_range(buffer, bytes_of(count, type));
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in,
                 int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status* status) {
  MPI_Request sent;
  MPI_Isend(out, out_count, out_type, to, out_tag, comm, &sent);
  const int code = MPI_Recv(in, in_count, in_type, from, in_tag, comm, status);
  PMPI_Wait(&sent, MPI_STATUS_IGNORE);
  return code;
}

int MPI_Barrier(MPI_Comm comm) {
  settle_all();
  return PMPI_Barrier(comm);
}

int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  settle_all();
  return PMPI_Allreduce(out, in, count, type, op, comm);
}

int MPI_Allgather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count,
                  MPI_Datatype in_type, MPI_Comm comm) {
  settle_all();
  return PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm);
}

int MPI_Reduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  settle_all();
  return PMPI_Reduce(out, in, count, type, op, root, comm);
}

int MPI_Finalize(void) {
  settle_all();
  return PMPI_Finalize();
}
