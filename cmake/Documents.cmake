# SPDX-License-Identifier: BSD-3-Clause
# What users read and copy, in share/doc/parc: the pages of the tree, the licence, and those examples that are built and run
# against a parc that is installed (the others share parts of the tree, and are built in it). All lies there as it lies
# in the tree, so that pages refer to each other; what they refer to and is installed elsewhere they get the way to:
# manual pages (as HTML, where there is mandoc) and parc.h.
if(MANDOC)
  set(manual "html/\\2.html")
else()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_MANDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_DOCDIR} OUTPUT_VARIABLE manuals)
  set(manual "${manuals}/man\\3/\\2")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_DOCDIR} OUTPUT_VARIABLE headers)
file(GLOB documents CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} docs/*.md docs/internals/*.md)
foreach(document README.md SECURITY.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md ${documents})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${document})
  file(READ ${document} text)
  string(REGEX REPLACE "\\]\\((\\.\\./|)man/([^)]*\\.([1-8]))\\)" "](\\1${manual})" text "${text}")
  string(REGEX REPLACE "\\]\\((\\.\\./|)include/" "](\\1${headers}/" text "${text}")
  file(WRITE ${CMAKE_BINARY_DIR}/documents/${document} "${text}")
  cmake_path(GET document PARENT_PATH folder)
  install(FILES ${CMAKE_BINARY_DIR}/documents/${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
file(GLOB pictures CONFIGURE_DEPENDS docs/*.svg)
install(FILES ${pictures} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(DIRECTORY LICENSES DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(ring CMakeLists.txt Makefile ring.c ring.f90 ring.py) # and not what somebody has built beside them
list(TRANSFORM ring PREPEND examples/ring/)
file(GLOB mpi CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} examples/mpi/*.[ch] examples/mpi/*.f90)
foreach(example ${ring} ${mpi} examples/heat/heat.f90 examples/heat/heat.py)
  cmake_path(GET example PARENT_PATH folder)
  install(FILES ${example} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
