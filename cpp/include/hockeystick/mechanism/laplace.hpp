// Laplace noise of scale 1 on a query that moves by the shift r = sensitivity/scale
// (loss/laplace.hpp).
//
// The Renyi divergence of order a is (Mironov 2017)
//
//   log((a A + (a - 1) B)/(2a - 1))/(a - 1),  A = e^{(a-1) r}, B = e^{-a r}.
#pragma once

#include <hockeystick/cumulant/laplace.hpp>
#include <hockeystick/cumulant/sampled_laplace.hpp>
#include <hockeystick/loss/laplace.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/mechanism/replaced_laplace.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

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
        return std::make_unique<SampledLaplaceCumulant>(poisson_arcs(shift_, rate, direction == Direction::remove),
                                                        *tools.kernels, tools.workspace);
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
