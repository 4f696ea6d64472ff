// delta(eps) of many steps of a bulk (SplitLaw, cumulant/cumulant.hpp), as a curve between bounds.
//
// The bulk is no probability distribution: its mass p under P, and r under Q, is less than 1. Its
// delta is E (1 - e^{eps - L})^+ over its outcomes, a convex function of y = e^eps that falls from
// p^n at y = 0, no faster than r^n y there. Sums on contour lines bound it at knots. Between two of
// them it is at most its chord, and at least the chords of both neighbouring intervals, extended.
// docs/core/accounting.md, "Rare jumps".
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <hockeystick/accounting/question.hpp>
#include <hockeystick/contour/line_bracket.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// Sums over lines for one bulk. Not for several threads at once.
class BulkLines {
  public:
    // Lines of too many nodes get one more Gaussian step, of the shift `smoothing`
    // (contour/smoothing.hpp).
    BulkLines(SplitLaw& law, double smoothing, const simd::Kernels& kernels)
        : p_{1.0 - law.jump_p.upper - law.left_out - unit_roundoff, 1.0 - law.jump_p.lower},
          r_{1.0 - law.jump_q.upper - law.left_out - unit_roundoff, 1.0 - law.jump_q.lower}, smoothing_(smoothing),
          summer_(kernels), ledger_(0, parts_of(law), kernels, cache_) {}

    // p^n and r^n.
    Interval whole_p(double n) const { return power(p_, n); }
    Interval whole_q(double n) const { return power(r_, n); }

    // A bracket of delta(eps) of n steps.
    Interval delta(double n, double eps) {
        if (n == 0.0) {
            const double exact = -std::expm1(min(eps, 0.0));
            return {exact * down, min(exact * up, 1.0)};
        }
        const int index = ledger_.best_tilt(n, eps) & ~3;  // few tilts, which share their nodes
        const double bound = contour::log_chernoff(ledger_.at(index), {n}, eps);
        const double most = min(whole_p(n).upper, std::exp(bound + 1e-9 * (1.0 + std::fabs(bound))));
        const auto line_with = [&](double smoothing) {
            return contour::choose_line(ledger_, index, {n, smoothing}, eps, bound - 3.0 + tolerance);
        };
        contour::Line line = line_with(0.0);
        if (line.node_count > few_nodes) line = line_with(smoothing_);
        if (line.node_count > most_nodes || !line.prepare()) return {0.0, most};
        const contour::LineSum s = summer_(line, eps);
        const contour::Excess excess = contour::excess_of(summer_, line, s, eps);
        const double error = excess.alias + excess.smoothing + s.error();
        if (!(std::isfinite(s.value) && std::isfinite(error) && s.possible())) return {0.0, most};
        const double margin = 4.0 * unit_roundoff * (4.0 + std::fabs(s.log_unit)), unit = std::exp(s.log_unit);
        return {max(s.value - error, 0.0) * unit * (1.0 - margin),
                min((s.value + s.error()) * unit * (1.0 + margin), most)};
    }

    // Roughly the mean and the standard deviation of the loss of n steps.
    double mean(double n) {
        const contour::TiltedMoment &one = ledger_.at(middle_), &other = ledger_.at(middle_ - 8);
        return n * (one.value - other.value) / (one.c - other.c);
    }
    double deviation(double n) { return std::sqrt(n * log_variance_); }

    double work() const { return ledger_.work() + summer_.work(); }

  private:
    static constexpr double tolerance = -21.0, few_nodes = 2000.0, most_nodes = 1 << 15;

    std::vector<contour::ContourPart> parts_of(SplitLaw& law) {
        log_variance_ = std::exp(law.bulk->log_variance());
        std::vector<contour::ContourPart> parts;
        parts.push_back({std::move(law.bulk), 1.0});
        return parts;
    }
    static Interval power(const Interval& base, double n) {
        const auto of = [n](double x) { return x > 0.0 ? std::exp(n * std::log1p(x - 1.0)) : 0.0; };
        const double margin = 4.0 * unit_roundoff * (n + 4.0);  // 1 - mass is rounded
        return {of(base.lower) * (1.0 - margin), min(of(base.upper) * (1.0 + margin), 1.0)};
    }

