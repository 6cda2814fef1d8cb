// SPDX-License-Identifier: BSD-3-Clause
#include "system/frames.hpp"

#include <boost/test/unit_test.hpp>

namespace parc {
namespace {

std::string length(std::uint32_t number) {
  std::string text;
  for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(number >> shift & 0xff);
  return text;
}

bool refused(const std::string& text) {
  FrameReader reader;
  reader.feed(text);
  return !reader.next();
}

} // namespace

BOOST_AUTO_TEST_SUITE(frames)

BOOST_AUTO_TEST_CASE(frames_arrive_in_any_pieces) {
  const std::string bytes("raw\0\xff{", 6);
  const std::string stream = encode_frame({{"kind", "a"}}) + encode_frame({{"kind", "b"}, {"n", 7}}, bytes) +
                             encode_frame({{"kind", "c"}});
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader;
    std::vector<Frame> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (;;) {
        auto next = reader.next();
        BOOST_REQUIRE(next);
        if (!next.value()) break;
        got.push_back(std::move(*next.value()));
      }
    }
    BOOST_REQUIRE(got.size() == 3);
    BOOST_TEST(text_in(got[0].message, "kind") == "a");
    BOOST_TEST(got[0].bytes.empty());
    BOOST_TEST(got[1].bytes == bytes);
    BOOST_TEST((number_in(got[1].message, "n", 10) == 7u));
    BOOST_TEST(text_in(got[2].message, "kind") == "c");
  }
}

BOOST_AUTO_TEST_CASE(what_is_nested_too_deep_is_refused) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  BOOST_TEST(parse_object(nested(20)).has_value());
  BOOST_TEST(!parse_object(nested(100)).has_value());
  BOOST_TEST(!parse_object(nested(400'000)).has_value());
  const std::string brackets(100, '[');
  BOOST_TEST(parse_object("{\"a\":\"\\\"" + brackets + "\"}").has_value());
  BOOST_TEST(!parse_object("{\"a\\\\\":" + brackets).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_not_a_frame_is_refused) {
  BOOST_TEST(refused(length(max_frame_text + 1)));
  BOOST_TEST(refused(length(3) + "[1]"));
  BOOST_TEST(refused(length(4) + "{\"a\""));
  BOOST_TEST(refused(length(0)));
  BOOST_TEST(refused(length(12) + "{\"bytes\":-1}"));
  BOOST_TEST(refused(length(13) + "{\"bytes\":\"1\"}"));
  const std::string endless = "{\"bytes\":" + std::to_string(max_frame_bytes + 1) + "}";
  BOOST_TEST(refused(length(static_cast<std::uint32_t>(endless.size())) + endless));
}

BOOST_AUTO_TEST_CASE(members_of_another_type_are_none) {
  const nlohmann::json message{
      {"text", 1}, {"number", "1"}, {"negative", -1}, {"list", {1, -2}}, {"big", 11}};
  BOOST_TEST(text_in(message, "text") == "");
  BOOST_TEST(text_in(message, "nothing") == "");
  BOOST_TEST(!number_in(message, "number", 10));
  BOOST_TEST(!number_in(message, "negative", 10));
  BOOST_TEST(!number_in(message, "big", 10));
  BOOST_TEST((number_in(message, "big", 11) == 11u));
  BOOST_TEST(!numbers_in(message, "list", 2));
  BOOST_TEST(!numbers_in({{"list", {1, 2, 3}}}, "list", 2));
  BOOST_TEST((numbers_in({{"list", {1, 2}}}, "list", 2) == std::vector<std::uint64_t>{1, 2}));
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_does_not_stop_a_frame) {
  FrameReader reader;
  reader.feed(encode_frame({{"text", "a\xff"}}));
  const auto frame = reader.next();
  BOOST_REQUIRE(frame);
  BOOST_TEST(text_in(frame.value()->message, "text").starts_with("a"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
