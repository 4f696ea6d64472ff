// The alias of a contour sum: what the sum has beyond delta(eps), by Poisson's formula with period
// D = 2 pi/h,
//
//   alias = sum_{n != 0} e^{c n D} delta(eps + n D).
//
// Each term is bounded by Chernoff's bound at another tilt c' of the same ledger, c' > c for n > 0
// and c' < c for n < 0; the bounds are geometric series in n. docs/core/contour.md has the theorem
// and its proof ("The sum, and its alias").
#pragma once

#include <hockeystick/contour/truncated_ledger.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
