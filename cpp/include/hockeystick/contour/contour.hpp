// delta(eps) of a composition by a contour integral, as a certified bracket whose cost does not grow with the steps.
//
// With K(s) = sum_j T_j log M_j(s) (cumulant/cumulant.hpp) and any real tilt c > 0,
//   delta(eps) = delta_inf + (1/2 pi i) int_{Re s = c} e^{K(s) - s eps}/(s(s+1)) ds;
// for -1 < c < 0 the same integral is delta(eps) - 1, which gives 1 - delta accurately where delta is near 1. On the
// nodes s_k = c + i k h the integral becomes S = (h/pi) (F_0/2 + sum_{k>=1} Re F_k). What S may be off by:
//
//   alias       Poisson's formula: S = sum_n e^{c u_n} delta(eps + u_n), u_n = 2 pi n/h, so S >= delta (c > 0). The
//               terms n != 0 are at most kappa(c') e^{K(c') - c' eps} e^{(c - c') u_n} at any other tilt c', c' < c for
//               n < 0 and c' > c for n > 0; kappa(c) = c^c/(1+c)^{1+c}, the largest (1 - e^{-x}) e^{-cx}. For c < 0 the
//               same holds for 1 - delta with kappa = 1 and c' in [-1, 0], by min(1, e^{-x}) <= e^{cx}.
//               Where D = 2 pi/h >= eps - T l, l the least loss of a step, the terms n < 0 are known, for delta(u) = 1 - e^u below
//               all losses: they are taken out, S -= sum_{n >= 1} e^{-c n D} - e^{eps - (c+1) n D}, up to T times what is
//               missing. That allows short periods at small tilts, where the largest losses are less heavy.
//   truncation  (1/pi) e^{K(c) - c eps} phi(omega)/omega beyond the last node, phi(omega) = prod_j sup_{omega' >= omega}
//               |phi_j(omega')|^{T_j} from Cumulant::log_decay, because |s(s+1)| >= omega^2.
//   rounding    and quadrature: Cumulant says what M(c + i omega) errs by, relatively; it is multiplied by T.
//   smoothing   none, or one more step, a Gaussian of shift tau, which makes the terms decay like e^{-tau^2 omega^2/2}. It
//               raises delta, by no more than tau^2 e^{tau^2/8} p(eps), p the density of the smoothed loss under P, which is
//               the same integral without 1/(s(s+1)): d theta_y(r)/dr = phi(y/r - r/2), and for r <= tau
//               phi(y/r - r/2)/r <= (tau/r) e^{tau^2/8} times the same at tau; integrate r dr from 0 to tau.
//   missing     P-mass that the cumulants left out: delta rises by at most T times it, and never falls.
//
// The tilt is where Chernoff's bound is smallest, or below that where it needs many nodes; h comes from the alias bound, in
// powers of sqrt 2; the number of nodes from the truncation bound, in powers of 2^{1/4}. A value is a function of its arguments
// alone: nothing depends on what was asked before. Where nodes are many, epsilon is good to 1e-7 or so of itself, not to 1e-10.
//
// epsilon(delta): Newton's iteration in log delta, whose slope comes from the same nodes; then both ends are moved until
// the certificate says that they are on their side.
//
// Where atoms or few, rare large losses keep phi from decaying, the sum without smoothing is out of proportion, or wide;
// then smoothing is chosen for a width of about 1e-4, relatively: second order in tau where the loss has a density.
#pragma once

#include <algorithm>
#include <limits>

#include <hockeystick/contour/line_sum.hpp>
#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/sliced_contour.hpp>
#include <hockeystick/contour/truncations.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// One direction of a ledger, repeated. Not for several threads at once.
class Contour {
  public:
    using Factory = ContourLevels::Factory;

    // `has_cut` says whether any cumulant depends on the cut; `slices` may serve where a line has many nodes.
    Contour(Factory make, bool has_cut, const simd::Kernels& kernels, Slices slices = {})
        : levels_(std::move(make), kernels), has_cut_(has_cut), slices_(std::move(slices)), sum_(kernels) {}

