// Gaussian noise on a sum that moves by a random amount: P = sum_k w_k N(s_k, 1) and Q = N(0, 1).
// loss/gaussian_mixture.hpp proves that the pair dominates. The two directions differ.
#pragma once

#include <algorithm>

#include <hockeystick/loss/gaussian_mixture.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// Shifts and their weights, which sum to 1 up to rounding.
struct WeightedShifts {
    std::vector<double> shifts, weights;
};

inline void require_weighted_shifts(const WeightedShifts& mixture) {
    if (mixture.shifts.size() != mixture.weights.size() || mixture.shifts.empty())
        throw std::invalid_argument("shifts and weights must have the same length, not 0");
    double sum = 0.0;
    for (std::size_t k = 0; k < mixture.shifts.size(); ++k) {
        require(positive(mixture.shifts[k]), "shifts", "be positive and finite", mixture.shifts[k]);
        require(mixture.weights[k] > 0.0 && mixture.weights[k] <= 1.0, "weights", "lie in (0, 1]", mixture.weights[k]);
        sum += mixture.weights[k];
    }
    require(std::fabs(sum - 1.0) <= 1e-6, "weights", "sum to 1", sum);
}

inline std::vector<double> parameters_of(const WeightedShifts& mixture) {
    std::vector<double> all = mixture.shifts;
    all.insert(all.end(), mixture.weights.begin(), mixture.weights.end());
    return all;
}

// Gaussian noise at the largest shift leaks no less than a mixture, by joint convexity.
inline double largest_shift(const WeightedShifts& mixture) {
    return *std::max_element(mixture.shifts.begin(), mixture.shifts.end());
}

class GaussianMixture final : public Pair {
  public:
    explicit GaussianMixture(WeightedShifts mixture) : mixture_(std::move(mixture)) {
        require_weighted_shifts(mixture_);
    }
    Loss loss(Direction direction) const override {
        return std::make_shared<GaussianMixtureLoss>(mixture_.shifts, mixture_.weights, direction == Direction::remove);
    }
    bool symmetric() const override { return false; }
    double coarse_renyi(double order, double rate, Direction) const override {
        return coarse_gaussian_renyi(largest_shift(mixture_), order, rate);
    }
    std::vector<double> parameters() const override { return parameters_of(mixture_); }

  private:
    WeightedShifts mixture_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
