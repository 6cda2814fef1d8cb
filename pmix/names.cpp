// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/names.hpp"

#include "pmix/bytes.hpp"

#include <algorithm>
#include <pmix_common.h>
#include <utility>

namespace parc::pmix {
namespace {

constexpr int first_server = 0;
constexpr int most_failures = 3;                 // then it is over
constexpr std::chrono::seconds longest_look(10); // of who does not wait: some server may be stopped

void write(Writer& writer, const Entry& entry) {
  writer.text(entry.key).text(entry.value).text(entry.job).number(entry.rank);
  writer.number(entry.once ? 1 : 0).number(entry.own_job ? 1 : 0);
}

Entry read_entry(Reader& reader) {
  Entry entry{.key = reader.text(), .value = reader.text(), .job = reader.text()};
  entry.rank = static_cast<std::uint32_t>(reader.number());
  entry.once = reader.number() != 0;
  entry.own_job = reader.number() != 0;
  return entry;
}

std::vector<Entry> read_entries(Reader& reader) {
  std::vector<Entry> entries(reader.count());
  for (Entry& each : entries) each = read_entry(reader);
  return entries;
}

} // namespace

// What a rank has asked for: each key is a search.
struct Names::LookUp {
  std::size_t searches = 0; // that are under way, and one
  std::set<std::uint64_t> numbers = {};
  std::vector<Entry> found = {};
  std::vector<Job> jobs = {}; // that whoever gets it should know
  bool late = false;
  Messenger::Answer answer;
};

Names::Names(Messenger& messenger, const Jobs& jobs) : messenger_(messenger), jobs_(jobs) {
  using Answer = Messenger::Answer;
  messenger_.on(Kind::publish,
                [this](int, std::string_view body, const Answer& answer) { published(body, answer); });
  messenger_.on(Kind::unpublish,
                [this](int, std::string_view body, const Answer& answer) { unpublished(body, answer); });
  messenger_.on(Kind::lookup,
                [this](int, std::string_view body, const Answer& answer) { looked_up(body, answer); });
  messenger_.on(Kind::find,
                [this](int from, std::string_view body, const Answer& answer) { asked(from, body, answer); });
  messenger_.on(Kind::take, [this](int, std::string_view body, const Answer& answer) { give(body, answer); });
  messenger_.on(Kind::forget,
                [this](int from, std::string_view body, const Answer&) { forgotten(from, body); });
}

// ---- What ranks of this host ask, of the first server.

void Names::publish(const std::vector<Entry>& entries, Messenger::Answer answer) {
  Writer body;
  body.number(entries.size());
  for (const Entry& each : entries) write(body, each);
  messenger_.ask(first_server, Kind::publish, body.take(), std::move(answer));
}

void Names::unpublish(std::uint32_t rank, const std::vector<std::string>& keys, Messenger::Answer answer) {
  messenger_.ask(first_server, Kind::unpublish, Writer().number(rank).texts(keys).take(), std::move(answer));
}

void Names::look_up(const Wanted& wanted, std::function<void(int, std::vector<Entry>)> answer) {
  Writer body;
  body.number(wanted.waits ? 1 : 0).number(static_cast<std::uint64_t>(wanted.at_most.count()));
  body.texts(wanted.keys);
  messenger_.ask(first_server, Kind::lookup, body.take(),
                 [answer = std::move(answer)](int status, const std::string& text) {
                   Reader reader(text);
                   answer(status, read_entries(reader));
                 });
}

// ---- At the first server: what is kept.

bool Names::has(const std::string& key) const { // for other jobs
  return std::ranges::any_of(entries_, [&](const Entry& each) { return each.key == key && !each.own_job; });
}

std::optional<Entry> Names::take(const std::string& key, bool for_own_job) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& each) { return each.key == key && (for_own_job || !each.own_job); });
  if (found == entries_.end()) return {};
  Entry entry = *found;
  if (entry.once) entries_.erase(found);
  return entry;
}

void Names::published(std::string_view body, const Messenger::Answer& answer) {
  Reader reader(body);
  std::vector<Entry> entries = read_entries(reader);
  if (!reader.good()) return answer(PMIX_ERR_BAD_PARAM, {});
  for (const Entry& each : entries) {
    // What was to be read once, and never was, is left from an exchange that somebody has given up.
    std::erase_if(entries_, [&](const Entry& old) {
      return old.key == each.key && old.once && old.job == each.job && old.rank == each.rank;
    });
    if (std::ranges::find(entries_, each.key, &Entry::key) != entries_.end())
      return answer(PMIX_ERR_DUPLICATE_KEY, {});
  }
  std::ranges::move(entries, std::back_inserter(entries_));
  answer(PMIX_SUCCESS, {});
  give_to_waiting();
}

