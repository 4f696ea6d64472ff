// The privacy loss of a pair that is one of two, which one being shown: (1 - t) of the first, t of the second, and the label.
//
// What is shown can only add to the divergence, so that this bounds a mechanism that behaves in either way with these probabilities on
// both data sets. As the labels are equally likely under P and Q, all masses and delta are weighted sums.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include <hockeystick/privacy_loss.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {

class LabelledLoss final : public PrivacyLoss {
  public:
    // 0 < t < 1.
    LabelledLoss(Loss first, Loss second, double t) : first_(std::move(first)), second_(std::move(second)), t_(t) {}
    LossMasses masses(double eps) const override {
        const LossMasses x = first_->masses(eps), y = second_->masses(eps);
        return {mix(x.p_below, y.p_below), mix(x.p_above, y.p_above), mix(x.q_below, y.q_below),
                mix(x.q_above, y.q_above)};
    }
    double delta(double eps) const override { return mix(first_->delta(eps), second_->delta(eps)); }
    double p_infinite() const override { return mix(first_->p_infinite(), second_->p_infinite()); }
    double lowest() const override { return detail::min(first_->lowest(), second_->lowest()); }
    double highest() const override { return detail::max(first_->highest(), second_->highest()); }
    double highest_error() const override { return detail::max(first_->highest_error(), second_->highest_error()); }
    double scale() const override { return detail::max(first_->scale(), second_->scale()); }
    LossErrors errors() const override {
        const LossErrors x = first_->errors(), y = second_->errors();
        using detail::max;
        LossErrors errors;
        errors.loss = max(x.loss, y.loss);
        errors.growing = max(x.growing, y.growing);
        errors.removed_rate = max(x.removed_rate, y.removed_rate);  // one rate in both, or none
        errors.highest = max(x.highest, y.highest);
        errors.atoms = max(x.atoms, y.atoms) + 4.0;
        errors.infinite = max(x.infinite, y.infinite) + 4.0;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (const auto& [loss, weight] : {std::pair(first_.get(), 1.0 - t_), std::pair(second_.get(), t_)})
            for (const OutlinePoint& x : loss->outline())
                points.push_back({x.loss, x.log_p + std::log(weight), x.log_q + std::log(weight)});
        return points;
    }

  private:
    double mix(double x, double y) const { return (1.0 - t_) * x + t_ * y; }

    Loss first_, second_;
    double t_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
