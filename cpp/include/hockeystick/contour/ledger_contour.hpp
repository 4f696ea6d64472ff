// The contour of a ledger: from the cumulants of its pairs.
#pragma once

#include <algorithm>

#include <hockeystick/contour/contour.hpp>
#include <hockeystick/contour/slices.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

inline bool has_contour(const Steps& steps) {
    return std::all_of(steps.begin(), steps.end(),
                       [](const CountedPair& step) { return step.pair->has_cumulant(1.0); });
}

inline Contour::Cutoffs cutoffs_of(const Steps& steps, Direction direction) {
    Contour::Cutoffs cutoffs;
    bool of_pieces = true;
    for (const CountedPair& step : steps) {
        if (!step.pair->has_cutoff(1.0, direction)) continue;
        cutoffs.any = true;
        of_pieces = of_pieces && step.pair->gaussian_noise().rate == 1.0;
    }
    return cutoffs.any && of_pieces ? Contour::Cutoffs::of_pieces() : cutoffs;
}

// Where `has_contour` holds.
inline Contour make_contour(const Steps& steps, Direction direction, const simd::Kernels& kernels) {
    const Contour::Cutoffs cutoffs = cutoffs_of(steps, direction);
    const CumulantTools tools{&kernels, std::make_shared<FourierWorkspace>()};
    const auto make = [steps, direction, tools](double cutoff) {
        std::vector<ContourPart> parts;
        for (const CountedPair& step : steps)
            parts.push_back({step.pair->cumulant(1.0, direction, cutoff, tools), step.count});
        return parts;
    };
    const Pair::GaussianNoise noise = steps[0].pair->gaussian_noise();
    if (steps.size() > 1 || direction == Direction::add || noise.rate == 1.0) return {make, cutoffs, kernels};
    return {make, cutoffs, kernels,
            OptionalSlices(noise.noise_multiplier, noise.rate, steps[0].count, SliceShape::usual(), kernels,
                           tools.workspace)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
