// SPDX-License-Identifier: BSD-3-Clause
// An address vector: which of libparc's peers a fi_addr_t is. Both types are tables: what is inserted gets
// the first number that is free.
#pragma once

#include "fabric/address.hpp"
#include "fabric/domain.hpp"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace parc::fabric {

class AddressVector final : public Child<fid_av, Domain> {
public:
  using Child::Child;

  // Negative: it was not inserted.
  [[nodiscard]] int peer(fi_addr_t address) const;
  // FI_ADDR_NOTAVAIL: it is not in here.
  [[nodiscard]] fi_addr_t find(int peer) const;

  int insert(const void* addresses, std::size_t count, fi_addr_t* numbers, std::uint64_t flags,
             void* results);
  int remove(const fi_addr_t* numbers, std::size_t count);
  int lookup(fi_addr_t number, void* address, std::size_t* length) const;

private:
  static constexpr int no_peer = -1;
  struct Row {
    int peer = no_peer;
    Address address;
  };
  void forget(fi_addr_t number);
  int insert_one(const Address& address, fi_addr_t& number);

  mutable std::mutex lock_;
  std::vector<Row> rows_;
  std::vector<fi_addr_t> free_;
  std::unordered_map<int, fi_addr_t> numbers_; // of peers; one of them, where a peer was inserted twice
};

int open_address_vector(fid_domain* domain, fi_av_attr* attributes, fid_av** vector, void* context);

} // namespace parc::fabric
