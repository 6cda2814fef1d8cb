// SPDX-License-Identifier: BSD-3-Clause
// parc_spawn and what belongs to it.
#include "client/base/failure.hpp"
#include "client/calls/context.hpp"
#include "control/words/texts.hpp"
#include "system/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace parc::client {
namespace {

constexpr std::size_t most_texts = std::size_t{1} << 18; // bytes, of hosts and arguments
constexpr int most_spawned = 65536;                      // by one call
constexpr std::size_t least_room = 1024;                 // for a sentence

} // namespace

int Context::spawn(const char* const* arguments, int count, const char* hosts, int* peers) {
  if (count < 1 || count > most_spawned)
    return fail(error(PARC_EINVAL, "parc_spawn starts 1 to {} processes, not {}", most_spawned, count));
  if (arguments[0] == nullptr || *arguments[0] == '\0')
    return fail(error(PARC_EINVAL, "parc_spawn was given no program: arguments[0] is its name"));
  std::string texts;
  control::add_text(texts, hosts != nullptr ? hosts : "");
  for (const char* const* argument = arguments; *argument != nullptr; ++argument)
    control::add_text(texts, *argument);
  if (texts.size() > most_texts)
    return fail(error(PARC_EINVAL, "hosts and arguments of parc_spawn have {} bytes, and may have {}",
                      texts.size(), most_texts));
  const auto rows = static_cast<std::size_t>(count) * sizeof(std::int32_t);
  std::vector<char> answer(std::max({texts.size(), rows, least_room}));
  const auto id = starter_.spawn(texts, count, {answer.data(), answer.size()});
  if (!id) return fail(id.error());
  parc_status status;
  const int code = finish(id.value(), &status);
  if (code == PARC_EAGAIN) return fail(code, "this program is in 16 calls of parc_spawn already");
  if (code != PARC_OK) return code;
  if (status.source < 0)
    return fail(error(PARC_ESPAWN, "cannot spawn {}: {}", arguments[0],
                      std::string_view(answer.data(), std::min<std::size_t>(status.length, answer.size()))));
  if (peers != nullptr) std::memcpy(peers, answer.data(), rows);
  return PARC_OK;
}

int Context::parent() {
  const char* const address = std::getenv(env_parent);
  if (address == nullptr)
    return fail(PARC_EINVAL, "this program was not started by parc_spawn: nobody is its parent");
  return add_peer(address);
}

int Context::signal(int peer, int number) {
  const auto id = starter_.signal(peer, number);
  if (!id) return fail(id.error());
  parc_status status;
  const int code = finish(id.value(), &status);
  if (code == PARC_EINVAL)
    return fail(error(code,
                      "peer {} cannot be sent signal {}: it is neither a rank of this job nor a process that "
                      "this program has spawned, or there is no such signal",
                      peer, number));
  if (code == PARC_EPEER) return fail(error(code, "peer {} has ended", peer));
  return code;
}

} // namespace parc::client
