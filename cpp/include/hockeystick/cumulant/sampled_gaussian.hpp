// The Poisson-sampled Gaussian's cumulant, certified: quadrature in x, decay of its characteristic
// function.
//
// Notation. Q = N(0, sigma^2), and P is the mixture of Q and N(1, sigma^2) with the rate q:
//   1 + z = dP/dQ = 1 - q + q e^t,   t = (2x - 1)/2 sigma^2.
// Removing a record compares (P, Q), adding one (Q, P). In both M(s) = E_Q[(1 + z)^p], where
// p = s + 1 for remove and p = -s for add. Let a be p at s = c. The tilted density is
//   f(x) = (1 + z)^a e^{-x^2/2 sigma^2},
// and d log(1 + z)/dx = w/sigma^2 with the mixture weight w = q e^t/(1 - q + q e^t).
//
// Cutoff. For remove, losses at x > x_c = 1 + cutoff sigma are left out, because losses that never
// happen may make up most of E e^{cL}: at sigma = 10 and q = 1e-4, the mean of e^{2000 L} is made
// at 200 sigma. Their P-mass is (1-q) Q(x_c/sigma) + q Q(cutoff).
//
// Decay. phi(omega) = int f e^{i omega log(1+z)} dx/int f. The integral is moved to a path x + i
// eta(x), eta = theta sigma^2 with theta in [0, 1.4]. There
//   |f| grows at most by e^{eta^2/2 sigma^2} and, for a < 0, by
//       e^{|a| S theta^2/(2 (1 - S theta^2))}, S = w(1 - w);
//   the path is longer by sqrt(1 + eta'^2) <= e^{eta'^2/2};
//   e^{i omega log(1+z)} falls by e^{-omega psi}, where
//       psi = arg(1 + z) >= w sin theta >= w theta (1 - theta^2/6).
// The choice theta = 1.4 v/(1 + v) with
//   v = omega w/(1.4 sigma^2 (1 + 1/sigma^2 + 2 max(-a, 0) w/sigma^2))
// is near the best one where omega is small. The product of the three, the factor, is then at most
// 1 at every x, inside the range or not: the first two cost at most omega w theta/2 together, and
// the third gains at least 2/3 of omega w theta. theta increases with w, so that each of the three
// has its worst case at one end of a cell. A path chosen for omega serves all larger frequencies,
// since psi >= 0: the bound falls with omega. With cell masses between `low` and `high`,
//   |phi| <= min(1 - sum low (1 - factor), sum high factor) + f(x_c) 1.4 sigma^2/int f + e^-50.
// The last two terms are for the way down from the path's end, where the exponent is convex in the
// height, so that the integrand is at most max(1, factor) f, and for the tails.
//
// Rounding. Losses and weights err as SampledGaussianGrids says. T steps multiply the error of log
// M by T. Where M is near 1, log M comes from E[(1 + z)^a - 1 - a z], which errs by u times its own
// size and not by u; docs/core/cumulant.md has both bounds.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/loss_lattice.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>
#include <hockeystick/divergence/direction.hpp>
#include <hockeystick/numeric/root.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using divergence::Direction;

// Grids in x on which the Poisson-sampled Gaussian's tilted density f(x) = (1 + z)^a
// e^{-x^2/2 sigma^2} is summed, with certified errors; docs/core/cumulant.md has the proofs.
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
class SampledGaussianGrids {
  public:
    // e^{7-depth} of M is charged for what is left out. The rough depth is for sums where rounding
    // counts more anyway; that of few nodes, 4e-21 of M, is below their rounding up to 10^12 steps.
    static constexpr double fine = 62.0, of_few_nodes = 54.0, rough = 46.0;

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
          base_(min(0.5 * sigma, certified_step(all_tilts, make_shift(all_tilts, 0.0)))),
          max_points_(max(usual_points, 1.2 * (1.0 + 23.0 * sigma) / base_)), kernels_(kernels) {}

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
            return {a,     depth,     lattice.boundary(low),   lattice.boundary(high),
                    width, -infinity, high - low < max_points_};
        }
        const double low = left(-reach), high = right(max(a, 1.0) + reach);
        Range range{a,      depth,     lattice.boundary(low),   lattice.boundary(high),
                    sigma_, -infinity, high - low < max_points_};
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
        if (!(range.small && wanted < max_points_)) return piece;
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
    static constexpr double usual_points = 3e4;
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
    double max_points_;  // of tiny noise as many as a range that has both modes
    const simd::Kernels& kernels_;
    mutable std::map<int, LossLattice> shared_;
    mutable Weights weights_;
    mutable double work_ = 0.0;
};

