// The privacy loss of Gaussian noise on a batch that may hold the replaced record several times.
//
// The record is in the batch with probability q, and moves the sum by at most r_k with probability
// w_k, given that. Two curves bound the divergence of gamma = e^eps >= 1, in both orders:
//
//   shown     q E_{gamma'}(labelled mixture of N(r_k) against N(0)), gamma' = 1 + (gamma - 1)/q: the
//             number of copies is told (loss/fixed_size_sampled.hpp);
//   hidden    q E_{gamma''}(sum_k w_k N(r_k) | N(0)), gamma'' = (gamma - 1)(1 - q)/q: the other data
//             set has at least the outputs of the batches without the record.
//
// The first is sharp at small losses, the second at large ones. Convex as the divergence is, it lies
// below their minimum and below every chord between them. This loss has the curve that is `shown` up to
// eps_1, `hidden` from eps_2 on and a chord between, almost their common tangent. Proof:
// docs/core/loss.md, "Batches of a fixed size".
//
// Errors and cost as in loss/privacy_loss.hpp.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/loss/fixed_size_sampled.hpp>
#include <hockeystick/loss/gaussian_mixture.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class HiddenCopiesLoss final : public PrivacyLoss {
  public:
    // The loss where the number of copies is shown, the mixture where it is not, and q < 1.
    HiddenCopiesLoss(Loss shown, GaussianMixtureLoss mixture, double rate)
        : shown_(std::move(shown)), mixture_(std::move(mixture)), rate_(rate) {
        place_chord();
    }
    LossMasses masses(double eps) const override {
        if (std::fabs(eps) < first_) return shown_->masses(eps);
        const LossMasses m = masses_beyond(std::fabs(eps));
        return eps > 0.0 ? m : LossMasses{m.q_above, m.q_below, m.p_above, m.p_below};  // both orders have one law
    }
    double delta(double eps) const override {
        if (std::fabs(eps) < first_) return shown_->delta(eps);
        if (eps < 0.0) return -std::expm1(eps) + std::exp(eps) * delta(-eps);
        if (eps >= second_) return hidden(eps);
        return delta_first_ + (delta_second_ - delta_first_) * std::expm1(eps - first_) / std::expm1(second_ - first_);
    }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    double scale() const override { return max(shown_->scale(), mixture_.scale()) + cancellation_; }
    LossErrors errors() const override {
        LossErrors errors = shown_->errors();
        const LossErrors other = mixture_.errors();
        errors.loss = max(errors.loss, other.loss), errors.atoms = max(errors.atoms, other.atoms);
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (const OutlinePoint& x : shown_->outline())
            if (std::fabs(x.loss) < first_) points.push_back(x);
        for (const OutlinePoint& x : mixture_.outline()) {
            const double loss = log_sum(0.0, x.loss - log_odds()), log_q = x.log_q + std::log1p(-rate_);
            if (!(loss >= second_)) continue;
            points.push_back({loss, log_q + loss, log_q});
            points.push_back({-loss, log_q, log_q + loss});
        }
        return points;
    }

    double first() const { return first_; }
    double second() const { return second_; }
    // The probability of losses beyond eps_1, under P; 0 if there is no eps_1.
    double beyond() const { return p_chord_; }

  private:
    static constexpr double largest_loss = 600.0, most_beyond = 0.5, most_cancellation = 64.0;

    double log_odds() const { return std::log1p(-rate_) - std::log(rate_); }  // of a batch without the record
    double cut(double eps) const { return eps + std::log(-std::expm1(-eps)) + log_odds(); }  // log gamma''
    double hidden(double eps) const { return rate_ * mixture_.delta(cut(eps)); }
    double q_hidden(double eps) const { return (1.0 - rate_) * mixture_.masses(cut(eps)).q_above; }

    LossMasses masses_beyond(double eps) const {
        if (eps < second_) return {1.0 - p_chord_, p_chord_, 1.0 - q_chord_, q_chord_};
        const LossMasses m = mixture_.masses(cut(eps));
        const double less = 1.0 - rate_;
        return {less * m.q_below + rate_ * m.p_below, less * m.q_above + rate_ * m.p_above, less * m.q_below + rate_,
                less * m.q_above};
    }

    // How far the tangent of `shown` at eps lies above `hidden` at eps_2. It rises with eps.
    double tangent_excess(double eps, double eps_2, double hidden_2) const {
        return shown_->delta(eps) - shown_->masses(eps).q_above * std::exp(eps) * std::expm1(eps_2 - eps) - hidden_2;
    }

    // The chord to eps_2, from where it almost touches `shown`; whether the curve is convex at both ends.
    bool place_chord_to(double eps_2) {
        const double hidden_2 = hidden(eps_2);
        if (!(hidden_2 < shown_->delta(eps_2))) return false;
        double low = 0.0, high = eps_2;
        for (int i = 0; i < 60 && high - low > 1e-8 * high; ++i) {
            const double middle = 0.5 * (low + high);
            (tangent_excess(middle, eps_2, hidden_2) <= 0.0 ? low : high) = middle;
        }
        low *= 1.0 - 1e-6;  // so that no rounding decides whether the chord is convex there
        first_ = low, second_ = eps_2, delta_first_ = shown_->delta(low), delta_second_ = hidden_2;
        q_chord_ = (delta_first_ - delta_second_) / (std::exp(low) * std::expm1(eps_2 - low));
        p_chord_ = delta_second_ + std::exp(eps_2) * q_chord_;
        cancellation_ = delta_first_ / (delta_first_ - delta_second_);
        return low > 0.0 && shown_->masses(low).q_above >= q_chord_ && q_chord_ >= q_hidden(eps_2) &&
               p_chord_ <= most_beyond && cancellation_ <= most_cancellation;
    }

    // The smallest eps_2 whose chord is convex, within a hundredth; none if that is too large.
    void place_chord() {
        double low = 0.0, high = 1e-6;
        while (high < largest_loss && !place_chord_to(high)) low = high, high *= 2.0;
        if (high < largest_loss) {
            for (double middle = 0.5 * (low + high); high - low > 0.01 * high; middle = 0.5 * (low + high))
                (place_chord_to(middle) ? high : low) = middle;
            if (place_chord_to(high)) return;
        }
        first_ = second_ = infinity, p_chord_ = cancellation_ = 0.0;
    }

    Loss shown_;
    GaussianMixtureLoss mixture_;
    double rate_, first_ = infinity, second_ = infinity;  // eps_1, eps_2
    double delta_first_ = 0.0, delta_second_ = 0.0, p_chord_ = 0.0, q_chord_ = 0.0, cancellation_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
