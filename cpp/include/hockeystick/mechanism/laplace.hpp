// Laplace noise of scale 1 on a query that moves by the shift r = sensitivity/scale
// (loss/laplace.hpp).
//
// The Renyi divergence of order a is (Mironov 2017)
//
//   log((a A + (a - 1) B)/(2a - 1))/(a - 1),  A = e^{(a-1) r}, B = e^{-a r}.
//
// ReplacedLaplace is the pair of its Poisson sample where a record is replaced.
#pragma once

#include <hockeystick/cumulant/laplace.hpp>
#include <hockeystick/cumulant/sampled_laplace.hpp>
#include <hockeystick/loss/laplace.hpp>
#include <hockeystick/loss/replaced_laplace.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// Laplace noise of scale 1 on a Poisson sample of rate q, where one record is replaced:
//
//   P = (1-q) Lap(0) + q Lap(r),  Q = (1-q) Lap(0) + q Lap(-r),
//
// with r the shift of one record. loss/replaced_laplace.hpp proves that the pair dominates and that
// it is attained.
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
    std::vector<double> parameters() const override { return {shift_, rate_}; }

  private:
    double shift_, rate_;
};

class Laplace final : public Pair {
  public:
    explicit Laplace(double noise_multiplier) : shift_(1.0 / noise_multiplier) {
        require_noise_multiplier(noise_multiplier);
    }
    // The pair of this shift. The constructor would round the shift, as 1/noise_multiplier.
    static std::shared_ptr<const Laplace> of_shift(double shift) {
        require(shift > 0.0, "shift", "be positive", shift);
        auto pair = std::make_shared<Laplace>(1.0);
        pair->shift_ = shift;
        return pair;
    }

    Loss loss(Direction) const override { return std::make_shared<LaplaceLoss>(shift_); }
    bool has_cumulant(double rate) const override {
        return rate == 1.0 || shift_ <= SampledLaplaceCumulant::most_shift;
    }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double,
                                       const CumulantTools& tools) const override {
        if (rate == 1.0) return std::make_unique<LaplaceCumulant>(shift_);
        return std::make_unique<SampledLaplaceCumulant>(poisson_arcs(shift_, rate, direction), *tools.kernels,
                                                        tools.workspace);
    }
    bool has_fixed_size_cumulant(double rate) const override {
        return rate < 1.0 && shift_ <= SampledLaplaceCumulant::most_shift;
    }
    std::unique_ptr<Cumulant> fixed_size_cumulant(double rate, double, const CumulantTools& tools) const override {
        return std::make_unique<SampledLaplaceCumulant>(fixed_size_arcs(shift_, rate), *tools.kernels, tools.workspace);
    }
    PairPointer sampled_and_replaced(double rate, End) const override {
        if (shift_ > SampledLaplaceCumulant::most_shift) return nullptr;
        return std::make_shared<ReplacedLaplace>(shift_, rate);
    }
    double renyi(double order, double rate, Direction) const override {
        const double whole = divergence(order);
        if (rate == 1.0) return whole;
        return min(whole, sampled_renyi([this](double k) { return (k - 1.0) * divergence(k); }, rate, order));
    }
    std::vector<double> parameters() const override { return {shift_}; }
    double shift() const { return shift_; }

  private:
    double divergence(double order) const {
        const double r = shift_, less = order - 1.0;
        if (order == 1.0) return (r + std::expm1(-r)) * renyi_up + sixteen_roundings * r;
        if (less * r > 500.0)  // the term of B is below e^-500, relatively
            return (r + std::log(order / (2.0 * order - 1.0)) / less) * renyi_up;
        const double grown = std::expm1(less * r), fallen = std::expm1(-order * r), parts = 2.0 * order - 1.0;
        const double error = sixteen_roundings * (order * grown - less * fallen) / parts;
        return std::log1p((order * grown + less * fallen) / parts + error) / less * renyi_up;
    }

    double shift_;
};

// Noise of scale `noise_multiplier` times the sensitivity.
inline PairPointer laplace(double noise_multiplier) { return made<Laplace>(noise_multiplier); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
