// One line Re s = c of a contour integral: which line a question is summed on, its sum, and what the
// sum errs by. docs/core/contour.md has the theorems.
//
// The line is its tilt c, the spacing h of its nodes and its last frequency. The tilt is usually
// where Chernoff's bound is smallest. The spacing follows from the bound of the alias, which comes
// first here, the last frequency from that of the truncation; both are rounded to the grids of
// contour/truncated_ledger.hpp. Then comes the sum
//
//   S = (h/pi) (F_0/2 + sum_{k >= 1} Re F_k),
//   F_k = phi(k h)^T e^{-i k h eps}/(s_k (s_k + 1)),
//   s_k = c + i k h,   phi(omega) = M(c + i omega)/M(c),
//
// in units of e^{K(c) - c eps}. But for truncation and rounding, S is an upper bound of delta (c >
// 0) or of 1 - delta (c < 0). Last comes smoothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/contour/truncated_ledger.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/numeric/rounding.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// The alias of a contour sum: what the sum has beyond delta(eps), by Poisson's formula with period
// D = 2 pi/h,
//
//   alias = sum_{n != 0} e^{c n D} delta(eps + n D).
//
// Each term is bounded by Chernoff's bound at another tilt c' of the same ledger, c' > c for n > 0
// and c' < c for n < 0; the bounds are geometric series in n. docs/core/contour.md has the theorem
// and its proof ("The sum, and its alias").

namespace tune {
inline constexpr double least_fall = 1.0;   // of the first alias's bound, in logarithms: the series then adds 0.6 of it
inline constexpr double few_nodes = 800.0;  // a line of fewer is not worth a search for one with fewer still
inline constexpr double hopeless = 4.0;     // times the nodes that are allowed: no lower tilt makes up for that
inline constexpr double may_rise = 1.5;     // from one tilt to the next, on the way to fewer nodes
inline constexpr double least_turns = 10.0;  // smoothing of tau = 10/Omega leaves e^-50 at the frequency Omega
}  // namespace tune

// Which sum: the question, and the tilt of the line.
struct AliasedSum {
    TruncatedLedger& ledger;
    int tilt_index;
    Repeated repeated;
    double eps;

    bool tilt_is_positive() const { return tilt_index >= TiltGrid::first_positive; }

    // From this period on, eps - D lies below all losses, so that the terms n < 0 are known and
    // need no bound.
    double known_period() const {
        const bool known = tilt_is_positive() && repeated.smoothing == 0.0;
        return known ? (eps - repeated.times * ledger.least_loss()) * sound::known_period : infinity;
    }

    // Another tilt c': a value asked of it, |c' - c|, and the log of Chernoff's bound there.
    struct OtherTilt {
        double value, distance, log_bound;
    };

    // The tilt c' of smallest value(|c' - c|, log of Chernoff's bound at c') on one side of c;
    // direction 1 means c' > c. Besides the tilts of the grid, the ends of the range are tried: c'
    // = 0, where the bound is 1, and c' = -1, where it is e^eps. The bound's logarithm is convex in
    // c'. Hence values that grow with it, less or over a multiple of the distance, fall and then
    // rise, and a walk downhill may start anywhere.
    template <class Value> OtherTilt best_tilt_beside(int direction, const Value& value) const {
        const OtherTilt best = best_on_grid(direction, value);
        if (tilt_is_positive() && direction > 0) return best;
        const bool at_zero = tilt_is_positive() || direction > 0;
        const double distance = std::fabs((at_zero ? 0.0 : -1.0) - ledger.at(tilt_index).c);
        const double log_bound = at_zero ? 0.0 : eps;
        const double found = value(distance, log_bound);
        return found < best.value ? OtherTilt{found, distance, log_bound} : best;
    }

  private:
    // How many indices away tilts are tried. Most walks from the seventh are short.
    static constexpr int offsets[] = {1,  2,   3,   5,   7,   10,  14,  19,  26,  35,   47,  63,
                                      85, 114, 153, 205, 274, 366, 489, 653, 871, 1162, 1550};
    static constexpr int offset_count = 23, usual_start = 6;

