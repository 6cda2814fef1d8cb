# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where, besides what the rooms install themselves: the pages, the unit of systemd's
# user manager, and what pkg-config says about libparc.
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[1-8])
foreach(page ${pages})
  string(REGEX REPLACE ".*\\." "" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/packaging/parcd.service.in ${CMAKE_BINARY_DIR}/parcd.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/parcd.service DESTINATION lib/systemd/user)
configure_file(${CMAKE_SOURCE_DIR}/packaging/parc.pc.in ${CMAKE_BINARY_DIR}/parc.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/parc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
