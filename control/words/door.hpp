// SPDX-License-Identifier: BSD-3-Clause
// What is said at the kernel's socket in the runtime directory. Whoever connects says in one byte what it is:
//
//   'P'  a program started by hand. The answer is 'P', and beside it the descriptors of its two pipes.
//   'T'  a tool: frames follow, both ways (control/frames.hpp).
//   'J'  a program that joins a job by its name: how many bytes its wish takes, in two, and these. The answer
//        is a program's, when all ranks are there, and behind it their hosts in words (host_words.hpp), with
//        a zero behind them; or 'E', a PARC_E* in digits, a space and a sentence.
//
// Numbers have this machine's order of bytes: both ends are on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parc::control::door {

inline constexpr char program = 'P', tool = 'T', joiner = 'J', refused = 'E';

// ---- What a joiner wants

struct Wish {
  std::string name, host; // of the job; where its ranks meet, or empty: here
  std::string rank, size; // in digits
};

inline constexpr std::size_t most_wanted = 4096; // bytes of a wish
inline constexpr std::size_t begin_of_wish = 1 + sizeof(std::uint16_t);

[[nodiscard]] std::string joiner_says(const Wish& wish);
// The length of the wish of a joiner that has said begin_of_wish bytes or more.
[[nodiscard]] std::size_t length_of_wish(std::string_view said);
[[nodiscard]] std::optional<Wish> wish_in(std::string_view texts); // none: it is none

// ---- That it does not get it

struct Refusal {
  int code = 0;
  std::string text;
};

[[nodiscard]] std::string refusal_says(int code, std::string_view text);
[[nodiscard]] std::optional<Refusal> refusal_in(std::string_view behind); // the 'E'; none: it is none

} // namespace parc::control::door
