// hidden_state/contraction_sum.hpp's double_geometric_sum over arrays: sum_{tau = 1..n}
// sum_{k < tau} eta^k from log eta <= 0, by the same doubling.
//
// A lane's leading zero bits change nothing, so that lanes with different n go together. Error: 1
// ulp for each bit of n, up to 2^53 below; all terms are positive. A NaN log eta gives NaN
// where n >= 1; a NaN n gives 0, so that the caller refuses it. Cost: an exponential for each bit
// of the largest n among 256 lanes.
#pragma once

#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/version.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// The sums, and what each lane has of n.
struct GeometricLanes {
    static constexpr std::size_t size = 256;
    alignas(64) double single[size], count[size], rest[size];
};

// One bit of n, from the highest on: `weight` is its value. Doubling, then one more term.
inline void add_bit(GeometricLanes& l, double weight, const double* log_eta, double* twofold, std::size_t lanes) {
    for (std::size_t i = 0; i < lanes; ++i) {
        const double power = exp_nonpositive(l.count[i] == 0.0 ? 0.0 : l.count[i] * log_eta[i]);
        const double eta = exp_nonpositive(log_eta[i]);
        const double doubled = twofold[i] * (1.0 + power) + l.count[i] * l.single[i];
        const double single = l.single[i] * (1.0 + power);
        const double set = l.rest[i] >= weight ? 1.0 : 0.0;
        const double one_more = 1.0 + eta * single;
        const double next = set != 0.0 ? one_more : single;
        l.single[i] = next;
        twofold[i] = doubled + (set != 0.0 ? one_more : 0.0);
        l.count[i] = 2.0 * l.count[i] + set;
        l.rest[i] -= set * weight;
    }
}

// n are integers in [0, 2^53]; other values give what they may.
inline void double_geometric_sums(const double* log_eta, const double* n, double* out, std::size_t length) {
    for (std::size_t start = 0; start < length; start += GeometricLanes::size) {
        GeometricLanes l;
        const std::size_t lanes = length - start < GeometricLanes::size ? length - start : GeometricLanes::size;
        double largest = 0.0;
        for (std::size_t i = 0; i < lanes; ++i) {
            l.single[i] = l.count[i] = out[start + i] = 0.0;
            l.rest[i] = n[start + i];
            largest = l.rest[i] > largest ? l.rest[i] : largest;
        }
        double weight = 0x1p53;
        while (weight > largest && weight > 1.0) weight *= 0.5;
        for (; weight >= 1.0; weight *= 0.5) add_bit(l, weight, log_eta + start, out + start, lanes);
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
