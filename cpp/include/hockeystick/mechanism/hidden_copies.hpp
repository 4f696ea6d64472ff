// Gaussian noise on a batch of fixed size that is drawn with replacement, where one record is replaced.
// The record is in the batch with probability `rate`, and moves the sum by the shifts with their
// weights, given that (loss/hidden_copies.hpp). For upper ends.
#pragma once

#include <hockeystick/loss/hidden_copies.hpp>
#include <hockeystick/mechanism/fixed_size_sampled.hpp>
#include <hockeystick/mechanism/gaussian_mixture.hpp>
#include <hockeystick/mechanism/labelled.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class HiddenCopies final : public Pair {
  public:
    HiddenCopies(const WeightedShifts& mixture, double rate)
        : mixture_(mixture), rate_(rate), shown_(std::make_shared<LabelledGaussian>(mixture), rate),
          loss_(std::make_shared<HiddenCopiesLoss>(
              shown_.loss(Direction::remove), GaussianMixtureLoss(mixture.shifts, mixture.weights, Direction::remove),
              rate)) {}
    Loss loss(Direction) const override { return loss_; }
    bool has_cumulant(double rate) const override { return rate == 1.0 && mixture_is_covered(mixture_, rate_); }
    std::unique_ptr<Cumulant> cumulant(double, Direction, double cutoff, const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        law.add_hidden_copies(mixture_, rate_, loss_->first(), loss_->second());
        return pieces_cumulant(std::move(law), tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }
    double coarse_renyi(double order, double rate, Direction direction) const override {
        return shown_.coarse_renyi(order, rate, direction);
    }
    WithoutRare without_rare(double share) const override;
    bool has_rare() const override { return true; }
    std::vector<double> parameters() const override {
        std::vector<double> all = parameters_of(mixture_);
        all.push_back(rate_);
        return all;
    }
    // Whether the loss is much smaller than if the copies were shown, but for what hardly happens.
    bool helps() const { return loss_->beyond() > least_probability_that_matters; }

  private:
    static constexpr double least_probability_that_matters = 1e-15;

    WeightedShifts mixture_;
    double rate_;
    FixedSizeSampled shown_;
    std::shared_ptr<const HiddenCopiesLoss> loss_;
};

// The pair; that which shows the copies where this is as good, since engines know it better.
inline PairPointer hidden_copies(WeightedShifts mixture, double rate) {
    if (mixture.shifts.size() > 1 && rate < 1.0)
        if (auto pair = std::make_shared<HiddenCopies>(mixture, rate); pair->helps()) return pair;
    return std::make_shared<FixedSizeSampled>(std::make_shared<LabelledGaussian>(std::move(mixture)), rate);
}

inline Pair::WithoutRare HiddenCopies::without_rare(double share) const {
    WeightedShifts rest = mixture_;
    const double probability = cap_rare(rest, share / rate_);
    if (probability == 0.0) return {};
    return {hidden_copies(std::move(rest), rate_), probability * rate_ * up};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
