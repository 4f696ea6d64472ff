// Grids in x on which the Poisson-sampled Gaussian's tilted density is summed, certified (sampled_gaussian.hpp has the notation).
//
// Quadrature. Trapezoid on points x_j half a step inside both ends of the range. The integrand is analytic for |Im x| < pi
// sigma^2; the contour integral of f/(e^{-+2 pi i x/h} + 1) around the rectangle |Im x| <= y gives
//   error <= 2 N(y)/(e^{2 pi y/h} - 1) + 2 sum_ends int_0^y |f(end + it)| e^{-2 pi t/h} dt,   N(y) = int |f(x + iy)| dx over the range,
// and the second term is at most 2 f(end) 4h/(2 pi) an end if (3/4) 2 pi/h is at least the mean slope
// of log |f(end + it)|, 0 <= t <= y, which is convex: omega w(end)/sigma^2 + y/2 sigma^2, and end_growth/y for a < 0. N is
// bounded cell by cell (contour_kernels.hpp, shift_bound). h is the largest step for which the first term is below e^-62 M.
//
// Range. For a >= 0, log f is steeper than that of N(max(a,1), sigma^2) right of it and of N(0, sigma^2) left of 0; for
// a < 0, f is log-concave, more curved than N(., sigma^2), with its mode at x = a w(x). R = sqrt(2 62) sigma beyond
// that, f is below e^-62 of its maximum: the range ends there, or at the cut.
//
// Rounding. A loss errs by (12 + 3|t|/max(1, |loss|)) u relatively (its derivative by t is w <= 1, and w <= 2 |loss|/min(1, |t|)
// where it is small), a weight by |a loss| times that and 2x^2/sigma^2 + 12.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/contour_kernels.hpp>
#include <hockeystick/hockey_stick.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {
namespace detail {

class SampledGaussianGrids {
  public:
    // e^-depth of M is left out, relatively; 46 where u rules anyway: e^7 times that is charged
    static constexpr double fine = 62.0, rough = 46.0;

    struct Range {
        double exponent, low, high, width, step, depth;
    };

    struct Grid {
        contour::Points points;
        std::vector<double> losses, exponents, weights;
        double high, width, depth;  // right end, width of the mode, of the range
        double top, total;          // log M = top + log(total step/(sigma sqrt(2 pi)))
        double quadrature = 0.0;    // relative to M
    };

    struct Digits {  // tilted means of |loss| and of the rounding errors of contour_kernels.hpp
        double loss, of_loss, of_weight, of_product;
    };

    // Losses end at x = `end`.
    SampledGaussianGrids(double sigma, double rate, double end, const contour::Kernels& kernels)
        : sigma_(sigma), rate_(rate), end_(end), kernels_(kernels) {}

    // Where f is not negligible, how wide its mode is, and a step that serves omega = 0: certainly for a >= 0, to be
    // verified for a < 0.
    Range make_range(double a, double depth) const {
        const double reach = std::sqrt(2.01 * depth) * sigma_, variance = sigma_ * sigma_;
        if (a < 0.0) {
            const double at = mode(a), width = sigma_ / std::sqrt(1.0 + std::fabs(at) / variance);
            return {a, at - reach, detail::min(at + reach, end_), width, 0.5 * width, depth};
        }
        const double y = detail::min(reach, 3.0 * variance);
        const double by_lines = 2.0 * pi * y / (depth + 1.0 + y * y / (2.0 * variance));
        const double high = without_tail(a, depth, detail::min(detail::max(a, 1.0) + reach, end_));
        return {a, -reach, high, sigma_, detail::min(0.5 * sigma_, by_lines), depth};
    }

    Grid make_grid(const Range& range, double step) const {
        const double a = range.exponent, high = range.high;
        Grid grid;
        const double wanted = (high - range.low) / step;
        if (!(wanted < most_points)) return grid;
        const std::size_t n = (static_cast<std::size_t>(wanted) / contour::lanes + 1) * contour::lanes;
        grid.points = {sigma_, rate_, a, high - (static_cast<double>(n) - 0.5) * step, step, n};
        grid.losses.resize(n);
        grid.exponents.resize(n);
        grid.weights.resize(n);
        work_ += static_cast<double>(n);
        kernels_.tilt(grid.points, grid.losses.data(), grid.exponents.data());
        grid.top = kernels_.largest(grid.exponents.data(), n);
        kernels_.weigh(grid.exponents.data(), grid.top, grid.weights.data(), n);
        grid.total = kernels_.sum(grid.weights.data(), n);
        const double edge = std::exp(log_density(a, high) - grid.top) / grid.total;  // f(x_c) h/M
        grid.width = range.width;
        grid.depth = range.depth;
        grid.quadrature = 2.0 * edge * 4.0 / (2.0 * pi) + std::exp(7.0 - grid.depth);
        return grid;
    }

    double loss(double x) const {
        const double t = (x - 0.5) / (sigma_ * sigma_);
        if (t < 0.0) return std::log((1.0 - rate_) + rate_ * std::exp(t));
        return t < 600.0 ? std::log1p(rate_ * std::expm1(t)) : t + std::log(rate_);
    }
    double log_density(double a, double x) const { return a * loss(x) - 0.5 * (x / sigma_) * (x / sigma_); }