    // delta(eps) after `times` repetitions.
    ContourResult delta(double times, double eps) {
        forget_cuts(most_bytes);
        const Level& usual = at_cut(usual_cut);
        if (eps >= times * usual.highest() * (1.0 + 1e-14)) return ContourResult::of_zero();
        const int k = usual.best_tilt(times, eps);
        const int tight = has_cut_ ? tight_cut(times, usual.log_chernoff(k, {times}, eps) - 8.0) : usual_cut;
        const auto ask = [&](const Level& level, double width) {
            return delta(level, &level == &usual ? k : level.best_tilt(times, eps), times, eps, width);
        };
        const ContourResult found = best_of(times, tight, ask, [&] { return slices_.delta(times, eps); });
        if (found.usable) return found;
        return smaller(chernoff_delta(usual, times, eps), chernoff_delta(at_cut(tight), times, eps));
    }

    // The smallest epsilon >= 0 with delta(epsilon) <= delta; 0 < delta < 1.
    ContourResult epsilon(double times, double delta) {
        forget_cuts(most_bytes);
        const int tight = has_cut_ ? tight_cut(times, std::log(delta)) : usual_cut;
        const ContourResult found = best_of(
            times, tight, [&](const Level& level, double width) { return epsilon(level, times, delta, width); },
            [&] { return slices_.epsilon(times, delta); });
        if (found.usable) return found;
        const ContourResult rough = chernoff_epsilon(at_cut(usual_cut), times, delta);
        return smaller(rough, chernoff_epsilon(at_cut(tight), times, delta));
    }

    // Whether Chernoff's bound, or one sum over few nodes, says that delta(eps) <= e^{log_delta}.
    bool certainly_below(double times, double eps, double log_delta) {
        const Level& level = at_cut(usual_cut);
        const double missing = std::log(times) + level.log_missing();
        if (missing > log_delta - 1e-3 || log_delta > -0.2) return false;  // near 1, only 1 - delta tells
        const double allowed = log_delta + std::log1p(-std::exp(missing - log_delta)) - 1e-9;
        bool below = false;
        const int k = level.best_tilt(times, eps, [&](double value) { return below = below || value <= allowed; });
        if (below) return true;
        Line line = choose_line(level, k, {times}, eps, allowed + rough);
        if (line.nodes > few_nodes || !line.prepare()) return false;
        const Sum s = sum_(line, eps);  // whose alias is positive
        const double upper = s.value + s.truncation + s.rounding;
        return possible(s) && s.log_unit + std::log(upper) + 4.0 * u * (1.0 + std::fabs(s.log_unit)) <= allowed;
    }

    // Points visited so far, times nodes.
    double work() const { return sum_.work() + levels_.work() + slices_.work(); }

    std::size_t bytes() const { return levels_.bytes() + slices_.bytes() + sum_.bytes(); }  // kept for later questions
    void forget_cuts(std::size_t most) { levels_.forget_cuts(most); }

  private:
    using Level = ContourLevel;
    using Line = ContourLine;
    using Sum = ContourSum;
    static constexpr double narrow = 1e-6;  // relative: nothing else is tried for less
    static constexpr double few_nodes = 800.0;
    static constexpr int usual_cut = ContourLevels::usual_cut, margin = 8;
    static constexpr std::size_t most_bytes = 128000000;

    // Where large losses are heavy at the best tilt up to the cut, the cut itself is an error: a lower tilt has less of it.
    static constexpr int lower_tilts[] = {0, 4, 8, 13, 20};
    // What smoothing may widen a bracket by, relatively, where the loss has a density; then less, for where it has atoms.
    static constexpr double smoothed_widths[] = {1e-4, 4e-6};

    // The best of ask(level, width) with cuts from the usual to the tight one, where `width` is 0 without smoothing; by slices where a
    // line without smoothing would have too many nodes.
    template <class Ask, class BySlices>
    ContourResult best_of(double times, int tight, const Ask& ask, const BySlices& by_slices) {
        const Level& level = at_cut(std::max(tight + margin, usual_cut));
        most_nodes_ = slices_.most_nodes(times);
        ContourResult best = ask(level, 0.0);
        if (best.narrower_than(narrow)) return best;
        if (slices_) {
            best = narrower(best, by_slices());
            if (best.narrower_than(narrow)) return best;
            most_nodes_ = infinity;
            best = narrower(best, ask(level, 0.0));
        }
        const Level& closer = at_cut(tight);
        if (&closer != &level) best = narrower(best, ask(closer, 0.0));
        for (const double width : smoothed_widths) {
            if (best.narrower_than(1e-3)) break;
            best = narrower(best, ask(closer, width));
        }
        return best;
    }

