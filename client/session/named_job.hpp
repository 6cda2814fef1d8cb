// SPDX-License-Identifier: BSD-3-Clause
// A job that programs join by its name, in place of being started by `parc run`: as parc_join or the
// environment says.
#pragma once

#include "system/error.hpp"

#include <functional>
#include <optional>
#include <string>

namespace parc::client {

struct NamedJob {
  std::string name;
  std::string host; // where its ranks meet; empty: at this one
  int rank = 0, size = 1;
};

// "NAME" or "NAME@HOST". Errors: PARC_EINVAL.
[[nodiscard]] Result<NamedJob> named_job(std::string_view text, int rank, int size);

// nullptr: it is not set. As getenv.
using Variables = std::function<const char*(const char* name)>;

// What the environment says (parc_open in parc.h); none: nothing. Errors: PARC_EINVAL.
[[nodiscard]] Result<std::optional<NamedJob>> job_in_environment(const Variables& variable);

} // namespace parc::client
