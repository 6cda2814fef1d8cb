// SPDX-License-Identifier: BSD-3-Clause
// parc for C++20: the calls of <parc/parc.h> with owners for what they return. Header-only over the C
// interface.
//
//     parc::Context p;
//     auto ghost = p.buffer<double>(n), border = p.buffer<double>(n);
//     auto read = p.initread(peer, tag, ghost);
//     auto write = p.initwrite(peer, tag, border);
//     ... calculate what needs neither ...
//     write.wait();
//     read.wait();
//
// A message is any contiguous range of trivially copyable elements: an array, a vector, a string, a span, a
// Buffer; const where it is only written from. What an operation is started on must outlive it, so
// temporaries are refused there (views like std::span are none).
//
// What fails throws parc::Failure, which carries the PARC_E* and the sentence of parc_error_detail(), and,
// where an operation failed, its status. Threads, signals and forks: as parc.h says of the calls with the
// same names.
#pragma once

#include <parc/parc.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// What begins messages and waits for them is part of who calls it, in builds without optimisation, too: so
// parc trace and parc run --advise name the caller's line.
#define PARC_AT_CALLER [[gnu::always_inline]]

namespace parc {

inline constexpr int any_source = PARC_ANY_SOURCE;
inline constexpr int any_tag = PARC_ANY_TAG;

using Status = parc_status;
using Place = parc_place;
using Envelope = parc_envelope; // of a context and a tag: parc_envelope_of makes it

// A call that failed.
class Failure : public std::runtime_error {
public:
  explicit Failure(int code) : std::runtime_error(parc_error_detail()), code_(code) {}
  Failure(int code, const Status& status) : Failure(code) { status_ = status; }
  [[nodiscard]] int code() const noexcept { return code_; } // PARC_E*
  // Of the operation that failed, where there is one: how long a message was that was truncated, say.
  [[nodiscard]] const std::optional<Status>& status() const noexcept { return status_; }

private:
  int code_;
  std::optional<Status> status_;
};

namespace detail {

inline int checked(int code) {
  if (code < 0) throw Failure(code);
  return code;
}

inline parc_op checked(parc_op operation) {
  if (operation < 0) throw Failure(static_cast<int>(operation));
  return operation;
}

inline void checked(int code, const Status& status) {
  if (code < 0) throw Failure(code, status);
}

template <class T>
concept element = std::is_trivially_copyable_v<std::remove_const_t<T>>;
template <class Range>
concept message = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    element<std::ranges::range_value_t<Range>>;
// That a message can be read into.
template <class Range>
concept room =
    message<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;
// That does not go with the full expression.
template <class Range>
concept lasting = std::ranges::borrowed_range<Range>;

template <class Range> std::size_t bytes_of(Range& range) {
  return std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>);
}

} // namespace detail

// An operation in progress. It holds a buffer of the program: one that is destroyed unfinished is cancelled
// and waited for, so that the buffer is free afterwards whatever happens.
class [[nodiscard]] Operation {
public:
  Operation() = default;
  Operation(parc_context* context, parc_op operation) : context_(context), operation_(operation) {}
  Operation(Operation&& other) noexcept
      : context_(other.context_), operation_(std::exchange(other.operation_, PARC_OP_NULL)) {}
  Operation& operator=(Operation&& other) noexcept {
    if (this != &other) {
      give_up();
      context_ = other.context_;
      operation_ = std::exchange(other.operation_, PARC_OP_NULL);
    }
    return *this;
  }
  ~Operation() { give_up(); }

  // False once it has been waited for.
  explicit operator bool() const noexcept { return operation_ != PARC_OP_NULL; }

  PARC_AT_CALLER Status wait() {
    Status status{};
    detail::checked(parc_wait(context_, release(), &status), status);
    return status;
  }

  // Its status when it has finished, nothing when it has not.
  std::optional<Status> test() {
    Status status{};
    const int result = parc_test(context_, operation_, &status);
    if (result == 0) return std::nullopt;
    release();
    detail::checked(result, status);
    return status;
  }

  void cancel() { detail::checked(parc_cancel(context_, operation_)); }

  // The C interface's handle, for calls of it; release() gives it up to the caller.
  [[nodiscard]] parc_op get() const noexcept { return operation_; }
  parc_op release() noexcept { return std::exchange(operation_, PARC_OP_NULL); }

private:
  void give_up() noexcept {
    if (operation_ == PARC_OP_NULL) return;
    (void)parc_cancel(context_, operation_);
    (void)parc_wait(context_, release(), nullptr);
  }

