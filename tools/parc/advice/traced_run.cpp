// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/advice/traced_run.hpp"

#include "tools/parc/advice/period.hpp"
#include "tools/parc/advice/usual_step.hpp"
#include "tools/parc/advice/wires.hpp"
#include "tools/parc/trace/matched_messages.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace parc::tools {
namespace {

using trace::Kind;
using trace::Record;

constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
constexpr std::ptrdiff_t most_pending = 8192;
constexpr std::uint64_t most_points = 16; // of a sweep, that stand for all of its touches

bool is_message(const Record& record) {
  return record.kind == Kind::message && came(record);
}

// What of a thread has a time of its own.
struct Item {
  enum class What : std::uint8_t { post, call, touch };
  std::uint64_t time; // ns; of a call its beginning
  What what;
  const Record* record;
  double part = 0;      // touch: of the bytes
  double in_faults = 0; // touch: s, since the one before it
};

class Maker {
public:
  explicit Maker(const std::map<std::uint64_t, RankTrace>& ranks) : ranks_(ranks) {}

  TracedRun make() {
    find_starts();
    number_hosts();
    number_threads();
    match();
    find_traced();
    find_named();
    made_.wires = measure_wires(matched_, made_.hosts.size());
    sort_by_thread();
    for (const auto& [key, number] : threads_) make_actions(key.first, number, by_thread_[key]);
    mark_steps();
    name_places();
    return std::move(made_);
  }

private:
  using Thread = std::pair<std::uint64_t, std::uint32_t>; // rank, thread
  struct Operation {
    const Record* message = nullptr;
    std::uint32_t transfer = nothing;
    bool waited_for = false;
    bool named = false;  // a call says that it waits for it: no other does
    bool traced = false; // its touches are known
  };

  [[nodiscard]] double seconds(std::uint64_t rank, std::uint64_t time) const {
    return static_cast<double>(static_cast<std::int64_t>(time + to_real_.at(rank) - start_)) / 1e9;
  }

  void find_starts() {
    start_ = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [rank, said] : ranks_) {
      to_real_[rank] = 0;
      for (const Record& record : said.records) {
        if (record.kind == Kind::cost) {
          made_.wake = static_cast<double>(record.released) / 1e9;
          page_bytes_ = record.bytes;
        }
        if (record.kind != Kind::opened) continue;
        to_real_[rank] = record.end;
        start_ = std::min(start_, record.begin + record.end);
      }
    }
  }

  void number_hosts() {
    for (const auto& [rank, said] : ranks_) {
      const auto found = std::ranges::find(made_.hosts, said.host);
      host_of_[rank] = static_cast<std::uint32_t>(found - made_.hosts.begin());
      if (found == made_.hosts.end()) made_.hosts.push_back(said.host);
    }
    made_.run.hosts = made_.hosts.size();
  }

  // Those that have to do with messages.
  void number_threads() {
    for (const auto& [rank, said] : ranks_)
      for (const Record& record : said.records) {
        if (record.kind != Kind::call && !is_message(record)) continue;
        if (!threads_.emplace(Thread{rank, record.thread}, static_cast<std::uint32_t>(threads_.size()))
                 .second)
          continue;
        made_.run.host_of.push_back(host_of_.at(rank));
      }
    made_.run.ranks.resize(threads_.size());
  }

  // ---- Transfers

  void match() {
    for (const auto& [rank, said] : ranks_)
      for (const Record& record : said.records) {
        if (!is_message(record)) continue;
        operations_[{rank, record.id}].message = &record;
        if (is_one_sided(record)) add_one_sided(rank, record);
      }
    for (const MatchedPair& each : matched_messages(ranks_))
      if (ranks_.contains(each.from) && ranks_.contains(each.to)) add(each);
    made_.unmatched = static_cast<std::uint64_t>(
        std::ranges::count(operations_, nothing, [](const auto& each) { return each.second.transfer; }));
  }

  [[nodiscard]] std::uint32_t thread_of(std::uint64_t rank, const Record& record) const {
    return threads_.at({rank, record.thread});
  }

  std::uint32_t add_transfer(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
    made_.run.transfers.push_back({from, to, static_cast<double>(bytes)});
    ++made_.messages;
    return static_cast<std::uint32_t>(made_.run.transfers.size() - 1);
  }

