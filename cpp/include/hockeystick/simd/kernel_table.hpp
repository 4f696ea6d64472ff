// The loops of the contour engine (contour/contour.hpp, cumulant/sampled_gaussian.hpp), on raw arrays, so that they can be compiled once
// per instruction set. Lengths are multiples of `lanes`: callers pad with points of weight zero.
//
// Sums run in `lanes` independent partial sums whatever the vector width, so that a sum of n terms errs by at most
// (n/lanes + lanes) u times the sum of their absolute values.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/contour_nodes.hpp>
#include <hockeystick/simd/gridding.hpp>
#include <hockeystick/simd/lanes.hpp>
#include <hockeystick/simd/loss_windows.hpp>

namespace hockeystick::simd {

// What the loops work on: the same types for every instruction set.

inline constexpr double steepest = 1.4;  // largest angle of the path of `path_bound`, below sqrt 2 and pi/2

// What points have under every tilt; errors by rounding, in units of u.
struct Points {
    const double *loss, *half_square;  // log(1 + z), x^2/2 sigma^2
    const double* mix;                 // the mixture weight w = rate e^t/(1 - rate + rate e^t)
    const double *excess, *density;    // z, e^{-half_square}
    const double *loss_error, *excess_error;
};

// Points of a fine grid under a tilt, by their weights; a cell lies between neighbours. Weights and mixture weights have an
// (n + 1)-th, behind the last point.
struct Weighed {
    const double *weights, *mix;
    double sigma, step, exponent;
    std::size_t n;
};

// The cells' masses, bounded from either side.
struct Cells {
    const double *mix, *low, *high;
    double sigma, exponent;
    std::size_t n;
};

// The loops as one instruction set has them.
struct Kernels {
    void (*lose)(const Lattice&, double*, double*, double*, double*, double*, double*, double*);
    void (*tilt)(const Points&, double, double*, std::size_t);
    double (*largest)(const double*, std::size_t);
    double (*sum)(const double*, std::size_t);
    double (*dot)(const double*, const double*, std::size_t);
    void (*weigh)(const double*, double, double*, std::size_t);
    void (*centre)(const Points&, double, double*, double*, std::size_t);
    void (*enclose)(const Weighed&, double*, double*);
    void (*oscillate)(const double*, const double*, std::size_t, double, std::size_t, double*, double*, double*);
    void (*raise)(const Shares&, const NodePowers&);
    void (*factors)(const NodeLine&, const NodeFactors&, const NodeFactors&);
    void (*evaluate)(const Nodes&, double, double, double*, double*, double*);
    void (*path_bound)(const Cells&, double, double*, double*);
    void (*spread)(const Spread&, double*, double*);
    void (*window)(const Lattice&, const Window&, double*, double*);
    void (*logarithms)(const double*, double*, std::size_t);
    double (*damped)(const double*, const double*, std::size_t, double);
    double (*grown)(const double*, const double*, std::size_t, double, double);
    void (*log_ratios)(const SliceTransforms&, const LogRatios&);
    void (*difference)(const SliceNodes&, double, double, double, double*, double*, double*);
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Where z is close to -1 (the rate is close to 1) 1 + z cancels, (1 - rate) + rate e^t does not. Of t < 600 only, `excess` is z.
// Errors: of x 2u, of t 4u, both relative; of z 5u and what that of t makes of it; of the logarithm 3u; and u for the product
// with an exponent. |z|/(1 + z) is at most 1, and 1.5 |loss|, for z > -1/2; below that 1 + z errs by 4u, and the loss is above log 2.
inline void lose(const Lattice& at, double* __restrict losses, double* __restrict half_squares,
                 double* __restrict mixes, double* __restrict excesses, double* __restrict densities,
                 double* __restrict loss_errors, double* __restrict excess_errors) {
    const double rate = at.rate, rest = 1.0 - rate, log_rate = log_positive(rate), odds = rest / rate;
    const double anchor = at.anchor, step = at.step, first = at.first + 0.5, inverse = 1.0 / (at.sigma * at.sigma);
    const std::size_t n = at.n;
    for (std::size_t j = 0; j < n; ++j) {
        const double x = anchor + (first + static_cast<double>(static_cast<int>(j))) * step;
        const double t = (x - 0.5) * inverse, of_t = t < 0.0 ? -t : t;
        const double small = exp_nonpositive(-of_t);
        const double z = rate * expm1_bounded(t < 600.0 ? t : 600.0);
        const double sum = z > -0.5 ? 1.0 + z : rest + rate * small;
        const double lost = z > -0.5 ? z - (sum - 1.0) : 0.0;
        const double near = log_positive(sum) + lost / sum;
        const double far = t + log_rate + odds * small;
        const double loss = t < 600.0 ? near : far, size = loss < 0.0 ? -loss : loss;
        const double half_square = 0.5 * (x * x) * inverse;
        const double share = rate * (t < 0.0 ? small : 1.0), other = rest * (t < 0.0 ? 1.0 : small);
        const double mix = share / (share + other);
        const double moved = mix * (4.0 * of_t + 2.0 * (x < 0.0 ? -x : x) * inverse);
        losses[j] = loss;
        half_squares[j] = half_square;
        mixes[j] = mix;
        excesses[j] = z;
        densities[j] = exp_nonpositive(-half_square);
        loss_errors[j] = 4.0 * size + 8.0 * (size < 1.0 ? size : 1.0) + moved;
        excess_errors[j] = 6.0 * (z < 0.0 ? -z : z) + sum * moved;
    }
}

// exponents[j] = log f(x_j) = a log(1 + z) - x^2/2 sigma^2
inline void tilt(const Points& p, double a, double* __restrict exponents, std::size_t n) {
    const double* __restrict losses = p.loss;
    const double* __restrict half_squares = p.half_square;
    for (std::size_t j = 0; j < n; ++j) exponents[j] = a * losses[j] - half_squares[j];
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
    Lanes sums = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        Lanes next;
        load(x + j, next);
        sums += next;
    }
    return total(sums);
}

inline double dot(const double* x, const double* y, std::size_t n) {
    Lanes sums = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        Lanes a, b;
        load(x + j, a), load(y + j, b);
        sums += a * b;
    }
    return total(sums);
}

