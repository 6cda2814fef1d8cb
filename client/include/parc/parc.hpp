// SPDX-License-Identifier: BSD-3-Clause
// parc for C++20: the calls of <parc/parc.h> with owners for what they return. Header-only over the C
// interface.
//
//     parc::Context p;
//     auto ghost = p.buffer<double>(n), border = p.buffer<double>(n);
//     auto read = p.initread(peer, tag, ghost.span());
//     auto write = p.initwrite(peer, tag, border.span());
//     ... calculate what needs neither ...
//     write.wait();
//     read.wait();
//
// What fails throws parc::Failure, which carries the PARC_E* and the sentence of parc_error_detail().
// Threads, signals and forks: as parc.h says of the calls with the same names.
#pragma once

#include <parc/parc.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace parc {

inline constexpr int any_source = PARC_ANY_SOURCE;
inline constexpr int any_tag = PARC_ANY_TAG;

using Status = parc_status;
using Address = parc_address;

// A call that failed.
class Failure : public std::runtime_error {
public:
  explicit Failure(int code) : std::runtime_error(parc_error_detail()), code_(code) {}
  [[nodiscard]] int code() const noexcept { return code_; } // PARC_E*

private:
  int code_;
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

template <class T>
concept message = std::is_trivially_copyable_v<std::remove_const_t<T>>;

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

  Status wait() {
    Status status{};
    detail::checked(parc_wait(context_, release(), &status));
    return status;
  }

  // Its status when it has finished, nothing when it has not.
  std::optional<Status> test() {
    Status status{};
    const int result = parc_test(context_, operation_, &status);
    if (result == 0) return std::nullopt;
    release();
    detail::checked(result);
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
template <detail::message T> class Buffer {
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

  template <detail::message T> [[nodiscard]] Buffer<T> buffer(std::size_t size) { return {get(), size}; }

  template <detail::message T>
  requires(!std::is_const_v<T>) Operation initread(int peer, int tag, std::span<T> to) {
    return {get(), detail::checked(parc_initread(get(), peer, tag, to.data(), to.size_bytes()))};
  }
  template <detail::message T> Operation initwrite(int peer, int tag, std::span<T> from) {
    return {get(), detail::checked(parc_initwrite(get(), peer, tag, from.data(), from.size_bytes()))};
  }
  Operation initread(const Address& address, std::span<const iovec> pieces, unsigned flags = 0) {
    return {get(), detail::checked(parc_initreadv(get(), &address, pieces.data(), count(pieces), flags))};
  }
  Operation initwrite(const Address& address, std::span<const iovec> pieces, unsigned flags = 0) {
    return {get(), detail::checked(parc_initwritev(get(), &address, pieces.data(), count(pieces), flags))};
  }

  template <detail::message T>
  requires(!std::is_const_v<T>) Status read(int peer, int tag, std::span<T> to) {
    Status status{};
    detail::checked(parc_read(get(), peer, tag, to.data(), to.size_bytes(), &status));
    return status;
  }
  template <detail::message T> void write(int peer, int tag, std::span<T> from) {
    detail::checked(parc_write(get(), peer, tag, from.data(), from.size_bytes()));
  }

  // Waits for all of them; throws the first failure after the last has finished.
  void wait_all(std::span<Operation> operations) {
    wait_all_of(operations, [](Operation& each) { return &each; });
  }
  void wait_all(std::initializer_list<std::reference_wrapper<Operation>> operations) {
    wait_all_of(std::span(operations.begin(), operations.size()),
                [](const std::reference_wrapper<Operation>& each) { return &each.get(); });
  }

  // Waits for one of them and tells which; nothing when all of them are empty.
  std::optional<std::pair<std::size_t, Status>> wait_any(std::span<Operation> operations) {
    std::vector<parc_op> handles;
    for (const Operation& each : operations) handles.push_back(each.get());
    int index = -1;
    Status status{};
    const int code = parc_waitany(get(), count(operations), handles.data(), &index, &status);
    if (index >= 0) operations[static_cast<std::size_t>(index)].release();
    detail::checked(code);
    if (index < 0) return std::nullopt;
    return std::pair{static_cast<std::size_t>(index), status};
  }

  Status probe(const Address& address) {
    Status status{};
    detail::checked(parc_probe(get(), &address, &status));
    return status;
  }
  std::optional<Status> iprobe(const Address& address) {
    Status status{};
    if (detail::checked(parc_iprobe(get(), &address, &status)) == 0) return std::nullopt;
    return status;
  }

  void barrier() { detail::checked(parc_barrier(get())); }
  // Early release. A wait that returns a Status is released when the message has begun; wait_all at once.
  void set_release(parc_release level) { detail::checked(parc_set_release(get(), level)); }
  void settle() { detail::checked(parc_settle(get(), nullptr, 0)); }
  template <detail::message T> void settle(std::span<T> memory) {
    detail::checked(parc_settle(get(), memory.data(), memory.size_bytes()));
  }
  void set_copy_room(std::size_t bytes) { detail::checked(parc_set_copy_room(get(), bytes)); }

  // For calls of the C interface.
  [[nodiscard]] parc_context* get() const noexcept { return context_.get(); }

private:
  struct Close {
    void operator()(parc_context* context) const noexcept { (void)parc_close(context); }
  };

  template <class List> static int count(const List& list) { return static_cast<int>(list.size()); }

  template <class List, class Pointer> void wait_all_of(const List& operations, const Pointer& operation_of) {
    std::vector<parc_op> handles;
    for (auto& each : operations) handles.push_back(operation_of(each)->get());
    const int code = parc_waitall(get(), count(handles), handles.data(), nullptr);
    for (auto& each : operations) operation_of(each)->release();
    detail::checked(code);
  }

  std::unique_ptr<parc_context, Close> context_;
};

} // namespace parc
