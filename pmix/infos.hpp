// SPDX-License-Identifier: BSD-3-Clause
// Lists of what is known by key, as PMIx takes them. Threads: one at a time.
#pragma once

#include <cstdint>
#include <pmix_server.h>
#include <string>
#include <vector>

namespace parc::pmix {

class Infos {
public:
  Infos() = default;
  Infos(const Infos&) = delete;
  Infos& operator=(const Infos&) = delete;
  ~Infos() {
    for (pmix_info_t& info : all_) PMIX_INFO_DESTRUCT(&info);
  }

  void add(const char* key, std::uint32_t value) { load(key, &value, PMIX_UINT32); }
  void add(const char* key, std::uint16_t value) { load(key, &value, PMIX_UINT16); }
  void add(const char* key, bool value) { load(key, &value, PMIX_BOOL); }
  void add(const char* key, const std::string& value) { add(key, value.c_str()); }
  void add(const char* key, const char* value) { load(key, value, PMIX_STRING); }
  void add_rank(const char* key, pmix_rank_t rank) { load(key, &rank, PMIX_PROC_RANK); }
  // What is there is copied.
  void add(const char* key, Infos& array) {
    pmix_data_array_t data{.type = PMIX_INFO, .size = array.all_.size(), .array = array.all_.data()};
    load(key, &data, PMIX_DATA_ARRAY);
  }

  [[nodiscard]] pmix_info_t* data() { return all_.data(); }
  [[nodiscard]] std::size_t size() const { return all_.size(); }

private:
  void load(const char* key, const void* value, pmix_data_type_t type) {
    pmix_info_t& info = all_.emplace_back();
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, key, value, type);
  }

  std::vector<pmix_info_t> all_;
};

} // namespace parc::pmix
