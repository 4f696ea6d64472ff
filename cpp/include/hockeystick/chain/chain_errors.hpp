// Two scalar chains to be compared, and how the errors of their discretised steps add up.
//
// A step replaces the law mu K by a computed one. It is at an L1 distance of at most `local`
// (truncation) and its densities are right to a factor 1 +- `rounding`. Let eta = E_1 be the
// largest total variation between two rows of a kernel (Dobrushin's coefficient, which bounds what
// is left of an old error), and S = sum_{k < T} eta^k. After T steps both of these hold:
//
//   |E_gamma(P||Q) - E_gamma(computed)| <= (1 + gamma) (local + rounding) S
//                                       <= (1 + gamma) local T + 2 (2 rounding + local) T P(A)
//
// with A a set on which p is at least about gamma q. Proof: docs/core/chain.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <hockeystick/chain/mixture.hpp>
#include <hockeystick/chain/scalar_map.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

// Both sequences of maps, by their numbers in `maps`; both chains begin at `start`.
struct ScalarChain {
    std::vector<ScalarMap> maps;
    std::vector<std::size_t> first, second;
    double radius, start;
    bool laplace;
};

inline void require_legal(const ScalarChain& chain) {
    const auto known = [&](std::size_t map) { return map < chain.maps.size(); };
    const auto require = [](bool legal, const char* message) {
        if (!legal) throw std::invalid_argument(message);
    };
    require(!chain.first.empty() && chain.first.size() == chain.second.size(), "both chains must have the same rounds");
    require(std::all_of(chain.first.begin(), chain.first.end(), known) &&
                std::all_of(chain.second.begin(), chain.second.end(), known),
            "every round must name one of the maps");
    require(positive(chain.radius), "radius must be positive and finite");
    require(std::fabs(chain.start) < infinity, "start must be finite");
    for (const ScalarMap& map : chain.maps)
        require(positive(map.learning_rate) && positive(map.noise), "learning_rate and noise must be positive");
}

struct StepErrors {
    double local = 0.0, rounding = 0.0;
};

// The smaller of the two bounds above for `steps` steps, 1% up; `mixing` is 1 - eta, so that
// S <= min(T, 1/mixing), and `positive_mass` is P(A).
inline double accumulated_error(const StepErrors& e, double steps, double mixing, double gamma, double positive_mass) {
    const double memory = std::min(steps, 1.0 / mixing);
    const double contracted = (1.0 + gamma) * (e.local + e.rounding) * memory;
    const double relative =
        (1.0 + gamma) * e.local * steps + 2.0 * (2.0 * e.rounding + e.local) * steps * positive_mass;
    return 1.01 * std::min(contracted, relative);
}

// The smallest deviation (or Laplace scale) of a map's noise, rounded down.
inline double smallest_scale(const ScalarChain& chain) {
    double scale = infinity;
    for (const ScalarMap& map : chain.maps) scale = std::min(scale, static_cast<double>(map.scale()) * down);
    return scale;
}

// Where the chains end: the centres that the last step's noise is added to, and the scale of that
// noise.
struct LastLaws {
    Mixture p, q;
    long double p_noise, q_noise;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