// weights[j] = e^{exponents[j] - top}
inline void weigh(const double* __restrict exponents, double top, double* __restrict weights, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) weights[j] = exp_nonpositive(exponents[j] - top);
}

// The terms of E[(1 + z)^a - 1 - a z], which is what M - 1 is when E z = 0, and bounds of their rounding errors in units of u,
// at least 6 of the terms. Right where |a losses[j]| <= 600 and t < 600.
inline void centre(const Points& p, double a, double* __restrict terms, double* __restrict errors, std::size_t n) {
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
        const double of_raised = (1.0 + raised) * size * loss_errors[j] + 4.0 * (raised < 0.0 ? -raised : raised);
        const double of_linear = size * excess_errors[j] + (linear < 0.0 ? -linear : linear);
        terms[j] = densities[j] * term;
        errors[j] =
            densities[j] * (of_raised + of_linear + (term < 0.0 ? -term : term) * (8.0 * half_squares[j] + 6.0));
    }
}

// low[j] <= mass of cell j <= high[j], in units of step times weight. The chord c of log f between its ends p and r has
// sqrt(p r) <= mean e^c <= (p + r)/2, and with spread >= w(1-w) log f lies above c - (step^2/8)(a^+ spread/sigma^4 - 1/sigma^2)^+
// and below c + (step^2/8)(a^- spread/sigma^4 + 1/sigma^2). The last point's cell has no other end.
inline void enclose(const Weighed& p, double* __restrict low, double* __restrict high) {
    const double variance = p.sigma * p.sigma, lever = p.step * p.step / (8.0 * variance);
    const double more = lever * (p.exponent > 0.0 ? p.exponent : 0.0) / variance;
    const double fewer = lever * (p.exponent < 0.0 ? -p.exponent : 0.0) / variance;
    const double* __restrict mix = p.mix;
    const double* __restrict weights = p.weights;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double x = mix[j], y = mix[j + 1], of_x = weights[j], of_y = weights[j + 1];
        const double at_x = x * (1.0 - x), at_y = y * (1.0 - y), ends = at_x > at_y ? at_x : at_y;
        const double spread = x <= 0.5 ? (y >= 0.5 ? 0.25 : ends) : ends;
        const double convex = more * spread - lever, concave = fewer * spread + lever;
        const double below = convex > 0.0 ? 1.0 - convex : 1.0;  // <= e^-convex
        const double above = exp_sum(concave < 600.0 ? concave : 600.0, 0.0);
        low[j] = std::sqrt(of_x * of_y) * (below > 0.0 ? below : 0.0);
        high[j] = 0.5 * (of_x + of_y) * above;
    }
}

