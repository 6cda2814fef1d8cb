// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/address_vector.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/prctl.h>
#include <utility>

namespace parc::fabric {
namespace {

// Whoever knows others has been through Open MPI's first waits, for which parcd may have given it more
// (PARC_TIMER_SLACK: what it should have).
void set_timer_slack_back() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const char* const usual = std::getenv("PARC_TIMER_SLACK"))
      (void)prctl(PR_SET_TIMERSLACK, std::strtoul(usual, nullptr, 10));
  });
}

} // namespace

int AddressVector::peer(fi_addr_t address) const {
  const std::lock_guard hold(lock_);
  return address < rows_.size() ? rows_[address].peer : no_peer;
}

fi_addr_t AddressVector::find(int peer) const {
  const std::lock_guard hold(lock_);
  const auto found = numbers_.find(peer);
  return found == numbers_.end() ? FI_ADDR_NOTAVAIL : found->second;
}

// Blocks until the address's kernel is reached, which it is at once where another of its endpoints was.
int AddressVector::insert_one(const Address& address, fi_addr_t& number) {
  number = FI_ADDR_NOTAVAIL;
  if (!address.ends()) {
    FI_WARN(&provider, FI_LOG_AV, "cannot insert an address that is none of parc's\n");
    return FI_EINVAL;
  }
  const int peer = parc_add_peer(parent.session->parc(), address.text);
  if (peer < 0) {
    const int code = refused_aloud(Failing::address, FI_LOG_AV, peer);
    return peer == PARC_EPEER ? FI_EHOSTUNREACH : -code;
  }
  const std::lock_guard hold(lock_);
  if (free_.empty()) {
    number = rows_.size();
    rows_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  rows_[number] = {peer, address};
  numbers_.try_emplace(peer, number);
  return 0;
}

int AddressVector::insert(const void* addresses, std::size_t count, fi_addr_t* numbers, std::uint64_t flags,
                          void* results) {
  set_timer_slack_back();
  int inserted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Address address; // the program's may lie anywhere
    std::memcpy(&address, static_cast<const std::byte*>(addresses) + i * sizeof address, sizeof address);
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    const int code = insert_one(address, number);
    if (numbers) numbers[i] = number;
    if (flags & FI_SYNC_ERR) static_cast<int*>(results)[i] = code;
    inserted += code == 0;
  }
  return inserted;
}

// libparc keeps the peer: it may have written to us, or be inserted again.
int AddressVector::remove(const fi_addr_t* numbers, std::size_t count) {
  const std::lock_guard hold(lock_);
  for (std::size_t i = 0; i < count; ++i) {
    if (numbers[i] >= rows_.size() || rows_[numbers[i]].peer == no_peer) return -FI_EINVAL;
    forget(numbers[i]);
    free_.insert(std::ranges::upper_bound(free_, numbers[i], std::greater<>()), numbers[i]);
  }
  return 0;
}

// Under lock_. What the peer sends has another of its numbers from now on, where it has one.
void AddressVector::forget(fi_addr_t number) {
  const int peer = std::exchange(rows_[number], {}).peer;
  const auto known = numbers_.find(peer);
  if (known->second != number) return;
  const auto other = std::ranges::find(rows_, peer, &Row::peer);
  if (other == rows_.end())
    numbers_.erase(known);
  else
    known->second = static_cast<fi_addr_t>(other - rows_.begin());
}

int AddressVector::lookup(fi_addr_t number, void* address, std::size_t* length) const {
  const std::lock_guard hold(lock_);
  if (number >= rows_.size() || rows_[number].peer == no_peer) return -FI_EINVAL;
  std::memcpy(address, &rows_[number].address, std::min(*length, sizeof(Address)));
  *length = sizeof(Address);
  return 0;
}

namespace {

const char* vector_to_text(fid_av*, const void* bytes, char* buffer, std::size_t* length) {
  Address address;
  std::memcpy(&address, bytes, sizeof address);
  const int size =
      std::snprintf(buffer, *length, "%s", address.ends() ? address.text : "(no address of parc's)");
  *length = static_cast<std::size_t>(size) + 1;
  return buffer;
}

// An endpoint's name is the text of its address, and it is alone with that.
int by_name(fid_av* of, const char* node, const char* service, fi_addr_t* number, std::uint64_t flags,
            void* results) {
  const auto address = node ? Address::from(node) : std::nullopt;
  if (address && !service)
    return guarded([&] { return object_of<AddressVector>(of).insert(&*address, 1, number, flags, results); });
  FI_WARN(&provider, FI_LOG_AV,
          "parc's endpoints are not found by host and service, but by the addresses that they give\n");
  return -FI_ENOSYS;
}
int by_names(fid_av*, const char*, std::size_t, const char*, std::size_t, fi_addr_t*, std::uint64_t, void*) {
  return -FI_ENOSYS;
}

fi_ops_av vector_calls{
    .size = sizeof(fi_ops_av),
    .insert =
        [](fid_av* of, const void* addresses, std::size_t count, fi_addr_t* numbers, std::uint64_t flags,
           void* results) {
          return guarded(
              [&] { return object_of<AddressVector>(of).insert(addresses, count, numbers, flags, results); });
        },
    .insertsvc = by_name,
    .insertsym = by_names,
    .remove = [](fid_av* of, fi_addr_t* numbers, std::size_t count,
                 std::uint64_t) { return object_of<AddressVector>(of).remove(numbers, count); },
    .lookup =
        [](fid_av* of, fi_addr_t number, void* address, std::size_t* length) {
          return object_of<AddressVector>(of).lookup(number, address, length);
        },
    .straddr = vector_to_text,
    .av_set = [](fid_av*, fi_av_set_attr*, fid_av_set**, void*) { return -FI_ENOSYS; },
};

} // namespace

int open_address_vector(fid_domain* domain, fi_av_attr* attributes, fid_av** vector, void* context) {
  if (attributes->name || attributes->rx_ctx_bits != 0 || (attributes->flags & FI_EVENT)) return -FI_ENOSYS;
  const auto complete = [&](AddressVector& made) {
    made.ops = &vector_calls;
    if (attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
    return 0;
  };
  return open_object<AddressVector>(FI_CLASS_AV, context, vector, complete, object_of<Domain>(domain));
}

} // namespace parc::fabric
