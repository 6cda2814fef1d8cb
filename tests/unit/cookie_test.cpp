// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/cookie.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {
namespace {

BOOST_AUTO_TEST_SUITE(cookie)

BOOST_AUTO_TEST_CASE(names_every_slot_of_every_session) {
  for (const std::uint32_t session : {0U, 1U, 255U, 65535U})
    for (const std::uint64_t slot : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{shm::control_slot},
                                     (std::uint64_t{1} << shm::slot_bits) - 1})
      for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0} >> 12}) {
        const Cookie made = Cookie::of_session(session, slot, generation);
        const Cookie cookie(made.word());
        BOOST_TEST((cookie.owner() == Cookie::Owner::session));
        BOOST_TEST(cookie.session() == session);
        BOOST_TEST(cookie.slot() == slot);
        BOOST_TEST(cookie.is_of(generation));
        BOOST_TEST(!cookie.is_of(generation + 1));
      }
}

BOOST_AUTO_TEST_CASE(tells_reads_of_control_from_its_writes) {
  const Cookie read = Cookie::of_control_read(~std::uint32_t{0}), write = Cookie::of_control_write(7);
  BOOST_TEST((read.owner() == Cookie::Owner::control_read));
  BOOST_TEST(read.link() == ~std::uint32_t{0});
  BOOST_TEST((write.owner() == Cookie::Owner::control_write));
  BOOST_TEST(write.write() == 7);
  BOOST_TEST(Cookie::of_control_read(7).word() != write.word());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::daemon
