# The C API as WebAssembly, and the npm package around it, in the folder `package` of the build. The module has no loader of
# emscripten's: core.js gives it what it asks for.
set(kernels ${CMAKE_CURRENT_SOURCE_DIR}/cpp/src)
add_executable(hockeystick_wasm
    ${kernels}/c_api.cpp ${kernels}/c_api_federated.cpp ${kernels}/c_api_handles.cpp ${kernels}/c_api_mechanisms.cpp)
target_compile_options(hockeystick_wasm PRIVATE ${warnings})  # -Os makes a fifth less of it, and takes a quarter longer
target_link_libraries(hockeystick_wasm PRIVATE hockeystick hockeystick_kernels)

# Exceptions and vectors of 16 bytes are WebAssembly's own: every engine since 2022 has them.
foreach(target hockeystick_wasm hockeystick_kernels hockeystick_kernels_portable)
    target_compile_options(${target} PRIVATE -msimd128 -mnontrapping-fptoint -fwasm-exceptions)
endforeach()

file(STRINGS cpp/include/hockeystick/c_api.h prototypes REGEX "^HS_API")
set(exports _malloc _free)
foreach(prototype IN LISTS prototypes)
    string(REGEX MATCH "hs_[a-z_0-9]+\\(" name "${prototype}")
    string(REPLACE "(" "" name "${name}")
    list(APPEND exports _${name})
endforeach()
list(JOIN exports "," exports)
target_link_options(hockeystick_wasm PRIVATE
    -O3 -fwasm-exceptions -sSTANDALONE_WASM --no-entry -sALLOW_MEMORY_GROWTH -sEXPORTED_FUNCTIONS=${exports})

set(package ${CMAKE_CURRENT_BINARY_DIR}/package)
set_target_properties(hockeystick_wasm PROPERTIES
    OUTPUT_NAME hockeystick SUFFIX .wasm RUNTIME_OUTPUT_DIRECTORY ${package})
file(GLOB sources CONFIGURE_DEPENDS cpp/wasm/*.js cpp/wasm/*.d.ts cpp/wasm/*.json cpp/wasm/*.md)
add_custom_command(TARGET hockeystick_wasm POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy ${sources} LICENSE cpp/licenses/pocketfft.txt ${package}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