    Interval p_, r_;
    double smoothing_;
    double log_variance_ = 0.0;
    int middle_ = 0;
    contour::NodeCache cache_;
    contour::LineSummer summer_;
    contour::TruncatedLedger ledger_;
};

// The curve of n steps, from its knots.
class BulkCurve {
  public:
    // At least two knots, which rise.
    BulkCurve(BulkLines& lines, double n, const std::vector<double>& knots)
        : n_(n), all_p_(lines.whole_p(n)), all_q_(lines.whole_q(n)) {
        for (const double eps : knots) knots_.push_back(eps), values_.push_back(lines.delta(n, eps));
        make_monotone();
    }

    const std::vector<double>& knots() const { return knots_; }
    // The first knot that is not below eps.
    std::size_t next_knot(double eps) const {
        return static_cast<std::size_t>(std::lower_bound(knots_.begin(), knots_.end(), eps) - knots_.begin());
    }
    // Puts a knot into the middle of each of these intervals, which end at knots k >= 1.
    void split(BulkLines& lines, const std::vector<std::size_t>& intervals) {
        std::vector<double> knots;
        std::vector<Interval> values;
        auto next = intervals.begin();
        for (std::size_t k = 0; k < knots_.size(); ++k) {
            if (next != intervals.end() && *next == k) {
                knots.push_back(0.5 * (knots_[k - 1] + knots_[k]));
                values.push_back(lines.delta(n_, knots.back()));
                ++next;
            }
            knots.push_back(knots_[k]), values.push_back(values_[k]);
        }
        knots_ = std::move(knots), values_ = std::move(values);
        make_monotone();
    }

    double upper(double eps) const {
        if (eps == -infinity) return all_p_.upper;
        const std::size_t k = next_knot(eps);
        if (k == knots_.size()) return values_.back().upper;
        if (k == 0) return mixed(all_p_.upper, values_[0].upper, std::exp(eps - knots_[0]));
        const double share = std::expm1(eps - knots_[k - 1]) / std::expm1(knots_[k] - knots_[k - 1]);
        return mixed(values_[k - 1].upper, values_[k].upper, share);
    }

    double lower(double eps) const {
        if (eps == -infinity) return all_p_.lower;
        const std::size_t k = next_knot(eps);
        if (k == knots_.size()) return 0.0;
        double best = max(values_[k].lower, all_p_.lower - all_q_.upper * std::exp(eps) * up);
        if (k >= 2) best = max(best, extended(k - 2, k - 1, eps));
        if (k + 1 < knots_.size()) best = max(best, extended(k + 1, k, eps));
        return best * (1.0 - rounding);
    }

  private:
    static constexpr double rounding = 1e-12;  // relative, of a few sums and exponentials

    void make_monotone() {  // as the curve is
        for (std::size_t k = knots_.size(); k-- > 1;)
            values_[k - 1].lower = max(values_[k - 1].lower, values_[k].lower);
        for (std::size_t k = 1; k < knots_.size(); ++k) values_[k].upper = min(values_[k].upper, values_[k - 1].upper);
    }
    static double mixed(double at_zero, double at_one, double share) {
        const double t = min(max(share * (1.0 - rounding), 0.0), 1.0);
        return (at_zero + t * (at_one - at_zero)) * (1.0 + rounding);
    }
    // The line through knot `far`, at most, and knot `near`, at least, where it lies below the
    // curve: on the other side of `near`.
    double extended(std::size_t far, std::size_t near, double eps) const {
        const double from_near = std::expm1(eps - knots_[near]), to_far = std::expm1(knots_[far] - knots_[near]);
        const double ratio = -from_near / to_far;  // > 0
        const double fall = values_[far].upper - values_[near].lower;
        const double moved = ratio * (1.0 + (fall > 0.0 ? rounding : -rounding)) * fall;
        return values_[near].lower * (1.0 - eight_roundings) - moved;
    }

    double n_;
    Interval all_p_, all_q_;
    std::vector<double> knots_;
    std::vector<Interval> values_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
