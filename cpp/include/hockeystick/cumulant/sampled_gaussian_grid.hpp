// Grids in x on which the Poisson-sampled Gaussian's tilted density f(x) = (1 + z)^a
// e^{-x^2/2 sigma^2} is summed, with certified errors; cumulant/sampled_gaussian.hpp has the
// notation, docs/core/cumulant.md the proofs.
//
// Quadrature. Points lie half a step inside both ends of the range. With y = theta sigma^2,
// theta < pi, let
//   g(y) = y^2/2 sigma^2 + (a^-/2) |log(1 - S theta^2)| + omega W theta,
// S the largest w (1 - w) of the range, and W the largest mixture weight w, or 1 if that is above
// 1/2. Then |f| grows by at most e^{g(y)} between x and x + iy, and a step h <= 2 pi
// y/(depth + 1 + g(y)) errs by less than e^-depth M, and at each end by 2 f(end)/(2 pi/h - g(y)/y).
// That is at most 4h/pi f(end) if g(y) <= (3/4) 2 pi y/h, which is seen to where f(end) matters.
// The largest such h is near y^2 = 2 depth/(1/sigma^2 + a^- S/sigma^4); y is that, but for
// theta <= 3 and S theta^2 <= 0.8. For a >= 0 and omega = 0 neither y nor h depends on a, and
// g(y) <= depth.
//
// Range. For a >= 0, log f is steeper than that of N(max(a,1), sigma^2) right of it and of
// N(0, sigma^2) left of 0. For a < 0, f is log-concave, more curved than N(., sigma^2), with its
// mode at x = a w(x). R = sqrt(2 depth) sigma beyond that, f is below e^-depth of its maximum: the
// range ends there, or at the cutoff. Only at the cutoff is f(end) charged for. What is left out
// elsewhere is less than e^{7-depth} M, ends included, since 2 pi/h - g(y)/y >= depth/y.
//
// Shared lattices. Moments are summed on lattices whose steps are 2^-k of the step for a >= 0, with
// a boundary at the cutoff, or at 0 where there is none: what tilts have in common is computed
// once. Ranges are whole cells of the coarsest lattice.
//
// Rounding, in units of u: a loss errs by its loss_error (simd/sampled_gaussian.hpp), a weight by
// |a| loss_error + 5 x^2/sigma^2 + 12.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/loss_lattice.hpp>
#include <hockeystick/numeric/root.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class SampledGaussianGrids {
  public:
    // e^{7-depth} of M is charged for what is left out. The rough depth is for sums where rounding
    // counts more anyway.
    static constexpr double fine = 62.0, rough = 46.0;

    struct Range {
        double exponent, depth, low, high;  // low and high are boundaries of cells
        double width;                       // of the mode
        double log_end;                     // log f at the cutoff, or -infinity
        bool small;                         // enough for a grid
    };

    // A shift of x by i y, and how much |f| grows by it, in the exponent.
    struct Shift {
        double y, growth;
    };

    // The points of a lattice in a range.
    struct Piece {
        double exponent, depth, step, high;
        double log_end;  // log f at the cutoff, or -infinity
        std::size_t n;   // 0 where they are too many
        simd::Points points;
    };

    struct Weights {
        std::vector<double> exponents, weights;  // log f, and e^{exponents - top}
        double top, total;                       // log M = top + log(total step/(sigma sqrt(2 pi)))
        double quadrature;                       // relative to M
    };

    // Tilted means of |loss|, and of rounding errors in units of u: of a loss, of a weight, and of
    // a weight times |loss|.
    struct Means {
        double loss, loss_error, weight_error, product_error;
    };

    // Losses end at x = `end`.
    SampledGaussianGrids(double sigma, double rate, double end, const simd::Kernels& kernels)
        : sigma_(sigma), rate_(rate), end_(end),
          base_(min(0.5 * sigma, certified_step(all_tilts, make_shift(all_tilts, 0.0)))), kernels_(kernels) {}

    // Where f is not negligible.
    Range make_range(double a, double depth) const {
        const double reach = std::sqrt(2.01 * depth) * sigma_, variance = sigma_ * sigma_;
        LossLattice& lattice = shared(0);
        const double last = end_ < infinity ? std::round(lattice.number(end_)) : infinity;
        const auto left = [&](double x) { return std::floor(lattice.number(x)); };
        const auto right = [&](double x) { return min(std::ceil(lattice.number(x)), last); };
        if (a < 0.0) {
            const Interval at = mode(a);
            const double low = left(at.lower - reach), high = right(at.upper + reach);
            const double width = sigma_ / std::sqrt(1.0 + std::fabs(at.lower) / variance);
            return {a, depth, lattice.boundary(low), lattice.boundary(high), width, -infinity, high - low < max_points};
        }
        const double low = left(-reach), high = right(max(a, 1.0) + reach);
        Range range{a,      depth,     lattice.boundary(low),  lattice.boundary(high),
                    sigma_, -infinity, high - low < max_points};
        if (!range.small) return range;
        const auto n = static_cast<std::size_t>(high - low);
        const simd::Points points = lattice.points(low, n);
        range.log_end = log_end(points, range, n);
        const double dropped = a >= 1.0 ? tail(points, range, n) : 0.0;
        if (dropped > 0.0 || high < last) range.log_end = -infinity;
        range.high = lattice.boundary(high - dropped);
        return range;
    }

    // The shift above, for frequencies up to omega; and the step that it certifies.
    Shift make_shift(const Range& range, double omega) const {
        const double a = range.exponent, variance = sigma_ * sigma_, negative = max(-a, 0.0);
        const double w = a < 0.0 || omega > 0.0 ? mixture(range.high) : 1.0;
        const double max_spread = w < 0.5 ? w * (1.0 - w) : 0.25, turn = w <= 0.5 ? w : 1.0;
        const double max_angle = a < 0.0 ? min(3.0, std::sqrt(0.8 / max_spread)) : 3.0;
        const double bend = (1.0 + negative * max_spread / variance) / variance;
        const double y = min(std::sqrt(2.0 * range.depth / bend), max_angle * variance), angle = y / variance;
        const double lost_modulus = a < 0.0 ? -0.5 * std::log1p(-max_spread * angle * angle) : 0.0;
        return {y, 0.5 * angle * y + negative * lost_modulus + omega * turn * angle};
    }
    static double certified_step(const Range& range, const Shift& by) {
        const double at_cutoff = range.log_end > -infinity ? 4.0 / 3.0 * by.growth : 0.0;
        return 2.0 * pi * by.y / max(range.depth + 1.0 + by.growth, at_cutoff);
    }

    // A lattice of its own for a range.
    LossLattice make_lattice(const Range& range, double step) const {
        return {sigma_, rate_, range.high, step, kernels_};
    }

    // The range's points on a shared lattice whose step is certified for omega = 0.
    Piece on_shared_lattice(const Range& range) const {
        if (range.exponent >= 0.0) return take(range, shared(0));
        const double halvings = std::ceil(std::log2(base_ / certified_step(range, make_shift(range, 0.0))));
        return halvings < 40.0 ? take(range, shared(static_cast<int>(max(halvings, 0.0)))) : Piece{};
    }

    Piece take(const Range& range, LossLattice& lattice) const {
        Piece piece{range.exponent, range.depth, lattice.step(), range.high, range.log_end, 0, {}};
        const double last = std::round(lattice.number(range.high));
        const double wanted = std::ceil(last - lattice.number(range.low) - 1e-6);
        if (!(range.small && wanted < max_points)) return piece;
        piece.n = padded_to_lanes(static_cast<std::size_t>(wanted));
        piece.points = lattice.points(last - static_cast<double>(piece.n), piece.n);
        work_ += static_cast<double>(piece.n);
        return piece;
    }

    // Valid until the next call.
    const Weights& tilted_weights(const Piece& piece) const {
        Weights& w = weights_;
        w.exponents.resize(piece.n);
        w.weights.resize(piece.n);
        kernels_.fill_tilted_exponents(piece.points, piece.exponent, w.exponents.data(), piece.n);
        w.top = kernels_.largest(w.exponents.data(), piece.n);
        kernels_.exponentiate(w.exponents.data(), w.top, w.weights.data(), piece.n);
        w.total = kernels_.sum(w.weights.data(), piece.n);
        w.quadrature = end_error(std::exp(piece.log_end - w.top) / w.total) + std::exp(7.0 - piece.depth);
        return w;
    }

    // What the right end adds to the quadrature's error, from f(end) h.
    static double end_error(double mass) { return 4.0 / pi * mass; }

    Means means(const Piece& piece, const Weights& by) const {
        const std::size_t n = piece.n;
        std::vector<double> sizes(n);
        for (std::size_t j = 0; j < n; ++j) sizes[j] = std::fabs(piece.points.loss[j]) * by.weights[j];
        const auto mean = [&](const std::vector<double>& x, const double* y) {
            return kernels_.dot(x.data(), y, n) / by.total;
        };
        const double a = std::fabs(piece.exponent), loss = kernels_.sum(sizes.data(), n) / by.total;
        const double loss_error = mean(by.weights, piece.points.loss_error);
        const double square_error = 10.0 * mean(by.weights, piece.points.half_square) + 12.0;
        const double product_error =
            a * mean(sizes, piece.points.loss_error) + 10.0 * mean(sizes, piece.points.half_square) + 12.0 * loss;
        return {loss, loss_error, a * loss_error + square_error, product_error};
    }

    double work() const {  // points visited so far
        double sum = work_;
        for (const auto& known : shared_) sum += known.second.work();
        return sum;
    }

  private:
    static constexpr double max_points = 3e4;
    // Serves every a >= 0, as far as the step goes.
    static constexpr Range all_tilts{0.0, fine, 0.0, 0.0, 0.0, -infinity, true};

    LossLattice& shared(int halvings) const {
        const auto known = shared_.find(halvings);
        if (known != shared_.end()) return known->second;
        const double end = end_ < infinity ? end_ : 0.0;
        const LossLattice base(sigma_, rate_, end, base_, kernels_);
        LossLattice made(sigma_, rate_, base.boundary(0.0), std::ldexp(base_, -halvings), kernels_);
        return shared_.emplace(halvings, std::move(made)).first->second;
    }

    // log f at the right end, half a step from the last point:
    // 1 + z = (1 + z_last)(1 - w_last + w_last e^{h/2 sigma^2}) there.
    double log_end(const simd::Points& points, const Range& range, std::size_t n) const {
        const double grown = std::expm1(0.5 * base_ / (sigma_ * sigma_)), x = range.high / sigma_;
        return range.exponent * (points.loss[n - 1] + std::log1p(points.mix[n - 1] * grown)) - 0.5 * x * x;
    }

    // How many points are below e^-depth M on the right, as a large `a` has them between its two
    // modes: at most 32 sigma of them. M >= 1 for a >= 1 by Jensen, as E_Q z = 0. Losses are convex
    // in x: between two points, f is at most e^{h^2/8 sigma^2} <= e^{1/32} times the larger.
    double tail(const simd::Points& points, const Range& range, std::size_t n) const {
        const double least = -range.depth - 4.0, a = range.exponent;
        if (!(range.log_end < least)) return 0.0;
        const double low = max(max(range.high - 32.0 * sigma_, sigma_), range.low),
                     max_dropped = (range.high - low) / base_ - 2.0;
        std::size_t kept = n;  // the last of them is below, too, if any is dropped
        while (kept > 0 && static_cast<double>(n - kept) < max_dropped &&
               a * points.loss[kept - 1] - points.half_square[kept - 1] < least)
            --kept;
        return kept < n ? static_cast<double>(n - kept - 1) : 0.0;
    }

    // Where f has its mode for a < 0, to a twentieth of sigma: x = a w(x), by bisection on a
    // decreasing function.
    Interval mode(double a) const {
        double low = a, high = 0.0;
        for (int k = 0; k < 200 && high - low > 0.05 * sigma_; ++k) {
            const double x = 0.5 * (low + high);
            (x < a * mixture(x) ? low : high) = x;
        }
        return {low, high};
    }

    double mixture(double x) const {
        const double t = (x - 0.5) / (sigma_ * sigma_);
        return 1.0 / (1.0 + (1.0 - rate_) / rate_ * std::exp(min(-t, 700.0)));
    }

    double sigma_, rate_, end_, base_;
    const simd::Kernels& kernels_;
    mutable std::map<int, LossLattice> shared_;
    mutable Weights weights_;
    mutable double work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
