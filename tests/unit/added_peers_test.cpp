// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/added_peers.hpp"

#include "tests/unit/program_test.hpp"

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(added_peers)

namespace {

struct AddingProgram : test::ProgramHost {
  std::optional<AddedPeers> peers_of_it{
      std::in_place,
      AddedPeers::Needs{
          .engine = engine, .peers = peers, .member = member, .has_table = [this] { return has_table; }},
      AddedPeers::Events{.added = [this](std::uint64_t id, const Completion& how) { over[id] = how; }}};

  std::optional<Completion> add(std::uint64_t operation, std::string text) {
    return peers_of_it->add(operation, test::pieces(text));
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(who_is_named_can_be_added) {
  AddingProgram program;
  const std::uint64_t other = program.add_program(1);
  BOOST_TEST(!program.add(3, program.address(other)).has_value());
  BOOST_TEST(program.over.empty()); // at a step's end
  program.loop.end_step();
  const Completion& added = program.over.at(3);
  BOOST_TEST(added.error == PARC_OK);
  const auto address = program.engine.address(program.member.endpoint, added.outcome.source);
  BOOST_REQUIRE(address.has_value());
  BOOST_TEST((address->place == protocol::here && address->number == other));

  std::string text(endpoint_text, '\0');
  const Completion named = program.peers_of_it->name(added.outcome.source, test::pieces(text));
  BOOST_TEST(named.error == PARC_OK);
  BOOST_TEST(named.outcome.source == added.outcome.source);
  BOOST_TEST(named.outcome.total == endpoint_text);
  BOOST_TEST(text == program.address(other));

  BOOST_TEST(!program.add(4, text).has_value());
  program.loop.end_step();
  BOOST_TEST(program.over.at(4).outcome.source == added.outcome.source); // the row that it has
}

BOOST_AUTO_TEST_CASE(a_name_that_cannot_be_told) {
  AddingProgram program;
  std::string text(10, 'x');
  BOOST_TEST(program.peers_of_it->name(-1, test::pieces(text)).error == PARC_EINVAL);
  BOOST_TEST(program.peers_of_it->name(0, test::pieces(text)).error == PARC_EINVAL);
  BOOST_TEST(text == std::string(10, 'x'));
  const std::int32_t row = program.engine.add_row(1, {protocol::here, 1});
  const Completion part = program.peers_of_it->name(row, test::pieces(text));
  BOOST_TEST(part.error == PARC_ETRUNCATE);
  BOOST_TEST(part.outcome.total == endpoint_text);
  BOOST_TEST(text == program.address(1).substr(0, 10));
  const auto link = static_cast<std::int32_t>(program.engine.add_link({})); // whose session has ended
  const std::int32_t lost = program.engine.add_row(1, {link, 1});
  BOOST_TEST(program.peers_of_it->name(lost, test::pieces(text)).error == PARC_EPEER);
}

BOOST_AUTO_TEST_CASE(what_is_no_address_of_a_program) {
  AddingProgram program;
  for (const std::string& text :
       {std::string(), std::string(endpoint_text, '*'), program.address(protocol::kernel_endpoint)}) {
    const auto how = program.add(3, text);
    BOOST_REQUIRE(how.has_value());
    BOOST_TEST(how->error == PARC_EINVAL);
  }
  program.loop.end_step();
  BOOST_TEST(program.over.empty());
}

BOOST_AUTO_TEST_CASE(who_is_not_there_or_not_reached) {
  AddingProgram program;
  BOOST_TEST(!program.add(3, program.address(77)).has_value());
  BOOST_TEST(!program.add(4, to_text(program.elsewhere())).has_value());
  program.loop.end_step();
  BOOST_TEST(program.error_of(3) == PARC_EPEER);
  BOOST_TEST(program.error_of(4) == PARC_EPEER);
}

BOOST_AUTO_TEST_CASE(sixteen_at_once) {
  AddingProgram program;
  for (std::uint64_t operation = 0; operation < 16; ++operation)
    BOOST_TEST(!program.add(operation, program.address(1)).has_value());
  BOOST_TEST(program.add(16, program.address(1)).value().error == PARC_EAGAIN);
  program.loop.end_step();
  BOOST_TEST(program.over.size() == 16u);
  BOOST_TEST(!program.add(16, program.address(1)).has_value());
}

BOOST_AUTO_TEST_CASE(a_program_that_leaves_meanwhile) {
  AddingProgram program;
  BOOST_TEST(!program.add(3, program.address(1)).has_value());
  program.has_table = false;
  program.loop.end_step();
  BOOST_TEST(program.error_of(3) == PARC_ECANCELED);
  BOOST_TEST(!program.engine.has_given(1, 0));
  BOOST_TEST(!program.add(4, program.address(1)).has_value());
  program.peers_of_it.reset();
  program.loop.end_step();
  BOOST_TEST(!program.over.contains(4));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
