# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where, besides what the rooms install themselves: parcd, the pages, and the unit of
# systemd's user manager.
if(TARGET parcd)
  install(TARGETS parcd)
endif()
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[1-8])
foreach(page ${pages})
  string(REGEX REPLACE ".*\\." "" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
# The unit names the parcd beside it, whatever prefix `cmake --install` is given; share/systemd/user is where systemd's user
# manager looks below /usr, /usr/local and ~/.local alike.
install(CODE "
  set(PARCD ${CMAKE_INSTALL_BINDIR}/parcd)
  cmake_path(ABSOLUTE_PATH PARCD BASE_DIRECTORY \${CMAKE_INSTALL_PREFIX})
  cmake_path(ABSOLUTE_PATH PARCD NORMALIZE) # where the prefix is relative, too
  configure_file(${CMAKE_SOURCE_DIR}/packaging/parcd.service.in ${CMAKE_BINARY_DIR}/parcd.service @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/parcd.service DESTINATION ${CMAKE_INSTALL_DATADIR}/systemd/user)
