// SPDX-License-Identifier: BSD-3-Clause
// All control messages: what they say comes back, and what is no such message is refused by name.
#include "control/frames.hpp"
#include "protocol/wire.hpp"
#include "tests/support/control_messages.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

namespace parc::control {

BOOST_AUTO_TEST_SUITE(control_messages)

namespace {

template <class Message> std::string why(const nlohmann::json& object, std::string payload = {}) {
  const auto read = from_json<Message>(object, std::move(payload));
  return read ? "" : read.error().text;
}

template <class Message> void check() {
  const std::string kind(name(Message::kind));
  const nlohmann::json good = to_json(Message());
  BOOST_TEST_CONTEXT(kind) {
    BOOST_TEST(good["kind"] == kind);
    BOOST_TEST(why<Message>(good) == "");
    BOOST_TEST(to_json(from_json<Message>(good).value()) == good);
    for (const Field& field : Message::fields()) {
      nlohmann::json wrong = good;
      wrong.erase(field.name);
      BOOST_TEST(why<Message>(wrong) ==
                 (field.optional ? "" : fmt::format("a message \"{}\" has no \"{}\"", kind, field.name)));
      wrong[field.name] = -7.5;
      BOOST_TEST(why<Message>(wrong) ==
                 fmt::format("the \"{}\" of a message \"{}\" makes no sense", field.name, kind));
    }
    nlohmann::json other = good;
    other["kind"] = "other";
    BOOST_TEST(why<Message>(other) == fmt::format("a message \"{}\" does not say that it is one", kind));
    nlohmann::json more = good;
    more["stranger"] = 1;
    BOOST_TEST(why<Message>(more) ==
               fmt::format("a message \"{}\" has a \"stranger\", which it should not have", kind));
    if (!HasPayload<Message>)
      BOOST_TEST(why<Message>(good, "x") ==
                 fmt::format("bytes follow a message \"{}\", behind which there should be none", kind));
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(each_comes_back_or_is_refused_by_name) {
  Kernels::each([]<class Message> { check<Message>(); });
  Tools::each([]<class Message> { check<Message>(); });
}

BOOST_AUTO_TEST_CASE(each_kind_has_a_name_and_a_message) {
  std::set<kernel::Kind> kernels;
  Kernels::each([&]<class Message> { BOOST_TEST(kernels.insert(Message::kind).second); });
  BOOST_TEST(kernels.size() == kernel::kinds);
  for (const kernel::Kind kind : kernels) BOOST_TEST((kernel::kind_named(name(kind)) == kind));
  std::set<tool::Kind> tools;
  Tools::each([&]<class Message> { tools.insert(Message::kind); });
  BOOST_TEST(tools.size() == tool::kinds);
  for (const tool::Kind kind : tools) BOOST_TEST((tool::kind_named(name(kind)) == kind));
  BOOST_TEST(!kernel::kind_named("nonsense"));
  BOOST_TEST(!tool::kind_named(""));
}

// Kernels take no message that they do not know, so who changes one raises the version by which they know
// each other, and writes both here.
BOOST_AUTO_TEST_CASE(they_change_with_the_version_of_the_wire) {
  std::uint64_t hash = 14'695'981'039'346'656'037u; // Fowler, Noll and Vo
  const auto add = [&](const std::string& text) {
    for (const unsigned char each : text) hash = (hash ^ each) * 1'099'511'628'211u;
  };
  Kernels::each([&]<class Message> {
    add(std::string(name(Message::kind)));
    for (const Field& field : Message::fields())
      add(fmt::format(" {} {} {}", field.name, field.most, field.optional));
  });
  // What is nested in them.
  RankState rank;
  rank.operations.emplace_back();
  rank.backlog = {1, 1, 1, 1, 1, 1, 1};
  for (const nlohmann::json& sample :
       {to_json(kernel::Ended{.unread = 0, .messages = std::vector<kernel::UnreadMessage>(1)}),
        to_json(kernel::Seen{.ranks = {rank}}),
        to_json(kernel::Question{.question = {.job = 1, .signal = 1, .hosts = {{{"a", "b"}}}}}),
        to_json(kernel::Answer{.answer = {.jobs = {JobRow()}, .waiting = {WaitingJob()}, .killed = true}})})
    add(sample.dump());
  BOOST_TEST(protocol::wire_version == 22u);
  BOOST_TEST(hash == 7481746351290014794u);
}

BOOST_AUTO_TEST_CASE(what_is_beyond_its_limit_is_refused) {
  nlohmann::json taken = to_json(kernel::Taken{.job = 1, .rank = 2, .bytes = 3});
  taken["rank"] = max_ranks;
  BOOST_TEST(why<kernel::Taken>(taken) == "the \"rank\" of a message \"taken\" makes no sense");
  taken["rank"] = -1;
  BOOST_TEST(why<kernel::Taken>(taken) != "");
  nlohmann::json ended = to_json(kernel::Ended{.messages = std::vector<kernel::UnreadMessage>(5)});
  BOOST_TEST(why<kernel::Ended>(ended) == "");
  ended["messages"].push_back(ended["messages"][0]);
  BOOST_TEST(why<kernel::Ended>(ended) == "the \"messages\" of a message \"ended\" makes no sense");
  ended["messages"] = {{{"to", 1}}};
  BOOST_TEST(why<kernel::Ended>(ended) != "");
  for (const std::int64_t tag : {std::int64_t{INT32_MIN}, std::int64_t{-1}, std::int64_t{INT32_MAX}})
    BOOST_TEST(why<kernel::Ended>(to_json(kernel::Ended{.messages = {{{.tag = tag}}}})) == "");
  nlohmann::json departed = to_json(kernel::Departed{.known = {1, 2}});
  departed["known"] = {1, -2};
  BOOST_TEST(why<kernel::Departed>(departed) != "");
}

// Sentences stand in logs and on terminals.
BOOST_AUTO_TEST_CASE(what_is_refused_by_name_is_quoted) {
  BOOST_TEST(why<kernel::Go>({{"kind", "go"}, {"number", 1}, {"\x1b\xc2\x9b", 1}}) ==
             R"(a message "go" has a "\x1b\xc2\x9b", which it should not have)");
}

// As kernels and tools of before have said them.
BOOST_AUTO_TEST_CASE(their_text_is_as_it_was) {
  BOOST_TEST(to_json(kernel::Exited{.job = 1, .host = 2, .rank = 3, .ordered = true}).dump() ==
             R"({"host":2,"job":1,"kind":"exited","ordered":true,"rank":3,"signal":0,"status":0})");
  BOOST_TEST(to_json(kernel::Signal{.job = 1, .signal = 15}).dump() ==
             R"({"job":1,"kind":"signal","signal":15})");
  BOOST_TEST(to_json(kernel::Question{.token = 1, .place = 2}).dump() ==
             R"({"kind":"question","place":2,"question":null,"token":1})");
  BOOST_TEST(
      to_json(kernel::Question{.token = 1, .place = 2, .question = {.hosts = {{{"a", "b"}}}}}).dump() ==
      R"({"kind":"question","place":2,"question":{"hosts":[["a","b"]]},"token":1})");
  BOOST_TEST(
      to_json(tool::Search{.hosts = {{.name = "a"}, {.name = "b", .address = "c", .port = 7}}}).dump() ==
      R"({"hosts":["a",["b","c",7]],"kind":"search","pairs":0,"question":null})");
  BOOST_TEST(to_json(tool::Input{.end = 1}).dump() == R"({"end":1,"kind":"input"})");
  tool::Run run{.hosts = {""}, .runs = {0, 2}};
  run.payload =
      encode_program({.arguments = {"a"}, .environment = {}, .directory = "/", .limits = {}}, run.program);
  BOOST_TEST(
      to_json(run).dump() ==
      R"({"arguments":1,"binds":0,"here":0,"hosts":[""],"input":4294967295,"keep_going":0,"kind":"run",)"
      R"("limits":[],"runs":[0,2],"umask":18})");
  BOOST_TEST(run.payload == std::string("/\0a\0", 4));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::control
