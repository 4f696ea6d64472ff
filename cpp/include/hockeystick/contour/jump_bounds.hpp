// Bounds of log delta(eps) for T Poisson-sampled Gaussian steps (remove) whose delta is very small,
// by the number of steps of large loss: they cost no sum over nodes, and are nearly always within a
// hundredth of each other.
//
// A deep delta is made by a few steps whose losses are large, its *jumps*. With a threshold x0, a
// step jumps if its outcome lies beyond x0. Let B(c) be the part of M(c) up to x0, J(c) the rest.
// By linearity delta is a sum over the number k of jumps, and each term has a Chernoff bound of its
// own tilt:
//
//   delta(eps) <= sum_k C(T,k) inf_c kappa(c) J(c)^k B(c)^{T-k} e^{-c eps}.
//
// One tilt for all k would be too large by e^{30} and more, where the best k is between two whole
// numbers. From below, with p = P(x <= x0), r = Q(x <= x0), e = eps + (T - k) log(r/p), and the
// point x > x0 of loss e/k, where w is the mixture weight,
//
//   delta(eps) >= C(T,k) p^{T-k} q^k theta(ab + b^2/2, b) (1 - k Q((x - x0)/(sigma sqrt(1-1/k)))),
//   a = sqrt(k) (x - 1)/sigma,   b = sqrt(k) w/sigma,
//
// for every k, without the last factor if k = 1. docs/core/contour.md has both proofs ("Few
// jumps"). Rounding is charged as `slack` of the sizes that are added up.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/truncated_ledger.hpp>
#include <hockeystick/cumulant/loss_lattice.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

namespace tune {
// Candidates for the threshold: where the loss is this share of eps over the jumps that it takes.
inline constexpr double usual_share = 0.7, shares[] = {usual_share, 0.85, 0.5, 0.3};
inline constexpr double jumps_aside = 2.0;       // the lower end tries that many more and fewer
inline constexpr double narrow_of_jumps = 4e-3;  // a bracket that narrow, relative to log delta, ends the search
inline constexpr double max_cutoff = 4000.0;     // in sigma: a grid of at most 1e4 points
inline constexpr double max_jumps = 40.0;
inline constexpr double log_below_largest = 3.0;  // from such a term on, all others are tried as one bound,
inline constexpr double little_more = 1e-3;       // which ends the sum where it adds that much to log delta
inline constexpr int tilts_above = 64, tilt_stride = 4;
inline constexpr double sigmas_beyond = 12.0;               // of the cells, beyond which one bound is enough
inline constexpr double cells_a_sigma = 16.0, cells = 512;  // and no more, nearly, where these reach far
inline constexpr double few_outside = 0.9;  // of jumps outside the half-space: more make the lower end useless
}  // namespace tune

// Of `steps` steps at one question.
class JumpBounds {
  public:
    // Where Chernoff's bound of delta is below e^log_deep, the bounds of this class are the first
    // that are tried; below e^log_rare they are the last, where no other bracket is narrow.
    static constexpr double log_rare = -20.0, log_deep = -200.0;

    static bool covers(double sigma, double rate) { return sigma >= 0.25 && sigma <= 1e3 && rate <= 0.5; }

    JumpBounds(double sigma, double rate, double steps, double eps, const simd::Kernels& kernels)
        : sigma_(sigma), rate_(rate), steps_(steps), eps_(eps), kernels_(kernels) {}