  void add(const MatchedPair& pair) {
    const auto& [from, to, write, read] = pair;
    const std::uint64_t bytes = std::min(write->bytes, read->bytes);
    operations_[{from, write->id}].transfer = operations_[{to, read->id}].transfer =
        add_transfer(thread_of(from, *write), thread_of(to, *read), bytes);
    matched_.push_back({.from = host_of_.at(from),
                        .to = host_of_.at(to),
                        .bytes = bytes,
                        .posted = seconds(to, read->begin),
                        .begun = seconds(from, write->begin),
                        .first = seconds(to, read->first),
                        .last = seconds(to, read->end)});
  }

  // Nobody at the other end has a part in it: any thread there will do.
  void add_one_sided(std::uint64_t rank, const Record& record) {
    const auto peer = static_cast<std::uint64_t>(record.peer);
    const auto there = threads_.lower_bound({peer, 0});
    if (record.peer < 0 || record.end == 0 || there == threads_.end() || there->first.first != peer) return;
    const std::uint32_t here = thread_of(rank, record);
    operations_[{rank, record.id}].transfer = is_write(record)
                                                  ? add_transfer(here, there->second, record.bytes)
                                                  : add_transfer(there->second, here, record.bytes);
  }

  void find_named() {
    for (const auto& [rank, said] : ranks_)
      for (const Record& record : said.records)
        if (record.kind == Kind::call && record.id != 0)
          if (const auto found = operations_.find({rank, record.id}); found != operations_.end())
            found->second.named = true;
  }

  // Also those that nobody has touched before their buffers were used again.
  void find_traced() {
    for (const auto& [rank, said] : ranks_)
      for (const Record& record : said.records)
        if (record.kind == Kind::touches)
          if (const auto read = operations_.find({rank, record.id});
              read != operations_.end() && read->second.transfer != nothing &&
              !std::exchange(read->second.traced, true))
            ++made_.touched;
  }

  // ---- What a thread does

  void sort_by_thread() {
    for (const auto& [rank, said] : ranks_)
      for (const Record& record : said.records)
        if (is_message(record) || record.kind == Kind::call)
          by_thread_[{rank, record.thread}].push_back(&record);
        else if (record.kind == Kind::touches)
          by_thread_[{rank, toucher_of(rank, record)}].push_back(&record);
  }

  std::vector<Item> items_of(std::uint64_t rank, const std::vector<const Record*>& records) const {
    std::vector<Item> items;
    for (const Record* const record : records) {
      if (record->kind == Kind::message) items.push_back({record->begin, Item::What::post, record});
      if (record->kind == Kind::call) items.push_back({record->begin, Item::What::call, record});
      if (record->kind == Kind::touches) add_touches(rank, *record, items);
    }
    // A call has begun before what it begins.
    std::ranges::stable_sort(
        items, {}, [](const Item& each) { return std::pair(each.time, each.what != Item::What::call); });
    return items;
  }

  // Threads that only calculate are no ranks of the run: what they touch, who posted the read waits for.
  [[nodiscard]] std::uint32_t toucher_of(std::uint64_t rank, const Record& sweep) const {
    if (threads_.contains({rank, sweep.thread})) return sweep.thread;
    const auto read = operations_.find({rank, sweep.id});
    return read == operations_.end() || read->second.message == nullptr ? sweep.thread
                                                                        : read->second.message->thread;
  }

  // Of a sweep some points: bytes come from the front on, so what is touched from behind needs all of them.
  void add_touches(std::uint64_t rank, const Record& sweep, std::vector<Item>& items) const {
    const auto operation = operations_.find({rank, sweep.id});
    if (operation == operations_.end() || operation->second.transfer == nothing || sweep.context == 0) return;
    const std::uint64_t bytes = operation->second.message->bytes, pages = sweep.context;
    const std::uint64_t points = std::min(pages, most_points);
    for (std::uint64_t i = 0; i < points; ++i) {
      const double along = points == 1 ? 0 : static_cast<double>(i) / static_cast<double>(points - 1);
      const double offset = static_cast<double>(sweep.bytes) +
                            along * (static_cast<double>(sweep.first) - static_cast<double>(sweep.bytes));
      const auto when = static_cast<std::uint64_t>(along * static_cast<double>(sweep.end - sweep.begin));
      items.push_back({.time = sweep.begin + when,
                       .what = Item::What::touch,
                       .record = &sweep,
                       .part = bytes == 0 ? 1
                                          : std::min(1.0, (offset + static_cast<double>(page_bytes_)) /
                                                              static_cast<double>(bytes)),
                       .in_faults = static_cast<double>(sweep.released) / 1e9 / static_cast<double>(points)});
    }
  }

