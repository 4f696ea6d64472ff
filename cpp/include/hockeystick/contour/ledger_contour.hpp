// The contour of a ledger: from the cumulants of its pairs.
#pragma once

#include <algorithm>

#include <hockeystick/contour/contour.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

inline bool has_contour(const Steps& steps) {
    return std::all_of(steps.begin(), steps.end(),
                       [](const CountedPair& step) { return step.pair->has_cumulant(1.0); });
}

// Where `has_contour` holds.
inline Contour make_contour(const Steps& steps, Direction direction, const simd::Kernels& kernels) {
    const auto is_sampled = [](const CountedPair& step) { return step.pair->gaussian_noise().rate < 1.0; };
    const bool has_cutoff = direction == Direction::remove && std::any_of(steps.begin(), steps.end(), is_sampled);
    const CumulantTools tools{&kernels, std::make_shared<FourierWorkspace>()};
    const auto make = [steps, direction, tools](double cutoff) {
        std::vector<ContourPart> parts;
        for (const CountedPair& step : steps)
            parts.push_back({step.pair->cumulant(1.0, direction, cutoff, tools), step.count});
        return parts;
    };
    if (steps.size() > 1 || !has_cutoff) return {make, has_cutoff, kernels};
    const Pair::GaussianNoise noise = steps[0].pair->gaussian_noise();
    return {make, true, kernels,
            OptionalSlices(noise.noise_multiplier, noise.rate, steps[0].count, kernels, tools.workspace)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
