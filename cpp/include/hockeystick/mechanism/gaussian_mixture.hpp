// Gaussian noise on a sum that moves by a random amount: P = sum_k w_k N(s_k, 1) and Q = N(0, 1).
// loss/gaussian_mixture.hpp proves that the pair dominates. The two directions differ.
#pragma once

#include <hockeystick/loss/gaussian_mixture.hpp>
#include <hockeystick/mechanism/gaussian_pieces.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

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

class GaussianMixture final : public Pair {
  public:
    explicit GaussianMixture(WeightedShifts mixture) : mixture_(std::move(mixture)) {
        require_weighted_shifts(mixture_);
    }
    Loss loss(Direction direction) const override {
        return std::make_shared<GaussianMixtureLoss>(mixture_.shifts, mixture_.weights, direction == Direction::remove);
    }
    bool symmetric() const override { return false; }
    bool has_cumulant(double rate) const override { return mixture_is_covered(mixture_, rate); }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        law.add_mixture(ShiftMixture(mixture_, rate), 1.0, direction == Direction::remove);
        return pieces_cumulant(std::move(law), tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }
    std::vector<double> parameters() const override { return parameters_of(mixture_); }

  private:
    WeightedShifts mixture_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
