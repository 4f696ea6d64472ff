// What the two discretisations of the scalar chain share: how errors add up, and how a weighted sum is taken.
//
// A step replaces the law mu K by a computed one, at an L1 distance of at most `local` (truncation) and with densities right
// to a factor 1 +- `rounding`. After T steps, with eta = E_1 the largest total variation between two rows of a kernel
// (Dobrushin's coefficient, which bounds what is left of an old error) and S = sum_{k < T} eta^k,
//
//   |E_gamma(P||Q) - E_gamma(computed)| <= (1 + gamma) (local + rounding) S,                       or, if that is smaller,
//                                       <= (1 + gamma) local T + 2 (2 rounding + local) T P(A),
//
// A a set on which p is at least about gamma q. The first holds for normalised measures: normalising one that is e away from
// a law in L1 moves it by at most e more, and sup_A |P(A) - P'(A)| is half an L1 distance. The second
// holds because positive operators keep relative errors of positive vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <hockeystick/chain/mixture.hpp>
#include <hockeystick/chain/scalar_map.hpp>
#include <hockeystick/simd/sums.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace simd;

// Both sequences of maps, by their numbers in `maps`; `start` is where both chains begin.
struct ScalarChain {
    std::vector<ScalarMap> maps;
    std::vector<std::size_t> first, second;
    double radius, start;
    bool laplace;
};

struct StepErrors {
    double local = 0.0, rounding = 0.0;
};

// What the formulas above charge for `steps` steps; `mixing` is 1 - eta.
inline double accumulated_error(const StepErrors& e, double steps, double mixing, double gamma, double positive_mass) {
    const double memory = std::min(steps, 1.0 / mixing);
    const double contracted = (1.0 + gamma) * (e.local + e.rounding) * memory;
    const double relative =
        (1.0 + gamma) * e.local * steps + 2.0 * (2.0 * e.rounding + e.local) * steps * positive_mass;
    return 1.01 * std::min(contracted, relative);
}

inline double smallest_scale(const ScalarChain& chain) {
    double scale = infinity;
    for (const ScalarMap& map : chain.maps) scale = std::min(scale, static_cast<double>(map.scale()) * (1.0 - 0x1p-50));
    return scale;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
