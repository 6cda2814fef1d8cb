// SPDX-License-Identifier: BSD-3-Clause
// The forms in which libfabric has a message sent and received (fi_msg(3), fi_tagged(3)): each is a Transfer.
#include "fabric/endpoint.hpp"
#include "fabric/info.hpp"

namespace parc::fabric {
namespace {

ssize_t send(fid_ep* of, const Transfer& transfer, bool told = true) {
  return guarded([&] { return object_of<Endpoint>(of).send(transfer, told); });
}

ssize_t receive(fid_ep* of, const Transfer& transfer) {
  return guarded([&] { return object_of<Endpoint>(of).receive(transfer); });
}

// Of the calls with all of it; what they have in flags is all that holds.
Transfer transfer_of(const fi_msg& message, std::uint64_t flags) {
  return {.pieces = {message.msg_iov, message.iov_count},
          .address = message.addr,
          .data = (flags & FI_REMOTE_CQ_DATA) != 0 ? message.data : 0,
          .context = message.context,
          .flags = flags};
}

Transfer transfer_of(const fi_msg_tagged& message, std::uint64_t flags) {
  return {.pieces = {message.msg_iov, message.iov_count},
          .address = message.addr,
          .tag = message.tag,
          .ignore = message.ignore,
          .data = (flags & FI_REMOTE_CQ_DATA) != 0 ? message.data : 0,
          .context = message.context,
          .flags = flags,
          .tagged = true};
}

// ---- Messages without a tag

ssize_t msg_recv(fid_ep* of, void* buffer, std::size_t length, void*, fi_addr_t source, void* context) {
  const iovec whole = piece(buffer, length);
  return receive(of, {.pieces = {&whole, 1},
                      .address = source,
                      .context = context,
                      .flags = object_of<Endpoint>(of).receive_flags});
}

ssize_t msg_recvv(fid_ep* of, const iovec* pieces, void**, std::size_t count, fi_addr_t source,
                  void* context) {
  return receive(of, {.pieces = {pieces, count},
                      .address = source,
                      .context = context,
                      .flags = object_of<Endpoint>(of).receive_flags});
}

ssize_t msg_recvmsg(fid_ep* of, const fi_msg* message, std::uint64_t flags) {
  return receive(of, transfer_of(*message, flags));
}

ssize_t msg_sendv(fid_ep* of, const iovec* pieces, void**, std::size_t count, fi_addr_t to, void* context) {
  return send(of, {.pieces = {pieces, count},
                   .address = to,
                   .context = context,
                   .flags = object_of<Endpoint>(of).message_flags});
}

ssize_t msg_sendmsg(fid_ep* of, const fi_msg* message, std::uint64_t flags) {
  return send(of, transfer_of(*message, flags));
}

// `with_data`: FI_REMOTE_CQ_DATA, or 0.
ssize_t msg_send_one(fid_ep* of, const void* buffer, std::size_t length, std::uint64_t with_data,
                     std::uint64_t data, fi_addr_t to, void* context) {
  const iovec whole = piece(buffer, length);
  return send(of, {.pieces = {&whole, 1},
                   .address = to,
                   .data = data,
                   .context = context,
                   .flags = object_of<Endpoint>(of).message_flags | with_data});
}

ssize_t msg_senddata(fid_ep* of, const void* buffer, std::size_t length, void*, std::uint64_t data,
                     fi_addr_t to, void* context) {
  return msg_send_one(of, buffer, length, FI_REMOTE_CQ_DATA, data, to, context);
}

ssize_t msg_send(fid_ep* of, const void* buffer, std::size_t length, void*, fi_addr_t to, void* context) {
  return msg_send_one(of, buffer, length, 0, 0, to, context);
}

ssize_t msg_inject_one(fid_ep* of, const void* buffer, std::size_t length, std::uint64_t with_data,
                       std::uint64_t data, fi_addr_t to) {
  if (length > inject_bytes) return -FI_EMSGSIZE;
  const iovec whole = piece(buffer, length);
  return send(of, {.pieces = {&whole, 1}, .address = to, .data = data, .flags = with_data}, false);
}

ssize_t msg_injectdata(fid_ep* of, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t to) {
  return msg_inject_one(of, buffer, length, FI_REMOTE_CQ_DATA, data, to);
}

ssize_t msg_inject(fid_ep* of, const void* buffer, std::size_t length, fi_addr_t to) {
  return msg_inject_one(of, buffer, length, 0, 0, to);
}

// ---- Messages with one

ssize_t tagged_recvv(fid_ep* of, const iovec* pieces, void**, std::size_t count, fi_addr_t source,
                     std::uint64_t tag, std::uint64_t ignore, void* context) {
  return receive(of, {.pieces = {pieces, count},
                      .address = source,
                      .tag = tag,
                      .ignore = ignore,
                      .context = context,
                      .flags = object_of<Endpoint>(of).receive_flags,
                      .tagged = true});
}

ssize_t tagged_recv(fid_ep* of, void* buffer, std::size_t length, void* descriptor, fi_addr_t source,
                    std::uint64_t tag, std::uint64_t ignore, void* context) {
  const iovec whole = piece(buffer, length);
  return tagged_recvv(of, &whole, &descriptor, 1, source, tag, ignore, context);
}

ssize_t tagged_recvmsg(fid_ep* of, const fi_msg_tagged* message, std::uint64_t flags) {
  return receive(of, transfer_of(*message, flags));
}

ssize_t tagged_sendv(fid_ep* of, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                     std::uint64_t tag, void* context) {
  return send(of, {.pieces = {pieces, count},
                   .address = to,
                   .tag = tag,
                   .context = context,
                   .flags = object_of<Endpoint>(of).message_flags,
                   .tagged = true});
}

ssize_t tagged_sendmsg(fid_ep* of, const fi_msg_tagged* message, std::uint64_t flags) {
  return send(of, transfer_of(*message, flags));
}

ssize_t tagged_send_one(fid_ep* of, const void* buffer, std::size_t length, std::uint64_t with_data,
                        std::uint64_t data, fi_addr_t to, std::uint64_t tag, void* context) {
  const iovec whole = piece(buffer, length);
  return send(of, {.pieces = {&whole, 1},
                   .address = to,
                   .tag = tag,
                   .data = data,
                   .context = context,
                   .flags = object_of<Endpoint>(of).message_flags | with_data,
                   .tagged = true});
}

ssize_t tagged_senddata(fid_ep* of, const void* buffer, std::size_t length, void*, std::uint64_t data,
                        fi_addr_t to, std::uint64_t tag, void* context) {
  return tagged_send_one(of, buffer, length, FI_REMOTE_CQ_DATA, data, to, tag, context);
}

ssize_t tagged_send(fid_ep* of, const void* buffer, std::size_t length, void*, fi_addr_t to,
                    std::uint64_t tag, void* context) {
  return tagged_send_one(of, buffer, length, 0, 0, to, tag, context);
}

ssize_t tagged_inject_one(fid_ep* of, const void* buffer, std::size_t length, std::uint64_t with_data,
                          std::uint64_t data, fi_addr_t to, std::uint64_t tag) {
  if (length > inject_bytes) return -FI_EMSGSIZE;
  const iovec whole = piece(buffer, length);
  return send(
      of,
      {.pieces = {&whole, 1}, .address = to, .tag = tag, .data = data, .flags = with_data, .tagged = true},
      false);
}

ssize_t tagged_injectdata(fid_ep* of, const void* buffer, std::size_t length, std::uint64_t data,
                          fi_addr_t to, std::uint64_t tag) {
  return tagged_inject_one(of, buffer, length, FI_REMOTE_CQ_DATA, data, to, tag);
}

ssize_t tagged_inject(fid_ep* of, const void* buffer, std::size_t length, fi_addr_t to, std::uint64_t tag) {
  return tagged_inject_one(of, buffer, length, 0, 0, to, tag);
}

} // namespace

fi_ops_msg message_calls{.size = sizeof(fi_ops_msg),
                         .recv = msg_recv,
                         .recvv = msg_recvv,
                         .recvmsg = msg_recvmsg,
                         .send = msg_send,
                         .sendv = msg_sendv,
                         .sendmsg = msg_sendmsg,
                         .inject = msg_inject,
                         .senddata = msg_senddata,
                         .injectdata = msg_injectdata};

fi_ops_tagged tagged_calls{.size = sizeof(fi_ops_tagged),
                           .recv = tagged_recv,
                           .recvv = tagged_recvv,
                           .recvmsg = tagged_recvmsg,
                           .send = tagged_send,
                           .sendv = tagged_sendv,
                           .sendmsg = tagged_sendmsg,
                           .inject = tagged_inject,
                           .senddata = tagged_senddata,
                           .injectdata = tagged_injectdata};

} // namespace parc::fabric
