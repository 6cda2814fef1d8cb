// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/host_place.hpp"

#include "jobs/program.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <cerrno>

namespace parc {

Result<bool> set(HostPlace& place, std::string_view key, std::string_view value) {
  const bool is_prefix = key == "prefix", is_directory = key == "wdir" || key == "wd";
  if (!is_prefix && !is_directory && key != "env") return false;
  const auto is_zero = [](char c) { return c == '\0' || c == '\n'; };
  if (std::ranges::any_of(value, is_zero)) return error(EINVAL, "{} has an end of a line in it", key);
  if (key == "env") {
    if (!is_variable(value)) return error(EINVAL, "env: {} is no NAME=VALUE", quote(value));
    place.env.emplace_back(value);
    return true;
  }
  if (!is_path_of_host(value))
    return error(EINVAL, "{}: {} begins neither with / nor with ~/", key, quote(value));
  if (is_prefix && value.find_first_of(" \t#") != value.npos) // hostfiles could not say it again
    return error(EINVAL, "prefix: {} has a blank or # in it", quote(value));
  (is_prefix ? place.prefix : place.wdir) = value;
  return true;
}

bool is_path_of_host(std::string_view path) {
  return path.starts_with('/') || path == "~" || path.starts_with("~/");
}

std::string with_home(std::string_view path, std::string_view home) {
  if (path != "~" && !path.starts_with("~/")) return std::string(path);
  return std::string(home).append(path.substr(1));
}

} // namespace parc
