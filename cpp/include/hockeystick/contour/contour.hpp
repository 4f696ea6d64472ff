// delta(eps) and epsilon(delta) of a composition by a contour integral, as certified brackets. The
// cost of a bracket does not grow with the number of steps.
//
// With K(s) = sum_j T_j log M_j(s), M_j the moment generating functions of the privacy losses
// (cumulant/cumulant.hpp), and any real tilt c > 0,
//
//   delta(eps) = (1/2 pi i) int_{Re s = c} e^{K(s) - s eps}/(s (s + 1)) ds.
//
// For -1 < c < 0 the same integral is delta(eps) - 1; it gives 1 - delta accurately where delta is
// near 1. The integral becomes a sum over nodes c + i k h. docs/core/contour.md proves what the sum
// may be off by:
//
//   error        comes from                                       bounded by
//   alias        the spacing h (only raises delta, for c > 0)     contour/alias_error.hpp
//   truncation   the last node                                    contour/line_sum.hpp
//   rounding     double precision, quadrature of the cumulants    contour/line_sum.hpp
//   smoothing    one more Gaussian step (only raises delta)       contour/smoothing.hpp
//   missing      losses beyond the cutoff (only lower delta)      contour/chernoff.hpp
//
// contour/strategy.hpp lists what is tried, in order. A value is a function of its arguments alone:
// nothing depends on the questions asked before. A bracket of epsilon is about 1e-10 wide,
// relatively; about 1e-7 where nodes are many.
#pragma once

#include <algorithm>
#include <limits>

#include <hockeystick/contour/few_jumps.hpp>
#include <hockeystick/contour/line_bracket.hpp>
#include <hockeystick/contour/sliced_contour.hpp>
#include <hockeystick/contour/strategy.hpp>
#include <hockeystick/contour/truncations.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// One direction of a ledger, repeated. Not for several threads at once.
class Contour {
  public:
    using Factory = Truncations::Factory;
    using Cutoffs = Truncations::Cutoffs;

    // `slices` may serve where lines have many nodes.
    Contour(Factory make, const Cutoffs& cutoffs, const simd::Kernels& kernels, OptionalSlices slices = {})
        : truncations_(std::move(make), kernels, cutoffs.default_one), cutoffs_(cutoffs), slices_(std::move(slices)),
          deep_slices_(slices_.deep()), summer_(kernels) {}

    // delta(eps) after `times` repetitions. A log gets one entry for each strategy that was tried,
    // in order.
    ContourResult delta(double times, double eps, StrategyLog* log = nullptr) {
        truncations_.evict_cutoffs(kept_cutoffs);
        TruncatedLedger& ledger = default_ledger();
        if (eps >= times * ledger.highest() * (1.0 + 1e-14)) return ContourResult::of_zero();
        const Question question{false, times, eps};
        if (!cutoffs_.matter) return try_strategies(question, cutoffs_.default_one, false, log);
        const double bound = log_chernoff(ledger.at(ledger.best_tilt(times, eps)), {times}, eps);
        const double far_below = bound - 8.0;
        ContourResult jumps;
        if (bound < log_deep_for_jumps && FewJumps::covers(slices_.sigma(), slices_.rate())) {
            jumps = by_few_jumps(times * slices_.steps(), eps);
            if (log) log->push_back({"few jumps", jumps.usable, jumps.lower, jumps.upper, 0});
            if (jumps.usable && jumps.log_upper < (jumps.knows_log() ? log_very_deep : log_smallest_delta))
                return with_log_known(jumps, question, log);
        }
        const ContourResult found =
            try_strategies(question, truncations_.tight_cutoff(times, far_below), bound < log_deep, log);
        return jumps.usable ? intersection(found, jumps) : found;
    }

    // The smallest epsilon >= 0 with delta(epsilon) <= delta; 0 < delta < 1.
    ContourResult epsilon(double times, double delta, StrategyLog* log = nullptr) {
        truncations_.evict_cutoffs(kept_cutoffs);
        const Question question{true, times, delta};
        if (!cutoffs_.matter) return try_strategies(question, cutoffs_.default_one, false, log);
        const double log_delta = std::log(delta);
        return try_strategies(question, truncations_.tight_cutoff(times, log_delta), log_delta < log_deep, log);
    }

