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
//   alias        the spacing h (only raises delta, for c > 0)     contour/line.hpp
//   truncation   the last node                                    contour/line.hpp
//   rounding     double precision, quadrature of the cumulants    contour/line.hpp
//   smoothing    one more Gaussian step (only raises delta)       contour/line.hpp
//   missing      losses beyond the cutoff (only lower delta)      contour/line_bracket.hpp
//
// `strategies` is the list of all that is tried, in order. A value is a function of its arguments
// alone: nothing depends on the questions asked before. A bracket of epsilon is about 1e-10 wide,
// relatively; about 1e-7 where nodes are many.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/contour/jump_bounds.hpp>
#include <hockeystick/contour/line_bracket.hpp>
#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/slices.hpp>
#include <hockeystick/contour/truncated_ledger.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// A question, and what the choice of strategies depends on.
struct ContourQuestion {
    bool for_epsilon;
    double times, value;   // eps, or the delta of which epsilon is asked
    bool smoothed = true;  // whether long smoothed lines are worth their time

    double log_bound = 0.0;                 // Chernoff's bound of log delta, or the log delta that is asked about
    int wide_cutoff = 0, tight_cutoff = 0;  // tight: the smallest loss cutoff whose missing mass does not matter
    bool slices = false;                    // whether the steps can be sliced
    bool deep = false;                      // delta is that small that slices must be deep ones (SliceShape)
    bool jumps = false;                     // whether JumpBounds covers the question
    double max_nodes = infinity;            // above which slices are less work than a line
};

namespace tune {
inline constexpr double narrow_for_slices = 1e-5;  // a bracket of slices that narrow is not worth a long line
inline constexpr double fairly_narrow = 1e-3;      // a bracket that narrow is not worth smoothing
inline constexpr double log_deep = -42.0;          // below, usual slices do not reach the losses that make delta
inline constexpr double log_below_bound = 8.0;     // delta may be that much below Chernoff's bound of it
inline constexpr double log_rounding = -66.0;      // a line errs by more than that, in its unit
inline constexpr std::size_t kept_cutoffs = 2;     // a question uses two besides the default one

// If the tilt that minimises Chernoff's bound gives much weight to losses just below the cutoff,
// rounding dominates. Lower tilts weigh those losses less; every line is followed by these, by
// indices, which are tried only then.
inline constexpr int tilt_offsets[] = {0, 4, 8, 13, 20};
}  // namespace tune

// One way to a bracket.
struct Strategy {
    enum class Method { jumps, line, slices, deep_slices, chernoff };
    // The search ends before this strategy where the best bracket is narrower than this, relatively.
    struct Enough {
        double usually, if_deep;
    };

    const char* name;
    Method method;
    bool (*applies)(const ContourQuestion&);
    Enough enough;
    bool at_tight_cutoff = false;  // of lines, as the next one; else at the wide cutoff
    LineLimits line{};             // 0 nodes: as many as the question's
};

// When a strategy applies.
namespace when {
using Question = const ContourQuestion&;
inline bool always(Question) { return true; }
inline bool sliced(Question q) { return q.slices; }
inline bool sliced_not_deep(Question q) { return q.slices && !q.deep; }
inline bool sliced_with_losses_cut(Question q) { return q.slices && q.tight_cutoff != q.wide_cutoff; }
inline bool losses_cut(Question q) { return !q.slices && q.tight_cutoff != q.wide_cutoff; }
inline bool far_down(Question q) { return q.jumps && q.log_bound < JumpBounds::log_deep; }
inline bool smoothed(Question q) { return q.smoothed && !far_down(q); }  // a smoothed law is not that deep
inline bool rare(Question q) { return q.jumps && q.log_bound < JumpBounds::log_rare; }
}  // namespace when

// All of them, in order (docs/core/contour.md, "Strategies"). One line without smoothing answers
// nearly all questions. The others are for ledgers whose sums decay slowly, whose losses have many
// scales, or whose largest losses carry most of the weight. A long line is always compared with one
// under the tight cutoff, which has less rounding. Slight smoothing is for laws on points whose own
// decay is known far out, the last one for atoms that lie far apart.
inline constexpr Strategy::Enough never_enough{0.0, enough_for_deep_delta}, when_narrow{narrow_width, narrow_width},
    when_narrow_for_slices{tune::narrow_for_slices, enough_for_deep_delta},
    when_fairly_narrow{tune::fairly_narrow, enough_for_deep_delta}, where_none_answers{infinity, infinity};
