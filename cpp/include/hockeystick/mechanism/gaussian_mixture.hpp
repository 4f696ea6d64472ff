// Gaussian noise on a sum that moves by a random amount: P = sum_k w_k N(s_k, 1) and Q = N(0, 1).
// loss/gaussian_mixture.hpp proves that the pair dominates. The two directions differ.
#pragma once

#include <algorithm>
#include <cstddef>

#include <hockeystick/cumulant/shift_mixture.hpp>
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

// Takes the largest shifts, of a weight of at most `share`, for the largest of the others, and returns
// their weight, rounded up: weights sum to 1 within 1e-6. Given that none of them happens the true shift
// is stochastically smaller: with their weight c and that A of some of the others, A/(1 - c) <= A + c.
inline double cap_rare(WeightedShifts& mixture, double share) {
    constexpr double safe = 1.0 + 2e-6;
    const auto largest = [&] {
        return std::max_element(mixture.shifts.begin(), mixture.shifts.end()) - mixture.shifts.begin();
    };
    const auto weight_at = [&](std::ptrdiff_t k) -> double& { return mixture.weights[static_cast<std::size_t>(k)]; };
    double moved = 0.0;
    while (mixture.shifts.size() > 1) {
        const std::ptrdiff_t k = largest();
        if (!((moved + weight_at(k)) * safe <= share)) break;
        moved += weight_at(k);
        mixture.shifts.erase(mixture.shifts.begin() + k);
        mixture.weights.erase(mixture.weights.begin() + k);
    }
    if (moved > 0.0) weight_at(largest()) = min((weight_at(largest()) + moved) * up, 1.0);
    return moved * safe;
}

template <class Mixture> Pair::WithoutRare without_rare_shifts(WeightedShifts mixture, double share) {
    const double probability = cap_rare(mixture, share);
    if (probability == 0.0) return {};
    return {std::make_shared<Mixture>(std::move(mixture)), probability};
}

// A moment of a mixture, sampled or not, is at most the mean of those of its shifts, by convexity;
// where the shift is shown it is that mean. The margin covers weights that sum to 1 within 1e-6.
inline double coarse_mixture_renyi(const WeightedShifts& mixture, double order, double rate) {
    double log_moment = -infinity;
    for (std::size_t k = 0; k < mixture.shifts.size(); ++k) {
        const double of_shift = (order - 1.0) * coarse_gaussian_renyi(mixture.shifts[k], order, rate);
        log_moment = log_sum(log_moment, std::log(mixture.weights[k]) + of_shift);
    }
    const double terms = static_cast<double>(mixture.shifts.size());
    return (max(log_moment, 0.0) * (1.0 + sixteen_roundings * terms) + 2e-6) / (order - 1.0);
}

// By Minkowski's inequality: the norm of a sum of likelihood ratios is at most the sum of theirs.
inline double norm_of_mixture_renyi(const WeightedShifts& mixture, double order, double rate) {
    double log_norm = -infinity;
    for (std::size_t k = 0; k < mixture.shifts.size(); ++k) {
        const double of_shift = 0.5 * (order - 1.0) * mixture.shifts[k] * mixture.shifts[k] * up;
        log_norm = log_sum(log_norm, std::log(mixture.weights[k]) + of_shift);
    }
    const double margin = 1.0 + sixteen_roundings * static_cast<double>(mixture.shifts.size());
    const double whole = max(log_norm, 0.0) * margin + 2e-6;
    return order * (rate == 1.0 ? whole : sampled_loss(whole, rate)) / (order - 1.0) * (renyi_up * up);
}

class GaussianMixture final : public Pair {
  public:
    explicit GaussianMixture(WeightedShifts mixture) : mixture_(std::move(mixture)) {
        require_weighted_shifts(mixture_);
    }
    Loss loss(Direction direction) const override {
        return std::make_shared<GaussianMixtureLoss>(mixture_.shifts, mixture_.weights, direction);
    }
    bool symmetric() const override { return false; }
    WithoutRare without_rare(double share) const override {
        return without_rare_shifts<GaussianMixture>(mixture_, share);
    }
    bool has_rare() const override { return mixture_.shifts.size() > 1; }
    double coarse_renyi(double order, double rate, Direction direction) const override {
        const double mean = coarse_mixture_renyi(mixture_, order, rate);
        return direction == Direction::remove ? min(mean, norm_of_mixture_renyi(mixture_, order, rate)) : mean;
    }
    bool has_cumulant(double rate) const override { return mixture_is_covered(mixture_, rate); }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        law.add_mixture(ShiftMixture(mixture_, rate), {1.0}, direction);
        return pieces_cumulant(std::move(law), tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }
    std::vector<double> parameters() const override { return parameters_of(mixture_); }

  private:
    WeightedShifts mixture_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
