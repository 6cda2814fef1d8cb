// SPDX-License-Identifier: BSD-3-Clause
// Values of libpmix as bytes, which another server's unpacks. Threads: any.
#pragma once

#include <cstdlib>
#include <cstring>
#include <optional>
#include <pmix.h>
#include <string>

namespace parc::pmix {

inline std::optional<std::string> packed(const void* value, std::int32_t count, pmix_data_type_t type) {
  pmix_data_buffer_t buffer;
  PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
  pmix_status_t status = PMIx_Data_pack(nullptr, &buffer, const_cast<void*>(value), count, type);
  pmix_byte_object_t bytes{nullptr, 0};
  if (status == PMIX_SUCCESS) status = PMIx_Data_unload(&buffer, &bytes);
  PMIX_DATA_BUFFER_DESTRUCT(&buffer);
  if (status != PMIX_SUCCESS) return {};
  std::string text(bytes.bytes, bytes.size);
  free(bytes.bytes);
  return text;
}

// `value`: room for so many. False: it is not that, and nothing is there.
inline bool unpack(const std::string& text, void* value, std::int32_t count, pmix_data_type_t type) {
  pmix_byte_object_t bytes{static_cast<char*>(malloc(text.size() + 1)), text.size()}; // the buffer's
  if (bytes.bytes == nullptr) return false;
  std::memcpy(bytes.bytes, text.data(), text.size());
  pmix_data_buffer_t buffer;
  PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
  std::int32_t got = count;
  pmix_status_t status = PMIx_Data_load(&buffer, &bytes);
  if (status == PMIX_SUCCESS) status = PMIx_Data_unpack(nullptr, &buffer, value, &got, type);
  PMIX_DATA_BUFFER_DESTRUCT(&buffer);
  return status == PMIX_SUCCESS && got == count;
}

} // namespace parc::pmix
