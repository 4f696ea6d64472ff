// A pair on a batch of fixed size, drawn without replacement, where one record is replaced. That
// record is in the batch with probability `rate` (loss/fixed_size_sampled.hpp). The base is the
// pair for replacing a record of the batch. It must be symmetric.
#pragma once

#include <hockeystick/loss/fixed_size_sampled.hpp>
#include <hockeystick/mechanism/laplace.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class FixedSizeSampled final : public Pair {
  public:
    FixedSizeSampled(PairPointer base, double rate) : base_(std::move(base)), rate_(rate) {
        require(rate > 0.0 && rate <= 1.0, "batch_size/num_records", "lie in (0, 1]", rate);
    }
    Loss loss(Direction) const override {
        return std::make_shared<FixedSizeLoss>(base_->loss(Direction::remove), base_->loss(Direction::add), rate_);
    }
    // For eps >= 0 the curve is that of the Poisson sample where a record is removed.
    double log_integral(double order, double rate, Direction direction, Half half) const override {
        return rate == 1.0 ? base_->log_integral(order, rate_, Direction::remove, half)
                           : Pair::log_integral(order, rate, direction, half);
    }
    // The moment is that of the Poisson sample where a record is removed, plus a (a-1) times the
    // falling integral of a curve that is at most rate; if that pair is the one that dominates.
    double coarse_renyi(double order, double, Direction) const override {
        const double whole = base_->coarse_renyi(order, 1.0, Direction::remove), less = order - 1.0;
        if (base_->composes_loosely()) return whole;
        const double sampled = base_->coarse_renyi(order, rate_, Direction::remove);
        return min(whole, log_sum(less * sampled, std::log(less * rate_)) / less * (renyi_up * up));
    }
    bool composes_loosely() const override { return base_->composes_loosely(); }
    bool has_cumulant(double rate) const override { return rate == 1.0 && base_->has_fixed_size_cumulant(rate_); }
    std::unique_ptr<Cumulant> cumulant(double, Direction, double cutoff, const CumulantTools& tools) const override {
        return base_->fixed_size_cumulant(rate_, cutoff, tools);
    }
    bool has_cutoff(double, Direction direction) const override { return base_->has_cutoff(rate_, direction); }
    double dominating_shift() const override { return base_->is_gaussian() ? base_->dominating_shift() : infinity; }
    // The rate is smaller if nothing rare happens, which only lessens the loss.
    WithoutRare without_rare(double share) const override {
        const WithoutRare whole = base_->without_rare(share / rate_);
        if (!whole.pair) return {};
        return {std::make_shared<FixedSizeSampled>(whole.pair, rate_), whole.probability * rate_ * up};
    }
    bool has_rare() const override { return base_->has_rare(); }
    std::vector<double> parameters() const override { return {rate_}; }
    PairPointer base() const override { return base_; }

  private:
    PairPointer base_;
    double rate_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
