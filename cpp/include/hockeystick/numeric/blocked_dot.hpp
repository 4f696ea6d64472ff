// Dot products whose error grows with n/64 and not with n.
#pragma once

#include <algorithm>
#include <cstddef>

#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// sum_j a_j b_j, in blocks of 64 terms with 8 running sums each. The error is at most
// blocked_dot_error(n) times sum_j |a_j b_j|.
inline double blocked_dot(const double* a, const double* b, std::size_t n) {
    double total = 0.0;
    for (std::size_t begin = 0; begin < n; begin += 64) {
        const std::size_t end = std::min(n, begin + 64);
        double lanes[8] = {};
        std::size_t j = begin;
        for (; j + 8 <= end; j += 8) {
            for (std::size_t k = 0; k < 8; ++k) lanes[k] += a[j + k] * b[j + k];
        }
        for (; j < end; ++j) lanes[0] += a[j] * b[j];
        total += ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    }
    return total;
}

// A term meets one rounding in its product, at most 15 in its running sum, 3 across the eight sums,
// and one for each block that is added after its own.
inline double blocked_dot_error(std::size_t n) { return (20.0 + static_cast<double>(n) / 64.0) * padded_roundoff; }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
