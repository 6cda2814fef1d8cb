// SPDX-License-Identifier: BSD-3-Clause
// What can be seen of a kernel that works, one that hangs and one that is dead, by commands that ask nobody.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <regex>

namespace parc::test {
namespace {

// While it lives the kernel does not get on, as one that hangs.
class Hanging {
public:
  explicit Hanging(Host& host) : host_(host) { host_.kernel().signal(SIGSTOP); }
  Hanging(const Hanging&) = delete;
  Hanging& operator=(const Hanging&) = delete;
  ~Hanging() { host_.kernel().signal(SIGCONT); }

private:
  Host& host_;
};

std::string output_of(Process process) {
  BOOST_REQUIRE_MESSAGE(process.wait() == 0, process.errors());
  return process.output();
}

// The value of the first sample whose name and labels match.
double value_in(const std::string& metrics, const std::string& sample) {
  std::smatch found;
  BOOST_REQUIRE_MESSAGE(std::regex_search(metrics, found, std::regex("(?:^|\n)" + sample + " (\\S+)\n")),
                        "no " + sample + " in\n" + metrics);
  return std::stod(found[1]);
}

// Of a program in parc status --json: what it has exchanged through the kernel, and with neighbours without
// it.
std::int64_t total(const nlohmann::json& session, const char* kernel, const char* neighbours) {
  return session[kernel].get<std::int64_t>() + session["neighbours"][neighbours].get<std::int64_t>();
}

// What is wrong with them, as Prometheus' own tool says.
std::string judged(Hosts& hosts, const std::string& metrics) {
  const std::string file = hosts.directory() + "/metrics";
  std::ofstream(file) << metrics;
  Process promtool = hosts.start({"sh", "-c", "exec promtool check metrics <" + file});
  const int status = promtool.wait();
  BOOST_REQUIRE_MESSAGE(status != 127, "promtool is missing, and judges what parc metrics prints: install "
                                       "Debian's package prometheus");
  return status == 0 ? "" : promtool.output() + promtool.errors();
}

} // namespace

BOOST_AUTO_TEST_SUITE(view)

BOOST_AUTO_TEST_CASE(prometheus_reads_the_metrics_of_a_running_job) {
  Hosts hosts(2);
  Process job = hosts.run({"-n", "3", "--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] {
    const auto seen = hosts.status();
    return seen["sessions"].size() == 2 && seen["links"].size() == 1 && seen["links"][0]["bytes_in"] > 100000;
  }));
  const std::string first = output_of(hosts.parc("metrics", {}));
  BOOST_TEST(judged(hosts, first) == "");
  BOOST_TEST(value_in(first, "parc_up\\{host=\"a\",port=\"\\d+\"\\}") == 1);
  BOOST_TEST(value_in(first, "parc_link_up\\{[^}]*peer=\"b\"[^}]*\\}") == 1);
  BOOST_TEST(value_in(first, "parc_link_received_bytes_total\\{[^}]*\\}") > 100000);
  BOOST_TEST(value_in(first, "parc_job_ranks\\{[^}]*state=\"running\"\\}") == 2);
  BOOST_TEST(value_in(first, "parc_program_waits_total\\{[^}]*rank=\"1\",program=\"ring\"\\}") > 0);
  for (const char* sample : {"parc_link_sent_messages_total\\{[^}]*\\}",
                             "parc_program_sent_messages_total\\{[^}]*rank=\"1\"[^}]*\\}",
                             "parc_program_neighbour_received_messages_total\\{[^}]*rank=\"1\"[^}]*\\}",
                             "parc_kernel_turns_total\\{[^}]*\\}"})
    BOOST_TEST(eventually([&] {
                 return value_in(output_of(hosts.parc("metrics", {})), sample) > value_in(first, sample);
               }),
               sample);
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
}

// Whichever way it goes, at its writer and at its reader. In a ring all ranks are at most a round or two
// apart.
BOOST_AUTO_TEST_CASE(each_message_is_counted_once) {
  for (const char* way : {"direct", "cross", "kernel"})
    for (const int bytes : {100, 100'000}) {
      Hosts hosts(2, options_of(way));
      Process job =
          hosts.run({"-n", "3", "--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", std::to_string(bytes), "0"});
      BOOST_TEST(eventually([&] {
        return !hosts.status()["links"].empty() && hosts.status()["links"][0]["messages_out"] > 500;
      }));
      for (const pid_t rank : hosts.ranks()) kill(rank, SIGSTOP);
      const auto about = [](std::int64_t one, std::int64_t other, std::int64_t apart) {
        return std::abs(one - other) <= 4 * apart;
      };
      nlohmann::json seen;
      const bool agree = eventually([&] {
        seen = hosts.status();
        const auto sent = [&](int rank) { return total(seen["sessions"][rank], "messages_out", "messages"); };
        const auto received = [&](int rank) {
          return total(seen["sessions"][rank], "messages_in", "received");
        };
        const std::int64_t through = seen["links"][0]["messages_out"];
        return about(sent(0), through, 1) && about(sent(1), through, 1) && about(received(0), through, 1) &&
               about(received(1), through, 1) &&
               about(total(seen["sessions"][0], "bytes_out", "bytes"), bytes * through, bytes) &&
               about(total(seen["sessions"][1], "bytes_in", "received_bytes"), bytes * through, bytes);
      });
      BOOST_TEST(agree, way << ", " << bytes << " bytes: " << seen.dump(2));
      for (const pid_t rank : hosts.ranks()) kill(rank, SIGCONT);
    }
}

BOOST_AUTO_TEST_CASE(a_hanging_and_a_dead_kernel_have_metrics) {
  Hosts hosts(1);
  {
    const Hanging hangs(hosts[0]);
    BOOST_TEST(value_in(output_of(hosts.parc("metrics", {})), "parc_up\\{[^}]*\\}") == 1);
  }
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  const std::string dead = output_of(hosts.parc("metrics", {}));
  BOOST_TEST(value_in(dead, "parc_up\\{[^}]*\\}") == 0);
  BOOST_TEST(value_in(dead, "parc_kernel_turns_total\\{[^}]*\\}") > 0);
  BOOST_TEST(judged(hosts, dead) == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
