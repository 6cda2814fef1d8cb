// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/callbacks.hpp"

#include "pmix/events.hpp"
#include "pmix/peer_owner.hpp"
#include "pmix/server.hpp"
#include "pmix/values.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace parc::pmix {
namespace {

Server* the_server = nullptr;

// Answers what asks for data, and frees it when that has been taken.
void answer_with(pmix_modex_cbfunc_t answer, void* argument, int status, std::string data) {
  auto kept = std::make_unique<std::string>(std::move(data));
  const auto release = [](void* text) { delete static_cast<std::string*>(text); };
  const char* const bytes = kept->empty() ? nullptr : kept->data();
  const std::size_t size = kept->size();
  answer(status, bytes, size, argument, release, kept.release());
}

// None: it names ranks as no fence does.
std::optional<Members> members_of(const pmix_proc_t* procs, std::size_t count) {
  Members members;
  for (std::size_t i = 0; i < count; ++i) {
    const bool all = procs[i].rank == PMIX_RANK_WILDCARD;
    if (!all && !PMIX_RANK_IS_VALID(procs[i].rank)) return {};
    members.insert({procs[i].nspace, all ? Member::all : procs[i].rank});
  }
  return members;
}

std::vector<std::string> texts_of(char** texts) {
  std::vector<std::string> all;
  for (char** each = texts; each != nullptr && *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

bool is(const pmix_info_t& info, const char* key) {
  return PMIX_CHECK_KEY(&info, key);
}

const char* text_in(const pmix_info_t& info) {
  return info.value.type == PMIX_STRING && info.value.data.string != nullptr ? info.value.data.string : "";
}

// Where libpmix changes what it answers a lookup from: it is not handed on to its thread, as other answers
// are. Whoever deregisters a rank that does not exist is called back there.
void on_libpmix_thread(std::function<void()> action) {
  pmix_proc_t none{};
  PMIX_LOAD_PROCID(&none, "parc-none", 0);
  const pmix_op_cbfunc_t call = [](pmix_status_t, void* kept) {
    const std::unique_ptr<std::function<void()>> taken(static_cast<std::function<void()>*>(kept));
    (*taken)();
  };
  PMIx_server_deregister_client(&none, call, new std::function<void()>(std::move(action)));
}

std::int64_t number_in(const pmix_value_t& value) {
  switch (value.type) {
  case PMIX_INT: return value.data.integer;
  case PMIX_UINT: return value.data.uint;
  case PMIX_INT32: return value.data.int32;
  case PMIX_UINT32: return value.data.uint32;
  default: return 0;
  }
}

bool is_for_own_job(pmix_data_range_t range) {
  return range == PMIX_RANGE_NAMESPACE || range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL;
}

} // namespace

struct Callbacks {
  static void post(Messenger::Action action) { the_server->messenger_.post(std::move(action)); }

  // ---- Ranks come and go. One that calls waits for these: what is said here comes before its end.

  static pmix_status_t connected(const pmix_proc_t* proc, void*, pmix_info_t*, std::size_t, pmix_op_cbfunc_t,
                                 void*) {
    if (!peers_are_checked()) return PMIX_ERR_NOT_SUPPORTED;
    say(fmt::format("in {}\n", proc->rank));
    return PMIX_OPERATION_SUCCEEDED;
  }
  static pmix_status_t finalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*) {
    say(fmt::format("out {}\n", proc->rank));
    return PMIX_OPERATION_SUCCEEDED;
  }

  static pmix_status_t abort(const pmix_proc_t* proc, void*, int status, const char*, pmix_proc_t*,
                             std::size_t, pmix_op_cbfunc_t, void*) {
    say(fmt::format("abort {} {}\n", proc->rank, status));
    return PMIX_OPERATION_SUCCEEDED;
  }

  // ---- Fences. To be connected, or not any more, is one without data.

  static pmix_status_t fence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t*, std::size_t,
                             char* data, std::size_t bytes, pmix_modex_cbfunc_t end, void* argument) {
    auto members = members_of(procs, count);
    if (!members) return PMIX_ERR_NOT_SUPPORTED;
    post([members = std::move(*members), contribution = std::string(data ? data : "", data ? bytes : 0), end,
          argument] {
      the_server->exchange_.fence(Exchange::What::fence, members, contribution,
                                  [end, argument](int status, std::string all) {
                                    answer_with(end, argument, status, std::move(all));
                                  });
    });
    return PMIX_SUCCESS;
  }

