// The T-fold convolution of grid measures under an exponential tilt, with a certified error for
// every delta read off it. Proofs and all charges: docs/core/pld.md, Composing under a tilt.
//
// With m_j(i) the mass of step j at loss i h, M_j = sum_i m_j(i) e^{c i h} and K = sum_j T_j log
// M_j,
//
//   delta(eps) - delta_inf = e^{K - c eps} sum_{l > eps} w(l) x(l),
//   w(l) = (1 - e^{eps-l}) e^{-c(l-eps)} <= kappa(c),
//
// where x is the convolution of the probability vectors m_j(i) e^{c i h}/M_j. So errors of x are
// relative to the Chernoff bound kappa(c) e^{K - c eps}, which exceeds delta by a factor of tens at
// the best tilt, however small delta is.
//
// Where one large loss rules (pld/grid_plan.hpp) each step is cut, m = b + a with a the losses from
// the cut on, and m^{*T} is b^{*T} plus the rest. The rest is what x is then, in units of prod
// M_b^T: its transform is X^T - B^T, without cancellation (pld/spectrum_power.hpp), and its mass is
// g = prod (1 + M_a/M_b)^T - 1. The first part adds its Chernoff bound, with a tilt c' of its own,
// to the upper end, and nothing to the lower one. Without a cut all losses count as small.
//
// Cost: a transform of n points for every distinct step (two with a cut) and one back; memory below
// 50 n bytes.
#pragma once

#include <hockeystick/divergence/chernoff.hpp>
#include <hockeystick/pld/grid_plan.hpp>
#include <hockeystick/pld/sparse_convolution.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

struct CertifiedDelta {
    double lower, upper;
    double rounding;  // how far rounding and wrap-around alone may move log delta
};

inline constexpr std::int64_t no_cut = std::numeric_limits<std::int64_t>::max();

// The steps, tilted, and the window that holds them.
struct TiltedSteps {
    std::vector<TiltedStep> steps;
    double h, c;
    bool large_losses_split_off;
    Window window;
    double outside_mass;                             // tilted mass outside the window, on either side, in units of G(0)
    double lowest_eps;                               // no delta is asked for below this
    double log_small = -infinity, small_tilt = 1.0;  // prod M_b(c')^T, c'
    double small_moved = 0.0;                        // by how much rounding moves it beside kappa(c')
    double log_infinite = 0.0;                       // of the probability that no loss is infinite
    double infinite_error = 0.0;                     // relative, of the probability that one is
    double offset = 0.0;                             // of the composition's grid

    bool empty() const { return !(window.high > window.low); }
    // The length of a circle on which losses above its top come back below `lowest_eps`, and losses
    // below the window above `lowest_eps` + 30/c.
    double points() const { return max(window.high - lowest_eps, lowest_eps + 30.0 / c - window.low) / h + 8.0; }
};

inline TiltedSteps tilt_steps(const std::vector<GriddedStep>& parts, double h, const Plan& plan, std::int64_t cut,
                              WorkBudget& budget) {
    const double c = plan.tilt;
    TiltedSteps result{{}, h, c, cut != no_cut, {0.0, 0.0}, plan.outside_mass, plan.lowest_eps};
    for (const GriddedStep& part : parts) {
        result.steps.push_back(tilt(part, h, c, cut, budget));
        if (result.steps.back().values.empty()) return result;
        const bool no_small = result.steps.back().small_blocks.empty();  // then the cut is of no use
        if (result.large_losses_split_off && no_small) return tilt_steps(parts, h, plan, no_cut, budget);
        result.offset += part.count * part.grid->offset;
        result.log_infinite += part.count * std::log1p(-part.measure->infinite);
        result.infinite_error = max(result.infinite_error, part.grid->infinite_error);
    }
    result.infinite_error = infinite_error_of(result.infinite_error, parts.size());
    result.window = find_window(result.steps, 0.1 / c, result.large_losses_split_off, plan.outside_mass, budget);
    if (!result.large_losses_split_off) return result;
    // Where no sum of small losses reaches eps the best tilt is infinite. Any tilt is sound, and the
    // errors of a cell grow like e^{3 c' h}.
    result.log_small = 0.0, result.small_tilt = min(plan.small_tilt, 1.0 / h);
    for (const GriddedStep& part : parts) {
        const TiltedStep small = tilt(part, h, result.small_tilt, cut, budget, true);
        const double rounding = small.small.growth + exponent_error * std::fabs(small.scale);
        result.log_small += part.count * (small.scale + rounding);
        result.small_moved += part.count * small.small.moved;
    }
    return result;
}

