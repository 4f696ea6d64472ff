// The cumulant of a law of losses that is given by points: atoms, and the nodes of a quadrature.
//
//   M(s) = sum_j p_j e^{s L_j}
//
// Each point says what its loss and its mass err by. A class that derives from PointCumulant says
// which points serve a tilt and its frequencies, and how far the sum over them is from M(s).
// docs/core/cumulant.md ("Points") proves the errors.
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

// Losses and the logarithms of their masses under P. Errors are in units of u, absolute: that of a
// logarithm is the relative error of the mass.
struct LossPoints {
    std::vector<double> loss, loss_error, log_mass, mass_error;

    void add(double point_loss, double its_error, double point_log_mass, double its_mass_error) {
        loss.push_back(point_loss), loss_error.push_back(its_error);
        log_mass.push_back(point_log_mass), mass_error.push_back(its_mass_error);
    }
    std::size_t size() const { return loss.size(); }
};

// e^x - 1 - x for |x| <= 600, within a relative 20u: by its series where the difference would
// cancel.
inline double expm1_less_x(double x) {
    constexpr double c[] = {
        1.0 / 2.0,         1.0 / 6.0,          1.0 / 24.0,          1.0 / 120.0,          1.0 / 720.0,
        1.0 / 5040.0,      1.0 / 40320.0,      1.0 / 362880.0,      1.0 / 3628800.0,      1.0 / 39916800.0,
        1.0 / 479001600.0, 1.0 / 6227020800.0, 1.0 / 87178291200.0, 1.0 / 1307674368000.0};
    const double small = x < -0.5 ? 0.0 : x > 0.5 ? 0.0 : x;
    const double near = small * small * polynomial(c, small), far = expm1_bounded(x) - x;
    return small == x ? near : far;
}

class PointCumulant : public Cumulant {
  public:
    PointCumulant(const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : kernels_(kernels), workspace_(std::move(workspace)) {}

    Moment log_moment(double c) const override {
        const Law law = this->law(c, 0.0);
        if (!law.points) return {infinity, infinity};
        const Moment centred = law.gap < 1.0 ? centred_moment(law, c) : Moment{0.0, infinity};
        if (std::fabs(centred.value) <= 0.1 && centred.error <= 32.0 * u) return centred;
        const Tilted t = tilt(*law.points, c);
        const double value = t.top + std::log(t.total);
        const double summing = static_cast<double>(t.loss.size()) / 8.0 + 16.0;
        const double rounding = t.mean_weight_error + summing + 2.0 * std::fabs(t.top) + 3.0 * std::fabs(value - t.top);
        const Moment direct{value, u * rounding + t.dropped + 1.1 * std::exp(min(law.log_error - value, 600.0))};
        return centred.error < direct.error && std::fabs(centred.value) <= 0.1 ? centred : direct;
    }

    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        const Law law = this->law(c, static_cast<double>(last) * h);
        if (!law.points) return false;
        const FourierSums phi = transform(tilt(*law.points, c), law.log_error, h, last);
        if (phi.real.empty()) return false;
        kernels_.multiply_powers(phi.step(count), nodes.powers());
        return true;
    }

    double log_variance() const override {
        const Law law = this->law(0.0, 0.0);
        if (!law.points) return 0.0;
        const Tilted t = tilt(*law.points, 0.0);
        double square = 0.0;
        for (std::size_t j = 0; j < t.loss.size(); ++j) square += t.weight[j] * t.loss[j] * t.loss[j];
        return std::log(max(square / t.total, std::numeric_limits<double>::min()));
    }
    double work() const override { return work_; }

  protected:
    static constexpr double u = unit_roundoff;

    // Points for M(s) with Re s = c and |Im s| <= omega; null if there are too many.
    struct Law {
        const LossPoints* points;
        double log_error;  // of the sum over exact points, absolute, as a logarithm
        double gap;        // how far the masses of P and those of Q may sum from 1; 1 if not known
    };
    virtual Law law(double c, double omega) const = 0;

    const simd::Kernels& kernels_;
    mutable double work_ = 0.0;

    // Points below e^-75 of the largest are dropped.
    static constexpr double relevant = 75.0;

    // What matters under a tilt: weights in units of e^top, filled up with zeros; means of |L|, of
    // the errors of a loss, of a weight, and of a weight times |L|, errors in units of u.
    struct Tilted {
        std::vector<double> loss, weight;
        double top = -infinity, total = 0.0, dropped = 0.0;
        double mean_loss = 0.0, mean_loss_error = 0.0, mean_weight_error = 0.0, mean_product_error = 0.0;
    };