class SampledGaussianCumulant final : public Cumulant {
  public:
    // Outside this range the grid would be too large, or intermediate values would overflow or
    // underflow.
    static bool covers(double sigma, double rate) {
        return sigma >= 0.01 && sigma <= 1e9 && rate >= 1e-30 && rate <= down;
    }

    // 0 < rate < 1. `cutoff` is in units of sigma, and only remove has one.
    SampledGaussianCumulant(double sigma, double rate, Direction direction, double cutoff, const simd::Kernels& kernels,
                            std::shared_ptr<FourierWorkspace> workspace = std::make_shared<FourierWorkspace>())
        : sigma_(sigma), rate_(rate), remove_(direction == Direction::remove), kernels_(kernels),
          workspace_(std::move(workspace)),
          log_missing_(remove_ ? log_missing_beyond(1.0 / sigma + cutoff, cutoff, rate) : -infinity),
          grids_(sigma, rate, remove_ ? 1.0 + cutoff * sigma : infinity, kernels) {}

    Moment log_moment(double c) const override {
        const Piece piece = grids_.on_shared_lattice(grids_.make_range(exponent(c), Grids::fine));
        if (piece.n == 0) return {infinity, infinity};
        if (remove_ && 0.5 * c * (c + 1.0) * variance_ > surely_large) return direct_moment(piece);
        const Moment centred = centred_moment(piece);
        const bool near_one = std::fabs(centred.value) <= 0.1;
        if (near_one && centred.error <= min_direct_error) return centred;
        const Moment direct = direct_moment(piece);
        return near_one && centred.error < direct.error ? centred : direct;
    }

