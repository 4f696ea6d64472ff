# The batch kernels once per instruction set: the compiler's baseline, and x86-64 levels that it knows. An installation from
# source has `native` ones: those of this machine, and v3, with which machines of several kinds compute the same bits.
set(HOCKEYSTICK_LEVELS all CACHE STRING "x86-64 levels of the kernels: all, or native (v3 and the best of this machine)")
set_property(CACHE HOCKEYSTICK_LEVELS PROPERTY STRINGS all native)
set(flags_v3 -march=x86-64-v3)
set(flags_v4 -march=x86-64-v4 -mprefer-vector-width=512)
set(levels portable)
add_library(hockeystick_kernels OBJECT cpp/src/dispatch.cpp)
target_compile_options(hockeystick_kernels PRIVATE ${section_flags})
target_link_libraries(hockeystick_kernels PRIVATE hockeystick)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^([xX]86_64|[aA][mM][dD]64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8 AND NOT MSVC
        AND NOT CMAKE_OSX_ARCHITECTURES MATCHES "arm64")
    check_cxx_compiler_flag("-march=x86-64-v4 -mprefer-vector-width=512" HOCKEYSTICK_KNOWS_LEVELS)  # GCC 11, Clang 12
    if(HOCKEYSTICK_KNOWS_LEVELS)
        set(CMAKE_REQUIRED_FLAGS -march=native)
        check_cxx_source_compiles("#ifndef __AVX512VL__\n#error\n#endif\nint main() {}" HOCKEYSTICK_NATIVE_V4)
        unset(CMAKE_REQUIRED_FLAGS)
        list(APPEND levels v3)
        if(CMAKE_CROSSCOMPILING OR NOT HOCKEYSTICK_LEVELS STREQUAL "native" OR HOCKEYSTICK_NATIVE_V4)
            list(APPEND levels v4)
        endif()
        target_compile_definitions(hockeystick_kernels PRIVATE HOCKEYSTICK_X86_64)
    endif()
endif()
# The rest of an array is less than a vector, and those of the accountant are whole vectors nearly always: a loop of shorter vectors for it
# is a fifth of its loops' code, and saves no time. In the simulator the order of a short sum's roundings would change.
check_cxx_compiler_flag(--param=vect-epilogues-nomask=0 HOCKEYSTICK_KNOWS_EPILOGUES)  # GCC
if(HOCKEYSTICK_KNOWS_EPILOGUES)
    set_source_files_properties(cpp/src/batch_kernels.cpp PROPERTIES COMPILE_OPTIONS --param=vect-epilogues-nomask=0)
endif()
foreach(level IN LISTS levels)
    add_library(hockeystick_kernels_${level} OBJECT cpp/src/batch_kernels.cpp cpp/src/simulator_loops.cpp)
    target_compile_definitions(hockeystick_kernels_${level} PRIVATE HOCKEYSTICK_ISA=${level} HOCKEYSTICK_KERNELS=kernels_${level})
    target_compile_options(hockeystick_kernels_${level} PRIVATE ${kernel_flags} ${flags_${level}} ${warnings} ${section_flags})
    target_link_libraries(hockeystick_kernels_${level} PRIVATE hockeystick)
    target_compile_definitions(hockeystick_kernels PRIVATE HOCKEYSTICK_HAS_${level})
    target_sources(hockeystick_kernels INTERFACE $<TARGET_OBJECTS:hockeystick_kernels_${level}>)
endforeach()