    const Level& at_cut(int cut) { return levels_.at(has_cut_ ? cut : usual_cut); }

    // Smallest cut with T Q(cut) <= e^-30 delta, since what is missing is at most Q(cut) a step.
    // No more than 1e6, beyond which deltas have no use for it: it must be an integer.
    int tight_cut(double times, double log_delta) {
        const double mass = log_delta - 30.0 - std::log(times * at_cut(usual_cut).count());
        return static_cast<int>(std::ceil(min(std::sqrt(-2.0 * min(mass, -1.0)), 1e6)));
    }

    static ContourResult smaller(const ContourResult& x, const ContourResult& y) {
        return !x.usable || (y.usable && y.upper < x.upper) ? y : x;
    }

    // Chernoff's bounds, where the sum is out of proportion: upper ends that say much, lower ends that say nothing.
    static ContourResult chernoff_delta(const Level& level, double times, double eps) {
        const int k = level.best_tilt(times, eps);
        ContourResult r = ContourResult::of_zero();
        r.tilt = level.at(k).c;
        r.log_upper = min(log_sum(level.log_chernoff(k, {times}, eps), log_missing(level, times)) + 1e-9, 0.0);
        r.upper = std::exp(r.log_upper) * (1.0 + 4.0 * u) + std::numeric_limits<double>::denorm_min();
        r.usable = r.upper < 1.0;
        return r;
    }
    static ContourResult chernoff_epsilon(const Level& level, double times, double delta) {
        const double rest = 1.0 - times * std::exp(level.log_missing() - std::log(delta));
        ContourResult r;
        if (!(rest > 0.0)) return r;
        const double log_delta = std::log(delta) + std::log(rest) - 1e-9;
        const int k = level.best_tilt_for(times, log_delta);
        r.tilt = level.at(k).c;
        r.upper = max(level.chernoff_epsilon(k, {times}, log_delta), 0.0) * (1.0 + 1e-9);
        r.usable = r.upper < infinity;
        return r;
    }

    // By what smoothing adds to delta or to epsilon where p is c (c + 1) delta, on a grid, that nodes may be shared.
    static double smoothing_for(double c, double width) {
        return width > 0.0 ? std::exp2(0.5 * std::floor(std::log2(width / std::fabs(c * (c + 1.0))))) : 0.0;
    }

    // The line at tilt k, or at lower ones while these need fewer nodes. Few, rare large losses make the best tilt stand
    // where Chernoff's bound has a bend, whose alias asks for a long period. The sum's unit may grow by e^{most_growth} for that.
    template <class MakeLine>
    Line fewest_nodes(int k, double eps, double most_growth, const MakeLine& make_line) const {
        const auto log_unit = [&](const Line& line) { return line.level->log_unit(line.k, line.of, eps); };
        Line best = make_line(k);
        if (best.nodes > 4.0 * most_nodes_) return best;
        const double most = log_unit(best) + most_growth;
        for (int less = 4; best.nodes > few_nodes && less <= 48 && k - less >= Level::first_positive;
             less += less < 8 ? 4 : 8) {
            const Line next = make_line(k - less);
            if (!(next.nodes < 1.5 * best.nodes && log_unit(next) <= most)) break;
            if (next.nodes < best.nodes) best = next;
        }
        return best;
    }

    ContourResult delta(const Level& level, int k, double times, double eps, double width) {
        const double bound = level.log_chernoff(k, {times}, eps);
        if (bound > -0.7) {  // delta is large, or all of it: look from the other side
            const int other = level.best_complement(times, eps);
            const double below = level.log_chernoff(other, {times}, eps);
            if (below < bound) return complement(level, other, times, eps, below, width);
        }
        return with_less_tilt(k, [&](int less) { return delta_at(level, less, times, eps, bound - 3.0, width); });
    }

