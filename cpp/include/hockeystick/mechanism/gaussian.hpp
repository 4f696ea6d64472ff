// Gaussian noise: P = N(r, 1) and Q = N(0, 1), where r = sensitivity/standard deviation is called
// the shift (loss/gaussian.hpp).
//
// The Renyi divergence of order a is a r^2/2. Gaussian steps compose to one Gaussian step, whose
// r^2 is the sum of theirs.
#pragma once

#include <hockeystick/cumulant/gaussian.hpp>
#include <hockeystick/cumulant/sampled_gaussian.hpp>
#include <hockeystick/loss/gaussian.hpp>
#include <hockeystick/loss/sampled_gaussian_renyi.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/mechanism/replaced_gaussian.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class Gaussian final : public Pair {
  public:
    explicit Gaussian(double noise_multiplier) : noise_{noise_multiplier, 1.0 / noise_multiplier, 1.0} {
        require_noise_multiplier(noise_multiplier);
    }
    // The pair of this shift. The constructor would round the shift, as 1/noise_multiplier.
    static std::shared_ptr<const Gaussian> of_shift(double shift) {
        require(shift > 0.0, "shift", "be positive", shift);
        return std::shared_ptr<const Gaussian>(new Gaussian({1.0 / shift, shift, 1.0}));
    }

    Loss loss(Direction) const override { return std::make_shared<GaussianLoss>(noise_.shift); }
    bool has_cumulant(double rate) const override {
        return rate == 1.0 || SampledGaussianCumulant::covers(noise_.noise_multiplier, rate);
    }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        if (rate == 1.0) return std::make_unique<GaussianCumulant>(noise_.shift);
        return std::make_unique<SampledGaussianCumulant>(noise_.noise_multiplier, rate, direction, cutoff,
                                                         *tools.kernels, tools.workspace);
    }
    bool has_cutoff(double rate, Direction direction) const override {
        return rate < 1.0 && direction == Direction::remove;
    }
    bool has_fixed_size_cumulant(double rate) const override {
        return mixture_is_covered({{noise_.shift}, {1.0}}, rate);
    }
    std::unique_ptr<Cumulant> fixed_size_cumulant(double rate, double cutoff,
                                                  const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        law.add_fixed_size(noise_.shift, rate, 1.0);
        return pieces_cumulant(std::move(law), tools);
    }
    double renyi(double order, double rate, Direction) const override {
        const double half = 0.5 * noise_.shift * noise_.shift, whole = order * half * renyi_up;
        if (rate == 1.0) return whole;
        const double chord = sampled_renyi([half](double k) { return k * (k - 1.0) * half; }, rate, order);
        const bool exact = order >= 2.0 && order == std::floor(order);
        return min(whole, exact ? chord : min(chord, sampled_gaussian_renyi(noise_.shift, rate, order)));
    }
    GaussianNoise gaussian_noise() const override { return noise_; }
    double dominating_shift() const override { return noise_.shift; }
    double concentrated_shift() const override { return noise_.shift; }
    PairPointer sampled_and_replaced(double rate, End) const override {
        return std::make_shared<ReplacedGaussian>(noise_.shift, rate);
    }
    std::vector<double> parameters() const override { return {noise_.noise_multiplier, noise_.shift}; }

  private:
    explicit Gaussian(const GaussianNoise& noise) : noise_(noise) {}

    GaussianNoise noise_;
};

// Noise of standard deviation `noise_multiplier` times the sensitivity.
inline PairPointer gaussian(double noise_multiplier) { return made<Gaussian>(noise_multiplier); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
