// The privacy loss of a mechanism that sees a batch of fixed size, when one record is replaced.
//
// The replaced record is in the batch with probability q. Let the base have the pair (P0, Q0) for
// replacement, in either order. Then the curve of the remove pair of loss/poisson_sampled.hpp for
// eps >= 0 and of the add pair for eps < 0, their maximum everywhere, dominates (Zhu, Dong and Wang
// 2022; Lebeda, Regehr, Kamath and Steinke 2024). It is convex in e^eps, hence it is the curve of a
// pair: that pair's masses are those of the two pieces, with an atom at L = 0 between them. Proof,
// also for batches that may hold the record several times: docs/core/loss.md.
//
// Errors and cost as in loss/privacy_loss.hpp.
#pragma once

#include <utility>
#include <vector>

#include <hockeystick/loss/poisson_sampled.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class FixedSizeLoss final : public PrivacyLoss {
  public:
    // A base (P0, Q0), and the same reversed. Only their curves at eps >= 0 are used.
    FixedSizeLoss(Loss base, Loss reversed_base, double rate)
        : remove_(std::move(base), rate), add_(std::move(reversed_base), rate) {}
    LossMasses masses(double eps) const override {
        if (eps >= 0.0) return remove_.masses(eps);
        LossMasses m = add_.masses(eps);
        m.p_above = max(m.p_above - p_infinite(), 0.0);
        return m;
    }
    double delta(double eps) const override { return eps >= 0.0 ? remove_.delta(eps) : add_.delta(eps); }
    double p_infinite() const override { return remove_.p_infinite(); }
    double lowest() const override { return add_.lowest(); }
    double highest() const override { return remove_.highest(); }
    double highest_error() const override { return remove_.highest_error(); }
    double scale() const override { return remove_.scale(); }
    LossErrors errors() const override {
        LossErrors errors = remove_.errors();
        if (errors.growing == 0.0) errors.growing_until = 0.0;  // then only the add pair's losses grow
        errors.growing = max(errors.growing, add_.errors().growing);
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (const OutlinePoint& x : add_.outline())
            if (x.loss < 0.0) points.push_back(x);
        for (const OutlinePoint& x : remove_.outline())
            if (x.loss >= 0.0) points.push_back(x);
        return points;
    }

  private:
    PoissonRemoveLoss remove_;
    PoissonAddLoss add_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
