/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs over libfabric have in common: an endpoint with one completion queue, the address of the
 * other process (or of this one, where it is alone), and an end with a sentence when something is not as it
 * must be. */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <fcntl.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fi_info* info;
static struct fid_fabric* fabric;
static struct fid_domain* domain;
static struct fid_av* vector;
static struct fid_cq* queue;
static struct fid_ep* endpoint;
static fi_addr_t peer;

#define expect(right) expect_at(right, #right, __LINE__)
static inline void expect_at(int right, const char* what, int line) {
  if (right) return;
  fprintf(stderr, "line %d: not so: %s\n", line, what);
  exit(3);
}

#define check(call) check_at(call, #call, __LINE__)
static inline void check_at(ssize_t code, const char* call, int line) {
  if (code >= 0) return;
  fprintf(stderr, "line %d: %s: %s\n", line, call, fi_strerror((int)-code));
  exit(3);
}

/* The hints that every program begins with. */
static inline struct fi_info* hints_for(uint64_t capabilities) {
  struct fi_info* hints = fi_allocinfo();
  hints->caps = capabilities;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("parc");
  return hints;
}

static inline void open_domain(uint64_t capabilities) {
  struct fi_info* hints = hints_for(capabilities);
  check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
  fi_freeinfo(hints);
  check(fi_fabric(info->fabric_attr, &fabric, NULL));
  check(fi_domain(fabric, info, &domain, NULL));
}

static inline void open_endpoint(enum fi_wait_obj wait_object) {
  struct fi_av_attr of_vector = {.type = FI_AV_TABLE};
  struct fi_cq_attr of_queue = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait_object};
  check(fi_av_open(domain, &of_vector, &vector, NULL));
  check(fi_cq_open(domain, &of_queue, &queue, NULL));
  check(fi_endpoint(domain, info, &endpoint, NULL));
  check(fi_ep_bind(endpoint, &vector->fid, 0));
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
  check(fi_enable(endpoint));
}

/* Through files in a directory: DIRECTORY/0 and DIRECTORY/1. */
static inline void meet(const char* directory, int rank) {
  char address[64], name[4096], temporary[4100];
  size_t length = sizeof address;
  check(fi_getname(&endpoint->fid, address, &length));
  if (directory) {
    snprintf(name, sizeof name, "%s/%d", directory, rank);
    snprintf(temporary, sizeof temporary, "%s.new", name);
    int file = open(temporary, O_WRONLY | O_CREAT, 0600);
    expect(file >= 0 && write(file, address, length) == (ssize_t)length && close(file) == 0);
    expect(rename(temporary, name) == 0);
    snprintf(name, sizeof name, "%s/%d", directory, 1 - rank);
    while ((file = open(name, O_RDONLY)) < 0) {
      expect(errno == ENOENT);
      sched_yield();
    }
    expect(read(file, address, length) == (ssize_t)length && close(file) == 0);
  }
  expect(fi_av_insert(vector, address, 1, &peer, 0, NULL) == 1);
}

/* The next completion, which must be a success. */
static inline struct fi_cq_tagged_entry next_completion(void) {
  struct fi_cq_tagged_entry entry;
  ssize_t code = 0;
  while ((code = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) {
  }
  check(code);
  return entry;
}

static inline void close_all(void) {
  check(fi_close(&endpoint->fid));
  check(fi_close(&queue->fid));
  check(fi_close(&vector->fid));
  check(fi_close(&domain->fid));
  check(fi_close(&fabric->fid));
  fi_freeinfo(info);
}

#endif