inline constexpr Strategy strategies[] = {
    {"few jumps", Strategy::Method::jumps, when::far_down, {}},
    {"line", Strategy::Method::line, when::always, never_enough, false, {0.0}},
    {"slices", Strategy::Method::slices, when::sliced_not_deep, when_narrow},
    {"deep slices", Strategy::Method::deep_slices, when::sliced, when_narrow},
    {"long line", Strategy::Method::line, when::sliced, when_narrow_for_slices},
    {"line, tight cutoff", Strategy::Method::line, when::sliced_with_losses_cut, never_enough, true},
    {"line, tight cutoff", Strategy::Method::line, when::losses_cut, when_narrow, true},
    {"slightly smoothed line", Strategy::Method::line, when::always, when_fairly_narrow, true, {1024.0, {5e-7, true}}},
    {"smoothed line", Strategy::Method::line, when::smoothed, when_fairly_narrow, true, {16384.0, {5e-7}}},
    {"smoothed line", Strategy::Method::line, when::smoothed, when_fairly_narrow, true, {32768.0, {1e-5}}},
    {"smoothed line", Strategy::Method::line, when::smoothed, when_fairly_narrow, true, {infinity, {1e-4}}},
    {"smoothed line", Strategy::Method::line, when::smoothed, when_fairly_narrow, true, {infinity, {4e-6}}},
    {"Chernoff's bound", Strategy::Method::chernoff, when::always, where_none_answers},
    {"few jumps", Strategy::Method::jumps, when::rare, {tune::fairly_narrow, tune::fairly_narrow}},
};

// One direction of a ledger, repeated. Not for several threads at once.
class Contour {
  public:
    using Factory = Truncations::Factory;
    using Cutoffs = Truncations::Cutoffs;

    // `slices` may serve where lines have many nodes.
    Contour(Factory make, const Cutoffs& cutoffs, const simd::Kernels& kernels, OptionalSlices slices = {})
        : truncations_(std::move(make), kernels, cutoffs.default_cutoff), cutoffs_(cutoffs), slices_(std::move(slices)),
          deep_slices_(slices_.deep()), kernels_(kernels), lines_(kernels) {}

    // delta(eps) after `times` repetitions, also by long smoothed lines if `smoothed`. A log gets one
    // entry for each strategy that was tried, in order.
    ContourResult delta(double times, double eps, StrategyLog* log = nullptr, bool smoothed = true) {
        truncations_.evict_cutoffs(tune::kept_cutoffs);
        TruncatedLedger& ledger = default_ledger();
        if (eps >= times * ledger.highest() * sound::beyond_highest) return ContourResult::of_zero();
        ContourQuestion question{false, times, eps, smoothed};
        if (!cutoffs_.any) return answer(question, log);
        question.log_bound = log_chernoff(ledger.at(ledger.best_tilt(times, eps)), {times}, eps);
        question.jumps = JumpBounds::covers(slices_.sigma(), slices_.rate());
        return answer(question, log);
    }

