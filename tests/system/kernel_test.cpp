// SPDX-License-Identifier: BSD-3-Clause
// What bad input does to a kernel: nothing, but a sentence and the documented exit status; and what strangers
// and rogues do to others: nothing.
#include "daemon/link/handshake.hpp"
#include "system/fd.hpp"
#include "tests/support/hosts.hpp"

#include <arpa/inet.h>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace parc::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

void check(Process process, int status, const std::string& sentence) {
  BOOST_TEST(process.wait() == status);
  BOOST_TEST(contains(process.errors(), sentence),
             "\"" << process.errors() << "\" does not say \"" << sentence << "\"");
}

void check_works(Hosts& hosts) {
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.errors() == "");
}

Fd tcp(std::uint16_t port, bool listens, std::uint16_t* bound = nullptr) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listens) {
    BOOST_REQUIRE(bind(socket.get(), generic, sizeof address) == 0);
    BOOST_REQUIRE(listen(socket.get(), 8) == 0);
    socklen_t length = sizeof address;
    getsockname(socket.get(), generic, &length);
    *bound = ntohs(address.sin_port);
  } else {
    BOOST_REQUIRE(connect(socket.get(), generic, sizeof address) == 0);
  }
  return socket;
}

// Sends it, and waits until the other side has closed; what that said meanwhile.
std::string say_until_closed(const Fd& socket, const std::string& text) {
  (void)send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  std::string answer;
  BOOST_TEST(eventually([&] {
    char byte = 0;
    const ssize_t got = recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    if (got == 1) answer += byte;
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }));
  return answer;
}

// A hello of another version of the wire, as far as every version can read it.
std::string hello_of_version(std::uint16_t version) {
  const daemon::handshake::Prefix prefix{daemon::handshake::magic, version, daemon::handshake::Kind::Hello, 0,
                                         sizeof(daemon::handshake::Hello)};
  std::string frame(sizeof prefix + sizeof(daemon::handshake::Hello), '\0');
  std::memcpy(frame.data(), &prefix, sizeof prefix);
  return frame;
}

// A tool's frame of this text, whatever it is.
std::string encode_frame_of(const std::string& text) {
  std::string frame;
  for (unsigned shift = 0; shift < 32; shift += 8) frame += static_cast<char>(text.size() >> shift & 0xff);
  return frame + text;
}

} // namespace

BOOST_AUTO_TEST_SUITE(kernel)

BOOST_AUTO_TEST_CASE(what_keeps_it_from_starting) {
  Hosts hosts(1);
  const std::string dir = hosts.directory();
  const std::string who = "a parcd already runs on " + hosts[0].runtime_dir() + ": process " +
                          std::to_string(hosts[0].kernel().id()) + " of host a, since 2";
  const std::string where = ", listening on 127.0.0.1, port " + std::to_string(hosts[0].port()) +
                            ", on loopback only; use it, stop it (parc stop --runtime-dir ";
  for (const std::string& words : {who, where})
    check(hosts.parcd({"--runtime-dir", hosts[0].runtime_dir(), "--port", "0"}), 1, words);
  check(hosts.parcd({"--runtime-dir", dir + "/x", "--listen", "127.0.0.1", "--port",
                     std::to_string(hosts[0].port())}),
        1, "; process " + std::to_string(hosts[0].kernel().id()) + " (parcd) has that port: choose another");
  check(hosts.parcd({"--runtime-dir", dir + "/no/such/place", "--port", "0"}), 1, "/no/such");
  check(hosts.parcd({"--prot", "0"}), 2, "--port");
  std::ofstream(dir + "/bad.toml") << "pool = 1\n\nport = \"many\"\n";
  check(hosts.parcd({"--config", dir + "/bad.toml", "-t"}), 1, "bad.toml:");
  check(hosts.parcd({"--config", dir + "/none.toml"}), 1, "none.toml");
  std::ofstream(dir + "/open-key") << "secret";
  chmod((dir + "/open-key").c_str(), 0644);
  check(hosts.parcd({"--runtime-dir", dir + "/x", "--port", "0", "--key-file", dir + "/open-key"}), 1,
        "open-key");
  check(hosts.parcd({"-t", "--key-file", dir + "/open-key"}), 1, "open-key");
  check(hosts.parcd({"-t", "--listen", "192.0.2.1"}), 1, "192.0.2.1");
  check(hosts.parcd({"-t", "--advertise", "10.0.0.1:7272"}), 2, "the port is that of \"port\"");
  check(hosts.parcd({"-t", "--advertise", "10.0.0.256"}), 2, "is not an address or a name");
  check(
      hosts.parcd({"-t", "--runtime-dir", hosts[0].runtime_dir(), "--port", std::to_string(hosts[0].port())}),
      0, ""); // the one that runs is no obstacle
}