    // A grid that serves frequencies up to omega, made with `share` of what was found to be certified; empty if too large.
    Grid certified_grid(const Range& range, double omega, double share) const {
        Grid grid = make_grid(range, range.step);
        while (!grid.losses.empty()) {
            const double step = certified_step(grid, omega);
            if (step >= grid.points.step) break;
            grid = make_grid(range, share * step);
        }
        return grid;
    }

    Digits digits(const Grid& grid) const {
        const std::size_t n = grid.losses.size();
        std::vector<double> of_weights(n), of_losses(n), sizes(n);
        kernels_.digits_lost(grid.points, grid.losses.data(), of_weights.data(), of_losses.data());
        for (std::size_t j = 0; j < n; ++j) sizes[j] = std::fabs(grid.losses[j]) * grid.weights[j];
        return {kernels_.sum(sizes.data(), n) / grid.total,
                kernels_.dot(sizes.data(), of_losses.data(), n) / grid.total,
                kernels_.dot(grid.weights.data(), of_weights.data(), n) / grid.total,
                kernels_.dot(sizes.data(), of_weights.data(), n) / grid.total};
    }

    // Drops points below e^-66 of the largest, and fills up with weights of zero.
    static void keep_heavy(Grid& grid) {
        std::size_t kept = 0;
        for (std::size_t j = 0; j < grid.losses.size(); ++j) {
            if (grid.exponents[j] < grid.top - grid.depth - 4.0) continue;
            grid.losses[kept] = grid.losses[j];
            grid.weights[kept++] = grid.weights[j];
        }
        const std::size_t padded = (kept + contour::lanes - 1) / contour::lanes * contour::lanes;
        grid.losses.resize(kept);
        grid.weights.resize(kept);
        grid.losses.resize(padded, 0.0);
        grid.weights.resize(padded, 0.0);
    }

    double work() const { return work_; }  // points visited so far

  private:
    static constexpr double u = unit_roundoff;
    static constexpr double most_points = 3e4;

    // The range's end without what is below e^-62 M on its right, as a large `a` has between its two modes. Losses are convex in
    // x, so that a chord bounds them in each panel; M >= 1 for a >= 1 by Jensen, as E_Q z = 0. At most 32 panels.
    double without_tail(double a, double depth, double high) const {
        if (!(a >= 1.0)) return high;
        const double variance = sigma_ * sigma_;
        double loss = this->loss(high);
        for (int k = 0; k < 32 && high > sigma_; ++k) {
            const double low = high - sigma_, below = this->loss(low), slope = (loss - below) / sigma_;
            const double peak = detail::min(detail::max(a * slope * variance, low), high);
            const double most = a * (below + slope * (peak - low)) - 0.5 * (peak / sigma_) * (peak / sigma_);
            if (!(most < -depth - 4.0)) break;
            high = low;
            loss = below;
        }
        return high;
    }

    // Where f has its mode for a < 0: x = a w(x), by bisection on a decreasing function.
    double mode(double a) const {
        double low = a, high = 0.0;
        for (int k = 0; k < 200 && high - low > 1e-3 * sigma_; ++k) {
            const double x = 0.5 * (low + high);
            (x < a * mixture(x) ? low : high) = x;
        }
        return 0.5 * (low + high);
    }

    double mixture(double x) const {
        const double t = (x - 0.5) / (sigma_ * sigma_);
        return 1.0 / (1.0 + (1.0 - rate_) / rate_ * std::exp(detail::min(-t, 700.0)));
    }

    // A step that some shift of x certifies for frequencies up to omega: the grid's own or more, or else the largest found.
    double certified_step(const Grid& grid, double omega) const {
        const double variance = sigma_ * sigma_;
        const double widest = detail::min(0.95 * pi * variance, std::sqrt(2.01 * grid.depth) * grid.width);
        const std::size_t n = grid.losses.size();
        std::vector<double> mix(n), terms(n);
        kernels_.mix(grid.points, grid.points.step, mix.data());
        double best = 0.0;
        for (const double part : {1.0, 0.6, 0.35, 0.2, 0.1, 0.04}) {
            const double y = part * widest, angle = y / variance;
            const contour::Shift shift{angle, std::sin(angle),      1.0 - std::cos(angle),
                                       omega, grid.points.exponent, grid.top};
            work_ += static_cast<double>(n);
            kernels_.shift_bound(grid.exponents.data(), mix.data(), n, shift, terms.data());
            const double norm = kernels_.sum(terms.data(), n) / grid.total;
            if (!(norm < 1e250)) continue;
            const double by_lines = 2.0 * pi * y / (0.5 * angle * y + std::log(norm) + 2.0 + grid.depth);
            const double slope = omega * mix[n - 1] / variance + 0.5 * angle + end_growth(mix[n - 1], shift) / y;
            best = detail::max(best, detail::min(by_lines, 0.75 * 2.0 * pi / slope));
            if (best >= grid.points.step) break;
        }
        return best;
    }

    // What the way up at an end multiplies f by for a < 0, in the exponent; by 1 - cos <= angle^2/2, so convex in the height.
    static double end_growth(double mix, const contour::Shift& shift) {
        if (shift.exponent >= 0.0) return 0.0;
        const double spread = 0.5 * shift.angle * shift.angle * (mix < 0.5 ? mix * (1.0 - mix) : 0.25);
        return 2.0 * spread < 0.9 ? -shift.exponent * spread / (1.0 - 2.0 * spread) : detail::infinity;
    }

    double sigma_, rate_, end_;
    const contour::Kernels& kernels_;
    mutable double work_ = 0.0;
};

}  // namespace detail
}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
