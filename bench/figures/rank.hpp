// SPDX-License-Identifier: BSD-3-Clause
// parc for benches that are ranks of a job themselves: its errors are theirs, and what is taken is given
// back.
#pragma once

#include "system/error.hpp"

#include <cstdint>
#include <memory>
#include <parc/parc.h>

namespace parc::bench {

inline Result<void> checked(std::int64_t result) {
  if (result >= 0) return success();
  return error(static_cast<int>(result), "{}", parc_error_detail());
}

class Rank {
public:
  [[nodiscard]] static Result<Rank> join() {
    parc_context* context = nullptr;
    PARC_TRY(checked(parc_open(&context)));
    return Rank(context);
  }
  // Waits until the kernel has taken over what was written.
  [[nodiscard]] Result<void> leave() { return checked(parc_close(context_.release())); }

  [[nodiscard]] parc_context* get() const { return context_.get(); }
  [[nodiscard]] int number() const { return parc_rank(get()); }
  [[nodiscard]] int other() const { return 1 - number(); } // of two

private:
  struct Close {
    void operator()(parc_context* context) const { parc_close(context); }
  };
  explicit Rank(parc_context* context) : context_(context) {}
  std::unique_ptr<parc_context, Close> context_;
};

// Memory that the kernel moves in place.
class Shared {
public:
  [[nodiscard]] static Result<Shared> make(const Rank& rank, std::size_t bytes) {
    void* memory = parc_alloc(rank.get(), bytes);
    if (memory == nullptr) return error(PARC_ENOMEM, "{}", parc_error_detail());
    return Shared(rank.get(), memory);
  }
  [[nodiscard]] void* get() const { return memory_.get(); }

private:
  struct Free {
    parc_context* context;
    void operator()(void* memory) const { parc_free(context, memory); }
  };
  Shared(parc_context* context, void* memory) : memory_(memory, Free{context}) {}
  std::unique_ptr<void, Free> memory_;
};

} // namespace parc::bench
