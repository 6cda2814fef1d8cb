// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/windows.hpp"
#include "tests/sim/told.hpp"

#include "protocol/atomic_operation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace parc::sim {

using namespace protocol;

namespace {
constexpr std::size_t margin = 64; // bytes before and behind a window that nobody may get
} // namespace

// Not reached while it is hidden, whoever holds it.
class Windows::Apart final : public CrossMemory {
public:
  explicit Apart(const Window& window) : window_(window) {}
  bool read(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t) override {
    if (!window_.hidden) std::memcpy(to, from, length);
    return !window_.hidden;
  }
  bool write(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t) override {
    if (!window_.hidden) std::memcpy(to, from, length);
    return !window_.hidden;
  }
  Operated operate(std::byte* word, const Atomic& atomic, std::uint64_t name,
                   std::uint64_t& before) override {
    if (name_ == name && !asked_) {
      name_ = no_name;
      before = before_;
      return Operated::made;
    }
    if (name_ != no_name) return Operated::not_yet;
    name_ = name;
    word_ = word;
    atomic_ = atomic;
    asked_ = true;
    return Operated::not_yet;
  }
  bool busy(std::uint64_t) const override { return false; }
  void forget(std::uint64_t name) override {
    if (name_ != name) return;
    name_ = no_name;
    asked_ = false;
  }
  bool serve() {
    if (!std::exchange(asked_, false)) return false;
    before_ = protocol::operate(word_, atomic_);
    return true;
  }

private:
  const Window& window_;
  std::uint64_t name_ = no_name, before_ = 0;
  std::byte* word_ = nullptr;
  Atomic atomic_{};
  bool asked_ = false;
};

bool Windows::operate(std::size_t actor) {
  const auto found = windows_.find(actor);
  return found != windows_.end() && found->second.apart != nullptr && !oracle_.actors[actor].killed &&
         found->second.apart->serve();
}

void Windows::expose(std::size_t actor, std::uint64_t bytes, std::uint64_t stripe) {
  Window& window = windows_[actor];
  window.own = bytes;
  window.stripe = stripe;
  window.counter = (bytes + most_stripes * stripe + 7) / 8 * 8;
  window.bytes = window.counter + 8;
  window.memory.assign(window.bytes + 2 * margin, std::byte{0x5a});
  std::fill_n(window.memory.begin() + static_cast<std::ptrdiff_t>(margin + window.counter), 8, std::byte{0});
  window.versions.assign((bytes + Window::cell - 1) / Window::cell, {});
  window.hidden = false;
  if (actor % 2 != 0) window.apart = std::make_shared<Apart>(window);
  store(actor, 0, window.versions.size());
}

std::uint64_t Windows::bytes(std::size_t actor) const {
  return windows_.at(actor).bytes;
}

std::uint64_t Windows::cells(std::size_t actor) const {
  return windows_.at(actor).versions.size();
}

void Windows::store(std::size_t actor, std::uint64_t cell, std::uint64_t cells) {
  Window& window = windows_.at(actor);
  ++clock_;
  for (const std::uint64_t end = cell + cells; cell < end; ++cell) {
    window.versions[cell].push_back(clock_);
    const std::uint64_t from = cell * Window::cell, to = std::min(from + Window::cell, window.own);
    for (std::uint64_t at = from; at < to; ++at) window.memory[margin + at] = content(clock_, at);
  }
}

void Windows::hide(std::size_t actor, bool hidden) {
  Window& window = windows_.at(actor);
  window.hidden = hidden;
  window.changed_at = ++clock_;
}

Get& Windows::start(std::size_t asker, std::size_t target, const Place& place, Random& random) {
  Get& get = gets_.emplace_back();
  get.asker = asker;
  get.target = target;
  get.place = Spot(place);
  get.started = ++clock_;
  get.acquainted = acquainted(target, asker);
  oracle_.note_get(asker, target);
  get.memory = std::make_unique<Memory>(place.length, random);
  get.seen.resize(place.length);
  return get;
}

Place Windows::stripe_of(std::size_t actor, std::size_t whose) const {
  const Window& window = windows_.at(actor);
  const std::size_t place = whose - windows_.begin()->first; // the kernels come before
  return {number, window.own + place * window.stripe, window.stripe, true};
}

const std::byte* Windows::look(std::size_t actor, std::uint64_t at) const {
  const Window& window = windows_.at(actor);
  return at < window.bytes ? window.memory.data() + margin + at : nullptr;
}

Place Windows::counter_of(std::size_t actor) const {
  return {number, windows_.at(actor).counter, 8, true};
}

