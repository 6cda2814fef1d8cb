// SPDX-License-Identifier: BSD-3-Clause
// Programs that join a job by its name, at whole kernels in one process and in virtual time: what a kernel
// says that has the key and means no good, and hosts that do not all reach each other.
#include "daemon/join/joins.hpp"
#include "daemon/kernel.hpp"
#include "tests/sim/faulty_network.hpp"
#include "tests/sim/invariants.hpp"
#include "tests/unit/scratch.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(joins)

namespace {

const RuntimeDir& no_door() {
  static const RuntimeDir made = [] {
    const test::Scratch scratch;
    auto checked = make_runtime_dir(scratch.path());
    BOOST_REQUIRE(checked.has_value());
    return std::move(checked).value();
  }();
  return made;
}

SchedulingClass ordinary() {
  auto scheduling = SchedulingClass::acquire(RealtimePolicy::Off);
  BOOST_REQUIRE(scheduling.has_value());
  return std::move(scheduling).value();
}

struct Host {
  std::string name;
  Address address;
  std::uint64_t identity = 0;
  std::unique_ptr<Kernel> kernel;
};

// A program that has asked for its place, and what it was told.
class Joiner {
public:
  Joiner(Kernel& kernel, const std::string& name, std::uint32_t rank, std::uint32_t size,
         const std::string& host, int buffer = 0) {
    int ends[2];
    BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    socket_ = Fd(ends[0]);
    Fd theirs(ends[1]);
    if (buffer != 0) setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    std::string texts;
    for (const std::string& each : {name, host, std::to_string(rank), std::to_string(size)})
      (texts += each) += '\0';
    kernel.joins().joiner(std::move(theirs), texts);
  }

  // Its pipes, if it is given some, are its own.
  void look() {
    std::array<char, 4096> bytes;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> room;
    for (;;) {
      iovec part{bytes.data(), bytes.size()};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = room.data();
      message.msg_controllen = room.size();
      const ssize_t got = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
      if (const cmsghdr* with = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; with != nullptr) {
        std::array<int, 2> numbers;
        std::memcpy(numbers.data(), CMSG_DATA(with), sizeof numbers);
        for (const int number : numbers) pipes_.emplace_back(number);
      }
      over_ |= got == 0;
      if (got <= 0) return;
      said_.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  void leave() { socket_ = Fd(); }
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] const std::string& said() const { return said_; }
  [[nodiscard]] bool has_joined() const { return pipes_.size() == 2; }

private:
  Fd socket_;
  std::vector<Fd> pipes_;
  std::string said_;
  bool over_ = false;
};

struct World {
  spdlog::level::level_enum level = spdlog::get_level();
  sim::FaultyNetwork network{1, {}};
  std::vector<Host> hosts;
  std::vector<std::unique_ptr<Joiner>> joiners;

  explicit World(const std::vector<std::string>& names) : hosts(names.size()) {
    spdlog::set_level(spdlog::level::off); // refusals are what these tests are made of
    for (std::size_t i = 0; i < names.size(); ++i) {
      hosts[i].name = names[i];
      hosts[i].address = numeric_address("127.0.0.1", static_cast<std::uint16_t>(7001 + i)).value();
      hosts[i].identity = 100 + i;
    }
    for (Host& host : hosts) start(host);
  }
  ~World() {
    for (Host& host : hosts) host.kernel.reset();
    spdlog::set_level(level);
  }

  void start(Host& host) {
    Config config;
    config.name = host.name;
    for (const Host& each : hosts) config.hosts[each.name] = {"127.0.0.1", each.address.port()};
    host.kernel = std::make_unique<Kernel>(Kernel::World{.config = std::move(config),
                                                         .runtime_dir = no_door(),
                                                         .keys = {},
                                                         .scheduling = ordinary(),
                                                         .reload = [] { return std::nullopt; },
                                                         .log_lines_dropped = [] { return 0; },
                                                         .identity = host.identity,
                                                         .time = &network.time,
                                                         .streams = network.streams_of(host.address),
                                                         .processes = {}});
    host.kernel->peers().listen({.hosts = {"127.0.0.1"}, .advertised = {}, .port = host.address.port()}, {});
  }