BOOST_AUTO_TEST_CASE(effective_settings_say_where_it_runs) {
  Hosts hosts(0);
  Process chosen = hosts.parcd({"-T", "--runtime-dir", "/no/such/../place"}), standard = hosts.parcd({"-T"});
  BOOST_TEST(chosen.wait() == 0);
  BOOST_TEST(contains(chosen.output(), "# runtime_dir = \"/no/place\""), chosen.output());
  BOOST_TEST(standard.wait() == 0);
  BOOST_TEST(contains(standard.output(), "# runtime_dir = \"/"), standard.output());
}

BOOST_AUTO_TEST_CASE(hosts_that_cannot_be_reached) {
  Hosts strangers(1);
  std::uint16_t silent_port = 0;
  const Fd silent = tcp(0, true, &silent_port);
  Hosts hosts(2, {"--connect-timeout-s", "1"},
              "silent = \"127.0.0.1:" + std::to_string(silent_port) +
                  "\"\nstranger = \"127.0.0.1:" + std::to_string(strangers[0].port()) + "\"\n");
  check(hosts.run({"--hosts", "a,silent", "true"}), 125, "silent");
  check(hosts.run({"--hosts", "a,stranger", "true"}), 125, "stranger");
  // Counters are written before a sleep.
  BOOST_TEST(eventually([&] { return strangers.status()["counters"]["links_refused"] == 1; }));
  hosts[1].kernel().signal(SIGTERM);
  BOOST_TEST(hosts[1].kernel().wait() == 0);
  check(hosts.start({"env", "PARC_AUTOSTART=off", PARC_TEST_BIN "/parc", "run", "--runtime-dir",
                     hosts[0].runtime_dir(), "--hosts", "a,b", "true"}),
        125, "cannot reach host b");
  check(hosts.run({"--hosts", "a,b", "true"}), 125, "no parcd runs on host b, and none could be started");
  hosts[1].start();
  check_works(hosts);
}

BOOST_AUTO_TEST_CASE(its_hosts_are_read_again) {
  Hosts others(1), hosts(1, {"--connect-timeout-s", "1", "--key-file", others.directory() + "/key"});
  check(hosts.run({"--hosts", "a,new", "true"}), 125, "unknown host new");
  std::ofstream(hosts.directory() + "/parcd.toml")
      << "pool = \"32 MiB\"\n[hosts]\nnew = \"127.0.0.1:" << others[0].port() << "\"\n";
  hosts[0].kernel().signal(SIGHUP);
  BOOST_TEST(eventually([&] {
    return contains(hosts[0].log(), "read the configuration again: the keys, [hosts] (which names 1)");
  }));
  BOOST_TEST(contains(hosts[0].log(), "; these need a restart: pool"), hosts[0].log());
  Process job = hosts.run({"--hosts", "a,new", "true"});
  BOOST_TEST(job.wait() == 0, job);

  std::ofstream(hosts.directory() + "/parcd.toml") << "[hosts\n";
  hosts[0].kernel().signal(SIGHUP);
  BOOST_TEST(eventually([&] { return contains(hosts[0].log(), "kept the settings as they were: "); }));
}

