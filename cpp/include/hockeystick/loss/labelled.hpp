// The privacy loss of a pair that is one of several, and of which it is shown which one: every pair
// has its probability, and the label is part of the output.
//
// Showing the label can only add to the divergence. So this loss bounds a mechanism that behaves in
// one of several ways. Where a label is equally likely under P and Q, all masses and delta are
// weighted sums. Where it has the probabilities w and w' under P and Q, its losses are those of its
// own pair and log(w/w') besides, here called its offset.
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
    // Losses, and as many positive weights, which sum to 1 up to rounding. An offset lies in
    // [-40, 5] and errs by a few ulps of itself or of 1; e^-offset times the weight is that under
    // Q.
    struct Label {
        Loss loss;
        double weight, offset = 0.0;
    };
    explicit LabelledLoss(std::vector<Label> labels) : labels_(std::move(labels)) {}
    LossMasses masses(double eps) const override {
        LossMasses all{0.0, 0.0, 0.0, 0.0};
        for (const Label& label : labels_) {
            const LossMasses x = label.loss->masses(eps - label.offset);
            const double p = label.weight, q = of_q(label);
            all.p_below += p * x.p_below, all.p_above += p * x.p_above;
            all.q_below += q * x.q_below, all.q_above += q * x.q_above;
        }
        return all;
    }
    double delta(double eps) const override {
        return sum([eps](const Label& x) { return x.loss->delta(eps - x.offset); });
    }
    double p_infinite() const override {
        return sum([](const Label& x) { return x.loss->p_infinite(); });
    }
    double lowest() const override {
        return -largest([](const Label& x) { return -(x.loss->lowest() + x.offset); });
    }
    double highest() const override {
        return largest([](const Label& x) { return x.loss->highest() + x.offset; });
    }
    double highest_error() const override {
        return largest([](const Label& x) { return x.loss->highest_error() + offset_error(x); });
    }
    double scale() const override {
        return largest([](const Label& x) { return x.loss->scale(); }) + static_cast<double>(labels_.size()) / 16.0;
    }
    LossErrors errors() const override {
        const double terms = 2.0 * static_cast<double>(labels_.size());
        LossErrors errors;
        errors.loss = largest([](const Label& x) { return x.loss->errors().loss + offset_error(x); });
        errors.growing = largest([](const Label& x) { return x.loss->errors().growing * std::exp(-x.offset); });
        errors.growing_until = largest([](const Label& x) {
            const LossErrors label = x.loss->errors();
            return label.growing > 0.0 ? label.growing_until + x.offset : -infinity;
        });
        errors.highest = largest([](const Label& x) { return x.loss->errors().highest; });
        errors.atoms = largest([](const Label& x) { return x.loss->errors().atoms; }) + terms;
        errors.infinite = largest([](const Label& x) { return x.loss->errors().infinite; }) + terms;
        add_removed_rates(errors);
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (const Label& label : labels_)
            for (const OutlinePoint& x : label.loss->outline())
                points.push_back({x.loss + label.offset, x.log_p + std::log(label.weight),
                                  x.log_q + std::log(label.weight) - label.offset});
        return thinned(std::move(points));
    }

  private:
    static constexpr std::size_t enough_points = 512;

    // The points of all labels lie close together: of many, each group of neighbours becomes one.
    static std::vector<OutlinePoint> thinned(std::vector<OutlinePoint> points) {
        const auto is_finite = [](const OutlinePoint& x) { return std::isfinite(x.loss) && std::isfinite(x.log_p); };
        const std::size_t each = (points.size() + enough_points - 1) / enough_points;
        if (each < 2 || !std::all_of(points.begin(), points.end(), is_finite)) return points;
        std::sort(points.begin(), points.end(),
                  [](const OutlinePoint& x, const OutlinePoint& y) { return x.loss < y.loss; });
        std::vector<OutlinePoint> groups;
        for (std::size_t begin = 0; begin < points.size(); begin += each) {
            OutlinePoint group = points[begin];
            for (std::size_t i = begin + 1; i < std::min(begin + each, points.size()); ++i) {
                group.log_p = log_sum(group.log_p, points[i].log_p);
                group.loss += (points[i].loss - group.loss) * std::exp(points[i].log_p - group.log_p);
            }
            group.log_q = group.log_p - group.loss;
            groups.push_back(group);
        }
        return groups;
    }

    static double of_q(const Label& label) {
        return label.offset == 0.0 ? label.weight : label.weight * std::exp(-label.offset);
    }
    // Of the offset, and of a loss less the offset.
    static double offset_error(const Label& label) {
        return label.offset == 0.0 ? 0.0 : sixteen_roundings * (1.0 + std::fabs(label.offset));
    }
    // Samples of several rates, moved by offsets. With f(r) = (1 - log r) min(r + eps, 1), r the
    // largest rate and s another one, f(s) is at most f(r) + log(r/s) (s + eps); and a loss less an
    // offset exceeds eps by at most |offset|.
    void add_removed_rates(LossErrors& errors) const {
        const auto rate = [](const Label& x) { return x.loss->errors().removed_rate; };
        const double top = errors.removed_rate = largest(rate);
        for (const Label& x : labels_) {
            if (rate(x) == 0.0) continue;
            const double excess = std::log(top / rate(x));
            errors.relative = max(errors.relative, sixteen_roundings * (1.0 + excess));
            const double moved = (1.0 - std::log(rate(x))) * std::fabs(x.offset) + excess * rate(x);
            errors.loss = max(errors.loss, x.loss->errors().loss + offset_error(x) + sixteen_roundings * moved);
        }
    }
    template <class Function> double sum(const Function& f) const {
        double total = 0.0;
        for (const Label& label : labels_) total += label.weight * f(label);
        return total;
    }
    template <class Function> double largest(const Function& f) const {
        double maximum = f(labels_.front());
        for (const Label& label : labels_) maximum = max(maximum, f(label));
        return maximum;
    }

    std::vector<Label> labels_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
