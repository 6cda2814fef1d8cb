// SPDX-License-Identifier: BSD-3-Clause
#include "control/tool_messages.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::control {

BOOST_AUTO_TEST_SUITE(programs_that_travel)

namespace {

Program example() {
  return {.arguments = {"./solver", "", "\xff"},
          .environment = {"A=1", "B=x y"},
          .here = {"HOME=/home/x"},
          .directory = "/home/x",
          .umask = 027,
          .limits = {{7, 1024, ~std::uint64_t{0}}},
          .binds = true,
          .mpi = true};
}

} // namespace

BOOST_AUTO_TEST_CASE(what_is_encoded_comes_back) {
  ProgramFields fields;
  const std::string bytes = encode_program(example(), fields);
  const auto decoded = decode_program(fields, bytes);
  BOOST_REQUIRE(decoded);
  BOOST_TEST(decoded.value().arguments == example().arguments);
  BOOST_TEST(decoded.value().environment == example().environment);
  BOOST_TEST(decoded.value().here == example().here);
  BOOST_TEST(decoded.value().directory == "/home/x");
  BOOST_TEST(decoded.value().umask == 027u);
  BOOST_TEST(decoded.value().binds);
  BOOST_TEST(decoded.value().mpi);
  BOOST_REQUIRE(decoded.value().limits.size() == 1);
  BOOST_TEST(decoded.value().limits[0].resource == 7u);
  BOOST_TEST(decoded.value().limits[0].hard == ~std::uint64_t{0});
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_refused) {
  tool::Run run;
  const std::string bytes = encode_program(example(), run.program);
  const ProgramFields& good = run.program;
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json message = to_json(run);
    message[key] = value;
    const auto read = from_json<tool::Run>(message, bytes);
    return !read || !decode_program(read.value().program, read.value().payload);
  };
  BOOST_TEST(refused("arguments", 0));
  BOOST_TEST(refused("arguments", 7));
  BOOST_TEST(refused("arguments", "3"));
  BOOST_TEST(refused("here", 4));
  BOOST_TEST(refused("umask", 01000));
  BOOST_TEST(refused("binds", 2));
  BOOST_TEST(refused("mpi", 2));
  BOOST_TEST(refused("mpi", 0)); // is left out
  BOOST_TEST(refused("limits", {1, 2}));
  BOOST_TEST(refused("limits", {1000, 2, 3}));
  BOOST_TEST(!decode_program(good, bytes.substr(0, bytes.size() - 1)));
  ProgramFields other;
  Program nameless = example();
  nameless.environment.emplace_back("HOME");
  BOOST_TEST(!decode_program(other, encode_program(nameless, other)));
  BOOST_TEST(!decode_program(good, bytes.substr(1))); // the directory is relative
  BOOST_TEST(!decode_program(good, bytes + std::string(max_program_bytes, 'x') + '\0'));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::control