    // Both ends, for the threshold of some candidates that gives the narrowest bracket.
    // bulk_delta(ledger, steps, r) is at most the logarithm of the ledger's delta(r) after so many
    // steps.
    template <class BulkDelta> ContourResult bracket(Truncations& truncations, const BulkDelta& bulk_delta) const {
        ContourResult best = ContourResult::of_zero();
        best.log_upper = 0.0;
        const double jumps = min(max(std::ceil(eps_ / -std::log(rate_)), 1.0), steps_);
        for (const double share : tune::shares) {
            const double at = point_of_loss(share * eps_ / jumps);
            const double cutoff = max(std::floor((at - 1.0) / sigma_), 1.0);
            if (!(cutoff < tune::max_cutoff)) break;
            TruncatedLedger& bulk = truncations.at(static_cast<int>(cutoff));
            Threshold threshold{1.0 + cutoff * sigma_, bulk, {}, {}};
            const auto raise_lower = [&](double carried) {
                const double most = min(jumps + tune::jumps_aside, steps_);
                for (double k = max(jumps - tune::jumps_aside, 1.0); k <= most; k += 1.0) {
                    const double by_bulk = carried > 0.0 ? bulk_delta(bulk, steps_ - k, carried) : 0.0;
                    if (by_bulk > -infinity)
                        best.log_lower = max(best.log_lower, log_lower(threshold.x, k, carried, by_bulk));
                }
            };
            int tilt_index = 0;
            best.log_upper = min(best.log_upper, log_upper(threshold, share != tune::usual_share, tilt_index));
            best.tilt = TiltGrid::tilt(tilt_index);
            raise_lower(0.0);
            if (is_narrow(best)) break;
            raise_lower(bulk_loss(bulk, tilt_index));
            if (is_narrow(best)) break;
        }
        best.set_delta(best.log_lower, best.log_upper, 0.0);
        best.usable = best.log_upper < 0.0;
        return best;
    }

  private:
    static constexpr double slack = sound::jump_slack;

    // Where the loss is y > 0.
    double point_of_loss(double y) const {
        const double log_growth =
            y > 30.0 ? y + std::log1p(-(1.0 - rate_) * std::exp(-y)) : std::log(std::expm1(y) + rate_);
        return 0.5 + sigma_ * sigma_ * (log_growth - std::log(rate_));
    }
    double log_binomial(double k) const {
        double sum = 0.0;  // k is small, and no cancellation as in lgamma(T)
        for (double i = 0.0; i < k; i += 1.0) sum += std::log((steps_ - i) / (i + 1.0));
        return sum;
    }

    static bool is_narrow(const ContourResult& r) {
        return r.log_upper - r.log_lower <= tune::narrow_of_jumps * std::fabs(r.log_upper);
    }

    // What the steps up to the threshold lose together under a tilt, roughly: K'(c).
    double bulk_loss(TruncatedLedger& bulk, int tilt_index) const {
        const TiltedMoment &left = bulk.at(tilt_index - 1), &right = bulk.at(tilt_index + 1);
        return steps_ / bulk.count() * (right.value - left.value) / (right.c - left.c);
    }

    // The bound from below, rounded down; -infinity where it says nothing. The steps up to the
    // threshold may contribute `carried` > 0 to eps, at the price of log_bulk.
    double log_lower(double threshold, double k, double carried, double log_bulk) const {
        const double tail_q = std::exp(log_q(threshold / sigma_));
        const double tail_p = (1.0 - rate_) * tail_q + rate_ * std::exp(log_q((threshold - 1.0) / sigma_));
        if (!(tail_p < 0.5)) return -infinity;
        const double log_p = std::log1p(-tail_p) * (1.0 + slack), log_r = std::log1p(-tail_q);
        const bool alone = !(carried > 0.0);
        const double moved = alone ? eps_ + (steps_ - k) * max(log_r - log_p, 0.0) : eps_ - carried;
        if (!(moved > 0.0)) return -infinity;
        const double eps = moved * (1.0 + slack) + slack * eps_;
        const double x = point_of_loss(eps / k) * (1.0 + slack);
        if (!(x > threshold)) return -infinity;
        const double weight = min(1.0 - (1.0 - rate_) * std::exp(-eps / k), 1.0), root = std::sqrt(k);
        const double a = root * (x - 1.0) / sigma_, b = root * weight / sigma_ * (1.0 - slack);
        double log_inside = 0.0;
        if (k > 1.0) {
            const double outside = k * std::exp(log_q((x - threshold) / (sigma_ * std::sqrt(1.0 - 1.0 / k))));
            if (!(outside < tune::few_outside)) return -infinity;
            log_inside = std::log1p(-outside * sound::jump_tail);
        }
        const double parts[] = {log_binomial(k), alone ? (steps_ - k) * log_p : log_bulk, k * std::log(rate_),
                                log_theta(a * b + 0.5 * b * b, b), log_inside};
        double sum = 0.0, sizes = 0.0;
        for (const double part : parts) sum += part, sizes += std::fabs(part);
        return sum - slack * sizes - sound::log_slack;
    }

