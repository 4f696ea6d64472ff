#ifdef HOCKEYSTICK_X86_64
#include <cpuid.h>
#endif

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "batch_kernels.hpp"

namespace hockeystick::batch {
namespace {

#ifdef HOCKEYSTICK_X86_64
// Clang 14 does not know these features by name, so their bits are read from the processor. They
// need no support by the operating system beyond that for AVX2, which is asked for besides.
bool has_f16c_lzcnt_movbe() {
    unsigned a = 0, b = 0, basic = 0, extended = 0, d = 0;
    return __get_cpuid(1, &a, &b, &basic, &d) && __get_cpuid(0x80000001, &a, &b, &extended, &d) &&
           (basic & bit_F16C) != 0 && (basic & bit_MOVBE) != 0 && (extended & bit_LZCNT) != 0;
}

// Every feature that the compiler may use at a level: a hypervisor can hide any of them.
bool runs_v3() {
    return __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma") && has_f16c_lzcnt_movbe();
}
bool runs_v4() {
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

// A level that the build left out has no kernels.
struct Candidate {
    const char* name;
    const Kernels* kernels;
    bool (*runs)();
};

#ifdef HOCKEYSTICK_HAS_v4
constexpr const Kernels* v4 = &kernels_v4;
constexpr const GridKernels* grid_v4 = &grid_kernels_v4;
#else
constexpr const Kernels* v4 = nullptr;
constexpr const GridKernels* grid_v4 = nullptr;
#endif

constexpr Candidate candidates[] = {{"v4", v4, runs_v4}, {"v3", &kernels_v3, runs_v3}};
#endif

}  // namespace

const Kernels& named(const std::string& name, const char* argument) {
    if (name == "portable") return kernels_portable;
    std::string known = "portable";
#ifdef HOCKEYSTICK_X86_64
    __builtin_cpu_init();
    const std::string refused = std::string(argument) + " must be an instruction set of this ";
    for (const Candidate& c : candidates) {
        known += std::string(", ") + c.name;
        if (name != c.name) continue;
        if (!c.runs()) throw std::invalid_argument(refused + "machine, not '" + name + "': it cannot run that");
        if (!c.kernels)
            throw std::invalid_argument(refused + "build, not '" + name + "': HOCKEYSTICK_LEVELS=all builds all");
        return *c.kernels;
    }
#endif
    throw std::invalid_argument(std::string(argument) + " must be one of " + known + ", not '" + name + "'");
}

const Kernels& choose() {
    const char* asked = std::getenv("HOCKEYSTICK_ISA");
    if (asked && *asked) return named(asked, "HOCKEYSTICK_ISA");
#ifdef HOCKEYSTICK_X86_64
    __builtin_cpu_init();
    for (const Candidate& c : candidates)
        if (c.kernels && c.runs()) return *c.kernels;
#endif
    return kernels_portable;
}

const GridKernels& grid_kernels([[maybe_unused]] const Kernels& set) {
#ifdef HOCKEYSTICK_X86_64
    // Not among the candidates, with which the linker would have to keep them.
    constexpr std::pair<const Kernels*, const GridKernels*> grids[] = {{v4, grid_v4}, {&kernels_v3, &grid_kernels_v3}};
    for (const auto& [kernels, grid] : grids)
        if (kernels == &set) return *grid;
#endif
    return grid_kernels_portable;
}

std::string available() {
    std::string names;
#ifdef HOCKEYSTICK_X86_64
    __builtin_cpu_init();
    for (const Candidate& c : candidates)
        if (c.kernels && c.runs()) names = std::string(", ") + c.name + names;
#endif
    return "portable" + names;
}

}  // namespace hockeystick::batch
