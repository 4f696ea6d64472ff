// A pair on a batch of fixed size, drawn without replacement, where one record is replaced. That
// record is in the batch with probability `rate` (loss/fixed_size_sampled.hpp). The base is the
// pair for replacing a record of the batch. It must be symmetric.
#pragma once

#include <hockeystick/loss/fixed_size_sampled.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class FixedSizeSampled final : public Pair {
  public:
    FixedSizeSampled(PairPointer base, double rate) : base_(std::move(base)), rate_(rate) {
        require(rate > 0.0 && rate <= 1.0, "batch_size/dataset_size", "lie in (0, 1]", rate);
    }
    Loss loss(Direction) const override {
        return std::make_shared<FixedSizeLoss>(base_->loss(Direction::remove), base_->loss(Direction::add), rate_);
    }
    bool has_cumulant(double rate) const override { return rate == 1.0 && base_->has_fixed_size_cumulant(rate_); }
    std::unique_ptr<Cumulant> cumulant(double, Direction, double cutoff, const CumulantTools& tools) const override {
        return base_->fixed_size_cumulant(rate_, cutoff, tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }
    double dominating_shift() const override { return base_->is_gaussian() ? base_->dominating_shift() : infinity; }
    std::vector<double> parameters() const override { return {rate_}; }
    PairPointer base() const override { return base_; }

  private:
    PairPointer base_;
    double rate_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