    // Whether Chernoff's bound, or one sum over few nodes, says that delta(eps) <= e^{log_delta}.
    bool certainly_below(double times, double eps, double log_delta) {
        return contour::certainly_below(default_ledger(), summer_, times, eps, log_delta);
    }

    // Points visited so far, times nodes.
    double work() const { return summer_.work() + truncations_.work() + slices_.work() + deep_slices_.work(); }

    // What is kept for later questions.
    std::size_t bytes() const {
        return truncations_.bytes() + slices_.bytes() + deep_slices_.bytes() + summer_.bytes();
    }

  private:
    struct Question {
        bool for_epsilon;
        double times, value;  // eps, or the delta of which epsilon is asked
    };
    // What a strategy says, and whether the same line at a lower tilt may say more.
    struct Attempt {
        ContourResult result;
        bool lower_tilt_may_help = false;
    };

    static constexpr double log_deep_for_jumps = -200.0, log_very_deep = -231.0, log_smallest_delta = -691.0;
    static constexpr double log_deep = -42.0;       // below, usual slices do not reach the losses that make delta
    static constexpr std::size_t kept_cutoffs = 2;  // a question uses two besides the default one

    // What alias and truncation may be, each, relatively, as logarithms: less where nodes are few.
    static constexpr double sharp_tolerance = -28.0, tolerance_of_many_nodes = -21.0;
    static constexpr double smoothed_tolerance = -14.0;
    static double tolerance(const Strategy& strategy) {
        return strategy.smoothing.value > 0.0 ? smoothed_tolerance : sharp_tolerance;
    }

    // The narrowest bracket of the strategies, tried until it is good enough or below the doubles.
    ContourResult try_strategies(const Question& question, int tight, bool is_deep, StrategyLog* log) {
        const int wide = cutoffs_.matter ? std::max(tight + cutoffs_.margin, cutoffs_.default_one) : tight;
        if (cutoffs_.margin == 0) tight = wide;
        const bool deep = is_deep && deep_slices_;
        const StrategyChoice choice{wide, tight, deep || slices_, deep ? few_nodes : slices_.max_nodes(question.times),
                                    deep};
        ContourResult best;
        bool lower_tilt_may_help = false;
        for (const Strategy& strategy : strategies(choice)) {
            const bool at_lower_tilt = strategy.tilt_offset > 0;
            if (at_lower_tilt && !lower_tilt_may_help) continue;
            if (!at_lower_tilt && best.narrower_than(strategy.good_enough)) break;
            const Attempt attempt = answer(question, strategy, tight);
            const ContourResult& r = attempt.result;
            if (log) log->push_back({strategy.name, r.usable, r.lower, r.upper, r.nodes});
            best = narrower(best, r);
            if (!question.for_epsilon && best.usable && best.log_upper < log_smallest_delta) break;
            lower_tilt_may_help = attempt.lower_tilt_may_help;
        }
        return best;
    }

    Attempt answer(const Question& q, const Strategy& strategy, int tight) {
        switch (strategy.method) {
        case Strategy::Method::slices:
            return {q.for_epsilon ? slices_.epsilon(q.times, q.value) : slices_.delta(q.times, q.value)};
        case Strategy::Method::deep_slices:
            return {q.for_epsilon ? deep_slices_.epsilon(q.times, q.value) : deep_slices_.delta(q.times, q.value)};
        case Strategy::Method::chernoff:
            return {q.for_epsilon ? by_chernoff(tight, chernoff_epsilon, q) : by_chernoff(tight, chernoff_delta, q)};
        default:
            break;
        }
        TruncatedLedger& ledger = truncations_.at(strategy.loss_cutoff);
        return q.for_epsilon ? epsilon_by_line(ledger, q.times, q.value, strategy)
                             : delta_by_line(ledger, q.times, q.value, strategy);
    }

