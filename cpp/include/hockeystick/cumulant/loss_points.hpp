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
    std::vector<double> q, log_q, psi, q_error;  // simd/loss_points.hpp; empty before `complete`

    void add(double point_loss, double its_error, double point_log_mass, double its_mass_error) {
        loss.push_back(point_loss), loss_error.push_back(its_error);
        log_mass.push_back(point_log_mass), mass_error.push_back(its_mass_error);
    }
    std::size_t size() const { return loss.size(); }

    // Fills up to a multiple of `lanes` with points of no mass, as the loops need.
    void pad() {
        while (size() % simd::lanes != 0) add(0.0, 0.0, no_mass, 0.0);
    }
    // The same, and prepares sums that are centred at loss 0.
    void complete() {
        pad();
        for (std::size_t j = 0; j < size(); ++j) {
            const double x = loss[j], log_own = log_mass[j] - x;
            const bool moderate = std::fabs(x) <= 600.0;
            q.push_back(moderate ? std::exp(log_own) : 0.0);
            log_q.push_back(log_own);
            psi.push_back(moderate ? simd::expm1_less_x(x) : 0.0);
            q_error.push_back(mass_error[j] + loss_error[j] + 2.0 * std::fabs(log_own) + 8.0);
            has_large_losses = has_large_losses || (!moderate && max(log_own, log_mass[j]) > least_matter);
        }
    }
    static constexpr double least_matter = -72.0, no_mass = -1e300;
    bool has_large_losses = false;
};

class PointCumulant : public Cumulant {
  public:
    PointCumulant(const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : kernels_(kernels), workspace_(std::move(workspace)) {}

    Moment log_moment(double c) const override {
        const Law law = this->law(c, 0.0);
        if (!law.points) return {infinity, infinity};
        const bool near = law.gap < 5e-12 && c < large_from_;  // else the other is sharper
        const Moment centred = near ? centred_moment(law, c) : Moment{0.0, infinity};
        if (std::fabs(centred.value) <= 0.1 && centred.error <= 32.0 * u) return centred;
        const Tilted t = tilt(*law.points, c);
        const double value = t.top + std::log(t.total);
        const double summing = static_cast<double>(t.loss.size()) / 8.0 + 16.0;
        const double rounding = t.mean_weight_error + summing + 2.0 * std::fabs(t.top) + 3.0 * std::fabs(value - t.top);
        const double outside = t.dropped + std::exp(min(law.log_error - value, 600.0));
        const Moment direct{value, outside < 0.1 ? u * rounding + 1.1 * outside : infinity};
        if (c > 0.0 && value > 0.2 && direct.error < 1e-3) large_from_ = min(large_from_, c);
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
        exponents_.resize(n);
        kernels_.fill_point_exponents(p.log_mass.data(), p.loss.data(), c, exponents_.data(), n);
        Tilted t;
        t.top = kernels_.largest(exponents_.data(), n);
        kept_.clear();
        for (std::size_t j = 0; j < n; ++j)
            if (exponents_[j] >= t.top - relevant) kept_.push_back(j);
        const std::size_t kept = kept_.size(), padded = padded_to_lanes(kept);
        for (auto* array : {&t.loss, &t.weight, &sizes_, &loss_errors_, &weight_errors_}) array->assign(padded, 0.0);
        for (std::size_t k = 0; k < kept; ++k) {
            const std::size_t j = kept_[k];
            const double e = exponents_[j], size = std::fabs(p.loss[j]);
            t.loss[k] = p.loss[j], t.weight[k] = e;
            sizes_[k] = size, loss_errors_[k] = p.loss_error[j];
            // the exponent's three roundings, and those of the exponential
            weight_errors_[k] =
                p.mass_error[j] + std::fabs(c) * (p.loss_error[j] + size) + std::fabs(e) + (t.top - e) + 4.0;
        }
        kernels_.exponentiate(t.weight.data(), t.top, t.weight.data(), padded);
        std::fill(t.weight.begin() + static_cast<std::ptrdiff_t>(kept), t.weight.end(), 0.0);
        const auto dot = [&](const std::vector<double>& x) { return kernels_.dot(x.data(), t.weight.data(), padded); };
        t.total = kernels_.sum(t.weight.data(), padded);
        t.dropped = static_cast<double>(n - kept) * 3e-33;  // e^-75 < 3e-33
        t.mean_loss = dot(sizes_) / t.total;
        t.mean_loss_error = dot(loss_errors_) / t.total;
        t.mean_weight_error = dot(weight_errors_) / t.total;
        for (std::size_t j = 0; j < padded; ++j) weight_errors_[j] *= sizes_[j];
        t.mean_product_error = dot(weight_errors_) / t.total;
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
        const LossPoints& p = *law.points;
        if (p.has_large_losses) return {0.0, infinity};
        const std::size_t n = p.size();
        terms_.resize(n), errors_.resize(n);
        kernels_.centred_point_terms(
            {p.loss.data(), p.q.data(), p.log_q.data(), p.psi.data(), p.loss_error.data(), p.q_error.data(), n}, c,
            terms_.data(), errors_.data());
        work_ += static_cast<double>(n);
        const double value = kernels_.sum(terms_.data(), n), size = static_cast<double>(n);
        if (!(std::fabs(value) < 0.15)) return {0.15, infinity};
        // A sum of n terms errs by n/8 + 8 of their sizes, which are a 24th of their errors or
        // less.
        const double rounding = (2.0 + size / 192.0) * kernels_.sum(errors_.data(), n) + 8.0 * std::fabs(value);
        const double left_out = (2.0 + 2.0 * std::fabs(c)) * (law.gap + size * 6e-32);  // e^-72 < 6e-32
        const double error = 1.01 * u * rounding + left_out + std::exp(min(law.log_error, 0.0));
        return {std::log1p(value), 1.2 * error};
    }

    std::shared_ptr<FourierWorkspace> workspace_;
    mutable double large_from_ = infinity;  // log M rises for c > 0: from here on it is not near 0
    mutable std::vector<double> exponents_, sizes_, loss_errors_, weight_errors_, terms_, errors_;
    mutable std::vector<std::size_t> kept_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
