// The laws that a scalar chain ends with: mixtures of one noise around many centres, and what is known of their divergence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

struct Mixture {
    std::vector<long double> centre;
    std::vector<double> weight;  // non-negative up to rounding; their sum is 1
};

struct CertifiedEnds {
    double lower, upper;
    double positive_mass;  // about P(A): what rounding errors of the weights are relative to
};

// The law of the chain as it is compared: the centres that the last step's noise is added to, with their weights.
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
