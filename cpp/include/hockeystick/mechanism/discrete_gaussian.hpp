// Discrete Gaussian noise on an integer query that moves by `shift` (loss/discrete_gaussian.hpp).
//
// Its Renyi divergences are at most those of Gaussian noise of the same sigma and shift, and equal
// them at every order a for which a * shift is an integer (Canonne, Kamath and Steinke 2020).
#pragma once

#include <hockeystick/loss/discrete_gaussian.hpp>
#include <hockeystick/mechanism/gaussian.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class DiscreteGaussian final : public Pair {
  public:
    DiscreteGaussian(double sigma, double shift) : sigma_(sigma), shift_(shift) {
        require(positive(sigma), "sigma", "be positive and finite", sigma);
        require(count(shift), "sensitivity", "be an integer in [1, 2^53]", shift);
    }
    Loss loss(Direction) const override { return std::make_shared<DiscreteGaussianLoss>(sigma_, shift_); }
    double renyi(double order, double rate, Direction direction) const override {
        return Gaussian::of_shift(concentrated_shift())->renyi(order, rate, direction);
    }
    double concentrated_shift() const override { return shift_ / sigma_; }
    std::vector<double> parameters() const override { return {sigma_, shift_}; }

  private:
    double sigma_, shift_;
};

inline PairPointer discrete_gaussian(double sigma, double sensitivity) {
    return std::make_shared<DiscreteGaussian>(sigma, sensitivity);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