    template <class Value> OtherTilt best_on_grid(int direction, const Value& value) const {
        const int first = tilt_is_positive() ? TiltGrid::first_positive : TiltGrid::lowest;
        const int last = tilt_is_positive() ? TiltGrid::last_positive : TiltGrid::last_negative;
        const int room = direction > 0 ? last - tilt_index : tilt_index - first;
        OtherTilt best{infinity, 0.0, 0.0};
        if (room <= 0) return best;
        const double c = ledger.at(tilt_index).c;
        const auto at_offset = [&](int offset) {
            const TiltedMoment& other = ledger.at(tilt_index + direction * offset);
            const double distance = std::fabs(other.c - c), log_bound = log_chernoff(other, repeated, eps);
            return OtherTilt{value(distance, log_bound), distance, log_bound};
        };
        int start = usual_start;
        while (start > 0 && offsets[start] > room) --start;
        best = at_offset(offsets[start]);
        const auto walk = [&](int step) {  // inwards also on through tilts that have no moment
            for (int at = start + step; at >= 0 && at < offset_count && offsets[at] <= room; at += step) {
                const OtherTilt there = at_offset(offsets[at]);
                if (!(there.value < best.value || (step < 0 && best.value == infinity))) return at - step;
                best = there;
            }
            return start + step;
        };
        if (walk(1) == start) walk(-1);
        return best;
    }
};

// A period for which the terms n > 0 together, and the terms n < 0 together, are below 1.6
// e^{log_allowed}.
inline double needed_period(const AliasedSum& sum, double log_allowed) {
    const auto need = [&](double distance, double log_bound) {
        return max(log_bound - log_allowed, tune::least_fall) / distance;
    };
    const double right = sum.best_tilt_beside(1, need).value, known = sum.known_period();
    if (known > 0.0 && known <= right) return right;
    const double left = sum.best_tilt_beside(-1, need).value;
    return max(right, known > 0.0 ? min(known, left) : left);
}

// An upper bound of the alias in units of e^{log_unit}, without terms that are known.
inline double alias_error(const AliasedSum& sum, double period, double log_unit) {
    const auto series = [&](int direction) {
        const auto log_series = [&](double distance, double log_bound) {  // nearly
            const double fall = distance * period;
            return log_bound - fall - (fall < 1.0 ? std::log(fall) : 0.0);
        };
        const AliasedSum::OtherTilt at = sum.best_tilt_beside(direction, log_series);
        if (!(at.value < infinity)) return infinity;
        const double fall = at.distance * period;
        // The exponent is a small difference of larger numbers: T K(c'), c' eps, and the unit.
        const double other_tilt = std::fabs(sum.ledger.at(sum.tilt_index).c) + at.distance;
        const double sizes = std::fabs(at.log_bound) + 2.0 * other_tilt * std::fabs(sum.eps) + std::fabs(log_unit);
        const double slack = 1.0 + eight_roundings * (sizes + fall + 8.0);
        return std::exp(at.log_bound - log_unit - fall) / -std::expm1(-fall) * slack;
    };
    return series(1) + (period >= sum.known_period() ? 0.0 : series(-1));
}

struct Line {
    TruncatedLedger* ledger;
    int tilt_index;
    Repeated repeated;
    int spacing_index = 0, cutoff_index = 0;
    double node_count = infinity;
    double log_decay = 0.0;  // bounds log |phi^T| beyond the last node
    const LineNodes* nodes = nullptr;

    // Makes the nodes; false where that is out of proportion.
    bool prepare() {
        if (node_count > std::exp2(log2_max_nodes)) return false;
        nodes = &ledger->nodes(tilt_index, spacing_index, cutoff_index, repeated.smoothing);
        return nodes->usable;
    }

    const TiltedMoment& moment() const { return ledger->at(tilt_index); }
    double period() const { return 2.0 * pi / nodes->h; }
};