    template <class Ask> static ContourResult with_less_tilt(int k, const Ask& ask) {
        ContourResult best;
        for (const int less : lower_tilts) {
            if (k - less < Level::first_positive) break;
            const ContourResult found = ask(k - less);
            best = narrower(best, found);
            if (!found.usable || !found.spoilt() || found.narrower_than(narrow)) break;
        }
        return best;
    }

    // What alias and truncation may be, each, relatively: less where nodes are few.
    static constexpr double sharp = -28.0, sharp_with_many = -21.0, with_smoothing = -14.0, rough = -7.0;
    static double log_tolerance(double width) { return width > 0.0 ? with_smoothing : sharp; }

    ContourResult delta_at(const Level& level, int k, double times, double eps, double log_value, double width) {
        const auto make_line = [&](int tilt) {
            const Repeated of{times, smoothing_for(level.at(tilt).c, width)};
            return choose_line(level, tilt, of, eps, log_value + log_tolerance(width));
        };
        ContourResult best;
        for (int attempt = 0; attempt < 4; ++attempt) {
            Line line = fewest_nodes(k, eps, 3.0, make_line);
            if (line.nodes > most_nodes_ || !line.prepare()) return best;
            const Sum s = sum_(line, eps);
            best = narrower(best, delta_result(line, s, eps));
            if (best.relative_width() < max(1e-10, 2.0 * width) || !best.by_nodes() || !(s.value > 0.0)) break;
            const double next = s.log_unit + std::log(s.value) - 1.0;
            if (!(next < log_value - 0.5)) break;
            log_value = next;
        }
        return best;
    }

    ContourResult epsilon(const Level& level, double times, double delta, double width) {
        const double log_delta = std::log(delta);
        const int best = level.best_tilt_for(times, log_delta);
        const double most = level.chernoff_epsilon(best, {times}, log_delta);
        if (!(most > 0.0)) return at_zero(level, times, delta, width);
        return with_less_tilt(best, [&](int k) { return epsilon_at(level, k, times, delta, most, width); });
    }

    ContourResult epsilon_at(const Level& level, int k, double times, double delta, double most, double width) {
        const double log_delta = std::log(delta);
        const double most_growth = max(9.0 - std::log(times * level.count()), 4.0);  // rounding: T e^growth 1e-13
        ContourResult best;
        double at = most, tolerance = log_tolerance(width);
        for (int attempt = 0; attempt < 2; ++attempt) {  // Chernoff's epsilon is too large to judge the errors by
            const auto make_line = [&](int tilt) {
                const double c = level.at(tilt).c, allowed = width > 0.0 ? max(width * at, 1e-10) : 0.0;
                const Repeated of{times, smoothing_for(c, c * allowed)};
                return choose_line(level, tilt, of, at, log_delta + tolerance);
            };
            Line line = make_line(k);
            if (line.nodes > few_nodes) {
                tolerance = max(tolerance, sharp_with_many);
                line = fewest_nodes(k, at, most_growth, make_line);
            }
            if (line.nodes > most_nodes_ || !line.prepare()) return best;
            const double root = sum_.root(line, log_delta, at);
            if (root <= 0.0) return at_zero(level, times, delta, width);
            if (!(root < infinity)) return best;
            best = narrower(best, ends(line, delta, root));
            if (best.narrower_than(max(tolerance == sharp ? 1e-10 : 1e-7, 2.0 * width)) || !best.by_nodes()) break;
            at = root;
        }
        return best;
    }

    static ContourResult shares(const Line& line, const Sum& s, double smoothing) {
        const double value = max(std::fabs(s.value), std::numeric_limits<double>::min());
        ContourResult r;
        r.alias = s.alias / value;
        r.truncation = s.truncation / value;
        r.rounding = s.rounding / value;
        r.smoothing = smoothing / value;
        r.missing = std::exp(log_missing(line) - s.log_unit) / value;
        r.nodes = line.table->n;
        r.tilt = line.table->c;
        r.usable = std::isfinite(s.value) && std::isfinite(s.error() + smoothing) && possible(s);
        return r;
    }

    // S is a sum of terms >= 0 but for these errors: elsewhere something is wrong.
    static bool possible(const Sum& s) { return s.value + s.truncation + s.rounding >= 0.0; }

    static double log_missing(const Level& level, double times) { return std::log(times) + level.log_missing() + 1e-9; }
    static double log_missing(const Line& line) { return log_missing(*line.level, line.of.times); }