// As parcd.toml(5) has it: the new key is known everywhere before anybody proves it, and the old one goes
// last.
BOOST_AUTO_TEST_CASE(a_change_of_keys) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/key", fresh = hosts.directory() + "/fresh";
  Process made = hosts.start({PARC_TEST_BIN "/parc", "keygen", fresh});
  BOOST_TEST(made.wait() == 0, made);
  BOOST_TEST(contains(made.output(), "made the key " + fresh + " ("), made.output());
  Process again = hosts.start({PARC_TEST_BIN "/parc", "keygen", fresh});
  BOOST_TEST(again.wait() == 1);
  BOOST_TEST(contains(again.errors(), "there is a key " + fresh + " already ("), again.errors());

  const auto line = [](const std::string& path) {
    std::string text;
    std::getline(std::ifstream(path) >> std::ws, text);
    return text;
  };
  const auto row = [&](std::size_t host) {
    Process asked = hosts.parc("hosts", {"--hosts", "a,b", "--json"}, host);
    BOOST_TEST(asked.wait() == 0, asked);
    return nlohmann::json::parse(asked.output())["hosts"];
  };
  const auto connections = [&] { return hosts.status()["links"][0]["connections"].get<int>(); };
  const std::string before = line(file), after = line(fresh);
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/hang", "cycle"});
  BOOST_TEST_REQUIRE(eventually([&] { return hosts.status()["links"].size() == 1u; }));
  const std::string old_name = row(0)[0]["keys"][0];
  const auto change = [&](const std::string& text, const std::string& words) {
    std::ofstream(file) << text;
    for (std::size_t i : {0u, 1u}) {
      hosts[i].kernel().signal(SIGHUP);
      BOOST_TEST_REQUIRE(eventually([&] { return contains(hosts[i].log(), words); }), hosts[i].log());
    }
  };
  change(before + "\n" + after + "\n", "is " + old_name + " now; ");
  const std::string new_name = row(1)[0]["keys"][1];
  change(after + "\n" + before + "\n", "is " + new_name + " now; " + old_name);
  BOOST_TEST(connections() == 1);
  change(after + "\n", "is " + new_name + " now\n");
  BOOST_TEST(eventually([&] { return connections() > 1; })); // made anew, by the new key
  BOOST_TEST(row(0)[1]["keys"] == nlohmann::json{new_name});
  BOOST_TEST(job.running());
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() != 0);
  check_works(hosts);
  change("nonsense\n", "kept the settings as they were: the key ");
}

BOOST_AUTO_TEST_CASE(it_is_stopped) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] { return contains(job.output(), "ready"); }));
  Process stop = hosts.parc("stop", {});
  BOOST_TEST(stop.wait() == 0, stop);
  BOOST_TEST(stop.output() == "stopping the kernel of host a, process " +
                                  std::to_string(hosts[0].kernel().id()) +
                                  ", and with it 1 job with 1 rank here\n");
  BOOST_TEST(!hosts[0].kernel().running());
  BOOST_TEST(hosts[0].kernel().wait() == 0);
  check(std::move(job), 125, "the kernel of host a was stopped");
  Process again = hosts.parc("stop", {});
  BOOST_TEST(again.wait() == 0);
  BOOST_TEST(again.output() == "no parcd runs on " + hosts[0].runtime_dir() + "\n");
  Process never = hosts.start({PARC_TEST_BIN "/parc", "stop", "--runtime-dir", hosts.directory() + "/none"});
  BOOST_TEST(never.wait() == 0);
  BOOST_TEST(never.output() == "no parcd runs here\n");
}

