// The loops on the Poisson-sampled Gaussian, Q = N(0, sigma^2) and 1 + z = dP/dQ = 1 - rate + rate
// e^t with t = (2x - 1)/2 sigma^2: its losses at the points of a lattice in x, its tilted density,
// and bounds of the mass of a lattice's cells.
//
// cumulant/sampled_gaussian.hpp has the mathematics; docs/core/cumulant.md derives the rounding
// errors that are charged here, in units of u. Lengths are multiples of `lanes`.
#pragma once

#include <cmath>
#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {

// The largest angle theta of the path that `bound_on_path` follows: below sqrt 2 and pi/2.
inline constexpr double max_path_angle = 1.4;

// The points x_j = anchor + (first + j + 1/2) step of a lattice, j < n. |anchor| is at most step/2.
struct Lattice {
    double sigma, rate, anchor, step, first;
    std::size_t n;
};

// What is known at points of a lattice under every tilt. Rounding errors are in units of u; that of
// a loss also pays for multiplying it with an exponent and subtracting from the product.
struct Points {
    const double *loss, *half_square;  // log(1 + z), x^2/2 sigma^2
    const double* mix;                 // w = rate e^t/(1 - rate + rate e^t)
    const double *excess, *density;    // z, e^{-half_square}
    const double *loss_error, *excess_error;
};

// Points of a fine lattice with their weights under one tilt; a cell lies between two neighbours.
// `weights` and `mix` have an (n + 1)-th entry, for a point behind the last one.
struct TiltedPoints {
    const double *weights, *mix;
    double sigma, step, exponent;
    std::size_t n;
};

// The masses of the cells between the points of a lattice, bounded from below and from above.
struct CellMasses {
    const double *mix, *low, *high;
    double sigma, exponent;
    std::size_t n;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Fills the arrays of Points for a lattice.
//
// Where z is close to -1, because the rate is close to 1, 1 + z cancels, but (1 - rate) + rate e^t
// does not. `excess` is z for t < 600 only, and log(1 + z) comes from t + log(rate) beyond. x errs
// by u for each of its two roundings, of x and of x - anchor.
inline void fill_privacy_losses(const Lattice& at, double* __restrict losses, double* __restrict half_squares,
                                double* __restrict mixes, double* __restrict excesses, double* __restrict densities,
                                double* __restrict loss_errors, double* __restrict excess_errors) {
    const double rate = at.rate, rest = 1.0 - rate, log_rate = log_positive(rate), odds = rest / rate;
    const double anchor = at.anchor, step = at.step, first = at.first + 0.5, inverse = 1.0 / (at.sigma * at.sigma);
    const std::size_t n = whole_lanes(at.n);
    for (std::size_t j = 0; j < n; ++j) {
        const double x = anchor + (first + static_cast<double>(static_cast<int>(j))) * step;
        const double place = x - anchor, x_error = (x < 0.0 ? -x : x) + (place < 0.0 ? -place : place);
        const double t = (x - 0.5) * inverse, size_of_t = t < 0.0 ? -t : t;
        const double small = exp_nonpositive(-size_of_t);
        const double z = rate * expm1_bounded(t < 600.0 ? t : 600.0);
        const double one_plus_z = z > -0.5 ? 1.0 + z : rest + rate * small;
        const double lost = z > -0.5 ? z - (one_plus_z - 1.0) : 0.0;
        const double near = log_positive(one_plus_z) + lost / one_plus_z;
        const double far = t + log_rate + odds * small;
        const double loss = t < 600.0 ? near : far, size = loss < 0.0 ? -loss : loss;
        const double half_square = 0.5 * (x * x) * inverse;
        const double share = rate * (t < 0.0 ? small : 1.0), other = rest * (t < 0.0 ? 1.0 : small);
        const double mix = share / (share + other);
        const double error_by_t = mix * (4.0 * size_of_t + x_error * inverse);
        losses[j] = loss;
        half_squares[j] = half_square;
        mixes[j] = mix;
        excesses[j] = z;
        densities[j] = exp_nonpositive(-half_square);
        loss_errors[j] = 4.0 * size + 8.0 * (size < 1.0 ? size : 1.0) + error_by_t;
        excess_errors[j] = 6.0 * (z < 0.0 ? -z : z) + one_plus_z * error_by_t;
    }
}

// exponents[j] = log f(x_j) = exponent log(1 + z) - x^2/2 sigma^2, the logarithm of the tilted
// density.
inline void fill_tilted_exponents(const Points& p, double exponent, double* __restrict exponents, std::size_t n) {
    const double* __restrict losses = p.loss;
    const double* __restrict half_squares = p.half_square;
    for (std::size_t j = 0; j < n; ++j) exponents[j] = exponent * losses[j] - half_squares[j];
}

// weights[j] = e^{exponents[j] - top}, where `top` is at least the largest exponent.
inline void exponentiate(const double* __restrict exponents, double top, double* __restrict weights, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) weights[j] = exp_nonpositive(exponents[j] - top);
}