// Sets the first frequency beyond which the truncation error is below e^{log_allowed}: by the decay
// of the ledger's characteristic function, times that of the smoothing where there is one.
// Either falls with omega, at first about like -omega^2 variance/2. Hence any search finds the same
// frequency.
inline void choose_last_frequency(Line& line, double log_unit, double log_allowed) {
    const double smoothing = line.repeated.smoothing, times = line.repeated.times;
    const double end = line.ledger->decay_end(line.tilt_index);
    const auto log_beyond = [&](double frequency) {  // for all frequencies from there on
        return times * line.ledger->log_decay_beyond(line.tilt_index, frequency) -
               0.5 * (smoothing * frequency) * (smoothing * frequency);
    };
    const double beyond_end = end < infinity ? log_beyond(end) : -infinity;
    const auto log_decay = [&](int index) {
        const double frequency = frequency_at(index), turn = smoothing * frequency;
        if (!(frequency < end)) return log_beyond(frequency);
        const double here = times * line.ledger->log_decay(line.tilt_index, index) - 0.5 * turn * turn;
        return end < infinity ? log_sum(here, beyond_end) : here;
    };
    const double variance = smoothing > 0.0 ? smoothing * smoothing : times * line.ledger->variance_at(line.tilt_index);
    const double width = std::sqrt(max(2.0 * (log_unit - log_allowed), 1.0) / variance);
    // Frequencies from h on.
    const int first = -2 * line.spacing_index, last = first + 4 * log2_max_nodes;
    if (end < infinity && log_beyond(max(end, frequency_at(last))) == 0.0) return;  // the terms beyond `end` stay
    const double guess = std::ceil(4.0 * std::log2(min(max(width, 1e-60), 1e60)));
    const auto fall = [&](int index) {
        return Reached{-log_decay(index), log_unit - log_allowed - std::log(pi * frequency_at(index))};
    };
    const int above = first_reaching(fall, static_cast<int>(guess), first, last);
    if (above > last) return;
    line.cutoff_index = above;
    line.node_count = frequency_at(above) * std::exp2(0.5 * line.spacing_index);
    line.log_decay = log_decay(above);
}

// The coarsest line whose alias and truncation are each below e^{log_allowed}; of infinitely many
// nodes where there is none.
inline Line choose_line(TruncatedLedger& ledger, int tilt_index, const Repeated& repeated, double eps,
                        double log_allowed) {
    Line line{&ledger, tilt_index, repeated};
    const double period = needed_period({ledger, tilt_index, repeated, eps}, log_allowed);
    if (!(period < 1e200 && period > 1e-200)) return line;
    line.spacing_index = static_cast<int>(std::ceil(2.0 * std::log2(period / (2.0 * pi))));
    choose_last_frequency(line, log_unit(ledger.at(tilt_index), repeated, eps), log_allowed);
    return line;
}

// The line that make_line(tilt_index) chooses at this tilt, or at a lower one while that needs
// fewer nodes.
//
// When a few rare large losses dominate, the best tilt sits at a kink of Chernoff's bound. There
// the alias forces a small spacing and hence many nodes. A lower tilt is accepted then, as long as
// the unit of the sum, e^{K(c) - c eps}, grows by at most e^{max_growth}: rounding grows with it.
template <class MakeLine>
Line line_with_fewest_nodes(int tilt_index, double eps, double max_growth, double max_nodes,
                            const MakeLine& make_line) {
    const auto log_unit_of = [&](const Line& line) { return log_unit(line.moment(), line.repeated, eps); };
    Line best = make_line(tilt_index);
    if (best.node_count > tune::hopeless * max_nodes) return best;  // no lower tilt makes up for that
    const double max_log_unit = log_unit_of(best) + max_growth;
    for (int offset = 4;
         best.node_count > tune::few_nodes && offset <= 48 && tilt_index - offset >= TiltGrid::first_positive;
         offset += offset < 8 ? 4 : 8) {
        const Line next = make_line(tilt_index - offset);
        if (!(next.node_count < tune::may_rise * best.node_count && log_unit_of(next) <= max_log_unit)) break;
        if (next.node_count < best.node_count) best = next;
    }
    return best;
}

