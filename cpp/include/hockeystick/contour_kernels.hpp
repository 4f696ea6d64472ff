// The loops of the contour engine (contour.hpp, sampled_gaussian.hpp), on raw arrays, so that they can be compiled once
// per instruction set. Lengths are multiples of `lanes`: callers pad with points of weight zero.
//
// Sums run in `lanes` independent partial sums whatever the vector width, so that a sum of n terms errs by at most
// (n/lanes + lanes) u times the sum of their absolute values.
#pragma once

#include <hockeystick/elementary.hpp>
#include <hockeystick/gridding.hpp>
#include <hockeystick/node_kernels.hpp>

namespace hockeystick {

// What the loops work on: the same types for every instruction set.
namespace contour {

inline constexpr std::size_t oscillate_scratch = 1024;
inline constexpr double steepest = 1.4;  // largest angle of the path of `path_bound`, below sqrt 2 and pi/2

// Gaussian points x_j = first + j step under the tilt (1 + z)^exponent, 1 + z = 1 - rate + rate e^{(2x-1)/2 sigma^2}.
struct Points {
    double sigma, rate, exponent, first, step;
    std::size_t n;
};

// A fine grid under a tilt: cell j lies between points j and j + 1; `mix` is the mixture weight w = rate e^t/(1 - rate +
// rate e^t) at its left end, `low` and `high` bound its mass from either side.
struct Cells {
    const double *mix, *low, *high;
    double sigma, exponent;
    std::size_t n;  // cells; mix has n + 1 points
};

// A shift of x by i y at frequency omega: angle = y/sigma^2 with its sine and 1 - cosine.
struct Shift {
    double angle, sine, versine, omega, exponent;
    double top;  // of the logs of the weights
};

// The loops as one instruction set has them.
struct Kernels {
    void (*tilt)(const Points&, double*, double*);
    void (*mix)(const Points&, double, double*);
    double (*largest)(const double*, std::size_t);
    double (*sum)(const double*, std::size_t);
    double (*dot)(const double*, const double*, std::size_t);
    void (*weigh)(const double*, double, double*, std::size_t);
    void (*centre)(const Points&, const double*, double*, double*);
    void (*digits_lost)(const Points&, const double*, double*, double*);
    void (*oscillate)(const double*, const double*, std::size_t, double, std::size_t, double*, double*, double*);
    void (*raise)(const Shares&, const NodePowers&);
    void (*factors)(const NodeLine&, const NodeFactors&, const NodeFactors&);
    void (*evaluate)(const Nodes&, double, double, double*, double*, double*);
    void (*path_bound)(const Cells&, double, double*, double*);
    void (*shift_bound)(const double*, const double*, std::size_t, const Shift&, double*);
    void (*spread)(const Spread&, double*, double*);
};

}  // namespace contour

inline namespace HOCKEYSTICK_ISA {
namespace contour_loops {

using contour::Cells;
using contour::lanes;
using contour::Points;
using contour::Shift;
using contour::steepest;

// losses[j] = log(1 + z), exponents[j] = exponent log(1 + z) - x^2/2 sigma^2. Where z is close to -1 (the rate is close to 1)
// 1 + z cancels, (1 - rate) + rate e^t does not.
inline void tilt(const Points& p, double* __restrict losses, double* __restrict exponents) {
    const double log_rate = detail::log_positive(p.rate);
    const double rest = 1.0 - p.rate, odds = rest / p.rate;
    const double scale = 1.0 / p.sigma;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double x = p.first + static_cast<double>(static_cast<int>(j)) * p.step;
        const double t = (x - 0.5) * scale * scale;
        const double small = detail::exp_nonpositive(t < 0.0 ? t : -t);
        const double z = p.rate * detail::expm1_bounded(t < 600.0 ? t : 600.0);
        const double sum = z > -0.5 ? 1.0 + z : rest + p.rate * small;
        const double lost = z > -0.5 ? z - (sum - 1.0) : 0.0;
        const double near = detail::log_positive(sum) + lost / sum;
        const double far = t + log_rate + odds * small;
        losses[j] = t < 600.0 ? near : far;
        exponents[j] = p.exponent * losses[j] - 0.5 * (x * scale) * (x * scale);
    }
}

// out[j] = the mixture weight rate e^t/(1 - rate + rate e^t) at x_j + shift.
inline void mix(const Points& p, double shift, double* __restrict out) {
    const double odds = (1.0 - p.rate) / p.rate;
    const double scale = 1.0 / p.sigma;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double x = p.first + shift + static_cast<double>(static_cast<int>(j)) * p.step;
        const double t = (x - 0.5) * scale * scale;
        out[j] = 1.0 / (1.0 + odds * detail::exp_sum(t > -300.0 ? -t : 300.0, 0.0));
    }
}

inline double largest(const double* x, std::size_t n) {
    double best[lanes];
    for (std::size_t k = 0; k < lanes; ++k) best[k] = x[k];
    for (std::size_t j = lanes; j < n; j += lanes)
        for (std::size_t k = 0; k < lanes; ++k) best[k] = best[k] > x[j + k] ? best[k] : x[j + k];
    double most = best[0];
    for (std::size_t k = 1; k < lanes; ++k) most = most > best[k] ? most : best[k];
    return most;
}

inline double sum(const double* x, std::size_t n) {
    double sums[lanes] = {};
    for (std::size_t j = 0; j < n; j += lanes)
        for (std::size_t k = 0; k < lanes; ++k) sums[k] += x[j + k];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

inline double dot(const double* x, const double* y, std::size_t n) {
    double sums[lanes] = {};
    for (std::size_t j = 0; j < n; j += lanes)
        for (std::size_t k = 0; k < lanes; ++k) sums[k] += x[j + k] * y[j + k];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// weights[j] = e^{exponents[j] - top}
inline void weigh(const double* __restrict exponents, double top, double* __restrict weights, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) weights[j] = detail::exp_nonpositive(exponents[j] - top);
}

// The terms of E[(1 + z)^a - 1 - a z], which is what M - 1 is when E z = 0, and bounds of their rounding errors in units of u.
// Right where |a losses[j]| <= 600.
inline void centre(const Points& p, const double* __restrict losses, double* __restrict terms,
                   double* __restrict errors) {
    const double scale = 1.0 / p.sigma;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double x = p.first + static_cast<double>(static_cast<int>(j)) * p.step;
        const double square = (x * scale) * (x * scale);
        const double t = (x - 0.5) * scale * scale;
        const double density = detail::exp_nonpositive(-0.5 * square);
        const double power = p.exponent * losses[j];
        const double raised = detail::expm1_bounded(power < 600.0 ? power : 600.0);
        const double linear = p.exponent * detail::expm1_bounded(losses[j] < 600.0 ? losses[j] : 600.0);
        const double size = (raised < 0.0 ? -raised : raised) + (linear < 0.0 ? -linear : linear);
        const double digits = 16.0 + 4.0 * (t < 0.0 ? -t : t) + 4.0 * (power < 0.0 ? -power : power);
        terms[j] = density * (raised - linear);
        errors[j] = density * (size * digits + (raised - linear < 0.0 ? linear - raised : raised - linear) * square);
    }
}

// Relative rounding errors of the weights and of the losses, in units of u.
inline void digits_lost(const Points& p, const double* __restrict losses, double* __restrict of_weights,
                        double* __restrict of_losses) {
    const double scale = 1.0 / p.sigma;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double x = p.first + static_cast<double>(static_cast<int>(j)) * p.step;
        const double t = (x - 0.5) * scale * scale;
        const double power = p.exponent * losses[j];
        const double size = losses[j] < 0.0 ? -losses[j] : losses[j];
        const double of_t = t < 0.0 ? -t : t;
        of_losses[j] = 12.0 + 3.0 * of_t / (size > 1.0 ? size : 1.0);
        of_weights[j] = (power < 0.0 ? -power : power) * of_losses[j] + 2.0 * (x * scale) * (x * scale) + 12.0;
    }
}

