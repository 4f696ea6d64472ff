// Gaussian noise on a Poisson sample that is truncated to a largest size, where a record is added
// or removed, or replaced.
//
// In a full sample the new record displaces another one, which moves the sum by twice the shift.
// The pair reveals whether the sample was truncated: with probability 1 - truncation it is the pair
// of the Poisson sample, with probability `truncation` the same pair at twice the shift
// (loss/labelled.hpp).
#pragma once

#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/mechanism/poisson_sampled.hpp>
#include <hockeystick/mechanism/replaced_gaussian.hpp>

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
            std::vector{at_shift(shift_)->loss(direction), at_shift(2.0 * shift_)->loss(direction)},
            std::vector{1.0 - truncation_, truncation_});
    }
    bool symmetric() const override { return replaced_; }
    bool has_cumulant(double rate) const override {
        return rate == 1.0 && mixture_is_covered({{shift_}, {1.0}}, rate_) &&
               mixture_is_covered({{2.0 * shift_}, {1.0}}, rate_);
    }
    std::unique_ptr<Cumulant> cumulant(double, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        add_to(law, shift_, 1.0 - truncation_, direction);
        add_to(law, 2.0 * shift_, truncation_, direction);
        return pieces_cumulant(std::move(law), tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }

    // The pair reveals the truncation, so a further sample multiplies the rate in either case.
    PairPointer sampled(double rate, End end) const override {
        return replaced_ ? nullptr : at_rate(product_of_rates(rate_, rate, end), false);
    }
    PairPointer sampled_and_replaced(double rate, End end) const override {
        return replaced_ ? nullptr : at_rate(product_of_rates(rate_, rate, end), true);
    }
    std::vector<double> parameters() const override {
        return {shift_, rate_, truncation_, static_cast<double>(replaced_)};
    }
    double truncation() const { return truncation_; }

  private:
    // The pair of a sample in which one record moves the sum by `shift`.
    PairPointer at_shift(double shift) const {
        if (replaced_) return std::make_shared<ReplacedGaussian>(shift, rate_);
        return std::make_shared<PoissonSampled>(Gaussian::of_shift(shift), rate_);
    }
    void add_to(GaussianLawBuilder& law, double shift, double weight, Direction direction) const {
        if (replaced_) law.add_replaced(shift, rate_, weight);
        else law.add_mixture(ShiftMixture({{shift}, {1.0}}, rate_), weight, direction == Direction::remove);
    }
    PairPointer at_rate(double rate, bool replaced) const {  // a product of rates may underflow
        if (rate == 0.0) return nothing();
        return std::make_shared<TruncatedPoisson>(shift_, rate, truncation_, replaced);
    }

    double shift_, rate_, truncation_;
    bool replaced_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
