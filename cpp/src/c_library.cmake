# The C library, for all that is not C++. Its SONAME has the ABI version of c_api.h, so that a program never loads a library
# whose functions have changed; it exports the functions of c_api.h and nothing of C++.
file(STRINGS cpp/include/hockeystick/c_api.h abi REGEX "define HS_ABI_VERSION [0-9]+")
string(REGEX MATCH "[0-9]+" abi "${abi}")

add_library(hockeystick_c SHARED ${c_library})
add_library(hockeystick::hockeystick_c ALIAS hockeystick_c)
target_include_directories(hockeystick_c INTERFACE
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/cpp/include> $<INSTALL_INTERFACE:${root}include>)
target_compile_options(hockeystick_c PRIVATE ${warnings} ${engine_flags})
target_link_libraries(hockeystick_c PRIVATE hockeystick hockeystick_kernels)
set_target_properties(hockeystick_c PROPERTIES SOVERSION ${abi} VISIBILITY_INLINES_HIDDEN ON UNITY_BUILD ON LINKER_LANGUAGE CXX)
if(NOT HOCKEYSTICK_PYTHON)  # a wheel holds copies where a system has symbolic links: one is enough
    set_target_properties(hockeystick_c PROPERTIES VERSION ${PROJECT_VERSION})
endif()

# Templates of the standard library are visible whatever the flags say; the linker alone can keep them in.
if(APPLE)
    set(exports ${CMAKE_CURRENT_SOURCE_DIR}/cpp/src/c_api.exports)
    target_link_options(hockeystick_c PRIVATE "LINKER:-exported_symbols_list,${exports}")
elseif(UNIX)
    set(exports ${CMAKE_CURRENT_SOURCE_DIR}/cpp/src/c_api.map)
    target_link_options(hockeystick_c PRIVATE "LINKER:--version-script=${exports}")
endif()
target_link_options(hockeystick_c PRIVATE ${linked_sections})
if(linked_sections AND HOCKEYSTICK_PYTHON)  # nothing of Python: the linker would name it
    target_link_options(hockeystick_c PRIVATE LINKER:-z,defs LINKER:--strip-all)
endif()
if(exports)
    set_target_properties(hockeystick_c PROPERTIES LINK_DEPENDS ${exports})
endif()
