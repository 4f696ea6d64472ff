// The loops over the points of a law of losses (cumulant/loss_points.hpp).
#pragma once

#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {

// Losses L, the masses q of Q and their logarithms, psi(L) = e^L - 1 - L, and errors in units of u:
// of L, absolute, and of q, relative.
struct CentredPoints {
    const double *loss, *q, *log_q, *psi, *loss_error, *q_error;
    std::size_t n;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// 1/(k+2)!: the series of (e^x - 1 - x)/x^2.
inline constexpr double psi_coefficients[] = {
    1.0 / 2.0,         1.0 / 6.0,          1.0 / 24.0,          1.0 / 120.0,          1.0 / 720.0,
    1.0 / 5040.0,      1.0 / 40320.0,      1.0 / 362880.0,      1.0 / 3628800.0,      1.0 / 39916800.0,
    1.0 / 479001600.0, 1.0 / 6227020800.0, 1.0 / 87178291200.0, 1.0 / 1307674368000.0};

// psi(x) = e^x - 1 - x for |x| <= 600, within a relative 20u: by its series where the difference
// would cancel. The series leaves out less than 1e-17.
inline double expm1_less_x(double x) {
    const double near = x * x * polynomial(psi_coefficients, x), far = expm1_bounded(x) - x;
    return (x < 0.0 ? -x : x) < 0.5 ? near : far;
}

// exponents[j] = log_masses[j] + c losses[j]
inline void fill_point_exponents(const double* __restrict log_masses, const double* __restrict losses, double c,
                                 double* __restrict exponents, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) exponents[j] = log_masses[j] + c * losses[j];
}

// The terms q (psi(a L) - a psi(L)) of M - 1, a = c + 1, and bounds of their errors in units of u.
// A term is infinite where |a L| is above 600 and the point matters.
inline void centred_point_terms(const CentredPoints& p, double c, double* __restrict terms, double* __restrict errors) {
    constexpr double largest_power = 600.0, least_matter = -72.0;
    const double a = c + 1.0, size = a < 0.0 ? -a : a, size_of_c = c < 0.0 ? -c : c;
    const double* __restrict losses = p.loss;
    const double* __restrict masses = p.q;
    const double* __restrict log_masses = p.log_q;
    const double* __restrict known = p.psi;
    const double* __restrict loss_errors = p.loss_error;
    const double* __restrict mass_errors = p.q_error;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double loss = losses[j], power = a * loss, linear = known[j], q = masses[j];
        const double above = power < largest_power ? power : largest_power;
        const double bounded = above > -largest_power ? above : -largest_power;
        const double raised = expm1_less_x(bounded), term = raised - a * linear;
        const double width = bounded < 0.0 ? -bounded : bounded, loss_size = loss < 0.0 ? -loss : loss;
        const double slope = size * (raised + linear + size_of_c * loss_size);
        const double own = 24.0 * (raised + size * linear) + 4.0 * width * (raised + width);
        const double beyond = power - bounded, matters = log_masses[j] + (power > 0.0 ? power : 0.0);
        const double found = q * term, told = beyond == 0.0 ? found : infinity;
        terms[j] = matters > least_matter ? told : found;
        errors[j] = q * (slope * loss_errors[j] + own) + (found < 0.0 ? -found : found) * mass_errors[j];
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
