// The hockey-stick divergence of two projected mixtures of Laplace laws, in closed form.
//
// Between two neighbouring centres of either mixture, at a distance t from the left one and l the
// gap,
//
//   d = p - gamma q = (a e^{-t/b} + c e^{-(l - t)/b})/(2b),
//
// which changes sign at most once, where t = (l + b log(-a/c))/2. One sweep from either side gives
// a and c. Their relative errors move gamma by as much, so that both ends are sums for a gamma
// nearby.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include <hockeystick/chain/mixture.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

// A sorted mixture seen from both sides: left[k] = sum_{m_j <= z_k} w_j e^{-(z_k - m_j)/b}, and
// right[k] its mirror image.
struct LaplaceSides {
    std::vector<double> left, right;
};

// E_{e^eps} of two projected Laplace mixtures with one noise scale, in closed form between their
// centres.
class LaplaceMixturePair {
  public:
    LaplaceMixturePair(const Mixture& p, const Mixture& q, double noise, double radius)
        : noise_(noise), radius_(radius) {
        std::vector<double> at;  // the centres of p, then those of q
        for (const Mixture* m : {&p, &q}) {
            for (const long double centre : m->centre) at.push_back(static_cast<double>(centre));
        }
        std::vector<std::size_t> order(at.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return at[a] < at[b]; });
        bool low = false, high = false;
        const auto knot = [&](double z, double weight_p, double weight_q) {
            z_.push_back(z);
            p_.push_back(weight_p);
            q_.push_back(weight_q);
        };
        for (const std::size_t j : order) {
            if (!low && at[j] >= -radius) knot(-radius, 0.0, 0.0), low = true;
            if (!high && at[j] > radius) knot(radius, 0.0, 0.0), high = true;
            const bool of_p = j < p.weight.size();
            knot(at[j], of_p ? p.weight[j] : 0.0, of_p ? 0.0 : q.weight[j - p.weight.size()]);
        }
        if (!low) knot(-radius, 0.0, 0.0);
        if (!high) knot(radius, 0.0, 0.0);
        sweep();
    }

    // The sums are right to a factor 1 +- kappa, an ulp of the positions included. So the ends are
    // those of gammas nearby.
    MixtureDivergence hockey_stick(double eps) const {
        const double gamma = std::exp(eps);
        const double farthest = std::max(-z_.front(), z_.back()) / noise_;
        const double kappa = std::min(0.25, eight_roundings * (static_cast<double>(z_.size() + 64) + farthest));
        const Sum low = positive_part(gamma * (1.0 + 3.0 * kappa)), high = positive_part(gamma * (1.0 - 3.0 * kappa));
        return {{std::max(0.0, low.value * (1.0 - 3.0 * kappa) - low.error),
                 std::min(1.0, high.value * (1.0 + 3.0 * kappa) + high.error)},
                std::min(1.0, high.mass * (1.0 + 3.0 * kappa))};
    }

  private:
    struct Masses {
        double p, q;
    };
    struct Sum {
        double value, mass;  // of d and of p, where d > 0
        double error;        // what cancellation may have lost of the value
    };
    double noise_, radius_;
    std::vector<double> z_, p_, q_;
    LaplaceSides p_sides_, q_sides_;

    void sweep() {
        const std::size_t n = z_.size();
        for (LaplaceSides* s : {&p_sides_, &q_sides_}) s->left.resize(n), s->right.resize(n);
        double p = 0.0, q = 0.0;
        for (std::size_t k = 0; k < n; ++k) {
            const double decay = k == 0 ? 0.0 : std::exp((z_[k - 1] - z_[k]) / noise_);
            p_sides_.left[k] = p = p * decay + p_[k];
            q_sides_.left[k] = q = q * decay + q_[k];
        }
        p = q = 0.0;
        for (std::size_t k = n; k-- > 0;) {
            const double decay = k + 1 == n ? 0.0 : std::exp((z_[k] - z_[k + 1]) / noise_);
            p_sides_.right[k] = p = p * decay + p_[k];
            q_sides_.right[k] = q = q * decay + q_[k];
        }
    }

    // The masses that projection puts on -R (below) or R.
    Masses masses_beyond(bool below) const {
        Masses mass{0.0, 0.0};
        for (std::size_t k = 0; k < z_.size(); ++k) {
            const double inside = (below ? z_[k] + radius_ : radius_ - z_[k]) / noise_;
            const double share = inside > 0.0 ? 0.5 * std::exp(-inside) : 1.0 - 0.5 * std::exp(inside);
            mass.p += p_[k] * share;
            mass.q += q_[k] * share;
        }
        return mass;
    }

    Sum positive_part(double gamma) const {
        Sum sum{0.0, 0.0, 0.0};
        for (const bool below : {true, false}) {
            const Masses atom = masses_beyond(below);
            if (atom.p > gamma * atom.q) sum.value += atom.p - gamma * atom.q, sum.mass += atom.p;
        }
        for (std::size_t k = 0; k + 1 < z_.size(); ++k) {
            if (z_[k] >= -radius_ && z_[k + 1] <= radius_) add_gap(k, gamma, sum);
        }
        return sum;
    }

    // Adds int d_+ over the gap after knot k.
    void add_gap(std::size_t k, double gamma, Sum& sum) const {
        const double length = (z_[k + 1] - z_[k]) / noise_;
        if (length <= 0.0) return;
        const double a = p_sides_.left[k] - gamma * q_sides_.left[k];
        const double c = p_sides_.right[k + 1] - gamma * q_sides_.right[k + 1];
        if (a <= 0.0 && c <= 0.0) return;
        double begin = 0.0, end = length;
        if (a < 0.0 || c < 0.0) {
            const double zero = 0.5 * (length + std::log(-a / c));  // a e^{-t} = -c e^{-(l - t)}
            if (a > 0.0) end = std::min(std::max(zero, 0.0), length);
            else begin = std::min(std::max(zero, 0.0), length);
        }
        const double falling = std::exp(-begin) * -std::expm1(begin - end);
        const double rising = std::exp(end - length) * -std::expm1(begin - end);
        sum.value += std::max(0.0, 0.5 * (a * falling + c * rising));
        sum.mass += 0.5 * (p_sides_.left[k] * falling + p_sides_.right[k + 1] * rising);
        if (a < 0.0 || c < 0.0) sum.error += sixteen_roundings * (std::fabs(a) * falling + std::fabs(c) * rising);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