// Two seconds are theirs, also where a rank has left its job already and writes what it has found.
BOOST_DATA_TEST_CASE(ranks_of_one_that_is_stopped_may_finish,
                     boost::unit_test::data::make({"true", PARC_TEST_PROGRAMS "/ring 10 2"}) *
                         boost::unit_test::data::make({0, 1}),
                     first, on) {
  Hosts hosts(2);
  const std::string ready = hosts.directory() + "/ready-", begin = first;
  Process job = hosts.run({"--hosts", "a,b", "sh", "-c",
                           "trap 'echo asked; exit 0' TERM; " + begin + " >" + ready + "$PARC_RANK.0; >" +
                               ready + "$PARC_RANK; while :; do sleep 0.01; done"});
  BOOST_TEST(eventually(
      [&] { return std::filesystem::exists(ready + "0") && std::filesystem::exists(ready + "1"); }));
  Process& kernel = hosts[static_cast<std::size_t>(on)].kernel();
  kernel.signal(SIGTERM);
  BOOST_TEST(kernel.wait() == 0);
  BOOST_TEST(job.wait() == 125);
  BOOST_TEST(job.output() == "asked\nasked\n");
  BOOST_TEST(
      contains(job.errors(), std::string("the kernel of host ") + (on == 0 ? "a" : "b") + " was stopped"),
      job.errors());
}

BOOST_AUTO_TEST_CASE(a_host_whose_ranks_have_ended_may_stop) {
  Hosts hosts(3);
  const std::string go = hosts.directory() + "/go";
  Process job = hosts.run({"--hosts", "a,b,c", "sh", "-c",
                           "[ $PARC_RANK = 1 ] && { echo over; exit 0; }; echo runs; until [ -e " + go +
                               " ]; do sleep 0.05; done"});
  BOOST_TEST(eventually([&] { return job.output().size() == std::string("over\nruns\nruns\n").size(); }));
  const auto has_children = [&] { // they are of the thread that has started them
    std::string first;
    for (const auto& thread :
         std::filesystem::directory_iterator("/proc/" + std::to_string(hosts[1].kernel().id()) + "/task"))
      if (std::ifstream(thread.path() / "children") >> first) return true;
    return false;
  };
  BOOST_TEST(eventually([&] { return !has_children(); }));
  hosts[1].kernel().signal(SIGTERM);
  BOOST_TEST(hosts[1].kernel().wait() == 0);
  BOOST_TEST(eventually([&] { return contains(hosts[2].log(), "host b"); }), hosts[2].log());
  std::ofstream(go).flush();
  BOOST_TEST(job.wait() == 0, job);
}

// Where there is none for a program's next operation that fails, or its session ends. Sanitizers take all
// addresses.
#ifndef __SANITIZE_ADDRESS__
BOOST_AUTO_TEST_CASE(it_outlives_the_end_of_its_memory) {
  Hosts hosts(2, {"--local", "kernel"});
  std::ifstream status("/proc/" + std::to_string(hosts[0].kernel().id()) + "/status");
  rlim_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "VmSize:") status >> kib;
  const rlimit room{(kib + 200'000) * 1024, RLIM_INFINITY};
  BOOST_REQUIRE(prlimit(hosts[0].kernel().id(), RLIMIT_AS, &room, nullptr) == 0);
  Process job = hosts.run({"-n", "2", "--keep-going", PARC_TEST_PROGRAMS "/flood"});
  BOOST_TEST(eventually([&] { return contains(job.output(), "refused "); }), job);
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() != 125, job);
  check_works(hosts);
}
#endif

// As cleaners of temporary files do it, and the end of a login: the kernel is found all the same, and counts
// on.
BOOST_DATA_TEST_CASE(what_is_removed_is_put_back,
                     boost::unit_test::data::make({"kernel.sock", "counters", "lock", "kernel.pid", ""}),
                     file) {
  Hosts hosts(2);
  Process job = hosts.run({PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] { return contains(job.output(), "ready"); }));
  const std::string dir = hosts[0].runtime_dir();
  if (const std::string name = file; name.empty())
    std::filesystem::remove_all(dir);
  else
    std::filesystem::remove(dir + "/" + name);
  BOOST_TEST(eventually([&] { return contains(hosts[0].log(), "it is there again"); }), hosts[0].log());
  const auto status = hosts.status();
  BOOST_TEST(status["kernel"]["alive"] == true);
  BOOST_TEST(status["jobs"].size() == 1U);
  const std::string parcd = std::to_string(hosts[0].kernel().id());
  check(hosts.parcd({"--runtime-dir", dir, "--port", "0"}), 1,
        "a parcd already runs on " + dir + ": process " + parcd);
  check_works(hosts);
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  Process stop = hosts.parc("stop", {});
  BOOST_TEST(stop.wait() == 0);
  BOOST_TEST(contains(stop.output(), "process " + parcd), stop.output());
  BOOST_TEST(hosts[0].kernel().wait() == 0);
}

