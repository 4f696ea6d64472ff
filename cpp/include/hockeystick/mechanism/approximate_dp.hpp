// One pair of distributions dominates every (epsilon, delta)-DP mechanism (Kairouz, Oh and
// Viswanath 2015). With probability delta it reveals the data set. Else it is the pair for
// epsilon-DP, which has the losses epsilon and -epsilon and no others (loss/pure.hpp).
#pragma once

#include <cmath>

#include <hockeystick/loss/pure.hpp>
#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/mechanism/nothing.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class ApproximateDP : public Pair {
  public:
    ApproximateDP(double epsilon, double delta)
        : epsilon_(epsilon), delta_(delta), outcomes_(outcomes(epsilon, delta)) {}
    Loss loss(Direction direction) const override {
        if (delta_ > 0.0) return outcomes_.loss(direction);
        return std::make_shared<PureLoss>(epsilon_);
    }
    bool has_cumulant(double rate) const override { return outcomes_.has_cumulant(rate); }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        return outcomes_.cumulant(rate, direction, cutoff, tools);
    }
    double renyi(double order, double rate, Direction direction) const override {
        return outcomes_.renyi(order, rate, direction);
    }
    double revealing_probability() const override { return delta_; }
    PairPointer without_disclosure() const override {
        if (epsilon_ == 0.0) return nothing();
        return std::make_shared<ApproximateDP>(epsilon_, 0.0);
    }
    std::vector<double> parameters() const override { return {epsilon_, delta_}; }

  private:
    static Discrete outcomes(double epsilon, double delta) {
        require(epsilon >= 0.0 && epsilon <= 600.0, "epsilon", "lie in [0, 600]", epsilon);
        require_probability("delta", delta);
        const double small = std::exp(-epsilon);
        const double high = (1.0 - delta) / (1.0 + small), low = (1.0 - delta) * small / (1.0 + small);
        if (delta == 0.0) return Discrete(Masses{{high, low}, {low, high}});
        return Discrete(Masses{{delta, high, low, 0.0}, {0.0, low, high, delta}});
    }

    double epsilon_, delta_;
    Discrete outcomes_;
};

// Any (epsilon, delta)-DP mechanism. (0, 0) leaks exactly nothing.
inline PairPointer approximate_dp(double epsilon, double delta) {
    const FloatingEnvironment environment;
    if (epsilon == 0.0 && delta == 0.0) return nothing();
    return made<ApproximateDP>(epsilon, delta);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
