// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/attached_windows.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <vector>

namespace parc::daemon {
namespace {

struct AttachedFixture {
  using Stage = shm::AttachedWindow::Stage;
  std::unique_ptr<shm::Control> control = std::make_unique<shm::Control>();
  AttachedWindows windows;
  std::vector<std::uint32_t> given_up;

  void open(std::uint32_t entry) {
    windows.open(entry, control->windows[entry], 5,
                 {.index = entry + 10, .where = {77, 4096, 64}, .length = 100, .rights = 3});
  }
  Stage stage(std::uint32_t entry) { return control->windows[entry].stage.load(); }
  void inside(std::uint32_t entry, std::uint32_t threads) { control->windows[entry].inside.store(threads); }
  void give_up(bool dead) {
    windows.give_up(*control, dead, [&](std::uint32_t entry, const AttachedWindows::Of& of) {
      BOOST_TEST((of.session == 5 && of.window == entry + 10));
      given_up.push_back(entry);
    });
  }
};

BOOST_FIXTURE_TEST_SUITE(attached_windows, AttachedFixture)

BOOST_AUTO_TEST_CASE(an_entry_says_where_its_window_lies) {
  BOOST_TEST(windows.is_free(3));
  open(3);
  const shm::AttachedWindow& entry = control->windows[3];
  BOOST_TEST((!windows.is_free(3) && stage(3) == Stage::open));
  BOOST_TEST((entry.segment == 77 && entry.segment_bytes == 4096u && entry.offset == 64u));
  BOOST_TEST((entry.length == 100u && entry.rights == 3u));
  BOOST_TEST(!AttachedWindows::has(shm::most_attached_windows));
}

BOOST_AUTO_TEST_CASE(one_that_is_closed_is_free_when_nobody_is_inside) {
  open(0);
  BOOST_TEST(!windows.close(0, control->windows[0], false));
  BOOST_TEST((windows.is_free(0) && stage(0) == Stage::free));
  open(0);
  inside(0, 2);
  BOOST_TEST(windows.close(0, control->windows[0], false));
  BOOST_TEST((!windows.is_free(0) && stage(0) == Stage::closed));
  inside(0, 1);
  BOOST_TEST(!windows.leave(0, control->windows[0]));
  inside(0, 0);
  const auto of = windows.leave(0, control->windows[0]);
  BOOST_TEST((of && of->session == 5 && of->window == 10));
  BOOST_TEST((windows.is_free(0) && stage(0) == Stage::free));
  BOOST_TEST(!windows.leave(0, control->windows[0])); // said twice
  open(0);
  BOOST_TEST(!windows.leave(0, control->windows[0])); // it is open
}

BOOST_AUTO_TEST_CASE(where_its_program_has_ended_nobody_is_waited_for) {
  open(1);
  inside(1, 1);
  BOOST_TEST(windows.close(1, control->windows[1], true));
  BOOST_TEST((windows.is_free(1) && stage(1) == Stage::free));
}

// Its program ends, and lives on.
BOOST_AUTO_TEST_CASE(what_a_program_is_inside_of_is_given_up_when_it_is_not) {
  for (const std::uint32_t entry : {0, 1, 2}) open(entry);
  inside(1, 1);
  inside(2, 1);
  BOOST_TEST(windows.close(2, control->windows[2], false)); // taken back before
  give_up(false);
  BOOST_TEST((given_up == std::vector<std::uint32_t>{0} && !windows.none()));
  BOOST_TEST((stage(0) == Stage::free && stage(1) == Stage::closed));
  inside(1, 0);
  give_up(false);
  BOOST_TEST((given_up == std::vector<std::uint32_t>{0, 1} && !windows.none()));
  give_up(true);
  BOOST_TEST((given_up == std::vector<std::uint32_t>{0, 1, 2} && windows.none()));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::daemon
