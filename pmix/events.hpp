// SPDX-License-Identifier: BSD-3-Clause
// Events that ranks tell each other of, from one server to the others of its job.
#pragma once

#include <cstddef>
#include <optional>
#include <pmix_common.h>
#include <string>
#include <string_view>

namespace parc::pmix {

// None: it cannot be packed.
[[nodiscard]] std::optional<std::string> event_text(pmix_status_t code, const pmix_proc_t* source,
                                                    pmix_data_range_t range, const pmix_info_t* infos,
                                                    std::size_t count);
// Tells the ranks of this host; does not wait for that.
void deliver_event(std::string_view text);

} // namespace parc::pmix
