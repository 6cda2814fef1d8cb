// SPDX-License-Identifier: BSD-3-Clause
// `wanlink set`, `up`, `down` and `status`: questions to the relay.
#include "tools/wanlink/commands.hpp"
#include "tools/wanlink/control.hpp"

#include <iostream>

namespace parc::wanlink {
namespace {

Result<nlohmann::json> ask_about_link(nlohmann::json request, const std::string& from,
                                      const std::string& to) {
  PARC_TRY(paths, present_emulation());
  PARC_TRY(check_host(paths, from));
  PARC_TRY(check_host(paths, to));
  request["from"] = from;
  request["to"] = to;
  return ask_relay(paths, request);
}

std::string rate_text(std::uint64_t rate) {
  if (rate == 0) return "unlimited";
  if (rate % 1'000'000 == 0) return fmt::format("{} Mbit/s", rate / 1'000'000);
  return fmt::format("{} kbit/s", static_cast<double>(rate) / 1e3);
}

} // namespace

Result<int> set(const std::string& from, const std::string& to, const TwoWayChange& change) {
  PARC_TRY(ask_about_link({{"do", "set"}, {"forth", change.forth}, {"back", change.back}}, from, to));
  return 0;
}

Result<int> set_up(const std::string& from, const std::string& to, bool up, bool one_way) {
  PARC_TRY(ask_about_link({{"do", up ? "up" : "down"}, {"one_way", one_way}}, from, to));
  return 0;
}

Result<int> status(bool json, bool reset) {
  PARC_TRY(paths, present_emulation());
  PARC_TRY(answer, ask_relay(paths, {{"do", "status"}, {"reset", reset}}));
  if (json) {
    std::cout << answer.dump(2) << '\n';
    return 0;
  }
  const auto& relay = answer["relay"];
  std::cout << fmt::format(
      "relay: {}, {:.3f} s of CPU in {:.1f} s, {} packets, {} more than 1 ms late, at most {:.0f} us\n",
      relay["scheduling"].get<std::string>(), relay["cpu_s"].get<double>(), relay["elapsed_s"].get<double>(),
      relay["packets"].get<std::uint64_t>(), relay["late_over_1ms"].get<std::uint64_t>(),
      relay["late_max_us"].get<double>());
  for (const auto& link : answer["links"])
    std::cout << fmt::format(
        "{} > {}: {}, {} ms +- {} ms, {}, queue {} KiB, loss {:g} %; {} packets, {} bytes; dropped {} queue, "
        "{} loss, "
        "{} down, {} closed; waiting {} bytes; late {} packets, at most {:.0f} us\n",
        link["from"].get<std::string>(), link["to"].get<std::string>(),
        !link["up"].get<bool>()      ? "down"
        : link["closed"].get<bool>() ? "closed"
                                     : "up",
        link["delay_ms"].get<double>(), link["jitter_ms"].get<double>(),
        rate_text(link["rate_bps"].get<std::uint64_t>()), link["queue_bytes"].get<std::uint64_t>() / 1024,
        link["loss"].get<double>() * 100, link["packets"].get<std::uint64_t>(),
        link["bytes"].get<std::uint64_t>(), link["dropped_queue"].get<std::uint64_t>(),
        link["dropped_loss"].get<std::uint64_t>(), link["dropped_down"].get<std::uint64_t>(),
        link["dropped_closed"].get<std::uint64_t>(), link["backlog_bytes"].get<std::uint64_t>(),
        link["late_over_1ms"].get<std::uint64_t>(), link["late_max_us"].get<double>());
  return 0;
}

} // namespace parc::wanlink
