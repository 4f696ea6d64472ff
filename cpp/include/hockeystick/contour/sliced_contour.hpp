// delta(eps) of T equal Poisson-sampled Gaussian steps (remove), as a certified bracket, where samples are rare and steps are few.
//
// There the losses have scales from the sampling rate to 1 and more, and the characteristic function of their sum decays
// on the smallest while its period is the largest: contour/contour.hpp would need thousands of nodes, evenly spaced. With the step's
// measure P in slices (cumulant/loss_slices.hpp), P_p slice p and all below it,
//   P^T = (P_0^T - P_1^T) + (P_1^T - P_2^T) + ... + (P_m^T - P_{m+1}^T) + P_{m+1}^T,
// every difference is a measure >= 0 with its own contour integral, of M_p^T - M_{p+1}^T, whose tilt, period and last frequency are
// those of its own scale. It decays like the slice, whose window is smooth, however few the steps:
//   |M_p^T - M_{p+1}^T| <= T |slice| M_p(c)^{T-1} on Re s = c.
// Alias: as contour/contour.hpp says, by Chernoff's bound of the difference at other tilts c', min(M_p^T, T slice M_p^{T-1}) at c'; and from the
// period eps - T l on, l the least loss, the terms n < 0 are known. The last term is bounded by Chernoff, too.
//
// A value is a function of its cell alone: lines are chosen for rounded ones (contour/slice_plan.hpp).
#pragma once

