# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where, besides what the rooms install themselves: parcd, the unit of systemd's user manager,
# and the completions of the shells. (The pages: cmake/Manuals.cmake.)
if(TARGET parcd)
  install(TARGETS parcd)
endif()
# The unit names the parcd beside it, whatever prefix `cmake --install` is given; share/systemd/user is where systemd's user
# manager looks below /usr, /usr/local and ~/.local alike.
install(CODE "
  set(PARCD ${CMAKE_INSTALL_BINDIR}/parcd)
  cmake_path(ABSOLUTE_PATH PARCD BASE_DIRECTORY \${CMAKE_INSTALL_PREFIX})
  cmake_path(ABSOLUTE_PATH PARCD NORMALIZE) # where the prefix is relative, too
  configure_file(${CMAKE_SOURCE_DIR}/packaging/parcd.service.in ${CMAKE_BINARY_DIR}/parcd.service @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/parcd.service DESTINATION ${CMAKE_INSTALL_DATADIR}/systemd/user)
# The completions of the shells, in the directories where those look below /usr, /usr/local and, bash, ~/.local.
set(completion ${CMAKE_SOURCE_DIR}/packaging/completion)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${completion}/options.awk)
file(READ ${completion}/options.awk options)
configure_file(${completion}/parc.bash.in completion/parc @ONLY)
configure_file(${completion}/_parc.in completion/_parc @ONLY)
foreach(program parc parcd wanlink) # bash loads the file of the command's name
  if(TARGET ${program})
    install(FILES ${CMAKE_BINARY_DIR}/completion/parc DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
      RENAME ${program})
  endif()
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/completion/_parc DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