std::size_t Windows::start_add(std::size_t asker, std::size_t target, std::uint64_t number_of_window) {
  Add& add = adds_.emplace_back();
  add.asker = asker;
  add.target = target;
  add.acquainted = acquainted(target, asker);
  add.right = number_of_window == number;
  add.started = ++clock_;
  oracle_.note_get(asker, target);
  return adds_.size() - 1;
}

void Windows::finished_add(std::size_t index, const Outcome& outcome) {
  Add& add = adds_[index];
  const std::string what = "addition " + std::to_string(index);
  if (add.over) throw Violation(what + " ended twice");
  add.over = true;
  const bool hostile = !oracle_.hostile.empty();
  oracle_.check_transfer(what, add.asker, add.target, outcome.fault,
                         hostile || !add.right || !add.acquainted || may_be_hidden(add.target, add.started));
  if (outcome.fault != Fault::none || hostile) return;
  if (!add.right || !acquainted(add.target, add.asker))
    throw Violation(what + " was made where it may not be");
  add.made = true;
  add.before = outcome.data;
}

// Each has found what no other has, those of one program in their order; of some nobody has heard.
void Windows::check_adds() const {
  if (!oracle_.hostile.empty()) return; // which may add, too
  for (const auto& [actor, window] : windows_) {
    std::uint64_t counter = 0, made = 0, started = 0;
    std::memcpy(&counter, window.memory.data() + margin + window.counter, sizeof counter);
    std::set<std::uint64_t> found;
    std::map<std::size_t, std::uint64_t> last; // by asker
    for (const Add& add : adds_) {
      if (add.target != actor) continue;
      ++started;
      if (!add.made) continue;
      ++made;
      if (!found.insert(add.before).second) throw Violation("two additions have found the same");
      const auto [before, first] = last.emplace(add.asker, add.before);
      if (!first && before->second >= add.before)
        throw Violation("additions of one program are out of order");
      before->second = add.before;
    }
    if (counter < made || counter > started || (!found.empty() && *found.rbegin() >= counter))
      throw Violation("a counter was not added to once by each");
  }
}

bool Windows::may_be_hidden(std::size_t actor, std::uint64_t since) const {
  const Window& window = windows_.at(actor);
  return window.hidden || window.changed_at >= since;
}

Put& Windows::start_put(std::size_t from, std::size_t to, const Place& place, Random& random) {
  Put& put = puts_.start(from, to, place, ++clock_, random);
  put.acquainted = acquainted(to, from);
  put.right = is_there(windows_.at(to), place);
  return put;
}

bool Windows::acquainted(std::size_t target, std::size_t asker) const {
  return oracle_.actors[target].job == oracle_.actors[asker].job || rows_.contains({target, asker});
}

bool Windows::is_there(const Window& window, const Place& place) const {
  const auto span = span_of(place);
  return place.window == number && span && span->high <= window.bytes;
}

// A hostile host may ask for anything.
bool Windows::place(std::size_t target, const Place& place, bool acquainted, Pieces& memory,
                    std::uint64_t& hold) {
  const auto found = windows_.find(target);
  if (found == windows_.end() || !acquainted || found->second.hidden || !is_there(found->second, place))
    return false;
  if (oracle_.actors[target].departed()) throw Violation("a window is read whose program has departed");
  // Rows of two parts, as where a window lies in two segments.
  const auto span = *span_of(place);
  const std::uint64_t cut = place.rows != nullptr ? span.length() / 3 : 0;
  std::byte* const base = found->second.memory.data() + margin + span.low;
  Pieces parts;
  parts.append({base, cut, found->second.apart.get()});
  parts.append({base + cut, span.length() - cut, found->second.apart.get()});
  memory = {};
  if (!append_place(memory, parts, place)) return false; // a hostile host's
  if (place.put) puts_.placed(target, place);
  hold = ++last_hold_;
  holds_[hold] = target;
  return true;
}

void Windows::let_go(std::uint64_t hold) {
  if (holds_.erase(hold) == 0) throw Violation("what nobody holds was let go");
}

