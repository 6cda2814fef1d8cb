// SPDX-License-Identifier: BSD-3-Clause
// What processes say to each other besides the data path travels as JSON objects. A message is a struct with
// one list of its fields, from which writing, reading with limits, and the sentences about what is wrong are
// made:
//
//   struct Taken {
//     static constexpr Kind kind = Kind::taken;
//     std::uint64_t job = 0;
//     std::uint32_t rank = 0;
//     static constexpr auto fields() {
//       return std::array{field<&Taken::job>("job"), field<&Taken::rank>("rank", max_ranks - 1)};
//     }
//   };
//
// A member `payload` is no field: those bytes follow the object. An std::optional may be missing.
//
// Invariant: what somebody else wrote is read as untrusted: a field that is missing, of another type, beyond
// its limit, or not in the list is an error that names it, and nothing of the message is used.
#pragma once

#include "system/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace parc::control {

// ---- One field

struct Field {
  const char* name;
  std::uint64_t most; // of a number; of a text in bytes, of a list in elements
  bool optional;
  bool (*put)(const void* message, nlohmann::json& value); // false: it has none
  bool (*take)(void* message, const nlohmann::json& value, std::uint64_t most);
};

inline constexpr std::uint64_t no_limit = UINT64_MAX; // but that of the type, and of the whole message
inline constexpr std::size_t reserved_at_once = 1024; // elements: what a list says it has may be nonsense

// ---- Whole objects

[[nodiscard]] nlohmann::json put_fields(std::span<const Field> fields, const void* message);
// `kind`: the message's, which stands in it beside its fields; empty: it has none.
[[nodiscard]] Result<void> take_fields(std::span<const Field> fields, void* message,
                                       const nlohmann::json& object, std::string_view kind);

template <class T>
concept Described = requires {
  { T::fields().size() } -> std::convertible_to<std::size_t>;
};

// ---- How values are written and read

[[nodiscard]] std::optional<std::uint64_t> natural_in(const nlohmann::json& value);

template <class T> void put_value(nlohmann::json& to, const T& value);
template <class T> bool take_value(const nlohmann::json& from, T& value, std::uint64_t most);

namespace detail {

template <class> inline constexpr bool is_vector = false;
template <class T> inline constexpr bool is_vector<std::vector<T>> = true;
template <class> inline constexpr bool is_array = false;
template <class T, std::size_t n> inline constexpr bool is_array<std::array<T, n>> = true;
template <class> inline constexpr bool is_optional = false;
template <class T> inline constexpr bool is_optional<std::optional<T>> = true;
template <class> inline constexpr bool dependent_false = false;

template <class> struct MemberOf;
template <class C, class V> struct MemberOf<V C::*> {
  using Class = C;
  using Value = V;
};
template <auto first, auto... rest> struct Path {
  using Class = typename MemberOf<decltype(first)>::Class;
  static auto& in(auto& message) {
    if constexpr (sizeof...(rest) == 0)
      return message.*first;
    else
      return Path<rest...>::in(message.*first);
  }
  using Value = std::remove_cvref_t<decltype(in(std::declval<Class&>()))>;
};

} // namespace detail

