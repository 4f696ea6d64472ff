// A mixture of Gaussians of variance 1 as a density ratio: A(x) = sum_k w_k e^{r_k x - r_k^2/2} is
// the density of sum_k w_k N(r_k, 1) over that of N(0, 1).
//
// Given x, component k has the posterior p_k = w_k e^{r_k x - r_k^2/2}/A(x); mu and V are the mean
// and variance of r_k under it. (log A)' = mu rises, and (log A)'' = V. On x + iy, as long as
// V y^2 < 2,
//
//   A(x) sqrt(1 - V y^2) <= |A(x + iy)| <= A(x),
//   |arg A(x + iy) - mu y| <= min(0.32 V y^2, K y^3/6)/(1 - V y^2/2),  K = E|r_k - mu|^3.
//
// Let `reach` be a distance. Everywhere within it of x, the n-th absolute moment of r_k about the
// mu of x is at most E|r_k - mu|^n e^{|r_k - mu| reach} at x. Hence V is at most that for n = 2. K
// is little more than that for n = 3, because mu moves by at most reach V. Proofs:
// docs/core/cumulant.md, "Mixtures of Gaussians".
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// Shifts and as many weights, positive and summing to 1 up to rounding.
struct ShiftWeights {
    std::vector<double> shifts, weights;
};

class ShiftMixture {
  public:
    struct Value {
        double log, log_error;  // log A, and its error in units of u
        double mean;            // mu
        double variance, cube;  // at least V and K within the reach; 0 if that is 0
    };

    // 1: all the weight at 0.
    ShiftMixture() = default;
    // Weight 1 - rate at 0, and `rate` spread over the shifts, which `sign` multiplies.
    ShiftMixture(const ShiftWeights& spread, double rate, double sign = 1.0) : at_zero_(1.0 - rate) {
        double sum = 0.0;
        for (const double weight : spread.weights) sum += weight;
        for (std::size_t k = 0; k < spread.shifts.size(); ++k) {
            shifts_.push_back(sign * spread.shifts[k]);
            weights_.push_back(rate * (spread.weights[k] / sum));
            log_weights_.push_back(std::log(weights_.back()));
            largest_ = max(largest_, spread.shifts[k]);
        }
        if (at_zero_ > 0.0) log_at_zero_ = std::log(at_zero_);
        terms_.resize(shifts_.size());
    }

    bool is_constant() const { return shifts_.empty(); }
    double weight_at_zero() const { return at_zero_; }
    const std::vector<double>& shifts() const { return shifts_; }
    const std::vector<double>& weights() const { return weights_; }

    Value at(double x, double reach) const {
        if (is_constant()) return {0.0, 0.0, 0.0, 0.0, 0.0};
        double largest = 0.0;  // exponent
        for (const double r : shifts_) largest = max(largest, r * (x - 0.5 * r));
        Value value{};
        const double top = largest < 600.0 ? log_moderate(x, reach, value) : log_large(x, value);
        add_posterior(reach, std::exp(top - value.log), value);
        return value;
    }

    // The components whose posterior at x is above `share`, as far as doubles tell.
    void mark_likely(double x, double share, std::vector<bool>& marked) const {
        const double least = at(x, 0.0).log + std::log(share);
        for (std::size_t k = 0; k < shifts_.size(); ++k)
            if (exponent(k, x) > least) marked[k] = true;
    }

