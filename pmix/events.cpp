// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/events.hpp"

#include "pmix/bytes.hpp"
#include "pmix/values.hpp"

#include <memory>
#include <utility>

namespace parc::pmix {
namespace {

constexpr std::uint64_t most_infos = 1024;

struct Event { // until libpmix has dealt with it
  pmix_proc_t source{};
  pmix_info_t* infos = nullptr;
  std::size_t count = 0;
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (infos != nullptr) PMIX_INFO_FREE(infos, count);
  }
};

} // namespace

std::optional<std::string> event_text(pmix_status_t code, const pmix_proc_t* source, pmix_data_range_t range,
                                      const pmix_info_t* infos, std::size_t count) {
  std::optional<std::string> packed_infos = std::string();
  if (count != 0) packed_infos = packed(infos, static_cast<std::int32_t>(count), PMIX_INFO);
  if (!packed_infos) return {};
  Writer body;
  body.number(static_cast<std::uint64_t>(code)).text(source->nspace).number(source->rank).number(range);
  body.number(count).text(*packed_infos);
  return body.take();
}

void deliver_event(std::string_view text) {
  Reader reader(text);
  const auto code = static_cast<pmix_status_t>(reader.number());
  const std::string name = reader.text();
  auto event = std::make_unique<Event>();
  PMIX_LOAD_PROCID(&event->source, name.c_str(), static_cast<pmix_rank_t>(reader.number()));
  const auto range = static_cast<pmix_data_range_t>(reader.number());
  const std::uint64_t count = reader.number();
  const std::string infos = reader.text();
  if (!reader.good() || count > most_infos) return;
  if (count != 0) {
    PMIX_INFO_CREATE(event->infos, count);
    event->count = count;
    if (!unpack(infos, event->infos, static_cast<std::int32_t>(count), PMIX_INFO)) return;
  }
  const pmix_op_cbfunc_t done = [](pmix_status_t, void* kept) { delete static_cast<Event*>(kept); };
  Event* const kept = event.get();
  if (PMIx_Notify_event(code, &kept->source, range, kept->infos, kept->count, done, kept) == PMIX_SUCCESS)
    (void)event.release(); // it is the callback's
}

} // namespace parc::pmix
