// Laplace noise of scale 1 on a Poisson sample of rate q, where one record is replaced:
//
//   P = (1-q) Lap(0) + q Lap(r),  Q = (1-q) Lap(0) + q Lap(-r),
//
// with r the shift of one record. loss/replaced_laplace.hpp proves that the pair dominates and that
// it is attained.
#pragma once

#include <hockeystick/cumulant/sampled_laplace.hpp>
#include <hockeystick/loss/replaced_laplace.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class ReplacedLaplace final : public Pair {
  public:
    ReplacedLaplace(double shift, double rate) : shift_(shift), rate_(rate) {
        require(shift > 0.0, "shift", "be positive", shift);
        require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
    }
    Loss loss(Direction) const override { return std::make_shared<ReplacedLaplaceLoss>(shift_, rate_); }
    bool has_cumulant(double rate) const override { return rate == 1.0; }
    std::unique_ptr<Cumulant> cumulant(double, Direction, double, const CumulantTools& tools) const override {
        return std::make_unique<SampledLaplaceCumulant>(replaced_arcs(shift_, rate_), *tools.kernels, tools.workspace);
    }
    // log M(order - 1)/(order - 1). It rises with the order, so that one just above 1 bounds that
    // of order 1.
    double renyi(double order, double rate, Direction direction) const override {
        if (rate != 1.0) return Pair::renyi(order, rate, direction);
        constexpr double least = 0x1p-10;
        const double less = max(order - 1.0, least);
        const SampledLaplaceCumulant law(replaced_arcs(shift_, rate_), simd::own_kernels,
                                         std::make_shared<FourierWorkspace>());
        const Cumulant::Moment moment = law.log_moment(less);
        const double largest = 2.0 * shift_ * up;  // no loss is above
        return min((max(moment.value, 0.0) + moment.error) / less * up, largest);
    }
    PairPointer at_larger_rate(int k) const override {
        const double larger = larger_rate(rate_, k);
        return larger < 0.5 ? PairPointer(std::make_shared<ReplacedLaplace>(shift_, larger)) : nullptr;
    }
    std::vector<double> parameters() const override { return {shift_, rate_}; }

  private:
    double shift_, rate_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
