// SPDX-License-Identifier: BSD-3-Clause
// Calls that take bytes out of a range or bring some in, by every way that a program has for that.
#pragma once

#include "tests/support/programs/calls/state.hpp"

#include <aio.h>
#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

namespace calls {

inline constexpr std::size_t of_pipe = 60'000; // fits into one, wherever in a page it begins

// ---- Out

inline void write_to_pipe(State& at, Range range) {
  range = range.no_more_than(of_pipe);
  at.whole(write(at.pipe[1], range.memory(), range.bytes), range.bytes);
  at.read_back(range, at.pipe[0], "through a pipe");
}

inline void write_by_number(State& at, Range range) {
  range = range.no_more_than(of_pipe);
  at.whole(syscall(SYS_write, at.pipe[1], range.memory(), range.bytes), range.bytes);
  at.read_back(range, at.pipe[0], "through a pipe by number");
}

inline void write_pieces(State& at, Range range) {
  range = range.no_more_than(of_pipe);
  const std::size_t middle = at.random.below(range.bytes + 1);
  const iovec pieces[] = {{range.memory(), middle}, {range.memory() + middle, range.bytes - middle}};
  at.whole(writev(at.pipe[1], pieces, 2), range.bytes);
  at.read_back(range, at.pipe[0], "in pieces through a pipe");
}

inline void write_at(State& at, Range range) {
  const off_t offset = static_cast<off_t>(at.random.below(10'000));
  at.whole(pwrite(at.file, range.memory(), range.bytes, offset), range.bytes);
  at.whole(pread(at.file, at.scratch, range.bytes, offset), range.bytes);
  at.check_copy(range, at.scratch, "through a file");
}

inline void write_stream(State& at, Range range) {
  std::rewind(at.stream);
  at.whole(static_cast<long>(std::fwrite(range.memory(), 1, range.bytes, at.stream)), range.bytes);
  at.result(std::fflush(at.stream));
  at.whole(pread(fileno(at.stream), at.scratch, range.bytes, 0), range.bytes);
  at.check_copy(range, at.scratch, "through a stream");
}

inline void send_to_socket(State& at, Range range) {
  range = range.no_more_than(32'000);
  at.whole(send(at.sockets[0], range.memory(), range.bytes, 0), range.bytes);
  at.read_back(range, at.sockets[1], "through a socket");
}

inline void send_message(State& at, Range range) {
  range = range.no_more_than(32'000);
  iovec piece{range.memory(), range.bytes};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  at.whole(sendmsg(at.sockets[0], &message, 0), range.bytes);
  at.read_back(range, at.sockets[1], "as a socket's message");
}

inline void read_own_process(State& at, Range range) {
  const iovec there{range.memory(), range.bytes}, to{at.scratch, range.bytes};
  at.whole(process_vm_readv(getpid(), &to, 1, &there, 1, 0), range.bytes);
  at.check_copy(range, at.scratch, "read by process_vm_readv");
}

inline void give_pages_to_pipe(State& at, Range range) {
  range = range.no_more_than(32'000);
  const iovec piece{range.memory(), range.bytes};
  at.whole(vmsplice(at.pipe[1], &piece, 1, 0), range.bytes);
  at.whole(tee(at.pipe[0], at.second_pipe[1], range.bytes, 0), range.bytes);
  at.read_back(range, at.pipe[0], "by vmsplice");
  at.read_back(range, at.second_pipe[0], "by tee");
}

inline void copy_out(State& at, Range range) {
  std::memcpy(at.scratch, range.memory(), range.bytes);
  at.check_copy(range, at.scratch, "copied");
}

inline std::uint64_t sum_of(const unsigned char* memory, std::size_t bytes) {
  Digest sum;
  sum.add(memory, bytes);
  return sum.value();
}

inline void expect_sum(State& at, const Range& range, std::uint64_t sum, const char* where) {
  if (sum != sum_of(range.expected(), range.bytes))
    wrong("%s: other bytes in [%zu, %zu) of %s", where, range.at, range.end(),
          kind_names[static_cast<int>(range.region->kind)]);
  at.digest.add(sum);
}

inline thread_local const unsigned char* handled = nullptr;
inline thread_local std::size_t handled_bytes = 0;
inline thread_local std::uint64_t handlers_sum = 0;
inline void sum_in_handler(int) {
  handlers_sum = sum_of(handled, handled_bytes);
}

inline void look_in_handler(State& at, Range range) {
  handled = range.memory();
  handled_bytes = range.bytes;
  at.result(raise(SIGUSR1));
  expect_sum(at, range, handlers_sum, "in a signal handler");
}

inline void wait_for_child(State& at, pid_t child) {
  int status = -1;
  if (waitpid(child, &status, 0) != child) wrong("no child to wait for");
  if (at.result(status) != 0) wrong("a child ended with %#x", static_cast<unsigned>(status));
}

// A child has memory of its own.
inline void look_in_child(State& at, Range range) {
  const pid_t child = fork();
  if (child < 0) wrong("no process");
  if (child == 0) {
    const std::uint64_t sum = sum_of(range.memory(), range.bytes);
    if (!range.region->shared()) std::memset(range.memory(), 99, range.bytes);
    _exit(write(at.pipe[1], &sum, sizeof sum) == sizeof sum ? 0 : 1);
  }
  std::uint64_t sum = 0;
  at.whole(read(at.pipe[0], &sum, sizeof sum), sizeof sum);
  wait_for_child(at, child);
  expect_sum(at, range, sum, "in a child");
}

// What it says by its pipe comes out of the buffer, through another program.
inline void look_by_program(State& at, Range range) {
  range = range.no_more_than(of_pipe);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, at.pipe[0], 0);
  posix_spawn_file_actions_adddup2(&actions, at.second_pipe[1], 1);
  at.whole(write(at.pipe[1], range.memory(), range.bytes), range.bytes);
  char name[] = "head", option[] = "-c", count[32];
  std::snprintf(count, sizeof count, "%zu", range.bytes);
  char* words[] = {name, option, count, nullptr};
  pid_t child = -1;
  char* nothing[] = {nullptr};
  if (at.result(posix_spawnp(&child, name, &actions, nullptr, words, nothing)) != 0) wrong("no process");
  at.read_back(range, at.second_pipe[0], "through a program");
  wait_for_child(at, child);
  posix_spawn_file_actions_destroy(&actions);
}

struct Looked {
  const unsigned char* memory;
  std::size_t bytes;
  std::uint64_t sum;
};

inline void* look(void* what) {
  auto* const at = static_cast<Looked*>(what);
  at->sum = sum_of(at->memory, at->bytes);
  return nullptr;
}

// (A program that has had a second thread is one with threads.)
inline void look_in_thread(State& at, Range range) {
  if (!at.threads) return copy_out(at, range);
  Looked looked{range.memory(), range.bytes, 0};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, look, &looked) != 0) wrong("no thread");
  pthread_join(thread, nullptr);
  expect_sum(at, range, looked.sum, "in a thread");
}

// ---- In

inline void read_from_pipe(State& at, Range range) {
  range = range.no_more_than(of_pipe);
  at.draw_bytes(range);
  at.whole(write(at.pipe[1], at.scratch, range.bytes), range.bytes);
  at.whole(read(at.pipe[0], range.memory(), range.bytes), range.bytes);
}

inline void read_at(State& at, Range range) {
  at.draw_bytes(range);
  at.whole(pwrite(at.file, at.scratch, range.bytes, 5), range.bytes);
  const std::size_t middle = at.random.below(range.bytes + 1);
  const iovec pieces[] = {{range.memory(), middle}, {range.memory() + middle, range.bytes - middle}};
  at.whole(at.random.chance(50) ? pread(at.file, range.memory(), range.bytes, 5)
                                : preadv(at.file, pieces, 2, 5),
           range.bytes);
}

inline void read_stream(State& at, Range range) {
  at.draw_bytes(range);
  std::rewind(at.stream);
  at.whole(static_cast<long>(std::fwrite(at.scratch, 1, range.bytes, at.stream)), range.bytes);
  std::rewind(at.stream);
  at.whole(static_cast<long>(std::fread(range.memory(), 1, range.bytes, at.stream)), range.bytes);
}

inline void receive_from_socket(State& at, Range range) {
  range = range.no_more_than(32'000);
  at.draw_bytes(range);
  at.whole(send(at.sockets[0], at.scratch, range.bytes, 0), range.bytes);
  at.whole(recv(at.sockets[1], range.memory(), range.bytes, MSG_WAITALL), range.bytes);
}

inline void write_own_process(State& at, Range range) {
  at.draw_bytes(range);
  const iovec there{range.memory(), range.bytes}, from{at.scratch, range.bytes};
  at.whole(process_vm_writev(getpid(), &from, 1, &there, 1, 0), range.bytes);
}

inline aiocb control_of(State& at, const Range& range) {
  aiocb control{};
  control.aio_fildes = at.file;
  control.aio_buf = range.memory();
  control.aio_nbytes = range.bytes;
  return control;
}

inline void finish(State& at, aiocb& control, std::size_t bytes) {
  const aiocb* const list[] = {&control};
  while (aio_error(&control) == EINPROGRESS) (void)aio_suspend(list, 1, nullptr);
  at.whole(aio_return(&control), bytes);
}

// By threads of the C library's, whose stacks are not known here.
inline void write_asynchronously(State& at, Range range) {
  if (!at.threads) return write_at(at, range);
  aiocb control = control_of(at, range);
  at.result(aio_write(&control));
  finish(at, control, range.bytes);
  at.whole(pread(at.file, at.scratch, range.bytes, 0), range.bytes);
  at.check_copy(range, at.scratch, "written asynchronously");
}

inline void read_asynchronously(State& at, Range range) {
  if (!at.threads) return read_at(at, range);
  at.draw_bytes(range);
  at.whole(pwrite(at.file, at.scratch, range.bytes, 0), range.bytes);
  aiocb control = control_of(at, range);
  at.result(aio_read(&control));
  finish(at, control, range.bytes);
}

inline void store(State& at, Range range) {
  const auto value = static_cast<unsigned char>(at.random.below(256));
  std::memset(range.memory(), value, range.bytes);
  range.become(value);
}

inline void move_inside(State& at, Range range) {
  const std::size_t to = at.random.below(range.region->size - range.bytes + 1);
  std::memmove(range.region->base + to, range.memory(), range.bytes);
  std::memmove(range.region->shadow + to, range.expected(), range.bytes);
}

inline void sort(State&, Range range) {
  range = range.no_more_than(20'000);
  const auto less = [](const void* one, const void* other) {
    return static_cast<int>(*static_cast<const unsigned char*>(one)) -
           static_cast<int>(*static_cast<const unsigned char*>(other));
  };
  std::qsort(range.memory(), range.bytes, 1, less);
  std::sort(range.expected(), range.expected() + range.bytes);
}

// Through the kernel, and back to this rank.
inline void send_to_oneself(State& at, Range range) {
  range = range.no_more_than(250'000);
  const Range to = at.place_for(range.bytes, range.region);
  const int self = rank::number;
  parc_op ops[] = {parc_initread(at.parc, self, at.self_tag, to.memory(), to.bytes),
                   parc_initwrite(at.parc, self, at.self_tag, range.memory(), range.bytes)};
  if (ops[0] < 0 || ops[1] < 0) wrong("cannot send to oneself: %s", parc_error_detail());
  if (parc_waitall(at.parc, 2, ops, nullptr) != PARC_OK) wrong("sent to oneself: %s", parc_error_detail());
  std::memcpy(to.expected(), range.expected(), range.bytes);
  at.note(to);
}

inline constexpr Call data_calls[] = {
    {"write", 4, write_to_pipe},
    {"write by number", 1, write_by_number},
    {"writev", 3, write_pieces},
    {"pwrite", 3, write_at},
    {"fwrite", 3, write_stream},
    {"send", 3, send_to_socket},
    {"sendmsg", 2, send_message},
    {"process_vm_readv", 3, read_own_process},
    {"vmsplice", 3, give_pages_to_pipe},
    {"memcpy", 4, copy_out},
    {"signal handler", 3, look_in_handler},
    {"fork", 3, look_in_child},
    {"posix_spawnp", 1, look_by_program},
    {"pthread_create", 2, look_in_thread},
    {"read", 4, read_from_pipe},
    {"pread", 3, read_at},
    {"fread", 3, read_stream},
    {"recv", 3, receive_from_socket},
    {"process_vm_writev", 3, write_own_process},
    {"aio_write", 2, write_asynchronously},
    {"aio_read", 2, read_asynchronously},
    {"memset", 4, store},
    {"memmove", 3, move_inside},
    {"qsort", 2, sort},
    {"message to oneself", 4, send_to_oneself},
};

} // namespace calls