    // log C(T,k) kappa(c) J^k B^{T-k} e^{-c eps} at a tilt, and the same with J + B in place of B.
    struct Tilted {
        double c, bulk, jump, log_kappa;
    };
    // What is known of one threshold: the steps up to it, tilts, and losses beyond it by the doublings of their distance.
    struct Threshold {
        double x;
        TruncatedLedger& bulk;
        std::map<int, Tilted> tilts;
        std::map<int, LossLattice> beyond;
    };

    // log of an integral of f_c(x) e^{weight(x)} from the threshold on, rounded up, for a weight of at most 0 that rises
    // with x; add_weights(losses, weights, n) takes it at n points, or does nothing. The second derivative of log f_c is at
    // least -1/sigma^2, so that in a cell of width h it is at most h^2/8 sigma^2 above its chord, and an exponential of the
    // chord is in the mean at most that of its ends. Right of the cells it falls at a rate of at least (x - c - 1)/sigma^2.
    template <class AddWeights>
    double log_beyond(Threshold& threshold, double c, double last, const AddWeights& add_weights) const {
        const double power = c + 1.0, variance = sigma_ * sigma_;
        const double from = threshold.x - sound::before_threshold * sigma_;
        const double reach = max(max(from, last), power) + tune::sigmas_beyond * sigma_ - from;
        const double wanted = reach / sigma_ * tune::cells_a_sigma;
        const int doublings = static_cast<int>(std::ceil(max(std::log2(wanted / tune::cells), 0.0)));
        const double h = std::ldexp(sigma_ / tune::cells_a_sigma, doublings);
        LossLattice& lattice =
            threshold.beyond.try_emplace(doublings, sigma_, rate_, from - 0.5 * h, h, kernels_).first->second;
        const std::size_t n =
            padded_to_lanes(static_cast<std::size_t>(std::ceil(std::ldexp(wanted, -doublings)))) + simd::lanes;
        const simd::Points at = lattice.points(std::round(lattice.number(from - 0.5 * h)), n);
        const double end = from + static_cast<double>(n - 1) * h;
        if (scratch_.size() < 4 * n) scratch_.resize(4 * n);
        double *exponents = scratch_.data(), *weights = exponents + n, *terms = weights + n, *masses = terms + n;
        kernels_.fill_tilted_exponents(at, power, exponents, n);
        const double tail = exponents[n - 1] + std::log(variance / (end - power));
        std::fill_n(weights, n, 0.0);
        add_weights(at.loss, weights, n);
        // Both ends of a cell have the weight of the right one.
        double sum = -infinity;
        for (const std::size_t left : {1, 0}) {
            for (std::size_t j = 0; j + 1 < n; ++j) terms[j] = exponents[j + left] + weights[j + 1];
            terms[n - 1] = terms[n - 2] - 1e3;  // no cell
            const double top = kernels_.largest(terms, n);
            kernels_.exponentiate(terms, top, masses, n);
            sum = log_sum(sum, top + std::log(0.5 * kernels_.sum(masses, n)));
        }
        const double cell_sum = sum + std::log(h) + 0.125 * h * h / variance;
        const double sizes = power * at.loss[n - 1] + 0.5 * end * end / variance;
        return log_sum(cell_sum, tail) - std::log(sigma_ * std::sqrt(2.0 * pi)) + slack * sizes + sound::log_slack;
    }
    double log_jump(Threshold& threshold, double c) const {
        return log_beyond(threshold, c, 0.0, [](const double*, double*, std::size_t) {});
    }

