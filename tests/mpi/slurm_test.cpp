// SPDX-License-Identifier: BSD-3-Clause
// Two nodes of a Slurm that each test has of its own (tests/mpi/slurm): MPI programs that srun starts, for
// which what `parc mpi` prints for the environment is all that they are told, and the provider starts the
// kernels; and kernels that parc starts by srun (tests/mpi/in_allocation).
#include "tests/mpi/mpi_job.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

namespace parc::test {
namespace {

const std::vector<std::string> srun_by_parc{"OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi",
                                            "OMPI_MCA_mtl_ofi_provider_include=parc", "OMPI_MCA_osc=sm,pt2pt",
                                            "OMPI_MCA_btl=self"};

std::string output_under_srun(Hosts& hosts, const std::string& program) {
  std::vector<std::string> words{"env", "FI_PROVIDER_PATH=" PARC_PROVIDERS};
  append(words, srun_by_parc);
  append(words, {PARC_SLURM, "timeout", "100", "srun", "--mpi=pmix", "--nodes=2", "--ntasks=4",
                 PARC_MPI_PROGRAMS "/" + program});
  Process run = hosts.start(words);
  const int status = run.wait();
  BOOST_REQUIRE_MESSAGE(status == 0,
                        program << ": status " << status << ": " << run.output() << run.errors());
  return run.output();
}

} // namespace

BOOST_AUTO_TEST_SUITE(slurm, *boost::unit_test::precondition(may_start_slurm))

BOOST_AUTO_TEST_CASE(srun_with_pmix) {
  Hosts hosts(1);
  for (const char* const program : {"collectives", "point_to_point"}) {
    const std::string ours = output_under_srun(hosts, program);
    BOOST_TEST(!ours.empty());
    BOOST_TEST(ours == expected_of(hosts, {.program = program, .ranks = 4}));
  }
}

BOOST_AUTO_TEST_CASE(kernels_by_srun) {
  Hosts hosts(0);
  Process jobs =
      hosts.start({PARC_SLURM, "timeout", "200", PARC_IN_ALLOCATION, PARC_TEST_BIN, PARC_TEST_PROGRAMS});
  const int status = jobs.wait();
  BOOST_TEST(status == 0, jobs.output() << jobs.errors());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
