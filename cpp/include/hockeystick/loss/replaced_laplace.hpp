// The privacy loss of Laplace noise of scale 1 on a Poisson sample of rate q, when one record is
// replaced: P = (1-q) Lap(0) + q Lap(r), Q = (1-q) Lap(0) + q Lap(-r). Reflection exchanges them.
//
// It dominates: with x the noise without the record, the ratio R' of release/poisson_sampled.hpp is
// Lap(r)/Lap(0) at the quantile of x, which rises in x, and R'(1 - x) is Lap(-r)/Lap(0). It is
// attained by opposite contributions.
//
// Let t be the loss of Lap(r) against Lap(0), l(t) = log(1 - q + q e^t), a = l(-r). On x > 0 the
// loss is l(t) - a, with the masses under P of a sample against none, and e^a times those of Lap(0)
// under Q. So delta(eps) is that of the sample against none at eps + a for eps >= 0, and
// 1 - e^eps + e^eps delta(-eps) below.
//
// Errors as in loss/privacy_loss.hpp. Cost: three exponentials and two logarithms a call.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/loss/laplace.hpp>
#include <hockeystick/loss/poisson_sampled.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class ReplacedLaplaceLoss final : public PrivacyLoss {
  public:
    // 0 < rate < 1.
    ReplacedLaplaceLoss(double shift, double rate)
        : shift_(shift), rate_(rate), least_(sampled_loss(-shift, rate)),
          removed_(std::make_shared<LaplaceLoss>(shift), rate) {}
    LossMasses masses(double eps) const override {
        if (eps >= highest()) return {1.0, 0.0, 1.0, 0.0};
        if (eps < -highest()) return {0.0, 1.0, 0.0, 1.0};
        const Tail tail = tail_from(std::fabs(eps));
        if (eps >= 0.0) return {1.0 - tail.p, tail.p, 1.0 - tail.q, tail.q};
        return {tail.q, 1.0 - tail.q, tail.p, 1.0 - tail.p};  // {L <= eps} is {L >= -eps}, reflected
    }
    double delta(double eps) const override {
        if (eps >= 0.0) return removed_.delta(eps + least_);
        return -std::expm1(eps) + std::exp(eps) * removed_.delta(-eps + least_);
    }
    double lowest() const override { return -highest(); }
    double highest() const override { return sampled_loss(shift_, rate_) - least_; }
    double highest_error() const override { return 4.0 * removed_.highest_error(); }
    LossErrors errors() const override {
        LossErrors errors = removed_.errors();
        errors.loss += sixteen_roundings * (std::fabs(least_) + rate_);
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (const OutlinePoint& x : LaplaceLoss(shift_).outline()) {
            const double sampled = sampled_loss(x.loss, rate_), p = x.log_q + sampled, q = x.log_q + least_;
            if (x.loss == -shift_) continue;  // x < 0
            points.push_back({sampled - least_, p, q});
            points.push_back({least_ - sampled, q, p});
        }
        return points;
    }

  private:
    struct Tail {
        double p, q;
    };
    // The masses of {L >= eps} for 0 <= eps <= highest(); x = 0 is no atom.
    Tail tail_from(double eps) const {
        const double t = min(max(unsampled_loss(eps + least_, rate_), -shift_), shift_);
        const double alone = 0.5 * std::exp(-0.5 * (t + shift_)), moved = 1.0 - 0.5 * std::exp(0.5 * (t - shift_));
        return {(1.0 - rate_) * alone + rate_ * moved, std::exp(least_) * alone};
    }

    double shift_, rate_, least_;
    PoissonRemoveLoss removed_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
