// What one release leaks: a mechanism by its name and parameters -> the privacy losses of its two directions.
//
// loss/privacy_loss.hpp has Gaussian and Laplace noise, loss/sampled_loss.hpp Poisson and fixed-size sampling. Here:
//
//   Discrete      two probability vectors; randomised response and (eps, delta)-DP (Kairouz, Oh and Viswanath 2015).
//
// Errors as in loss/privacy_loss.hpp. Cost: a binary search a call for Discrete.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/loss/bounded_range.hpp>
#include <hockeystick/loss/discrete_gaussian.hpp>
#include <hockeystick/loss/gaussian_mixture.hpp>
#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/loss/replaced_gaussian.hpp>
#include <hockeystick/loss/sampled_loss.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

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
            errors_.loss = 0x1p-50 * largest_log;
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

// A mechanism by name: "gaussian" or "laplace" (parameters: shift), "discrete" (p, then q), "discrete_pairs" (the length of
// the forward p, then p and q of the forward pair and of the reverse one),
// "replaced_gaussian" (shift of one record, Poisson rate), "discrete_gaussian" (sigma, shift), "bounded_range" (range),
// "gaussian_mixture", "labelled_gaussian" and "labelled_laplace" (shifts, then probabilities), "truncated_gaussian" and, where a
// record is replaced, "truncated_replaced_gaussian" (shift of one record, Poisson rate, probability of truncation), "fixed_size_" and one of
// these (its parameters, then the probability that a replaced record is drawn); `rate` is that of Poisson sampling, 1 for none. Forward is (P, Q),
// the direction called remove under add-or-remove adjacency; the other one exchanges P and Q. Arguments are checked by the caller.
struct Mechanism {
    std::string kind;
    std::vector<double> parameters;
    double rate = 1.0;
};

// A truncated sample drops a record for the new one: twice the shift, shown to those who see whether it was truncated.
inline Loss truncated_loss(const Mechanism& mechanism, bool forward) {
    const double shift = mechanism.parameters.at(0), rate = mechanism.parameters.at(1);
    const double truncation = mechanism.parameters.at(2);
    const auto sampled = [&](double moved) -> Loss {
        if (mechanism.kind == "truncated_replaced_gaussian") return std::make_shared<ReplacedGaussianLoss>(moved, rate);
        if (forward) return std::make_shared<PoissonRemoveLoss>(std::make_shared<GaussianLoss>(moved), rate);
        return std::make_shared<PoissonAddLoss>(std::make_shared<GaussianLoss>(moved), rate);
    };
    return std::make_shared<LabelledLoss>(std::vector{sampled(shift), sampled(2.0 * shift)},
                                          std::vector{1.0 - truncation, truncation});
}

inline constexpr char fixed_size[] = "fixed_size_";

inline Loss base_loss(const Mechanism& mechanism, bool forward);

inline Loss fixed_size_loss(const Mechanism& mechanism) {
    const std::vector<double> parameters(mechanism.parameters.begin(), mechanism.parameters.end() - 1);
    const Mechanism base{mechanism.kind.substr(sizeof fixed_size - 1), parameters, 1.0};
    return std::make_shared<FixedSizeLoss>(base_loss(base, true), base_loss(base, false), mechanism.parameters.back());
}

inline Loss labelled_loss(bool gaussian, const std::vector<double>& shifts, const std::vector<double>& probabilities) {
    std::vector<Loss> losses;
    for (const double shift : shifts)
        losses.push_back(gaussian ? Loss(std::make_shared<GaussianLoss>(shift)) : std::make_shared<LaplaceLoss>(shift));
    return std::make_shared<LabelledLoss>(std::move(losses), probabilities);
}

inline Loss base_loss(const Mechanism& mechanism, bool forward) {
    const std::vector<double>& x = mechanism.parameters;
    if (mechanism.kind == "gaussian") return std::make_shared<GaussianLoss>(x.at(0));
    if (mechanism.kind == "laplace") return std::make_shared<LaplaceLoss>(x.at(0));
    if (mechanism.kind.rfind(fixed_size, 0) == 0) return fixed_size_loss(mechanism);
    if (mechanism.kind == "replaced_gaussian") return std::make_shared<ReplacedGaussianLoss>(x.at(0), x.at(1));
    if (mechanism.kind == "discrete_gaussian") return std::make_shared<DiscreteGaussianLoss>(x.at(0), x.at(1));
    if (mechanism.kind == "bounded_range") return std::make_shared<BoundedRangeLoss>(x.at(0));
    if (mechanism.kind == "truncated_gaussian" || mechanism.kind == "truncated_replaced_gaussian")
        return truncated_loss(mechanism, forward);
    if (mechanism.kind == "discrete_pairs") {
        const auto outcomes = static_cast<std::ptrdiff_t>(x.at(0));
        const auto from = x.begin() + 1 + (forward ? 0 : 2 * outcomes), to = forward ? from + 2 * outcomes : x.end();
        const auto middle = from + (to - from) / 2;
        return std::make_shared<DiscreteLoss>(std::vector<double>(from, middle), std::vector<double>(middle, to));
    }
    const auto half = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
    const std::vector<double> p(x.begin(), half), q(half, x.end());
    if (mechanism.kind == "gaussian_mixture") return std::make_shared<GaussianMixtureLoss>(p, q, forward);
    if (mechanism.kind == "labelled_gaussian") return labelled_loss(true, p, q);
    if (mechanism.kind == "labelled_laplace") return labelled_loss(false, p, q);
    if (mechanism.kind != "discrete") throw std::invalid_argument("unknown mechanism kind " + mechanism.kind);
    return forward ? std::make_shared<DiscreteLoss>(p, q) : std::make_shared<DiscreteLoss>(q, p);
}

inline Loss make_loss(const Mechanism& mechanism, bool forward) {
    if (mechanism.rate == 1.0) return base_loss(mechanism, forward);
    if (mechanism.rate == 0.0) return std::make_shared<DiscreteLoss>(std::vector{1.0}, std::vector{1.0});
    Loss base = base_loss(mechanism, forward);
    if (forward) return std::make_shared<PoissonRemoveLoss>(std::move(base), mechanism.rate);
    return std::make_shared<PoissonAddLoss>(std::move(base), mechanism.rate);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
