// SPDX-License-Identifier: BSD-3-Clause
#include "system/runtime_dir.hpp"
#include "tests/unit/lock_holder.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct RuntimeDirFixture {
  RuntimeDirFixture() {
    for (const char* name :
         {"PARC_RUNTIME_DIR", "XDG_RUNTIME_DIR", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
      environment.unset(name);
  }
  parc::test::Environment environment;
  parc::test::Scratch scratch;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(runtime_dir, RuntimeDirFixture)

using parc::find_runtime_dir;
using parc::make_runtime_dir;

namespace {

bool mentions(const parc::Error& error, std::string_view words) {
  return error.text.find(words) != std::string::npos;
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(flag_over_environment_over_session_over_tmp) {
  const auto last = find_runtime_dir(); // it may be there: of who runs this test
  const auto in_tmp = fmt::format("/tmp/parc-{}", geteuid());
  BOOST_TEST((last ? last.value().path() == in_tmp : mentions(last.error(), in_tmp)));
  environment.set("XDG_RUNTIME_DIR", scratch.path());
  BOOST_TEST(make_runtime_dir().value().path() == scratch / "parc");
  environment.set("PARC_RUNTIME_DIR", scratch / "chosen");
  BOOST_TEST(make_runtime_dir().value().path() == scratch / "chosen");
  BOOST_TEST(make_runtime_dir(scratch / "flag").value().path() == scratch / "flag");
  BOOST_TEST(find_runtime_dir(scratch / "flag").value().socket() == scratch / "flag/kernel.sock");
}

BOOST_AUTO_TEST_CASE(made_private_whatever_the_umask) {
  const mode_t before = umask(0277);
  const auto made = make_runtime_dir(scratch / "private");
  umask(before);
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST(mode_of(scratch / "private") == 0700U);
}

BOOST_AUTO_TEST_CASE(a_missing_directory_means_no_kernel) {
  const auto missing = find_runtime_dir(scratch / "none");
  BOOST_REQUIRE(!missing.has_value());
  BOOST_TEST(missing.error().text ==
             fmt::format("no parcd runs here (no runtime directory {}): start it with "
                         "parcd --detach",
                         scratch / "none"));
}

BOOST_AUTO_TEST_CASE(one_directory_per_batch_job) {
  environment.set("XDG_RUNTIME_DIR", scratch.path());
  environment.set("PBS_JOBID", "12[3].server/..");
  const auto made = make_runtime_dir();
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST(made.value().path() == scratch / "parc/job-12_3_.server_..");
  BOOST_TEST(find_runtime_dir().value().path() == made.value().path());
  environment.set("PARC_RUNTIME_DIR", scratch / "chosen");
  BOOST_TEST(make_runtime_dir().value().path() == scratch / "chosen");
}

BOOST_AUTO_TEST_CASE(open_to_others_is_refused) {
  BOOST_REQUIRE(mkdir((scratch / "open").c_str(), 0700) == 0);
  BOOST_REQUIRE(chmod((scratch / "open").c_str(), 0755) == 0);
  for (const auto& refused : {make_runtime_dir(scratch / "open"), find_runtime_dir(scratch / "open")}) {
    BOOST_REQUIRE(!refused.has_value());
    BOOST_TEST(mentions(refused.error(), "mode 0755"));
    BOOST_TEST(mentions(refused.error(), "chmod 700"));
  }
}

BOOST_AUTO_TEST_CASE(links_and_files_are_refused) {
  BOOST_REQUIRE(mkdir((scratch / "real").c_str(), 0700) == 0);
  BOOST_REQUIRE(symlink((scratch / "real").c_str(), (scratch / "link").c_str()) == 0);
  parc::test::write_file(scratch / "file", "");
  for (const auto* name : {"link", "file"}) {
    BOOST_TEST(mentions(make_runtime_dir(scratch / name).error(), "not a directory"));
    BOOST_TEST(mentions(find_runtime_dir(scratch / name).error(), "not a directory"));
  }
}

BOOST_AUTO_TEST_CASE(a_path_too_long_for_a_socket_is_refused) {
  const auto refused = make_runtime_dir(scratch / std::string(100, 'x'));
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST(mentions(refused.error(), "shorter"));
}

BOOST_AUTO_TEST_CASE(the_directory_of_another_user_is_refused) {
  if (geteuid() != 0) return; // only root can make one
  BOOST_REQUIRE(mkdir((scratch / "theirs").c_str(), 0700) == 0);
  BOOST_REQUIRE(chown((scratch / "theirs").c_str(), 65534, 65534) == 0);
  BOOST_TEST(mentions(find_runtime_dir(scratch / "theirs").error(), "belongs to user 65534"));
}

BOOST_AUTO_TEST_CASE(the_holder_of_the_lock_is_named) {
  const auto dir = make_runtime_dir(scratch / "run").value();
  BOOST_TEST(!parc::running_kernel(dir).value().has_value());
  {
    const parc::test::LockHolder holder(dir, [] { pause(); });
    BOOST_TEST(parc::running_kernel(dir).value().value() == holder.process());
  }
  BOOST_TEST(!parc::running_kernel(dir).value().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
