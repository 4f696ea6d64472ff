// Noise on a sum that moves by a random shift, where the output reveals the shift: the pair of
// shift s_k has probability w_k (loss/labelled.hpp). Revealing the shift cannot lower the
// divergence, so this pair dominates the mechanism that keeps it secret.
#pragma once

#include <type_traits>

#include <hockeystick/loss/gaussian.hpp>
#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/loss/laplace.hpp>
#include <hockeystick/mechanism/gaussian_mixture.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

template <class NoiseLoss> class LabelledNoise final : public Pair {
    static constexpr bool is_gaussian_noise = std::is_same_v<NoiseLoss, GaussianLoss>;

  public:
    explicit LabelledNoise(WeightedShifts mixture) : mixture_(std::move(mixture)) { require_weighted_shifts(mixture_); }
    Loss loss(Direction) const override {
        std::vector<LabelledLoss::Label> labels;
        for (std::size_t k = 0; k < mixture_.shifts.size(); ++k)
            labels.push_back({std::make_shared<NoiseLoss>(mixture_.shifts[k]), mixture_.weights[k]});
        return std::make_shared<LabelledLoss>(std::move(labels));
    }
    WithoutRare without_rare(double share) const override {
        return without_rare_shifts<LabelledNoise>(mixture_, share);
    }
    bool has_rare() const override { return mixture_.shifts.size() > 1; }
    // Laplace noise has bounded losses, whose integrals have no tails.
    double coarse_renyi(double order, double rate, Direction) const override {
        if (!std::is_same<NoiseLoss, GaussianLoss>::value) return infinity;
        return coarse_mixture_renyi(mixture_, order, rate);
    }
    bool has_fixed_size_cumulant(double rate) const override {
        return is_gaussian_noise && mixture_is_covered(mixture_, rate);
    }
    std::unique_ptr<Cumulant> fixed_size_cumulant(double rate, double cutoff,
                                                  const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        for (std::size_t k = 0; k < mixture_.shifts.size(); ++k)
            law.add_fixed_size(mixture_.shifts[k], rate, mixture_.weights[k]);
        return pieces_cumulant(std::move(law), tools);
    }
    std::vector<double> parameters() const override { return parameters_of(mixture_); }

  private:
    WeightedShifts mixture_;
};

using LabelledGaussian = LabelledNoise<GaussianLoss>;
using LabelledLaplace = LabelledNoise<LaplaceLoss>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
