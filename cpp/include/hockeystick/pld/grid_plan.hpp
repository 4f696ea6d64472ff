// How to answer a question about a composition: which tilt, which cut between small and large
// losses, which grid step. Whatever is chosen here is sound; a good choice gives a narrow bracket.
//
// Tilt. With K(c) = sum_j T_j log E e^{c L_j}, delta <= delta_inf + kappa(c) e^{K(c) - c eps}
// (divergence/chernoff.hpp). For a delta question c minimises this bound; for an epsilon question
// it minimises (K(c) + log kappa(c) - log delta)/c.
//
// Cut. Where one large loss rules (a rare sample, few steps, a tiny delta) no c makes that bound
// comparable to delta, and what is computed relative to it drowns. Then losses up to a cut t make a
// measure b, m = b + a, and m^T = b^T + (m^T - b^T). The second measure gets the tilt that suits
// it, with G(c) = M(c)^T - M_b(c)^T in place of M(c)^T. The cut t is the largest for which the
// Chernoff bound of b^T is negligible: `bounded_share` of delta.
//
// Grid step. A cell adds a variance h^2/6 (raised) or takes up to h^2/3 (lowered), and no more than
// h E|L|; that moves log delta by c(c+1)/2 of it a step.
#pragma once

#include <hockeystick/divergence/chernoff.hpp>
#include <hockeystick/pld/cumulant_sketch.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

struct Step {
    Loss loss;
    double count;  // an integer >= 1
};

// What is asked of one direction of a composition.
struct Question {
    bool for_epsilon;
    double value;  // delta, or eps >= 0
};

struct Plan {
    double tilt = 0.0;
    double log_delta = 0.0, eps = 0.0;  // roughly
    double interval = 0.0;
    double log_mass = 0.0;       // of what each step may lose above
    double cut = infinity;       // losses above it are large
    double small_tilt = 0.0;     // for the Chernoff bound of the small ones
    double outside_mass = 1e-9;  // allowed wrap-around, either side; in units of the composition's tilted mass
    double lowest_eps = 0.0;     // no delta is asked for below this epsilon
};

inline constexpr double sketch_work = 4000.0;  // a cumulant of one step
inline constexpr double bounded_share = 1e-5;  // share of delta that may be bounded rather than computed

class Planner {
  public:
    Planner(const std::vector<Step>& steps, double log_finite, WorkBudget& budget)
        : steps_(steps), log_finite_(log_finite), budget_(budget) {
        for (const Step& step : steps) sketches_.emplace_back(*step.loss, step.count), total_ += step.count;
    }

    Plan plan(const Question& question, double tolerance) {
        double log_delta = least_log_delta(question);
        Plan plan;
        bool large = false;
        for (int pass = question.for_epsilon ? 1 : 0; pass < 2; ++pass) {
            const double log_mass = max(log_delta + std::log(1e-3 * tolerance / total_), -707.0);
            limit(log_mass);
            plan = without_split(question);
            large = large_losses_rule(plan);
            if (large) split_off_large_losses(question, plan);
            plan.log_mass = log_mass;
            log_delta = plan.log_delta - 5.0;
        }
        const double scale = question.for_epsilon ? plan.tilt * max(plan.eps, 1e-6) : 1.0;
        plan.interval = interval(plan, tolerance * scale);
        plan.outside_mass = large ? 1e-13 : min(max(1e-4 * tolerance * scale, 1e-9), 1e-6);
        plan.lowest_eps = question.for_epsilon ? max(plan.eps - 12.0 / plan.tilt, 0.0) : plan.eps;
        return plan;
    }

    // A new plan for an epsilon that turned out to lie in [low, high], far from where the bound had
    // put it.
    Plan plan_again(const Plan& before, double low, double high, double tolerance) {
        Plan next = plan({false, high}, tolerance);
        next.log_mass = before.log_mass;
        next.lowest_eps = low;
        next.interval = interval(next, tolerance * next.tilt * max(high, 1e-6));
        return next;
    }

  private:
    // A composition leaks at least what its worst step does.
    double least_log_delta(const Question& question) const {
        if (question.for_epsilon) return std::log(question.value + std::expm1(log_finite_));
        double delta = 0.0;
        for (const Step& step : steps_) delta = max(delta, step.loss->delta(question.value) - step.loss->p_infinite());
        return std::log(delta);
    }

    void limit(double log_mass) {
        for (std::size_t j = 0; j < steps_.size(); ++j)
            sketches_[j].limit(upper_end(*steps_[j].loss, std::exp(log_mass)) * (1.0 + 1e-9));
    }

    // The logarithm of prod_j M_b^T, or of G if `large_losses_split_off`.
    double log_moment(double c, double cut, bool large_losses_split_off) const {
        double small = 0.0, ratio = 0.0;
        budget_.spend(sketch_work * static_cast<double>(sketches_.size()));
        for (const CumulantSketch& sketch : sketches_) {
            const SplitCumulants m = sketch.moments(c, cut, !large_losses_split_off);
            if (m.small == -infinity) return large_losses_split_off ? log_moment(c, infinity, false) : -infinity;
            small += sketch.count() * m.small;
            ratio += sketch.count() * softplus(m.large - m.small);
        }
        if (!large_losses_split_off) return small;
        return small + (ratio > 30.0 ? ratio : ratio > 0.0 ? std::log(std::expm1(ratio)) : -700.0);
    }

