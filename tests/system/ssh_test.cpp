// SPDX-License-Identifier: BSD-3-Clause
// Hosts that only ssh leads to: kernels that listen where nobody else looks for them, behind a real sshd.
#include "tests/support/moments.hpp"
#include "tests/support/reachable.hpp"
#include "tests/support/tcp_connections.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace parc::test {
namespace {

using Json = nlohmann::json;

// Where ssh's HostName is not.
const std::vector<std::string> elsewhere{"--listen", "127.0.0.9"};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

struct Far : Reachable {
  using Reachable::Reachable;
  // WORDS, at the kernel of another host.
  Process on(const std::string& host, std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "PARC_RUNTIME_DIR=" + runtime_dir(host), "PARC_AUTOSTART=off"});
    return hosts.start(std::move(words));
  }
  [[nodiscard]] std::string runtime_dir(const std::string& host) const {
    return hosts.directory() + "/" + host + "/run/parc";
  }
  void bring_up(const std::string& named) {
    const Ended up = command("up", named, elsewhere);
    BOOST_TEST_REQUIRE(up.status == 0, up.errors << hosts);
    BOOST_TEST(contains(up.output, "b: up at 127.0.0.1, reached through ssh, listening on 127.0.0.9"),
               up.output);
  }
  Json host_row(const std::string& host) {
    Process asked = hosts.parc("hosts", {"--hosts", host, "--json"});
    (void)asked.wait();
    const Json all = Json::parse(asked.output(), nullptr, false);
    return all.is_object() && !all["hosts"].empty() ? all["hosts"][0] : Json{{"up", false}};
  }
  Json link_to_b() {
    const Json links = hosts.status()["links"];
    return links.empty() ? Json{{"connections", 0}, {"state", "none"}} : links[0];
  }
  [[nodiscard]] std::vector<std::string> tunnel_sockets() {
    std::vector<std::string> found;
    for (const auto& each : std::filesystem::directory_iterator(hosts[0].runtime_dir()))
      if (each.path().filename().string().starts_with("parc-ssh-")) found.push_back(each.path());
    return found;
  }
  [[nodiscard]] pid_t kernel_of(const std::string& host) const {
    pid_t id = 0;
    std::ifstream(runtime_dir(host) + "/kernel.pid") >> id;
    BOOST_TEST_REQUIRE(id > 0);
    return id;
  }
  // Of the kernel of host a.
  [[nodiscard]] std::vector<pid_t> ssh_processes() {
    std::vector<pid_t> found;
    for (const auto& each : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(each.path() / "stat");
      std::string number, name, state;
      pid_t parent = 0;
      if (file >> number >> name >> state >> parent && name == "(ssh)" && parent == hosts[0].kernel().id())
        found.push_back(std::stoi(number));
    }
    return found;
  }
};

