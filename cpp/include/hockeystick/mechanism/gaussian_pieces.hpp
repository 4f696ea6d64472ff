// Shifts with weights, and the cumulants of pairs that are mixtures of Gaussians
// (cumulant/gaussian_pieces.hpp).
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include <hockeystick/cumulant/gaussian_pieces.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// Shifts and their weights, which sum to 1 up to rounding.
using WeightedShifts = ShiftWeights;

// Whether such a cumulant has a quadrature of reasonable size, and its weights sum to 1 up to the
// rounding of their sum.
inline bool mixture_is_covered(const WeightedShifts& mixture, double rate) {
    constexpr std::size_t max_shifts = 256;
    double sum = 0.0;
    for (std::size_t k = 0; k < mixture.shifts.size(); ++k) {
        if (!(mixture.shifts[k] >= 1e-9 && mixture.shifts[k] <= 1e4 && mixture.weights[k] > 0.0)) return false;
        sum += mixture.weights[k];
    }
    const auto count = static_cast<double>(mixture.shifts.size());
    return mixture.shifts.size() <= max_shifts && std::fabs(sum - 1.0) <= eight_roundings * count && rate >= 1e-30 &&
           (rate <= down || rate == 1.0);
}

inline std::unique_ptr<Cumulant> pieces_cumulant(GaussianLawBuilder&& builder, const CumulantTools& tools) {
    return std::make_unique<GaussianPiecesCumulant>(std::move(builder).law(), *tools.kernels, tools.workspace);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
