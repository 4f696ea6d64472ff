// A mechanism of bounded range, such as the exponential mechanism: its losses lie in an interval of
// width `range` (Dong, Durfee and Rogers 2020; loss/bounded_range.hpp).
//
// The Renyi divergence of order a is the supremum, over t, of the divergences of the two-point
// pairs of loss/bounded_range.hpp. It is at most a range^2/8 (Cesar and Rogers 2021;
// docs/core/loss.md has a proof), as that of Gaussian noise of shift range/2. Let y = e^t
// and B = (1 - e^{-(a-1) range})/(e^range - 1). The pair's moment of order a,
// E_Q (dP/dQ)^a, is y^{a-1} (1 + B - B y), which is largest where B y = (1 + B)(a - 1)/a. The code
// adds the four terms of its logarithm there.
#pragma once

#include <hockeystick/loss/bounded_range.hpp>
#include <hockeystick/mechanism/laplace.hpp>
#include <hockeystick/mechanism/two_candidates.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class BoundedRange final : public Pair {
  public:
    explicit BoundedRange(double range) : range_(range) {
        require(range > 0.0 && range <= 600.0, "epsilon", "lie in (0, 600]", range);
    }
    Loss loss(Direction) const override { return std::make_shared<BoundedRangeLoss>(range_); }
    double renyi(double order, double rate, Direction direction) const override {
        if (rate < 1.0) return Pair::renyi(order, rate, direction);
        const double a = max(order, 1.0 + 1e-6), less = a - 1.0;  // divergences grow with the order
        const double log_b = log_of_b(a, range_);
        const double terms[] = {a * std::log1p(std::exp(log_b)), -a * std::log(a), less * std::log(less),
                                -less * log_b};
        double log_moment = 0.0, size = 0.0;
        for (const double term : terms) log_moment += term, size += std::fabs(term);
        log_moment += 4.0 * sixteen_roundings * size;
        return min(min(log_moment / less, a * range_ * range_ / 8.0), range_) * renyi_up;
    }
    // A record is removed: at integers the moments of a sample are those of the pair, expanded. In
    // the other direction that needs symmetry, which no single interval has.
    double coarse_renyi(double order, double rate, Direction direction) const override {
        return coarse_gaussian_renyi(concentrated_shift(), order, direction == Direction::remove ? rate : 1.0);
    }
    bool composes_loosely() const override { return true; }
    double loss_range() const override { return range_; }
    double concentrated_shift() const override { return 0.5 * range_; }
    std::vector<double> parameters() const override { return {range_}; }

    static double log_of_b(double order, double range) {
        return std::log(-std::expm1((1.0 - order) * range)) - std::log(std::expm1(range));
    }

  private:
    double range_;
};

inline PairPointer bounded_range(double range, End end = End::upper) {
    constexpr double least = 1e-150;  // of a smaller one squares underflow; a larger one leaks no less
    if (end == End::upper) return made<BoundedRange>(range > 0.0 ? max(range, least) : range);
    require(range > 0.0 && range <= 600.0, "epsilon", "lie in (0, 600]", range);
    return made<TwoCandidates>(range, CandidateNoise::gumbel);
}

// Permute-and-flip (McKenna and Sheldon 2020): the pair of Laplace noise at distance epsilon
// dominates it, and choices between two candidates attain its curve (docs/core/loss.md).
inline PairPointer permute_and_flip(double epsilon, End end) {
    const FloatingEnvironment environment;
    require(epsilon > 0.0 && epsilon <= 600.0, "epsilon", "lie in (0, 600]", epsilon);
    if (end == End::upper) return Laplace::of_shift(epsilon);
    return made<TwoCandidates>(epsilon, CandidateNoise::exponential);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
