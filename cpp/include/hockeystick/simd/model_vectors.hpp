// What a round of the simulator does with models and gradients, besides their losses (simd/record_losses.hpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <hockeystick/simd/record_losses.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

inline double norm(const double* x, std::int64_t n) { return std::sqrt(record_dot(x, x, static_cast<std::size_t>(n))); }

inline void copy(const double* from, double* to, std::int64_t n) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof *to);
}

inline void clear(double* out, std::int64_t n) { std::memset(out, 0, static_cast<std::size_t>(n) * sizeof *out); }

inline void scale(double factor, double* out, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) out[j] *= factor;
}

inline void add(double factor, const double* __restrict from, double* __restrict out, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) out[j] += factor * from[j];
}

// Adds `weight` times a gradient that is multiplied by `factor` and then clipped.
inline void add_clipped(double factor, double clip_norm, double weight, const double* gradient, double* out,
                        std::int64_t n) {
    const double kept = clipping(std::fabs(factor) * norm(gradient, n), clip_norm);
    if (kept > 0.0) add(factor * (weight * kept), gradient, out, n);
}

// What overflows becomes 0: it is not finite, and stays so in a product.
inline void clip(double clip_norm, double* out, std::int64_t n) {
    const double kept = clipping(norm(out, n), clip_norm);
    if (kept == 0.0) clear(out, n);
    else if (kept < 1.0) scale(kept, out, n);
}

// Moves a point to the nearest one of a ball around the origin.
inline void project(double radius, double* out, std::int64_t n) {
    const double length = radius < numeric::infinity ? norm(out, n) : 0.0;
    if (length > radius) scale(radius / length, out, n);
}

// A step against the gradient of a loss and of prox/2 |model - at|^2.
inline void step(double rate, double prox, const double* __restrict gradient, const double* __restrict at,
                 double* __restrict model, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) model[j] -= rate * (gradient[j] + prox * (model[j] - at[j]));
}

// The norm of the gradient of both.
inline double residual(double prox, const double* gradient, const double* at, const double* model, std::int64_t n) {
    double total = 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
        const double slope = gradient[j] + prox * (model[j] - at[j]);
        total += slope * slope;
    }
    return std::sqrt(total);
}

// Shortens a model's move from `at` to the reach; one that is not finite becomes none, as in `clip`.
inline void keep_within(double reach, const double* __restrict at, double* __restrict moved, double* __restrict model,
                        std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) moved[j] = model[j] - at[j];
    clip(reach, moved, n);
    for (std::int64_t j = 0; j < n; ++j) model[j] = at[j] + moved[j];
}

inline std::int64_t all_finite(const double* x, std::int64_t n) {
    std::int64_t lost = 0;
    for (std::int64_t j = 0; j < n; ++j) lost += !(std::fabs(x[j]) < numeric::infinity);
    return lost == 0;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