struct Impatient : Far {
  Impatient() : Far({"--link-timeout-s", "8"}) {}
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(ssh, Far)

BOOST_AUTO_TEST_CASE(jobs_run_through_a_tunnel_in_both_directions) {
  bring_up("b");
  const Json row = host_row("b");
  BOOST_TEST(row["way"] == "ssh", row.dump());
  BOOST_TEST(row["address"].is_null(), row.dump());
  Process job = hosts.run({"--hosts", "a:2,b:2", PARC_TEST_PROGRAMS "/ring", "100000", "20"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  Process back =
      on("b", {PARC_TEST_BIN "/parc", "run", "--hosts", "b,a", PARC_TEST_PROGRAMS "/ring", "1000", "20"});
  const int status_back = back.wait();
  BOOST_TEST(status_back == 0, back.errors() << hosts);
  BOOST_TEST(tunnel_sockets().size() == 1u);
  Process stop = hosts.parc("stop", {});
  BOOST_TEST(stop.wait() == 0, stop);
  BOOST_TEST(tunnel_sockets().empty());
}

// Also when the kernel has been told anew, and has forgotten, where the other one is.
BOOST_AUTO_TEST_CASE(a_job_outlives_its_tunnels) {
  bring_up("b");
  Process job = hosts.run({"--hosts", "a:2,b:2", PARC_TEST_PROGRAMS "/ring", "20000", "4000"});
  BOOST_TEST_REQUIRE(eventually([&] { return hosts.ranks().size() == 4u; }), job);
  std::uint64_t connections = link_to_b()["connections"];
  for (int tunnel = 0; tunnel < 4; ++tunnel) {
    if (tunnel == 1) bring_up("b");
    if (tunnel == 2) hosts[0].kernel().signal(SIGHUP);
    const auto running = ssh_processes();
    BOOST_TEST_REQUIRE(running.size() == 1u);
    kill(running.front(), SIGKILL);
    BOOST_TEST_REQUIRE(eventually([&] {
                         const Json link = link_to_b();
                         return link["state"] == "up" && link["connections"] > connections;
                       }),
                       link_to_b().dump() << hosts);
    connections = link_to_b()["connections"];
  }
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
}

// Nothing says so but that nothing comes.
BOOST_FIXTURE_TEST_CASE(a_tunnel_that_hangs_is_given_up, Impatient) {
  bring_up("b");
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "20000", "3000"});
  BOOST_TEST_REQUIRE(eventually([&] { return hosts.ranks().size() == 2u; }), job);
  const auto running = ssh_processes();
  BOOST_TEST_REQUIRE(running.size() == 1u);
  kill(running.front(), SIGSTOP);
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  BOOST_TEST(link_to_b()["connections"] > 1u);
}

BOOST_AUTO_TEST_CASE(no_ssh_outlives_its_kernel) {
  bring_up("b");
  const auto running = ssh_processes();
  BOOST_TEST_REQUIRE(running.size() == 1u);
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(eventually([&] { return kill(running.front(), 0) != 0; }));
  hosts[0].start(); // which removes what was left
  BOOST_TEST(tunnel_sockets().empty());
}

BOOST_AUTO_TEST_CASE(a_kernel_behind_a_tunnel_is_started_again) {
  bring_up("b");
  kill(kernel_of("b"), SIGKILL);
  BOOST_TEST(eventually([&] { return host_row("b")["up"] == false; }));
  bring_up("b");
  BOOST_TEST(host_row("b")["up"] == true);
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "1000", "20"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
}

// Neither can dial the other: what has links to both relays.
BOOST_AUTO_TEST_CASE(hosts_behind_tunnels_reach_each_other) {
  bring_up("b,c");
  const Ended again = command("up", "b,c", elsewhere);
  BOOST_TEST(contains(again.output, "\nb and c reach each other, relayed\n"), again.output << again.errors);
  Process job = hosts.run({"--hosts", "a,b:2,c:2", PARC_TEST_PROGRAMS "/ring", "300000", "50"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  Process asked = on("b", {PARC_TEST_BIN "/parc", "hosts", "--hosts", "a,c", "--json"});
  BOOST_TEST(asked.wait() == 0, asked);
  const Json rows = Json::parse(asked.output())["hosts"];
  BOOST_TEST(rows[0]["way"] == "ssh", rows.dump());
  BOOST_TEST(rows[1]["way"] == "relay", rows.dump());
  Process far = on("b", {PARC_TEST_BIN "/parc", "run", "--hosts", "b,c",
                         PARC_TEST_PROGRAMS "/random_messages", "3", "300"});
  const int status_far = far.wait();
  BOOST_TEST(status_far == 0, far.errors() << hosts);
}

// Of messages of up to 64 MiB, both ways, beside a job of the host that relays. No connection but those of
// ssh is open between any two of them meanwhile.
BOOST_AUTO_TEST_CASE(tunnels_are_killed_and_stopped_at_any_moment) {
  bring_up("b,c");
  const auto status_of_b = [this] {
    Process status = on("b", {PARC_TEST_BIN "/parc", "status", "--json"});
    BOOST_REQUIRE(status.wait() == 0);
    return Json::parse(status.output());
  };
  Moments moments([&] { return bytes_over_link(status_of_b(), "c"); });
  BOOST_TEST_CONTEXT("seed " << moments.seed()) {
    Process own = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "1000000", "0"});
    BOOST_TEST_REQUIRE(eventually([&] { return contains(own.output(), "ready"); }), own << hosts);
    Process job =
        on("b", {PARC_TEST_BIN "/parc", "run", "--hosts", "b,c", PARC_TEST_PROGRAMS "/random_messages",
                 std::to_string(moments.seed()), messages_of_test("50"), "64"});
    for (const pid_t each : ssh_processes()) BOOST_TEST(tcp_connections(each) == 1U);
    int times = 0;
    for (; moments.comes(job, 30'000'000); ++times) {
      std::vector<pid_t> ours = hosts.ranks();
      ours.push_back(hosts[0].kernel().id());
      for (const char* host : {"b", "c"}) ours.push_back(kernel_of(host));
      for (const pid_t each : ours) BOOST_TEST(tcp_connections(each) == 0U);
      const auto tunnels = ssh_processes();
      for (const pid_t each : tunnels) BOOST_TEST(tcp_connections(each) <= 1U);
      if (tunnels.empty()) continue; // they are being made anew
      const pid_t tunnel = tunnels[moments.any_of(tunnels.size())];
      const bool stops = moments.any_of(2) == 0;
      kill(tunnel, stops ? SIGSTOP : SIGKILL);
      if (!stops) continue;
      moments.stand_still();
      kill(tunnel, SIGCONT);
    }
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors() << hosts);
    BOOST_TEST(times > 0);
    BOOST_TEST(own.running(), own << hosts);
    own.signal(SIGTERM);
    BOOST_TEST(own.wait() == 128 + SIGTERM, own);
  }
}

