// Gaussian noise on a Poisson sample that is cut to a largest size. A truncated sample drops a
// record for the new one, which moves the sum by twice the shift; whether the sample was truncated
// is shown to the attacker.
//
// The pair is that of the sample with probability 1 - truncation, and that of twice the shift with
// probability `truncation` (loss/labelled.hpp). A record added or removed, or replaced.
#pragma once

#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/mechanism/gaussian.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class TruncatedPoisson final : public Pair {
  public:
    // `shift` is that of one record, `truncation` the probability that the sample is truncated.
    TruncatedPoisson(double shift, double rate, double truncation, bool replaced)
        : shift_(shift), rate_(rate), truncation_(truncation), replaced_(replaced) {
        require(shift > 0.0, "shift", "be positive", shift);
        require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
        require(truncation > 0.0 && truncation < 1.0, "truncation", "lie in (0, 1)", truncation);
    }
    Loss loss(Direction direction) const override {
        return std::make_shared<LabelledLoss>(
            std::vector{case_of(shift_)->loss(direction), case_of(2.0 * shift_)->loss(direction)},
            std::vector{1.0 - truncation_, truncation_});
    }
    bool symmetric() const override { return replaced_; }

    // The truncation being shown, a sample of either case is sampled again.
    PairPointer sampled(double rate, End end) const override {
        if (replaced_) return std::make_shared<PoissonSampled>(shared_from_this(), rate);
        return at_rate(product(rate, end), false);
    }
    PairPointer sampled_and_replaced(double rate, End end) const override {
        return replaced_ ? nullptr : at_rate(product(rate, end), true);
    }
    std::vector<double> parameters() const override {
        return {shift_, rate_, truncation_, static_cast<double>(replaced_)};
    }
    double truncation() const { return truncation_; }

  private:
    PairPointer case_of(double shift) const {
        if (replaced_) return std::make_shared<ReplacedGaussian>(shift, rate_);
        return std::make_shared<PoissonSampled>(Gaussian::of_shift(shift), rate_);
    }
    PairPointer at_rate(double rate, bool replaced) const {  // a product of rates may underflow
        if (rate == 0.0) return nothing();
        return std::make_shared<TruncatedPoisson>(shift_, rate, truncation_, replaced);
    }
    double product(double rate, End end) const { return std::nextafter(rate_ * rate, end == End::upper ? 1.0 : 0.0); }

    double shift_, rate_, truncation_;
    bool replaced_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
