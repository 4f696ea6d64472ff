// The laws that a scalar chain ends with: mixtures of one noise around many centres.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/interval.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// The centres that the noise is added to, with their weights.
struct Mixture {
    std::vector<long double> centre;
    std::vector<double> weight;  // non-negative up to rounding; their sum is 1
};

// A divergence E_gamma(P||Q) of two mixtures as they are stored.
struct MixtureDivergence {
    Interval value;
    double positive_mass;  // about P(p >= gamma q); errors of the weights are relative to it
};

inline void normalise(Mixture& m) {
    long double sum = 0.0L;
    for (double& w : m.weight) sum += w = std::max(w, 0.0);
    for (double& w : m.weight) w = static_cast<double>(w / sum);
}

// The mass above or below y, in long double.
inline long double gaussian_tail_mass(const Mixture& m, long double y, long double noise, bool above) {
    constexpr long double root_half = 0.707106781186547524400844L;
    long double sum = 0.0L;
    for (std::size_t j = 0; j < m.weight.size(); ++j) {
        const long double z = (y - m.centre[j]) / noise;
        sum += m.weight[j] * (0.5L * std::erfc((above ? z : -z) * root_half));
    }
    return sum;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