struct LineSum {
    double log_unit;      // everything else is in units of e^{log_unit}
    double value, slope;  // of delta, or of 1 - delta; its derivative by eps
    double truncation, rounding;

    double error() const { return truncation + rounding; }
    // S is a sum of terms >= 0 but for these errors: where it is negative beyond them, something is
    // wrong.
    bool possible() const { return value + truncation + rounding >= 0.0; }
};

// Takes one sum after the other in the same memory. Not for several threads at once.
class LineSummer {
  public:
    explicit LineSummer(const simd::Kernels& kernels) : kernels_(kernels) {}

    // S, without the aliases n < 0 where they are known.
    LineSum operator()(const Line& line, double eps) {
        LineSum s = sum(line, eps, line.nodes->kernel);
        subtract_known_aliases(line, eps, s);
        return s;
    }

    // The same sum without 1/(s (s + 1)): the density of the smoothed loss.
    LineSum density(const Line& line, double eps) { return sum(line, eps, line.nodes->density); }

    // The eps where the sum is nearly delta, one step of Newton's iteration away; infinity where it
    // is not found.
    double root(const Line& line, double log_delta, double start) {
        const auto f = [&](double eps) {
            const LineSum s = (*this)(line, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        try {
            const double guess = line.ledger->expected_epsilon(line.tilt_index, line.repeated, log_delta);
            const double from = guess > 0.3 * start && guess < start ? guess : start;
            const double near = newton_root(f, from, -infinity, infinity, false, 1e-4 * start);
            return near > 0.1 * start ? near : newton_root(f, near, -infinity, infinity, false, 1e-9 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    double work() const { return work_; }  // nodes visited so far
    std::size_t bytes() const { return 3 * terms_.capacity() * sizeof(double); }

  private:
    LineSum sum(const Line& line, double eps, const LineNodes::Factors& factors) {
        const LineNodes& t = *line.nodes;
        const std::size_t n = t.padded;
        for (auto* array : {&terms_, &slopes_, &errors_})
            if (array->size() < n) array->resize(n);  // only grow: resizing up and down fills with zeros
        const simd::Nodes nodes{t.phi.log_abs.data(),
                                t.phi.phase.data(),
                                t.phi.error.data(),
                                factors.real.data(),
                                factors.imag.data(),
                                factors.size.data(),
                                t.c,
                                t.h,
                                n};
        work_ += static_cast<double>(n);
        kernels_.fill_sum_terms(nodes, line.repeated.times, eps, terms_.data(), slopes_.data(), errors_.data());
        const double value = kernels_.sum(terms_.data(), n);
        const double slope = kernels_.sum(slopes_.data(), n);
        const double error = kernels_.sum(errors_.data(), n) * sound::summed;
        return with_errors(line, eps, value, slope, error);
    }

    // The unit e^{K(c) - c eps} errs as K does, times T, and by the roundings of the sum in its
    // exponent.
    static LineSum with_errors(const Line& line, double eps, double value, double slope, double error) {
        const LineNodes& t = *line.nodes;
        const TiltedMoment& m = line.moment();
        const double sign = t.c > 0.0 ? 1.0 : -1.0, scale = t.h / pi;
        const double power = line.repeated.times * m.value, smoothed = log_smoothing(t.c, line.repeated);
        const double sizes = std::fabs(power) + std::fabs(smoothed) + std::fabs(t.c * eps) + 8.0;
        const double unit_error = line.repeated.times * m.error + four_roundings * sizes;
        LineSum s;
        s.log_unit = power + smoothed - t.c * eps;
        s.value = sign * scale * value;
        s.slope = -sign * scale * slope;
        const double truncation = std::exp(line.log_decay) / (pi * static_cast<double>(t.n - 1) * t.h);
        s.truncation = truncation * std::exp(unit_error);
        s.rounding = scale * error + sound::padding * std::expm1(unit_error) * (std::fabs(s.value) + scale * error);
        return s;
    }

    // Where eps - D lies below all losses, delta(eps - n D) = 1 - e^{eps - n D}. The aliases n < 0
    // are then known, sum_{n >= 1} e^{-c n D} - e^{eps - (c + 1) n D}, up to T times the mass that
    // the cutoff left out.
    static void subtract_known_aliases(const Line& line, double eps, LineSum& s) {
        const double c = line.nodes->c, period = line.period();
        if (period < AliasedSum{*line.ledger, line.tilt_index, line.repeated, eps}.known_period()) return;
        const double ones = std::exp(-c * period - s.log_unit) / -std::expm1(-c * period);
        const double tails = std::exp(eps - (c + 1.0) * period - s.log_unit) / -std::expm1(-(c + 1.0) * period);
        s.value -= ones - tails;
        s.slope += tails;
        const double missing = line.repeated.times * std::exp(line.ledger->log_missing());
        const double sizes = 8.0 + (c + 1.0) * period + std::fabs(eps) + std::fabs(s.log_unit);
        s.rounding += (ones + tails) * (sound::padding * missing + four_roundings * sizes);
    }

    const simd::Kernels& kernels_;
    std::vector<double> terms_, slopes_, errors_;
    double work_ = 0.0;
};

// The alias of that sum, in its units.
inline double alias_error(const Line& line, double eps, double log_unit) {
    return alias_error({*line.ledger, line.tilt_index, line.repeated, eps}, line.period(), log_unit);
}

// Smoothing: one more Gaussian step of a small shift tau, which makes the terms of a contour sum
// decay.
//
// The characteristic function of a loss with atoms does not decay. With the step, the terms fall
// like e^{-tau^2 omega^2/2}. The step raises delta, by no more than tau^2 e^{tau^2/8} p(eps), p the
// density of the smoothed loss (docs/core/contour.md, "Smoothing"). That is second order in tau
// wherever the loss has a density of its own.

// What smoothing may widen a bracket by, relatively; 0 for none. `least`: by no more than the rest
// needs.
struct SmoothingWidth {
    double value = 0.0;
    bool least = false;
};

// The shift of the step that widens a bracket at tilt c by `width`, relatively, where p = c (c + 1)
// delta, as it nearly is at the saddle point. A power of sqrt 2, so that nodes may be shared; 0 for
// width 0.
inline double smoothing_for(double c, double width) {
    return width > 0.0 ? std::exp2(0.5 * std::floor(std::log2(width / std::fabs(c * (c + 1.0))))) : 0.0;
}

// At most that shift, but no more than leaves e^-50 at `decay_end`, from where on nothing is known
// of the law's own decay; 0 where it would have to be more.
inline double least_smoothing_for(double c, double width, double decay_end) {
    const double most = smoothing_for(c, width), least = tune::least_turns / decay_end;
    return least <= most && least > 0.0 ? min(most, std::exp2(0.5 * std::ceil(2.0 * std::log2(least)))) : 0.0;
}

// The shift of a kind of step at one of the ledger's tilts.
inline double smoothing_at(const TruncatedLedger& ledger, int tilt_index, const SmoothingWidth& kind, double width) {
    const double c = TiltGrid::tilt(tilt_index);
    return kind.least ? least_smoothing_for(c, width, ledger.decay_end(tilt_index)) : smoothing_for(c, width);
}

// What smoothing adds to delta, at most, in units of e^{log_unit}: p is the line's integral without
// 1/(s (s + 1)). The integral of e^{-tau^2 omega^2/2} beyond omega is less than that exponential
// over tau^2 omega.
inline double smoothing_error(LineSummer& summer, const Line& line, double eps) {
    const double variance = line.repeated.smoothing * line.repeated.smoothing;
    if (variance == 0.0) return 0.0;
    const LineSum density = summer.density(line, eps);
    const double value = (line.nodes->c > 0.0 ? density.value : -density.value) + density.rounding;
    const double bound = max(variance * value + density.truncation, 0.0);
    return std::exp(0.125 * variance) * bound * sound::smoothing;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