  bool go_round() {
    network.tick();
    bool moved = false;
    for (Host& host : hosts) {
      Kernel& kernel = *host.kernel;
      kernel.loop().ring();
      event_base_loop(kernel.loop().events(), EVLOOP_NONBLOCK | EVLOOP_ONCE);
      const bool worked = kernel.turn() != 0;
      if (!worked && kernel.engine().owes_acknowledgement()) kernel.engine().flush_acknowledgements();
      moved |= worked;
    }
    for (const auto& joiner : joiners) joiner->look();
    return moved || !network.idle();
  }

  // Time goes on where nothing else does; everything that is waited for here comes within an hour of it.
  void until(const std::function<bool()>& is_so) {
    const Loop::Time end = network.time + std::chrono::hours(1);
    for (unsigned quiet = 0; !is_so();) {
      quiet = go_round() ? 0 : quiet + 1;
      if (quiet < 3) continue; // a socket may be seen a round later
      std::optional<Loop::Time> next = network.next_break();
      for (const Host& host : hosts)
        if (const auto timer = host.kernel->loop().next_timer(); timer && (!next || *timer < *next))
          next = timer;
      BOOST_REQUIRE((next && *next < end));
      network.time = std::max(network.time, *next);
    }
  }
  void settle() {
    for (unsigned quiet = 0; quiet < 5;) quiet = go_round() ? 0 : quiet + 1;
  }

  Joiner& join(std::size_t on, const std::string& name, std::uint32_t rank, std::uint32_t size,
               int buffer = 0) { // they meet at the first host
    joiners.push_back(
        std::make_unique<Joiner>(*hosts[on].kernel, name, rank, size, on == 0 ? "" : hosts[0].name, buffer));
    return *joiners.back();
  }
  // Once they have all been told something.
  void told() {
    until([&] { return std::ranges::all_of(joiners, &Joiner::over); });
  }