  template <Exchange::What what> static pmix_status_t connect(const pmix_proc_t* procs, std::size_t count,
                                                              const pmix_info_t*, std::size_t,
                                                              pmix_op_cbfunc_t end, void* argument) {
    auto members = members_of(procs, count);
    if (!members) return PMIX_ERR_NOT_SUPPORTED;
    post([members = std::move(*members), end, argument] {
      the_server->exchange_.fence(what, members, {},
                                  [end, argument](int status, const std::string&) { end(status, argument); });
    });
    return PMIX_SUCCESS;
  }

  static pmix_status_t modex(const pmix_proc_t* proc, const pmix_info_t*, std::size_t,
                             pmix_modex_cbfunc_t end, void* argument) {
    post([job = std::string(proc->nspace), rank = proc->rank, end, argument] {
      the_server->exchange_.modex(job, rank, [end, argument](int status, std::string data) {
        answer_with(end, argument, status, std::move(data));
      });
    });
    return PMIX_SUCCESS;
  }

  // ---- Names. What begins with "pmix." says how.

  static pmix_status_t publish(const pmix_proc_t* proc, const pmix_info_t* infos, std::size_t count,
                               pmix_op_cbfunc_t end, void* argument) {
    std::vector<Entry> entries;
    bool once = false, own_job = false;
    for (std::size_t i = 0; i < count; ++i) {
      const pmix_info_t& info = infos[i];
      if (is(info, PMIX_PERSISTENCE)) once = info.value.data.persist == PMIX_PERSIST_FIRST_READ;
      if (is(info, PMIX_RANGE)) own_job = is_for_own_job(info.value.data.range);
      if (std::string_view(info.key).starts_with("pmix.")) continue;
      auto value = packed(&info.value, 1, PMIX_VALUE);
      if (!value) return PMIX_ERR_PACK_FAILURE;
      entries.push_back({.key = info.key, .value = std::move(*value), .job = proc->nspace});
    }
    for (Entry& each : entries) {
      each.rank = proc->rank;
      each.once = once;
      each.own_job = own_job;
    }
    post([entries = std::move(entries), end, argument] {
      the_server->names_.publish(entries,
                                 [end, argument](int status, const std::string&) { end(status, argument); });
    });
    return PMIX_SUCCESS;
  }

  static pmix_status_t unpublish(const pmix_proc_t* proc, char** keys, const pmix_info_t*, std::size_t,
                                 pmix_op_cbfunc_t end, void* argument) {
    post([rank = proc->rank, keys = texts_of(keys), end, argument] {
      the_server->names_.unpublish(
          rank, keys, [end, argument](int status, const std::string&) { end(status, argument); });
    });
    return PMIX_SUCCESS;
  }

  static pmix_status_t look_up(const pmix_proc_t*, char** keys, const pmix_info_t* infos, std::size_t count,
                               pmix_lookup_cbfunc_t end, void* argument) {
    Names::Wanted wanted{.keys = texts_of(keys)};
    for (std::size_t i = 0; i < count; ++i) {
      if (is(infos[i], PMIX_WAIT)) // for how many of them, or that it does: for all
        wanted.waits = infos[i].value.type != PMIX_BOOL || infos[i].value.data.flag;
      if (is(infos[i], PMIX_TIMEOUT)) wanted.at_most = std::chrono::seconds(number_in(infos[i].value));
    }
    post([wanted = std::move(wanted), end, argument] {
      the_server->names_.look_up(wanted, [end, argument](int status, const std::vector<Entry>& found) {
        on_libpmix_thread([status, found, end, argument] { give(status, found, end, argument); });
      });
    });
    return PMIX_SUCCESS;
  }

