// SPDX-License-Identifier: BSD-3-Clause
// The exchange over plain sockets on loopback: ranks are threads of the test, each with its own strip and
// line.
#include "examples/heat/run.hpp"
#include "examples/heat/sockets.hpp"
#include "tests/support/ports.hpp"

#include <boost/test/unit_test.hpp>
#include <thread>

using namespace parc;
using namespace parc::heat;

namespace {

std::vector<Place> free_places(int count) {
  std::vector<Place> places;
  for (const std::uint16_t port : test::free_ports(static_cast<std::size_t>(count)))
    places.push_back({"127.0.0.1", std::to_string(port)});
  return places;
}

using OnLine = std::function<Result<void>(const Line&, Strip&)>;

// What each rank had to say: empty when all went well.
std::vector<std::string> run_ranks(const Shape& shape, int buffer, int steps, const OnLine& step,
                                   bool check) {
  const auto places = free_places(shape.ranks);
  std::vector<std::string> complaints(places.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Shape own = shape;
      own.rank = static_cast<int>(rank);
      const auto all = [&]() -> Result<void> {
        Strip strip(own);
        PARC_TRY(line, Line::connect(places, own.rank, buffer));
        PARC_TRY(line.barrier());
        PARC_TRY(timing, run(strip, [&](Strip& s) { return step(line, s); }, {0, steps}));
        if (timing.step_ms < timing.step_ms_min || timing.step_ms > timing.step_ms_max)
          return error(EDOM, "a median outside its range");
        if (check && compare_with_sequential(strip, steps)) return error(EDOM, "wrong temperatures");
        return success();
      };
      if (auto result = all(); !result) complaints[rank] = result.error().text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return complaints;
}

Shape shape_of(int ranks, std::size_t columns, std::size_t points) {
  Shape shape;
  shape.ranks = ranks;
  shape.columns = columns;
  shape.points = points;
  return shape;
}

} // namespace

BOOST_AUTO_TEST_SUITE(sockets)

BOOST_AUTO_TEST_CASE(ping_pong_is_right_bit_for_bit) {
  for (const int ranks : {1, 2, 3, 4})
    for (const auto& complaint : run_ranks(shape_of(ranks, 5, 64), 0, 9, ping_pong, true))
      BOOST_TEST(complaint == "");
}

// Both directions are far larger than the buffers, so one that sends before it receives would stand still.
BOOST_AUTO_TEST_CASE(exchange_moves_both_directions_at_once) {
  const auto both = [](const Line& line, Strip& strip) {
    strip.calculate_all();
    return exchange(line, strip);
  };
  for (const int ranks : {2, 3})
    for (const auto& complaint : run_ranks(shape_of(ranks, 2, 200000), 4096, 3, both, true))
      BOOST_TEST(complaint == "");
}

BOOST_AUTO_TEST_CASE(a_neighbour_that_ends_is_an_error) {
  const auto leave = [](const Line& line, Strip& strip) -> Result<void> {
    if (strip.shape().rank == 1) return error(ECANCELED, "left");
    return ping_pong(line, strip);
  };
  const auto complaints = run_ranks(shape_of(2, 3, 100000), 4096, 2, leave, false);
  BOOST_TEST(complaints[1] == "left");
  BOOST_TEST(complaints[0].find("other side") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(places_are_parsed_or_named) {
  const auto good = parse_places("a:1,::1:2,host.example:http");
  BOOST_REQUIRE(bool(good));
  BOOST_TEST(good.value().size() == 3U);
  BOOST_TEST(good.value()[1].host == "::1");
  BOOST_TEST(good.value()[2].port == "http");
  for (const char* bad : {"", "a", "a:", ":1", "a:1,", "a:1,,b:2"}) {
    const auto result = parse_places(bad);
    BOOST_REQUIRE(!result);
    BOOST_TEST(result.error().text.find("HOST:PORT") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
