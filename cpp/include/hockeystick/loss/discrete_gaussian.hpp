// The privacy loss of discrete Gaussian noise (Canonne, Kamath and Steinke 2020): Q(k) = w(k)/N and
// P(k) = w(k - s)/N on the integers, with w(k) = e^{-k^2/(2 sigma^2)}, N the sum of all w, and s a
// positive integer. Reflection exchanges P and Q. The pair dominates queries of integers that move
// by at most s: docs/core/loss.md.
//
// One table holds the tails T(k) = sum of w(j) over j >= k, for k up to 39 sigma, where w
// underflows. P(X >= k) is T(k)/N for k >= 1, and 1 - T(1 - k)/N below. With k the first outcome
// whose loss is above eps, delta = sum over j >= k of P(j) (1 - e^{eps - L(j)}).
//
// Errors: a weight errs by 3u k^2/(2 sigma^2), which is relative to its own logarithm; sums are
// compensated. A loss errs by 3u of itself, and decides itself on which side of a cut its outcome
// lies.
// Cost: 40 sigma exponentials to make; a division for masses; at most 80 sigma exponentials for
// delta.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class DiscreteGaussianLoss final : public PrivacyLoss {
  public:
    // sigma > 0; an integer shift >= 1.
    DiscreteGaussianLoss(double sigma, double shift)
        : sigma_(sigma), shift_(shift), tails_(static_cast<std::size_t>(39.0 * sigma) + 2) {
        CompensatedSum sum;
        for (std::size_t k = tails_.size(); k-- > 1;) {
            sum.add(weight(static_cast<double>(k)));
            tails_[k] = sum.value();
        }
        normaliser_ = 1.0 + 2.0 * tails_[1];
    }
    LossMasses masses(double eps) const override {
        const double k = first_above(eps);
        return {upper(1.0 - k + shift_), upper(k - shift_), upper(1.0 - k), upper(k)};
    }
    double delta(double eps) const override {
        const double end = shift_ + max_noise();
        CompensatedSum sum;
        for (double k = max(first_above(eps), shift_ - max_noise()); k <= end; k += 1.0) {
            const double mass = weight(k - shift_);
            sum.add(-std::expm1(eps - loss(k)) * mass);
            if (k > shift_ && mass * max_noise() < 1e-18 * sum.value()) break;  // as all further terms together
        }
        return min(sum.value() / normaliser_, 1.0);
    }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    // Only where there are few losses: many are as good as continuous, and would make the grid too
    // fine.
    double lattice() const override {
        if (max_noise() > 512.0) return 0.0;
        return shift_ / (sigma_ * sigma_) * (std::fmod(shift_, 2.0) == 0.0 ? 1.0 : 0.5);
    }
    std::vector<OutlinePoint> outline() const override {
        const double step = std::ceil((2.0 * max_noise() + shift_) / 1024.0), log_unit = std::log(step / normaliser_);
        std::vector<OutlinePoint> result;
        for (double k = -max_noise(); k <= shift_ + max_noise(); k += step)
            result.push_back({loss(k), log_unit + log_weight(k - shift_), log_unit + log_weight(k)});
        return result;
    }

  private:
    double max_noise() const { return static_cast<double>(tails_.size() - 1); }
    double log_weight(double k) const { return -0.5 * (k / sigma_) * (k / sigma_); }
    double weight(double k) const { return std::exp(log_weight(k)); }
    double loss(double k) const { return shift_ * (2.0 * k - shift_) / (2.0 * sigma_ * sigma_); }

    double upper(double k) const {  // P(X >= k)
        if (k <= 0.0) return 1.0 - upper(1.0 - k);
        return k <= max_noise() ? tails_[static_cast<std::size_t>(k)] / normaliser_ : 0.0;
    }

    // The first outcome whose loss is above eps; one beyond all outcomes of positive mass if there
    // is none.
    double first_above(double eps) const {
        const double before_all = -max_noise() - 1.0, beyond_all = shift_ + max_noise() + 1.0;
        const double guess = std::floor(sigma_ * sigma_ * eps / shift_ + 0.5 * shift_) + 1.0;
        if (!(guess > before_all)) return before_all;
        if (!(guess < beyond_all)) return beyond_all;
        if (loss(guess - 1.0) > eps) return guess - 1.0;
        return loss(guess) > eps ? guess : guess + 1.0;
    }

    double sigma_, shift_;
    std::vector<double> tails_;  // by k, from 1
    double normaliser_ = 1.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
