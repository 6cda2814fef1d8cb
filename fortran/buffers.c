/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of parc.h that take a buffer, for Fortran's descriptors of arrays. A buffer is any variable, of
 * any type and rank. A section that does not lie in one piece is a message of its runs, in the order of its
 * elements: no temporary copy of it is made, which would be gone before a read or write has ended.
 */
#include <parc/parc.h>

#include <ISO_Fortran_binding.h>
#include <limits.h>

enum { most_pieces = 1024 };

struct runs {
  int count; /* more than most_pieces are counted, and not listed: libparc refuses so many, and says so */
  struct iovec pieces[most_pieces];
};

/* The dimensions from `*dimension` on are those that its runs are repeated in. */
static size_t run_length(const CFI_cdesc_t* buffer, int* dimension) {
  size_t length = buffer->elem_len;
  for (*dimension = 0; *dimension < buffer->rank; ++*dimension) {
    const CFI_dim_t* const dim = &buffer->dim[*dimension];
    if (dim->extent != 1 && dim->sm != (ptrdiff_t)length) break;
    length *= (size_t)dim->extent;
  }
  return length;
}

static int is_empty(const CFI_cdesc_t* buffer) {
  for (int d = 0; d < buffer->rank; ++d)
    if (buffer->dim[d].extent == 0) return 1;
  return buffer->elem_len == 0 || buffer->base_addr == NULL;
}

/* Of a dummy argument like a(*) nobody knows how long it is. */
static int is_endless(const CFI_cdesc_t* buffer) {
  return buffer->rank > 0 && buffer->dim[buffer->rank - 1].extent < 0;
}

static void split(const CFI_cdesc_t* buffer, struct runs* runs) {
  runs->count = 0;
  if (is_empty(buffer)) return;
  int inner;
  const size_t length = run_length(buffer, &inner);
  size_t count = 1;
  for (int d = inner; d < buffer->rank; ++d) count *= (size_t)buffer->dim[d].extent;
  runs->count = count < INT_MAX ? (int)count : INT_MAX;
  if (count > most_pieces) return;
  for (size_t i = 0; i < count; ++i) {
    char* at = buffer->base_addr;
    size_t rest = i;
    for (int d = inner; d < buffer->rank; ++d) {
      const size_t extent = (size_t)buffer->dim[d].extent;
      at += (ptrdiff_t)(rest % extent) * buffer->dim[d].sm;
      rest /= extent;
    }
    runs->pieces[i] = (struct iovec){at, length};
  }
}

parc_op parc_fortran_initread(parc_context* context, int peer, int tag, const CFI_cdesc_t* buffer) {
  if (is_endless(buffer)) return parc_initread(context, peer, tag, buffer->base_addr, SIZE_MAX);
  struct runs runs;
  split(buffer, &runs);
  const parc_envelope envelope = parc_envelope_of(peer, 0, tag);
  return parc_initreadv(context, &envelope, runs.pieces, runs.count, 0);
}

parc_op parc_fortran_initwrite(parc_context* context, int peer, int tag, const CFI_cdesc_t* buffer) {
  if (is_endless(buffer)) return parc_initwrite(context, peer, tag, buffer->base_addr, SIZE_MAX);
  struct runs runs;
  split(buffer, &runs);
  const parc_envelope envelope = parc_envelope_of(peer, 0, tag);
  return parc_initwritev(context, &envelope, runs.pieces, runs.count, 0);
}

int parc_fortran_read(parc_context* context, int peer, int tag, const CFI_cdesc_t* buffer,
                      parc_status* status) {
  const parc_op operation = parc_fortran_initread(context, peer, tag, buffer);
  return operation < 0 ? (int)operation : parc_wait(context, operation, status);
}

int parc_fortran_write(parc_context* context, int peer, int tag, const CFI_cdesc_t* buffer) {
  const parc_op operation = parc_fortran_initwrite(context, peer, tag, buffer);
  return operation < 0 ? (int)operation : parc_wait(context, operation, NULL);
}