// real[k-1] + i imag[k-1] = sum_j weights[j] (e^{i k h losses[j]} - 1), k = 1..nodes. Each node costs a complex
// multiply-add a point: with r = e^{i h loss} - 1, the terms obey u_{k+1} = u_k + (weight + u_k) r.
// `scratch` has oscillate_scratch doubles.
inline void oscillate(const double* __restrict losses, const double* __restrict weights, std::size_t n, double h,
                      std::size_t nodes, double* __restrict real, double* __restrict imag, double* __restrict scratch) {
    constexpr std::size_t block = 256;  // points whose state stays in the first-level cache
    double* __restrict turn_re = scratch;
    double* __restrict turn_im = scratch + block;
    double* __restrict at_re = scratch + 2 * block;
    double* __restrict at_im = scratch + 3 * block;
    for (std::size_t k = 0; k < nodes; ++k) real[k] = imag[k] = 0.0;
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t count = n - first < block ? n - first : block;
        const double* __restrict own = weights + first;
        for (std::size_t j = 0; j < count; ++j) {
            double cosine, sine;
            detail::cos_sin(0.5 * h * losses[first + j], cosine, sine);
            turn_re[j] = -2.0 * sine * sine;
            turn_im[j] = 2.0 * sine * cosine;
            at_re[j] = at_im[j] = 0.0;
        }
        for (std::size_t k = 0; k < nodes; ++k) {
            double re[lanes] = {}, im[lanes] = {};
            for (std::size_t j = 0; j < count; j += lanes) {
                for (std::size_t i = 0; i < lanes; ++i) {
                    const double a = own[j + i] + at_re[j + i], b = at_im[j + i];
                    const double new_re = at_re[j + i] + (a * turn_re[j + i] - b * turn_im[j + i]);
                    const double new_im = b + (a * turn_im[j + i] + b * turn_re[j + i]);
                    at_re[j + i] = new_re;
                    at_im[j + i] = new_im;
                    re[i] += new_re;
                    im[i] += new_im;
                }
            }
            real[k] += ((re[0] + re[1]) + (re[2] + re[3])) + ((re[4] + re[5]) + (re[6] + re[7]));
            imag[k] += ((im[0] + im[1]) + (im[2] + im[3])) + ((im[4] + im[5]) + (im[6] + im[7]));
        }
    }
}

