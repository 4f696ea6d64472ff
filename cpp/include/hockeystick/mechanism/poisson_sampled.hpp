// Any pair on a Poisson sample, where a record is added or removed: P becomes (1 - rate) Q + rate P
// (Zhu, Dong and Wang 2022). loss/poisson_sampled.hpp has the loss of either direction.
//
// Where a record is replaced: mechanism/replaced_gaussian.hpp for Gaussian noise, and
// `sampled_and_replaced` of the class for other pairs.
#pragma once

#include <hockeystick/loss/poisson_sampled.hpp>
#include <hockeystick/mechanism/nothing.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class PoissonSampled final : public Pair {
  public:
    PoissonSampled(PairPointer base, double rate) : base_(std::move(base)), rate_(rate) {
        require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
    }
    Loss loss(Direction direction) const override { return sampled_loss_of(base_->loss(direction), direction); }
    Loss loss_for_grid(Direction direction) const override {
        return sampled_loss_of(base_->loss_for_grid(direction), direction);
    }
    bool is_rounded_to_grid() const override { return base_->is_rounded_to_grid(); }
    bool has_law_of(const Pair& other) const override {
        const auto* sample = dynamic_cast<const PoissonSampled*>(&other);
        return sample && sample->rate_ == rate_ && base_->has_law_of(*sample->base_);
    }
    bool symmetric() const override { return false; }
    bool has_cumulant(double rate) const override { return rate == 1.0 && base_->has_cumulant(rate_); }
    std::unique_ptr<Cumulant> cumulant(double, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        return base_->cumulant(rate_, direction, cutoff, tools);
    }
    bool has_cutoff(double, Direction direction) const override { return base_->has_cutoff(rate_, direction); }
    double renyi(double order, double rate, Direction direction) const override {
        return rate == 1.0 ? base_->renyi(order, rate_, direction) : Pair::renyi(order, rate, direction);
    }
    double log_integral(double order, double rate, Direction direction, Half half) const override {
        return rate == 1.0 ? base_->log_integral(order, rate_, direction, half)
                           : Pair::log_integral(order, rate, direction, half);
    }
    double coarse_renyi(double order, double rate, Direction direction) const override {
        return base_->coarse_renyi(order, rate == 1.0 ? rate_ : 1.0, direction);
    }
    GaussianNoise gaussian_noise() const override {
        GaussianNoise noise = base_->gaussian_noise();
        if (noise.shift > 0.0) noise.rate *= rate_;  // other noise than Gaussian has no rate to tell
        return noise;
    }
    bool composes_loosely() const override { return base_->composes_loosely(); }
    double dominating_shift() const override { return base_->is_gaussian() ? base_->dominating_shift() : infinity; }

    // A Poisson sample of a Poisson sample is a Poisson sample at the product of the rates.
    PairPointer sampled(double rate, End end) const override {
        const double both = product_of_rates(rate_, rate, end);
        return both > 0.0 ? PairPointer(std::make_shared<PoissonSampled>(base_, both)) : nothing();
    }
    PairPointer sampled_and_replaced(double rate, End end) const override {
        const double both = product_of_rates(rate_, rate, end);
        return both > 0.0 ? base_->sampled_and_replaced(both, end) : nothing();
    }
    // The rate is smaller if nothing rare happens, which only lessens the loss.
    WithoutRare without_rare(double share) const override {
        const WithoutRare whole = base_->without_rare(share / rate_);
        if (!whole.pair) return {};
        return {std::make_shared<PoissonSampled>(whole.pair, rate_), whole.probability * rate_ * up};
    }
    bool has_rare() const override { return base_->has_rare(); }
    std::vector<double> parameters() const override { return {rate_}; }
    PairPointer base() const override { return base_; }
    double rate() const { return rate_; }

  private:
    Loss sampled_loss_of(Loss whole, Direction direction) const {
        if (direction == Direction::remove) return std::make_shared<PoissonRemoveLoss>(std::move(whole), rate_);
        return std::make_shared<PoissonAddLoss>(std::move(whole), rate_);
    }

    PairPointer base_;
    double rate_;
};

// A pair on a Poisson sample of 0 <= rate <= 1, where a record is added or removed. If `pair` is
// sampled already, the product of both rates is rounded towards `end`.
inline PairPointer poisson_sampled(const PairPointer& pair, double rate, End end = End::upper) {
    const FloatingEnvironment environment;
    require_probability("sampling_rate", rate);
    if (rate == 0.0 || !pair->leaks()) return nothing();
    if (rate == 1.0) return pair;
    const PairPointer simpler = pair->sampled(rate, end);
    return simpler ? simpler : made<PoissonSampled>(pair, rate);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