// A kernel that somebody has started meanwhile takes nothing from it but the place.
BOOST_AUTO_TEST_CASE(displaced_it_ends_with_its_last_job) {
  Hosts hosts(1);
  Process job = hosts.run({PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] { return contains(job.output(), "ready"); }));
  const std::string dir = hosts[0].runtime_dir();
  hosts[0].kernel().signal(SIGSTOP);
  std::filesystem::remove_all(dir);
  Process second = hosts.parcd({"--runtime-dir", dir, "--port", "0", "--name", "second"});
  BOOST_TEST(eventually([&] { return std::filesystem::exists(dir + "/kernel.sock"); }));
  hosts[0].kernel().signal(SIGCONT);
  BOOST_TEST(eventually([&] { return contains(hosts[0].log(), "this one ends when its jobs have"); }));
  Process others = hosts.run({PARC_TEST_PROGRAMS "/ring", "10", "2"});
  BOOST_TEST(others.wait() == 0, others);
  BOOST_TEST(job.running());
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  BOOST_TEST(hosts[0].kernel().wait() == 0);
  Process more = hosts.run({PARC_TEST_PROGRAMS "/ring", "10", "2"});
  BOOST_TEST(more.wait() == 0, more);
  second.signal(SIGTERM);
  BOOST_TEST(second.wait() == 0);
}

// Nor does it tell others that the first one is dead.
BOOST_AUTO_TEST_CASE(displaced_it_is_nobodys_predecessor) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] { return contains(job.output(), "ready"); }));
  const std::string dir = hosts[0].runtime_dir();
  hosts[0].kernel().signal(SIGSTOP);
  std::filesystem::remove(dir + "/lock");
  Process second = hosts.parcd({"--runtime-dir", dir, "--port", "0", "--name", "second", "--config",
                                hosts.directory() + "/parcd.toml"});
  BOOST_TEST(eventually([&] { return contains(second.errors(), "listens on"); }), second);
  Process others = hosts.run({"--hosts", "second,b", PARC_TEST_PROGRAMS "/ring", "10", "2"});
  BOOST_TEST(others.wait() == 0, others);
  hosts[0].kernel().signal(SIGCONT);
  BOOST_TEST(eventually([&] { return contains(hosts[0].log(), "this one ends when its jobs have"); }));
  BOOST_TEST(!contains(hosts[1].log(), "another has been started in its place"), hosts[1].log());
  BOOST_TEST(job.running());
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  BOOST_TEST(hosts[0].kernel().wait() == 0);
  second.signal(SIGTERM);
  BOOST_TEST(second.wait() == 0);
}

BOOST_AUTO_TEST_CASE(strangers_at_the_doors) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] { return contains(job.output(), "ready"); }));
  (void)say_until_closed(tcp(hosts[0].port(), false), "GET / HTTP/1.0\r\n\r\n" + std::string(1000, 'x'));
  (void)say_until_closed(tcp(hosts[0].port(), false), std::string(1000, '\0'));
  (void)say_until_closed(visit(hosts[0].runtime_dir() + "/kernel.sock"), "what");
  (void)say_until_closed(visit(hosts[0].runtime_dir() + "/kernel.sock"), "T\xff\xff\xff\xff");
  (void)say_until_closed(visit(hosts[0].runtime_dir() + "/kernel.sock"), std::string("T\2\0\0\0[]", 7));
  const std::string deep(400'000, '['), back(400'000, ']');
  (void)say_until_closed(
      visit(hosts[0].runtime_dir() + "/kernel.sock"),
      "T" + encode_frame_of(R"({"kind":"search","hosts":[],"question":)" + deep + back + "}"));
  {
    const Fd half = visit(hosts[0].runtime_dir() + "/kernel.sock");
    (void)send(half.get(), "T\20", 2, MSG_NOSIGNAL); // and goes
  }
  BOOST_TEST(job.running());
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  check_works(hosts);
}