class TiltedComposition {
  public:
    // n is a power of two, at least steps.points(). The steps' values are used up.
    TiltedComposition(TiltedSteps& steps, std::size_t n, WorkBudget& budget)
        : h_(steps.h), c_(steps.c), kappa_(std::exp(log_kappa(steps.c))),
          large_losses_split_off_(steps.large_losses_split_off),
          first_(static_cast<std::int64_t>(std::floor((steps.window.low - steps.offset) / steps.h)) - 1),
          lowest_clean_eps_(steps.window.high + 2.0 * steps.h - static_cast<double>(n) * steps.h),
          offset_(steps.offset), log_infinite_(steps.log_infinite), infinite_error_(steps.infinite_error),
          log_small_(steps.log_small + std::log(std::exp(log_kappa(steps.small_tilt)) + steps.small_moved)),
          small_tilt_(steps.small_tilt) {
        charge_masses(steps);
        const RealTransform transform(n);
        if (large_losses_split_off_) multiply_pairs(steps, transform, budget);
        else multiply(steps, transform, budget);
        budget.spend(transform_work(n) + reading_work * static_cast<double>(n));
        transform.backward(x_.data());
        norm_error_ += 2.0 * fft_relative_error(n) * (norm(x_) + norm_error_);
        sum_downwards();
        const double c = c_;
        total_error_ =
            mass_error_ + norm_error_ * std::sqrt(kappa_ * kappa_ + 1.0 / (2.0 * c * (c + 1.0) * (2.0 * c + 1.0) * h_));
        summing_error_ = (8.0 * static_cast<double>(n) + 1000.0) * unit_roundoff;
    }

    // delta(eps) of the grid measures, rounding included.
    CertifiedDelta delta(double eps) const {
        if (eps < lowest_clean_eps_)
            return {min(-std::expm1(log_infinite_) * (1.0 - infinite_error_), 1.0), 1.0, infinity};
        const double sum = weighted_sum(eps);
        const double top = static_cast<double>(first_ + static_cast<std::int64_t>(x_.size()) - 2) * h_ + offset_;
        const double error = total_error_ + (computed_mass_ + norm_error_) * std::exp(min(-c_ * (top - eps), 0.0)) +
                             summing_error_ * (std::fabs(sum) + 2.0 * total_error_) + 1e-300;
        const double log_unit = log_total_ - c_ * eps;
        const double blur = 1.0 + 8.0 * unit_roundoff *
                                      (std::fabs(log_total_) + c_ * (std::fabs(eps) + 2.0 * std::fabs(offset_)) + 1.0);
        const double unit = std::exp(log_unit) * blur;
        const double infinite = -std::expm1(log_infinite_);
        const double below = unit < infinity && sum > error ? unit * (sum - error) / (blur * blur) : 0.0;
        const double small = std::exp(min(log_small_ - small_tilt_ * eps, 1.0)) * (1.0 + 1e-9);
        const double above = unit * max(sum + error, error) + (large_losses_split_off_ ? small : 0.0);
        const double share = sum > 0.0 ? (error + (large_losses_split_off_ ? small / unit : 0.0)) / sum : infinity;
        return {min(infinite * (1.0 - infinite_error_) + below, 1.0),
                min(infinite * (1.0 + infinite_error_) + above + std::numeric_limits<double>::min(), 1.0), share};
    }

  private:
    std::size_t index(std::int64_t k) const {
        return static_cast<std::size_t>(k) & (x_.size() - 1);  // modulo a power of two, negative k too
    }

    // The errors that do not depend on the transforms: wrap-around, scaling, and those of the
    // values.
    void charge_masses(const TiltedSteps& steps) {
        double log_all = 0.0, all_errors = 0.0, size = 0.0;
        for (const TiltedStep& step : steps.steps) {
            log_all += step.count * std::log1p(step.large_sum);
            all_errors += step.count * (step.small.growth + step.large.growth);
            log_total_ += step.count * step.scale;
            size += step.count * std::fabs(step.scale);
        }
        uncut_mass_ = std::exp(log_all);
        computed_mass_ = large_losses_split_off_ ? std::expm1(log_all) : uncut_mass_;
        double errors = 0.0;
        for (const TiltedStep& step : steps.steps)
            errors += step.count * ((step.large.moved + kappa_ * step.large.relative) * uncut_mass_ +
                                    (step.small.moved + kappa_ * step.small.relative) * computed_mass_);
        const double scaling = 8.0 * unit_roundoff * (size + static_cast<double>(steps.steps.size()) + 1.0);
        const double outside_mass =
            2.0 * steps.outside_mass * std::exp(log_sum(steps.steps, 0.0, large_losses_split_off_));
        mass_error_ = kappa_ * (outside_mass + scaling * computed_mass_) + errors * std::exp(all_errors);
    }

