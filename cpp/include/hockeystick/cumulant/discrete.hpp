// The cumulant of a pair of discrete distributions, M(s) = sum_i p_i (p_i/q_i)^s.
//
// Its atoms never decay, so that the contour engine smooths them (contour/contour.hpp). Sampled by
// Poisson, P = (1 - rate) Q + rate P0 has the losses log1p(rate (p0_i/q_i - 1)).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class DiscreteCumulant final : public Cumulant {
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
        : kernels_(kernels), workspace_(std::move(workspace)) {
        const std::size_t n = parameters.size() / 2;
        for (std::size_t i = 0; i < n; ++i) {
            const double p = parameters[i], q = parameters[n + i];
            if (p == 0.0) continue;
            const double log_ratio = std::log(p) - std::log(q);
            // Near -1 the change cancels, but 1 - rate + rate p/q does not.
            const double change = rate * (p / q - 1.0);
            const double log_mixed = change > -0.5 ? std::log1p(change) : std::log((1.0 - rate) + rate * (p / q));
            const double mixed = rate < 1.0 ? log_mixed : log_ratio;
            losses_.push_back(forward ? mixed : -mixed);
            log_masses_.push_back(std::log(q) + (forward ? mixed : 0.0));
            loss_error_ = max(loss_error_, 8.0 * u * (2.0 + std::fabs(std::log(p)) + std::fabs(std::log(q))));
            highest_ = max(highest_, losses_.back());
            variance_ += std::exp(log_masses_.back()) * losses_.back() * losses_.back();
        }
    }

    Moment log_moment(double c) const override {
        const Tilted t = tilted(c);
        return {t.top + std::log(t.total), t.error};
    }
    double log_decay(double, double) const override { return 0.0; }
    bool add_nodes(double c, double h, std::size_t n, double count, NodeTable& nodes) const override {
        Tilted t = tilted(c);
        double mean = 0.0;
        for (std::size_t i = 0; i < losses_.size(); ++i) mean += t.weights[i] * std::fabs(losses_[i]) / t.total;
        std::vector<double> losses = losses_;
        losses.resize(padded_to_lanes(losses_.size()), 0.0);
        t.weights.resize(losses.size(), 0.0);
        FourierSums phi = characteristic_differences(losses, t.weights, mean, h, n, *workspace_, kernels_, work_);
        if (phi.real.empty()) return false;
        // What the logarithms of a weight and of the total err by together.
        const double log_error = 2.0 * min(t.error, 100.0);
        const double weight_error = std::exp(log_error) * std::expm1(log_error);
        for (std::size_t k = 1; k <= n; ++k) {
            const double omega = static_cast<double>(k) * h;
            phi.real[k] /= t.total;
            phi.imag[k] /= t.total;
            phi.error[k] += weight_error * min(2.0, omega * mean) + omega * loss_error_ +
                            (32.0 + power_error) * u * min(2.0, omega * mean);
        }
        kernels_.multiply_powers(phi.step(count), nodes.powers());
        return true;
    }
    double log_variance() const override { return std::log(max(variance_, std::numeric_limits<double>::min())); }
    double highest() const override { return highest_ + loss_error_; }
    double work() const override { return work_; }

  private:
    static constexpr double u = unit_roundoff, min_mass = 1e-290;

    struct Tilted {
        std::vector<double> weights;  // in units of e^top
        double top, total;
        double error;  // of each weight and of the total, relatively
    };

    Tilted tilted(double c) const {
        Tilted t{std::vector<double>(losses_.size()), -infinity, 0.0, 0.0};
        double largest = 0.0;
        for (std::size_t i = 0; i < losses_.size(); ++i) {
            t.weights[i] = log_masses_[i] + c * losses_[i];
            t.top = max(t.top, t.weights[i]);
            largest = max(largest, std::fabs(log_masses_[i]) + std::fabs(c * losses_[i]));
        }
        for (double& weight : t.weights) t.total += weight = std::exp(weight - t.top);
        t.error = (1.0 + std::fabs(c)) * loss_error_ + u * (8.0 + 4.0 * largest + static_cast<double>(losses_.size()));
        return t;
    }

    const simd::Kernels& kernels_;
    std::vector<double> losses_, log_masses_;
    double loss_error_ = 0.0, highest_ = 0.0, variance_ = 0.0;
    std::shared_ptr<FourierWorkspace> workspace_;
    mutable double work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
