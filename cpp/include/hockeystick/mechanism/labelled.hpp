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
  public:
    explicit LabelledNoise(WeightedShifts mixture) : mixture_(std::move(mixture)) { require_weighted_shifts(mixture_); }
    Loss loss(Direction) const override {
        std::vector<Loss> losses;
        for (const double shift : mixture_.shifts) losses.push_back(std::make_shared<NoiseLoss>(shift));
        return std::make_shared<LabelledLoss>(std::move(losses), mixture_.weights);
    }
    // Laplace noise has bounded losses, whose integrals have no tails.
    double coarse_renyi(double order, double rate, Direction) const override {
        if (!std::is_same<NoiseLoss, GaussianLoss>::value) return infinity;
        return coarse_mixture_renyi(mixture_, order, rate);
    }
    std::vector<double> parameters() const override { return parameters_of(mixture_); }

  private:
    WeightedShifts mixture_;
};

using LabelledGaussian = LabelledNoise<GaussianLoss>;
using LabelledLaplace = LabelledNoise<LaplaceLoss>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
