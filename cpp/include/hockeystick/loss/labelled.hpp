// The privacy loss of a pair that is one of several, and of which it is shown which one: every pair
// has its probability, and the label is part of the output.
//
// Showing the label can only add to the divergence. So this loss bounds a mechanism that behaves in
// one of several ways, with the same probabilities on both data sets. The labels are equally likely
// under P and Q, so all masses and delta are weighted sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

class LabelledLoss final : public PrivacyLoss {
  public:
    // Losses, and as many positive weights, which sum to 1 up to rounding.
    LabelledLoss(std::vector<Loss> losses, std::vector<double> weights)
        : losses_(std::move(losses)), weights_(std::move(weights)) {}
    LossMasses masses(double eps) const override {
        LossMasses all{0.0, 0.0, 0.0, 0.0};
        for (std::size_t k = 0; k < losses_.size(); ++k) {
            const LossMasses x = losses_[k]->masses(eps);
            const double weight = weights_[k];
            all.p_below += weight * x.p_below, all.p_above += weight * x.p_above;
            all.q_below += weight * x.q_below, all.q_above += weight * x.q_above;
        }
        return all;
    }
    double delta(double eps) const override {
        return sum([eps](const PrivacyLoss& x) { return x.delta(eps); });
    }
    double p_infinite() const override {
        return sum([](const PrivacyLoss& x) { return x.p_infinite(); });
    }
    double lowest() const override {
        return -largest([](const PrivacyLoss& x) { return -x.lowest(); });
    }
    double highest() const override {
        return largest([](const PrivacyLoss& x) { return x.highest(); });
    }
    double highest_error() const override {
        return largest([](const PrivacyLoss& x) { return x.highest_error(); });
    }
    double scale() const override {
        return largest([](const PrivacyLoss& x) { return x.scale(); }) + static_cast<double>(losses_.size()) / 16.0;
    }
    LossErrors errors() const override {
        const double terms = 2.0 * static_cast<double>(losses_.size());
        LossErrors errors;
        errors.loss = largest([](const PrivacyLoss& x) { return x.errors().loss; });
        errors.growing = largest([](const PrivacyLoss& x) { return x.errors().growing; });
        errors.removed_rate = largest([](const PrivacyLoss& x) { return x.errors().removed_rate; });  // one, or none
        errors.highest = largest([](const PrivacyLoss& x) { return x.errors().highest; });
        errors.atoms = largest([](const PrivacyLoss& x) { return x.errors().atoms; }) + terms;
        errors.infinite = largest([](const PrivacyLoss& x) { return x.errors().infinite; }) + terms;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (std::size_t k = 0; k < losses_.size(); ++k)
            for (const OutlinePoint& x : losses_[k]->outline())
                points.push_back({x.loss, x.log_p + std::log(weights_[k]), x.log_q + std::log(weights_[k])});
        return points;
    }

  private:
    template <class Function> double sum(const Function& f) const {
        double total = 0.0;
        for (std::size_t k = 0; k < losses_.size(); ++k) total += weights_[k] * f(*losses_[k]);
        return total;
    }
    template <class Function> double largest(const Function& f) const {
        double maximum = f(*losses_.front());
        for (const Loss& loss : losses_) maximum = max(maximum, f(*loss));
        return maximum;
    }

    std::vector<Loss> losses_;
    std::vector<double> weights_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