// The terms of E_Q[(1 + z)^a - 1 - a z], which is M - 1 because E_Q z = 0, and bounds of their
// rounding errors in units of u. A bound is at least 6 times its term. The loop is right where
// |a losses[j]| <= 600 and t < 600.
inline void centred_moment_terms(const Points& p, double a, double* __restrict terms, double* __restrict errors,
                                 std::size_t n) {
    const double* __restrict losses = p.loss;
    const double* __restrict half_squares = p.half_square;
    const double* __restrict excesses = p.excess;
    const double* __restrict densities = p.density;
    const double* __restrict loss_errors = p.loss_error;
    const double* __restrict excess_errors = p.excess_error;
    const double size = a < 0.0 ? -a : a;
    for (std::size_t j = 0; j < n; ++j) {
        const double power = a * losses[j];
        const double raised = expm1_bounded(power < 600.0 ? power : 600.0), linear = a * excesses[j];
        const double term = raised - linear;
        const double raised_error = (1.0 + raised) * size * loss_errors[j] + 4.0 * (raised < 0.0 ? -raised : raised);
        const double linear_error = size * excess_errors[j] + (linear < 0.0 ? -linear : linear);
        terms[j] = densities[j] * term;
        errors[j] =
            densities[j] * (raised_error + linear_error + (term < 0.0 ? -term : term) * (8.0 * half_squares[j] + 6.0));
    }
}

// low[j] <= mass of cell j <= high[j], in units of step times weight.
//
// Let c be the chord of log f between the cell's ends, where f is p and r: sqrt(p r) <= mean of
// e^c <= (p + r)/2. With spread >= w (1 - w) in the cell, log f lies above c - (step^2/8)
// (a^+ spread/sigma^4 - 1/sigma^2)^+ and below c + (step^2/8) (a^- spread/sigma^4 + 1/sigma^2). The
// cell of the last point has no other end.
inline void enclose_cell_masses(const TiltedPoints& p, double* __restrict low, double* __restrict high) {
    const double variance = p.sigma * p.sigma, lever = p.step * p.step / (8.0 * variance);
    const double more = lever * (p.exponent > 0.0 ? p.exponent : 0.0) / variance;
    const double fewer = lever * (p.exponent < 0.0 ? -p.exponent : 0.0) / variance;
    const double* __restrict mix = p.mix;
    const double* __restrict weights = p.weights;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double x = mix[j], y = mix[j + 1], weight_x = weights[j], weight_y = weights[j + 1];
        const double spread_x = x * (1.0 - x), spread_y = y * (1.0 - y);
        const double ends = spread_x > spread_y ? spread_x : spread_y;
        const double spread = x <= 0.5 ? (y >= 0.5 ? 0.25 : ends) : ends;
        const double convex = more * spread - lever, concave = fewer * spread + lever;
        const double below = convex > 0.0 ? 1.0 - convex : 1.0;  // <= e^-convex
        const double above = exp_sum(concave < 600.0 ? concave : 600.0, 0.0);
        low[j] = std::sqrt(weight_x * weight_y) * (below > 0.0 ? below : 0.0);
        high[j] = 0.5 * (weight_x + weight_y) * above;
    }
}

// For the path x + i eta(x) of cumulant/sampled_gaussian.hpp, at every frequency from omega up:
// gains[j] is at most what cell j loses of its mass, masses[j] at least what it keeps.
inline void bound_on_path(const CellMasses& c, double omega, double* __restrict gains, double* __restrict masses) {
    const double variance = c.sigma * c.sigma;
    const double negative = c.exponent < 0.0 ? -c.exponent : 0.0;
    const double a = 1.0 + 1.0 / variance, b = 2.0 * negative / variance;
    const double pace = omega / (variance * max_path_angle);
    const double* __restrict mix = c.mix;
    const double* __restrict lows = c.low;
    const double* __restrict highs = c.high;
    for (std::size_t j = 0; j < c.n; ++j) {
        const double left = mix[j], right = mix[j + 1], low = lows[j], high = highs[j];
        const double share = a + b * left;
        const double u_left = pace * left / share, u_right = pace * right / (a + b * right);
        const double angle_left = max_path_angle * u_left / (1.0 + u_left);
        const double angle_right = max_path_angle * u_right / (1.0 + u_right);
        const double spread_left = left * (1.0 - left), spread_right = right * (1.0 - right);
        const double ends = spread_left > spread_right ? spread_left : spread_right;
        const double spread = left <= 0.5 ? (right >= 0.5 ? 0.25 : ends) : ends;
        const double bend = omega * a / (share * share) * spread / (variance * (1.0 + u_left) * (1.0 + u_left));
        const double square = angle_right * angle_right;
        const double cost =
            0.5 * variance * square + 0.5 * negative * spread * square / (1.0 - spread * square) + 0.5 * bend * bend;
        const double gain = omega * left * angle_left * (1.0 - angle_left * angle_left / 6.0);
        const double power = cost - gain;
        const double bounded = power < 600.0 ? power : 600.0;
        const ExpPieces factor = exp_pieces(bounded > -700.0 ? bounded : -700.0, 0.0);
        const double scale = factor.low_scale * factor.high_scale;
        const double excess = (scale - 1.0) + scale * factor.fraction;  // factor - 1
        gains[j] = -excess * (excess < 0.0 ? low : high);
        masses[j] = (scale + scale * factor.fraction) * high;  // 1 + excess may round to 0
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
