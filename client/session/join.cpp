// SPDX-License-Identifier: BSD-3-Clause
#include "client/session/join.hpp"

#include "client/base/without_sigpipe.hpp"
#include "client/session/inherited_pipe.hpp"
#include "control/words/door.hpp"
#include "control/words/host_words.hpp"
#include "parc/parc.h"
#include "shm/layout.hpp"
#include "system/environment.hpp"
#include "system/runtime_dir.hpp"
#include "system/start_kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <new>
#include <optional>
#include <poll.h>
#include <sys/socket.h>

namespace parc::client {
namespace {

namespace door = control::door;

struct PipePair {
  Fd from_kernel, to_kernel;
};

Error broken_environment(const char* variable, std::string_view value) {
  return error(PARC_EINVAL,
               "{}={} in the environment makes no sense; it is set by parc run for its ranks alone", variable,
               value);
}

Result<void> prepare(const Fd& pipe) {
  const int flags = fcntl(pipe.get(), F_GETFL);
  if (flags < 0 || fcntl(pipe.get(), F_SETFL, flags | O_NONBLOCK) < 0 ||
      fcntl(pipe.get(), F_SETFD, FD_CLOEXEC) < 0) {
    auto failure = system_error("cannot use file descriptor {} as a pipe to the kernel", pipe.get());
    failure.code = PARC_EINVAL;
    return failure;
  }
  return success();
}

Error place_taken() {
  return error(
      PARC_EINVAL,
      "this program's place in its job is taken: another program that was started in it (by the same "
      "script, say) has joined already; a rank is one program");
}

Error place_over() {
  return error(PARC_EKERNEL,
               "this program's place in its job is over: another program that was started in it before has "
               "left the job or has ended, or the kernel of this host (parcd) has gone; a rank is one "
               "program");
}

// Two programs of one rank would read each other's bells. The system takes this lock back at the latest when
// its process ends; children have none of it.
bool lock_place(const Fd& pipe) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(pipe.get(), F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

// A rank of `parc run` has inherited its pipes.
Result<PipePair> inherited_pipes(std::string value) {
  unsetenv(env_pipes);
  const auto comma = std::min(value.find(','), value.size());
  const auto first = std::string_view(value).substr(0, comma);
  const auto second = std::string_view(value).substr(std::min(comma + 1, value.size()));
  if (first == second || second.empty()) return broken_environment(env_pipes, value);
  PARC_TRY(in, inherited_pipe(first, PipeEnd::read, env_pipes));
  auto out = inherited_pipe(second, PipeEnd::write, env_pipes);
  if (!out) {
    (void)in.release(); // whatever it is
    return std::move(out).error();
  }
  if (!lock_place(out.value())) return place_taken();
  return PipePair{std::move(in), std::move(out).value()};
}

Error as_no_kernel(Error failure) {
  failure.code = PARC_ENOKERNEL;
  return failure;
}

Result<Fd> connect() {
  auto socket = connect_to_kernel({});
  if (!socket) return as_no_kernel(std::move(socket).error());
  if (socket.value()) return socket;
  auto dir = find_runtime_dir({}); // which says so where there is none
  if (!dir) return as_no_kernel(std::move(dir).error());
  return error(PARC_ENOKERNEL, "no parcd answers on {}: start one with parcd --detach", dir.value().path());
}

// The two descriptors that came with a message; none when it had others.
std::optional<PipePair> passed_pipes(msghdr& message) {
  PipePair pipes;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int numbers[2];
    if (part->cmsg_len != CMSG_LEN(sizeof numbers)) return {};
    std::memcpy(numbers, CMSG_DATA(part), sizeof numbers);
    pipes = {Fd(numbers[0]), Fd(numbers[1])};
  }
  if (!pipes.from_kernel || !pipes.to_kernel) return {};
  return pipes;
}

// One byte, and the pipes beside it. Bytes that follow stay.
struct Answer {
  char byte = 0;
  std::optional<PipePair> pipes;
};

Answer receive_answer(const Fd& socket, const WaitForAnswer& wait) {
  wait(socket.get());
  Answer answer;
  iovec data{&answer.byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received = 0;
  do received = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received == 1) answer.pipes = passed_pipes(message);
  return answer;
}

std::string receive_text(const Fd& socket) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const ssize_t got = recv(socket.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

Error hung_up() {
  return error(PARC_EKERNEL,
               "the kernel of this host hung up without an answer to this program (its log may say "
               "why): is parcd still running?");
}

// A program started by hand asks the kernel's socket for its pipes.
Result<PipePair> requested_pipes(const WaitForAnswer& wait) {
  PARC_TRY(socket, connect());
  if (send(socket.get(), &door::program, 1, MSG_NOSIGNAL) != 1) return hung_up();
  Answer answer = receive_answer(socket, wait);
  if (answer.byte != door::program || !answer.pipes) return hung_up();
  return std::move(*answer.pipes);
}

// One that joins a job gets them when all its ranks are there.
Result<PipePair> joined_pipes(const NamedJob& job, std::string& hosts, const WaitForAnswer& wait) {
  PARC_TRY(socket, connect());
  const std::string asked =
      door::joiner_says({job.name, job.host, std::to_string(job.rank), std::to_string(job.size)});
  if (send(socket.get(), asked.data(), asked.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(asked.size()))
    return hung_up();
  Answer answer = receive_answer(socket, wait);
  std::string text = receive_text(socket);
  if (answer.byte == door::program && answer.pipes) {
    if (text.empty() || text.back() != '\0')
      return error(PARC_EKERNEL,
                   "cannot join job {} as rank {} of {}: the kernel of this host has not told all of "
                   "the job's hosts (its log says why)",
                   job.name, job.rank, job.size);
    text.pop_back();
    hosts = std::move(text);
    return std::move(*answer.pipes);
  }
  const auto refusal = door::refusal_in(text);
  if (answer.byte != door::refused || !refusal || refusal->code >= PARC_OK) return hung_up();
  return error(refusal->code, "cannot join job {} as rank {} of {}: {}", job.name, job.rank, job.size,
               refusal->text);
}

// And the hosts of the job's ranks, where they are not all here. A program that a rank has started by hand
// finds that rank's in its environment.
Result<PipePair> get_pipes(const std::optional<NamedJob>& job, std::string& hosts,
                           const WaitForAnswer& wait) {
  static bool was_rank = false; // by inherited pipes, which are used up
  const char* value = getenv(env_pipes);
  if (!value && was_rank)
    return error(PARC_EINVAL,
                 "this process has left the job that parc run started it in, and cannot join again");
  PARC_TRY(pipes, value ? inherited_pipes(value)
                  : job ? joined_pipes(*job, hosts, wait)
                        : requested_pipes(wait));
  was_rank = value != nullptr;
  if (const char* const all = getenv(env_hosts); was_rank && all) hosts = all;
  PARC_TRY(prepare(pipes.from_kernel));
  PARC_TRY(prepare(pipes.to_kernel));
  return std::move(pipes);
}

Result<shm::Segment> make_control() {
  auto segment = shm::Segment::create(sizeof(shm::Control));
  if (!segment) {
    segment.error().code = PARC_ENOMEM;
    return segment;
  }
  auto& header = (new (segment.value().data()) shm::Control{})->header;
  header.magic = shm::control_magic;
  header.request_slots = shm::request_slots;
  header.read_slots = shm::read_slots;
  header.write_slots = shm::write_slots;
  header.segment_bytes = sizeof(shm::Control);
  header.address = reinterpret_cast<std::uintptr_t>(&header);
  header.version.store(shm::layout_version, std::memory_order_release);
  return segment;
}

Result<shm::Welcome> read_welcome(const Fd& from_kernel) {
  shm::Welcome welcome{};
  auto* const bytes = reinterpret_cast<char*>(&welcome);
  for (std::size_t have = 0; have < sizeof welcome;) {
    const ssize_t got = read(from_kernel.get(), bytes + have, sizeof welcome - have);
    if (got == 0) return place_over();
    if (got > 0) {
      have += static_cast<std::size_t>(got);
    } else if (errno == EAGAIN) {
      pollfd end{.fd = from_kernel.get(), .events = POLLIN, .revents = 0};
      (void)poll(&end, 1, -1);
    } else if (errno != EINTR) {
      auto failure = system_error("cannot read the kernel's welcome");
      failure.code = PARC_EKERNEL;
      return failure;
    }
  }
  return welcome;
}

Result<void> check(const shm::Welcome& welcome) {
  if (welcome.magic != shm::attach_magic)
    return error(PARC_EVERSION, "what answers on this program's pipes is no parcd");
  if (welcome.version != shm::layout_version)
    return error(
        PARC_EVERSION,
        "this program's libparc ({}) and the kernel of this host (parcd) speak different versions of "
        "the shared segment, {} and {}; upgrade {}",
        PARC_VERSION, shm::layout_version, welcome.version,
        welcome.version < shm::layout_version ? "parcd" : "libparc");
  if (welcome.error == PARC_EINVAL)
    return error(welcome.error,
                 "the kernel of this host does not see this program's shared memory: it is in another IPC "
                 "namespace (ipc_namespaces(7)), as in a container; give both the same one (--ipc=host), or "
                 "start a parcd beside the program, with a runtime directory of its own");
  if (welcome.error != PARC_OK)
    return error(welcome.error, "the kernel of this host refused this program (error {}; its log says why)",
                 welcome.error);
  if (welcome.size < 1 || welcome.rank < 0 || welcome.rank >= welcome.size)
    return error(PARC_EVERSION, "the kernel of this host gave this program rank {} of {}", welcome.rank,
                 welcome.size);
  return success();
}

Result<void> send_attach(const Fd& to_kernel, const shm::Segment& control, bool neighbours) {
  shm::Attach attach{};
  attach.magic = shm::attach_magic;
  attach.version = shm::layout_version;
  attach.shmid = control.id();
  attach.bytes = sizeof(shm::Control);
  attach.pid = getpid();
  attach.neighbours = neighbours ? 1 : 0;
  // The kernel holds the other end open until it has refused or answered; an empty pipe takes this whole.
  WithoutSigpipe without_sigpipe;
  if (write(to_kernel.get(), &attach, sizeof attach) == sizeof attach) return success();
  if (errno == EPIPE) {
    without_sigpipe.take_signal();
    return place_over();
  }
  auto failure = system_error("cannot ask the kernel of this host to join");
  failure.code = PARC_EKERNEL;
  return failure;
}

Result<std::vector<std::string>> host_names(const shm::Welcome& welcome, const std::string& words) {
  const auto size = static_cast<std::size_t>(welcome.size);
  if (words.empty())
    return std::vector<std::string>(size,
                                    std::string(welcome.host, strnlen(welcome.host, sizeof welcome.host)));
  auto names = control::hosts_in(words, size);
  if (!names) return broken_environment(env_hosts, words);
  return std::move(*names);
}

// Of this library, beside which parcd was built or installed.
std::string own_path() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&join), &info) != 0 && info.dli_fname;
  return known ? info.dli_fname : std::string();
}

} // namespace