    // The smallest epsilon >= 0 with delta(epsilon) <= delta; 0 < delta < 1.
    ContourResult epsilon(double times, double delta, StrategyLog* log = nullptr, bool smoothed = true) {
        truncations_.evict_cutoffs(tune::kept_cutoffs);
        ContourQuestion question{true, times, delta, smoothed};
        question.log_bound = std::log(delta);
        return answer(question, log);
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
    // Walks the list. Jumps are kept apart: their bracket does not end the search, unless it is
    // that of a very deep delta, and is intersected with the narrowest of the others.
    ContourResult answer(ContourQuestion& q, StrategyLog* log) {
        choose_cutoffs(q);
        ContourResult best, jumps;
        bool ended = false;
        for (const Strategy& strategy : strategies) {
            if (!strategy.applies(q)) continue;
            const bool is_enough = best.narrower_than(q.deep ? strategy.enough.if_deep : strategy.enough.usually);
            if (strategy.method == Strategy::Method::jumps) {
                if (jumps.usable || is_enough) continue;
                jumps = logged({strategy.name}, by_jump_bounds(q), log);
                const double log_known = jumps.knows_log() ? log_very_deep_delta : log_smallest_delta;
                const bool alone = q.log_bound < JumpBounds::log_deep && jumps.log_upper < log_known;
                if (jumps.usable && alone) return sharpened(jumps, q, log);
                continue;
            }
            ended = ended || is_enough || below_doubles(q, best);
            if (!ended) try_at_tilts(strategy, q, jumps, best, log);
        }
        return jumps.usable ? intersection(best, jumps) : best;
    }

    void choose_cutoffs(ContourQuestion& q) {
        const double log_delta = q.for_epsilon ? q.log_bound : q.log_bound - tune::log_below_bound;
        const int tight = cutoffs_.any ? truncations_.tight_cutoff(q.times, log_delta) : cutoffs_.default_cutoff;
        q.wide_cutoff = cutoffs_.any ? std::max(tight + cutoffs_.margin, cutoffs_.default_cutoff) : tight;
        q.tight_cutoff = cutoffs_.margin == 0 ? q.wide_cutoff : tight;
        q.deep = cutoffs_.any && q.log_bound < tune::log_deep && deep_slices_;
        q.slices = q.deep || slices_;
        q.max_nodes = q.deep ? tune::few_nodes : slices_.max_nodes(q.times);
    }

    // The narrower of `best` and the strategy's bracket at its tilts.
    void try_at_tilts(const Strategy& strategy, const ContourQuestion& q, const ContourResult& jumps,
                      ContourResult& best, StrategyLog* log) {
        for (const int offset : tune::tilt_offsets) {
            const bool line_of_delta = !q.for_epsilon && strategy.method == Strategy::Method::line;
            if (line_of_delta && !line_may_help(truncations_.at(cutoff_of(strategy, q)), q, jumps, best)) return;
            const LineAttempt next = attempt(strategy, offset, q);
            logged({strategy.name, offset > 0}, next.result, log);
            best = narrower(best, next.result);
            // Slices follow a line of few nodes, and are less work than lower tilts of it.
            const bool slices_follow = q.slices && strategy.line.max_nodes == 0.0;
            if (!next.lower_tilt_may_help || below_doubles(q, best) || slices_follow) return;
        }
    }

    // A line cannot lower delta's upper end to less than what its cutoff leaves out, nor than what
    // rounding costs, which lower tilts make worse.
    static bool line_may_help(TruncatedLedger& ledger, const ContourQuestion& q, const ContourResult& jumps,
                              const ContourResult& best) {
        if (best.usable && log_missing(ledger, q.times) > best.log_upper) return false;
        if (!jumps.usable) return true;
        const double unit = log_unit(ledger.at(ledger.best_tilt(q.times, q.value)), {q.times}, q.value);
        return unit + tune::log_rounding <= jumps.log_upper;
    }

    LineAttempt attempt(const Strategy& strategy, int tilt_offset, const ContourQuestion& q) {
        switch (strategy.method) {
        case Strategy::Method::slices:
            return {by_slices(slices_, q)};
        case Strategy::Method::deep_slices:
            return {by_slices(deep_slices_, q)};
        case Strategy::Method::chernoff:
            return {q.for_epsilon ? by_chernoff(chernoff_epsilon, q) : by_chernoff(chernoff_delta, q)};
        default:
            break;
        }
        TruncatedLedger& ledger = truncations_.at(cutoff_of(strategy, q));
        LineLimits limits = strategy.line;
        limits.tilt_offset = tilt_offset;
        if (limits.max_nodes == 0.0) limits.max_nodes = q.max_nodes;
        return q.for_epsilon ? lines_.epsilon(ledger, q.times, q.value, limits)
                             : lines_.delta(ledger, q.times, q.value, limits);
    }

    // The search for epsilon begins at a guess by the saddle point of one line.
    ContourResult by_slices(OptionalSlices& slices, const ContourQuestion& q) {
        if (!q.for_epsilon) return slices.delta(q.times, q.value);
        TruncatedLedger& ledger = truncations_.at(q.wide_cutoff);
        const int best = ledger.best_tilt_for_delta(q.times, q.log_bound);
        return slices.epsilon(q.times, q.value, ledger.expected_epsilon(best, {q.times}, q.log_bound));
    }

    template <class Bound> ContourResult by_chernoff(const Bound& bound, const ContourQuestion& q) {
        const ContourResult usual = bound(default_ledger(), q.times, q.value);
        return q.tight_cutoff == cutoffs_.default_cutoff
                   ? usual
                   : with_smaller_upper(usual, bound(truncations_.at(q.tight_cutoff), q.times, q.value));
    }

    ContourResult by_jump_bounds(const ContourQuestion& q) {
        const auto bulk_delta = [&](TruncatedLedger& bulk, double bulk_steps, double r) {
            const double times = bulk_steps / bulk.count();
            const int best = bulk.best_tilt(times, r);
            const double guess = log_chernoff(bulk.at(best), {times}, r) - tune::log_below_chernoff;
            const ContourResult found = lines_.delta_at_tilt(bulk, best, times, r, guess, {tune::few_nodes});
            return found.usable ? found.log_lower : -infinity;
        };
        const JumpBounds jumps(slices_.sigma(), slices_.rate(), q.times * slices_.steps(), q.value, kernels_);
        return jumps.bracket(truncations_, bulk_delta);
    }

    // A very deep delta, known well enough; a short line or deep slices may sharpen it.
    ContourResult sharpened(const ContourResult& known, const ContourQuestion& q, StrategyLog* log) {
        const bool is_below_doubles = known.log_upper < log_smallest_delta;
        if (is_below_doubles && known.knows_log()) return known;
        const int tight = truncations_.tight_cutoff(q.times, known.log_upper - tune::log_below_bound);
        TruncatedLedger& ledger = truncations_.at(std::max(tight, cutoffs_.default_cutoff));
        const ContourResult line = lines_.delta(ledger, q.times, q.value, {tune::few_nodes}).result;
        const ContourResult by_line = intersection(known, logged({"line"}, line, log));
        if (is_below_doubles || !deep_slices_ || by_line.narrower_than(enough_for_deep_delta)) return by_line;
        return intersection(by_line, logged({"deep slices"}, by_slices(deep_slices_, q), log));
    }

    static const ContourResult& logged(Tried tried, const ContourResult& r, StrategyLog* log) {
        tried.usable = r.usable, tried.lower = r.lower, tried.upper = r.upper, tried.nodes = r.nodes;
        if (log) log->push_back(tried);
        return r;
    }

    static bool below_doubles(const ContourQuestion& q, const ContourResult& r) {
        return !q.for_epsilon && r.usable && r.log_upper < log_smallest_delta;
    }

    static int cutoff_of(const Strategy& strategy, const ContourQuestion& q) {
        return strategy.at_tight_cutoff ? q.tight_cutoff : q.wide_cutoff;
    }

    TruncatedLedger& default_ledger() { return truncations_.at(cutoffs_.default_cutoff); }

    Truncations truncations_;
    Cutoffs cutoffs_;
    OptionalSlices slices_, deep_slices_;
    const simd::Kernels& kernels_;
    LineBrackets lines_;
};

// The contour of a ledger: from the cumulants of its pairs.
inline bool has_contour(const Steps& steps) {
    return std::all_of(steps.begin(), steps.end(),
                       [](const CountedPair& step) { return step.pair->has_cumulant(1.0); });
}

inline Contour::Cutoffs cutoffs_of(const Steps& steps, Direction direction) {
    Contour::Cutoffs cutoffs;
    bool of_pieces = true;
    for (const CountedPair& step : steps) {
        if (!step.pair->has_cutoff(1.0, direction)) continue;
        cutoffs.any = true;
        of_pieces = of_pieces && step.pair->gaussian_noise().rate == 1.0;
    }
    return cutoffs.any && of_pieces ? Contour::Cutoffs::of_pieces() : cutoffs;
}

// Where `has_contour` holds.
inline Contour make_contour(const Steps& steps, Direction direction, const simd::Kernels& kernels) {
    const Contour::Cutoffs cutoffs = cutoffs_of(steps, direction);
    const CumulantTools tools{&kernels, std::make_shared<FourierWorkspace>()};
    const auto make = [steps, direction, tools](double cutoff) {
        std::vector<ContourPart> parts;
        for (const CountedPair& step : steps)
            parts.push_back({step.pair->cumulant(1.0, direction, cutoff, tools), step.count});
        return parts;
    };
    const Pair::GaussianNoise noise = steps[0].pair->gaussian_noise();
    if (steps.size() > 1 || direction == Direction::add || noise.rate == 1.0) return {make, cutoffs, kernels};
    return {make, cutoffs, kernels,
            OptionalSlices(noise.noise_multiplier, noise.rate, steps[0].count, SliceShape::usual(), kernels,
                           tools.workspace)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
