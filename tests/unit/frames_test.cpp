// SPDX-License-Identifier: BSD-3-Clause
#include "control/frames.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::control {

BOOST_AUTO_TEST_SUITE(frames)

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
    BOOST_TEST(kind_of(got[0].message) == "a");
    BOOST_TEST(got[0].payload.empty());
    BOOST_TEST(got[1].payload == bytes);
    BOOST_TEST((got[1].message == nlohmann::json{{"kind", "b"}, {"n", 7}}));
    BOOST_TEST(kind_of(got[2].message) == "c");
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

BOOST_AUTO_TEST_CASE(what_names_a_member_twice_is_refused) {
  BOOST_TEST(parse_object(R"({"a":{"b":1},"b":[{"a":1},{"a":2}]})").has_value());
  BOOST_TEST(parse_object(R"({"a":1,"b":2,"a":1})").error().text == "it has more than one \"a\"");
  BOOST_TEST(parse_object(R"({"":1,"":2})").error().text == "it has more than one \"\"");
  BOOST_TEST(parse_object(R"({"a":[{"c":1,"c":2}]})").error().text == "it has more than one \"c\"");
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_does_not_stop_a_frame) {
  FrameReader reader;
  reader.feed(encode_frame({{"text", "a\xff"}}));
  const auto frame = reader.next();
  BOOST_REQUIRE(frame);
  BOOST_TEST(frame.value()->message["text"].get<std::string>().starts_with("a"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::control
