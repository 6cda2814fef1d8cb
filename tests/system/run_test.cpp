// SPDX-License-Identifier: BSD-3-Clause
// parc run: where ranks run, what they are given, how a job ends and with which status.
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::test {
namespace {

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

struct Two {
  Hosts hosts{2};

  // What `parc run WORDS` ends with: its status and the sentence that it prints.
  std::pair<int, std::string> result(std::vector<std::string> words) {
    Process run = hosts.run(std::move(words));
    const int status = run.wait();
    return {status, run.errors()};
  }
  void check(std::vector<std::string> words, int status, const std::string& sentence) {
    const auto [found, text] = result(std::move(words));
    BOOST_CHECK_EQUAL(found, status);
    BOOST_CHECK_MESSAGE(contains(text, sentence), "\"" << text << "\" does not say \"" << sentence << "\"");
  }
};

using Lines = std::vector<std::string>;

} // namespace

BOOST_FIXTURE_TEST_SUITE(run, Two)

BOOST_AUTO_TEST_CASE(a_job_may_have_several_programs) {
  const auto saying = [](const std::string& what) { return "echo $PARC_RANK/$PARC_SIZE " + what; };
  Process run = hosts.run({"--hosts",
                           "a:2,b",
                           "-x",
                           "V=all",
                           "-x",
                           "W=all",
                           "-n",
                           "1",
                           "sh",
                           "-c",
                           saying("$V $W"),
                           ":",
                           "-n",
                           "3",
                           "-x",
                           "V=own",
                           "sh",
                           "-c",
                           saying("$V $W $PARC_LOCAL_RANK"),
                           ":",
                           "-n",
                           "1",
                           "--hosts",
                           "b",
                           "--wdir",
                           "/",
                           "sh",
                           "-c",
                           saying("$(pwd)")});
  BOOST_TEST(run.wait() == 0, run.errors());
  BOOST_TEST(sorted_lines(run.output()) ==
             (Lines{"0/5 all all", "1/5 own all 1", "2/5 own all 0", "3/5 own all 2", "4/5 /"}));
  check({"-n", "1", "true", ":", "-n", "1", "/nonexistent/x"}, 127, "cannot start /nonexistent/x on host a");
  check({"-n", "1", "true", ":", "-n", "2", "sh", "-c", "test $PARC_RANK = 1 || exit 3; sleep 1000"}, 3,
        "rank 2 on host a ended with exit status 3");
  Process one = hosts.run({"-n", "1", "--", "echo", "x", ":", "-n", "1"});
  BOOST_TEST(one.wait() == 0, one.errors());
  BOOST_TEST(one.output() == "x : -n 1\n");
}

// How many cores there are is what the refusal of too many says.
BOOST_AUTO_TEST_CASE(ranks_are_bound_to_cores) {
  const auto bound = [](const std::string& ranks, const std::string& command) {
    return Lines{"-n", ranks, "--bind", "core", "sh", "-c", command};
  };
  const std::string too_many = result(bound("5000", "true")).second;
  check(bound("5000", "true"), 125,
        "host a cannot run 5000 ranks of a job: --bind core gives each a core of its own, and there are ");
  const std::string cores = std::to_string(std::stoul(too_many.substr(too_many.find("there are ") + 10)));

  Process all = hosts.run(bound(cores, "grep Cpus_allowed_list: /proc/self/status"));
  BOOST_TEST(all.wait() == 0, all);
  auto sets = sorted_lines(all.output());
  BOOST_TEST(std::to_string(sets.size()) == cores);
  BOOST_TEST((std::ranges::adjacent_find(sets) == sets.end()), all.output());

  const std::string go = hosts.directory() + "/go"; // one job has a core, until it may end
  Process one = hosts.run(bound("1", "echo runs; until [ -e " + go + " ]; do sleep 0.05; done"));
  BOOST_REQUIRE(eventually([&] { return one.output() == "runs\n"; }));
  check(bound(cores, "true"), 125, "of which ranks of other jobs have 1;");
  Process free = hosts.run({"-n", cores, "--bind", "none", "true"});
  BOOST_TEST(free.wait() == 0, free);
  std::ofstream(go).flush();
  BOOST_TEST(one.wait() == 0, one);
  BOOST_TEST(eventually([&] { return result(bound(cores, "true")).first == 0; }));
}

BOOST_AUTO_TEST_CASE(ranks_know_their_place) {
  Process job =
      hosts.run({"-np", "5", "-H", "a:2,b:1", "sh", "-c",
                 "echo $PARC_RANK/$PARC_SIZE $PARC_LOCAL_RANK ${PARC_RUNTIME_DIR##*/} $PARC_HOSTS"});
  BOOST_TEST(job.wait() == 0);
  const std::string places = "a:2,b:1";
  BOOST_TEST(sorted_lines(job.output()) ==
                 (Lines{"0/5 0 a " + places, "1/5 1 a " + places, "2/5 0 b " + places, "3/5 2 a " + places,
                        "4/5 3 a " + places}),
             boost::test_tools::per_element());
  BOOST_TEST(job.errors() == "");
}

BOOST_AUTO_TEST_CASE(slots_are_the_default_number_of_ranks) {
  Process slots = hosts.run({"--hosts", "b:3", "echo", "x"});
  BOOST_TEST(slots.wait() == 0);
  BOOST_TEST(slots.output() == "x\nx\nx\n");
  Process per_host = hosts.run({"-ppn", "2", "--host", "a,b", "sh", "-c", "echo ${PARC_RUNTIME_DIR##*/}"});
  BOOST_TEST(per_host.wait() == 0);
  BOOST_TEST(sorted_lines(per_host.output()) == (Lines{"a", "a", "b", "b"}),
             boost::test_tools::per_element());
  Process one = hosts.run({"echo", "alone"});
  BOOST_TEST(one.wait() == 0);
  BOOST_TEST(one.output() == "alone\n");
}

BOOST_AUTO_TEST_CASE(hosts_in_files) {
  const std::string file = hosts.directory() + "/hosts.txt";
  std::ofstream(file) << "# of this job\nb slots=2\na:1\n";
  for (const char* option : {"--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"}) {
    Process job = hosts.run({option, file, "sh", "-c", "echo $PARC_RANK ${PARC_RUNTIME_DIR##*/}"});
    BOOST_TEST(job.wait() == 0, job);
    BOOST_TEST(sorted_lines(job.output()) == (Lines{"0 b", "1 b", "2 a"}), boost::test_tools::per_element());
  }
  std::ofstream(file) << "b slots=2\na slots=few\n";
  check({"-f", file, "true"}, 125, file + ":2: \"slots=few\" gives host a no number of slots");
}

// Each as it sets its variables; what the command line says comes first.
BOOST_AUTO_TEST_CASE(hosts_of_batch_jobs) {
  const std::string nodes = hosts.directory() + "/nodes", engine = hosts.directory() + "/engine";
  std::ofstream(nodes) << "b\nb\na\n";
  std::ofstream(engine) << "b 2 all.q@b UNDEFINED\na 1 all.q@a UNDEFINED\n";
  using Variables = std::vector<std::pair<std::string, std::string>>;
  for (const Variables& variables :
       {Variables{{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "b,a"}, {"SLURM_TASKS_PER_NODE", "2,1"}},
        Variables{{"PBS_NODEFILE", nodes}}, Variables{{"PE_HOSTFILE", engine}}}) {
    std::vector<std::string> words{"env"};
    for (const auto& [name, value] : variables) words.push_back(name + "=" + value);
    for (const char* word : {PARC_TEST_BIN "/parc", "run", "--runtime-dir"}) words.emplace_back(word);
    words.push_back(hosts[0].runtime_dir());
    const auto run = [&](std::vector<std::string> more) {
      more.insert(more.begin(), words.begin(), words.end());
      for (const char* word : {"sh", "-c", "echo ${PARC_RUNTIME_DIR##*/}"}) more.emplace_back(word);
      Process job = hosts.start(more);
      BOOST_TEST(job.wait() == 0, job);
      return sorted_lines(job.output());
    };
    BOOST_TEST(run({}) == (Lines{"a", "b", "b"}), boost::test_tools::per_element());
    BOOST_TEST(run({"-n", "1"}) == (Lines{"b"}), boost::test_tools::per_element());
    BOOST_TEST(run({"--hosts", "a"}) == (Lines{"a"}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(every_host_may_be_named_from_every_other) {
  Hosts three(3);
  Process job = three.run({"-n", "3", "--hosts", "b,c,a", PARC_TEST_PROGRAMS "/ring", "100000", "20"}, 2);
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.errors() == "");
  Process elsewhere = three.run({"--hosts", "b,c", PARC_TEST_PROGRAMS "/ring", "1", "3"}, 0);
  BOOST_TEST(elsewhere.wait() == 0);
  BOOST_TEST(elsewhere.errors() == "");
}

BOOST_AUTO_TEST_CASE(the_callers_world_goes_along) {
  const std::string script =
      "pwd; umask; ulimit -n; echo $OMP_NUM_THREADS-$SECRET-$GIVEN-$HOME; readlink /proc/self/fd/0";
  Process job = [&] {
    const std::string base = hosts.directory() + "/world";
    auto environment = hosts.environment();
    environment.insert(environment.end(),
                       {{"OMP_NUM_THREADS", "3"}, {"SECRET", "kept"}, {"HOME", "/home/x"}});
    return Process({.command = {"sh", "-c", "umask 027; ulimit -n 200; exec \"$@\"", "sh",
                                PARC_TEST_BIN "/parc", "run", "--runtime-dir", hosts[0].runtime_dir(),
                                "--hosts", "b", "-x", "GIVEN=a b", "sh", "-c", script},
                    .output = base + ".out",
                    .errors = base + ".err",
                    .environment = environment,
                    .directory = hosts.directory()});
  }();
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.output() ==
             hosts.directory() + "\n0027\n200\n3--a b-" + std::getenv("HOME") + "\n/dev/null\n");
  check({"--wdir", "/usr", "--hosts", "b", "sh", "-c", "test $(pwd) = /usr"}, 0, "");
  check({"-x", "NOT_SET_HERE", "true"}, 125, "--env NOT_SET_HERE: that variable is not set here");
}

// Home and paths are those of each host's kernel, but where the caller is.
BOOST_AUTO_TEST_CASE(another_host_is_another_world) {
  const std::string home = hosts.directory() + "/home", script = "echo $PARC_RANK $HOME $(pwd) $PLACE";
  std::filesystem::create_directories(home + "/sub");
  const auto run = [&](std::vector<std::string> words, const std::string& directory) {
    auto environment = hosts.environment();
    environment.insert(environment.end(), {{"HOME", home}, {"PLACE", "unseen"}});
    words.insert(words.begin(), {PARC_TEST_BIN "/parc", "run", "--runtime-dir", hosts[0].runtime_dir()});
    words.insert(words.end(), {"sh", "-c", script});
    Process job({.command = words,
                 .output = hosts.directory() + "/other.out",
                 .errors = hosts.directory() + "/other.err",
                 .environment = environment,
                 .directory = directory});
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors());
    return job.output();
  };
  const std::string there = std::getenv("HOME");
  BOOST_TEST(run({"--hosts", "a"}, home + "/sub") == "0 " + home + " " + home + "/sub\n");
  BOOST_TEST(run({"--hosts", "b", "--wdir", "~"}, "/") == "0 " + there + " " + there + "\n");
  BOOST_TEST(run({"--hosts", "b"}, home + "/sub") == "0 " + there + " " + home + "/sub\n"); // both have it
  BOOST_TEST(run({"--hosts", "b", "-x", "HOME"}, home) == "0 " + home + " " + home + "\n");
  const std::string file = hosts.directory() + "/places";
  std::ofstream(file) << "b wdir=/usr env=PLACE=there\n";
  BOOST_TEST(run({"--hostfile", file}, home) == "0 " + there + " /usr there\n");
  std::ofstream(file) << "b wdir=usr\n";
  check({"--hostfile", file, "true"}, 125, "wdir: \"usr\" begins neither with / nor with ~/");
}

// By [hosts], which is the kernel's; and a hostfile goes before it.
BOOST_AUTO_TEST_CASE(what_is_said_of_a_host_among_the_settings) {
  std::ofstream(hosts.directory() + "/parcd.toml", std::ios::app)
      << "other = { address = \"127.0.0.1\", port = " << hosts[1].port()
      << ", wdir = \"/usr\", env = { PLACE = \"there\" } }\n";
  hosts[0].kernel().signal(SIGHUP);
  BOOST_TEST_REQUIRE(eventually([&] {
    Process job = hosts.run({"--hosts", "other", "sh", "-c", "echo $(pwd) $PLACE"});
    return job.wait() == 0 && job.output() == "/usr there\n";
  }));
  std::ofstream(hosts.directory() + "/places") << "other env=PLACE=elsewhere\n";
  Process job = hosts.run({"--hostfile", hosts.directory() + "/places", "sh", "-c", "echo $(pwd) $PLACE"});
  BOOST_TEST(job.wait() == 0, job);
  BOOST_TEST(job.output() == "/usr elsewhere\n");
}

BOOST_AUTO_TEST_CASE(what_the_ranks_read) {
  // `parc run WORDS`, at the end of a pipe behind `source`; what it prints.
  const auto fed = [this](const std::string& source, const std::string& words, const std::string& then = {}) {
    Process job =
        hosts.start({"sh", "-c",
                     source + " | { " PARC_TEST_BIN "/parc run --runtime-dir " + hosts[0].runtime_dir() +
                         " " + words + "; status=$?; " + then + " exit $status; }"});
    const int status = job.wait();
    BOOST_TEST(status == 0, words << ": status " << status << ", " << job.errors() << hosts);
    return job.output();
  };
  const std::string lines = "printf 'one\\ntwo\\n'", much = "head -c 3000000 /dev/zero";
  BOOST_TEST(fed(lines, "-n 3 --hosts a,b:2 cat") == "one\ntwo\n");
  BOOST_TEST(fed(lines, "--stdin 2 -n 3 --hosts a,b:2 sh -c 'cat | sed s/^/$PARC_RANK/'") == "2one\n2two\n");
  BOOST_TEST(fed(much, "--stdin all -n 5 --hosts a:2,b:3 wc -c") ==
             "3000000\n3000000\n3000000\n3000000\n3000000\n");
  BOOST_TEST(fed(lines, "--stdin none -n 2 cat", "cat;") == "one\ntwo\n");
  // Who reads less than there is holds up nobody, and neither does who has ended.
  BOOST_TEST(fed("yes", "-n 2 --hosts b,a head -n 1") == "y\n");
  BOOST_TEST(fed(much, "--stdin all -n 2 --hosts a,b sh -c 'test $PARC_RANK = 0 || exec wc -c'") ==
             "3000000\n");
  BOOST_TEST(fed("yes", "-n 2 true") == "");
  check({"--stdin", "some", "true"}, 125, "\"some\" is no rank; write a rank, all or none");
  Process beyond = hosts.start(
      {"sh", "-c",
       "echo | " PARC_TEST_BIN "/parc run --runtime-dir " + hosts[0].runtime_dir() + " --stdin 2 -n 2 true"});
  BOOST_TEST(beyond.wait() == 125);
  BOOST_TEST(beyond.errors().find("--stdin names rank 2, and the ranks are 0 to 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(options_end_where_the_program_begins) {
  Process job = hosts.run({"-n2", "echo", "-n", "4", "--np", "--", "x"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.output() == "4 --np -- x4 --np -- x");
  Process dashes = hosts.run({"--np=1", "--", "echo", "--hosts"});
  BOOST_TEST(dashes.wait() == 0);
  BOOST_TEST(dashes.output() == "--hosts\n");
}

// One hyphen before a long name, as mpirun and mpiexec.hydra take it.
BOOST_AUTO_TEST_CASE(options_of_mpirun) {
  for (const char* const host : {"-host", "-hosts", "-H"}) {
    Process job = hosts.run({host, "b", "-np", "1", "-wdir", "/", "-ppn=1", "-timeout", "0", "pwd"});
    BOOST_TEST(job.wait() == 0);
    BOOST_TEST(job.output() == "/\n", host);
  }
  Process joined = hosts.run({"--host", "a", "--host", "b", "sh", "-c", "echo $PARC_SIZE"});
  BOOST_TEST(joined.wait() == 0);
  BOOST_TEST(joined.output() == "2\n2\n");
  Process asked = hosts.run({"-help"});
  BOOST_TEST(asked.wait() == 0);
  BOOST_TEST(asked.output().find("--wdir") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(usage) {
  check({"--host-s", "a", "true"}, 125, "parc run has no option --host-s; did you mean --hosts?");
  check({"-nn", "4", "true"}, 125, "-n");
  check({"-n", "0", "true"}, 125, "--np");
  check({"-n", "4"}, 125, "needs a program");
  check({"--hosts", "a:0", "true"}, 125, "\"a:0\" gives host a no number of slots");
  check({"--hosts", "a,,b", "true"}, 125, "\"\" names no host");
  check({"-n", "70000", "true"}, 125, "--np");
  check({"--hosts", "nowhere.invalid", "true"}, 125, "nowhere.invalid");
  check({"--hosts", "a:7400", "true"}, 125, "a port does not belong here but under [hosts]");
  check({"--timeout", "-1", "true"}, 125, "\"-1\" is no number of seconds; 0 is for no limit");
  check({"--timeout", "soon", "true"}, 125, "\"soon\" is no number of seconds");
  check({"--hostfile", "no.txt", "true"}, 125, "cannot read hosts from no.txt: No such file or directory");
  check({"--hostfile", "no.txt", "--hosts", "a", "true"}, 125, "excludes");
  check({"-N", "2", "true"}, 125, "parc run has no option -N; how many ranks a host gets is --ppn");
}

BOOST_AUTO_TEST_CASE(what_cannot_start) {
  check({"--hosts", "b", "./nothing"}, 127,
        "parc: cannot start ./nothing on host b: no such file there (looked in " + hosts.directory() +
            "); copy it or use --wdir");
  check({"--hosts", "a,b", "no-such-program"}, 127, "no such program there (looked in ");
  check({"/no/such/program"}, 127, "cannot start /no/such/program on host a: no such file there; copy it");
  check({"--wdir", "/no/such/directory", "true"}, 125, "cannot go to directory /no/such/directory there");
  const std::string file = hosts.directory() + "/file";
  std::ofstream(file) << "no program\n";
  check({"./file"}, 126, "cannot start ./file on host a: Permission denied");
  check({"/tmp"}, 126, "cannot start /tmp on host a: Is a directory; name a program in it");
  chmod(file.c_str(), 0700);
  check({"./file"}, 126, "it has neither #! nor the format of a program");
  std::ofstream(file) << "#!/no/such/interpreter\n";
  check({"./file"}, 126, "the interpreter that it names");
  BOOST_TEST(hosts.ranks().empty());
}

BOOST_AUTO_TEST_CASE(the_first_failure_is_the_status) {
  check({"-n", "3", "--hosts", "a,b:2", "sh", "-c", "test $PARC_RANK != 1 || exit 7; sleep 1000"}, 7,
        "rank 1 on host b ended with exit status 7");
  check({"-n", "2", "--hosts", "a,b", "sh", "-c", "test $PARC_RANK != 1 || kill -SEGV $$; sleep 1000"}, 139,
        "rank 1 on host b was killed by signal 11");
  check({"-n", "4", "sh", "-c", "exit 0"}, 0, "");
  // Those that ignore SIGTERM are killed.
  check(
      {"-n", "2", "sh", "-c", "trap '' TERM; test $PARC_RANK = 0 || exit 4; while true; do sleep 0.1; done"},
      4, "exit status 4");
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

// And those that did not fail are told from those that did.
BOOST_AUTO_TEST_CASE(how_ranks_have_ended) {
  const auto rows = [this](std::vector<std::string> words) {
    Lines found;
    for (std::string line : sorted_lines(result(std::move(words)).second)) {
      line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
                 line.end());
      if (!line.starts_with("parc: ")) found.push_back(line);
    }
    return found;
  };
  const std::string script = "case $PARC_RANK in 1|2|5) exit 7;; 3) kill -SEGV $$;; *) exit 0;; esac";
  BOOST_TEST(rows({"--keep-going", "-n", "8", "--hosts", "a:4,b:4", "sh", "-c", script}) ==
                 (Lines{"ENDED RANKS", "exit status 0 0,4,6-7", "exit status 7 1-2,5",
                        "signal 11 (Segmentation fault) 3"}),
             boost::test_tools::per_element());
  BOOST_TEST(rows({"-n", "3", "sh", "-c", "test $PARC_RANK = 1 && exit 4; sleep 1000"}) ==
                 (Lines{"ENDED RANKS", "exit status 4 1", "with the job 0,2"}),
             boost::test_tools::per_element());
  BOOST_TEST(rows({"-n", "1", "false"}) == Lines{}, boost::test_tools::per_element());
  check({"--keep-going", "-n", "4", "sh", "-c", "test $PARC_RANK != 3 || exit 3"}, 3,
        "rank 3 on host a ended with exit status 3");
}

// The others fail too, because the first one has gone; that must not count.
BOOST_AUTO_TEST_CASE(the_cause_counts_and_not_its_consequences) {
  const std::string ring = PARC_TEST_PROGRAMS "/ring";
  for (int repeat = 0; repeat < rounds_of(10, 3); ++repeat) {
    check({"-n", "4", "--hosts", "a:2,b:2", ring, "100000", "0", "exit", "2", "9"}, 9,
          "rank 2 on host b ended with exit status 9");
    check({"-n", "3", ring, "1000", "0", "exit", "1", "0"}, 3, "ended with exit status 3");
  }
}

BOOST_AUTO_TEST_CASE(parc_abort_ends_the_job) {
  const std::string ring = PARC_TEST_PROGRAMS "/ring";
  check({"-n", "4", "--hosts", "a:2,b:2", ring, "100000", "0", "abort", "3", "42"}, 42,
        "rank 3 on host b called parc_abort");
  for (const char* none : {"0", "256"}) // it is no success
    check({"-n", "2", "--hosts", "a:1,b:1", ring, "1000", "0", "abort", "1", none}, 1,
          "rank 1 on host b called parc_abort");
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

BOOST_AUTO_TEST_CASE(many_ranks) {
  Process job = hosts.run({"-n", "200", "--hosts", "a:100,b:100", "sh", "-c", "echo $PARC_RANK"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(sorted_lines(job.output()).size() == 200);
  BOOST_TEST(job.errors() == "");
}

BOOST_AUTO_TEST_CASE(time_out) {
  check({"--timeout", "0.2", "--hosts", "a,b", "sleep", "1000"}, 124,
        "the job ran longer than --timeout allows");
  check({"--timeout", "60", "true"}, 0, "");
  check({"--timeout", "0", "true"}, 0, "");
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

BOOST_AUTO_TEST_CASE(signals_travel) {
  const std::string trapping = "trap 'echo got; exit 0' INT; echo ready; while true; do sleep 0.05; done";
  Process polite = hosts.run({"--hosts", "a,b", "sh", "-c", trapping});
  BOOST_TEST(eventually([&] { return sorted_lines(polite.output()) == (Lines{"ready", "ready"}); }));
  polite.signal(SIGINT);
  BOOST_TEST(polite.wait() == 0);
  BOOST_TEST(sorted_lines(polite.output()) == (Lines{"got", "got", "ready", "ready"}),
             boost::test_tools::per_element());

  Process plain = hosts.run({"--hosts", "a,b", "sh", "-c", "echo ready; exec sleep 1000"});
  BOOST_TEST(eventually([&] { return sorted_lines(plain.output()) == (Lines{"ready", "ready"}); }));
  plain.signal(SIGTERM);
  BOOST_TEST(plain.wait() == 128 + SIGTERM);
  BOOST_TEST(plain.errors() == "");

  // As batch systems say that it is time.
  const std::string saving = "trap 'echo saved; exit 0' USR1; echo ready; while true; do sleep 0.05; done";
  Process saves = hosts.run({"--hosts", "a,b", "sh", "-c", saving});
  BOOST_TEST(eventually([&] { return sorted_lines(saves.output()) == (Lines{"ready", "ready"}); }));
  saves.signal(SIGUSR1);
  BOOST_TEST(saves.wait() == 0);
  BOOST_TEST(sorted_lines(saves.output()) == (Lines{"ready", "ready", "saved", "saved"}),
             boost::test_tools::per_element());

  const std::string stubborn_script = "trap '' INT TERM; echo ready; while true; do sleep 0.05; done";
  Process stubborn = hosts.run({"--hosts", "a,b", "sh", "-c", stubborn_script});
  BOOST_TEST(eventually([&] { return sorted_lines(stubborn.output()) == (Lines{"ready", "ready"}); }));
  stubborn.signal(SIGINT);
  stubborn.signal(SIGTERM);
  BOOST_TEST(stubborn.wait() > 128);
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

// What Ctrl-Z stops: one whose parent, in another group of its session, could continue it.
Process in_shell(const Hosts& hosts, const std::string& runtime_dir, const std::vector<std::string>& words) {
  Process::Start start{.command = {PARC_TEST_BIN "/parc", "run", "--runtime-dir", runtime_dir},
                       .output = hosts.directory() + "/shell.out",
                       .errors = hosts.directory() + "/shell.err",
                       .environment = hosts.environment(),
                       .directory = hosts.directory(),
                       .own_group = true};
  start.command.insert(start.command.end(), words.begin(), words.end());
  return Process(start);
}

bool is_stopped(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("State:")) return line.find('T') != line.npos;
  return false;
}

// Those that start later are not stopped by what came before.
BOOST_AUTO_TEST_CASE(stopped_while_ranks_start) {
  Process run = in_shell(hosts, hosts[0].runtime_dir(), {"-n", "100", "--hosts", "a", "sleep", "1"});
  BOOST_REQUIRE(eventually([&] { return hosts.ranks().size() > 3 || !run.running(); }));
  run.signal(SIGTSTP);
  BOOST_TEST(eventually([&] { return is_stopped(run.id()); }));
  run.signal(SIGCONT);
  BOOST_TEST(run.wait() == 0, run);
}

// And the ranks with it. They start nothing: a shell whose child was stopped before it could exec is not
// shown as stopped.
BOOST_AUTO_TEST_CASE(stopped_and_continued) {
  const std::vector<std::string> words = {"--hosts", "a,b", "sh", "-c", "echo ready; exec sleep 1000"};
  Process run = in_shell(hosts, hosts[0].runtime_dir(), words);
  BOOST_TEST(eventually([&] { return sorted_lines(run.output()) == (Lines{"ready", "ready"}); }));
  const std::vector<pid_t> ranks = hosts.ranks();
  BOOST_TEST_REQUIRE(ranks.size() == 2U);
  run.signal(SIGTSTP);
  BOOST_TEST(eventually([&] { return is_stopped(run.id()) && std::ranges::all_of(ranks, is_stopped); }));
  run.signal(SIGCONT);
  BOOST_TEST(eventually([&] { return std::ranges::none_of(ranks, is_stopped); }));
  run.signal(SIGTERM);
  BOOST_TEST(run.wait() == 128 + SIGTERM, run);
}

BOOST_AUTO_TEST_CASE(what_a_rank_leaves_running_ends_with_it) {
  Process job = hosts.run({"--hosts", "b", "sh", "-c", "sleep 1000 & echo started"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.output() == "started\n");
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

// In a session of its own, as a daemon of its; what says that the job is not its own lives on.
BOOST_AUTO_TEST_CASE(what_a_rank_leaves_running_elsewhere_ends_with_the_job) {
  const std::string stray = hosts.directory() + "/stray", free = hosts.directory() + "/free";
  const auto alone = [](const std::string& way, const std::string& file) {
    return way + " setsid sh -c 'echo $$ >" + file + "; exec sleep 1000' & until [ -s " + file +
           " ]; do sleep 0.05; done; ";
  };
  Process job = hosts.run(
      {"--hosts", "b", "sh", "-c", alone("", stray) + alone("env -u PARC_KERNEL", free) + "exit 0"});
  BOOST_TEST(job.wait() == 0);
  const auto gone = [](const std::string& file) {
    pid_t process = 0;
    std::ifstream(file) >> process;
    BOOST_TEST_REQUIRE(process > 1);
    return kill(process, 0) != 0;
  };
  BOOST_TEST(eventually([&] { return gone(stray); }));
  BOOST_TEST(!gone(free));
  pid_t process = 0;
  std::ifstream(free) >> process;
  kill(process, SIGKILL);
}

// A rank is one program, whatever script is around it.
BOOST_AUTO_TEST_CASE(second_programs_in_a_script) {
  const std::string ring = PARC_TEST_PROGRAMS "/ring";
  const auto script = [&](const std::string& text) { return Lines{"-n", "1", "sh", "-c", text}; };
  constexpr int failed = 3;
  const std::string over = "place in its job is over: another program", taken = "place in its job is taken";
  check(script(ring + " 10 3; exec " + ring + " 10 3"), failed, over);
  check(script(ring + " 10 3 kill 0 9; exec " + ring + " 10 3"), failed, over);
  check(script(ring + " 10 0 | { read ready; " + ring + " 10 3; it=$?; kill ${ready##* }; exit $it; }"),
        failed, taken);
}

// Its peer hears of it at once, and not when the script ends.
BOOST_AUTO_TEST_CASE(a_program_in_a_script_that_is_killed) {
  const std::string ring = PARC_TEST_PROGRAMS "/ring";
  check({"-n", "2", "--hosts", "a,b", "sh", "-c",
         ring + " 100000 0 kill 1 9; [ $? = 137 ] && exec sleep 1000; exit 7"},
        7, "rank 0 on host a ended with exit status 7");
}

BOOST_AUTO_TEST_CASE(a_kernel_is_started_where_none_runs) {
  Hosts none(0);
  const std::string dir = none.directory() + "/fresh";
  auto environment = none.environment();
  environment.insert(environment.end(), {{"PARC_PORT", "0"}, {"PARC_NAME", "fresh"}});
  Process job(
      {.command = {PARC_TEST_BIN "/parc", "run", "--runtime-dir", dir, "sh", "-c", "echo $PARC_HOSTS"},
       .output = none.directory() + "/out",
       .errors = none.directory() + "/err",
       .environment = environment,
       .directory = {}});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.output() == "fresh:1\n");
  pid_t kernel = 0;
  std::ifstream(dir + "/kernel.pid") >> kernel;
  BOOST_REQUIRE(kernel > 1);
  kill(kernel, SIGTERM);
  BOOST_TEST(eventually([&] { return kill(kernel, 0) != 0; }));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