Result<void> start_kernel() {
  if (getenv(env_pipes)) return success();
  auto may_start = may_start_kernels();
  if (!may_start) return as_no_kernel(std::move(may_start).error());
  if (!may_start.value()) {
    auto socket = connect();
    if (!socket)
      return std::move(socket).error().in(fmt::format("{}=off forbids to start a kernel", env_autostart));
    return success();
  }
  // Nobody has asked for it by name: it goes by itself, too.
  auto socket = connect_or_start_kernel({}, own_path(), {"--idle-timeout-s", "600"});
  if (!socket) return as_no_kernel(std::move(socket).error());
  return success();
}

Result<Session> join(bool neighbours, const std::optional<NamedJob>& job, const WaitForAnswer& wait) {
  std::string hosts_in_words;
  PARC_TRY(pipes, get_pipes(job, hosts_in_words, wait));
  PARC_TRY(control, make_control());
  PARC_TRY(send_attach(pipes.to_kernel, control, neighbours));
  PARC_TRY(welcome, read_welcome(pipes.from_kernel));
  PARC_TRY(check(welcome));
  PARC_TRY(hosts, host_names(welcome, hosts_in_words));
  return Session{.from_kernel = std::move(pipes.from_kernel),
                 .to_kernel = std::move(pipes.to_kernel),
                 .control = std::move(control),
                 .rank = welcome.rank,
                 .size = welcome.size,
                 .copy_ns_per_kib = welcome.copy_ns_per_kib,
                 .kernel_pid = welcome.kernel_pid,
                 .area = welcome.area,
                 .letterbox = welcome.letterbox,
                 .hosts = std::move(hosts)};
}

} // namespace parc::client