  private:
    // log A where no exponent is above 600. The terms e^{t_k} w_k are kept, in units of e^0.
    //
    // A term below e^-75 of the weight at 0, even times (1 + r)^3 e^{r reach} for the largest |r|,
    // counts as 0. So A errs by less than 1e-16 u for each, relatively, and the moments of the
    // posterior by less than `negligible` in all, which V and K are charged.
    double log_moderate(double x, double reach, Value& value) const {
        const double count = static_cast<double>(shifts_.size());
        const double least = log_at_zero_ - 75.0 - 3.0 * std::log1p(largest_) - largest_ * reach;
        double change = 0.0, change_error = 0.0, sum = at_zero_, sum_error = at_zero_;
        for (std::size_t k = 0; k < shifts_.size(); ++k) {
            const double weight = weights_[k];
            const double t = shifts_[k] * (x - 0.5 * shifts_[k]);
            if (t < -40.0 && t + log_weights_[k] < least) {  // e^t is below the rounding of expm1
                change -= weight;
                change_error += weight * (9.0 + 2.0 * count);
                terms_[k] = 0.0;
                sum_error += 1e-16 * at_zero_;
                value.variance = value.cube = negligible;
                continue;
            }
            const double grown = std::expm1(t), error_of_t = 2.0 * std::fabs(t) * (1.0 + grown);
            change += weight * grown;
            change_error += weight * (std::fabs(grown) * (9.0 + 2.0 * count) + error_of_t);
            terms_[k] = weight * (t > -0.5 ? 1.0 + grown : std::exp(t));
            sum += terms_[k];
            sum_error += terms_[k] * (12.0 + 2.0 * count) + weight * error_of_t;
        }
        const bool near = change > -0.5;  // else 1 + change would cancel
        value.log = near ? std::log1p(change) : std::log(sum);
        value.log_error = (near ? change_error : sum_error) / sum + 2.0 * std::fabs(value.log) + (near ? 0.0 : 1.0);
        return 0.0;
    }

    // The same where one is: the terms are kept in units of the largest, whose logarithm it
    // returns.
    double log_large(double x, Value& value) const {
        double top = at_zero_ > 0.0 ? std::log(at_zero_) : -infinity;
        for (std::size_t k = 0; k < shifts_.size(); ++k) top = max(top, exponent(k, x));
        double sum = at_zero_ > 0.0 ? std::exp(std::log(at_zero_) - top) : 0.0, error = 0.0;
        for (std::size_t k = 0; k < shifts_.size(); ++k) {
            const double e = exponent(k, x), t = e - log_weights_[k];
            terms_[k] = std::exp(e - top);
            sum += terms_[k];
            error += terms_[k] * (3.0 * std::fabs(t) + 4.0 * std::fabs(log_weights_[k]) + std::fabs(e) + 20.0);
        }
        value.log = top + std::log(sum);
        const double count = static_cast<double>(shifts_.size());
        value.log_error = error / sum + count + 8.0 + 2.0 * std::fabs(top) + std::fabs(value.log);
        return top;
    }
    double exponent(std::size_t k, double x) const { return log_weights_[k] + shifts_[k] * (x - 0.5 * shifts_[k]); }

    // Moments of the posterior, from the kept terms times `unit`.
    void add_posterior(double reach, double unit, Value& value) const {
        constexpr double safe = 1.0 + 1e-9;
        for (std::size_t k = 0; k < shifts_.size(); ++k) value.mean += terms_[k] * unit * shifts_[k];
        if (reach == 0.0) {
            value.variance = value.cube = 0.0;
            return;
        }
        const auto add = [&](double share, double distance) {
            const double term = share * distance * distance * std::exp(distance * reach) * safe;
            value.variance += term;
            value.cube += term * distance;
        };
        const double of_all = at_zero_ * std::exp(-value.log);
        if (at_zero_ > 0.0) add(of_all, std::fabs(value.mean));
        for (std::size_t k = 0; k < shifts_.size(); ++k)
            if (terms_[k] > 0.0) add(terms_[k] * unit, std::fabs(shifts_[k] - value.mean));
        const double moved = reach * value.variance;  // of mu, at most
        value.cube += moved * (3.0 * value.variance + moved * (3.0 * std::sqrt(value.variance) + moved));
    }

    static constexpr double negligible = 1e-30;  // 256 e^-75 is less

    std::vector<double> shifts_, weights_, log_weights_;
    double at_zero_ = 1.0, log_at_zero_ = -infinity, largest_ = 0.0;
    mutable std::vector<double> terms_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