  static void give(int status, const std::vector<Entry>& found, pmix_lookup_cbfunc_t end, void* argument) {
    std::vector<pmix_pdata_t> all(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      PMIX_PDATA_CONSTRUCT(&all[i]);
      PMIX_LOAD_PROCID(&all[i].proc, found[i].job.c_str(), found[i].rank);
      PMIX_LOAD_KEY(all[i].key, found[i].key.c_str());
      if (!unpack(found[i].value, &all[i].value, 1, PMIX_VALUE)) status = PMIX_ERR_UNPACK_FAILURE;
    }
    end(status, all.data(), all.size(), argument); // which copies it
    for (pmix_pdata_t& each : all) PMIX_PDATA_DESTRUCT(&each);
  }

  // ---- Jobs that ranks spawn.

  static SpawnedProgram program_in(const pmix_app_t& app) {
    SpawnedProgram program{.ranks = static_cast<std::uint32_t>(app.maxprocs),
                           .hosts = {},
                           .arguments = texts_of(app.argv),
                           .directory = app.cwd ? app.cwd : "",
                           .variables = texts_of(app.env)};
    if (program.arguments.empty()) program.arguments.emplace_back();
    program.arguments.front() = app.cmd;
    for (std::size_t i = 0; i < app.ninfo; ++i) {
      if (is(app.info[i], PMIX_HOST)) program.hosts = text_in(app.info[i]);
      if (is(app.info[i], PMIX_WDIR)) program.directory = text_in(app.info[i]);
    }
    if (app.cwd && !program.directory.starts_with('/'))
      program.directory = fmt::format("{}/{}", app.cwd, program.directory);
    // Those of its own server are for these ranks alone: others get theirs.
    std::erase_if(program.variables, [](const std::string& variable) {
      const auto& own = the_server->variables();
      return variable.find('=') == variable.npos || std::ranges::find(own, variable) != own.end();
    });
    return program;
  }

  static pmix_status_t spawn(const pmix_proc_t*, const pmix_info_t*, std::size_t, const pmix_app_t* apps,
                             std::size_t count, pmix_spawn_cbfunc_t end, void* argument) {
    const std::span all(apps, count);
    const auto makes_no_sense = [](const pmix_app_t& app) { return app.cmd == nullptr || app.maxprocs < 1; };
    if (all.empty() || std::ranges::any_of(all, makes_no_sense)) return PMIX_ERR_BAD_PARAM;
    std::vector<SpawnedProgram> programs;
    std::ranges::transform(all, std::back_inserter(programs), program_in);
    post([programs = std::move(programs), end, argument] {
      the_server->spawns_.spawn(programs, [end, argument](int status, const std::string& job) {
        pmix_nspace_t name;
        PMIX_LOAD_NSPACE(name, job.c_str());
        end(status, name, argument);
      });
    });
    return PMIX_SUCCESS;
  }

  // ---- Events.

  static pmix_status_t register_events(pmix_status_t*, std::size_t, const pmix_info_t*, std::size_t,
                                       pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
  }
  static pmix_status_t deregister_events(pmix_status_t*, std::size_t, pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
  }
  // Those of this host have heard of it; now the other servers of the job do.
  static pmix_status_t notify(pmix_status_t code, const pmix_proc_t* source, pmix_data_range_t range,
                              pmix_info_t* infos, std::size_t count, pmix_op_cbfunc_t, void*) {
    if (range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL) return PMIX_OPERATION_SUCCEEDED;
    auto event = event_text(code, source, range, infos, count);
    if (!event) return PMIX_ERR_PACK_FAILURE;
    post([event = std::move(*event)] { the_server->tell_of_event(event); });
    return PMIX_OPERATION_SUCCEEDED;
  }
};

pmix_server_module_t callbacks_of(Server& server) {
  the_server = &server;
  pmix_server_module_t all{};
  all.client_connected2 = Callbacks::connected;
  all.client_finalized = Callbacks::finalized;
  all.abort = Callbacks::abort;
  all.fence_nb = Callbacks::fence;
  all.connect = Callbacks::connect<Exchange::What::connect>;
  all.disconnect = Callbacks::connect<Exchange::What::disconnect>;
  all.direct_modex = Callbacks::modex;
  all.publish = Callbacks::publish;
  all.lookup = Callbacks::look_up;
  all.unpublish = Callbacks::unpublish;
  all.spawn = Callbacks::spawn;
  all.register_events = Callbacks::register_events;
  all.deregister_events = Callbacks::deregister_events;
  all.notify_event = Callbacks::notify;
  return all;
}

} // namespace parc::pmix