int parc_fortran_expose(parc_context* context, int64_t window, const CFI_cdesc_t* memory, int rights) {
  if (is_endless(memory))
    return parc_expose(context, (uint64_t)window, memory->base_addr, SIZE_MAX, (unsigned)rights);
  struct runs runs;
  split(memory, &runs);
  const struct iovec nothing = {memory->base_addr, 0};
  const struct iovec whole = runs.count == 0 ? nothing : runs.pieces[0];
  /* More than there is: libparc says that it is no piece of memory that it knows. */
  const size_t bytes = runs.count > 1 ? SIZE_MAX : whole.iov_len;
  return parc_expose(context, (uint64_t)window, whole.iov_base, bytes, (unsigned)rights);
}

parc_op parc_fortran_initget(parc_context* context, const parc_place* from, const CFI_cdesc_t* buffer,
                             int flags) {
  if (is_endless(buffer)) return parc_initget(context, from, buffer->base_addr, SIZE_MAX, (unsigned)flags);
  struct runs runs;
  split(buffer, &runs);
  return parc_initgetv(context, from, runs.pieces, runs.count, (unsigned)flags);
}

int parc_fortran_get(parc_context* context, const parc_place* from, const CFI_cdesc_t* buffer) {
  const parc_op operation = parc_fortran_initget(context, from, buffer, 0);
  return operation < 0 ? (int)operation : parc_wait(context, operation, NULL);
}

parc_op parc_fortran_initput(parc_context* context, const parc_place* to, const CFI_cdesc_t* buffer,
                             int flags) {
  if (is_endless(buffer)) return parc_initput(context, to, buffer->base_addr, SIZE_MAX, (unsigned)flags);
  struct runs runs;
  split(buffer, &runs);
  return parc_initputv(context, to, runs.pieces, runs.count, (unsigned)flags);
}

/* More bytes than there are, in one piece: libparc says so. */
static const struct iovec* pieces_of(const CFI_cdesc_t* buffer, struct runs* runs) {
  if (is_endless(buffer)) {
    runs->count = 1;
    runs->pieces[0].iov_base = buffer->base_addr;
    runs->pieces[0].iov_len = SIZE_MAX;
  } else {
    split(buffer, runs);
  }
  return runs->pieces;
}

parc_op parc_fortran_initget_rows(parc_context* context, const parc_place* from, int64_t row, int64_t stride,
                                  const CFI_cdesc_t* buffer, int flags) {
  struct runs runs;
  const struct iovec* pieces = pieces_of(buffer, &runs);
  return parc_initget_rows(context, from, (size_t)row, stride, pieces, runs.count, (unsigned)flags);
}

parc_op parc_fortran_initput_rows(parc_context* context, const parc_place* to, int64_t row, int64_t stride,
                                  const CFI_cdesc_t* buffer, int flags) {
  struct runs runs;
  const struct iovec* pieces = pieces_of(buffer, &runs);
  return parc_initput_rows(context, to, (size_t)row, stride, pieces, runs.count, (unsigned)flags);
}

int parc_fortran_put(parc_context* context, const parc_place* to, const CFI_cdesc_t* buffer) {
  const parc_op operation = parc_fortran_initput(context, to, buffer, 0);
  return operation < 0 ? (int)operation : parc_wait(context, operation, NULL);
}

int parc_fortran_settle(parc_context* context, const CFI_cdesc_t* buffer) {
  if (buffer == NULL || is_endless(buffer)) return parc_settle(context, NULL, 0);
  struct runs runs;
  split(buffer, &runs);
  if (runs.count > most_pieces) return parc_settle(context, NULL, 0);
  for (int i = 0; i < runs.count; ++i) {
    const int code = parc_settle(context, runs.pieces[i].iov_base, runs.pieces[i].iov_len);
    if (code < 0) return code;
  }
  return PARC_OK;
}
