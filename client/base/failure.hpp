// SPDX-License-Identifier: BSD-3-Clause
// What a failing call leaves for its caller: the code it returns, and a sentence for parc_error_detail, one
// per thread.
#pragma once

#include "system/error.hpp"

#include <cstdint>

namespace parc::client {

// Keeps the error's sentence for this thread and returns its code, one of parc.h.
int fail(const Error& error);

// Keeps the constant sentence of a code, or another constant one, and returns the code. Async-signal-safe.
int fail(int code);
int fail(int code, const char* constant);

// The error of any call after this program has left its job (parc_close or exit).
[[nodiscard]] Error has_left();

const char* sentence(int code); // what parc_error_string returns
// The sentence of PARC_EPEER that fits how the peer departed (shm::Operation::departure_or_data).
const char* departure_sentence(std::uint32_t how);
const char* last_failure(); // this thread's last sentence, which parc_error_detail returns

} // namespace parc::client
