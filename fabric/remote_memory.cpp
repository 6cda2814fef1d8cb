// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/remote_memory.hpp"

#include "fabric/endpoint.hpp"

#include <cstring>
#include <optional>

namespace parc::fabric {
namespace {

Endpoint& endpoint_of(fid_ep* of) {
  return object_of<Endpoint>(of);
}

ssize_t transfer(fid_ep* of, const RemoteTransfer& transfer) {
  return guarded([&] { return endpoint_of(of).transfer(transfer); });
}

// ---- Bytes

using Places = std::span<const fi_rma_iov>;

ssize_t get(fid_ep* of, const iovec* pieces, void** descriptors, std::size_t count, fi_addr_t from,
            Places places, void* context, std::uint64_t flags) {
  return transfer(of, {.kind = Start::Kind::get,
                       .pieces = {pieces, count},
                       .address = from,
                       .places = places,
                       .descriptor = count == 1 && descriptors != nullptr ? descriptors[0] : nullptr,
                       .context = context,
                       .flags = flags});
}

ssize_t put(fid_ep* of, const iovec* pieces, std::size_t count, fi_addr_t to, Places places, void* context,
            std::uint64_t flags, bool told = true) {
  return transfer(of, {.kind = Start::Kind::put,
                       .pieces = {pieces, count},
                       .address = to,
                       .places = places,
                       .context = context,
                       .flags = flags,
                       .told = told});
}

ssize_t rma_readv(fid_ep* of, const iovec* pieces, void** descriptors, std::size_t count, fi_addr_t from,
                  std::uint64_t offset, std::uint64_t key, void* context) {
  const fi_rma_iov place{offset, 0, key};
  return get(of, pieces, descriptors, count, from, {&place, 1}, context, endpoint_of(of).send_flags);
}

ssize_t rma_read(fid_ep* of, void* buffer, std::size_t length, void* descriptor, fi_addr_t from,
                 std::uint64_t offset, std::uint64_t key, void* context) {
  const iovec whole = piece(buffer, length);
  return rma_readv(of, &whole, &descriptor, 1, from, offset, key, context);
}

ssize_t rma_readmsg(fid_ep* of, const fi_msg_rma* message, std::uint64_t flags) {
  return get(of, message->msg_iov, message->desc, message->iov_count, message->addr,
             {message->rma_iov, message->rma_iov_count}, message->context, flags);
}

ssize_t rma_writev(fid_ep* of, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                   std::uint64_t offset, std::uint64_t key, void* context) {
  const fi_rma_iov place{offset, 0, key};
  return put(of, pieces, count, to, {&place, 1}, context, endpoint_of(of).send_flags);
}

ssize_t rma_write(fid_ep* of, const void* buffer, std::size_t length, void* descriptor, fi_addr_t to,
                  std::uint64_t offset, std::uint64_t key, void* context) {
  const iovec whole = piece(buffer, length);
  return rma_writev(of, &whole, &descriptor, 1, to, offset, key, context);
}

ssize_t rma_writemsg(fid_ep* of, const fi_msg_rma* message, std::uint64_t flags) {
  return put(of, message->msg_iov, message->iov_count, message->addr,
             {message->rma_iov, message->rma_iov_count}, message->context, flags);
}

ssize_t rma_inject(fid_ep* of, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t offset,
                   std::uint64_t key) {
  if (length > inject_bytes) return -FI_EMSGSIZE;
  const iovec whole = piece(buffer, length);
  const fi_rma_iov place{offset, 0, key};
  return put(of, &whole, 1, to, {&place, 1}, nullptr, FI_INJECT, false);
}

// ---- Words

std::optional<std::size_t> width_of(fi_datatype type) {
  switch (type) {
  case FI_INT32:
  case FI_UINT32: return 4;
  case FI_INT64:
  case FI_UINT64: return 8;
  default: return {};
  }
}

enum class Form : std::uint8_t { plain, fetching, comparing };

std::optional<parc_atomic> atomic_of(fi_op operation, Form form) {
  switch (operation) {
  case FI_SUM: return form != Form::comparing ? std::optional(PARC_ADD) : std::nullopt;
  case FI_BAND: return form != Form::comparing ? std::optional(PARC_AND) : std::nullopt;
  case FI_BOR: return form != Form::comparing ? std::optional(PARC_OR) : std::nullopt;
  case FI_BXOR: return form != Form::comparing ? std::optional(PARC_XOR) : std::nullopt;
  case FI_ATOMIC_WRITE: return form != Form::comparing ? std::optional(PARC_SWAP) : std::nullopt;
  case FI_ATOMIC_READ: return form == Form::fetching ? std::optional(PARC_ADD) : std::nullopt; // of nothing
  case FI_CSWAP: return form == Form::comparing ? std::optional(PARC_COMPARE_SWAP) : std::nullopt;
  default: return {};
  }
}

std::uint64_t word_at(const void* buffer, std::size_t width) {
  std::uint64_t word = 0; // of four bytes the lower half
  if (buffer) std::memcpy(&word, buffer, width);
  return word;
}

struct OnWord {
  Form form = Form::plain;
  fi_datatype type = FI_UINT64;
  fi_op operation = FI_SUM;
  std::size_t count = 1;
  const void* operand = nullptr;
  const void* compare = nullptr;
  void* result = nullptr;
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::uint64_t offset = 0, key = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool told = true;
};

ssize_t operate(fid_ep* of, const OnWord& on) {
  const auto width = width_of(on.type);
  const auto what = atomic_of(on.operation, on.form);
  if (!width || !what) return -FI_EOPNOTSUPP;
  if (on.count != 1) return -FI_EINVAL;
  const bool reads = on.operation == FI_ATOMIC_READ;
  const fi_rma_iov place{on.offset, *width, on.key};
  return transfer(of, {.kind = Start::Kind::atomic,
                       .pieces = {},
                       .address = on.address,
                       .places = {&place, 1},
                       .atomic = {.what = *what,
                                  .width = *width,
                                  .operand = reads ? 0 : word_at(on.operand, *width),
                                  .compare = word_at(on.compare, *width)},
                       .result = on.result,
                       .context = on.context,
                       .flags = on.flags,
                       .told = on.told});
}

// As calls without flags have it.
OnWord on_word_at(fid_ep* of, fi_addr_t address, std::uint64_t offset, std::uint64_t key, fi_datatype type,
                  fi_op operation, std::size_t count, void* context) {
  return {.type = type,
          .operation = operation,
          .count = count,
          .address = address,
          .offset = offset,
          .key = key,
          .context = context,
          .flags = endpoint_of(of).send_flags};
}

ssize_t atomic_write(fid_ep* of, const void* operand, std::size_t count, void*, fi_addr_t to,
                     std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op operation,
                     void* context) {
  OnWord on = on_word_at(of, to, offset, key, type, operation, count, context);
  on.operand = operand;
  return operate(of, on);
}

ssize_t atomic_writev(fid_ep* of, const fi_ioc* words, void**, std::size_t count, fi_addr_t to,
                      std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op operation,
                      void* context) {
  if (count != 1) return -FI_EINVAL;
  return atomic_write(of, words->addr, words->count, nullptr, to, offset, key, type, operation, context);
}

OnWord on_word_of(const fi_msg_atomic& message, std::uint64_t flags) {
  return {.type = message.datatype,
          .operation = message.op,
          .count = message.rma_iov[0].count,
          .operand = message.iov_count != 0 ? message.msg_iov[0].addr : nullptr,
          .address = message.addr,
          .offset = message.rma_iov[0].addr,
          .key = message.rma_iov[0].key,
          .context = message.context,
          .flags = flags};
}

ssize_t atomic_writemsg(fid_ep* of, const fi_msg_atomic* message, std::uint64_t flags) {
  if (message->rma_iov_count != 1 || message->iov_count != 1) return -FI_EINVAL;
  return operate(of, on_word_of(*message, flags));
}

ssize_t atomic_inject(fid_ep* of, const void* operand, std::size_t count, fi_addr_t to, std::uint64_t offset,
                      std::uint64_t key, fi_datatype type, fi_op operation) {
  OnWord on = on_word_at(of, to, offset, key, type, operation, count, nullptr);
  on.operand = operand;
  on.told = false;
  return operate(of, on);
}

ssize_t atomic_readwrite(fid_ep* of, const void* operand, std::size_t count, void*, void* result, void*,
                         fi_addr_t to, std::uint64_t offset, std::uint64_t key, fi_datatype type,
                         fi_op operation, void* context) {
  OnWord on = on_word_at(of, to, offset, key, type, operation, count, context);
  on.form = Form::fetching;
  on.operand = operand;
  on.result = result;
  return operate(of, on);
}

ssize_t atomic_readwritev(fid_ep* of, const fi_ioc* words, void**, std::size_t count, fi_ioc* results, void**,
                          std::size_t result_count, fi_addr_t to, std::uint64_t offset, std::uint64_t key,
                          fi_datatype type, fi_op operation, void* context) {
  if (count > 1 || result_count != 1) return -FI_EINVAL;
  return atomic_readwrite(of, count != 0 ? words->addr : nullptr, results->count, nullptr, results->addr,
                          nullptr, to, offset, key, type, operation, context);
}

ssize_t atomic_readwritemsg(fid_ep* of, const fi_msg_atomic* message, fi_ioc* results, void**,
                            std::size_t result_count, std::uint64_t flags) {
  if (message->rma_iov_count != 1 || message->iov_count > 1 || result_count != 1) return -FI_EINVAL;
  OnWord on = on_word_of(*message, flags);
  on.form = Form::fetching;
  on.result = results->addr;
  return operate(of, on);
}

ssize_t atomic_compwrite(fid_ep* of, const void* operand, std::size_t count, void*, const void* compare,
                         void*, void* result, void*, fi_addr_t to, std::uint64_t offset, std::uint64_t key,
                         fi_datatype type, fi_op operation, void* context) {
  OnWord on = on_word_at(of, to, offset, key, type, operation, count, context);
  on.form = Form::comparing;
  on.operand = operand;
  on.compare = compare;
  on.result = result;
  return operate(of, on);
}

ssize_t atomic_compwritev(fid_ep* of, const fi_ioc* words, void**, std::size_t count, const fi_ioc* compare,
                          void**, std::size_t compare_count, fi_ioc* results, void**,
                          std::size_t result_count, fi_addr_t to, std::uint64_t offset, std::uint64_t key,
                          fi_datatype type, fi_op operation, void* context) {
  if (count != 1 || compare_count != 1 || result_count != 1) return -FI_EINVAL;
  return atomic_compwrite(of, words->addr, words->count, nullptr, compare->addr, nullptr, results->addr,
                          nullptr, to, offset, key, type, operation, context);
}

ssize_t atomic_compwritemsg(fid_ep* of, const fi_msg_atomic* message, const fi_ioc* compare, void**,
                            std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                            std::uint64_t flags) {
  if (message->rma_iov_count != 1 || message->iov_count != 1 || compare_count != 1 || result_count != 1)
    return -FI_EINVAL;
  OnWord on = on_word_of(*message, flags);
  on.form = Form::comparing;
  on.compare = compare->addr;
  on.result = results->addr;
  return operate(of, on);
}

template <Form form> int is_there(fid_ep*, fi_datatype type, fi_op operation, std::size_t* count) {
  if (!width_of(type) || !atomic_of(operation, form)) return -FI_EOPNOTSUPP;
  if (count) *count = 1;
  return 0;
}

} // namespace

int query_atomic(fid_domain*, fi_datatype type, fi_op operation, fi_atomic_attr* attributes,
                 std::uint64_t flags) {
  const Form form = (flags & FI_COMPARE_ATOMIC) != 0 ? Form::comparing
                    : (flags & FI_FETCH_ATOMIC) != 0 ? Form::fetching
                                                     : Form::plain;
  const auto width = width_of(type);
  if (!width || !atomic_of(operation, form)) return -FI_EOPNOTSUPP;
  *attributes = {.count = 1, .size = *width};
  return 0;
}

// Data of its own none can bring: its target hears nothing of it.
fi_ops_rma remote_memory_calls{
    .size = sizeof(fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = [](fid_ep*, const void*, std::size_t, void*, std::uint64_t, fi_addr_t, std::uint64_t,
                    std::uint64_t, void*) -> ssize_t { return -FI_ENOSYS; },
    .injectdata = [](fid_ep*, const void*, std::size_t, std::uint64_t, fi_addr_t, std::uint64_t,
                     std::uint64_t) -> ssize_t { return -FI_ENOSYS; },
};

fi_ops_atomic atomic_calls{
    .size = sizeof(fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = is_there<Form::plain>,
    .readwritevalid = is_there<Form::fetching>,
    .compwritevalid = is_there<Form::comparing>,
};

} // namespace parc::fabric
