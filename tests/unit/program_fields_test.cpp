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

Program of_three_apps() {
  Program program = example();
  program.apps = {{0, program.arguments}, {2, {"./two", "x"}, "~/d", {"A=2"}}, {9, {"./three"}}};
  return program;
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

BOOST_AUTO_TEST_CASE(several_programs_come_back) {
  ProgramFields fields;
  const std::string bytes = encode_program(of_three_apps(), fields);
  const auto decoded = decode_program(fields, bytes);
  BOOST_REQUIRE(decoded);
  const Program& all = decoded.value();
  BOOST_REQUIRE(all.apps.size() == 3);
  for (const auto& [rank, app] : {std::pair{0u, 0u}, {1u, 0u}, {2u, 1u}, {8u, 1u}, {9u, 2u}, {99u, 2u}})
    BOOST_TEST(all.app_of(rank) == app);
  BOOST_TEST(all.of_app(0).arguments == example().arguments);
  BOOST_TEST(all.of_app(0).environment == example().environment);
  const Program two = all.of_app(1);
  BOOST_TEST(two.arguments == (std::vector<std::string>{"./two", "x"}));
  BOOST_TEST(two.directory == "~/d");
  BOOST_TEST(two.environment == (std::vector<std::string>{"B=x y", "A=2"}));
  BOOST_TEST(two.apps.empty());
  BOOST_TEST(all.of_app(2).directory == example().directory);
  BOOST_TEST(example().app_of(7) == 0u);
  BOOST_TEST(example().of_app(0).arguments == example().arguments);
}

BOOST_AUTO_TEST_CASE(programs_that_make_no_sense_are_refused) {
  ProgramFields good;
  const std::string bytes = encode_program(of_three_apps(), good);
  using Numbers = std::vector<std::uint64_t>;
  BOOST_REQUIRE((*good.apps == Numbers{0, 3, 0, 2, 2, 1, 9, 1, 0}));
  for (const Numbers& wrong : {Numbers{},
                               {0, 3},
                               {1, 3, 0, 2, 2, 1, 9, 1, 0},
                               {0, 3, 0, 0, 2, 1, 9, 1, 0},
                               {0, 0, 3, 2, 2, 1, 9, 1, 0},
                               {0, 3, 0, 2, 2, 1, 65536, 1, 0},
                               {0, 3, 0, 2, 2, 1, 9, 1, 99},
                               {0, ~0ul, 0, 2, 2, 1, 9, 1, 0},
                               {0, 3, 0, 2, 1, 2, 9, 1, 0}}) { // "x" is no variable
    ProgramFields fields = good;
    fields.apps = wrong;
    BOOST_TEST(!decode_program(fields, bytes));
  }
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
