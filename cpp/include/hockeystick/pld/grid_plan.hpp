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
//
// CumulantSketch is what the choices are made by. GridLimits says how fine a grid memory and work
// allow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hockeystick/divergence/chernoff.hpp>
#include <hockeystick/pld/discretise.hpp>
#include <hockeystick/pld/spectrum_power.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

// A rough picture of a composition's privacy losses: cumulants good enough to choose a tilt, a cut
// and a grid step by.
//
// Nothing here needs to be exact: any truncation point, tilt, cut and grid step are sound, and
// pld/tilted_composition.hpp charges what they cost. Cost: a few hundred exponentials a cumulant
// and distinct step.

// The smallest x with above(x) true, for a predicate that is false, then true on the line; to about
// 1e-6, relatively, from the true side.
template <class Predicate> double switch_point(const Predicate& above) {
    double bound = 1e-3;
    while (bound < 1e15 && (above(-bound) || !above(bound))) bound *= 4.0;
    double low = -bound, high = bound;
    for (int k = 0; k < 60 && high - low > 1e-6 * bound; ++k) {
        const double middle = 0.5 * (low + high);
        (above(middle) ? high : low) = middle;
    }
    return above(low) ? low : high;
}

// Losses above this have P-mass at most `mass`.
inline double upper_end(const PrivacyLoss& loss, double mass) {
    const double x = switch_point([&](double eps) { return loss.masses(eps).p_above <= mass; });
    return min(x, loss.highest());
}

inline double lower_end(const PrivacyLoss& loss, double mass) {
    const double x = -switch_point([&](double minus) { return loss.masses(-minus).p_below <= mass; });
    return max(x, loss.lowest());
}

// One step's log M(c) in two parts: of losses <= cut and of losses > cut.
struct SplitCumulants {
    double small, large;
};

class CumulantSketch {
  public:
    CumulantSketch(const PrivacyLoss& loss, double count) : count_(count) {
        for (const OutlinePoint& x : loss.outline())
            if (std::isfinite(x.loss) && x.log_p > -745.0) points_.push_back(x);
        std::sort(points_.begin(), points_.end(),
                  [](const OutlinePoint& x, const OutlinePoint& y) { return x.loss < y.loss; });
        end_ = points_.size();
        // An outline misses mass, which counts where a delta near 1 is asked for: all finite losses have theirs.
        const double missed = std::log1p(-loss.p_infinite()) - log_sum(0.0, 0, end_);
        for (OutlinePoint& x : points_) x.log_p += missed;
    }

    double count() const { return count_; }

    // Forgets the losses above `top`.
    void limit(double top) {
        for (end_ = points_.size(); end_ > 1 && points_[end_ - 1].loss > top;) --end_;
    }

    // A generous cut counts the node above it as small too, so that the sum of the small ones is
    // not too small where the cut lies between nodes.
    SplitCumulants moments(double c, double cut, bool generous = false) const {
        std::size_t middle = end_;
        if (cut < infinity)
            for (middle = 0; middle < end_ && points_[middle].loss <= cut;) ++middle;
        if (generous && middle < end_) ++middle;
        return {log_sum(c, 0, middle), log_sum(c, middle, end_)};
    }

    // Calls visit(loss, weight) with the weights p e^{c l}/M(c).
    template <class Visit> void tilted(double c, const Visit& visit) const {
        const double all = log_sum(c, 0, end_);
        for (std::size_t i = 0; i < end_; ++i) {
            const double exponent = c * points_[i].loss + points_[i].log_p - all;
            if (exponent > -40.0) visit(points_[i].loss, std::exp(exponent));
        }
    }

  private:
    double log_sum(double c, std::size_t begin, std::size_t end) const {
        double largest = -infinity, sum = 0.0;
        for (std::size_t i = begin; i < end; ++i) largest = max(largest, c * points_[i].loss + points_[i].log_p);
        for (std::size_t i = begin; i < end; ++i) {
            const double exponent = c * points_[i].loss + points_[i].log_p - largest;
            if (exponent > -40.0) sum += std::exp(exponent);
        }
        return sum > 0.0 ? largest + std::log(sum) : -infinity;
    }

    double count_;
    std::vector<OutlinePoint> points_;  // by loss
    std::size_t end_;
};

// Minimises a function of c that falls, then rises, over 1e-3 <= c <= 1e9, by golden sections of
// log c.
template <class Function> double best_tilt(const Function& f) {
    constexpr double golden = 0.6180339887498949;  // (sqrt 5 - 1)/2
    double low = std::log(1e-3), high = std::log(1e9);
    double x = high - golden * (high - low), y = low + golden * (high - low);
    double fx = f(std::exp(x)), fy = f(std::exp(y));
    while (high - low > 2e-3) {
        if (fx <= fy) {
            high = y, y = x, fy = fx;
            x = high - golden * (high - low), fx = f(std::exp(x));
        } else {
            low = x, x = y, fx = fy;
            y = low + golden * (high - low), fy = f(std::exp(y));
        }
    }
    return std::exp(0.5 * (low + high));
}

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

// How fine a grid, and how long a transform, memory and work allow for one composition.
//
// A grid holds a point every h of a distinct step's losses; a transform holds the losses of the
// whole composition. A composition of many distinct steps may cost more, up to 16 times `max_work`.
class GridLimits {
  public:
    GridLimits(const std::vector<Step>& steps, double max_bytes, double max_work)
        : max_bytes_(max_bytes), max_work_(max_work * min(1.0 + static_cast<double>(steps.size()) / 32.0, 16.0)) {
        for (const Step& step : steps) counts_.push_back(step.count);
    }

    double max_work() const { return max_work_; }

    // Points of all grids together.
    double max_points(const WorkBudget& budget) const {
        const double left = max(0.4 * max_work_ - 0.5 * budget.spent(), 0.02 * max_work_);
        return min(left / (2.0 * (masses_work + 2.0 * tilting_work)), max_bytes_ / bytes_per_point);
    }

    // Length of the transforms.
    double max_length(bool large_losses_split_off, const WorkBudget& budget) const {
        double passes = 2.0 * reading_work + transform_passes;
        double powers = 0.0;
        for (const double count : counts_)
            if (count > 1.0 || large_losses_split_off || counts_.size() < 8)
                powers += bits_of(static_cast<std::uint64_t>(count)), passes += transform_passes;
        passes = (passes + powers * power_work) * (large_losses_split_off ? 3.0 : 1.0) * 2.0;
        const double left = max(max_work_ - budget.spent(), 0.4 * max_work_);
        return min(left / passes, max_bytes_ / bytes_per_point);
    }

  private:
    static constexpr double bytes_per_point = 128.0;  // a transform's buffers, or a grid's two measures and errors
    static constexpr double transform_passes = 20.0;  // log2 of a length near 2^20: a transform's work per point

    std::vector<double> counts_;  // of the distinct steps
    double max_bytes_, max_work_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
