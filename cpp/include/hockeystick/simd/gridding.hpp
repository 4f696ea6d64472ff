// Spreads points onto a periodic grid by a Gaussian: the first half of cumulant/nonuniform_fft.hpp.
#pragma once

#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::simd {

inline constexpr std::size_t taps = 32;       // how many grid points a point is spread onto
inline constexpr double tap_variance = 3.25;  // of the Gaussian, in grid steps squared

// Points to spread onto a periodic grid: point j lies at losses[j] scale of a period.
struct PointSpread {
    const double *losses, *weights;
    std::size_t n;
    double scale;
    std::size_t length;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Adds weight e^{-d^2/2 tap_variance} to the `taps` grid points around every point, d their
// distance; `rests` gets what rounding takes from the sums.
//
// Entry m of the length + taps entries is point m - (length + taps)/2 of the grid: the last `taps`
// entries are the first ones once more, a period on. `length` is a power of two, so that a place on
// the grid is as exact as the turns are.
inline void spread_points(const PointSpread& p, double* __restrict sums, double* __restrict rests) {
    const auto length = static_cast<double>(static_cast<int>(p.length));
    for (std::size_t j = 0; j < p.n; ++j) {
        const double turns = p.losses[j] * p.scale;
        const double part = turns - ((turns + round_magic) - round_magic);
        const double at = length * (part >= -0.5 && part <= 0.5 ? part : 0.0);
        const double nearest = (at + round_magic) - round_magic;
        const double offset = (at - nearest) + 0.5 * static_cast<double>(taps);
        const auto first = static_cast<std::size_t>(static_cast<int>(nearest + 0.5 * length));
        double* __restrict sum = sums + first;
        double* __restrict rest = rests + first;
        for (std::size_t m = 0; m < taps; ++m) {
            const double d = static_cast<double>(static_cast<int>(m)) - offset;
            const double term = p.weights[j] * exp_nonpositive(-0.5 / tap_variance * d * d);
            const double total = sum[m] + term, added = total - sum[m];
            rest[m] += (sum[m] - (total - added)) + (term - added);
            sum[m] = total;
        }
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
