// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/allocation.hpp"
#include "jobs/hostfile.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <map>

namespace parc {

BOOST_AUTO_TEST_SUITE(allocations)

namespace {

using Hosts = std::vector<HostSlots>;

std::string complaint(const char* text) {
  const auto hosts = parse_hostfile(text, "hosts");
  return hosts ? "" : hosts.error().text;
}

Hosts in_file(const char* text) {
  const auto hosts = parse_hostfile(text, "hosts");
  BOOST_TEST_INFO(complaint(text));
  BOOST_TEST_REQUIRE(hosts.has_value());
  return hosts.value();
}

Result<std::optional<Allocation>> allocation(const std::map<std::string, std::string>& variables) {
  return find_allocation([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

} // namespace

BOOST_AUTO_TEST_CASE(hostfiles_of_open_mpi_and_mpich) {
  BOOST_TEST((in_file("# two nodes\n\n node1 slots=4 max_slots=8 # fast\nnode2\tslots = 2\n") ==
              Hosts{{"node1", 4}, {"node2", 2}}));
  BOOST_TEST((in_file("a:2 binding=user:0,1\nb ifname=eth1\na\r\n[::1]:3\n") ==
              Hosts{{"a", 3}, {"b", 1}, {"::1", 3}}));
  BOOST_TEST((in_file("a slots=0\nb") == Hosts{{"b", 1}}));
}

BOOST_AUTO_TEST_CASE(what_is_a_hosts_own) {
  const Hosts hosts = in_file("a slots=2 prefix=/opt/parc wdir=~/run env=A=1 env=B=x=y\nb wd=/data\n");
  BOOST_TEST((hosts[0].place == HostPlace{.prefix = "/opt/parc", .wdir = "~/run", .env = {"A=1", "B=x=y"}}));
  BOOST_TEST((hosts[1].place == HostPlace{.prefix = {}, .wdir = "/data", .env = {}}));
  BOOST_TEST((in_file((to_line(hosts[0]) + to_line(hosts[1])).c_str()) == hosts));
  BOOST_TEST((in_file("a env=A= slots=2\n") == Hosts{{"a", 2, {.prefix = {}, .wdir = {}, .env = {"A="}}}}));
  BOOST_TEST(complaint("a prefix=/x#y\n").empty()); // the rest is a comment
  BOOST_TEST(complaint("a wdir=run\n") == "hosts:1: wdir: \"run\" begins neither with / nor with ~/");
  BOOST_TEST(complaint("a env=A\n") == "hosts:1: env: \"A\" is no NAME=VALUE");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_in_a_hostfile) {
  const std::pair<const char*, const char*> wrong[]{
      {"", "hosts names no host"},
      {"# nothing\n", "hosts names no host"},
      {"a\nb slots=x\n", "hosts:2: \"slots=x\" gives host b no number of slots"},
      {"a slots=5000\n", "from 0 to 4096"},
      {"a slots\n", "no number of slots"},
      {"a:0\n", "hosts:1: "},
      {"a 4\n", "\"4\" behind host a means nothing; write slots=4"},
      {"me@a\n", "write a"},
      {"a user=me\n", "~/.ssh/config"},
      {"^a\n", "chooses among other hosts"},
      {"-a\n", "names no host"},
  };
  for (const auto& [text, said] : wrong)
    BOOST_TEST(complaint(text).find(said) != std::string::npos, text << ": " << complaint(text));
  BOOST_TEST(read_hostfile("/no/such/file").error().text.find("cannot read hosts from /no/such/file") == 0U);
}

BOOST_AUTO_TEST_CASE(hosts_of_batch_jobs) {
  BOOST_TEST(!allocation({}).value().has_value());
  const auto slurm = allocation({{"SLURM_JOB_ID", "12"},
                                 {"SLURM_JOB_NODELIST", "n[1-3]"},
                                 {"SLURM_TASKS_PER_NODE", "2(x2),1"},
                                 {"SLURM_JOB_CPUS_PER_NODE", "8(x3)"}});
  BOOST_TEST((slurm.value()->hosts == Hosts{{"n1", 2}, {"n2", 2}, {"n3", 1}}));
  BOOST_TEST(slurm.value()->source == "job 12 of Slurm");
  BOOST_TEST((allocation({{"SLURM_JOB_ID", "1"}, {"SLURM_NODELIST", "n[1-2]"}}).value()->hosts ==
              Hosts{{"n1", 1}, {"n2", 1}}));
  // As in a step of one of its nodes.
  BOOST_TEST((allocation({{"SLURM_JOB_ID", "12"},
                          {"SLURM_JOB_NODELIST", "n[1-2]"},
                          {"SLURM_TASKS_PER_NODE", "1"},
                          {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"}})
                  .value()
                  ->hosts == Hosts{{"n1", 8}, {"n2", 8}}));
  BOOST_TEST((slurm.value()->launcher && slurm.value()->launcher->keeps));
  // Whether its hosts are named one by one or not at all.
  const std::vector<std::string> some{"n3", "n1"}, others{"n1", "m1"};
  BOOST_TEST((way_to(*slurm.value(), some) == &*slurm.value()->launcher));
  BOOST_TEST((way_to(*slurm.value(), others) == nullptr));

  const test::Scratch scratch;
  test::write_file(scratch / "pbs", "n1\nn1\nn2\n");
  const auto pbs = allocation({{"PBS_NODEFILE", scratch / "pbs"}, {"PBS_JOBID", "7.server"}});
  BOOST_TEST((pbs.value()->hosts == Hosts{{"n1", 2}, {"n2", 1}}));
  BOOST_TEST(!pbs.value()->launcher);
  BOOST_TEST((way_to(*pbs.value(), std::vector<std::string>{"n1"}) == nullptr));
  test::write_file(scratch / "sge", "n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 <NULL>\n");
  BOOST_TEST((allocation({{"PE_HOSTFILE", scratch / "sge"}}).value()->hosts == Hosts{{"n1", 4}, {"n2", 2}}));
}

BOOST_AUTO_TEST_CASE(batch_jobs_that_make_no_sense) {
  const auto text = [](const std::map<std::string, std::string>& variables) {
    const auto found = allocation(variables);
    return found ? std::string() : found.error().text;
  };
  BOOST_TEST(text({{"SLURM_JOB_ID", "12"}}) ==
             "cannot tell the hosts of job 12 of Slurm: SLURM_JOB_NODELIST is not set; --hosts names them");
  BOOST_TEST(text({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "1"}})
                 .find("names 2 nodes") != std::string::npos);
  BOOST_TEST(text({{"PBS_NODEFILE", "/no/such"}}).find("cannot read hosts from /no/such") !=
             std::string::npos);
  const test::Scratch scratch;
  test::write_file(scratch / "sge", "n1\n");
  BOOST_TEST(text({{"PE_HOSTFILE", scratch / "sge"}}).find("no number of slots") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