BOOST_DATA_TEST_CASE(kernels_of_another_version, boost::unit_test::data::make({"tls", "none"}), encryption) {
  constexpr std::uint16_t theirs = protocol::wire_version + 7;
  const std::string versions = "speaks wire version " + std::to_string(protocol::wire_version) +
                               ", the other side " + std::to_string(theirs) + "; upgrade the former";
  std::uint16_t port = 0;
  const Fd listener = tcp(0, true, &port);
  Hosts hosts(2, {"--encryption", encryption}, "newer = \"127.0.0.1:" + std::to_string(port) + "\"\n");

  // It calls: the refusal is a frame that its version can read, then the connection ends.
  const std::string refusal = say_until_closed(tcp(hosts[0].port(), false), hello_of_version(theirs));
  daemon::handshake::Prefix prefix{};
  BOOST_REQUIRE(refusal.size() > sizeof prefix);
  std::memcpy(&prefix, refusal.data(), sizeof prefix);
  BOOST_TEST((prefix.magic == daemon::handshake::magic));
  BOOST_TEST((prefix.kind == daemon::handshake::Kind::Refusal));
  BOOST_TEST(prefix.version == protocol::wire_version);
  BOOST_TEST(refusal.size() == sizeof prefix + prefix.length);
  BOOST_TEST(contains(refusal, " (parcd "), refusal);
  BOOST_TEST(contains(refusal, versions), refusal);

  // It is called: the job says so.
  Process job = hosts.run({"--hosts", "a,newer", "true"});
  const Fd called(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  BOOST_REQUIRE(called.get() >= 0);
  (void)say_until_closed(called, hello_of_version(theirs));
  check(std::move(job), 125, versions);
  BOOST_TEST(hosts[0].kernel().running());
  check_works(hosts);
}

BOOST_AUTO_TEST_CASE(programs_that_break_the_rules) {
  Hosts hosts(2, {"--local", "kernel"}); // that their writes are handed over matters
  for (const char* how : {"tail", "kind", "slot", "memory", "pieces", "hand-over"}) {
    Process job = hosts.run({"--hosts", "a", PARC_TEST_PROGRAMS "/rogue", how});
    BOOST_TEST(job.wait() == 0, how << ": " << job);
    BOOST_TEST(job.output() == "survived\n", how);
  }
  check_works(hosts);
}

BOOST_AUTO_TEST_CASE(what_a_program_asked_for_before_it_went) {
  Hosts hosts(2);
  check(hosts.run({"--hosts", "a:2", PARC_TEST_PROGRAMS "/rogue", "last-words"}), 42,
        "rank 0 on host a called parc_abort");
  check_works(hosts);
}

BOOST_AUTO_TEST_CASE(what_was_accepted_survives_requests_after_leaving) {
  Hosts hosts(2);
  for (const char* where : {"a,b", "a:2"}) {
    Process job = hosts.run({"--hosts", where, PARC_TEST_PROGRAMS "/rogue", "after-leaving"});
    BOOST_TEST(job.wait() == 0, where << ": " << job);
    BOOST_TEST(job.output() == "heard\n", where);
  }
  check_works(hosts);
}

// Not while a rank runs, however silent it is.
BOOST_AUTO_TEST_CASE(one_that_has_nothing_to_do_ends) {
  Hosts hosts(1, {"--idle-timeout-s", "1"});
  check(hosts.run({"sh", "-c", "sleep 3"}), 0, "");
  BOOST_TEST(eventually([&] { return !hosts[0].kernel().running(); }));
  BOOST_TEST(hosts[0].kernel().wait() == 0);
  BOOST_TEST(contains(hosts[0].log(), "no program has been here for 1 s"), hosts[0].log());
}

// Nobody comes back to the directory of a batch job. One whose kernel was killed goes with parc clean, from
// anywhere.
BOOST_AUTO_TEST_CASE(nothing_of_a_batch_job_stays) {
  Hosts hosts(0);
  const std::string session = hosts.directory() + "/session";
  mkdir(session.c_str(), 0700);
  const auto run = [&](const std::string& job, std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"env", "XDG_RUNTIME_DIR=" + session, job.empty() ? "NO=job" : "SLURM_JOB_ID=" + job});
    Process process = hosts.start(std::move(words));
    const int status = process.wait();
    BOOST_TEST(status == 0, process.errors());
    return process.output();
  };
  const auto is_there = [&](const std::string& job) {
    return access((session + "/parc/job-" + job).c_str(), F_OK) == 0;
  };
  const std::vector<std::string> parcd{PARC_TEST_BIN "/parcd", "--detach", "--port", "0"};
  run("7", parcd);
  run("8", parcd);
  BOOST_TEST((is_there("7") && is_there("8")));
  run("7", {PARC_TEST_BIN "/parc", "stop"});
  BOOST_TEST((!is_there("7") && is_there("8")));
  run("9", parcd);
  const auto status = nlohmann::json::parse(run("8", {PARC_TEST_BIN "/parc", "status", "--json"}));
  kill(status["kernel"]["pid"].get<pid_t>(), SIGKILL);
  BOOST_TEST(eventually([&] {
    run("", {PARC_TEST_BIN "/parc", "clean"});
    return !is_there("8");
  }));
  BOOST_TEST(is_there("9"));
  run("9", {PARC_TEST_BIN "/parc", "stop"});
  BOOST_TEST(!is_there("9"));
}

