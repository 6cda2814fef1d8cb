// SPDX-License-Identifier: BSD-3-Clause
// What a failing call leaves for its caller: the code it returns, and a sentence for parc_error_detail, one
// per thread.
#pragma once

#include "system/error.hpp"

#include <cstdint>

namespace parc::client {

// Keeps the sentence for this thread and returns the code.
int fail(const Error& error);

// The same with the constant sentence of the code, or another constant one. Async-signal-safe.
int fail(int code);
int fail(int code, const char* constant);

// Of what is started after that.
[[nodiscard]] Error has_left();

// As parc_error_string and parc_error_detail.
const char* sentence(int code);
// Of PARC_EPEER, in the form that fits how the peer departed (shm::Operation).
const char* departure_sentence(std::uint32_t how);
const char* last_failure();

} // namespace parc::client