// By addresses in a file: of a kernel behind a tunnel, from the one that has it and from one behind another.
BOOST_AUTO_TEST_CASE(two_jobs_that_know_each_other_by_address) {
  bring_up("b,c");
  const std::string file = hosts.directory() + "/addresses";
  const std::string program = PARC_TEST_PROGRAMS "/strangers";
  Process server = on("b", {PARC_TEST_BIN "/parc", "run", "--hosts", "b:2", program, "serve", file, "2"});
  Process near = hosts.run({"--hosts", "a", program, "ask", file, "2", "undialed"});
  Process far =
      on("c", {PARC_TEST_BIN "/parc", "run", "--hosts", "c", program, "ask", file, "2", "undialed"});
  for (Process* each : {&near, &far, &server}) {
    const int status = each->wait();
    BOOST_TEST((status == 0 && each->errors() == ""), each->errors() << hosts);
  }
}

// Its links are made anew, and what it relays goes on.
BOOST_AUTO_TEST_CASE(what_is_relayed_outlives_the_tunnels) {
  bring_up("b,c");
  Process job = on(
      "b", {PARC_TEST_BIN "/parc", "run", "--hosts", "b:2,c:2", PARC_TEST_PROGRAMS "/ring", "20000", "3000"});
  BOOST_TEST_REQUIRE(
      eventually([&] { return hosts.status()["links"].size() == 2u && ssh_processes().size() == 2u; }));
  const auto connections = [&] {
    std::uint64_t all = 0;
    const Json links = hosts.status()["links"];
    for (const Json& link : links)
      if (link["state"] == "up") all += link["connections"].get<std::uint64_t>();
    return all;
  };
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t before = connections();
    for (const pid_t each : ssh_processes()) kill(each, SIGKILL);
    BOOST_TEST_REQUIRE(eventually([&] { return connections() >= before + 2; }), hosts);
  }
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
}

