# The Python module, as two units. One has the bindings whose functions need the engines, so that these are compiled once. Where
# the linker can leave out unused sections, the functions for C are compiled in the same units, and the C library is linked from
# them too: nothing is compiled for it alone. The preset dev divides the units further, for both cores of a small machine.
file(GLOB bindings CONFIGURE_DEPENDS cpp/bindings/*.cpp)
set(engines accounting contour dpsgd mechanism pld release)
list(TRANSFORM engines REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/cpp/bindings/bind_\\1.cpp")
list(REMOVE_ITEM bindings ${engines})

add_library(hockeystick_units OBJECT ${engines} ${bindings})
set_property(SOURCE ${engines} ${c_library} PROPERTY UNITY_GROUP engines)
set_property(SOURCE ${bindings} cpp/src/c_api_federated.cpp PROPERTY UNITY_GROUP formulas)
set_target_properties(hockeystick_units PROPERTIES UNITY_BUILD ON VISIBILITY_INLINES_HIDDEN ON)
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
    set_target_properties(hockeystick_units PROPERTIES UNITY_BUILD_MODE GROUP)
endif()
target_include_directories(hockeystick_units PRIVATE cpp/src)
target_compile_options(hockeystick_units PRIVATE ${warnings} ${engine_flags})
target_link_libraries(hockeystick_units PRIVATE hockeystick pybind11::headers Python::NumPy)
if(MSVC)
    target_link_libraries(hockeystick_units PRIVATE pybind11::windows_extras)  # objects with many sections
endif()

pybind11_add_module(_core MODULE $<TARGET_OBJECTS:hockeystick_units>)
set_target_properties(_core PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(_core PRIVATE hockeystick hockeystick_kernels)
if(HOCKEYSTICK_C AND linked_sections)
    target_sources(hockeystick_units PRIVATE ${c_library})
    target_compile_options(hockeystick_units PRIVATE ${section_flags})
    set(c_library $<TARGET_OBJECTS:hockeystick_units>)
    file(CONFIGURE OUTPUT module.map CONTENT "{ global: PyInit__core; local: *; };\n")  # without the functions for C
    target_link_options(_core PRIVATE ${linked_sections} "LINKER:--version-script=${CMAKE_CURRENT_BINARY_DIR}/module.map")
endif()
install(TARGETS _core DESTINATION hockeystick)