  // Something that the first host's kernel says to another, of which it has a link.
  template <class Message> void forge(std::size_t to, const Message& message) {
    std::optional<Result<std::int32_t>> link;
    hosts[0].kernel->peers().connect(hosts[to].name,
                                     [&link](const Result<std::int32_t>& found) { link = found; });
    until([&] { return link.has_value(); });
    BOOST_REQUIRE(link->has_value());
    hosts[0].kernel->post().send(link->value(), message);
    settle();
  }
  [[nodiscard]] std::string address(std::size_t host, std::uint64_t endpoint) const {
    return to_text(hosts[host].kernel->peers().describe({protocol::here, endpoint})) + '\0';
  }
  [[nodiscard]] bool nobody_runs() const {
    return std::ranges::all_of(hosts, [](const Host& each) { return each.kernel->sessions().none(); });
  }
};

void says(const Joiner& joiner, const std::string& sentence) {
  BOOST_TEST((joiner.said().find(sentence) != std::string::npos),
             "\"" << joiner.said() << "\" does not say " << sentence);
}

} // namespace

BOOST_AUTO_TEST_CASE(all_have_come) {
  World world({"a", "b", "c"});
  for (std::uint32_t rank = 0; rank < 6; ++rank) world.join(rank % 3, "j", rank, 6);
  world.told();
  for (const auto& joiner : world.joiners) {
    BOOST_TEST(joiner->has_joined());
    says(*joiner, "Pa:1,b:1,c:1");
  }
  world.joiners.clear();
  world.until([&] { return world.nobody_runs(); });
}

// The endpoints of b: 1 is of a program that was started by hand, 2 of one that waits; 3 was never made.
BOOST_AUTO_TEST_CASE(a_kernel_names_who_does_not_join) {
  for (const std::uint64_t other : {1, 3}) {
    World world({"a", "b"});
    protocol::Engine& engine = world.hosts[1].kernel->engine();
    int pipes[4];
    BOOST_REQUIRE(
        (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(pipes + 2, O_CLOEXEC | O_NONBLOCK) == 0));
    const Fd from_kernel(pipes[0]), to_kernel(pipes[3]);
    world.hosts[1].kernel->sessions().add_by_hand(Fd(pipes[2]), Fd(pipes[1]));
    const Joiner& waits = world.join(1, "j", 1, 2);
    world.settle();
    BOOST_TEST((engine.is_there(1) && engine.is_there(2) && !engine.is_there(3)));
    world.forge(1, kernel::Joined{.number = 77,
                                  .mine = {1, 1},
                                  .hosts = "b:2",
                                  .within = 5,
                                  .payload = world.address(1, other) + world.address(1, 2)});
    world.told();
    says(waits, "E-5 the kernel where the job's ranks meet said something that makes no sense");
    BOOST_TEST(!waits.has_joined());
    BOOST_TEST(engine.is_there(1));
    BOOST_TEST(protocol::Invariants::rows(engine, 1) == 1u);
  }
}

// Of a job that has none of this host's programs nothing is known here.
BOOST_AUTO_TEST_CASE(a_job_of_nobody) {
  World world({"a", "b"});
  const Joiner& waits = world.join(1, "j", 1, 2);
  world.settle();
  for (const std::string& members : {std::string(), world.address(0, 1)}) {
    world.forge(1, kernel::Joined{.number = 77, .within = 5, .payload = members});
    world.forge(1, kernel::Go{.number = 77});
    world.settle();
  }
  BOOST_TEST(!waits.has_joined());
  BOOST_TEST(world.nobody_runs());
}

// Where they meet there are links to both, which relays.
BOOST_AUTO_TEST_CASE(two_hosts_that_do_not_reach_each_other) {
  World world({"a", "b", "c"});
  world.network.part(world.hosts[1].address, world.hosts[2].address);
  for (std::uint32_t rank = 0; rank < 4; ++rank) world.join(rank % 3, "j", rank, 4);
  world.told();
  for (const auto& joiner : world.joiners) {
    BOOST_TEST(joiner->has_joined());
    says(*joiner, "Pa:1,b:1,c:1");
  }
  Peers& peers = world.hosts[1].kernel->peers();
  BOOST_TEST(peers.way_to("a") == "direct");
  BOOST_TEST(peers.way_to("c") == "relay");
}

// Its host would say that it reaches the others, for a program that is no more.
BOOST_AUTO_TEST_CASE(a_program_goes_while_the_job_begins) {
  World world({"a", "b", "c"});
  world.network.part(world.hosts[1].address, world.hosts[2].address);
  for (std::uint32_t rank = 0; rank < 3; ++rank) world.join(rank, "j", rank, 3);
  world.settle();
  world.joiners[2]->leave();
  world.until([&] { return world.joiners[0]->over() && world.joiners[1]->over(); });
  for (const std::size_t rank : {0, 1})
    says(*world.joiners[rank], "rank 2 of job j, on host c, has gone while the job began");
  BOOST_TEST(world.nobody_runs());
}

// A kernel that says that all are there, and then nothing more.
BOOST_AUTO_TEST_CASE(a_job_that_never_begins) {
  World world({"a", "b"});
  const Joiner& waits = world.join(1, "j", 0, 2);
  world.settle();
  world.forge(1, kernel::Joined{.number = 77,
                                .mine = {0, 1},
                                .hosts = "b:1,a:1",
                                .within = 5,
                                .payload = world.address(1, 1) + world.address(0, 1)});
  BOOST_TEST(!waits.over());
  world.told();
  says(waits, "E-5 the kernel where the job's ranks meet has not said in 10 s whether the job begins");
  BOOST_TEST(!world.hosts[1].kernel->engine().is_there(1));
}

// What a program is told of the others' hosts goes round again with the ranks, and is not told in part.
BOOST_AUTO_TEST_CASE(names_that_a_socket_does_not_take) {
  const std::string first(60, 'a'), second(60, 'b');
  for (const bool regular : {true, false}) {
    World world({first, second});
    constexpr std::uint32_t ranks = 200;
    constexpr int small = 2048; // bytes; the system makes it a few thousand
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      world.join(regular ? rank % 2 : rank * rank * rank % 211 % 2, "j", rank, ranks, small);
    world.told();
    for (const auto& joiner : world.joiners) {
      if (regular)
        BOOST_TEST((joiner->said() == 'P' + first + ":1," + second + ":1" + '\0'));
      else
        BOOST_TEST((!joiner->said().empty() && joiner->said().back() != '\0'));
    }
    BOOST_TEST(world.nobody_runs() == !regular);
    world.joiners.clear();
    world.until([&] { return world.nobody_runs(); });
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
