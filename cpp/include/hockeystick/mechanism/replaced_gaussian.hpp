// Gaussian noise on a Poisson sample of rate q, where one record is replaced:
//
//   P = (1-q) N(0,1) + q N(r,1),  Q = (1-q) N(0,1) + q N(-r,1),
//
// with r the shift of one record. loss/replaced_gaussian.hpp proves that the pair dominates and
// that it is attained.
#pragma once

#include <hockeystick/loss/replaced_gaussian.hpp>
#include <hockeystick/mechanism/gaussian_pieces.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class ReplacedGaussian final : public Pair {
  public:
    ReplacedGaussian(double shift, double rate) : shift_(shift), rate_(rate) {
        require(shift > 0.0, "shift", "be positive", shift);
        require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
    }
    Loss loss(Direction) const override { return std::make_shared<ReplacedGaussianLoss>(shift_, rate_); }
    // Where dP/dQ > 1, Q is at most N(0,1) and dP/dQ at most that of the Poisson sample where a
    // record is removed, over 1 - rate. Elsewhere the moment is at most 1.
    double coarse_renyi(double order, double, Direction) const override {
        const double less = order - 1.0, removed = less * coarse_gaussian_renyi(shift_, order, rate_);
        const double either = log_sum(0.0, removed - order * std::log1p(-rate_)) / less * (renyi_up * up);
        return min(either, coarse_gaussian_renyi(dominating_shift(), order, 1.0));
    }
    bool has_cumulant(double rate) const override {
        return rate == 1.0 && mixture_is_covered({{shift_}, {1.0}}, rate_);
    }
    std::unique_ptr<Cumulant> cumulant(double, Direction, double cutoff, const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        law.add_replaced(shift_, rate_, 1.0);
        return pieces_cumulant(std::move(law), tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }
    double dominating_shift() const override { return 2.0 * shift_; }
    std::vector<double> parameters() const override { return {shift_, rate_}; }

  private:
    double shift_, rate_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
