// Q^{-1} over arrays (numeric/gaussian_tail.hpp): the centre everywhere, and the tails, which cost
// three times as much, where they are needed.
//
// Lanes in a tail close ranks; they are padded to whole registers by copies of the last one, so
// that a result depends on its own argument alone. Of uniform probabilities 15 % are in a tail.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/simd/lanes.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr std::size_t quantile_lanes = 256;

// The places of the elements in a tail, and their probabilities, padded.
struct TailLanes {
    alignas(64) double p[quantile_lanes];
    std::uint32_t place[quantile_lanes];
    std::size_t count = 0;

    TailLanes(const double* from, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            p[count] = from[i];
            place[count] = static_cast<std::uint32_t>(i);
            count += central(from[i]) ? 0 : 1;
        }
    }
    std::size_t padded() {
        const std::size_t whole = (count + lanes - 1) / lanes * lanes;
        for (std::size_t i = count; i < whole; ++i) p[i] = p[count - 1];
        return whole;
    }
};

// n <= quantile_lanes.
inline void quantile_block(const double* __restrict p, double* __restrict out, std::size_t n) {
    TailLanes tails(p, n);
    const std::size_t central_lanes = tails.count < n ? n : 0;
    for (std::size_t i = 0; i < central_lanes; ++i) out[i] = central_quantile(p[i]);
    if (tails.count == 0) return;
    alignas(64) double found[quantile_lanes];
    const std::size_t whole = tails.padded();
    for (std::size_t i = 0; i < whole; ++i) found[i] = outer_quantile(tails.p[i]);
    for (std::size_t i = 0; i < tails.count; ++i) out[tails.place[i]] = found[i];
}

inline void quantiles(const double* p, double* out, std::size_t n) {
    for (std::size_t i = 0; i < n; i += quantile_lanes)
        quantile_block(p + i, out + i, n - i < quantile_lanes ? n - i : quantile_lanes);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
