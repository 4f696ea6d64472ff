// Noise at one of several distances, the distance being shown: each pair with its probability
// (loss/labelled.hpp). What is shown can only add to the divergence, so that this dominates a
// mechanism that behaves in any of these ways.
#pragma once

#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/mechanism/gaussian_mixture.hpp>
#include <hockeystick/mechanism/laplace.hpp>

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
    PairPointer sampled(double rate, End) const override {
        return std::make_shared<PoissonSampled>(shared_from_this(), rate);
    }
    std::vector<double> parameters() const override { return parameters_of(mixture_); }

  private:
    WeightedShifts mixture_;
};

using LabelledGaussian = LabelledNoise<GaussianLoss>;
using LabelledLaplace = LabelledNoise<LaplaceLoss>;

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
