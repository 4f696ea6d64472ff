// The privacy loss of a composition with a Gaussian part, by the sums of
// release/composed_transform.hpp: no grid, and no gap between an upper and a lower pair.
//
// Errors are those of the sums, which are certified and far below what this class promises; a value
// that erred by more would be refused by an exception. Cost: some 2 microseconds for each value,
// and tens for the first one near it.
#pragma once

#include <mutex>
#include <stdexcept>

#include <hockeystick/release/composed_transform.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

class ComposedLoss final : public PrivacyLoss {
  public:
    explicit ComposedLoss(ComposedTransform transform) : law_(std::move(transform)) {
        const double step = 1e-3 / law_.deviation();
        mean_ = (law_.moment(step).value - law_.moment(-step).value) / (2.0 * step);
    }

    LossMasses masses(double eps) const override {
        if (eps == infinity) return {1.0, 0.0, 1.0, 0.0};
        if (eps == -infinity) return {0.0, 1.0, 0.0, 1.0};
        return tails(eps).masses;
    }
    // Below 0 by what Q has more than P where the loss is at most eps.
    double delta(double eps) const override {
        if (eps == infinity) return 0.0;
        if (eps == -infinity) return 1.0;
        const LogValue found = known(eps, Kernel::delta, eps >= 0.0, 0.0);
        if (!precise(found)) {  // far below the mean: no small difference of the tails
            const Tails t = tails(eps);
            const double value = t.masses.p_above - std::exp(eps) * t.masses.q_above;
            if (!(t.p_error + std::exp(eps) * t.q_error <= most_error * value)) throw std::runtime_error(no_digits);
            return min(value, 1.0);
        }
        return eps >= 0.0 ? exponential(found) : min(exponential(found) - std::expm1(eps), 1.0);
    }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    double scale() const override { return most_error / (32.0 * unit_roundoff); }
    LossErrors errors() const override {
        LossErrors errors;
        errors.atoms = most_error / eight_roundings;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        const double step = 24.0 / outline_points * law_.deviation();
        const std::lock_guard<std::mutex> lock(mutex_);
        for (int k = -outline_points; k <= outline_points; ++k) {
            const double loss = step * k, log_p = law_.at(loss, Kernel::density).log_value + std::log(step);
            if (log_p == log_p) points.push_back({loss, log_p, log_p - loss});
        }
        return points;
    }

  private:
    using Kernel = ComposedTransform::Kernel;
    static constexpr double most_error = 3e-10;      // relative, at a value of 1
    static constexpr double error_of_depth = 1e-13;  // for each unit of its logarithm
    static constexpr double least_log = -760.0;      // e^-760 is 0 in doubles
    static constexpr int outline_points = 200;
    static constexpr const char* no_digits = "a tail of a composition has no digits. This is a bug in hockeystick.";

    // e^moved times the kernel's value; -infinity for what is 0 in doubles.
    LogValue known(double eps, Kernel kernel, bool above, double moved) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (law_.is_below(eps, above, least_log - max(moved, 0.0))) return {-infinity, 0.0};
        LogValue found = law_.at(eps, kernel, above);
        found.log_value += moved;
        return found;
    }
    static bool precise(const LogValue& found) {
        return found.error <= most_error + error_of_depth * std::fabs(found.log_value);
    }
    static double exponential(const LogValue& found) {
        return found.log_value < least_log ? 0.0 : std::exp(min(found.log_value, 0.0));
    }
    // Of the side `above`, or of the other one if that is smaller.
    LogValue smaller_tail(double eps, Kernel kernel, bool& above, double moved) const {
        const LogValue found = known(eps, kernel, above, moved);
        if (!(found.log_value > -std::log(2.0))) return found;
        above = !above;
        return known(eps, kernel, above, moved);
    }
    // The masses on both sides of eps, and what those above err by, absolutely.
    struct Tails {
        LossMasses masses;
        double p_error, q_error;
    };
    Tails tails(double eps) const {
        bool p_above = eps >= mean_, q_above = eps >= -mean_;  // the smaller ones of both sides
        const LogValue log_p = smaller_tail(eps, Kernel::p_tail, p_above, 0.0),
                       log_q = smaller_tail(eps, Kernel::q_tail, q_above, -eps);
        if (!precise(log_p) || !precise(log_q)) throw std::runtime_error(no_digits);
        const double p = exponential(log_p), q = exponential(log_q);
        const double p_error = (log_p.error + 1e-13) * p, q_error = (log_q.error + 1e-13) * q;
        return {{p_above ? 1.0 - p : p, p_above ? p : 1.0 - p, q_above ? 1.0 - q : q, q_above ? q : 1.0 - q},
                p_error + four_roundings,
                q_above ? q_error : q_error + four_roundings};
    }

    ComposedTransform law_;
    double mean_;
    mutable std::mutex mutex_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