// What relays is away for a moment: a host that only it knows is not unknown for that.
BOOST_AUTO_TEST_CASE(a_job_begins_while_the_tunnels_are_made_anew) {
  auto patient = elsewhere; // a tunnel may take longer than a user would wait
  patient.insert(patient.end(), {"--connect-timeout-s", std::to_string(patience.count() / 2)});
  for (const char* host : {"b", "c"}) // not together, or they would have a link before the job
    BOOST_TEST_REQUIRE(command("up", host, patient).status == 0);
  for (int round = 0; round < 3; ++round) {
    BOOST_TEST_REQUIRE(eventually([&] {
      const Json links = hosts.status()["links"];
      return ssh_processes().size() == 2u && std::ranges::count(links, "up", [](const Json& link) {
                                               return link["state"].get<std::string>();
                                             }) == 2;
    }));
    for (const pid_t each : ssh_processes()) kill(each, SIGKILL);
    Process job = on("b", {PARC_TEST_BIN "/parc", "run", "--hosts", "b,c",
                           PARC_TEST_PROGRAMS "/random_messages", "3", "30"});
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors() << hosts);
  }
}

// A sentence that names both ways, and what was started for nothing is ended.
BOOST_AUTO_TEST_CASE(an_sshd_that_forwards_no_sockets) {
  const Ended up = command("up", "d", elsewhere);
  BOOST_TEST(up.status == 1);
  BOOST_TEST(contains(up.errors,
                      "parc: host d is not up: its kernel was started, could not be reached from here and "
                      "was ended again: "),
             up.errors);
  BOOST_TEST(contains(up.errors, "refuses the connection"), up.errors);
  BOOST_TEST(contains(up.errors, "; and cannot reach host d: ssh to d: "), up.errors);
  BOOST_TEST(contains(up.errors, "AllowStreamLocalForwarding"), up.errors);
  BOOST_TEST(!is_up("d"));
}

// Although it could be dialed where it listens.
BOOST_AUTO_TEST_CASE(what_the_configuration_says_of_a_host_is_obeyed) {
  std::ofstream(hosts.directory() + "/parcd.toml")
      << "key_file = \"" << hosts.directory() << "/key\"\n[hosts]\nb = { ssh = \"alias-of-b\" }\n";
  hosts[0].kernel().signal(SIGHUP);
  BOOST_REQUIRE(eventually([&] { return contains(hosts[0].log(), "read the configuration again"); }));
  for (int time = 0; time < 2; ++time) {
    const Ended up = command("up", "b,c", {"--listen", "127.0.0.1"});
    BOOST_TEST_REQUIRE(up.status == 0, up.errors << hosts);
    BOOST_TEST(host_row("b")["way"] == "ssh", up.output);
    BOOST_TEST(host_row("c")["way"] == "direct", up.output);
  }
}

// Nobody has said where its socket is: it is asked.
BOOST_AUTO_TEST_CASE(a_host_of_the_configuration) {
  bring_up("b");
  const std::string config = hosts.directory() + "/reader.toml", dir = hosts.directory() + "/reader";
  std::ofstream(config)
      << "key_file = \"" << hosts.directory() << "/key\"\nname = \"reader\"\nport = 0\n"
      << "[hosts]\nb = { ssh = \"b\" }\nc = { ssh = \"c\" }\nnone = { ssh = \"nowhere.invalid\" }\n";
  Process reader =
      hosts.parcd({"--config", config, "--runtime-dir", dir, "--ssh", "ssh -F " + ssh_config(), "--detach"});
  BOOST_TEST_REQUIRE(reader.wait() == 0, reader);
  Process asked =
      hosts.start({PARC_TEST_BIN "/parc", "hosts", "--runtime-dir", dir, "--hosts", "b,c,none", "--json"});
  BOOST_TEST(asked.wait() == 1);
  const Json rows = Json::parse(asked.output())["hosts"];
  BOOST_TEST(rows[0]["way"] == "ssh", rows.dump());
  BOOST_TEST(contains(rows[1].value("why", ""), "ssh to c: parc: no parcd runs here"), rows.dump());
  BOOST_TEST(contains(rows[2].value("why", ""), "ssh to nowhere.invalid: ssh: Could not resolve"),
             rows.dump());
  Process stop = hosts.start({PARC_TEST_BIN "/parc", "stop", "--runtime-dir", dir});
  BOOST_TEST(stop.wait() == 0, stop);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
