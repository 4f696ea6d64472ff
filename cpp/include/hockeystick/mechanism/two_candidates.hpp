// For lower ends: a choice between two candidates, by their scores with noise.
//
// The difference of the noise has a symmetric, log-concave law of tail T. A record moves the
// difference of the scores by d in units of the noise, since both scores move by the sensitivity, or
// one does if a record only raises them. All other differences stay: for every a, two data sets have
// P = Bernoulli(T(a)) and Q = Bernoulli(T(a + d)). By the noise, T is
//
//   gumbel       the logistic law, whose choice is the exponential mechanism of range d: the losses
//                are t and t - d;
//   exponential  Laplace's law, permute-and-flip;
//   laplace      T(x) = (1 + x/2) e^{-x}/2 for x >= 0, noise of scale 1;
//   gaussian     N(0, 1), noise of deviation 1/sqrt 2.
//
// The losses are those of a = -d/2, where the candidates change places, until an order of divergence
// is given.
//
// Errors: d is lowered by more than what tails err by, over their hazard rates, which are at least
// 1/2 from 0 on. With a' a little below a, T(a') is above P and T(a' + d) below Q in spite of all
// roundings: the pair of a' dominates.
#pragma once

#include <hockeystick/mechanism/approximate_dp.hpp>
#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

enum class CandidateNoise { gumbel, exponential, laplace, gaussian };

class TwoCandidates final : public ApproximateDP {
  public:
    TwoCandidates(double distance, CandidateNoise noise)
        : ApproximateDP(loss_of_exchange(distance, noise), 0.0), distance_(distance), noise_(noise) {}
    PairPointer attained_at(double order) const override {
        if (noise_ == CandidateNoise::gumbel) return at_range(order);
        const double d = distance_ - 2.0 * margin;
        if (!(distance_ > least_distance)) return nullptr;
        const double a = worst(order, d);
        // A mass that is no double is raised: a channel makes that pair from the true one, since both laws keep their order.
        const auto mass = [&](double x) { return std::exp(max(log_tail(x, noise_), least_log_mass)); };
        return std::make_shared<Discrete>(Masses{{mass(a), mass(-a)}, {mass(a + d), mass(-a - d)}});
    }
    std::vector<double> parameters() const override { return {distance_, static_cast<double>(noise_)}; }

  private:
    static constexpr double margin = 1e-12, least_distance = 1e-6, furthest = 35.0, least_log_mass = -690.0;

    static double log_tail(double x, CandidateNoise noise) {
        if (noise == CandidateNoise::gaussian) return log_q(x);
        const double size = std::fabs(x), bend = noise == CandidateNoise::laplace ? 0.5 * size : 0.0;
        const double log_half = -0.69314718055994531, log_upper = log_half + std::log1p(bend) - size;
        return x < 0.0 ? std::log1p(-std::exp(log_upper)) : log_upper;
    }

    // log T(-d/2) - log T(d/2), rounded down.
    static double loss_of_exchange(double d, CandidateNoise noise) {
        const double x = 0.5 * d;
        if (noise == CandidateNoise::gumbel) return x;
        const double told = noise == CandidateNoise::gaussian ? std::erf(x * std::sqrt(0.5))
                            : noise == CandidateNoise::laplace
                                ? -std::expm1(-x) - 0.5 * x * std::exp(-x)
                                : -std::expm1(-x);  // T(-d/2) - T(d/2), at most .7 where x is at most 1
        const double loss = x < 1.0 ? 2.0 * std::atanh(told) : log_tail(-x, noise) - log_tail(x, noise);
        return min(loss * (1.0 - margin), 600.0);
    }

    // The a from -d/2 on whose Renyi divergence of this order is largest, nearly.
    double worst(double order, double d) const {
        const double sign = order > 1.0 ? 1.0 : -1.0;
        const auto moment = [&](double a) {
            const auto term = [&](double x, double moved) {
                return order * log_tail(x, noise_) + (1.0 - order) * log_tail(moved, noise_);
            };
            return sign * log_sum(term(a, a + d), term(-a, -a - d));
        };
        constexpr double golden = 0.61803398874989485;
        double low = -0.5 * d, high = low + min((order + 1.0) * d + 8.0, furthest), width = high - low;
        double left = high - golden * width, right = low + golden * width;
        double at_left = moment(left), at_right = moment(right);
        for (int i = 0; i < 40; ++i) {
            width *= golden;
            if (at_left < at_right) {
                low = left, left = right, at_left = at_right;
                at_right = moment(right = low + golden * width);
            } else {
                right = left, at_right = at_left;
                at_left = moment(left = low + (1.0 - golden) * width);
            }
        }
        return 0.5 * (left + right);
    }

    // The same for Gumbel noise, in closed form (mechanism/bounded_range.hpp), which keeps the digits of a
    // small range: y = e^t, and orders below 1 have a B below 0.
    PairPointer at_range(double order) const {
        const double range = distance_ * down - 4.0 * sixteen_roundings;  // of what the ratio of weights rounds to
        if (!(range > 0.0)) return nullptr;
        const double b = -std::expm1((1.0 - order) * distance_) / std::expm1(distance_);
        const double y = std::log1p(b) + std::log(std::fabs(1.0 - 1.0 / order)) - std::log(std::fabs(b));
        const double t = min(max(y, 0.5 * range), range * (1.0 - 1e-9)), c = std::expm1(-range);
        const double high = std::expm1(t - range) / c, low = std::exp(t - range) * std::expm1(-t) / c;
        return std::make_shared<Discrete>(Masses{{high, low}, {high * std::exp(-t), low * std::exp(range - t)}});
    }

    double distance_;
    CandidateNoise noise_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