    double log_decay(double c, double omega) const override {
        const Fine& fine = fine_grid(c);
        const std::size_t n = fine.low.size();
        double *gains = scratch(2 * n), *masses = gains + n;
        work_ += static_cast<double>(n);
        kernels_.bound_on_path({fine.mix.data(), fine.low.data(), fine.high.data(), sigma_, exponent(c), n}, omega,
                               gains, masses);
        const double edge = fine.edge + 2e-22;
        const double gain = kernels_.sum(gains, n) * (1.0 - 1e-12) - edge;
        const double mass = kernels_.sum(masses, n) * (1.0 + 1e-12) + edge;
        const double by_gain = gain > 0.0 ? std::log1p(-min(gain, 1.0)) : 0.0;
        return min(by_gain, min(std::log(mass), 0.0));
    }

    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        const double depth = last > few_nodes ? Grids::rough : Grids::of_few_nodes;
        const Range range = grids_.make_range(exponent(c), depth);
        const auto shift = grids_.make_shift(range, static_cast<double>(last) * h);
        auto lattice = grids_.make_lattice(range, min(Grids::certified_step(range, shift), 0.5 * range.width));
        const Piece piece = grids_.take(range, lattice);
        if (piece.n == 0) return false;
        const Weights& by = grids_.tilted_weights(piece);
        const Means mean = grids_.means(piece, by);
        const RelevantPoints points(piece, by);
        FourierSums phi =
            characteristic_differences(points.losses, points.weights, mean.loss, h, last, *workspace_, kernels_, work_);
        if (phi.real.empty()) return false;
        const double share = 1.0 / by.total, turned = remove_ ? share : -share;
        const double summing = 32.0 + power_error + static_cast<double>(piece.n) / 8.0;
        for (std::size_t k = 1; k <= last; ++k) {
            phi.real[k] *= share;
            phi.imag[k] *= turned;
            const double omega = static_cast<double>(static_cast<int>(k)) * h;
            phi.error[k] += u * (summing * min(2.0, omega * mean.loss) + omega * mean.loss_error +
                                 transform_error(mean.weight_error, mean.product_error, mean.loss, omega)) +
                            by.quadrature;
        }
        kernels_.multiply_powers(phi.step(count), nodes.powers());
        return true;
    }

    double log_missing() const override { return log_missing_; }
    // log log1p(q^2 (e^{1/sigma^2} - 1)), from the loss's chi-square.
    double log_variance() const override {
        const double inverse = 1.0 / (sigma_ * sigma_);
        const double chi = inverse < 600.0 ? std::log(std::expm1(inverse)) : inverse;
        const double power = chi + 2.0 * std::log(rate_);
        return power < 30.0 ? std::log(std::log1p(std::exp(power))) : std::log(power);
    }
    double work() const override { return work_ + grids_.work(); }
    double highest() const override { return remove_ ? infinity : -std::log1p(-rate_); }
    double lowest() const override { return remove_ ? std::log1p(-rate_) : -infinity; }

  private:
    static constexpr double u = unit_roundoff;
    static constexpr std::size_t few_nodes = 256;  // more are summed by FFT, whose error is 1e-14

    using Grids = SampledGaussianGrids;
    using Range = Grids::Range;
    using Piece = Grids::Piece;
    using Weights = Grids::Weights;
    using Means = Grids::Means;

    // Points where f is not below e^{-depth-4} of its largest, filled up with weights of zero.
    struct RelevantPoints {
        std::vector<double> losses, weights;
        RelevantPoints(const Piece& piece, const Weights& by) {
            losses.reserve(piece.n), weights.reserve(piece.n);
            for (std::size_t j = 0; j < piece.n; ++j) {
                if (by.exponents[j] < by.top - piece.depth - 4.0) continue;
                losses.push_back(piece.points.loss[j]);
                weights.push_back(by.weights[j]);
            }
            losses.resize(padded_to_lanes(losses.size()), 0.0);
            weights.resize(losses.size(), 0.0);
        }
    };

    struct Fine {
        std::vector<double> mix, low, high;
        double edge;
    };

    // log((1 - rate) Q(x) + rate Q(cutoff)), x > cutoff, also where that is below the doubles.
    static double log_missing_beyond(double x, double cutoff, double rate) {
        const double at_cutoff = log_q(cutoff);
        return at_cutoff + std::log((1.0 - rate) * std::exp(log_q(x) - at_cutoff) + rate);
    }

    double exponent(double c) const { return remove_ ? c + 1.0 : -c; }

    double* scratch(std::size_t n) const {
        if (scratch_.size() < n) scratch_.resize(n);
        return scratch_.data();
    }

    // log M is roughly c (c + 1)/2 times the variance of the losses. Where this is larger, log M is not
    // near 0, and the centred sum is not tried.
    static constexpr double surely_large = 0.5;

    // direct_moment errs by at least this.
    static constexpr double min_direct_error = 28.0 * u;

    Moment direct_moment(const Piece& piece) const {
        const Weights& by = grids_.tilted_weights(piece);
        const double size = std::fabs(piece.exponent);
        const double weight_error = size * kernels_.dot(by.weights.data(), piece.points.loss_error, piece.n) +
                                    10.0 * kernels_.dot(by.weights.data(), piece.points.half_square, piece.n);
        const double scale = std::log(piece.step / (sigma_ * std::sqrt(2.0 * pi)));
        const double summing = static_cast<double>(piece.n) / 8.0 + 28.0 + 2.0 * (std::fabs(by.top) + std::fabs(scale));
        return {by.top + std::log(by.total) + scale, u * (weight_error / by.total + summing) + 2.0 * by.quadrature};
    }

    // log1p of E[(1 + z)^a - 1 - a z]. Beyond the range's right end E z and E 1 are at most rate
    // Q(k) and Q(k + 1/sigma), where k = (high - 1)/sigma; and a sum's end adds at most 0.64
    // phi(k) <= 0.64 (k + 1/k) Q(k) for each of them.
    Moment centred_moment(const Piece& piece) const {
        const std::size_t n = piece.n;
        const double a = piece.exponent, k = (piece.high - 1.0) / sigma_;
        const double largest = max(piece.points.loss[n - 1], -piece.points.loss[0]);
        const bool in_doubles = max(std::fabs(a), 1.0) * largest < 600.0 && k < 600.0 * sigma_;
        if (!(in_doubles && k >= 1.0)) return {0.0, infinity};
        double *terms = scratch(2 * n), *errors = terms + n;
        kernels_.centred_moment_terms(piece.points, a, terms, errors, n);
        const double scale = piece.step / (sigma_ * std::sqrt(2.0 * pi));
        const double value = scale * kernels_.sum(terms, n);
        // a sum of n terms errs by n/8 + 8 of theirs, which are a sixth of their errors or less
        const double rounding = u * (2.5 + static_cast<double>(n) / 48.0) * scale * kernels_.sum(errors, n);
        const double beyond = k < 11.0 ? (std::fabs(a) * rate_ * q(k) + q(k + 1.0 / sigma_)) * (3.0 + k) : 0.0;
        const double at_end = Grids::end_error(std::exp(min(piece.log_end, 600.0)) * scale);
        const double tails = beyond + (1.0 + std::fabs(a)) * 1e-24;  // Q(11) 14 < 1e-26
        const double error = rounding + tails + 2.0 * at_end + 8.0 * u * std::fabs(value);
        if (!(std::fabs(value) + error < 0.15)) return {0.15, infinity};
        return {std::log1p(value), 1.2 * error};
    }

    // The cells on which the decay is bounded, that of the last tilt kept. Their width matters for
    // how good the bound is, not for whether it holds.
    const Fine& fine_grid(double c) const {
        if (c == fine_tilt_) return fine_;
        const double a = exponent(c), variance = sigma_ * sigma_;
        const Range range = grids_.make_range(a, Grids::fine);
        const double wanted = 0.2 * min(range.width, variance * range.width / sigma_);
        auto lattice = grids_.make_lattice(range, max(wanted, (range.high - range.low) / 4000.0));
        const Piece piece = grids_.take(range, lattice);
        fine_tilt_ = c;
        if (piece.n == 0) return fine_ = {{}, {}, {}, 1.0};  // that says nothing
        const Moment whole = log_moment(c);
        const Weights& by = grids_.tilted_weights(piece);
        const double log_scale = std::log(piece.step / (sigma_ * std::sqrt(2.0 * pi))) - whole.value;
        const double unit = std::exp(by.top + log_scale);  // what a weight of 1 is as a share of M
        const double safe = 1.0 + 1e-12 + 2.0 * whole.error;
        const std::size_t n = piece.n;
        fine_.mix.assign(piece.points.mix, piece.points.mix + n);
        fine_.mix.push_back(fine_.mix[n - 1]);
        std::vector<double> weights = by.weights;
        weights.push_back(0.0);
        fine_.low.resize(n);
        fine_.high.resize(n);
        kernels_.enclose_cell_masses({weights.data(), fine_.mix.data(), sigma_, piece.step, a, n}, fine_.low.data(),
                                     fine_.high.data());
        for (double& mass : fine_.low) mass *= unit / safe;
        for (double& mass : fine_.high) mass *= unit * safe;
        const double log_end = max(piece.log_end, by.top - piece.depth) + log_scale;
        fine_.edge = safe * std::exp(log_end) * (max_path_angle * variance / piece.step + 1.0);
        return fine_;
    }

    double sigma_, rate_;
    bool remove_;
    const simd::Kernels& kernels_;
    std::shared_ptr<FourierWorkspace> workspace_;
    double log_missing_, variance_ = std::exp(log_variance());
    Grids grids_;
    mutable Fine fine_;
    mutable std::vector<double> scratch_;
    mutable double fine_tilt_ = nan, work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
