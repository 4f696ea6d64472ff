// The fixed grids of a contour line, by integer indices: its tilt c, the spacing h of its nodes,
// its last frequency.
//
// Because these lie on grids, what is computed for one line serves every later question that
// chooses the same line, and no answer depends on the questions asked before it.
#pragma once

#include <cmath>
#include <initializer_list>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Positive tilts are 2^{index/8}. Negative ones, which look at 1 - delta, are -1/(1 + 2^{(index -
// middle)/8}): they lie in (-1, 0), dense at both ends.
struct TiltGrid {
    static constexpr int first_positive = -800, last_positive = 800;
    static constexpr int middle = -2000, negative_span = 800;
    static constexpr int lowest = middle - negative_span, last_negative = middle + negative_span;

    static double tilt(int index) {
        return index >= first_positive ? std::exp2(0.125 * index) : -1.0 / (1.0 + std::exp2(0.125 * (index - middle)));
    }
    // The index of the largest positive tilt that is at most c, nearly.
    static int index_near(double c) { return static_cast<int>(8.0 * std::log2(min(max(c, 1e-25), 1e25))); }
};

// Last frequencies are 2^{index/4}; `powers` are those of 2^{1/4}.
inline double frequency_at(int cutoff_index) {
    constexpr double powers[] = {1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429};
    return powers[cutoff_index & 3] * power_of_two(round_magic + (cutoff_index >> 2));
}

// Spacings are 2^{-index/2}.
inline double spacing_at(int spacing_index) { return std::exp2(-0.5 * spacing_index); }

// A line of more nodes is out of proportion.
inline constexpr int log2_max_nodes = 17;

inline bool never(double) { return false; }

// Minimises f over the integers from `first` to `last`, where f falls and then rises. Returns the
// minimiser, or an earlier integer of the search where enough(f) holds. An infinite f means that no
// moment exists: the search then begins further down.
template <class Function, class Enough = bool (*)(double)>
int minimising_index(const Function& f, int start, int first, int last, const Enough& enough = never) {
    int at = start < first ? first : start > last ? last : start;
    double value = f(at);
    while (!(value < infinity) && at - 16 >= first) value = f(at -= 16);
    for (const int stride : {16, 4, 1}) {
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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