#include <limits>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/slice_plan.hpp>
#include <hockeystick/numeric/root.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Not for several threads at once.
class SlicedContour {
  public:
    SlicedContour(double sigma, double rate, const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : slices_(sigma, rate, kernels, std::move(workspace)), kernels_(kernels) {}

    ContourResult delta(double times, double eps) {
        plans_.forget();
        const Plan* plan = &plans_.plan_for(times, eps, 0);
        ContourResult best;
        for (int attempt = 0; attempt < 3 && plan->usable; ++attempt) {
            best = narrower(best, delta_result(*plan, times, eps));
            if (best.narrower_than(wanted) || !(best.upper > 0.0)) break;
            const int lower = static_cast<int>(std::floor(best.log_upper - plan->log_value));
            if (lower >= 0) break;
            plan = &plans_.plan_for(times, eps, plan->lowered + lower);
        }
        return best;
    }

    ContourResult epsilon(double times, double delta) {
        plans_.forget();
        const double log_delta = std::log(delta);
        double at = plans_.guess(times, log_delta);
        for (int attempt = 0; attempt < 3; ++attempt) {
            const Plan& plan = plans_.plan_for(times, at, 0);
            if (!plan.usable) return {};
            const double root = this->root(plan, times, log_delta, at);
            if (!(root < infinity)) return {};
            if (!(root > 0.0)) return at_zero(times, delta);
            const ContourResult found = ends(plan, times, delta, root);
            if (found.narrower_than(wanted) || &plan == &plans_.plan_for(times, root, 0)) return found;
            at = root;
        }
        return {};
    }

    double work() const { return work_ + slices_.work(); }  // points visited so far, times nodes
    std::size_t bytes() const { return slices_.bytes() + plans_.bytes(); }

  private:
    using Losses = LossSlices;
    using Line = SliceLine;
    using Plan = SlicePlan;
    static constexpr double u = unit_roundoff, wanted = 3e-8;

    struct Sum {
        double log_unit;  // everything else in units of e^{log_unit}
        double value = 0.0, slope = 0.0, alias = 0.0, truncation = 0.0, rounding = 0.0;
        std::size_t nodes = 0, slices = 0;
        double tilt = 0.0;  // of the last slice
    };

    Sum sum(const Plan& plan, double times, double eps) {
        Sum s{plan.log_value};
        for (const Line& line : plan.lines) add(line, times, eps, s);
        return s;
    }

    const Losses::Table& table_of(const Line& line) const {
        if (line.generation != slices_.generation()) {
            line.table = &slices_.table(line.p, line.k, line.j, line.i);
            line.generation = slices_.generation();
        }
        return *line.table;
    }

    void add(const Line& line, double times, double eps, Sum& s) {
        const Losses::Table& t = table_of(line);
        if (!t.usable) {
            s.rounding = infinity;
            return;
        }
        const std::size_t n = t.real.size();
        for (auto* array : {&terms_, &slopes_, &errors_}) array->resize(n);
        work_ += static_cast<double>(n);
        const double most = times * t.ratio[0], power = times * t.log_below;
        kernels_.fill_difference_terms(t.nodes(), times, eps, most, terms_.data(), slopes_.data(), errors_.data());
        const double scale = t.h / pi, log_scale = power + most - t.c * eps - s.log_unit;
        const double unit = scale * std::exp(log_scale);
        const double value = unit * kernels_.sum(terms_.data(), n), slope = -unit * kernels_.sum(slopes_.data(), n);
        const double error = unit * kernels_.sum(errors_.data(), n) * (1.0 + 1e-9);
        const double sizes = std::fabs(power) + most + std::fabs(t.c * eps) + std::fabs(s.log_unit) + 8.0;
        const double of_unit = times * t.error + 4.0 * u * sizes;
        s.value += value;
        s.slope += slope;
        s.rounding += error + 1.01 * std::expm1(of_unit) * (std::fabs(value) + error);
        const double last = static_cast<double>(t.n - 1) * t.h;
        const double log_last = plans_.log_transform(line.p, line.k, times, true) -
                                slices_.at(line.k).upto[static_cast<std::size_t>(line.p)] + std::log(times) +
                                line.log_last;
        s.truncation += std::exp(log_last - t.c * eps - s.log_unit) / (pi * last);
        s.nodes += t.n;
        ++s.slices;
        s.tilt = t.c;
        subtract_known(line, t, times, eps, s);
    }

    bool knows(const Losses::Table& t, double times, double eps) const {
        return 2.0 * pi / t.h >= (eps - times * slices_.least_loss()) * (1.0 + 1e-12);
    }

    // Takes out the terms n < 0 of Poisson's formula: sum_{n >= 1} e^{-c n D} (P-mass - e^{eps - n D} Q-mass).
    void subtract_known(const Line& line, const Losses::Table& t, double times, double eps, Sum& s) const {
        if (!knows(t, times, eps)) return;
        const double period = 2.0 * pi / t.h;
        double parts[2], errors[2];
        for (const bool under_p : {true, false}) {
            const Losses::Moments& m = slices_.mass(under_p);
            const auto at = static_cast<std::size_t>(line.p);
            const double below = m.upto[at + 1], raised = times * std::log1p(std::exp(m.slice[at] - below));
            const double mass = std::exp(times * below) * std::expm1(raised);
            const double c = under_p ? t.c : t.c + 1.0, growth = under_p ? 0.0 : eps;
            const double sum = std::exp(growth - c * period - s.log_unit) / -std::expm1(-c * period);
            const double sizes =
                times * std::fabs(below) + raised + std::fabs(growth) + c * period + std::fabs(s.log_unit) + 32.0;
            const double of_mass = (2.0 + times + 2.0 * raised) * m.error;  // e^x - 1 errs by 1 + x times what x does
            parts[under_p ? 0 : 1] = mass * sum;
            errors[under_p ? 0 : 1] = mass * sum * (1.1 * of_mass + 8.0 * u * sizes);
        }
        s.value -= parts[0] - parts[1];
        s.slope += parts[1];
        s.rounding += errors[0] + errors[1];
    }

    double alias(const Line& line, double times, double eps, double log_unit) const {
        const Losses::Table& t = table_of(line);
        const double period = 2.0 * pi / t.h;
        // The geometric series over n, at the tilt where its first term is least.
        const auto series = [&](double distance, double log_first) {
            return std::exp(log_first - log_unit) / -std::expm1(-distance * period);
        };
        const auto smallest = [&](int direction) {
            double best = infinity, at = infinity;
            for (int away = 1; away <= 16; away *= 2) {
                const int k = line.k + direction * away;
                if (k < Losses::first_tilt || k > slices_.last_tilt()) break;
                const double distance = std::fabs(slices_.at(k).c - t.c);
                const double log_first = plans_.log_chernoff(line.p, k, times, eps) - distance * period;
                if (!(log_first < best)) break;
                best = log_first;
                at = distance;
            }
            return series(at, best);
        };
        if (knows(t, times, eps)) return smallest(1);
        return smallest(1) + min(smallest(-1), series(t.c, plans_.log_mass(line.p, times) - t.c * period));
    }
    double alias(const Plan& plan, double times, double eps) const {
        double sum = 0.0;
        for (const Line& line : plan.lines) sum += alias(line, times, eps, plan.log_value);
        return sum;
    }
    double left_out(const Plan& plan, double times, double eps) const {
        double sum = 0.0;
        for (const LightSlice& light : plan.light)
            sum += std::exp(plans_.log_chernoff(light.p, light.k, times, eps, light.p == plan.rest) - plan.log_value);
        return sum;
    }
    double missing(double times, double log_unit) const {
        return std::exp(std::log(times) + slices_.log_missing() - log_unit);
    }

    // Errors of the sum in units of it, from below and from above.
    struct Errors {
        double below, above;
    };
    Errors errors(const Plan& plan, const Sum& s, double times, double eps) const {
        const double both = s.truncation + s.rounding + missing(times, s.log_unit);
        return {both + s.alias, both + left_out(plan, times, eps)};
    }

    static ContourResult shares(const Sum& s, double missing) {
        const double value = max(std::fabs(s.value), std::numeric_limits<double>::min());
        ContourResult r;
        r.alias = s.alias / value;
        r.truncation = s.truncation / value;
        r.rounding = s.rounding / value;
        r.missing = missing / value;
        r.nodes = s.nodes;
        r.slices = s.slices;
        r.tilt = s.tilt;
        r.usable = std::isfinite(s.value + s.alias + s.truncation + s.rounding) &&
                   s.value + s.truncation + s.rounding >= 0.0;  // a sum of terms >= 0 but for these
        return r;
    }

    // The bracket at eps; `per_log` gets by how much epsilon changes with log delta.
    ContourResult delta_result(const Plan& plan, double times, double eps, double* per_log = nullptr) {
        Sum s = sum(plan, times, eps);
        s.alias = alias(plan, times, eps);
        const Errors e = errors(plan, s, times, eps);
        ContourResult r = shares(s, e.above - s.truncation - s.rounding);
        if (per_log) *per_log = s.value / std::fabs(s.slope);
        r.set_delta(s.log_unit + std::log(max(s.value - e.below, 0.0)),
                    s.log_unit + std::log(max(s.value + e.above, 0.0)), s.log_unit);
        return r;
    }

    double root(const Plan& plan, double times, double log_delta, double start) {
        const auto f = [&](double eps) {
            const Sum s = sum(plan, times, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        try {
            return newton_root(f, start, -infinity, infinity, false, 1e-5 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    // Says only whether epsilon is 0.
    ContourResult at_zero(double times, double delta) {
        ContourResult r = this->delta(times, 0.0);
        r.usable = r.usable && r.upper <= delta;
        r.lower = r.upper = 0.0;
        return r;
    }

    // Moves both ends from the root until the certificate holds.
    ContourResult ends(const Plan& plan, double times, double delta, double root) {
        const double log_delta = std::log(delta);
        const auto on_side = [&](double eps, bool above) {
            const ContourResult r = delta_result(plan, times, eps);
            return r.usable && (above ? r.upper <= delta && r.log_upper <= log_delta : r.log_lower >= log_delta);
        };
        double per_eps = 0.0;
        ContourResult r = delta_result(plan, times, root, &per_eps);
        if (!r.usable) return {};
        r.usable = false;
        double reach = 1.1 * max(r.log_upper - log_delta, 8.0 * u) * per_eps + 2.0 * u * root;
        for (int k = 0; k < 24 && !r.usable; ++k, reach *= 2.0) r.usable = on_side(r.upper = root + reach, true);
        bool found = false;
        reach = 1.1 * max(log_delta - r.log_lower, 8.0 * u) * per_eps + 2.0 * u * root;
        for (int k = 0; k < 24 && !found && root > reach; ++k, reach *= 2.0)
            found = on_side(r.lower = root - reach, false);
        if (!found) r.lower = 0.0;
        return r;
    }

    LossSlices slices_;
    const simd::Kernels& kernels_;
    SlicePlanner plans_{slices_};
    std::vector<double> terms_, slopes_, errors_;
    double work_ = 0.0;
};

// None, or those of `steps` equal Poisson-sampled Gaussian steps, made when first asked for; where LossSlices covers these.
class Slices {
  public:
    Slices() = default;
    Slices(double sigma, double rate, double steps, const simd::Kernels& kernels,
           std::shared_ptr<FourierWorkspace> workspace)
        : sigma_(sigma), rate_(rate), steps_(steps), kernels_(&kernels), workspace_(std::move(workspace)) {}

    explicit operator bool() const { return kernels_ && LossSlices::covers(sigma_, rate_); }

    // Up to how many nodes one line is less work, for that many repetitions: as measured.
    double most_nodes(double times) const {
        if (!*this) return infinity;
        return times * steps_ * rate_ < 0.5 ? 600.0 : 2e4;
    }

    // Usable where they say more than that something is small.
    ContourResult delta(double times, double eps) { return if_narrow(made().delta(times * steps_, eps)); }
    ContourResult epsilon(double times, double delta) { return if_narrow(made().epsilon(times * steps_, delta)); }

    double work() const { return sliced_ ? sliced_->work() : 0.0; }
    std::size_t bytes() const { return sliced_ ? sliced_->bytes() : 0; }

  private:
    static ContourResult if_narrow(ContourResult r) {
        r.usable = r.narrower_than(1e-2);
        return r;
    }
    SlicedContour& made() {
        if (!sliced_) sliced_ = std::make_unique<SlicedContour>(sigma_, rate_, *kernels_, workspace_);
        return *sliced_;
    }

    double sigma_ = 0.0, rate_ = 0.0, steps_ = 0.0;
    const simd::Kernels* kernels_ = nullptr;
    std::shared_ptr<FourierWorkspace> workspace_;
    std::unique_ptr<SlicedContour> sliced_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