    // Infinite where there is no moment.
    static double times(double count, double log_moment) { return count == 0.0 ? 0.0 : count * log_moment; }
    double log_term(const Tilted& at, double k, bool and_more) const {
        const double rest = and_more ? log_sum(at.bulk, at.jump) : at.bulk;
        const double parts[] = {log_binomial(k), at.log_kappa, times(k, at.jump), times(steps_ - k, rest),
                                -at.c * eps_};
        double sum = 0.0, sizes = 0.0;
        for (const double part : parts) sum += part, sizes += std::fabs(part);
        return sum + slack * sizes + sound::log_slack;
    }

    const Tilted& tilted(Threshold& threshold, int index) const {
        const auto found = threshold.tilts.find(index);
        if (found != threshold.tilts.end()) return found->second;
        const TiltedMoment& m = threshold.bulk.at(index);
        const double each = (m.value + m.error) / threshold.bulk.count();
        const double jump = log_jump(threshold, m.c);
        const auto moment = [](double value) { return value < infinity ? value : infinity; };
        return threshold.tilts.emplace(index, Tilted{m.c, moment(each), moment(jump), m.log_constant}).first->second;
    }

    // The term k = 1, with a tilt of its own for each loss l of the jump: the others must lose
    // eps - l. It is the smaller bound where eps is small, since there the density of l falls less
    // fast than any exponential.
    double log_single(Threshold& threshold, int index) const {
        const int last = std::min(index + tune::tilts_above, TiltGrid::last_positive);
        for (int next = index; next <= last; next += tune::tilt_stride) tilted(threshold, next);
        const auto add_weights = [&](const double* losses, double* weights, std::size_t n) {
            for (const auto& [unused, at] : threshold.tilts) {
                const double log_bulk = times(steps_ - 1.0, at.bulk), c = at.c;
                const double base = at.log_kappa + log_bulk + slack * (std::fabs(log_bulk) + c * eps_);
                const double rest = (1.0 - slack) * eps_ - slack * eps_;
                for (std::size_t j = 0; j < n; ++j) {
                    const double bound = base - c * (rest - (1.0 - slack) * losses[j]);
                    weights[j] = bound < weights[j] ? bound : weights[j];
                }
            }
        };
        return log_binomial(1.0) + log_beyond(threshold, 0.0, point_of_loss(eps_), add_weights) + sound::log_slack;
    }

    // The bound from above, rounded up. `tilt_index` gets that of the largest term.
    double log_upper(Threshold& threshold, bool thorough, int& tilt_index) const {
        int index = TiltGrid::index_near(sigma_ * sigma_ * (eps_ - std::log(rate_)));
        const auto least = [&](double k, bool and_more) {
            const auto bound = [&](int i) { return log_term(tilted(threshold, i), k, and_more); };
            index = minimising_index(bound, index, TiltGrid::first_positive, TiltGrid::last_positive);
            return bound(index);
        };
        double sum = -infinity, largest = -infinity;
        for (double k = 0.0; k <= min(tune::max_jumps, steps_); k += 1.0) {
            double term = least(k, false);
            const double single = k == 1.0 && thorough ? log_single(threshold, index) : infinity;
            if (single < term) term = single;
            if (!(term < infinity)) return 0.0;
            if (term > largest) largest = term, tilt_index = index;
            sum = log_sum(sum, term);
            if (k == steps_) return sum;
            if (term < largest - tune::log_below_largest) {
                const double more = least(k + 1.0, true);
                if (more < largest + tune::little_more * std::fabs(largest)) return log_sum(sum, more);
            }
        }
        return 0.0;
    }

    double sigma_, rate_, steps_, eps_;
    const simd::Kernels& kernels_;
    mutable std::vector<double> scratch_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
