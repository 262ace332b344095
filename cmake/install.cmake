# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, and how other projects find it: pkg-config and find_package.
include(CMakePackageConfigHelpers)

set_target_properties(opennuma PROPERTIES EXPORT_NAME opennuma)
set_target_properties(opennuma_static PROPERTIES EXPORT_NAME static)
add_library(opennuma::opennuma ALIAS opennuma)
add_library(opennuma::static ALIAS opennuma_static)

install(TARGETS opennuma opennuma_static EXPORT opennuma
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/opennuma DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/opennuma)
install(EXPORT opennuma NAMESPACE opennuma:: FILE opennumaTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/opennumaConfig.cmake.in ${PROJECT_BINARY_DIR}/opennumaConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Until 1.0 a new minor version may change the interface, as the soname says too.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/opennumaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/opennumaConfig.cmake ${PROJECT_BINARY_DIR}/opennumaConfigVersion.cmake
  DESTINATION ${package_dir})

# The prefix is told from where the file lies, so that an installed tree may be moved, and `--prefix` be given late.
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file(cmake/opennuma.pc.in ${PROJECT_BINARY_DIR}/opennuma.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/opennuma.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
