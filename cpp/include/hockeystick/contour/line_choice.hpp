// Which line Re s = c a question is summed on: its tilt c, the spacing h of its nodes, its last
// frequency.
//
// The spacing follows from the bound of the alias, which comes first here, the last frequency from
// that of the truncation (docs/core/contour.md). Both are rounded to the grids of
// contour/line_grid.hpp. The tilt is usually where Chernoff's bound is smallest.
#pragma once

#include <algorithm>
#include <cmath>

#include <hockeystick/contour/truncated_ledger.hpp>

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
        return known ? (eps - repeated.times * ledger.least_loss()) * (1.0 + 1e-12) : infinity;
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
    const auto need = [&](double distance, double log_bound) { return max(log_bound - log_allowed, 1.0) / distance; };
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
        const double slack = 1.0 + 8.0 * unit_roundoff * (sizes + fall + 8.0);
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

// A line of fewer nodes is not worth a search for one with fewer still.
inline constexpr double few_nodes = 800.0;

// Sets the first frequency beyond which the truncation error is below e^{log_allowed}: by the decay
// of the ledger's characteristic function, times that of the smoothing where there is one.
// Either falls with omega, at first about like -omega^2 variance/2. Hence any search finds the same
// frequency; this one follows secants on logarithmic scales, and halves the range after five of
// them.
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
    int index = std::min(std::max(static_cast<int>(guess), first), last), below = first - 1, above = last + 1;
    int tried = 0, before = index;
    double log_before = 0.0;
    while (above - below > 1) {
        const double found = std::log2(max(-log_decay(index), 1e-300));
        const double wanted = max(log_unit - log_allowed - std::log(pi * frequency_at(index)), 1e-300);
        const bool enough = found >= std::log2(wanted);
        (enough ? above : below) = index;
        const double slope = index == before ? 0.5 : min(max((found - log_before) / (index - before), 0.1), 0.5);
        const double next = index + std::ceil(min(max((std::log2(wanted) - found) / slope, -64.0), 64.0));
        before = index;
        log_before = found;
        const bool halve = ++tried > 5 && below >= first && above <= last;
        index = halve ? (below + above) / 2 : std::min(std::max(static_cast<int>(next), below + 1), above - 1);
    }
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
    if (best.node_count > 4.0 * max_nodes) return best;  // no lower tilt makes up for that
    const double max_log_unit = log_unit_of(best) + max_growth;
    for (int offset = 4; best.node_count > few_nodes && offset <= 48 && tilt_index - offset >= TiltGrid::first_positive;
         offset += offset < 8 ? 4 : 8) {
        const Line next = make_line(tilt_index - offset);
        if (!(next.node_count < 1.5 * best.node_count && log_unit_of(next) <= max_log_unit)) break;
        if (next.node_count < best.node_count) best = next;
    }
    return best;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