  void make_actions(std::uint64_t rank, std::uint32_t number, const std::vector<const Record*>& records) {
    actions_ = &made_.run.ranks[number];
    rank_ = rank;
    reached_ = start_ - std::min(start_, to_real_.at(rank)); // this host's time, when the first was heard of
    const Record* call = nullptr;                            // that we are in
    pending_.clear();
    buffers_.clear();
    vain_ = nullptr;
    for (const Item& item : items_of(rank, records)) {
      if (call != nullptr && call->end <= item.time) {
        end_call(*call);
        call = nullptr;
      }
      switch (item.what) {
      case Item::What::call:
        if (call != nullptr) break; // one within another
        if (goes_on(*item.record))
          reached_ = std::max(reached_, item.record->begin);
        else
          calculate_until(item.record->begin, 0);
        call = item.record;
        break;
      case Item::What::post:
        if (call != nullptr)
          wait_within(*call, item.record->begin);
        else
          calculate_until(item.record->begin, 0);
        post(*item.record);
        break;
      case Item::What::touch:
        if (call == nullptr) calculate_until(item.time, item.in_faults);
        touch(item);
        break;
      }
    }
    if (call != nullptr) end_call(*call);
  }

  // Looks of MPI's for what has ended, which it does other things between: one wait.
  [[nodiscard]] bool is_look(const Record& call) const {
    return call.call == trace::Call::wait && call.id == 0 && !ranks_.at(rank_).peers.empty();
  }
  [[nodiscard]] bool goes_on(const Record& call) const {
    constexpr std::uint64_t between = 150'000; // ns
    return vain_ != nullptr && is_look(call) && call.site == vain_->site && call.begin < vain_->end + between;
  }

  // Of operations that a call does not name: what it may wait for.
  enum class WaitsFor : std::uint8_t { any, its_own, none };
  [[nodiscard]] WaitsFor waits_for(const Record& call) const {
    switch (call.call) {
    case trace::Call::wait:
      return is_look(call) ? WaitsFor::any : WaitsFor::none; // parc_wait for PARC_OP_NULL
    case trace::Call::waitall:
    case trace::Call::waitany:
    case trace::Call::waitsome: return WaitsFor::any;
    case trace::Call::read:
    case trace::Call::write:
    case trace::Call::get:
    case trace::Call::put:
    case trace::Call::atomic:
    case trace::Call::barrier: return WaitsFor::its_own;
    default: return WaitsFor::none;
    }
  }

  void calculate_until(std::uint64_t time, double in_faults) {
    vain_ = nullptr;
    if (time <= reached_) return;
    const double took = static_cast<double>(time - std::exchange(reached_, time)) / 1e9 - in_faults;
    if (took > 0) actions_->push_back({.kind = model::Action::Kind::calculate, .seconds = took});
  }

  void post(const Record& message) {
    Operation& operation = operations_.at({rank_, message.id});
    pending_.push_back(&operation);
    if (std::ssize(pending_) > most_pending) // tested, and waited for by nobody
      pending_.erase(pending_.begin(), pending_.begin() + most_pending / 2);
    if (!is_write(message)) use_again(operation);
    const bool sends = is_write(message), asks = is_one_sided(message) && !sends;
    if (operation.transfer == nothing || (!sends && !asks)) return;
    actions_->push_back(
        {.kind = model::Action::Kind::begin, .asks = asks, .transfers = {operation.transfer}});
    if (!message.site) return;
    posts_[static_cast<std::uint32_t>(actions_ - made_.run.ranks.data())].push_back(
        {{message.site, message.peer, message.bytes}, actions_->size() - 1, seconds(rank_, message.begin)});
  }

  // Who reads into a buffer again needs all that was read into it before.
  void use_again(const Operation& read) {
    const Operation*& before = buffers_[read.message->address];
    if (before != nullptr && before->traced)
      actions_->push_back({.kind = model::Action::Kind::touch, .transfers = {before->transfer}});
    before = &read;
  }