    template <class Bound> ContourResult by_chernoff(int tight, const Bound& bound, const Question& q) {
        const ContourResult usual = bound(default_ledger(), q.times, q.value);
        return tight == cutoffs_.default_one
                   ? usual
                   : with_smaller_upper(usual, bound(truncations_.at(tight), q.times, q.value));
    }

    TruncatedLedger& default_ledger() { return truncations_.at(cutoffs_.default_one); }

    static Attempt attempt_of(const ContourResult& found) {
        return {found, found.usable && found.dominated_by_rounding() && !found.narrower_than(narrow_width)};
    }

    // A very deep delta, known well enough; a short line or deep slices may sharpen it.
    ContourResult with_log_known(const ContourResult& known, const Question& q, StrategyLog* log) {
        const bool below_doubles = known.log_upper < log_smallest_delta;
        if (below_doubles && known.knows_log()) return known;
        const int tight = truncations_.tight_cutoff(q.times, known.log_upper - 8.0);
        const auto sharpened = [&](const ContourResult& r, const Strategy& strategy) {
            const ContourResult found = answer(q, strategy, tight).result;
            if (log) log->push_back({strategy.name, found.usable, found.lower, found.upper, found.nodes});
            return intersection(r, found);
        };
        const ContourResult by_line =
            sharpened(known, {"line", Strategy::Method::line, 0.0, std::max(tight, cutoffs_.default_one), few_nodes});
        if (below_doubles || !deep_slices_ || by_line.narrower_than(enough_for_deep_delta)) return by_line;
        return sharpened(by_line, {"deep slices", Strategy::Method::deep_slices, narrow_width});
    }

    ContourResult by_few_jumps(double steps, double eps) {
        const auto bulk_delta = [&](TruncatedLedger& bulk, double bulk_steps, double r) {
            const double times = bulk_steps / bulk.count();
            const int best = bulk.best_tilt(times, r);
            const double bound = log_chernoff(bulk.at(best), {times}, r);
            const Strategy rough{"bulk", Strategy::Method::line, 0.0, 0, few_nodes};
            const ContourResult found = delta_at_tilt(bulk, best, times, r, bound - 3.0, rough);
            return found.usable ? found.log_lower : -infinity;
        };
        return FewJumps(slices_.sigma(), slices_.rate(), steps, eps).bracket(truncations_, bulk_delta);
    }

    Attempt delta_by_line(TruncatedLedger& ledger, double times, double eps, const Strategy& strategy) {
        const int best = ledger.best_tilt(times, eps);
        const double bound = log_chernoff(ledger.at(best), {times}, eps);
        if (bound > -0.7) {  // delta is large, or all of it: then the line may be one for 1 - delta
            const int negative = ledger.best_negative_tilt(times, eps);
            const double other = log_chernoff(ledger.at(negative), {times}, eps);
            if (other < bound) return {complement_by_line(ledger, negative, times, eps, other, strategy)};
        }
        const int tilt_index = best - strategy.tilt_offset;
        if (tilt_index < TiltGrid::first_positive) return {};
        return attempt_of(delta_at_tilt(ledger, tilt_index, times, eps, bound - 3.0, strategy));
    }

    // Errors are allowed in proportion to delta. The first guess of delta, e^{log_value}, comes
    // from Chernoff's bound; where the sum says that delta is much smaller, a sharper line is
    // chosen.
    ContourResult delta_at_tilt(TruncatedLedger& ledger, int tilt_index, double times, double eps, double log_value,
                                const Strategy& strategy) {
        const double width = strategy.smoothing.value;
        const auto make_line = [&](int index) {
            const Repeated repeated{times, smoothing_at(ledger, index, strategy.smoothing, width)};
            return choose_line(ledger, index, repeated, eps, log_value + tolerance(strategy));
        };
        ContourResult best;
        for (int attempt = 0; attempt < 4; ++attempt) {
            Line line = line_with_fewest_nodes(tilt_index, eps, 3.0, strategy.max_nodes, make_line);
            if (line.node_count > strategy.max_nodes || !line.prepare()) return best;
            const LineSum s = summer_(line, eps);
            best = narrower(best, delta_bracket(summer_, line, s, eps));
            if (best.relative_width() < max(1e-10, 2.0 * width) || !best.improvable_by_more_nodes()) break;
            if (!(s.value > 0.0)) break;
            const double next = s.log_unit + std::log(s.value) - 1.0;
            if (!(next < log_value - 0.5)) break;
            log_value = next;
        }
        return best;
    }

