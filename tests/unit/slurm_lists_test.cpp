// SPDX-License-Identifier: BSD-3-Clause
#include "system/slurm_lists.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(slurm_lists)

using namespace parc;

BOOST_AUTO_TEST_CASE(what_they_stand_for) {
  using Names = std::vector<std::string>;
  BOOST_TEST((expand_node_list("a").value() == Names{"a"}));
  BOOST_TEST((expand_node_list("a[1-3,07],b,c[09-11]x").value() ==
              Names{"a1", "a2", "a3", "a07", "b", "c09x", "c10x", "c11x"}));
  BOOST_TEST((expand_node_list("r[1-2]n[1,3]").value() == Names{"r1n1", "r1n3", "r2n1", "r2n3"}));
  BOOST_TEST((expand_node_list("n[4294967294-4294967295]").value() == Names{"n4294967294", "n4294967295"}));
  BOOST_TEST((expand_counts("4(x2),3").value() == std::vector<std::uint32_t>{4, 4, 3}));
  for (const char* wrong :
       {"", "a,", "a[", "a[]", "a[3-1]", "a[x]", "a[1-99999999]", "a[1-65535]b[1-2]", "a[1-40000,1-40000]"})
    BOOST_TEST(!expand_node_list(wrong), wrong);
  for (const char* wrong : {"", "4,", "x", "4(x", "4(x2", "4(2)", "4(x99999999)"})
    BOOST_TEST(!expand_counts(wrong), wrong);
}

BOOST_AUTO_TEST_SUITE_END()
