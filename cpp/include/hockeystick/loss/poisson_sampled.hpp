// The privacy loss of a mechanism that sees a Poisson sample: every record is drawn with
// probability q, independently.
//
// For a base pair (P0, Q0) and a record that is added or removed (Zhu, Dong and Wang 2022):
//
//   remove  ((1-q) Q0 + q P0, Q0).  {L <= eps} = {L0 <= l(eps)},  l(eps) = log(1 + (e^eps - 1)/q).
//   add     (Q0, (1-q) Q0 + q P0).  {L <= eps} = {L0' <= -l(-eps)} for the loss L0' of the reversed
//           base (Q0, P0).
//
// A record that is replaced in a Poisson sample of a Gaussian is in loss/replaced_gaussian.hpp.
//
// Errors and cost as in loss/privacy_loss.hpp.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

// l(eps) = log(1 + (e^eps - 1)/rate), which is -inf from eps = log(1 - rate) down. Where the rate
// is close to 1 and eps to that end, 1 + y would cancel; e^eps - (1 - rate) errs like a move of eps
// by 2u.
inline double unsampled_loss(double eps, double rate) {
    if (eps > 1.0) return eps - std::log(rate) + std::log1p(-(1.0 - rate) * std::exp(-eps));
    const double y = std::expm1(eps) / rate;
    if (y > -0.5 || rate < 0.5) return y > -1.0 ? std::log1p(y) : -infinity;
    const double kept = std::exp(eps) - (1.0 - rate);
    return kept > 0.0 ? std::log(kept / rate) : -infinity;
}

// log(1 - rate + rate e^loss)
inline double sampled_loss(double loss, double rate) {
    if (loss == infinity) return infinity;
    if (loss > 1.0) return loss + std::log(rate) + std::log1p((1.0 - rate) / rate * std::exp(-loss));
    const double z = rate * std::expm1(loss);
    return z > -0.5 ? std::log1p(z) : std::log((1.0 - rate) + rate * std::exp(loss));  // where 1 + z would cancel
}

// log((1 - rate) e^x + rate e^y)
inline double log_mixture(double x, double y, double rate) {
    const double a = x + std::log1p(-rate), b = y + std::log(rate);
    const double larger = max(a, b);
    return larger == -infinity ? larger : larger + std::log1p(std::exp(min(a, b) - larger));
}

// The errors of a base and those that sampling adds. A base that is sampled itself moves by at most
// 16 u (1 - log rate).
inline LossErrors sampled_errors(const PrivacyLoss& base, double rate) {
    LossErrors errors = base.errors();
    errors.relative = sixteen_roundings;
    if (errors.removed_rate > 0.0) errors.loss += sixteen_roundings * (1.0 - std::log(errors.removed_rate));
    errors.highest += sixteen_roundings * (1.0 - std::log(rate));
    errors.infinite = errors.atoms + 8.0;
    return errors;
}

// The error of a sampled largest loss, in which loss + log rate may cancel.
inline double sampled_error(const PrivacyLoss& base, double rate) {
    const double largest = std::fabs(base.highest());
    return largest < infinity ? base.highest_error() + 1e-15 * (largest - std::log(rate) + 1.0) : 0.0;
}

class PoissonRemoveLoss final : public PrivacyLoss {
  public:
    PoissonRemoveLoss(Loss base, double rate) : base_(std::move(base)), rate_(rate) {}
    LossMasses masses(double eps) const override {
        const double cut = unsampled_loss(eps, rate_);
        const LossMasses m = cut == -infinity ? everything_above() : base_->masses(cut);
        return {(1.0 - rate_) * m.q_below + rate_ * m.p_below, (1.0 - rate_) * m.q_above + rate_ * m.p_above, m.q_below,
                m.q_above};
    }
    double delta(double eps) const override {
        const double cut = unsampled_loss(eps, rate_);
        return cut == -infinity ? -std::expm1(eps) : rate_ * base_->delta(cut);
    }
    double p_infinite() const override { return rate_ * base_->p_infinite(); }
    double lowest() const override { return sampled_loss(base_->lowest(), rate_); }
    double highest() const override { return sampled_loss(base_->highest(), rate_); }
    double highest_error() const override { return sampled_error(*base_, rate_); }
    double scale() const override { return base_->scale(); }
    LossErrors errors() const override {
        LossErrors errors = sampled_errors(*base_, rate_);
        errors.removed_rate = rate_;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points = base_->outline();
        for (OutlinePoint& x : points) x = {sampled_loss(x.loss, rate_), log_mixture(x.log_q, x.log_p, rate_), x.log_q};
        return points;
    }

  private:
    LossMasses everything_above() const { return {0.0, 1.0 - base_->p_infinite(), 0.0, 1.0}; }

    Loss base_;  // (P0, Q0)
    double rate_;
};

class PoissonAddLoss final : public PrivacyLoss {
  public:
    PoissonAddLoss(Loss reversed_base, double rate) : base_(std::move(reversed_base)), rate_(rate) {}
    LossMasses masses(double eps) const override {
        const double cut = -unsampled_loss(-eps, rate_);
        if (cut == infinity) return {1.0, 0.0, 1.0, 0.0};
        const LossMasses m = base_->masses(cut);
        const double p_above = m.p_above + base_->p_infinite();  // their loss is -log(1 - rate) here
        return {m.p_below, p_above, (1.0 - rate_) * m.p_below + rate_ * m.q_below,
                (1.0 - rate_) * p_above + rate_ * m.q_above};
    }
    // With A = {L0' > cut}: Q0(A) - e^eps ((1-q) Q0(A) + q P0(A)) = (1 - e^eps (1-q))
    // (Q0(A) - e^cut P0(A)).
    double delta(double eps) const override {
        const double cut = -unsampled_loss(-eps, rate_);
        if (cut == infinity) return 0.0;
        const double weight = eps < 1.0 ? rate_ - std::expm1(eps) * (1.0 - rate_) : 1.0 - std::exp(eps) * (1.0 - rate_);
        return max(weight, 0.0) * base_->delta(cut);
    }
    double lowest() const override { return -sampled_loss(-base_->lowest(), rate_); }
    double highest() const override {
        const bool infinite = base_->p_infinite() > 0.0 || base_->highest() == infinity;
        return infinite ? -std::log1p(-rate_) : -sampled_loss(-base_->highest(), rate_);
    }
    double highest_error() const override { return sampled_error(*base_, rate_); }
    double scale() const override { return base_->scale(); }
    LossErrors errors() const override {
        LossErrors errors = sampled_errors(*base_, rate_);
        errors.growing = rate_ * (eight_roundings + errors.growing);  // log(1 - (1 - e^-eps)/rate)
        errors.growing_until = infinity;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points = base_->outline();
        for (OutlinePoint& x : points)
            x = {-sampled_loss(-x.loss, rate_), x.log_p, log_mixture(x.log_p, x.log_q, rate_)};
        return points;
    }

  private:
    Loss base_;  // (Q0, P0)
    double rate_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
