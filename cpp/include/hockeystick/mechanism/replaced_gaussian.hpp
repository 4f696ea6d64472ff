// Gaussian noise on a Poisson sample, one record replaced: (1-q) N(0,1) + q N(r,1) against (1-q)
// N(0,1) + q N(-r,1), which dominates and is attained (loss/replaced_gaussian.hpp has the proof). r
// is the shift of one record.
#pragma once

#include <hockeystick/loss/replaced_gaussian.hpp>
#include <hockeystick/mechanism/poisson_sampled.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class ReplacedGaussian final : public Pair {
  public:
    ReplacedGaussian(double shift, double rate) : shift_(shift), rate_(rate) {
        require(shift > 0.0, "shift", "be positive", shift);
        require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
    }
    Loss loss(Direction) const override { return std::make_shared<ReplacedGaussianLoss>(shift_, rate_); }
    double dominating_shift() const override { return 2.0 * shift_; }
    PairPointer sampled(double rate, End) const override {
        return std::make_shared<PoissonSampled>(shared_from_this(), rate);
    }
    std::vector<double> parameters() const override { return {shift_, rate_}; }

  private:
    double shift_, rate_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