    // log(1 + e^x)
    static double softplus(double x) { return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

    // The best tilt for the part that a cut leaves, its Chernoff bound at eps or its epsilon at
    // log_delta.
    struct Bound {
        double tilt, value;
    };

    Bound delta_bound(double eps, double cut, bool large_losses_split_off) const {
        const auto f = [&](double c) { return log_moment(c, cut, large_losses_split_off) - c * eps + log_kappa(c); };
        const double c = best_tilt(f);
        return {c, f(c)};
    }

    Bound epsilon_bound(double log_delta, double cut, bool large_losses_split_off) const {
        const auto f = [&](double c) {
            return (log_moment(c, cut, large_losses_split_off) + log_kappa(c) - log_delta) / c;
        };
        const double c = best_tilt(f);
        return {c, f(c)};
    }

    Plan answer(const Question& question, double cut, bool large_losses_split_off) const {
        Plan plan;
        plan.eps = question.for_epsilon ? 0.0 : question.value;
        if (question.for_epsilon) {
            plan.log_delta = least_log_delta(question);
            const Bound found = epsilon_bound(plan.log_delta, cut, large_losses_split_off);
            plan.tilt = found.tilt;
            plan.eps = max(found.value, 0.0);
        }
        if (plan.eps == 0.0 || !question.for_epsilon) {
            const Bound found = delta_bound(plan.eps, cut, large_losses_split_off);
            plan.tilt = found.tilt;
            plan.log_delta = min(found.value, 0.0) - 3.0;
        }
        plan.cut = large_losses_split_off ? cut : infinity;
        return plan;
    }

    Plan without_split(const Question& question) const { return answer(question, infinity, false); }

    // Whether a few large losses spread the sum far under the best tilt: its variance is not small
    // beside eps^2.
    bool large_losses_rule(const Plan& plan) const {
        double mean = 0.0, variance = 0.0;
        for (const CumulantSketch& sketch : sketches_) {
            double first = 0.0, second = 0.0;
            sketch.tilted(plan.tilt, [&](double loss, double weight) {
                first += weight * loss;
                second += weight * loss * loss;
            });
            mean += sketch.count() * first;
            variance += sketch.count() * (second - first * first);
        }
        return variance > 0.1 * plan.eps * plan.eps && plan.tilt * plan.tilt * variance > 100.0 && mean < infinity;
    }

    void split_off_large_losses(const Question& question, Plan& plan) const {
        double low = std::log(plan.eps) - 7.0, high = std::log(plan.eps) + 0.05;
        bool found = false;
        Plan best = plan;
        for (int k = 0; k < 10; ++k) {
            const double cut = std::exp(k == 0 ? low : 0.5 * (low + high));
            Plan next = answer(question, cut, true);
            const Bound small = delta_bound(max(next.eps - 12.0 / next.tilt, 0.0), cut, false);
            next.small_tilt = small.tilt;
            const bool negligible = small.value < next.log_delta + std::log(bounded_share);
            if (k == 0 && !negligible) return;
            (negligible ? low : high) = std::log(cut);
            if (negligible) best = next, found = true;
        }
        const double gain = question.for_epsilon ? best.tilt * (plan.eps - best.eps) : plan.log_delta - best.log_delta;
        if (found && gain > 2.0) plan = best;
    }

    double interval(const Plan& plan, double wanted) const {
        const double c = plan.tilt;
        std::vector<std::pair<double, double>> points;  // |loss| and weight
        for (const CumulantSketch& sketch : sketches_) {
            double large = sketch.count();  // G: one large loss at least, and not many
            if (plan.cut < infinity) {
                const SplitCumulants m = sketch.moments(c, plan.cut);
                large = max(large, min(1.0 + std::exp(min(m.small - m.large, 700.0)), 1e300));
            }
            sketch.tilted(c, [&](double loss, double weight) {
                points.emplace_back(std::fabs(loss), weight * (loss > plan.cut ? large : sketch.count()));
            });
        }
        const double max_h = 0.5 / (c + 1.0);
        double h = min(max_h, 2.0 * std::sqrt(wanted / (c * (c + 1.0))));
        for (int k = 0; k < 8; ++k) {
            double variance = 0.0;
            for (const auto& [loss, weight] : points) variance += weight * min(h * h / 2.0, 2.0 * h * loss);
            const double ratio = 0.6 * wanted / (0.5 * c * (c + 1.0) * variance);
            if (ratio > 0.9 && ratio < 1.1) break;
            h *= min(max(std::sqrt(ratio), 1e-3), 2.0);
            h = min(h, max_h);
        }
        return h;
    }

    const std::vector<Step>& steps_;
    std::vector<CumulantSketch> sketches_;
    double log_finite_, total_ = 0.0;
    WorkBudget& budget_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