  parc_context* context_ = nullptr;
  parc_op operation_ = PARC_OP_NULL;
};

// An array in memory that the kernel reads and writes in place. Value-initialised.
template <detail::element T> class Buffer {
public:
  Buffer() = default;
  Buffer(parc_context* context, std::size_t size) : memory_(nullptr, Free{context}), size_(size) {
    memory_.reset(static_cast<T*>(parc_alloc(context, size * sizeof(T))));
    if (!memory_) throw Failure(PARC_ENOMEM);
    std::uninitialized_value_construct_n(memory_.get(), size);
  }

  [[nodiscard]] T* data() noexcept { return memory_.get(); }
  [[nodiscard]] const T* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size_; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return data()[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return data()[index]; }
  [[nodiscard]] std::span<T> span() noexcept { return {data(), size_}; }
  [[nodiscard]] std::span<const T> span() const noexcept { return {data(), size_}; }

private:
  struct Free {
    parc_context* context = nullptr;
    void operator()(T* memory) const noexcept { parc_free(context, memory); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t size_ = 0;
};

// Membership of the job, from construction to destruction. Operations and buffers of it must go before it.
class Context {
public:
  Context() {
    parc_context* opened = nullptr;
    detail::checked(parc_open(&opened));
    context_.reset(opened);
  }

  [[nodiscard]] int rank() const { return detail::checked(parc_rank(get())); }
  [[nodiscard]] int size() const { return detail::checked(parc_size(get())); }
  [[nodiscard]] std::string_view host(int rank) const {
    const char* const name = parc_host(get(), rank);
    return name ? name : std::string_view{};
  }
  [[noreturn]] void abort(int status) { parc_abort(get(), status); }

  template <detail::element T> [[nodiscard]] Buffer<T> buffer(std::size_t size) { return {get(), size}; }

  template <detail::room Range>
  requires detail::lasting<Range> PARC_AT_CALLER Operation initread(int peer, int tag, Range&& to) {
    return {get(),
            detail::checked(parc_initread(get(), peer, tag, std::ranges::data(to), detail::bytes_of(to)))};
  }
  template <detail::message Range>
  requires detail::lasting<Range> PARC_AT_CALLER Operation initwrite(int peer, int tag, Range&& from) {
    return {get(), detail::checked(
                       parc_initwrite(get(), peer, tag, std::ranges::data(from), detail::bytes_of(from)))};
  }
  PARC_AT_CALLER Operation initread(const Envelope& envelope, std::span<const iovec> pieces,
                                    unsigned flags = 0) {
    return {get(), detail::checked(parc_initreadv(get(), &envelope, pieces.data(), count(pieces), flags))};
  }
  PARC_AT_CALLER Operation initwrite(const Envelope& envelope, std::span<const iovec> pieces,
                                     unsigned flags = 0) {
    return {get(), detail::checked(parc_initwritev(get(), &envelope, pieces.data(), count(pieces), flags))};
  }

  // What is in a peer's window, or will be (one-sided).
  template <detail::room Range>
  requires detail::lasting<Range> PARC_AT_CALLER Operation initget(const Place& from, Range&& to,
                                                                   unsigned flags = 0) {
    return {get(),
            detail::checked(parc_initget(get(), &from, std::ranges::data(to), detail::bytes_of(to), flags))};
  }
  // Rows of a matrix there, of so many bytes each, and each `stride` behind the one before it.
  template <detail::room Range>
  requires detail::lasting<Range> PARC_AT_CALLER Operation initget_rows(const Place& from, std::size_t row,
                                                                        std::int64_t stride, Range&& to,
                                                                        unsigned flags = 0) {
    const iovec whole{std::ranges::data(to), detail::bytes_of(to)};
    return {get(), detail::checked(parc_initget_rows(get(), &from, row, stride, &whole, 1, flags))};
  }
  template <detail::room Range> PARC_AT_CALLER void get(const Place& from, Range&& to) {
    detail::checked(parc_get(get(), &from, std::ranges::data(to), detail::bytes_of(to)));
  }
  template <detail::message Range>
  requires detail::lasting<Range> PARC_AT_CALLER Operation initput(const Place& to, Range&& from,
                                                                   unsigned flags = 0) {
    return {get(), detail::checked(
                       parc_initput(get(), &to, std::ranges::data(from), detail::bytes_of(from), flags))};
  }
  template <detail::message Range>
  requires detail::lasting<Range> PARC_AT_CALLER Operation initput_rows(const Place& to, std::size_t row,
                                                                        std::int64_t stride, Range&& from,
                                                                        unsigned flags = 0) {
    const iovec whole{const_cast<void*>(static_cast<const void*>(std::ranges::data(from))),
                      detail::bytes_of(from)};
    return {get(), detail::checked(parc_initput_rows(get(), &to, row, stride, &whole, 1, flags))};
  }
  template <detail::message Range> PARC_AT_CALLER void put(const Place& to, const Range& from) {
    detail::checked(parc_put(get(), &to, std::ranges::data(from), detail::bytes_of(from)));
  }
  PARC_AT_CALLER Operation initatomic(const Place& at, parc_atomic what, std::size_t width,
                                      std::uint64_t operand, std::uint64_t compare = 0,
                                      std::uint64_t* before = nullptr, unsigned flags = 0) {
    return {get(),
            detail::checked(parc_initatomic(get(), &at, what, width, operand, compare, before, flags))};
  }
  PARC_AT_CALLER std::int64_t fetch_add(const Place& at, std::int64_t more) {
    std::int64_t before = 0;
    detail::checked(parc_fetch_add(get(), &at, more, &before));
    return before;
  }
  void quiet() { detail::checked(parc_quiet(get())); }

  template <detail::room Range>
  requires detail::lasting<Range> PARC_AT_CALLER Status read(int peer, int tag, Range&& to) {
    Status status{};
    detail::checked(parc_read(get(), peer, tag, std::ranges::data(to), detail::bytes_of(to), &status),
                    status);
    return status;
  }
  template <detail::message Range> PARC_AT_CALLER void write(int peer, int tag, const Range& from) {
    detail::checked(parc_write(get(), peer, tag, std::ranges::data(from), detail::bytes_of(from)));
  }

  // Waits for all of them; throws the first failure after the last has finished. `statuses` gets what became
  // of each, also then; it must be as long.
  PARC_AT_CALLER void wait_all(std::span<Operation> operations) {
    wait_all_of(operations, nullptr, [](Operation& each) { return &each; });
  }
  PARC_AT_CALLER void wait_all(std::span<Operation> operations, std::span<Status> statuses) {
    if (statuses.size() < operations.size()) throw std::invalid_argument("fewer statuses than operations");
    wait_all_of(operations, statuses.data(), [](Operation& each) { return &each; });
  }
  PARC_AT_CALLER void wait_all(std::initializer_list<std::reference_wrapper<Operation>> operations) {
    wait_all_of(std::span(operations.begin(), operations.size()), nullptr,
                [](const std::reference_wrapper<Operation>& each) { return &each.get(); });
  }

  // Waits for one of them and tells which; nothing when all of them are empty.
  PARC_AT_CALLER std::optional<std::pair<std::size_t, Status>> wait_any(std::span<Operation> operations) {
    std::vector<parc_op> handles = handles_of(operations);
    int index = -1;
    Status status{};
    const int code = parc_waitany(get(), count(operations), handles.data(), &index, &status);
    if (index < 0) {
      detail::checked(code);
      return std::nullopt;
    }
    operations[static_cast<std::size_t>(index)].release();
    detail::checked(code, status);
    return std::pair{static_cast<std::size_t>(index), status};
  }

  // Waits for at least one of them and tells all that have finished; nothing when all of them are empty. One
  // that failed is no exception here: its status says so.
  PARC_AT_CALLER std::vector<std::pair<std::size_t, Status>> wait_some(std::span<Operation> operations) {
    constexpr int no_answer = -2;
    std::vector<parc_op> handles = handles_of(operations);
    std::vector<int> indices(handles.size());
    std::vector<Status> statuses(handles.size());
    int done = no_answer;
    const int code =
        parc_waitsome(get(), count(operations), handles.data(), &done, indices.data(), statuses.data());
    if (done == no_answer) detail::checked(code);
    std::vector<std::pair<std::size_t, Status>> finished;
    for (std::size_t i = 0; done > 0 && i < static_cast<std::size_t>(done); ++i) {
      finished.emplace_back(static_cast<std::size_t>(indices[i]), statuses[i]);
      operations[finished.back().first].release();
    }
    return finished;
  }

  PARC_AT_CALLER Status probe(const Envelope& envelope) {
    Status status{};
    detail::checked(parc_probe(get(), &envelope, &status));
    return status;
  }
  std::optional<Status> iprobe(const Envelope& envelope) {
    Status status{};
    if (detail::checked(parc_iprobe(get(), &envelope, &status)) == 0) return std::nullopt;
    return status;
  }

  // Programs of other jobs.
  [[nodiscard]] std::string address_of(int peer) const {
    char text[PARC_ADDRESS_BYTES];
    detail::checked(parc_address_of(get(), peer, text, sizeof text));
    return text;
  }
  int add_peer(const std::string& address) { return detail::checked(parc_add_peer(get(), address.c_str())); }

  // Processes that this program starts: their numbers as peers.
  std::vector<int> spawn(const std::vector<std::string>& arguments, int count,
                         const std::string& hosts = {}) {
    std::vector<const char*> words;
    for (const std::string& each : arguments) words.push_back(each.c_str());
    words.push_back(nullptr);
    std::vector<int> peers(count > 0 ? static_cast<std::size_t>(count) : 0);
    detail::checked(
        parc_spawn(get(), words.data(), count, hosts.empty() ? nullptr : hosts.c_str(), peers.data()));
    return peers;
  }
  [[nodiscard]] int parent() { return detail::checked(parc_parent(get())); }
  void kill(int peer, int signal) { detail::checked(parc_kill(get(), peer, signal)); }

  PARC_AT_CALLER void barrier() { detail::checked(parc_barrier(get())); }
  // Early release. A wait that returns a Status is released when the message has begun; wait_all at once.
  void set_release(parc_release level) { detail::checked(parc_set_release(get(), level)); }
  void settle() { detail::checked(parc_settle(get(), nullptr, 0)); }
  template <detail::message Range> void settle(const Range& memory) {
    detail::checked(parc_settle(get(), std::ranges::data(memory), detail::bytes_of(memory)));
  }
  void set_order(parc_order order) { detail::checked(parc_set_order(get(), order)); }
  void set_strip(std::size_t bytes) { detail::checked(parc_set_strip(get(), bytes)); }
  void set_train(int gets) { detail::checked(parc_set_train(get(), gets)); }
  // Called as the handler of parc_on_lost, with its limits; an empty one takes the handler away.
  void on_lost(std::function<void(const parc_lost&)> handler) {
    auto next = std::make_unique<std::function<void(const parc_lost&)>>(std::move(handler));
    const auto call = [](void* to, const parc_lost* lost) {
      (*static_cast<std::function<void(const parc_lost&)>*>(to))(*lost);
    };
    detail::checked(parc_on_lost(get(), *next ? +call : nullptr, next.get()));
    lost_ = std::move(next); // the one before is not called any more
  }
  void set_copy_room(std::size_t bytes) { detail::checked(parc_set_copy_room(get(), bytes)); }

  // For calls of the C interface.
  [[nodiscard]] parc_context* get() const noexcept { return context_.get(); }

private:
  struct Close {
    void operator()(parc_context* context) const noexcept { (void)parc_close(context); }
  };

  template <class List> static int count(const List& list) { return static_cast<int>(list.size()); }

  static std::vector<parc_op> handles_of(std::span<const Operation> operations) {
    std::vector<parc_op> handles;
    for (const Operation& each : operations) handles.push_back(each.get());
    return handles;
  }

  template <class List, class Pointer>
  PARC_AT_CALLER void wait_all_of(const List& operations, Status* statuses, const Pointer& operation_of) {
    std::vector<parc_op> handles;
    for (auto& each : operations) handles.push_back(operation_of(each)->get());
    const int code = parc_waitall(get(), count(handles), handles.data(), statuses);
    for (auto& each : operations) operation_of(each)->release();
    detail::checked(code);
  }

  std::unique_ptr<std::function<void(const parc_lost&)>> lost_; // until the context has been closed
  std::unique_ptr<parc_context, Close> context_;
};

// Memory that peers get from, or put into, while this lives, and that stays longer. Of what is no Buffer, nor
// other memory of parc_alloc, the kernel makes one copy more.
class [[nodiscard]] Window {
public:
  template <detail::room Range>
  requires detail::lasting<Range> Window(Context& context, std::uint64_t number, Range&& memory,
                                         unsigned rights = PARC_MAY_GET)
      : context_(context.get()), number_(number) {
    detail::checked(
        parc_expose(context_, number, std::ranges::data(memory), detail::bytes_of(memory), rights));
  }
  Window(Window&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), number_(other.number_) {}
  Window& operator=(Window&&) = delete;
  ~Window() {
    if (context_) (void)parc_unexpose(context_, number_);
  }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

private:
  parc_context* context_ = nullptr;
  std::uint64_t number_ = 0;
};

} // namespace parc

#undef PARC_AT_CALLER
