# The Python module. The bindings whose functions need the engines are one object, so that the engines are compiled once.
# Where the linker can leave out unused sections, the C library is linked from that object too: only the module uses its Python
# functions, and the engines are not compiled a second time. The preset dev divides the object in two, one for each core.
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)  # it takes longer than the compiler, and gains nothing
file(GLOB bindings CONFIGURE_DEPENDS cpp/bindings/*.cpp)
set(engines accounting contour dpsgd mechanism pld release)
list(TRANSFORM engines REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/cpp/bindings/bind_\\1.cpp")
list(REMOVE_ITEM bindings ${engines})
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
endif()

add_library(hockeystick_engines OBJECT ${engines})
if(HOCKEYSTICK_C AND UNIX AND NOT APPLE)
    target_sources(hockeystick_engines PRIVATE ${c_library})
    target_compile_options(hockeystick_engines PRIVATE -ffunction-sections -fdata-sections)
    set(c_library $<TARGET_OBJECTS:hockeystick_engines>)
    set(linked_sections LINKER:--gc-sections)
endif()
pybind11_add_module(_core MODULE ${bindings} $<TARGET_OBJECTS:hockeystick_engines>)
foreach(target hockeystick_engines _core)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON VISIBILITY_INLINES_HIDDEN ON)
    target_include_directories(${target} PRIVATE cpp/src)
    target_compile_options(${target} PRIVATE ${warnings} ${engine_flags})
    target_link_libraries(${target} PRIVATE hockeystick pybind11::headers Python::NumPy)
endforeach()
target_link_libraries(_core PRIVATE hockeystick_kernels)
if(linked_sections)  # without the functions for C
    file(CONFIGURE OUTPUT module.map CONTENT "{ global: PyInit__core; local: *; };\n")
    target_link_options(_core PRIVATE ${linked_sections} "LINKER:--version-script=${CMAKE_CURRENT_BINARY_DIR}/module.map")
endif()
install(TARGETS _core DESTINATION hockeystick)
