// SPDX-License-Identifier: BSD-3-Clause
// parc doctor, with kernels and without.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace parc::test {
namespace {

struct Answer {
  int status = -1;
  nlohmann::json json;

  [[nodiscard]] std::vector<nlohmann::json> about(const std::string& check,
                                                  const std::string& group = {}) const {
    std::vector<nlohmann::json> found;
    for (const auto& finding : json["findings"])
      if (finding["check"] == check && (group.empty() || finding["group"] == group)) found.push_back(finding);
    return found;
  }
  [[nodiscard]] std::string level(const std::string& check, const std::string& group = {}) const {
    const auto found = about(check, group);
    return found.size() == 1 ? found[0]["level"].get<std::string>()
                             : std::to_string(found.size()) + " findings";
  }
  [[nodiscard]] std::string mend(const std::string& check, const std::string& group = {}) const {
    const auto found = about(check, group);
    return found.empty() ? "" : found[0]["mend"].get<std::string>();
  }
  [[nodiscard]] std::string text() const { return json.dump(1); }
};

Answer ask(Hosts& hosts, std::vector<std::string> words = {}, std::size_t on = 0) {
  words.emplace_back("--json");
  Process doctor = hosts.parc("doctor", std::move(words), on);
  Answer answer;
  answer.status = doctor.wait();
  BOOST_TEST_INFO(doctor.errors());
  answer.json = nlohmann::json::parse(doctor.output(), nullptr, false);
  BOOST_TEST_REQUIRE(answer.json.is_object());
  return answer;
}

// Stands for ssh: what host NAME is told runs here, on that host's runtime directory.
std::string fake_ssh(const Hosts& hosts) {
  const std::string path = hosts.directory() + "/ssh";
  std::ofstream(path) << "#!/bin/sh\nwhile [ \"$1\" = -o ]; do shift 2; done\n"
                         "[ \"$1\" != far ] || { echo 'far: no way there' >&2; exit 255; }\n"
                      << "echo \"$1\" >>" << hosts.directory() << "/logins\n"
                      << "PARC_RUNTIME_DIR=" << hosts.directory() << "/$1 exec sh -c \"$2\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

} // namespace

BOOST_AUTO_TEST_SUITE(doctor)

BOOST_AUTO_TEST_CASE(a_healthy_pair) {
  Hosts hosts(2);
  const Answer answer = ask(hosts);
  BOOST_TEST_CONTEXT(answer.text()) {
    BOOST_TEST(answer.status == 0);
    BOOST_TEST(answer.json["schema"] == 1);
    BOOST_TEST(answer.json["host"] == "a");
    BOOST_TEST(answer.json["problems"] == 0);
    for (const char* check : {"runtime directory", "kernel", "version", "settings", "key", "to b"})
      BOOST_TEST(answer.level(check) == "ok", check);
    BOOST_TEST(answer.about("to a").empty());
    for (const auto& finding : answer.json["findings"]) {
      const bool bad = finding["level"] == "warning" || finding["level"] == "problem";
      BOOST_TEST((!bad || finding["mend"] != ""), finding.dump());
    }
  }
  Process text = hosts.parc("doctor", {});
  BOOST_TEST(text.wait() == 0);
  for (const char* part :
       {"kernel\n  ok ", "\nlimits\n", "\nTCP\n", "\nhosts\n", "  ok       to b: 127.0.0.1:"})
    BOOST_TEST(text.output().find(part) != std::string::npos, part);

  Process job = hosts.run({"-n", "2", "--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "100", "10"});
  BOOST_TEST(job.wait() == 0);
  const Answer linked = ask(hosts);
  BOOST_TEST(linked.about("to b").at(0)["found"].get<std::string>().starts_with("linked"));
  BOOST_TEST(linked.status == 0);
}

// Where each has brought up the other: who is asked by ssh asks nobody.
BOOST_AUTO_TEST_CASE(hosts_that_have_brought_up_each_other) {
  Hosts hosts(2);
  std::ofstream(hosts[0].runtime_dir() + "/up-hosts") << "b slots=1\n";
  std::ofstream(hosts[1].runtime_dir() + "/up-hosts") << "a slots=1\n";
  const Answer answer = ask(hosts, {"--ssh", fake_ssh(hosts)});
  BOOST_TEST_CONTEXT(answer.text()) {
    BOOST_TEST(answer.status == 0);
    BOOST_TEST(answer.level("to b") == "ok");
    BOOST_TEST(answer.level("version", "on host b") == "ok");
  }
  std::ifstream logins(hosts.directory() + "/logins");
  std::string all, line;
  while (std::getline(logins, line)) all += line + " ";
  BOOST_TEST(all == "b ");
}

// As their kernels say, not this host's.
BOOST_AUTO_TEST_CASE(whether_the_others_reach_each_other) {
  Hosts hosts(3);
  const Answer answer = ask(hosts, {"--hosts", "b,c", "--ssh", fake_ssh(hosts)});
  BOOST_TEST(answer.about("pairs", "hosts").size() == 1U, answer.text());
  BOOST_TEST(answer.text().find("b and c reach each other") != std::string::npos, answer.text());
  hosts[2].kernel().signal(SIGSTOP);
  const Answer stopped = ask(hosts, {"--hosts", "b,c", "--ssh", fake_ssh(hosts)});
  hosts[2].kernel().signal(SIGCONT);
  BOOST_TEST(stopped.level("pairs") == "0 findings", stopped.text());
}

BOOST_AUTO_TEST_CASE(a_host_whose_port_is_closed) {
  Hosts hosts(2, {}, "nowhere = \"no.such.host.invalid\"\n");
  Process stop = hosts.parc("stop", {}, 1);
  BOOST_TEST(stop.wait() == 0);
  const Answer answer = ask(hosts);
  BOOST_TEST_CONTEXT(answer.text()) {
    BOOST_TEST(answer.status == 1);
    BOOST_TEST(answer.level("to b") == "problem");
    BOOST_TEST(answer.mend("to b").find("parcd --detach") != std::string::npos);
    BOOST_TEST(answer.level("to nowhere") == "problem");
    BOOST_TEST(answer.json["problems"] == 2);
  }
  const Answer elsewhere = ask(hosts, {"--at", "b=127.0.0.1:" + std::to_string(hosts[0].port())});
  BOOST_TEST(elsewhere.level("to b") == "ok");
  BOOST_TEST(elsewhere.status == 0);
}

BOOST_AUTO_TEST_CASE(a_key_that_others_can_read) {
  Hosts hosts(1);
  std::filesystem::permissions(hosts.directory() + "/key", std::filesystem::perms(0644));
  const Answer answer = ask(hosts);
  BOOST_TEST_CONTEXT(answer.text()) {
    BOOST_TEST(answer.status == 1);
    BOOST_TEST(answer.json["problems"] == 1); // said once
    BOOST_TEST(answer.level("key") == "problem");
    BOOST_TEST(answer.mend("key").starts_with("chmod 600 " + hosts.directory() + "/key"));
  }
}

BOOST_AUTO_TEST_CASE(kernels_that_do_not_work) {
  Hosts hosts(1);
  hosts[0].kernel().signal(SIGSTOP);
  const std::string process = std::to_string(hosts[0].kernel().id());
  BOOST_TEST(eventually([&] { return ask(hosts).mend("kernel") == "kill -CONT " + process; }));
  BOOST_TEST(ask(hosts).status == 1);
  hosts[0].kernel().signal(SIGCONT);
  BOOST_TEST(eventually([&] { return ask(hosts).status == 0; }));
  std::ofstream(hosts.directory() + "/parcd.toml", std::ios::app) << "b = 17\n";
  const Answer settings = ask(hosts);
  BOOST_TEST(settings.status == 1);
  BOOST_TEST(settings.level("settings") == "problem");
  BOOST_TEST(settings.about("settings")[0]["found"].get<std::string>().find("parcd.toml:") !=
             std::string::npos);
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  const Answer dead = ask(hosts); // with settings of nobody, which are right
  BOOST_TEST(dead.level("kernel") == "warning");
  BOOST_TEST(dead.status == 0);
  std::filesystem::permissions(hosts[0].runtime_dir(), std::filesystem::perms(0755));
  const Answer open = ask(hosts);
  BOOST_TEST(open.status == 1);
  BOOST_TEST(open.json["problems"] == 1);
  BOOST_TEST(open.mend("runtime directory").find("chmod 700") != std::string::npos);
  std::filesystem::permissions(hosts[0].runtime_dir(), std::filesystem::perms(0700));
}

BOOST_AUTO_TEST_CASE(the_way_back) {
  Hosts hosts(2);
  const Answer answer = ask(hosts, {"--hosts", "b", "--ssh", fake_ssh(hosts)});
  BOOST_TEST_CONTEXT(answer.text()) {
    BOOST_TEST(answer.status == 0);
    BOOST_TEST(answer.level("to b", "hosts") == "ok");
    BOOST_TEST(answer.level("to a", "on host b") == "ok");
    BOOST_TEST(answer.level("version", "on host b") == "ok");
    BOOST_TEST(answer.level("clock", "on host b") == "ok");
  }
  const Answer far =
      ask(hosts, {"--at", "far=127.0.0.1:" + std::to_string(hosts[1].port()), "--ssh", fake_ssh(hosts)});
  BOOST_TEST_CONTEXT(far.text()) {
    BOOST_TEST(far.level("to far") == "ok");
    BOOST_TEST(far.level("login", "on host far") == "warning");
    BOOST_TEST(far.about("login")[0]["found"].get<std::string>().ends_with("far: no way there"));
    BOOST_TEST(far.status == 0);
  }
}

BOOST_AUTO_TEST_CASE(command_lines_that_are_wrong) {
  Hosts hosts(1);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--at", "b"}, {"--hosts", "a:x"}, {"--hosts", "a", "--hostfile", "b"}, {"word"}, {"--no-such"}}) {
    Process wrong = hosts.parc("doctor", words);
    BOOST_TEST(wrong.wait() == 2, words[0]);
    BOOST_TEST(wrong.errors().starts_with("parc: "));
    BOOST_TEST(wrong.output().empty());
  }
  Process missing = hosts.parc("doctor", {"--hostfile", "/no/such/file"});
  BOOST_TEST(missing.wait() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
