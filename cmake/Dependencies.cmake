# SPDX-License-Identifier: BSD-3-Clause
# Every library we use, found once; all of them are Debian's packages (scripts/packages lists them).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
# What is installed from a home build needs no library of fmt and spdlog at run time. In the whole tree, where every
# file formats a sentence, their shared libraries make compiling five times as fast.
add_library(parc_fmt INTERFACE)
add_library(parc_spdlog INTERFACE)
if(PARC_EXTRAS)
  # libparc, and what it is made of, is for programs of others, whose machine has no fmt.
  target_link_libraries(parc_fmt INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:PARC_SELF_CONTAINED>>,fmt::fmt-header-only,fmt::fmt>)
  target_link_libraries(parc_spdlog INTERFACE spdlog::spdlog)
else()
  target_link_libraries(parc_fmt INTERFACE fmt::fmt-header-only)
  set_target_properties(spdlog::spdlog_header_only PROPERTIES
    INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")
  target_link_libraries(parc_spdlog INTERFACE spdlog::spdlog_header_only)
endif()
pkg_check_modules(LIBEVENT REQUIRED IMPORTED_TARGET libevent libevent_core)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.2)
pkg_check_modules(NCURSES REQUIRED IMPORTED_TARGET ncursesw)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
if(PARC_EXTRAS)
  pkg_check_modules(LIBFABRIC REQUIRED IMPORTED_TARGET libfabric>=1.11)
  pkg_check_modules(PMIX REQUIRED IMPORTED_TARGET pmix>=4)
endif()
if(PARC_EXTRAS AND BUILD_TESTING)
  find_package(Boost 1.74 REQUIRED COMPONENTS unit_test_framework)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()
