// The privacy loss of two probability vectors, outcome by outcome: L = log p_i - log q_i.
//
// Randomised response and (eps, delta)-differential privacy are of this kind (Kairouz, Oh and
// Viswanath 2015).
//
// Errors as in loss/privacy_loss.hpp. Cost: a binary search a call; delta visits every outcome of a
// larger loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

// The probabilities of each outcome under P and under Q.
struct Masses {
    std::vector<double> p, q;
};

class DiscreteLoss final : public PrivacyLoss {
  public:
    // Two vectors of one length, non-negative, each summing to one up to rounding.
    DiscreteLoss(const std::vector<double>& p, const std::vector<double>& q) {
        if (p.size() != q.size() || p.empty()) throw std::invalid_argument("p and q must have the same length, not 0");
        int unmatched = 0;
        double largest_log = 1.0;
        for (std::size_t i = 0; i < p.size(); ++i) {
            for (const double mass : {p[i], q[i]})
                if (mass > 0.0) largest_log = max(largest_log, -std::log(mass));
            if (q[i] == 0.0) infinite_ += p[i], unmatched += p[i] > 0.0;
            else if (p[i] == 0.0) vanishing_ += q[i];
            else atoms_.push_back({std::log(p[i]) - std::log(q[i]), p[i], q[i]});
        }
        if (p.size() > 1 || p[0] != q[0]) {  // a single outcome leaks exactly nothing
            errors_.loss = eight_roundings * largest_log;
            errors_.atoms = 2.0 * static_cast<double>(p.size());
            errors_.infinite = unmatched == 1 ? 0.0 : errors_.atoms + 8.0;  // the mass of a single outcome is exact
        }
        std::sort(atoms_.begin(), atoms_.end(), [](const Atom& x, const Atom& y) { return x.loss < y.loss; });
        const std::size_t n = atoms_.size();
        below_.resize(n + 1);
        above_.resize(n + 1);
        below_[0] = {0.0, 0.0, vanishing_};
        for (std::size_t i = 0; i < n; ++i) below_[i + 1] = {0.0, below_[i].p + atoms_[i].p, below_[i].q + atoms_[i].q};
        above_[n] = {0.0, 0.0, 0.0};
        for (std::size_t i = n; i-- > 0;)
            above_[i] = {0.0, above_[i + 1].p + atoms_[i].p, above_[i + 1].q + atoms_[i].q};
    }
    LossMasses masses(double eps) const override {
        const std::size_t i = first_above(eps);
        return {below_[i].p, above_[i].p, below_[i].q, above_[i].q};
    }
    double delta(double eps) const override {
        double sum = infinite_;
        for (std::size_t i = first_above(eps); i < atoms_.size(); ++i)
            sum -= std::expm1(eps - atoms_[i].loss) * atoms_[i].p;
        return min(sum, 1.0);
    }
    double p_infinite() const override { return infinite_; }
    double lowest() const override { return atoms_.empty() ? 0.0 : atoms_.front().loss; }
    double highest() const override { return atoms_.empty() ? 0.0 : atoms_.back().loss; }
    double highest_error() const override {  // log p - log q may cancel
        return atoms_.empty() ? 0.0
                              : 1e-15 * (std::fabs(std::log(atoms_.back().p)) + std::fabs(std::log(atoms_.back().q)));
    }
    double lattice() const override {
        double spacing = infinity;
        for (const Atom& atom : atoms_)
            if (std::fabs(atom.loss) > 1e-12) spacing = min(spacing, std::fabs(atom.loss));
        for (const Atom& atom : atoms_) {
            const double multiple = atom.loss / spacing;
            if (std::fabs(multiple - std::round(multiple)) > 1e-14 * (1.0 + std::fabs(multiple))) return 0.0;
        }
        return spacing < infinity ? spacing : 0.0;
    }
    // Each sum of n masses adds n u, and the sums over both vectors may miss 1 by as much.
    double scale() const override { return static_cast<double>(atoms_.size()) / 16.0; }
    LossErrors errors() const override { return errors_; }

    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        for (const Atom& atom : atoms_) points.push_back({atom.loss, std::log(atom.p), std::log(atom.q)});
        points.push_back({infinity, std::log(infinite_), -infinity});
        points.push_back({-infinity, -infinity, std::log(vanishing_)});
        return points;
    }

  private:
    struct Atom {
        double loss, p, q;
    };
    std::size_t first_above(double eps) const {
        const auto at = std::upper_bound(atoms_.begin(), atoms_.end(), eps,
                                         [](double value, const Atom& atom) { return value < atom.loss; });
        return static_cast<std::size_t>(at - atoms_.begin());
    }

    std::vector<Atom> atoms_;  // by loss
    std::vector<Atom> below_, above_;
    double infinite_ = 0.0, vanishing_ = 0.0;
    LossErrors errors_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
