// SPDX-License-Identifier: BSD-3-Clause
#include "client/session/named_job.hpp"

#include "parc/parc.h"

#include <boost/test/unit_test.hpp>
#include <map>

namespace parc::client {

BOOST_AUTO_TEST_SUITE(named_jobs)

namespace {

using Environment = std::map<std::string, std::string>;

std::string said_by(const Environment& environment) {
  const auto job = job_in_environment([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
  if (!job) return fmt::format("{}: {}", job.error().code, job.error().text);
  if (!job.value()) return "alone";
  const NamedJob& there = *job.value();
  return fmt::format("{}@{} {} of {}", there.name, there.host, there.rank, there.size);
}

Environment operator+(Environment one, const Environment& other) {
  for (const auto& [name, value] : other) one[name] = value;
  return one;
}

const Environment step{{"SLURM_JOB_ID", "12"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_STEP_NODELIST", "b,a"},
                       {"SLURM_PROCID", "1"},
                       {"SLURM_STEP_NUM_TASKS", "4"}};
const Environment shell = step + Environment{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}};
const Environment mpirun{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
const Environment mpiexec{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
const Environment named{{"PARC_JOB", "j@h"}};

} // namespace

BOOST_AUTO_TEST_CASE(of_the_environment) {
  const Environment none;
  BOOST_TEST(said_by(none) == "alone");
  BOOST_TEST(said_by(shell) == "alone");
  BOOST_TEST(said_by(step) == "slurm-12.0@b 1 of 4");
  BOOST_TEST(said_by(named + step) == "j@h 1 of 4");
  BOOST_TEST(said_by(named + mpirun) == "j@h 1 of 2");
  BOOST_TEST(said_by(named + mpiexec + Environment{{"PARC_SIZE", "8"}, {"PARC_FIRST_RANK", "4"}}) ==
             "j@h 5 of 8");
  BOOST_TEST(said_by(named + Environment{{"PARC_RANK", "3"}, {"PARC_SIZE", "8"}, {"PARC_FIRST_RANK", "4"}}) ==
             "j@h 3 of 8");
  BOOST_TEST(said_by(step + Environment{{"PARC_KERNEL", "1"}}) == "alone");
}

BOOST_AUTO_TEST_CASE(launchers_in_a_step_of_slurm) {
  for (const Environment& around : {shell, step}) {
    BOOST_TEST(said_by(named + around + mpirun) == "j@h 1 of 2");
    BOOST_TEST(said_by(named + around + mpiexec) == "j@h 1 of 2");
    BOOST_TEST(said_by(around + mpirun).starts_with("-1: mpirun has started this program as rank 1 of 2"));
    BOOST_TEST(said_by(around + mpiexec).starts_with("-1: mpiexec has started this program as rank 1 of 2"));
  }
  // srun --mpi=pmi2
  BOOST_TEST(said_by(step + Environment{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}) == "slurm-12.0@b 1 of 4");
}

BOOST_AUTO_TEST_CASE(without_a_name) {
  for (const char* const name : {"PARC_RANK", "PARC_SIZE", "PARC_FIRST_RANK"})
    for (const Environment& around : {Environment(), step, shell, mpirun})
      BOOST_TEST(
          said_by(around + Environment{{name, "2"}}).starts_with("-1: " + std::string(name) + " is set"));
}

BOOST_AUTO_TEST_CASE(ranks_that_are_not_in_their_job) {
  BOOST_TEST(said_by(named + mpirun + Environment{{"PARC_FIRST_RANK", "2147483647"}}) ==
             "-1: there is no rank 2147483648 in a job of 2 (PARC_FIRST_RANK=2147483647 and rank 1)");
  BOOST_TEST(said_by(named + mpirun + Environment{{"PARC_RANK", "2"}}) ==
             "-1: there is no rank 2 in a job of 2");
  BOOST_TEST(said_by(named).find("nothing says its rank: set PARC_RANK and PARC_SIZE") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::client