    void lay_on_circle(std::vector<double>& x, std::size_t n, std::int64_t first, const double* values,
                       std::size_t count) {
        x.assign(n, 0.0);
        for (std::size_t i = 0; i < count; ++i)
            x[static_cast<std::size_t>(first + static_cast<std::int64_t>(i)) & (n - 1)] += values[i];
    }

    void multiply(TiltedSteps& steps, const RealTransform& transform, WorkBudget& budget) {
        const std::size_t n = transform.length();
        std::vector<SparseFactor> factors;
        double total = 0.0;
        for (TiltedStep& step : steps.steps) {
            factors.push_back({step.first, std::move(step.values), step.count});
            total += step.count;
        }
        shorten(factors, n / 4, budget);
        const double f = fft_relative_error(n);
        std::vector<double> product, spectrum;
        double sup = 0.0;
        for (const SparseFactor& factor : factors) {
            budget.spend(transform_work(n));
            lay_on_circle(spectrum, n, factor.first, factor.values.data(), factor.values.size());
            const double error = f * norm(factor.values) + factor.norm_error;
            norm_error_ += factor.count * error;
            sup += factor.count * error * std::sqrt(static_cast<double>(n));
            transform.forward(spectrum.data());
            multiply_power(product, spectrum, static_cast<std::uint64_t>(factor.count), budget);
        }
        norm_error_ *= std::exp(sup);
        x_.swap(product);
        // x_ is still the spectrum, of which one half is stored: twice its norm is more than
        // enough.
        const double size = 2.0 * norm(x_) / std::sqrt(static_cast<double>(n)) + norm_error_;
        norm_error_ += 2.3 * unit_roundoff * total * size;  // sqrt 5 u each
    }

    void multiply_pairs(TiltedSteps& steps, const RealTransform& transform, WorkBudget& budget) {
        const std::size_t n = transform.length();
        const double f = fft_relative_error(n);
        std::vector<double> small, a, b;
        double sup = 0.0, total = 0.0;
        for (const TiltedStep& step : steps.steps) {
            budget.spend(2.0 * transform_work(n));
            const std::size_t large = step.values.size() - step.cut;
            lay_on_circle(b, n, step.first, step.values.data(), step.cut);
            lay_on_circle(a, n, step.first + static_cast<std::int64_t>(step.cut), step.values.data() + step.cut, large);
            const double b_error = f * norm(b), a_error = f * norm(a);
            norm_error_ += step.count * (a_error * uncut_mass_ + b_error * computed_mass_);
            sup += step.count * (a_error + b_error) * std::sqrt(static_cast<double>(n));
            total += step.count;
            transform.forward(a.data());
            transform.forward(b.data());
            multiply_power(x_, small, a, b, static_cast<std::uint64_t>(step.count), budget);
        }
        norm_error_ = (norm_error_ + 16.0 * unit_roundoff * total * computed_mass_) * std::exp(sup);
    }

    // Replaces x by the sums D_k of docs/core/pld.md (Reading delta) from the top down, and keeps B
    // at the first point.
    void sum_downwards() {
        const double tilt = std::exp(-c_ * h_), up = -std::expm1(-h_), both = std::exp(-(c_ + 1.0) * h_);
        double d = 0.0, b = 0.0;
        for (std::int64_t k = first_ + static_cast<std::int64_t>(x_.size()) - 1; k >= first_; --k) {
            d = tilt * (d + up * b);  // b is still that of k + 1
            b = both * b + x_[index(k)];
            x_[index(k)] = d;
        }
        first_sum_ = b;
    }

    double weighted_sum(double at) const {
        const double eps = at - offset_;
        const double position = std::floor(eps / h_);
        if (position < static_cast<double>(first_)) {
            const double gap = static_cast<double>(first_) * h_ - eps;
            return std::exp(-c_ * gap) * (x_[index(first_)] - std::expm1(-gap) * first_sum_);
        }
        const auto end = static_cast<double>(first_) + static_cast<double>(x_.size());
        if (position + 1.0 >= end) return 0.0;
        const auto k = static_cast<std::int64_t>(position);
        const double past = max(eps - position * h_, 0.0);
        const double share = min(std::expm1(past) / std::expm1(h_), 1.0);
        return (1.0 - share) * std::exp(c_ * past) * x_[index(k)] +
               share * std::exp(-c_ * (h_ - past)) * x_[index(k + 1)];
    }

    double h_, c_, kappa_;
    bool large_losses_split_off_;
    std::int64_t first_;
    double lowest_clean_eps_;  // losses that wrap around downwards come back below this
    double offset_, log_infinite_, infinite_error_, log_small_, small_tilt_;
    std::vector<double> x_;
    double log_total_ = 0.0, uncut_mass_ = 1.0, computed_mass_ = 1.0, mass_error_ = 0.0, norm_error_ = 0.0;
    double total_error_ = 0.0, summing_error_ = 0.0, first_sum_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
