// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/settings/config.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {
namespace {

struct ConfigFixture {
  ConfigFixture() {
    environment.set("XDG_CONFIG_HOME", scratch.path());
    for (const auto& option : options()) environment.unset(option.variable());
    std::filesystem::create_directory(scratch / "parc");
  }

  Result<CommandLine> parcd(std::vector<const char*> arguments) const {
    arguments.insert(arguments.begin(), "parcd");
    return read_command_line(static_cast<int>(arguments.size()), arguments.data());
  }
  // The complaint about a configuration file with this text, without its path.
  std::string complaint(const std::string& text) const {
    test::write_file(file, text);
    const auto refused = parcd({});
    if (refused) return "";
    const auto& sentence = refused.error().text;
    BOOST_TEST(sentence.starts_with(file + ":"));
    return sentence.substr(file.size() + 1);
  }

  test::Environment environment;
  test::Scratch scratch;
  std::string file = scratch / "parc/parcd.toml";
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(config, ConfigFixture)

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(defaults_are_complete) {
  const auto config = parcd({}).value().config;
  BOOST_TEST((config.port == PortRange{7272, 7272}));
  BOOST_TEST((config.listen == std::vector<std::string>{"127.0.0.1", "::1"}));
  BOOST_TEST(config.fragment_size == 4096U);
  BOOST_TEST(config.pool == 64U << 20);
  BOOST_TEST(config.key_file == scratch / "parc/key");
  BOOST_TEST(!config.name.empty());
}

BOOST_AUTO_TEST_CASE(a_later_layer_wins) {
  test::write_file(file, "port = 1000\nspin_us = 1\nfragment_size = \"8 KiB\"\n");
  BOOST_TEST(parcd({}).value().config.port.first == 1000);
  environment.set("PARC_PORT", "2000");
  environment.set("PARC_SPIN_US", "2");
  const auto config = parcd({"--port", "3000-3009"}).value().config;
  BOOST_TEST((config.port == PortRange{3000, 3009, true}));
  BOOST_TEST(config.spin_us == 2U);
  BOOST_TEST(config.fragment_size == 8192U);
  BOOST_TEST(contains(to_toml(config), "# --port"));
  BOOST_TEST(contains(to_toml(config), "# PARC_SPIN_US"));
  BOOST_TEST(contains(to_toml(config), "# " + file + ":3"));
}

BOOST_AUTO_TEST_CASE(a_chosen_file_stands_for_all_files) {
  test::write_file(file, "port = 1000\n");
  test::write_file(scratch / "other", "spin_us = 7\n");
  const auto config = parcd({"--config", (scratch / "other").c_str()}).value().config;
  BOOST_TEST(config.port.first == 7272);
  BOOST_TEST(config.spin_us == 7U);
  BOOST_TEST(contains(parcd({"--config", "/nowhere.toml"}).error().text, "cannot read /nowhere.toml"));
}

BOOST_AUTO_TEST_CASE(hosts_in_both_forms) {
  test::write_file(file, "[hosts]\na = \"10.0.0.1:7000\"\nb = { address = \"fd00::2\", port = 7001 }\n"
                         "c = \"[::1]:7002\"\nd = \"node4\"\n"
                         "e = { prefix = \"/opt/parc\", wdir = \"~/run\", env = { A = \"1\" } }\n"
                         "f = { ssh = \"far\", prefix = \"~/parc\" }\n"
                         "g = { via = \"a\" }\nh = { address = \"10.1.0.1\", port = 7003, via = \"g\" }\n"
                         "i = { relay = true }\nj = { ssh = \"x\", relay = true }\n");
  const Config config = parcd({}).value().config;
  const auto& hosts = config.hosts;
  BOOST_TEST(hosts.size() == 9U);
  BOOST_TEST((hosts.at("g") == HostAddress{.address = "g", .via = {"a", "g"}}));
  BOOST_TEST((hosts.at("i") == HostAddress{.address = "i", .only_relays = true}));
  BOOST_TEST(hosts.at("j").only_relays);
  BOOST_TEST((hosts.at("h") == HostAddress{.address = "10.1.0.1", .port = 7003, .via = {"g", "h"}}));
  BOOST_TEST((hosts.at("a") == HostAddress{"10.0.0.1", 7000}));
  BOOST_TEST((hosts.at("b") == HostAddress{"fd00::2", 7001}));
  BOOST_TEST((hosts.at("c") == HostAddress{"::1", 7002}));
  BOOST_TEST((hosts.at("d") == HostAddress{"node4", 7272}));
  BOOST_TEST(!hosts.contains("e")); // wherever it is
  BOOST_TEST((config.places.at("e") == HostPlace{.prefix = "/opt/parc", .wdir = "~/run", .env = {"A=1"}}));
  BOOST_TEST(hosts.at("f").ssh.prefix == "~/parc");
  BOOST_TEST((parse_host_address("fd00::2").value() == HostAddress{"fd00::2", 7272}));
  for (const auto* bad : {"", "a:", "a:0", "a:65536", "[::1", "[::1]7", ":7272", "a b:1"})
    BOOST_TEST(!parse_host_address(bad).has_value(), bad);
}

BOOST_AUTO_TEST_CASE(complaints_name_file_line_and_remedy) {
  BOOST_TEST(complaint("spin_us = 1\nport = \n").starts_with("2: "));
  BOOST_TEST(complaint("\nfragmnt_size = 1\n") ==
             "2: unknown setting \"fragmnt_size\"; did you mean fragment_size?");
  BOOST_TEST(complaint("port = 70000\n") == "1: port: 70000 is outside 0 to 65535");
  BOOST_TEST(complaint("port = true\n") == "1: port must be a number");
  BOOST_TEST(complaint("listen = [1]\n") == "1: listen: every element must be a text in quotes");
  BOOST_TEST(contains(complaint("listen = [\"he re\"]\n"), "1: listen: \"he re\" is not a numeric address"));
  BOOST_TEST(contains(complaint("listen = [\"10.9.0.0/33\"]\n"), "or an interface (wg0)"));
  BOOST_TEST(contains(complaint("realtime = \"yes\"\n"), "1: realtime: \"yes\" is not one of"));
  BOOST_TEST(contains(complaint("pool = \"1 GB of it\"\n"), "1: pool: "));
  BOOST_TEST(contains(complaint("runtime_dir = \"/x\"\n"), "use --runtime-dir or PARC_RUNTIME_DIR"));
  BOOST_TEST(contains(complaint("[hosts]\na = \"x:y\"\n"), "2: host a: "));
  BOOST_TEST(contains(complaint("[hosts]\na = { adress = \"x\" }\n"), "did you mean address?"));
  BOOST_TEST(contains(complaint("\n[hosts]\na = { address = 1 }\n"), "3: host a: address must be a text"));
  BOOST_TEST(contains(complaint("[hosts]\na = { wdir = \"x\" }\n"), "2: host a: wdir: \"x\" begins neither"));
  BOOST_TEST(contains(complaint("[hosts]\na = { env = [\"A=1\"] }\n"), "2: host a: env must be a table"));
  BOOST_TEST(contains(complaint("[hosts]\na = { env = { A = 1 } }\n"), "2: host a: env must be a text"));
  BOOST_TEST(complaint("[hosts]\na = { via = \"a\" }\n") == "2: host a: it cannot be reached via itself");
  BOOST_TEST(contains(complaint("[hosts]\na = { via = 1 }\n"), "2: host a: via must be a text"));
  BOOST_TEST(complaint("[hosts]\na = { relay = 1 }\n") == "2: host a: relay must be true or false");
  for (const char* const value : {"1", "\"both\""})
    BOOST_TEST(
        complaint(fmt::format("[hosts]\na = {{ dial = {} }}\n", value)) ==
        "2: host a: dial must be \"out\", where nobody can dial that host, or \"in\", where it dials nobody");
  BOOST_TEST(
      contains(complaint("[hosts]\na = { dial = \"in\", ssh = \"c\" }\n"), "2: host a: a host is reached"));
  BOOST_TEST(
      contains(complaint("[hosts]\na = { via = \"b\", ssh = \"c\" }\n"), "2: host a: a host is reached"));
  BOOST_TEST(contains(complaint("[hosts]\na = { via = \"" + std::string(49, 'b') + "\" }\n"), "at most 48"));
}

// But where this host is one of them: the same text serves all.
BOOST_AUTO_TEST_CASE(hosts_that_lead_to_each_other) {
  test::write_file(file, "[hosts]\na = { via = \"b\" }\nb = { via = \"c\" }\nc = { via = \"b\" }\n");
  BOOST_TEST(parcd({"--name", "x"}).error().text == "[hosts] goes in circles: a via b via c via b");
  BOOST_TEST(parcd({"--name", "b"}).has_value());
}

BOOST_AUTO_TEST_CASE(complaints_about_other_layers_name_them) {
  environment.set("PARC_SPIN_US", "many");
  BOOST_TEST(parcd({}).error().text == "environment variable PARC_SPIN_US: \"many\" is not a number");
  environment.unset("PARC_SPIN_US");
  const auto flag = parcd({"--spin-us", "-1"});
  BOOST_TEST(contains(flag.error().text, "--spin-us -1: "));
  BOOST_TEST(flag.error().code == EINVAL);
}

BOOST_AUTO_TEST_CASE(links_are_encrypted_unless_somebody_says_no) {
  BOOST_TEST(parcd({"--listen", "127.0.0.1,10.1.2.3"}).value().config.encryption == "tls");
  BOOST_TEST(parcd({"--listen", "0.0.0.0", "--encryption", "none"}).value().config.encryption == "none");
  BOOST_TEST(parcd({"--encryption", "tls"}).value().config.encryption == "tls");
  for (const auto* strange : {"", "ssl", "None", "off"})
    BOOST_TEST(!parcd({"--encryption", strange}).has_value(), strange);
}

BOOST_AUTO_TEST_CASE(fragments_are_whole_words) {
  BOOST_TEST(parcd({"--fragment-size", "1032"}).has_value());
  BOOST_TEST(contains(parcd({"--fragment-size", "1030"}).error().text, "not a multiple of 8"));
  BOOST_TEST(!parcd({"--fragment-size", "1016"}).has_value());
  BOOST_TEST(!parcd({"--fragment-size", "65544"}).has_value());
}

BOOST_AUTO_TEST_CASE(unknown_options_name_the_nearest) {
  BOOST_TEST(parcd({"--fragmentsize", "1"}).error().text ==
             "parcd has no option --fragmentsize; did you mean --fragment-size?");
  BOOST_TEST(contains(parcd({"start"}).error().text, "takes no argument \"start\""));
  BOOST_TEST(parcd({"--prot=1"}).error().code == EINVAL);
  BOOST_TEST(parcd({"--port"}).error().code == EINVAL);
}

BOOST_AUTO_TEST_CASE(help_comes_from_the_table) {
  const auto help = parcd({"--help"}).value().answer.value();
  for (const auto& option : options()) BOOST_TEST(contains(help, option.flag()), option.key);
  BOOST_TEST(contains(parcd({"--version"}).value().answer.value(), "parcd "));
  const auto line = parcd({"--detach", "-t", "-T"}).value();
  BOOST_TEST((line.detach && line.check && line.print && !line.answer));
}

BOOST_AUTO_TEST_CASE(what_differs_is_named) {
  const auto before = parcd({}).value().config;
  BOOST_TEST(differences(before, before).empty());
  BOOST_TEST(differences(before, parcd({"--pool", "32M", "--listen", "127.0.0.1"}).value().config) ==
             "listen, pool");
}

BOOST_AUTO_TEST_CASE(hosts_that_only_relay) {
  test::write_file(
      file, "[hosts]\nhead = { relay = true }\nbehind = { via = \"head\", ssh = \"x\", relay = true }\n");
  BOOST_TEST(contains(parcd({}).error().text, "a host is reached"));
  test::write_file(file, "[hosts]\nhead = { relay = true }\ninner = { via = \"head\", relay = true }\n");
  const auto before = parcd({}).value().config;
  test::write_file(scratch / "printed", to_toml(before));
  BOOST_TEST((parcd({"--config", (scratch / "printed").c_str()}).value().config.hosts == before.hosts));
  BOOST_TEST(contains(parcd({"--encryption", "none"}).error().text, "[hosts] says that head relays"));
}

BOOST_AUTO_TEST_CASE(printed_settings_read_back_the_same) {
  test::write_file(file,
                   "[hosts]\n\"n-1.x\" = \"10.0.0.1:7000\"\nv6 = \"[fd00::2]:1\"\n"
                   "own = { ssh = \"far\", prefix = \"/opt\", wdir = \"~\", env = { \"A\" = \"\\\"\" } }\n"
                   "alone = { wdir = \"/data\" }\nfar = { via = \"v6\" }\n"
                   "calls = { dial = \"out\" }\nlistens = { dial = \"in\" }\n");
  const auto before = parcd({"--port",        "60000-60099",
                             "--listen",      "0.0.0.0,::1",
                             "--encryption",  "none",
                             "--advertise",   "node1",
                             "--key-file",    "/with \"quotes\" and \\",
                             "--pool",        "1G",
                             "--name",        "n-1",
                             "--realtime",    "off",
                             "--send-buffer", "4K",
                             "--log-level",   "debug"})
                          .value()
                          .config;
  test::write_file(scratch / "printed", to_toml(before));
  const auto after = parcd({"--config", (scratch / "printed").c_str()}).value().config;
  for (const auto& option : options()) BOOST_TEST((option.get(after) == option.get(before)), option.key);
  BOOST_TEST((after.hosts == before.hosts));
  BOOST_TEST((after.places == before.places));
  BOOST_TEST(after.pool == 1ULL << 30);
}

BOOST_AUTO_TEST_CASE(sizes_and_their_limits) {
  BOOST_TEST(parcd({"--send-buffer", "16 KiB"}).value().config.send_buffer == 16384U);
  for (const auto* bad : {"99999999999999999999", "17179869184G", "K", "1 T", "0x10", ""})
    BOOST_TEST(!parcd({"--send-buffer", bad}).has_value(), bad);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
