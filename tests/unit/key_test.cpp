// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/link_secrets.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace parc::daemon {
namespace {

struct KeyFixture {
  void write_key(const std::string& text) const {
    test::write_file(path, text);
    chmod(path.c_str(), 0600);
  }
  bool refused_for(std::string_view words) const {
    const auto key = read_or_make_key(path);
    return !key && key.error().text.find(words) != std::string::npos;
  }
  test::Scratch scratch;
  std::string path = scratch / "key";
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(key, KeyFixture)

namespace {

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

} // namespace

BOOST_AUTO_TEST_CASE(made_once_and_private) {
  const std::string deep = scratch / "a/b/key";
  BOOST_TEST(!read_keys(deep).has_value());
  const auto made = read_or_make_key(deep);
  BOOST_REQUIRE(made.has_value());
  struct stat status {};
  BOOST_REQUIRE(stat(deep.c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 07777) == 0600U);
  BOOST_TEST((read_or_make_key(deep).value() == made.value()));
  BOOST_TEST((read_or_make_key(scratch / "other").value() != made.value()));
  BOOST_TEST(files_in(scratch / "a/b") == 1U);
}

BOOST_AUTO_TEST_CASE(kernels_that_start_together_agree) {
  for (int round = 0; round < 20; ++round) {
    const std::string common = scratch / ("key" + std::to_string(round));
    std::vector<Keys> keys(8);
    std::vector<std::thread> kernels;
    for (auto& mine : keys)
      kernels.emplace_back([&mine, &common] { mine = read_or_make_key(common).value(); });
    for (auto& kernel : kernels) kernel.join();
    for (const auto& mine : keys) BOOST_TEST((mine == keys.front()));
  }
}

BOOST_AUTO_TEST_CASE(readable_by_others_is_refused) {
  BOOST_REQUIRE(read_or_make_key(path).has_value());
  for (const mode_t mode : {0640U, 0604U, 0660U}) {
    chmod(path.c_str(), mode);
    BOOST_TEST(refused_for("chmod 600"));
  }
  chmod(path.c_str(), 0400);
  BOOST_TEST(read_or_make_key(path).has_value());
}

BOOST_AUTO_TEST_CASE(malformed_is_refused) {
  const std::string right(64, 'a');
  for (const auto& text :
       {std::string{}, right.substr(1), right + "a", right.substr(1) + "g", right + right,
        right + "\n" + right + "\n" + right, right + "\nmore", std::string(100'000, 'a')}) {
    write_key(text);
    BOOST_TEST(refused_for("malformed"));
  }
  write_key(right + "\r\n");
  BOOST_TEST(read_or_make_key(path).has_value());
}

BOOST_AUTO_TEST_CASE(relay_key_in_a_file) {
  const Keys all(Key{std::byte{1}}, Key{std::byte{2}});
  const Keys relay = relay_keys(all);
  BOOST_TEST((relay.use == KeyUse::relay && relay.own != all.own && relay.other != relay.own));
  BOOST_TEST((relay_keys(relay) == relay)); // there is nothing below it
  write_key(to_text(relay));
  BOOST_TEST((read_keys(path).value() == relay));
  write_key(to_text(relay) + "\n" + to_text(all.own)); // three, of two kinds
  BOOST_TEST(!read_keys(path).has_value());
  write_key(to_text(Keys(relay.own, {}, KeyUse::relay)) + "\n" + to_text(all.own));
  BOOST_TEST(!read_keys(path).has_value());
  write_key("relay:");
  BOOST_TEST(!read_keys(path).has_value());
}

BOOST_AUTO_TEST_CASE(two_keys) {
  const std::string first(64, 'a'), second(64, 'b');
  write_key(first + "\n" + second + "\n");
  const Keys keys = read_keys(path).value();
  BOOST_TEST(to_text(keys) == first + "\n" + second);
  write_key(first);
  BOOST_TEST((read_keys(path).value() == Keys(keys.own)));
}

BOOST_AUTO_TEST_CASE(what_is_there_stays) {
  BOOST_TEST_REQUIRE(make_key(path).has_value());
  const Keys keys = read_keys(path).value();
  BOOST_TEST(make_key(path).error().code == EEXIST);
  BOOST_TEST((read_keys(path).value() == keys));
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_refused) {
  std::filesystem::create_directory(path);
  BOOST_TEST(refused_for("is not a file"));
  std::filesystem::remove(path);
  BOOST_REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  BOOST_TEST(refused_for("is not a file"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