    ContourResult complement_by_line(TruncatedLedger& ledger, int tilt_index, double times, double eps,
                                     double log_value, const Strategy& strategy) {
        const double log_allowed = max(log_value, -40.0) - 3.0 + tolerance(strategy);
        const double smoothing = smoothing_at(ledger, tilt_index, strategy.smoothing, strategy.smoothing.value);
        Line line = choose_line(ledger, tilt_index, {times, smoothing}, eps, log_allowed);
        if (!line.prepare()) return {};
        return complement_bracket(summer_, line, eps);
    }

    Attempt epsilon_by_line(TruncatedLedger& ledger, double times, double delta, const Strategy& strategy) {
        const double log_delta = std::log(delta);
        const int best = ledger.best_tilt_for_delta(times, log_delta);
        const double upper = ledger.chernoff_epsilon(best, {times}, log_delta);
        if (!(upper > 0.0)) return at_zero(ledger, times, delta, strategy);
        const int tilt_index = best - strategy.tilt_offset;
        if (tilt_index < TiltGrid::first_positive) return {};
        return epsilon_at_tilt(ledger, tilt_index, times, delta, upper, strategy);
    }

    // The first line is chosen for Chernoff's epsilon, which is too large to judge its errors by;
    // the second for the root of the first.
    Attempt epsilon_at_tilt(TruncatedLedger& ledger, int tilt_index, double times, double delta, double eps,
                            const Strategy& strategy) {
        const double log_delta = std::log(delta), width = strategy.smoothing.value;
        // Rounding is about T e^growth 1e-13.
        const double max_growth = max(9.0 - std::log(times * ledger.count()), 4.0);
        ContourResult best;
        double log_tolerance = tolerance(strategy);
        for (int attempt = 0; attempt < 2; ++attempt) {
            const auto make_line = [&](int index) {
                const double c = ledger.at(index).c, allowed = width > 0.0 ? max(width * eps, 1e-10) : 0.0;
                const Repeated repeated{times, smoothing_at(ledger, index, strategy.smoothing, c * allowed)};
                return choose_line(ledger, index, repeated, eps, log_delta + log_tolerance);
            };
            Line line = make_line(tilt_index);
            if (line.node_count > few_nodes) {
                log_tolerance = max(log_tolerance, tolerance_of_many_nodes);
                line = line_with_fewest_nodes(tilt_index, eps, max_growth, strategy.max_nodes, make_line);
            }
            if (line.node_count > strategy.max_nodes || !line.prepare()) break;
            const double root = summer_.root(line, log_delta, eps);
            if (root <= 0.0) return at_zero(ledger, times, delta, strategy);
            if (!(root < infinity)) break;
            best = narrower(best, epsilon_bracket(summer_, line, delta, root));
            const double wanted = max(log_tolerance == sharp_tolerance ? 1e-10 : 1e-7, 2.0 * width);
            if (best.narrower_than(wanted) || !best.improvable_by_more_nodes()) break;
            eps = root;
        }
        return attempt_of(best);
    }

    // Says only whether epsilon is 0: whether delta(0) is at most delta.
    Attempt at_zero(TruncatedLedger& ledger, double times, double delta, const Strategy& strategy) {
        Attempt attempt = delta_by_line(ledger, times, 0.0, strategy);
        ContourResult& r = attempt.result;
        r.usable = r.usable && r.upper <= delta;
        r.lower = r.upper = 0.0;
        attempt.lower_tilt_may_help = attempt.lower_tilt_may_help && !r.usable;
        return attempt;
    }

    Truncations truncations_;
    Cutoffs cutoffs_;
    OptionalSlices slices_, deep_slices_;
    LineSummer summer_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
