// SPDX-License-Identifier: BSD-3-Clause
// What ranks of MPI have written on hosts that do not share a file system with this one: a job on each such
// host packs it, and another takes it away there.
#include "system/identity.hpp"
#include "tools/parc/hosts/ask_hosts.hpp"
#include "tools/parc/talk/children.hpp"
#include "tools/parc/trace/trace.hpp"

#include <filesystem>
#include <fstream>

namespace parc::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* mark = ".here"; // who sees it sees this host's directory
constexpr const char* pack_script = R"(cd "$1" 2>/dev/null && [ ! -e .here ] || exit 0
exec tar -cf - -- *)";
constexpr const char* remove_script = R"([ -e "$1/.here" ] || rm -rf -- "$1")";

std::vector<Child> run_on(const std::vector<std::string>& hosts, const char* script,
                          const fs::path& directory) {
  const std::string parc = path_of_this_program();
  std::vector<Child> children;
  for (const std::string& host : hosts)
    children.push_back({.command = {parc, "run", "--hosts", host, "sh", "-c", script, "sh",
                                    fs::absolute(directory).lexically_normal().string()}});
  run_all(children);
  return children;
}

Result<void> all_well(const std::vector<Child>& children) {
  for (const Child& child : children)
    if (child.status != 0) return error(EIO, "{}", why_failed(child, "tar"));
  return success();
}

} // namespace

// Nothing goes there before all is here. A host that does not answer, or fails, leaves its ranks without a
// trace, which is said of those.
Result<void> fetch_traces(const fs::path& directory) {
  PARC_TRY(answers, ask_hosts({}, {}, {}, false));
  std::vector<std::string> hosts;
  for (const AskedHost& each : answers)
    if (each.up()) hosts.push_back(each.host);
  std::ofstream(directory / mark).flush();
  std::vector<Child> packed = run_on(hosts, pack_script, directory), unpacking;
  std::vector<std::string> emptied;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    if (packed[i].status != 0 || packed[i].output.empty()) continue;
    emptied.push_back(hosts[i]);
    unpacking.push_back(
        {.command = {"tar", "-C", directory.string(), "-xf", "-"}, .input = std::move(packed[i].output)});
  }
  run_all(unpacking);
  Result<void> here = all_well(unpacking);
  if (here && !emptied.empty()) here = all_well(run_on(emptied, remove_script, directory));
  std::error_code failure;
  fs::remove(directory / mark, failure);
  if (!here) return here;
  return all_well(packed);
}

} // namespace parc::tools