// Those of the rank that published them.
void Names::unpublished(std::string_view body, const Messenger::Answer& answer) {
  Reader reader(body);
  const std::uint64_t rank = reader.number();
  const std::vector<std::string> keys = reader.texts(); // none: all of its
  std::erase_if(entries_, [&](const Entry& each) {
    return each.rank == rank && (keys.empty() || std::ranges::find(keys, each.key) != keys.end());
  });
  answer(PMIX_SUCCESS, {});
}

void Names::give_to_waiting() {
  std::vector<std::uint64_t> own;
  for (const auto& [number, search] : searches_) own.push_back(number);
  for (const std::uint64_t number : own) {
    const auto search = searches_.find(number);
    if (search == searches_.end() || !search->second.taken_from.empty()) continue;
    search->second.found = take(search->second.key, true);
    if (search->second.found) end(number);
  }
  std::vector<Messenger::Answer> answers;
  waiting_.remove_if([&](const Waiting& each) {
    if (!has(each.key)) return false;
    answers.push_back(each.answer);
    return true;
  });
  for (const Messenger::Answer& each : answers) each(PMIX_SUCCESS, {});
}

// ---- Searches for ranks of one's own job.

void Names::looked_up(std::string_view body, const Messenger::Answer& answer) {
  Reader reader(body);
  const bool waits = reader.number() != 0;
  const std::chrono::seconds at_most(std::min<std::uint64_t>(reader.number(), INT32_MAX));
  const std::vector<std::string> keys = reader.texts();
  if (!reader.good()) return answer(PMIX_ERR_BAD_PARAM, {});
  const auto look_up = std::make_shared<LookUp>(LookUp{.searches = 1, .answer = answer});
  for (const std::string& key : keys) {
    ++look_up->searches;
    const std::uint64_t number = ++last_search_;
    look_up->numbers.insert(number);
    const auto then = [this, look_up](const Search& search) {
      if (search.found) look_up->found.push_back(*search.found);
      look_up->jobs.insert(look_up->jobs.end(), search.jobs.begin(), search.jobs.end());
      look_up->late = look_up->late || search.late;
      ended(look_up);
    };
    searches_.emplace(number, Search{.key = key, .waits = waits, .then = then});
  }
  for (const std::uint64_t number : look_up->numbers) begin(number);
  if (!waits || at_most.count() != 0)
    messenger_.at(Messenger::Clock::now() + (waits ? at_most : longest_look),
                  [this, numbers = look_up->numbers] {
                    for (const std::uint64_t number : numbers) end_late(number);
                  });
  ended(look_up);
}

void Names::ended(const std::shared_ptr<LookUp>& look_up) {
  if (--look_up->searches != 0) return;
  Writer body;
  body.number(look_up->found.size());
  for (const Entry& each : look_up->found) write(body, each);
  // libpmix hands on what was found only with success, also where it is a part of what was looked for.
  const int none = look_up->late ? PMIX_ERR_TIMEOUT : PMIX_ERR_NOT_FOUND;
  make_known(*look_up, [answer = look_up->answer, none, found = !look_up->found.empty(),
                        text = body.take()](int known) { answer(found ? known : none, text); });
}

void Names::begin(std::uint64_t number) {
  Search& search = searches_.at(number);
  search.found = take(search.key, true);
  if (search.found) return end(number);
  std::vector<std::string> jobs;
  for (const auto& [name, other] : others_) jobs.push_back(name);
  search.asked.insert(jobs.begin(), jobs.end());
  for (const std::string& each : jobs) ask(number, each);
  go_on(number);
}

void Names::ask(std::uint64_t number, const std::string& job) {
  const Other& other = others_.at(job);
  if (other.peer) return ask(number, job, *other.peer);
  messenger_.reach(other.address, [this, number, job](std::optional<int> peer) {
    const auto found = others_.find(job);
    if (found != others_.end() && peer) {
      found->second.peer = peer;
      return ask(number, job, *peer);
    }
    if (found != others_.end() && ++found->second.failures == most_failures) others_.erase(found);
    heard(number, job, PMIX_ERR_NOT_FOUND);
  });
}

void Names::ask(std::uint64_t number, const std::string& job, int peer) {
  const auto search = searches_.find(number);
  if (search == searches_.end()) return;
  Writer body;
  body.number(number).number(search->second.waits ? 1 : 0).text(search->second.key);
  messenger_.ask(peer, Kind::find, body.take(),
                 [this, number, job](int status, const std::string&) { heard(number, job, status); });
}

void Names::heard(std::uint64_t number, const std::string& job, int status) {
  const auto found = searches_.find(number);
  if (found == searches_.end()) return;
  found->second.asked.erase(job);
  if (status == PMIX_SUCCESS) found->second.have_it.insert(job);
  go_on(number);
}

// Asks one that has it, or gives up.
void Names::go_on(std::uint64_t number) {
  const auto at = searches_.find(number);
  if (at == searches_.end() || !at->second.taken_from.empty()) return;
  Search& search = at->second;
  while (!search.late && !search.have_it.empty()) {
    const std::string job = search.have_it.extract(search.have_it.begin()).value();
    const auto other = others_.find(job);
    if (other == others_.end() || !other->second.peer) continue;
    search.taken_from = job;
    return messenger_.ask(
        *other->second.peer, Kind::take, Writer().text(search.key).take(),
        [this, number, job](int status, const std::string& body) { taken(number, job, status, body); });
  }
  if (search.late || (!search.waits && search.asked.empty())) end(number);
}

