// Gaussian noise on a sum that a record moves by one of several distances, at random. A record is
// added or removed.
//
// A distance of 0 tells nothing about the record. So the release is a Poisson sample of the pair of
// the other distances (mechanism/gaussian_mixture.hpp). The rate of the sample is the share of the
// probabilities that belong to these, rounded up for the upper end and down for the lower one.
#pragma once

#include <cmath>
#include <map>
#include <vector>

#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/numeric/double_double.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// Distances in units of the noise's standard deviation, and their probabilities.
struct Distances {
    std::vector<double> sensitivities, probabilities;
};

inline void require_distances(double noise_multiplier, const Distances& all) {
    require_noise_multiplier(noise_multiplier);
    if (all.sensitivities.size() != all.probabilities.size() || all.sensitivities.empty())
        throw std::invalid_argument("sensitivities and probabilities must have the same length, not 0");
    DoubleDouble sum;
    for (std::size_t i = 0; i < all.sensitivities.size(); ++i) {
        const double moved = all.sensitivities[i], shift = moved / noise_multiplier;
        require(moved == 0.0 || (shift >= 1e-9 && shift <= 1e4), "sensitivities",
                "be 0 or in [1e-9, 1e4] noise multipliers", moved);
        require(all.probabilities[i] >= 0.0 && all.probabilities[i] <= 2.0, "probabilities", "be non-negative",
                all.probabilities[i]);
        sum.add(all.probabilities[i]);
    }
    require(std::fabs(sum.value() - 1.0) <= 1e-12, "probabilities", "sum to 1 within 1e-12", sum.value());
}

inline PairPointer mixture_of_gaussians(double noise_multiplier, const Distances& all, End end) {
    require_distances(noise_multiplier, all);
    std::map<double, double> merged;  // shift -> probability
    DoubleDouble moving, total;
    for (std::size_t i = 0; i < all.sensitivities.size(); ++i) {
        const double probability = all.probabilities[i];
        total.add(probability);
        if (all.sensitivities[i] == 0.0 || probability == 0.0) continue;
        merged[all.sensitivities[i] / noise_multiplier] += probability;
        moving.add(probability);
    }
    if (merged.empty()) return nothing();
    const double rate = min(rounded_quotient(moving, total, end == End::upper), 1.0);
    if (merged.size() == 1) return poisson_sampled(Gaussian::of_shift(merged.begin()->first), rate, end);
    WeightedShifts mixture;
    for (const auto& [shift, probability] : merged) {
        mixture.shifts.push_back(shift);
        mixture.weights.push_back(min(probability / moving.value(), 1.0));
    }
    return poisson_sampled(std::make_shared<GaussianMixture>(std::move(mixture)), rate, end);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
