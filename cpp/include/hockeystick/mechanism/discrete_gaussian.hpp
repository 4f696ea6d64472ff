// Discrete Gaussian noise on an integer query that moves by `shift` (loss/discrete_gaussian.hpp).
//
// Its Renyi divergences are at most those of Gaussian noise of the same sigma and shift, and equal
// them at every order a for which a * shift is an integer (Canonne, Kamath and Steinke 2020).
#pragma once

#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/cumulant/wide_discrete_gaussian.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/loss/discrete_gaussian.hpp>
#include <hockeystick/mechanism/gaussian.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// The outcomes k of a discrete Gaussian that a cumulant keeps, -end <= k <= shift + end. The rest
// has at most the mass e^{-end^2/2 sigma^2} under either law: a discrete Gaussian's tail P(X > end)
// is at most that of a Gaussian (Canonne, Kamath and Steinke 2020, Proposition 25), on either side.
struct DiscreteGaussianOutcomes {
    static constexpr double deviations = 26.2;  // e^-343 is missing
    static constexpr double most = 4096.0;

    double sigma, shift;

    double end() const { return std::ceil(deviations * sigma); }
    bool few() const { return 2.0 * end() + shift + 1.0 <= most; }
    double log_missing() const { return -0.5 * (end() / sigma) * (end() / sigma) * (1.0 - 1e-12); }
    double log_weight(double k) const { return -0.5 * (k / sigma) * (k / sigma); }
    // log of the sum of all weights, up to 8u.
    double log_normaliser() const {
        CompensatedSum sum;
        for (double k = end(); k >= 1.0; k -= 1.0) sum.add(std::exp(log_weight(k)));
        return std::log1p(2.0 * sum.value());
    }
};

// Discrete Gaussian noise on a Poisson sample of rate q, where one record is replaced: the noise
// moves by s under P, by -s under Q, with probability q. It dominates, and is attained, as the pair
// of loss/replaced_laplace.hpp: the ratio of noise moved by s to noise rises in the outcome.
// Outcomes that are not kept have infinite losses for the upper end; for the lower end they are
// left out.
class ReplacedDiscreteGaussian final : public Pair {
  public:
    ReplacedDiscreteGaussian(DiscreteGaussianOutcomes outcomes, double rate, End end)
        : outcomes_(outcomes), rate_(rate), end_(end) {}

    Loss loss(Direction) const override {
        Masses masses;
        const auto add = [&masses](double p, double q) { masses.p.push_back(p), masses.q.push_back(q); };
        const LossPoints points = law().points;
        for (std::size_t i = 0; i < points.size(); ++i)
            add(std::exp(points.log_mass[i]), std::exp(points.log_mass[i] - points.loss[i]));
        const double missing = std::exp(outcomes_.log_missing());
        if (end_ == End::upper) add(missing, 0.0), add(0.0, missing);
        return std::make_shared<DiscreteLoss>(masses.p, masses.q);
    }
    bool has_cumulant(double rate) const override { return rate == 1.0; }
    std::unique_ptr<Cumulant> cumulant(double, Direction, double, const CumulantTools& tools) const override {
        return std::make_unique<DiscreteCumulant>(law(), *tools.kernels, tools.workspace);
    }
    // At most that of the noise moved by s against the noise moved by -s, by joint quasi-convexity,
    // which is at most that of a Gaussian.
    double renyi(double order, double rate, Direction direction) const override {
        if (rate != 1.0) return Pair::renyi(order, rate, direction);
        return Gaussian::of_shift(2.0 * outcomes_.shift / outcomes_.sigma * up)->renyi(order, 1.0, direction);
    }
    std::vector<double> parameters() const override {
        return {outcomes_.sigma, outcomes_.shift, rate_, end_ == End::upper ? 1.0 : 0.0};
    }

  private:
    DiscreteLaw law() const {
        DiscreteLaw law;
        law.log_missing = outcomes_.log_missing(), law.gap = 2.0 * std::exp(law.log_missing);
        const double log_sum = outcomes_.log_normaliser(), s = outcomes_.shift;
        const double spread = 2.0 * outcomes_.sigma * outcomes_.sigma, last = outcomes_.end() + s;
        for (double k = -last; k <= last; k += 1.0) {
            const double log_weight = outcomes_.log_weight(k) - log_sum;
            const double moved = s * (2.0 * k - s) / spread, opposite = -s * (2.0 * k + s) / spread;
            const auto against_none = [&](double base) {
                return sampled_point(
                    base, log_weight, {rate_, Direction::remove},
                    {4.0 * unit_roundoff * std::fabs(base), unit_roundoff * (10.0 + 5.0 * std::fabs(log_weight))});
            };
            const Point with = against_none(moved), other = against_none(opposite);
            law.add({with.loss - other.loss, with.log_mass,
                     with.loss_error + other.loss_error + unit_roundoff * std::fabs(with.loss - other.loss),
                     with.mass_error});
        }
        return law;
    }

    DiscreteGaussianOutcomes outcomes_;
    double rate_;
    End end_;
};

class DiscreteGaussian final : public Pair {
  public:
    DiscreteGaussian(double sigma, double shift) : sigma_(sigma), shift_(shift) {
        require(positive(sigma), "noise_std", "be positive and finite", sigma);
        require(count(shift), "sensitivity", "be an integer in [1, 2^53]", shift);
    }
    Loss loss(Direction) const override { return std::make_shared<DiscreteGaussianLoss>(sigma_, shift_); }
    double renyi(double order, double rate, Direction direction) const override {
        return Gaussian::of_shift(concentrated_shift())->renyi(order, rate, direction);
    }
    bool has_cumulant(double rate) const override { return outcomes().few() || (rate == 1.0 && is_wide()); }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double,
                                       const CumulantTools& tools) const override {
        const DiscreteGaussianOutcomes all = outcomes();
        if (!all.few()) return std::make_unique<WideDiscreteGaussianCumulant>(sigma_, shift_);
        const double log_sum = all.log_normaliser(), first = -all.end(), last = shift_ + all.end();
        DiscreteLaw law;
        law.log_missing = all.log_missing(), law.gap = 2.0 * std::exp(law.log_missing);
        for (double k = first; k <= last; k += 1.0) {
            const double log_q = all.log_weight(k) - log_sum;
            const double base = shift_ * (2.0 * k - shift_) / (2.0 * sigma_ * sigma_);
            const double error = unit_roundoff * (10.0 + 5.0 * std::fabs(log_q));
            law.add(sampled_point(base, log_q, {rate, direction}, {4.0 * unit_roundoff * std::fabs(base), error}));
        }
        return std::make_unique<DiscreteCumulant>(std::move(law), *tools.kernels, tools.workspace);
    }
    // Null where the outcomes are many, or masses underflow.
    PairPointer sampled_and_replaced(double rate, End end) const override {
        const DiscreteGaussianOutcomes all = outcomes();
        if (!all.few() || all.log_weight(all.end() + shift_) < -600.0) return nullptr;
        return std::make_shared<ReplacedDiscreteGaussian>(all, rate, end);
    }
    double concentrated_shift() const override { return shift_ / sigma_; }
    std::vector<double> parameters() const override { return {sigma_, shift_}; }

  private:
    DiscreteGaussianOutcomes outcomes() const { return {sigma_, shift_}; }
    bool is_wide() const { return sigma_ >= WideDiscreteGaussianCumulant::least_sigma; }

    double sigma_, shift_;
};

inline PairPointer discrete_gaussian(double sigma, double sensitivity) {
    return made<DiscreteGaussian>(sigma, sensitivity);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
