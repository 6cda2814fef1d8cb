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
  BOOST_REQUIRE_MESSAGE(process.wait() == 0, process);
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

nlohmann::json errors_of(Hosts& hosts) {
  return nlohmann::json::parse(output_of(hosts.parc("errors", {"--json"})));
}

// The row of this error, as soon as there is one.
nlohmann::json error_in(Hosts& hosts, const std::string& kind, const std::string& text) {
  nlohmann::json found, all;
  const bool there = eventually([&] {
    all = errors_of(hosts);
    for (const auto& each : all["errors"])
      if (each["kind"] == kind && each["text"] == text) found = each;
    return !found.is_null();
  });
  BOOST_REQUIRE_MESSAGE(there, "no " + kind + " \"" + text + "\" in " + all.dump(2));
  return found;
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
    BOOST_TEST(eventually(
        [&] { return value_in(output_of(hosts.parc("metrics", {})), "parc_stopped\\{[^}]*\\}") == 1; }));
    BOOST_TEST(value_in(output_of(hosts.parc("metrics", {})), "parc_up\\{[^}]*\\}") == 1);
  }
  BOOST_TEST(value_in(output_of(hosts.parc("metrics", {})), "parc_stopped\\{[^}]*\\}") == 0);
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  const std::string dead = output_of(hosts.parc("metrics", {}));
  BOOST_TEST(value_in(dead, "parc_up\\{[^}]*\\}") == 0);
  BOOST_TEST(value_in(dead, "parc_kernel_turns_total\\{[^}]*\\}") > 0);
  BOOST_TEST(judged(hosts, dead) == "");
}

BOOST_AUTO_TEST_CASE(errors_are_distinct_and_counted) {
  Hosts hosts(2);
  BOOST_TEST(output_of(hosts.parc("errors", {})) == "no errors\n");
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST(hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/endings"}).wait() == 0);
    BOOST_TEST(hosts.run({"sh", "-c", "exit 5"}).wait() == 5);
  }
  BOOST_TEST(hosts.run({"sh", "-c", "kill -SEGV $$"}).wait() == 128 + SIGSEGV);
  const auto truncated = error_in(
      hosts, "request", "a read or a question to the kernel failed: the message was longer than its memory");
  BOOST_TEST(truncated["count"] == 4); // two of each
  BOOST_TEST(truncated["name"] == "PARC_ETRUNCATE");
  BOOST_TEST(truncated["first"] > 1'700'000'000);
  BOOST_TEST(truncated["first"] <= truncated["last"]);
  const auto left =
      error_in(hosts, "request", "a read or a question to the kernel failed: its peer had left");
  BOOST_TEST(left["count"] > 2);
  BOOST_TEST(left["name"] == "PARC_EPEER");
  const auto exited = error_in(hosts, "program", "sh ended with exit status 5");
  BOOST_TEST(exited["count"] == 2);
  BOOST_TEST(exited["code"] == 5);
  const auto job = error_in(hosts, "job", "a job of sh failed: rank 0 on host a ended with exit status 5");
  BOOST_TEST(job["count"] == 2);
  BOOST_TEST(error_in(hosts, "program", "sh was killed by signal 11 (Segmentation fault)")["count"] == 1);
  const std::string metrics = output_of(hosts.parc("metrics", {}));
  BOOST_TEST(value_in(metrics, "parc_errors_total\\{[^}]*kind=\"job\"\\}") == 3);
  BOOST_TEST(value_in(metrics, "parc_errors_total\\{[^}]*kind=\"link\"\\}") == 0);
  const std::string text = output_of(hosts.parc("errors", {}));
  for (const char* word : {"KIND", "COUNT", "PARC_ETRUNCATE", "sh ended with exit status 5"})
    BOOST_TEST(text.find(word) != text.npos, word);
  BOOST_TEST(judged(hosts, output_of(hosts.parc("metrics", {}))) == "");
}

// A stop by the user is no error of the job.
BOOST_AUTO_TEST_CASE(a_signal_that_was_forwarded_is_no_error) {
  Hosts hosts(1);
  Process job = hosts.run({"sh", "-c", "echo ready; exec sleep 1000"});
  BOOST_TEST(eventually([&] { return job.output() == "ready\n"; }));
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  BOOST_TEST(errors_of(hosts)["errors"].empty());
}

BOOST_AUTO_TEST_CASE(lost_links_and_who_was_refused_are_errors) {
  Hosts hosts(2);
  BOOST_TEST(hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "100", "1"}).wait() == 0);
  BOOST_TEST(hosts.run({PARC_TEST_PROGRAMS "/rogue", "tail"}).wait() == 0);
  BOOST_TEST(error_in(hosts, "refused",
                      "ended the session of a program: its request ring is overrun")["count"] == 1);
  hosts[1].kernel().signal(SIGKILL);
  const auto gone = error_in(hosts, "link", "the connection to host b ended");
  BOOST_TEST(gone["name"] == "ECONNRESET");
  BOOST_TEST(gone["count"] == 1);
}

BOOST_AUTO_TEST_CASE(a_hanging_and_a_dead_kernel_show_their_errors) {
  Hosts hosts(1);
  BOOST_TEST(hosts.run({"false"}).wait() == 1);
  {
    const Hanging hangs(hosts[0]);
    BOOST_TEST(error_in(hosts, "program", "false ended with exit status 1")["count"] == 1);
  }
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  BOOST_TEST(errors_of(hosts)["kernel"]["alive"] == false);
  BOOST_TEST(error_in(hosts, "program", "false ended with exit status 1")["count"] == 1);
  BOOST_TEST(output_of(hosts.parc("errors", {})).find("DEAD") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_is_stopped_is_not_well) {
  Hosts hosts(1);
  BOOST_TEST(hosts.status()["kernel"]["stopped"] == false);
  const std::string mend = "is stopped by a signal or a debugger; kill -CONT " +
                           std::to_string(hosts[0].kernel().id()) + " lets it go on";
  const Hanging hanging(hosts[0]);
  const auto said_by = [&](const char* command, std::vector<std::string> words) {
    std::string said;
    BOOST_TEST(eventually([&] {
                 said = output_of(hosts.parc(command, words));
                 return said.find(mend) != said.npos;
               }),
               command << " said " << said);
  };
  said_by("status", {});
  said_by("top", {"-b", "-n", "1", "--interval", "0.01"});
  BOOST_TEST(hosts.status()["kernel"]["stopped"] == true);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
