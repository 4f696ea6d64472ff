# Headers, the C library, and what find_package and pkg-config read; under ${root}, the package in a wheel.
include(CMakePackageConfigHelpers)

install(DIRECTORY cpp/include/hockeystick DESTINATION ${root}include)
install(TARGETS hockeystick EXPORT hockeystick)
if(POCKETFFT_HEADER)
    install(FILES ${POCKETFFT_HEADER} cpp/licenses/pocketfft.txt DESTINATION ${root}include/hockeystick/pocketfft)
    if(HOCKEYSTICK_PYTHON)  # the folder of headers is ours alone: one -I is enough
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/forward/pocketfft.hpp "#include \"hockeystick/pocketfft/pocketfft.hpp\"\n")
        install(FILES ${CMAKE_CURRENT_BINARY_DIR}/forward/pocketfft.hpp DESTINATION ${root}include)
    endif()
endif()
if(TARGET hockeystick_c)
    set(pkg_config_libs "-L\${libdir} -lhockeystick_c")
    if(NOT WIN32)  # so that what is linked also starts, wherever the library lies
        set(pkg_config_libs "-L\${libdir} -Wl,-rpath,\${libdir} -lhockeystick_c")
    endif()
    if(HOCKEYSTICK_PYTHON AND UNIX AND NOT APPLE)  # a wheel has no symbolic links; a linker reads this file for one
        set(namelink NAMELINK_SKIP)
        file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/namelink/libhockeystick_c.so "INPUT(libhockeystick_c.so.${abi})\n")
        install(FILES ${CMAKE_CURRENT_BINARY_DIR}/namelink/libhockeystick_c.so DESTINATION ${root}lib)
    endif()
    install(TARGETS hockeystick_c EXPORT hockeystick
        LIBRARY DESTINATION ${root}lib ${namelink} ARCHIVE DESTINATION ${root}lib RUNTIME DESTINATION ${root}bin)
endif()
if(TARGET hockeystick_compiled)
    install(TARGETS hockeystick_compiled EXPORT hockeystick ARCHIVE DESTINATION ${root}lib)
    configure_file(cpp/package/hockeystick_compiled.pc.in hockeystick_compiled.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hockeystick_compiled.pc DESTINATION ${root}lib/pkgconfig)
endif()
install(EXPORT hockeystick NAMESPACE hockeystick:: FILE hockeystickTargets.cmake DESTINATION ${root}lib/cmake/hockeystick)
write_basic_package_version_file(hockeystickConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cpp/package/hockeystick.pc.in hockeystick.pc @ONLY)
install(FILES cpp/package/hockeystickConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/hockeystickConfigVersion.cmake
    DESTINATION ${root}lib/cmake/hockeystick)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hockeystick.pc DESTINATION ${root}lib/pkgconfig)