void Windows::check_bytes(Get& get, std::uint64_t begin, std::uint64_t end) {
  const Window& window = windows_.at(get.target);
  const bool anything = doubtful(get);
  std::uint64_t at = begin;
  get.memory->pieces().each(begin, end - begin, [&](const std::byte* base, std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i, ++at) {
      get.seen[at] = base[i];
      if (anything) continue;
      const std::uint64_t place = get.place.at(at);
      if (place >= window.own + most_stripes * window.stripe) continue; // the counter
      if (place >= window.own) {
        const std::size_t whose = windows_.begin()->first + (place - window.own) / window.stripe;
        if (!puts_.explains(base[i], whose, get.target, place, get.started, whose == get.asker,
                            std::byte{0x5a}))
          throw Violation(name(static_cast<std::size_t>(&get - gets_.data())) +
                          " holds what nobody had put there, at " + std::to_string(at));
        continue;
      }
      const auto& versions = window.versions.at(place / Window::cell);
      // The last one before it was started may still have been there, and so may all since.
      auto version = std::ranges::upper_bound(versions, get.started);
      if (version != versions.begin()) --version;
      if (std::none_of(version, versions.end(),
                       [&](std::uint64_t each) { return base[i] == content(each, place); }))
        throw Violation(name(static_cast<std::size_t>(&get - gets_.data())) +
                        " holds what was not there meanwhile, at " + std::to_string(at));
    }
  });
  get.memory->use(begin, end);
}

void Windows::progressed(std::size_t index, const Progress& progress) {
  Get& get = gets_[index];
  if (get.memory == nullptr) throw Violation("progress after the end of " + name(index));
  each_new(get.progress, progress, get.place.length,
           [&](std::uint64_t low, std::uint64_t high) { check_bytes(get, low, high); });
  get.progress = progress;
}

// What a hostile host asks for, or answers, may be something else.
bool Windows::doubtful(const Get& get) const {
  return oracle_.hostile.contains(oracle_.actors[get.target].host) ||
         oracle_.hostile.contains(oracle_.actors[get.asker].host);
}

void Windows::finished(std::size_t index, const Outcome& outcome) {
  Get& get = gets_[index];
  if (get.memory == nullptr) throw Violation(name(index) + " ended twice");
  const Window& window = windows_.at(get.target);
  const bool hostile = doubtful(get);
  const bool there = is_there(window, get.place);
  oracle_.check_transfer(name(index), get.asker, get.target, outcome.fault,
                         hostile || !there || !get.acquainted || window.hidden ||
                             window.changed_at >= get.started);
  refused_ += outcome.fault == Fault::place;
  if (outcome.fault == Fault::none) {
    const bool hidden = window.hidden && window.changed_at < get.started;
    if (!hostile && (!there || hidden || !acquainted(get.target, get.asker)))
      throw Violation(name(index) + " got what it may not");
    if (get.progress.front + get.progress.back != get.place.length)
      throw Violation("the end of " + name(index) + " came without its progress");
    std::uint64_t at = 0;
    get.memory->pieces().each(0, get.place.length, [&](const std::byte* base, std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i)
        if (base[i] != ~get.seen[at++]) throw Violation(name(index) + " wrote what it had told of");
    });
    if (!get.memory->guarded(get.place.length)) throw Violation(name(index) + " wrote past its memory");
    bytes_got_ += get.place.length;
  }
  get.memory = nullptr;
}

void Windows::finished_put(std::size_t index, const Outcome& outcome) {
  const Put& put = puts_[index];
  puts_.finished(index, outcome, ++clock_, acquainted(put.to, put.from));
}

void Windows::check_silent(std::size_t actor) const {
  puts_.check_silent(actor);
  for (const Get& get : gets_)
    if (get.asker == actor && get.memory != nullptr) throw Violation("a get outlives its killed asker");
  for (const auto& [hold, whose] : holds_)
    if (whose == actor) throw Violation("the window of a killed program is held");
}

// A request may wait behind messages that nobody reads.
void Windows::check_rest(bool last) {
  puts_.check_rest(last);
  check_adds();
  for (const Add& add : adds_)
    if (!add.over && (last || !oracle_.may_be_held(add.asker, add.target)))
      throw Violation("an addition never ends");
  for (const auto& [actor, window] : windows_)
    for (std::size_t i = 0; i < margin; ++i)
      if (window.memory[i] != std::byte{0x5a} || window.memory[margin + window.bytes + i] != std::byte{0x5a})
        throw Violation("what is around a window was written");
  for (std::size_t i = 0; i < gets_.size(); ++i)
    if (gets_[i].memory != nullptr && (last || !oracle_.may_be_held(gets_[i].asker, gets_[i].target)))
      throw Violation(name(i) + " never ends");
  if (!holds_.empty()) throw Violation("a window is held for nobody");
}

std::string Windows::name(std::size_t index) const {
  const Get& get = gets_[index];
  return "get " + std::to_string(index) + " (actor " + std::to_string(get.asker) + " from " +
         std::to_string(get.target) + ", window " + std::to_string(get.place.window) + ", " +
         std::to_string(get.place.length) + " bytes at " + std::to_string(get.place.offset) + ")";
}

} // namespace parc::sim