// Somebody else may have been sooner.
void Names::taken(std::uint64_t number, const std::string& job, int status, std::string_view body) {
  Search& search = searches_.at(number); // none ends meanwhile
  search.taken_from.clear();
  Reader reader(body);
  Entry entry = status == PMIX_SUCCESS ? read_entry(reader) : Entry();
  std::vector<Job> jobs(status == PMIX_SUCCESS ? reader.count() : 0);
  for (Job& each : jobs) each = read_job(reader);
  if (status == PMIX_SUCCESS && reader.good()) {
    search.found = std::move(entry);
    search.jobs = std::move(jobs);
    return end(number);
  }
  if (search.waits && !search.late && others_.contains(job)) {
    search.asked.insert(job);
    ask(number, job);
  }
  search.found = take(search.key, true); // that came meanwhile
  if (search.found) return end(number);
  go_on(number);
}

void Names::end_late(std::uint64_t number) {
  const auto search = searches_.find(number);
  if (search == searches_.end()) return;
  search->second.late = true;
  go_on(number);
}

void Names::end(std::uint64_t number) {
  const auto node = searches_.extract(number);
  const Search& search = node.mapped();
  for (const std::string& job : search.asked)
    if (const auto other = others_.find(job); other != others_.end() && other->second.peer)
      messenger_.tell(*other->second.peer, Kind::forget, Writer().number(number).take());
  search.then(search);
}

void Names::job_begins(const std::string& name, const std::string& address) {
  if (name == jobs_.own().name || others_.contains(name)) return;
  others_.emplace(name, Other{.address = address});
  std::vector<std::uint64_t> waiting;
  for (auto& [number, search] : searches_) {
    search.asked.insert(name);
    waiting.push_back(number);
  }
  for (const std::uint64_t number : waiting) ask(number, name);
}

void Names::server_lost(int server) {
  std::erase_if(others_, [server](const auto& other) { return other.second.peer == server; });
  waiting_.remove_if([server](const Waiting& each) { return each.from == server; });
}

// ---- Searches of other jobs.

void Names::asked(int from, std::string_view body, const Messenger::Answer& answer) {
  Reader reader(body);
  const std::uint64_t number = reader.number();
  const bool waits = reader.number() != 0;
  const std::string key = reader.text();
  if (!reader.good()) return answer(PMIX_ERR_BAD_PARAM, {});
  if (has(key)) return answer(PMIX_SUCCESS, {});
  if (!waits) return answer(PMIX_ERR_NOT_FOUND, {});
  waiting_.push_back({from, number, key, answer});
  messenger_.watch(from);
}

void Names::give(std::string_view text, const Messenger::Answer& answer) {
  Reader reader(text);
  const auto entry = take(reader.text(), false);
  if (!entry) return answer(PMIX_ERR_NOT_FOUND, {});
  Writer body;
  write(body, *entry);
  const std::vector<Job> jobs = jobs_.all();
  body.number(jobs.size());
  for (const Job& each : jobs) write(body, each);
  answer(PMIX_SUCCESS, body.take());
}

void Names::forgotten(int from, std::string_view body) {
  const std::uint64_t number = Reader(body).number();
  waiting_.remove_if([&](const Waiting& each) { return each.from == from && each.search == number; });
}

// ---- Jobs that all should know.

// Of the jobs of whoever had it some may just have ended: those that have published what was found count.
void Names::make_known(const LookUp& look_up, const std::function<void(int)>& then) {
  std::set<std::string> publishers;
  for (const Entry& each : look_up.found)
    if (each.job != jobs_.own().name && !known_.contains(each.job)) publishers.insert(each.job);
  if (publishers.empty()) return then(PMIX_SUCCESS);
  Writer body;
  body.texts({publishers.begin(), publishers.end()}).number(look_up.jobs.size());
  for (const Job& each : look_up.jobs) write(body, each);
  const std::string text = body.take();
  struct Told {
    std::size_t left;
    int status = PMIX_SUCCESS;
  };
  const std::set<int> servers = jobs_.servers();
  const auto told = std::make_shared<Told>(Told{servers.size()});
  const auto own = static_cast<int>(jobs_.own().servers.size());
  for (const int server : servers)
    messenger_.ask(server, Kind::know, text,
                   [this, told, then, publishers, is_own = server < own](int status, const std::string&) {
                     if (is_own && status != PMIX_SUCCESS) told->status = status;
                     if (--told->left != 0) return;
                     if (told->status == PMIX_SUCCESS) known_.insert(publishers.begin(), publishers.end());
                     then(told->status);
                   });
}

} // namespace parc::pmix
