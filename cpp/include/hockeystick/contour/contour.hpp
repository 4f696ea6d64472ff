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
//   alias        the spacing h (only raises delta, for c > 0)     contour/line_choice.hpp
//   truncation   the last node                                    contour/line_sum.hpp
//   rounding     double precision, quadrature of the cumulants    contour/line_sum.hpp
//   smoothing    one more Gaussian step (only raises delta)       contour/line_sum.hpp
//   missing      losses beyond the cutoff (only lower delta)      contour/line_bracket.hpp
//
// contour/strategy.hpp lists what is tried, in order. A value is a function of its arguments alone:
// nothing depends on the questions asked before. A bracket of epsilon is about 1e-10 wide,
// relatively; about 1e-7 where nodes are many.
#pragma once

#include <algorithm>
#include <limits>

#include <hockeystick/contour/jump_bounds.hpp>
#include <hockeystick/contour/line_bracket.hpp>
#include <hockeystick/contour/slices.hpp>
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
        : truncations_(std::move(make), kernels, cutoffs.default_cutoff), cutoffs_(cutoffs), slices_(std::move(slices)),
          deep_slices_(slices_.deep()), lines_(kernels) {}

    // delta(eps) after `times` repetitions. A log gets one entry for each strategy that was tried,
    // in order.
    ContourResult delta(double times, double eps, StrategyLog* log = nullptr) {
        truncations_.evict_cutoffs(kept_cutoffs);
        TruncatedLedger& ledger = default_ledger();
        if (eps >= times * ledger.highest() * (1.0 + 1e-14)) return ContourResult::of_zero();
        const Question question{false, times, eps};
        if (!cutoffs_.any) return try_strategies(question, cutoffs_.default_cutoff, false, log);
        const double bound = log_chernoff(ledger.at(ledger.best_tilt(times, eps)), {times}, eps);
        ContourResult jumps;
        const bool may_jump = JumpBounds::covers(slices_.sigma(), slices_.rate());
        if (bound < JumpBounds::log_deep && may_jump) {
            jumps = by_jump_bounds(question, log);
            const double enough = jumps.knows_log() ? log_very_deep_delta : log_smallest_delta;
            if (jumps.usable && jumps.log_upper < enough) return with_log_known(jumps, question, log);
        }
        const ContourResult found =
            try_strategies(question, truncations_.tight_cutoff(times, bound - 8.0), bound < log_deep, log);
        if (!jumps.usable && may_jump && bound < JumpBounds::log_rare && !found.narrower_than(fairly_narrow_width))
            jumps = by_jump_bounds(question, log);
        return jumps.usable ? intersection(found, jumps) : found;
    }

    // The smallest epsilon >= 0 with delta(epsilon) <= delta; 0 < delta < 1.
    ContourResult epsilon(double times, double delta, StrategyLog* log = nullptr) {
        truncations_.evict_cutoffs(kept_cutoffs);
        const Question question{true, times, delta};
        if (!cutoffs_.any) return try_strategies(question, cutoffs_.default_cutoff, false, log);
        const double log_delta = std::log(delta);
        return try_strategies(question, truncations_.tight_cutoff(times, log_delta), log_delta < log_deep, log);
    }

    // Whether Chernoff's bound, or one sum over few nodes, says that delta(eps) <= e^{log_delta}.
    bool certainly_below(double times, double eps, double log_delta) {
        return lines_.certainly_below(default_ledger(), times, eps, log_delta);
    }

    // Points visited so far, times nodes.
    double work() const { return lines_.work() + truncations_.work() + slices_.work() + deep_slices_.work(); }

    // What is kept for later questions.
    std::size_t bytes() const { return truncations_.bytes() + slices_.bytes() + deep_slices_.bytes() + lines_.bytes(); }

  private:
    struct Question {
        bool for_epsilon;
        double times, value;  // eps, or the delta of which epsilon is asked
    };
    static constexpr double log_deep = -42.0;       // below, usual slices do not reach the losses that make delta
    static constexpr std::size_t kept_cutoffs = 2;  // a question uses two besides the default one

    // The narrowest bracket of the strategies, tried until it is good enough or below the doubles.
    ContourResult try_strategies(const Question& question, int tight, bool is_deep, StrategyLog* log) {
        const int wide = cutoffs_.any ? std::max(tight + cutoffs_.margin, cutoffs_.default_cutoff) : tight;
        if (cutoffs_.margin == 0) tight = wide;
        const bool deep = is_deep && deep_slices_;
        const StrategyChoice choice{wide, tight, deep || slices_, deep ? few_nodes : slices_.max_nodes(question.times),
                                    deep};
        const LineAttempt first = attempt(question, first_strategy(choice), tight, log);
        const bool below_doubles =
            !question.for_epsilon && first.result.usable && first.result.log_upper < log_smallest_delta;
        if (below_doubles || first.result.narrower_than(narrow_width)) return first.result;
        return try_others(question, choice, first, log);
    }

    ContourResult try_others(const Question& question, const StrategyChoice& choice, const LineAttempt& first,
                             StrategyLog* log) {
        const std::vector<Strategy> all = strategies(choice);
        ContourResult best = first.result;
        bool lower_tilt_may_help = first.lower_tilt_may_help;
        for (auto strategy = all.begin() + 1; strategy != all.end(); ++strategy) {
            const bool at_lower_tilt = strategy->tilt_offset > 0;
            if (at_lower_tilt && !lower_tilt_may_help) continue;
            if (!at_lower_tilt && best.narrower_than(strategy->good_enough)) break;
            // A line cannot lower delta's upper end to less than what its cutoff leaves out.
            const bool line_of_delta = !question.for_epsilon && strategy->method == Strategy::Method::line;
            if (line_of_delta && best.usable &&
                log_missing(truncations_.at(strategy->loss_cutoff), question.times) > best.log_upper)
                continue;
            const LineAttempt next = attempt(question, *strategy, choice.tight_cutoff, log);
            best = narrower(best, next.result);
            if (!question.for_epsilon && best.usable && best.log_upper < log_smallest_delta) break;
            lower_tilt_may_help = next.lower_tilt_may_help;
        }
        return best;
    }

    LineAttempt attempt(const Question& question, const Strategy& strategy, int tight, StrategyLog* log) {
        const LineAttempt made = answer(question, strategy, tight);
        const ContourResult& r = made.result;
        if (log) log->push_back({strategy.name, r.usable, r.lower, r.upper, r.nodes});
        return made;
    }

    LineAttempt answer(const Question& q, const Strategy& strategy, int tight) {
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
        return q.for_epsilon ? lines_.epsilon(ledger, q.times, q.value, strategy)
                             : lines_.delta(ledger, q.times, q.value, strategy);
    }

    template <class Bound> ContourResult by_chernoff(int tight, const Bound& bound, const Question& q) {
        const ContourResult usual = bound(default_ledger(), q.times, q.value);
        return tight == cutoffs_.default_cutoff
                   ? usual
                   : with_smaller_upper(usual, bound(truncations_.at(tight), q.times, q.value));
    }

    TruncatedLedger& default_ledger() { return truncations_.at(cutoffs_.default_cutoff); }

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
        const ContourResult by_line = sharpened(
            known, {"line", Strategy::Method::line, 0.0, std::max(tight, cutoffs_.default_cutoff), few_nodes});
        if (below_doubles || !deep_slices_ || by_line.narrower_than(enough_for_deep_delta)) return by_line;
        return sharpened(by_line, {"deep slices", Strategy::Method::deep_slices, narrow_width});
    }

    ContourResult by_jump_bounds(const Question& q, StrategyLog* log) {
        const auto bulk_delta = [&](TruncatedLedger& bulk, double bulk_steps, double r) {
            const double times = bulk_steps / bulk.count();
            const int best = bulk.best_tilt(times, r);
            const double guess = log_chernoff(bulk.at(best), {times}, r) - 3.0;
            const ContourResult found =
                lines_.delta_at_tilt(bulk, best, times, r, guess, {"bulk", {}, 0.0, 0, few_nodes});
            return found.usable ? found.log_lower : -infinity;
        };
        const JumpBounds jumps(slices_.sigma(), slices_.rate(), q.times * slices_.steps(), q.value);
        const ContourResult found = jumps.bracket(truncations_, bulk_delta);
        if (log) log->push_back({"few jumps", found.usable, found.lower, found.upper, 0});
        return found;
    }

    Truncations truncations_;
    Cutoffs cutoffs_;
    OptionalSlices slices_, deep_slices_;
    LineBrackets lines_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