  void touch(const Item& item) {
    const std::uint32_t transfer = operations_.at({rank_, item.record->id}).transfer;
    actions_->push_back({.kind = model::Action::Kind::touch, .part = item.part, .transfers = {transfer}});
    first_touches_.emplace(transfer, RankSite{rank_, item.record->site});
  }

  // In a call, before it begins something itself: for what had ended by then.
  void wait_within(const Record& call, std::uint64_t time) {
    wait_for(call, ended_by(call, time), reached_, time);
    reached_ = std::max(reached_, time);
  }

  void end_call(const Record& call) {
    std::vector<Operation*> awaited;
    if (call.id != 0) {
      const auto found = operations_.find({rank_, call.id});
      if (found != operations_.end() && !found->second.waited_for) awaited.push_back(&found->second);
    } else {
      awaited = ended_by(call, call.end);
    }
    if (awaited.empty() && is_look(call)) {
      vain_ = &call; // what it waited for comes later, or never
    } else {
      vain_ = nullptr;
      wait_for(call, awaited, reached_, call.end);
    }
    if (waits_for(call) == WaitsFor::its_own)
      std::erase_if(pending_, [&](const Operation* each) { return each->message->begin >= call.begin; });
    reached_ = std::max(reached_, call.end);
  }

  [[nodiscard]] std::vector<Operation*> ended_by(const Record& call, std::uint64_t time) const {
    std::vector<Operation*> ended;
    const WaitsFor which = waits_for(call);
    if (which == WaitsFor::none) return ended;
    const std::uint64_t since = which == WaitsFor::any ? 0 : call.begin;
    for (Operation* const each : pending_)
      if (!each->named && each->message->begin >= since && each->message->end != 0 &&
          each->message->end <= time)
        ended.push_back(each);
    return ended;
  }

  // A write that was acknowledged while it was waited for; others were copied. MPI hears of all that ends
  // when it looks: one that it has looked for is the last that did.
  [[nodiscard]] bool is_waited_for(const Record& call, const Record& write, std::uint64_t begin,
                                   std::uint64_t end) const {
    constexpr std::uint64_t at_once = 150'000; // ns
    return write.end > begin && write.end <= end && (!is_look(call) || write.end + at_once > end);
  }

  // From `begin` to `end` the thread was in a call for these. What is left of that time when the last of them
  // was there is the call's own. A write that was acknowledged while it was waited for is waited for so;
  // others were copied.
  void wait_for(const Record& call, const std::vector<Operation*>& awaited, std::uint64_t begin,
                std::uint64_t end) {
    model::Action wait{.kind = model::Action::Kind::wait, .transfers = {}};
    std::uint64_t last = begin;
    bool receives = false;
    for (Operation* const each : awaited) {
      each->waited_for = true;
      const Record& message = *each->message;
      if (is_write(message) && !is_waited_for(call, message, begin, end)) continue;
      last = std::max(last, std::min(message.end, end));
      if (each->transfer == nothing) continue;
      wait.transfers.push_back(each->transfer);
      receives = receives || !is_write(message);
    }
    std::erase_if(pending_, [](const Operation* each) { return each->waited_for; });
    if (wait.transfers.empty()) last = begin; // for nothing that is known: as long as it was
    if (end > last) wait.seconds = static_cast<double>(end - last) / 1e9;
    if (wait.transfers.empty() && wait.seconds == 0) return;
    wait.place = place_of(call);
    if (receives) {
      WaitPlace& place = made_.places[wait.place];
      ++place.waits;
      place.waited += static_cast<double>(last - begin) / 1e9;
      for (const std::uint32_t transfer : wait.transfers) place_of_transfer_[transfer] = wait.place;
      for (const Operation* const each : awaited)
        if (each->transfer != nothing && !is_write(*each->message) &&
            each->message->bytes >= 2 * page_bytes_) // a whole page, wherever it lies
          ++made_.long_enough;
    }
    actions_->push_back(std::move(wait));
  }

  // The same place of the program in all ranks: by what its object calls it.
  std::uint32_t place_of(const Record& call) {
    const RankTrace& said = ranks_.at(rank_);
    const auto text = said.sites.find(call.site);
    const std::string name = text == said.sites.end() ? fmt::to_string(call.site) : text->second;
    const auto [found, added] =
        place_numbers_.emplace(std::pair(name, call.call), static_cast<std::uint32_t>(made_.places.size()));
    if (added) made_.places.push_back({.at = {rank_, call.site}, .call = call.call});
    return found->second;
  }