// For the path x + i eta(x) of sampled_gaussian.hpp: gains[j] <= what cell j loses of its mass, masses[j] >= what it keeps,
// at every frequency from omega up.
inline void path_bound(const Cells& c, double omega, double* __restrict gains, double* __restrict masses) {
    const double variance = c.sigma * c.sigma;
    const double negative = c.exponent < 0.0 ? -c.exponent : 0.0;
    const double a = 1.0 + 1.0 / variance, b = 2.0 * negative / variance;
    const double pace = omega / (variance * steepest);
    const double* __restrict mix = c.mix;
    const double* __restrict lows = c.low;
    const double* __restrict highs = c.high;
    for (std::size_t j = 0; j < c.n; ++j) {
        const double left = mix[j], right = mix[j + 1], low = lows[j], high = highs[j];
        const double share = a + b * left;
        const double u_left = pace * left / share, u_right = pace * right / (a + b * right);
        const double angle_left = steepest * u_left / (1.0 + u_left);
        const double angle_right = steepest * u_right / (1.0 + u_right);
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
        const detail::ExpPieces factor = detail::exp_pieces(bounded > -700.0 ? bounded : -700.0, 0.0);
        const double scale = factor.low_scale * factor.high_scale;
        const double grown = (scale - 1.0) + scale * factor.fraction;  // factor - 1
        gains[j] = -grown * (grown < 0.0 ? low : high);
        masses[j] = (scale + scale * factor.fraction) * high;  // 1 + grown would round a small factor to 0
    }
}

// terms[j] = e^{exponents[j] - top} times what the shift multiplies |(1 + z)^{exponent + i omega}| by, at most, with mix[j] >= the
// mixture weight in cell j: arg(1 + z) <= min(angle, w sin/(1 - w + w cos)), |1 + z|^2 falls by 1 - 2 w (1-w) (1 - cos).
inline void shift_bound(const double* __restrict exponents, const double* __restrict mix, std::size_t n,
                        const Shift& by, double* __restrict terms) {
    const double negative = by.exponent < 0.0 ? -by.exponent : 0.0;
    const double angle = by.angle, sine = by.sine, versine = by.versine, omega = by.omega;
    for (std::size_t j = 0; j < n; ++j) {
        const double w = mix[j];
        const double base = 1.0 - w * versine;  // 1 - w + w cos
        const double tangent = w * sine / (base > 1e-3 ? base : 1e-3);
        const double turn = base > 1e-3 ? (tangent < angle ? tangent : angle) : angle;
        const double spread = versine * (w < 0.5 ? w * (1.0 - w) : 0.25);
        const double power = exponents[j] - by.top + omega * turn + negative * spread / (1.0 - 2.0 * spread);
        terms[j] = detail::exp_sum(power < 600.0 ? power : 600.0, 0.0);
    }
}

// Those compiled with the caller's own flags.
inline constexpr contour::Kernels own_kernels = {tilt,    mix,      largest,     sum,         dot,
                                                 weigh,   centre,   digits_lost, oscillate,   raise,
                                                 factors, evaluate, path_bound,  shift_bound, spread};

}  // namespace contour_loops
}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
