// The privacy loss of a mixture of Gaussians: P = sum_k p_k N(r_k, 1) against Q = N(0, 1), all
// r_k > 0; or the reverse (Choquette-Choo, Ganesh, Steinke and Thakurta 2024, for matrix
// mechanisms). A part at 0 is Poisson sampling (loss/poisson_sampled.hpp), whose rate is the sum of
// the other probabilities. The pair dominates mixtures of vectors |v_k| <= r_k: docs/core/loss.md.
//
// With a_k = r_k x - r_k^2/2 the loss l(x) = log sum_k p_k e^{a_k} rises and is convex, with a
// slope between the least and the largest r_k: Newton's iteration from above falls to x. At that x,
// part by part and without cancellation,
//
//   delta(l) = sum_k p_k theta(a_k, r_k);
//   reverse, at eps = -l:  delta = sum_k p_k e^{a_k - l} theta(-a_k, r_k).
//
// Errors: l(x) errs by 4u (|a_k| + |log p_k| + 1) for a k that matters, x <= 40 + r; x itself by
// u|x|.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <hockeystick/divergence/direction.hpp>
#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

using divergence::Direction;

class GaussianMixtureLoss final : public PrivacyLoss {
  public:
    // Positive shifts, and as many positive probabilities, which sum to 1 up to rounding.
    GaussianMixtureLoss(std::vector<double> shifts, std::vector<double> probabilities, Direction direction)
        : shifts_(std::move(shifts)), probabilities_(std::move(probabilities)),
          forward_(direction == Direction::remove), largest_(*std::max_element(shifts_.begin(), shifts_.end())) {
        for (const double p : probabilities_) log_probabilities_.push_back(std::log(p));
    }
    LossMasses masses(double eps) const override {
        const double x = outcome(forward_ ? eps : -eps);
        double below = 0.0, above = 0.0;  // of the mixture
        for (std::size_t k = 0; k < shifts_.size(); ++k) {
            below += probabilities_[k] * q(shifts_[k] - x);
            above += probabilities_[k] * q(x - shifts_[k]);
        }
        if (forward_) return {below, above, q(-x), q(x)};
        return {q(x), q(-x), above, below};
    }
    double delta(double eps) const override {
        const double x = outcome(forward_ ? eps : -eps);
        double sum = 0.0;
        for (std::size_t k = 0; k < shifts_.size(); ++k) {
            const double a = exponent(k, x);
            sum += forward_ ? probabilities_[k] * theta(a, shifts_[k])
                            : probabilities_[k] * std::exp(a + eps) * theta(-a, shifts_[k]);
        }
        return min(sum, 1.0);
    }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    double scale() const override { return largest_ + static_cast<double>(shifts_.size()) / 16.0; }
    LossErrors errors() const override {
        LossErrors errors;
        const double terms = static_cast<double>(shifts_.size());
        const double rarest = -*std::min_element(log_probabilities_.begin(), log_probabilities_.end());
        errors.loss = eight_roundings * (8.0 + terms + rarest + largest_ * (40.0 + largest_));
        errors.atoms = 8.0 + terms + largest_ * (40.0 + largest_);
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {  // as that of a Gaussian
        constexpr int points = 512;
        const double low = -39.0, step = (78.0 + largest_) / (points - 1);
        const double unit = std::log(step) - half_log_2pi;
        std::vector<OutlinePoint> result;
        for (int i = 0; i < points; ++i) {
            const double x = low + step * i, loss = value(x).loss, log_q = unit - 0.5 * x * x;
            if (forward_) result.push_back({loss, log_q + loss, log_q});
            else result.push_back({-loss, log_q, log_q + loss});
        }
        return result;
    }

  private:
    struct Value {
        double loss, slope;
    };
    double exponent(std::size_t k, double x) const { return shifts_[k] * (x - 0.5 * shifts_[k]); }

    Value value(double x) const {
        double top = -infinity, sum = 0.0, slope = 0.0;
        for (std::size_t k = 0; k < shifts_.size(); ++k) top = max(top, log_probabilities_[k] + exponent(k, x));
        for (std::size_t k = 0; k < shifts_.size(); ++k) {
            const double weight = std::exp(log_probabilities_[k] + exponent(k, x) - top);
            sum += weight;
            slope += weight * shifts_[k];
        }
        return {top + std::log(sum), slope / sum};
    }

    // The x of l(x) = loss.
    double outcome(double loss) const {
        double x = infinity;
        for (std::size_t k = 0; k < shifts_.size(); ++k)  // l is at least each term
            x = min(x, (loss - log_probabilities_[k]) / shifts_[k] + 0.5 * shifts_[k]);
        if (!(std::fabs(x) < 1e100)) return x;
        for (int i = 0; i < 100; ++i) {
            const Value at = value(x);
            const double next = x - (at.loss - loss) / at.slope;
            if (!(next < x)) break;
            x = next;
        }
        return x;
    }

    std::vector<double> shifts_, probabilities_, log_probabilities_;
    bool forward_;
    double largest_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
