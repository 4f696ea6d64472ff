# The accountant compiled once, for C++ programs that would rather link its code than compile it: behind the same headers,
# with the same answers. Whoever links it gets HOCKEYSTICK_COMPILED.
add_library(hockeystick_compiled STATIC cpp/src/compiled.cpp)
add_library(hockeystick::compiled ALIAS hockeystick_compiled)
set_target_properties(hockeystick_compiled PROPERTIES EXPORT_NAME compiled)
target_compile_definitions(hockeystick_compiled INTERFACE HOCKEYSTICK_COMPILED)
target_compile_options(hockeystick_compiled PRIVATE ${warnings} ${engine_flags})
target_link_libraries(hockeystick_compiled PUBLIC hockeystick)
if(NOT top_level AND NOT HOCKEYSTICK_INSTALL)
    set_target_properties(hockeystick_compiled PROPERTIES EXCLUDE_FROM_ALL ON)  # built for those who link it
endif()