  // ---- Steps

  void mark_steps() {
    const std::vector<Post>* most = nullptr;
    std::uint32_t thread = 0;
    for (const auto& [number, posts] : posts_)
      if (most == nullptr || posts.size() > most->size()) {
        most = &posts;
        thread = number;
      }
    if (most == nullptr) return;
    std::vector<PostKey> sequence;
    for (const Post& each : *most) sequence.push_back(each.key);
    const Period period = find_period(sequence);
    std::vector<std::size_t> marked;
    if (period.length == 0) {
      marked = {0, most->size() - 1};
    } else {
      for (std::size_t at = period.begin; at + period.length <= period.end; at += period.length)
        marked.push_back(at);
      made_.steps = marked.size() - 1;
      made_.messages_a_step = period.length;
    }
    std::vector<double> begins;
    for (const std::size_t each : marked) begins.push_back((*most)[each].time);
    made_.step = usual_step(begins);
    auto& actions = made_.run.ranks[thread];
    std::vector<model::Action> with_marks;
    with_marks.reserve(actions.size() + marked.size());
    auto next = marked.begin();
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (next != marked.end() && (*most)[*next].action == i) {
        with_marks.push_back({.kind = model::Action::Kind::mark, .transfers = {}});
        ++next;
      }
      with_marks.push_back(std::move(actions[i]));
    }
    actions = std::move(with_marks);
  }

  // Where most of what a place has waited for is first touched.
  void name_places() {
    std::vector<std::map<std::optional<RankSite>, std::uint64_t>> touches(made_.places.size());
    for (const auto& [key, operation] : operations_) {
      const auto place = place_of_transfer_.find(operation.transfer);
      if (!operation.traced || place == place_of_transfer_.end()) continue;
      const auto touched = first_touches_.find(operation.transfer);
      ++touches[place->second]
               [touched == first_touches_.end() ? std::nullopt : std::optional(touched->second)];
    }
    for (std::size_t i = 0; i < touches.size(); ++i) {
      if (touches[i].empty()) continue;
      const auto most =
          std::ranges::max_element(touches[i], {}, [](const auto& each) { return each.second; });
      made_.places[i].touched_at = most->first.value_or(RankSite{0, 0});
      made_.places[i].untouched = !most->first;
    }
  }

  struct PostKey {
    std::uint64_t site;
    std::int32_t peer;
    std::uint64_t bytes;
    bool operator==(const PostKey&) const = default;
  };
  struct Post {
    PostKey key;
    std::size_t action;
    double time;
  };

  const std::map<std::uint64_t, RankTrace>& ranks_;
  TracedRun made_;
  std::uint64_t start_ = 0, page_bytes_ = 4096;
  std::map<std::uint64_t, std::uint64_t> to_real_; // by rank
  std::map<std::uint64_t, std::uint32_t> host_of_; // by rank
  std::map<Thread, std::vector<const Record*>> by_thread_;
  std::map<Thread, std::uint32_t> threads_;                                 // their numbers in the run
  std::map<std::pair<std::uint64_t, std::uint64_t>, Operation> operations_; // by rank and id
  std::vector<MatchedMessage> matched_;
  std::map<std::uint32_t, std::vector<Post>> posts_; // by thread
  std::map<std::uint32_t, RankSite> first_touches_;  // by transfer
  std::map<std::uint32_t, std::uint32_t> place_of_transfer_;
  std::map<std::pair<std::string, trace::Call>, std::uint32_t> place_numbers_;

  // Of the thread that is being made.
  std::vector<model::Action>* actions_ = nullptr;
  std::uint64_t rank_ = 0, reached_ = 0;
  const Record* vain_ = nullptr;    // the call that ended last, where nothing had ended in it
  std::vector<Operation*> pending_; // begun, and not waited for
  std::map<std::uint64_t, const Operation*> buffers_; // what was read into them last, by address
};

} // namespace

TracedRun make_run(const std::map<std::uint64_t, RankTrace>& ranks) {
  return Maker(ranks).make();
}

} // namespace parc::tools