// Adds the terms of `groups` x `lanes` points to the sums of all nodes, the points' state in registers; see oscillate.
template <std::size_t groups>
inline void oscillate_points(const double* losses, const double* weights, double h, std::size_t nodes, double* real,
                             double* imag) {
    Lanes weight[groups], turn_re[groups], turn_im[groups], at_re[groups] = {}, at_im[groups] = {};
    for (std::size_t g = 0; g < groups; ++g) {
        double re[lanes], im[lanes];
        for (std::size_t i = 0; i < lanes; ++i) {
            double cosine, sine;
            cos_sin(0.5 * h * losses[g * lanes + i], cosine, sine);
            re[i] = -2.0 * sine * sine;
            im[i] = 2.0 * sine * cosine;
        }
        load(re, turn_re[g]), load(im, turn_im[g]), load(weights + g * lanes, weight[g]);
    }
    for (std::size_t k = 0; k < nodes; ++k) {
        Lanes re, im;
        load(real + k * lanes, re), load(imag + k * lanes, im);
        for (std::size_t g = 0; g < groups; ++g) {
            const Lanes a = weight[g] + at_re[g], b = at_im[g];
            at_re[g] += a * turn_re[g] - b * turn_im[g];
            at_im[g] += a * turn_im[g] + b * turn_re[g];
            re += at_re[g];
            im += at_im[g];
        }
        store(re, real + k * lanes), store(im, imag + k * lanes);
    }
}

// real[k-1] + i imag[k-1] = sum_j weights[j] (e^{i k h losses[j]} - 1), k = 1..nodes. Each node costs a complex
// multiply-add a point: with r = e^{i h loss} - 1, the terms obey u_{k+1} = u_k + (weight + u_k) r.
// `scratch` has 2 lanes nodes doubles.
inline void oscillate(const double* __restrict losses, const double* __restrict weights, std::size_t n, double h,
                      std::size_t nodes, double* __restrict real, double* __restrict imag, double* __restrict scratch) {
    double *sums_re = scratch, *sums_im = scratch + lanes * nodes;
    for (std::size_t k = 0; k < 2 * lanes * nodes; ++k) scratch[k] = 0.0;
    std::size_t j = 0;
#if defined(__AVX512F__)  // others have not registers enough
    for (; j + 4 * lanes <= n; j += 4 * lanes) oscillate_points<4>(losses + j, weights + j, h, nodes, sums_re, sums_im);
#endif
    for (; j < n; j += lanes) oscillate_points<1>(losses + j, weights + j, h, nodes, sums_re, sums_im);
    for (std::size_t k = 0; k < nodes; ++k) {
        real[k] = sum(sums_re + k * lanes, lanes);
        imag[k] = sum(sums_im + k * lanes, lanes);
    }
}

// For the path x + i eta(x) of cumulant/sampled_gaussian.hpp: gains[j] <= what cell j loses of its mass, masses[j] >= what it keeps,
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
        const ExpPieces factor = exp_pieces(bounded > -700.0 ? bounded : -700.0, 0.0);
        const double scale = factor.low_scale * factor.high_scale;
        const double grown = (scale - 1.0) + scale * factor.fraction;  // factor - 1
        gains[j] = -grown * (grown < 0.0 ? low : high);
        masses[j] = (scale + scale * factor.fraction) * high;  // 1 + grown would round a small factor to 0
    }
}

// Those compiled with the caller's own flags.
inline constexpr Kernels own_kernels = {lose,    tilt,       largest, sum,     dot,        weigh,      centre,
                                        enclose, oscillate,  raise,   factors, evaluate,   path_bound, spread,
                                        window,  logarithms, damped,  grown,   log_ratios, difference};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
