// Root finders: Newton's iteration inside a bracket that it tightens as it goes, and bisection. For
// certificates that cost a composition each, see numeric/feasible_search.hpp.
//
// f is monotone and smooth. A step that leaves the bracket, or is not finite, is replaced by
// bisection, or by a growing stride while one end is still infinite. All callers choose f concave
// and a start from which Newton converges monotonically. Only rounding can make a step leave the
// bracket.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/interval.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

struct ValueSlope {
    double value, slope;
};

// The root of f, where f(x) returns a ValueSlope and increases if `increasing`. The iteration stops
// after the first step no longer than `step_tolerance` or than two units in the last place.
// Convergence is quadratic, so pass the square root of the accuracy wanted. Bisection alone needs
// fewer than 400 steps between any two doubles of one sign and scale.
template <class Function>
double newton_root(const Function& f, double start, double low, double high, bool increasing, double step_tolerance) {
    double x = start;
    double stride = 1.0;
    for (int iteration = 0; iteration < 400; ++iteration) {
        const ValueSlope at = f(x);
        if (at.value == 0.0) return x;
        ((at.value < 0.0) == increasing ? low : high) = x;
        double next = x - at.value / at.slope;
        if (next == x) return x;
        if (!(next > low && next < high)) {  // at an end, where rounding rules the sign, it would return for ever
            if (high == infinity) next = x + stride;
            else if (low == -infinity) next = x - stride;
            else next = 0.5 * (low + high);
            stride *= 2.0;
        }
        const double step = std::fabs(next - x);
        x = next;
        if (step <= step_tolerance || step <= 4e-16 * std::fabs(x)) return x;
    }
    throw std::runtime_error("newton_root did not converge. This is a bug in hockeystick.");
}

// Halves [low, high], with predicate(low) true and predicate(high) false, down to
// search_resolution.
template <class Predicate> Interval bisect(const Predicate& predicate, double low, double high) {
    for (int k = 0; k < 200 && high - low > search_resolution * high; ++k) {
        const double middle = 0.5 * (low + high);
        (predicate(middle) ? low : high) = middle;
    }
    return {low, high};
}

inline bool never(double) { return false; }

// Minimises f over the integers from `first` to `last`, where f falls and then rises. Returns the
// minimiser, or an earlier integer of the search where enough(f) holds. An infinite f means that no
// moment exists: the search then begins further down. `stride` is a power of 4, the first one.
template <class Function, class Enough = bool (*)(double)>
int minimising_index(const Function& f, int start, int first, int last, const Enough& enough = never, int stride = 16) {
    int at = start < first ? first : start > last ? last : start;
    double value = f(at);
    while (!(value < infinity) && at - 16 >= first) value = f(at -= 16);
    for (; stride > 0; stride /= 4) {
        for (const int direction : {1, -1}) {
            for (int next = at + direction * stride; next >= first && next <= last; next += direction * stride) {
                if (enough(value)) return at;
                const double there = f(next);
                if (!(there < value)) break;
                at = next;
                value = there;
            }
        }
    }
    return at;
}

// What f(index) has reached, and what is wanted of it there.
struct Reached {
    double value, wanted;
};

// The first index in [first, last] at which f reaches what is wanted, last + 1 if none does. Near
// there the value grows by up to 2^(1/2) an index, what is wanted hardly changes: the search follows
// secants of the logarithm, and halves the range after five of them.
template <class Function> int first_reaching(const Function& f, int start, int first, int last) {
    int index = std::min(std::max(start, first), last), below = first - 1, above = last + 1;
    int tried = 0, before = index;
    double log_before = 0.0;
    while (above - below > 1) {
        const Reached at = f(index);
        const double found = std::log2(max(at.value, 1e-300)), wanted = std::log2(max(at.wanted, 1e-300));
        (found >= wanted ? above : below) = index;
        const double slope = index == before ? 0.5 : min(max((found - log_before) / (index - before), 0.1), 0.5);
        const double next = index + std::ceil(min(max((wanted - found) / slope, -64.0), 64.0));
        before = index;
        log_before = found;
        const bool halve = ++tried > 5 && below >= first && above <= last;
        index = halve ? (below + above) / 2 : std::min(std::max(static_cast<int>(next), below + 1), above - 1);
    }
    return above;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
