// What all functions of the C API share: the accountant's handle, exceptions turned into status
// codes, and checks of arguments.
#pragma once

#define HOCKEYSTICK_BUILDS_C_API
#include <hockeystick/c_api.h>

#include <new>
#include <stdexcept>
#include <string>

#include <hockeystick/accounting/accountant.hpp>
#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/floating_environment.hpp>
#include <hockeystick/numeric/require.hpp>

#include "batch_kernels.hpp"

namespace hs = hockeystick;

struct hs_accountant {
    hs::accounting::Accountant accountant;
    int32_t adjacency;
};

namespace c_api {

inline thread_local std::string last_error;

inline const hs::batch::Kernels& kernels() {
    static const hs::batch::Kernels& chosen = hs::batch::choose();
    return chosen;
}

inline hs_status failed(hs_status status, const char* what) noexcept {
    try {
        last_error = what;
    } catch (...) {
        last_error.clear();
    }
    return status;
}

// Runs `body` and returns HS_OK, or the status of what it threw, whose text it keeps for
// hs_last_error_message.
template <class Body> hs_status guarded(const Body& body) noexcept {
    const hs::numeric::FloatingEnvironment environment;
    try {
        body();
        return HS_OK;
    } catch (const std::invalid_argument& error) {
        return failed(HS_INVALID_ARGUMENT, error.what());
    } catch (const std::bad_alloc&) {
        return failed(HS_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        return failed(HS_INTERNAL_ERROR, error.what());
    } catch (...) {
        return failed(HS_INTERNAL_ERROR, "unknown exception");
    }
}

// A kernel of doubles; NaN where it would throw.
template <auto Kernel, class... Doubles> double number(Doubles... x) noexcept {
    try {
        return hs::numeric::at_door<Kernel>(x...);
    } catch (...) {
        return hs::numeric::nan;
    }
}

using hs::numeric::require;

inline void require_pointer(const void* pointer, const char* name) {
    if (!pointer) throw std::invalid_argument(std::string(name) + " must not be NULL");
}

inline void require_array(const void* pointer, size_t n, const char* name) {
    if (n > 0) require_pointer(pointer, name);
}

inline void require_noise(double x) {
    require(hs::numeric::positive(x), "noise_multiplier", "be positive and finite", x);
}
inline void require_rate(double x) { hs::numeric::require_probability("sampling_rate", x); }
inline void require_count(double x, const char* name) {
    require(hs::numeric::count(x), name, "be an integer in [1, 2^53]", x);
}
inline void require_count_or_none(double x, const char* name) {
    require(hs::numeric::count_or_none(x), name, "be an integer in [0, 2^53]", x);
}
inline void require_epsilon(double x, const char* name) { require(x >= 0.0, name, "be non-negative", x); }
inline void require_delta(double x) { require(x >= 0.0 && x < 1.0, "delta", "lie in [0, 1)", x); }

}  // namespace c_api