// Types that stand in a message in a way of their own specialize this.
template <class T> struct Codec {
  static void put(nlohmann::json& to, const T& value) {
    if constexpr (Described<T>) {
      to = put_fields(T::fields(), &value);
    } else if constexpr (detail::is_vector<T> || detail::is_array<T>) {
      to = nlohmann::json::array();
      for (const auto& each : value) put_value(to.emplace_back(), each);
    } else {
      to = value;
    }
  }
  static bool take(const nlohmann::json& from, T& value, std::uint64_t most) {
    if constexpr (Described<T>) {
      return take_fields(T::fields(), &value, from, {}).has_value();
    } else if constexpr (detail::is_vector<T>) {
      if (!from.is_array() || from.size() > most) return false;
      value.clear();
      value.reserve(std::min(from.size(), reserved_at_once));
      for (const auto& each : from)
        if (!take_value(each, value.emplace_back(), no_limit)) return false;
      return true;
    } else if constexpr (detail::is_array<T>) {
      if (!from.is_array() || from.size() != value.size()) return false;
      for (std::size_t i = 0; i < value.size(); ++i)
        if (!take_value(from[i], value[i], no_limit)) return false;
      return true;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!from.is_string() || from.get_ref<const std::string&>().size() > most) return false;
      value = from.get_ref<const std::string&>();
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!from.is_boolean()) return false;
      value = from.get<bool>();
      return true;
    } else if constexpr (std::unsigned_integral<T>) {
      const auto number = natural_in(from);
      if (!number || *number > most || *number > std::numeric_limits<T>::max()) return false;
      value = static_cast<T>(*number);
      return true;
    } else if constexpr (std::is_same_v<T, std::int64_t>) { // any integer
      if (!from.is_number_integer()) return false;
      if (from.is_number_unsigned() && from.get<std::uint64_t>() > INT64_MAX) return false;
      value = from.get<std::int64_t>();
      return true;
    } else if constexpr (std::is_same_v<T, std::int32_t>) { // -1: any, or none
      if (!from.is_number_integer()) return false;
      const auto number = natural_in(from);
      if (number ? *number > most || *number > INT32_MAX : from.get<std::int64_t>() != -1) return false;
      value = number ? static_cast<std::int32_t>(*number) : -1;
      return true;
    } else {
      static_assert(detail::dependent_false<T>, "say how this travels");
    }
  }
};

template <class T> void put_value(nlohmann::json& to, const T& value) {
  Codec<T>::put(to, value);
}
template <class T> bool take_value(const nlohmann::json& from, T& value, std::uint64_t most) {
  return Codec<T>::take(from, value, most);
}

// `path`: the member, or members of members on the way to it.
template <auto... path> constexpr Field field(const char* name, std::uint64_t most = no_limit) {
  using At = detail::Path<path...>;
  using Class = typename At::Class;
  using Value = typename At::Value;
  return {.name = name,
          .most = most,
          .optional = detail::is_optional<Value>,
          .put =
              [](const void* message, nlohmann::json& value) {
                const auto& member = At::in(*static_cast<const Class*>(message));
                if constexpr (detail::is_optional<Value>) {
                  if (!member) return false;
                  put_value(value, *member);
                } else {
                  put_value(value, member);
                }
                return true;
              },
          .take =
              [](void* message, const nlohmann::json& value, std::uint64_t limit) {
                auto& member = At::in(*static_cast<Class*>(message));
                if constexpr (detail::is_optional<Value>)
                  return take_value(value, member.emplace(), limit);
                else
                  return take_value(value, member, limit);
              }};
}

template <std::size_t a, std::size_t b> constexpr std::array<Field, a + b>
operator+(const std::array<Field, a>& first, const std::array<Field, b>& second) {
  std::array<Field, a + b> all{};
  for (std::size_t i = 0; i < a; ++i) all[i] = first[i];
  for (std::size_t i = 0; i < b; ++i) all[a + i] = second[i];
  return all;
}

// ---- Messages

// `names`: of all kinds, in their order. None: no kind has that name.
template <class Kind, std::size_t kinds> [[nodiscard]] std::optional<Kind>
kind_among(const std::array<std::string_view, kinds>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return {};
  return static_cast<Kind>(found - names.begin());
}

template <class Message>
concept HasPayload = requires(Message message) {
  { message.payload } -> std::convertible_to<std::string>;
};

template <class Message> [[nodiscard]] nlohmann::json to_json(const Message& message) {
  nlohmann::json object = put_fields(Message::fields(), &message);
  object["kind"] = name(Message::kind);
  return object;
}

template <class Message>
[[nodiscard]] Result<Message> from_json(const nlohmann::json& object, std::string payload = {}) {
  Message message;
  const std::string_view kind = name(Message::kind);
  PARC_TRY(take_fields(Message::fields(), &message, object, kind));
  if constexpr (HasPayload<Message>)
    message.payload = std::move(payload);
  else if (!payload.empty())
    return error(EPROTO, "bytes follow a message \"{}\", behind which there should be none", kind);
  return message;
}

} // namespace parc::control
