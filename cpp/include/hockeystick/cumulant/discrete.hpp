// The cumulant of a pair of discrete distributions, M(s) = sum_i p_i (p_i/q_i)^s.
//
// Its atoms never decay, so that the contour engine smooths them (contour/contour.hpp). Sampled by
// Poisson, P = (1 - rate) Q + rate P0 has the losses log1p(rate (p0_i/q_i - 1)).
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include <hockeystick/cumulant/loss_points.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class DiscreteCumulant final : public PointCumulant {
  public:
    static constexpr std::size_t max_atoms = 4096;

    // Whether no outcome has mass under one distribution only: `parameters` are p, then q.
    static bool covers(const std::vector<double>& parameters) {
        const std::size_t n = parameters.size() / 2;
        for (std::size_t i = 0; i < n; ++i)
            if (!(parameters[i] == 0.0 && parameters[n + i] == 0.0) &&
                !(parameters[i] > min_mass && parameters[n + i] > min_mass))
                return false;
        return n <= max_atoms;
    }

    DiscreteCumulant(const std::vector<double>& parameters, double rate, bool forward, const simd::Kernels& kernels,
                     std::shared_ptr<FourierWorkspace> workspace)
        : PointCumulant(kernels, std::move(workspace)) {
        const std::size_t n = parameters.size() / 2;
        for (std::size_t i = 0; i < n; ++i) {
            const double p = parameters[i], q = parameters[n + i];
            if (p == 0.0) continue;
            const double log_p = std::log(p), log_q = std::log(q);
            // Near -1 the change cancels, but 1 - rate + rate p/q does not.
            const double change = rate * (p / q - 1.0);
            const double log_mixed = change > -0.5 ? std::log1p(change) : std::log((1.0 - rate) + rate * (p / q));
            const double mixed = rate < 1.0 ? log_mixed : log_p - log_q, loss = forward ? mixed : -mixed;
            const double log_mass = log_q + (forward ? mixed : 0.0);
            const double loss_error = 8.0 * (2.0 + std::fabs(log_p) + std::fabs(log_q));
            atoms_.add(loss, loss_error, log_mass, loss_error + 2.0 * std::fabs(log_q) + std::fabs(log_mass));
            highest_ = max(highest_, loss + u * loss_error);
        }
        atoms_.complete();
    }

    double log_decay(double, double) const override { return 0.0; }
    double highest() const override { return highest_; }

  protected:
    // The probabilities need not sum to 1 to the last digit.
    Law law(double, double) const override { return {&atoms_, -infinity, 1.0}; }

  private:
    static constexpr double min_mass = 1e-290;

    LossPoints atoms_;
    double highest_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