// Nothing of who started it: a lock is free again, a file system can be taken away.
BOOST_AUTO_TEST_CASE(what_a_detached_kernel_keeps) {
  Hosts hosts(1);
  const std::string here = hosts.directory() + "/here", dir = hosts.directory() + "/detached";
  std::filesystem::create_directory(here);
  const auto in_shell = [&](const std::string& line) {
    Process shell = hosts.start({"sh", "-c", "cd " + here + "; exec 7>lock 9>other; " + line});
    BOOST_TEST(shell.wait() == 0, shell);
    return shell.output();
  };
  in_shell("exec " PARC_TEST_BIN "/parcd --detach --port 0 --name d --runtime-dir " + dir);
  pid_t process = 0;
  std::ifstream(dir + "/kernel.pid") >> process;
  const std::string proc = "/proc/" + std::to_string(process);
  BOOST_TEST(std::filesystem::read_symlink(proc + "/cwd") == "/");
  for (const auto& each : std::filesystem::directory_iterator(proc + "/fd"))
    BOOST_TEST(!std::filesystem::read_symlink(each).string().starts_with(here));
  in_shell(PARC_TEST_BIN "/parc stop --runtime-dir " + dir);

  // One in the foreground keeps what it was given, for itself.
  Process kernel = hosts.start(
      {"sh", "-c",
       "cd " + here + "; exec 7>lock 9>other; exec " PARC_TEST_BIN "/parcd --port 0 --name d --runtime-dir " +
           dir});
  BOOST_TEST(eventually([&] { return std::filesystem::exists(dir + "/kernel.sock"); }));
  const std::string seen = in_shell(PARC_TEST_BIN "/parc run --runtime-dir " + dir + " ls -l /proc/self/fd");
  BOOST_TEST(!seen.empty());
  BOOST_TEST(!contains(seen, here + "/lock"), seen);
  BOOST_TEST(!contains(seen, here + "/other"), seen);
  kernel.signal(SIGTERM);
  BOOST_TEST(kernel.wait() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