    ContourResult delta_result(const Line& line, Sum s, double eps) {
        s.alias = alias_of(line, eps, s.log_unit);
        const double smoothing = sum_.smoothing_of(line, eps);
        ContourResult r = shares(line, s, smoothing);
        const double other = s.truncation + s.rounding;
        const double low = max(s.value - s.alias - smoothing - other, 0.0);
        const double high = max(s.value + other, 0.0);
        const double log_high = log_sum(s.log_unit + std::log(high), log_missing(line));
        r.set_delta(s.log_unit + std::log(low), log_high, s.log_unit);
        return r;
    }

    // By 1 - delta, of which S is an upper bound but for the other errors.
    ContourResult complement(const Level& level, int k, double times, double eps, double log_value, double width) {
        const double c = level.at(k).c;
        const double log_allowed = max(log_value, -40.0) - 3.0 + log_tolerance(width);
        Line line = choose_line(level, k, {times, smoothing_for(c, width)}, eps, log_allowed);
        if (!line.prepare()) return {};
        Sum s = sum_(line, eps);
        s.alias = alias_of(line, eps, s.log_unit);
        const double smoothing = sum_.smoothing_of(line, eps);
        ContourResult r = shares(line, s, smoothing);
        const double unit = std::exp(s.log_unit), other = unit * (s.truncation + s.rounding);
        const double low = max(unit * (s.value - s.alias) - other, 0.0);
        const double high = unit * (s.value + smoothing) + other + 1.01 * std::exp(log_missing(line));
        r.lower = max(1.0 - high - 2.0 * u, 0.0);
        r.upper = min(1.0 - low + 2.0 * u, 1.0);
        r.log_lower = std::log1p(-min(high, 1.0));
        r.log_upper = std::log1p(-low);
        return r;
    }

    // Says only whether epsilon is 0.
    ContourResult at_zero(const Level& level, double times, double delta, double width) {
        ContourResult r = this->delta(level, level.best_tilt(times, 0.0), times, 0.0, width);
        r.usable = r.usable && r.upper <= delta;
        r.lower = r.upper = 0.0;
        return r;
    }

    // Moves both ends from the root until the certificate holds.
    ContourResult ends(const Line& line, double delta, double root) {
        const auto on_side = [&](double eps, bool above) {  // is delta(eps) certainly on that side of delta?
            const Sum s = sum_(line, eps);
            const double log_target = std::log(delta) - s.log_unit;
            const double other = s.truncation + s.rounding + 4.0 * u * (2.0 + std::fabs(s.log_unit)) * s.value;
            if (!possible(s)) return false;
            if (above) return s.value + other + std::exp(log_missing(line) - s.log_unit) <= std::exp(log_target);
            const double raised = alias_of(line, eps, s.log_unit) + sum_.smoothing_of(line, eps);
            return s.value - raised - other >= std::exp(log_target);
        };
        Sum s = sum_(line, root);
        s.alias = alias_of(line, root, s.log_unit);
        const double smoothing = sum_.smoothing_of(line, root);
        ContourResult r = shares(line, s, smoothing);
        if (!(r.usable && s.value > 0.0)) return {};
        const double relative = s.error() / s.value + r.missing + 8.0 * u * (2.0 + std::fabs(s.log_unit));
        root -= (s.log_unit + std::log(s.value) - std::log(delta)) * s.value / s.slope;
        const double step = max(relative * s.value / std::fabs(s.slope), 2.0 * u * root);
        r.usable = false;
        double reach = step;
        for (int k = 0; k < 24 && !r.usable; ++k, reach *= 2.0) r.usable = on_side(r.upper = root + reach, true);
        bool found = false;
        reach = step + smoothing / std::fabs(s.slope);
        for (int k = 0; k < 24 && !found && root > reach; ++k, reach *= 1.0 + (k % 2 == 0 ? 0.1 : 1.0))
            found = on_side(r.lower = root - reach, false);
        if (!found) r.lower = 0.0;
        return r;
    }

    static constexpr double u = unit_roundoff;

    ContourLevels levels_;
    bool has_cut_;
    Slices slices_;
    double most_nodes_ = infinity;  // of a line, while there may be another way
    ContourSummer sum_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
