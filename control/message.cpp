// SPDX-License-Identifier: BSD-3-Clause
#include "control/message.hpp"

#include "system/quote.hpp"

#include <algorithm>

namespace parc::control {
namespace {

std::string named(std::string_view kind) {
  return kind.empty() ? std::string("a part of a message") : fmt::format("a message \"{}\"", kind);
}

} // namespace

// What never was text may hold a signed number.
std::optional<std::uint64_t> natural_in(const nlohmann::json& value) {
  if (!value.is_number_integer()) return {};
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) return {};
  return value.get<std::uint64_t>();
}

nlohmann::json put_fields(std::span<const Field> fields, const void* message) {
  nlohmann::json object = nlohmann::json::object();
  for (const Field& field : fields) {
    nlohmann::json value;
    if (field.put(message, value)) object[field.name] = std::move(value);
  }
  return object;
}

Result<void> take_fields(std::span<const Field> fields, void* message, const nlohmann::json& object,
                         std::string_view kind) {
  if (!object.is_object()) return error(EPROTO, "{} is no object", named(kind));
  std::size_t known = 0;
  if (!kind.empty()) {
    const auto said = object.find("kind");
    if (said == object.end() || *said != kind)
      return error(EPROTO, "{} does not say that it is one", named(kind));
    ++known;
  }
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    if (found == object.end()) {
      if (field.optional) continue;
      return error(EPROTO, "{} has no \"{}\"", named(kind), field.name);
    }
    ++known;
    if (!field.take(message, *found, field.most))
      return error(EPROTO, "the \"{}\" of {} makes no sense", field.name, named(kind));
  }
  if (known == object.size()) return success();
  for (const auto& member : object.items())
    if ((kind.empty() || member.key() != "kind") &&
        std::ranges::find(fields, member.key(), &Field::name) == fields.end())
      return error(EPROTO, "{} has a {}, which it should not have", named(kind), quote(member.key()));
  return error(EPROTO, "{} makes no sense", named(kind));
}

} // namespace parc::control
