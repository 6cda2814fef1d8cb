// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/poll_set.hpp"

#include "fabric/completion_queue.hpp"
#include "fabric/counter.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace parc::fabric {
namespace {

struct PollSet final : Child<fid_poll, Domain> {
  using Child::Child;
  [[nodiscard]] bool let_go() const { return members.empty(); }

  std::mutex lock;
  std::vector<struct fid*> members; // under lock
};

// Who is in a set is used by it, and not closed. None: it cannot be in one.
std::atomic<unsigned>* users_of(fid* member) {
  switch (member->fclass) {
  case FI_CLASS_CQ: return &object_of<CompletionQueue>(member).users;
  case FI_CLASS_CNTR: return &object_of<Counter>(member).users;
  default: return nullptr;
  }
}

bool has_something(fid* member) {
  return member->fclass == FI_CLASS_CQ ? object_of<CompletionQueue>(member).ready()
                                       : object_of<Counter>(member).ready();
}

int add(fid_poll* of, fid* member, std::uint64_t flags) {
  std::atomic<unsigned>* const users = users_of(member);
  if (users == nullptr || flags != 0) return -FI_EINVAL;
  return guarded([&] {
    auto& set = object_of<PollSet>(of);
    const std::lock_guard hold(set.lock);
    if (std::ranges::find(set.members, member) != set.members.end()) return -FI_EINVAL;
    set.members.push_back(member);
    ++*users;
    return 0;
  });
}

int remove(fid_poll* of, fid* member, std::uint64_t flags) {
  auto& set = object_of<PollSet>(of);
  const std::lock_guard hold(set.lock);
  const auto found = std::ranges::find(set.members, member);
  if (found == set.members.end() || flags != 0) return -FI_EINVAL;
  set.members.erase(found);
  --*users_of(member);
  return 0;
}

// How many of them, whose contexts are in `contexts`.
int poll_set(fid_poll* of, void** contexts, int count) {
  auto& set = object_of<PollSet>(of);
  (void)set.parent.session->poll();
  const std::lock_guard hold(set.lock);
  int ready = 0;
  for (fid* const member : set.members)
    if (ready < count && has_something(member)) contexts[ready++] = member->context;
  return ready;
}

fi_ops_poll set_calls{.size = sizeof(fi_ops_poll), .poll = poll_set, .poll_add = add, .poll_del = remove};

} // namespace

int open_poll_set(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set) {
  if (attributes && attributes->flags != 0) return -FI_EINVAL;
  const auto complete = [](PollSet& made) {
    made.ops = &set_calls;
    return 0;
  };
  return open_object<PollSet>(FI_CLASS_POLL, nullptr, set, complete, object_of<Domain>(domain));
}

} // namespace parc::fabric
