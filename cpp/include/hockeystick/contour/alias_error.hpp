// The alias of a contour sum: what Poisson's formula adds to delta(eps) at the period D = 2 pi/h (contour/contour.hpp), bounded by
// Chernoff's bound at other tilts of the same ledger.
#pragma once

#include <hockeystick/contour/truncated_ledger.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

// The sum at tilt k.
struct AliasOf {
    const ContourLevel& level;
    int k;
    Repeated of;
    double eps;

    // From this period on the terms n < 0 are known (contour/contour.hpp).
    double known_from() const {
        const bool known = k >= ContourLevel::first_positive && of.smoothing == 0.0;
        return known ? (eps - of.times * level.least_loss()) * (1.0 + 1e-12) : infinity;
    }

    // A tilt on one side: how far it is from c, log of Chernoff's bound there, and what was asked of them.
    struct Beside {
        double value, distance, log_bound;
    };

    // The tilt of smallest value(|c' - c|, log of Chernoff's bound at c') on one side (+1: c' > c, the terms n > 0), the end of the
    // range, c' = 0 (where the bound is 1) or c' = -1 (e^eps), among them. The logarithm is convex in c': values that grow
    // with it, less or over a multiple of the distance, fall and then rise, and the walk downhill may start anywhere.
    template <class Value> Beside smallest(int direction, const Value& value) const {
        const bool positive = k >= ContourLevel::first_positive;
        const int first = positive ? ContourLevel::first_positive : ContourLevel::lowest;
        const int last = positive ? ContourLevel::last_positive : ContourLevel::middle + ContourLevel::reach;
        const int room = direction > 0 ? last - k : k - first;
        const double c = level.at(k).c;
        const auto beside = [&](int offset) {
            const ContourLevel::Tilt& other = level.at(k + direction * offset);
            const double distance = std::fabs(other.c - c), log_bound = ContourLevel::log_chernoff(other, of, eps);
            return Beside{value(distance, log_bound), distance, log_bound};
        };
        Beside best{infinity, 0.0, 0.0};
        if (room > 0) {
            int start = usual;
            while (start > 0 && offsets[start] > room) --start;
            best = beside(offsets[start]);
            const auto walk = [&](int step) {  // where no moment exists, back to where it does
                for (int at = start + step; at >= 0 && at < rungs && offsets[at] <= room; at += step) {
                    const Beside there = beside(offsets[at]);
                    if (!(there.value < best.value || (step < 0 && best.value == infinity))) return at - step;
                    best = there;
                }
                return start + step;
            };
            if (walk(1) == start) walk(-1);
        }
        if (positive && direction > 0) return best;
        const bool at_zero = positive || direction > 0;
        const double distance = std::fabs((at_zero ? 0.0 : -1.0) - c), log_bound = at_zero ? 0.0 : eps;
        const double found = value(distance, log_bound);
        return found < best.value ? Beside{found, distance, log_bound} : best;
    }

  private:
    // How many tilts away is tried, and where most walks are short.
    static constexpr int offsets[] = {1,  2,   3,   5,   7,   10,  14,  19,  26,  35,   47,  63,
                                      85, 114, 153, 205, 274, 366, 489, 653, 871, 1162, 1550};
    static constexpr int rungs = 23, usual = 6;
};

// A period at which the terms n > 0 and n < 0 are below 1.6 e^{log_allowed} each.
inline double needed_period(const AliasOf& alias, double log_allowed) {
    const auto need = [&](double distance, double log_bound) { return max(log_bound - log_allowed, 1.0) / distance; };
    const double right = alias.smallest(1, need).value, left = alias.known_from();
    if (left > 0.0 && left <= right) return right;
    const double below = alias.smallest(-1, need).value;
    return max(right, left > 0.0 ? min(left, below) : below);
}

// In units of e^{log_unit}: the geometric series over n.
inline double alias_error(const AliasOf& alias, double period, double log_unit) {
    const auto series = [&](int direction) {
        const auto log_series = [&](double distance, double log_bound) {  // nearly
            const double fall = distance * period;
            return log_bound - fall - (fall < 1.0 ? std::log(fall) : 0.0);
        };
        const AliasOf::Beside at = alias.smallest(direction, log_series);
        if (!(at.value < infinity)) return infinity;
        const double fall = at.distance * period;
        return std::exp(at.log_bound - log_unit - fall) / -std::expm1(-fall);
    };
    return series(1) + (period >= alias.known_from() ? 0.0 : series(-1));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