    Tilted tilt(const LossPoints& p, double c) const {
        const std::size_t n = p.size();
        std::vector<double> exponents(n), sizes, loss_errors, weight_errors;
        Tilted t;
        for (std::size_t j = 0; j < n; ++j) exponents[j] = p.log_mass[j] + c * p.loss[j];
        for (std::size_t j = 0; j < n; ++j) t.top = max(t.top, exponents[j]);
        for (std::size_t j = 0; j < n; ++j) {
            const double e = exponents[j], size = std::fabs(p.loss[j]);
            if (e < t.top - relevant) continue;
            t.loss.push_back(p.loss[j]);
            t.weight.push_back(e);
            sizes.push_back(size);
            loss_errors.push_back(p.loss_error[j]);
            // the exponent's three roundings, and those of the exponential
            weight_errors.push_back(p.mass_error[j] + std::fabs(c) * (p.loss_error[j] + size) + std::fabs(e) +
                                    (t.top - e) + 4.0);
        }
        const std::size_t kept = t.loss.size(), padded = padded_to_lanes(kept);
        for (auto* array : {&t.loss, &sizes, &loss_errors, &weight_errors}) array->resize(padded, 0.0);
        t.weight.resize(padded, t.top - 1e4);
        kernels_.exponentiate(t.weight.data(), t.top, t.weight.data(), padded);
        std::fill(t.weight.begin() + static_cast<std::ptrdiff_t>(kept), t.weight.end(), 0.0);
        const auto dot = [&](const std::vector<double>& x) { return kernels_.dot(x.data(), t.weight.data(), padded); };
        t.total = kernels_.sum(t.weight.data(), padded);
        t.dropped = static_cast<double>(n - kept) * 3e-33;  // e^-75 < 3e-33
        t.mean_loss = dot(sizes) / t.total;
        t.mean_loss_error = dot(loss_errors) / t.total;
        t.mean_weight_error = dot(weight_errors) / t.total;
        for (std::size_t j = 0; j < padded; ++j) weight_errors[j] *= sizes[j];
        t.mean_product_error = dot(weight_errors) / t.total;
        work_ += static_cast<double>(n);
        return t;
    }

    // A bound of the standard deviation of L, up to 1e-6 of itself.
    static double deviation(const Tilted& t) {
        double first = 0.0, square = 0.0;
        for (std::size_t j = 0; j < t.loss.size(); ++j) first += t.weight[j] * t.loss[j];
        const double centre = first / t.total;
        for (std::size_t j = 0; j < t.loss.size(); ++j)
            square += t.weight[j] * (t.loss[j] - centre) * (t.loss[j] - centre);
        return std::sqrt(square / t.total);
    }

    // phi - 1 at the nodes k h, k up to `last`, for points whose sum is within e^{log_error} of
    // M(s); empty where that would take too much work.
    FourierSums transform(const Tilted& t, double log_error, double h, std::size_t last) const {
        FourierSums phi =
            characteristic_differences(t.loss, t.weight, t.mean_loss, h, last, *workspace_, kernels_, work_);
        if (phi.real.empty()) return phi;
        const double share = 1.0 / t.total;
        const double outside = 2.2 * std::exp(min(log_error - t.top - std::log(t.total), 600.0)) + 2.0 * t.dropped;
        const double summing = 32.0 + power_error + static_cast<double>(t.loss.size()) / 8.0;
        for (std::size_t k = 1; k <= last; ++k) {
            phi.real[k] *= share;
            phi.imag[k] *= share;
            const double omega = static_cast<double>(k) * h;
            phi.error[k] += u * (summing * min(2.0, omega * t.mean_loss) + omega * t.mean_loss_error +
                                 transform_error(t.mean_weight_error, t.mean_product_error, t.mean_loss, omega)) +
                            outside;
        }
        return phi;
    }

  private:
    // log1p of M - 1 = sum_j q_j (psi(a L_j) - a psi(L_j)), psi(x) = e^x - 1 - x, a = c + 1, where
    // q_j = p_j e^{-L_j}: M - 1 is of second order in the losses, and so is the error.
    Moment centred_moment(const Law& law, double c) const {
        constexpr double least = -72.0;
        const LossPoints& p = *law.points;
        const double a = c + 1.0, size = std::fabs(a), size_of_c = std::fabs(c);
        double value = 0.0, absolute = 0.0, rounding = 0.0;
        for (std::size_t j = 0; j < p.size(); ++j) {
            const double loss = p.loss[j], power = a * loss, log_q = p.log_mass[j] - loss;
            if (log_q + max(max(power, loss), 0.0) < least) continue;
            if (max(std::fabs(power), std::fabs(loss)) > 600.0) return {0.0, infinity};
            const double raised = expm1_less_x(power), linear = expm1_less_x(loss);
            const double q = std::exp(log_q), term = raised - a * linear;
            const double slope = size * (raised + linear + size_of_c * std::fabs(loss));
            const double errors = slope * p.loss_error[j] + 24.0 * (raised + size * linear) +
                                  4.0 * std::fabs(power) * (raised + std::fabs(power)) +
                                  std::fabs(term) * (p.mass_error[j] + p.loss_error[j] + 2.0 * std::fabs(log_q) + 8.0);
            value += q * term;
            absolute += q * std::fabs(term);
            rounding += q * errors;
        }
        if (!(std::fabs(value) < 0.15)) return {0.15, infinity};
        const double n = static_cast<double>(p.size());
        const double left_out = (1.0 + size + size_of_c) * (law.gap + n * 6e-32);  // e^-72 < 6e-32
        const double error = 1.01 * u * (rounding + n * absolute + 8.0 * std::fabs(value)) + left_out +
                             std::exp(min(law.log_error, 0.0));
        return {std::log1p(value), 1.2 * error};
    }

    std::shared_ptr<FourierWorkspace> workspace_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
