// The alias of a contour sum: what Poisson's formula adds to delta(eps) at the period D = 2 pi/h (contour.hpp), bounded by
// Chernoff's bound at other tilts of the same ledger.
#pragma once

#include <hockeystick/contour_level.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {
namespace detail {

// The sum at tilt k.
struct AliasOf {
    const ContourLevel& level;
    int k;
    Repeated of;
    double eps;

    // From this period on the terms n < 0 are known (contour.hpp).
    double known_from() const {
        const bool known = k >= ContourLevel::first_positive && of.smoothing == 0.0;
        return known ? (eps - of.times * level.least_loss()) * (1.0 + 1e-12) : infinity;
    }

    // Calls visit(|c' - c|, log of Chernoff's bound at c') for tilts on one side (+1: c' > c, the terms n > 0), from near to far,
    // until it returns false; then for the end of the range, c' = 0 (where the bound is 1) or c' = -1 (e^eps).
    template <class Visit> void each(int direction, const Visit& visit) const {
        const bool positive = k >= ContourLevel::first_positive;
        const int first = positive ? ContourLevel::first_positive : ContourLevel::lowest;
        const int last = positive ? ContourLevel::last_positive : ContourLevel::middle + ContourLevel::reach;
        const double c = level.at(k).c;
        for (int offset = 1; offset <= 2 * ContourLevel::reach; offset += 1 + offset / 3) {
            const int other = k + direction * offset;
            if (other < first || other > last) break;
            if (!visit(std::fabs(level.at(other).c - c), level.log_chernoff(other, of, eps))) break;
        }
        if (!positive || direction < 0) {
            const bool at_zero = positive || direction > 0;
            visit(std::fabs((at_zero ? 0.0 : -1.0) - c), at_zero ? 0.0 : eps);
        }
    }

    // The smallest value(distance, log_bound) on one side; it falls, then rises, from near to far.
    template <class Value> double smallest(int direction, const Value& value) const {
        double best = infinity;
        int worse = 0;
        each(direction, [&](double distance, double log_bound) {
            const double found = value(distance, log_bound);
            worse = found < best ? 0 : worse + 1;
            best = min(best, found);
            return worse < 3;
        });
        return best;
    }
};

// A period at which the terms n > 0 and n < 0 are below 1.6 e^{log_allowed} each.
inline double needed_period(const AliasOf& alias, double log_allowed) {
    const auto need = [&](double distance, double log_bound) { return max(log_bound - log_allowed, 1.0) / distance; };
    const double left = alias.known_from();
    return max(alias.smallest(1, need), left > 0.0 ? min(left, alias.smallest(-1, need)) : alias.smallest(-1, need));
}

// In units of e^{log_unit}: the geometric series over n.
inline double alias_error(const AliasOf& alias, double period, double log_unit) {
    const auto series = [&](double distance, double log_bound) {
        return std::exp(log_bound - log_unit - distance * period) / -std::expm1(-distance * period);
    };
    return alias.smallest(1, series) + (period >= alias.known_from() ? 0.0 : alias.smallest(-1, series));
}

}  // namespace detail
}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
