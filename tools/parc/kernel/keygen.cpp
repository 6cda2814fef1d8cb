// SPDX-License-Identifier: BSD-3-Clause
// parc keygen: makes a key for links, or says which one a host that only relays gets. What the file is to be,
// and where, only parcd knows.
#include "system/identity.hpp"
#include "system/start_kernel.hpp"
#include "tools/parc/kernel/commands.hpp"
#include "tools/parc/talk/children.hpp"

#include <iostream>
#include <memory>

namespace parc::tools {

Command keygen_command() {
  const auto file = std::make_shared<std::string>();
  const auto for_relays = std::make_shared<bool>();
  return {.name = "keygen",
          .help = "Make a key for links between kernels",
          .options =
              [file, for_relays](CLI::App& app) {
                app.add_option("file", *file, "The key's file; without it, the one that parcd reads")
                    ->type_name("FILE");
                app.add_flag(
                    "--relay", *for_relays,
                    "Make none: print the key for hosts that only relay, which is derived from that");
              },
          .run =
              [file, for_relays] {
                std::vector<Child> made(1);
                made[0].command = {parcd_near(path_of_this_program()),
                                   *for_relays ? "--relay-key" : "--make-key"};
                if (!file->empty()) made[0].command.insert(made[0].command.end(), {"--key-file", *file});
                run_all(made);
                std::cout << made[0].output;
                std::cerr << made[0].errors;
                return made[0].status;
              }};
}

} // namespace parc::tools
