// Certified brackets of delta(eps) and epsilon(delta) of a composition, by discretised privacy
// losses.
//
// Gaussians without sampling are one Gaussian, sum T_j r_j^2 = r^2, and one step alone is exact
// (loss/one_step.hpp). Otherwise each step is put on a grid twice (pld/discretise.hpp): raised
// losses give an upper bound, lowered ones a lower bound. Both are composed under one tilt, which
// pld/grid_plan.hpp chooses together with the cut and the grid step h. The composition carries the
// certificate (pld/tilted_composition.hpp). h is made finer until the bracket is as narrow as
// asked, or memory, work or rounding forbids it (`coarsened`). Where all atoms lie on a lattice, h
// divides it.
//
// Theorems, charges, and where brackets stay wide: docs/core/pld.md.
// Cost: see `PldSettings`. Work and memory are estimated before they are spent, and the grid is
// coarsened to fit.
#pragma once

#include <cstdio>
#include <string>

#include <hockeystick/loss/gaussian.hpp>
#include <hockeystick/loss/one_step.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>
#include <hockeystick/pld/grid_plan.hpp>
#include <hockeystick/pld/tilted_composition.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace loss;

// The steps with all unsampled Gaussians merged into one: their squared shifts add up.
inline std::vector<Step> merge_gaussians(const std::vector<Step>& steps) {
    std::vector<Step> result;
    CompensatedSum squares;  // a long ledger must not lose digits
    for (const Step& step : steps) {
        const double shift = step.loss->gaussian_shift();
        if (shift == 0.0) result.push_back(step);
        else squares.add(step.count * shift * shift);
    }
    if (squares.value() > 0.0) result.push_back({std::make_shared<GaussianLoss>(std::sqrt(squares.value())), 1.0});
    return result;
}

struct PldSettings {
    double interval = 0.0;  // h; chosen if 0
    double tolerance = 1e-3;
    double max_bytes = 536870912.0;           // 2^29
    double max_work = 2e8;                    // units in numeric/work_budget.hpp; more for many distinct steps
    double floor = 0.0;                       // an upper end at or below this is narrow enough
    const std::atomic<bool>* stop = nullptr;  // a query whose flag is set throws Stopped
};

struct PldBracket {
    double lower, upper;
    double interval = 0.0;   // 0 if there was no grid
    bool coarsened = false;  // the cap on memory or work, or rounding, was reached before the tolerance
    double rounding = 0.0;   // its own share of the width, in log delta
    double work = 0.0;       // units in numeric/work_budget.hpp
};

// One direction of a composition of independent steps.
class Composition {
  public:
    Composition(std::vector<Step> steps, const PldSettings& settings,
                const FloatingEnvironment& /*while it is made*/ = {})
        : settings_(settings), steps_(settings.interval > 0.0 ? std::move(steps) : merge_gaussians(steps)),
          limits_(steps_, settings.max_bytes, settings.max_work) {
        for (const Step& step : steps_) {
            total_ += step.count;
            log_finite_ += step.count * std::log1p(-step.loss->p_infinite());
            infinite_error_ = max(infinite_error_, 2.0 * unit_roundoff * step.loss->errors().infinite);
            const double highest = step.loss->highest();
            highest_ += step.count * highest;
            if (highest < infinity)
                highest_error_ += step.count * (exponent_error * std::fabs(highest) + step.loss->highest_error());
        }
        infinite_error_ = infinite_error_of(infinite_error_, steps_.size());
    }

    PldBracket delta(double eps) const {
        const FloatingEnvironment environment;
        const double infinite = -std::expm1(log_finite_);
        if (steps_.empty()) return {0.0, 0.0};
        if (eps == infinity || eps > highest_ + highest_error_ + 1e-300 || log_finite_ == -infinity)
            return {infinite * (1.0 - infinite_error_), min(infinite * (1.0 + infinite_error_), 1.0)};
        if (is_single()) {
            const Interval exact = OneStep(steps_[0].loss).delta(eps);
            return {exact.lower, exact.upper};
        }
        return answer({false, eps});
    }

    // Of the smallest epsilon >= 0 at which delta(epsilon) <= delta.
    PldBracket epsilon(double delta) const {
        const FloatingEnvironment environment;
        const double infinite = -std::expm1(log_finite_);
        if (steps_.empty()) return {0.0, 0.0};
        if (delta < infinite * (1.0 - infinite_error_)) return {infinity, infinity};
        const double highest = max(highest_ + highest_error_, 0.0);
        if (log_finite_ == -infinity) return {infinity, infinity};
        if (delta <= infinite * (1.0 + 100.0 * infinite_error_))  // cannot be told from the mass at infinity
            return {delta == 0.0 ? max(highest_ - highest_error_, 0.0) : 0.0, infinite > 0.0 ? infinity : highest};
        if (highest <= settings_.floor) return {0.0, highest};
        if (is_single()) {
            const Interval exact = OneStep(steps_[0].loss).epsilon(delta);
            return {exact.lower, exact.upper};
        }
        return answer({true, delta});
    }

  private:
    bool is_single() const { return total_ == 1.0 && settings_.interval == 0.0; }

    // A grid step of at most h that suits the losses: on it lie the atoms, or both ends.
    double aligned(double h) const {
        double lattice = 0.0;
        if (steps_.size() == 1 &&
            steps_[0].loss->lattice() ==
                0.0) {  // the grid goes through one end of the losses, and is made to reach the other
            const double range = steps_[0].loss->highest() - steps_[0].loss->lowest();
            return range > h && range < 1e15 ? range / std::ceil(range / h) : h;
        }
        for (const Step& step : steps_) {
            const double own = step.loss->lattice();
            if (own == 0.0 || (lattice != 0.0 && own != lattice)) return h;
            lattice = own;
        }
        return lattice / std::ceil(lattice / h);
    }

    PldBracket answer(const Question& question) const {
        WorkBudget budget(settings_.stop);
        Planner planner(steps_, log_finite_, budget);
        Plan plan = planner.plan(question, settings_.tolerance);
        bool planned_again = false;
        const std::vector<Interval> ends = cuts(plan);
        double h = settings_.interval > 0.0 ? settings_.interval : aligned(plan.interval);
        PldBracket best{0.0, question.for_epsilon ? max(highest_ + highest_error_, 0.0) : 1.0, h};
        double width = infinity;
        for (int attempt = 0; attempt < 5; ++attempt) {
            const PldBracket found = evaluate(question, plan, ends, h, budget);
            best.lower = max(best.lower, found.lower);
            best.upper = min(best.upper, found.upper);
            if (found.interval > 0.0) best.interval = found.interval;
            best.work = budget.spent();
            const double before = width;
            width = best.upper - best.lower;
            const double allowed = max(settings_.tolerance * best.upper, question.for_epsilon ? 1e-9 : 0.0);
            if (settings_.interval > 0.0 || width <= allowed || best.upper <= settings_.floor) return best;
            const double rounding = found.rounding * (question.for_epsilon ? 1.0 / plan.tilt : best.upper);
            const bool futile = rounding > 0.5 * allowed && rounding < infinity;
            if (budget.spent() > 0.5 * limits_.max_work()) break;
            if (question.for_epsilon && !planned_again && best.upper > 0.0 && plan.eps - best.upper > 0.1 * plan.eps) {
                plan = planner.plan_again(plan, best.lower, best.upper, settings_.tolerance);
                h = aligned(plan.interval);
                planned_again = true;
                continue;
            }
            if (found.coarsened || futile || !(width < 0.9 * before || before == infinity)) break;
            const double ratio = width < infinity ? 0.8 * std::sqrt(allowed / width) : 0.25;
            h = aligned(found.interval * min(max(ratio, 0.1), 0.7));
        }
        best.coarsened = true;
        return best;
    }

    // The losses between which each step is put on a grid.
    std::vector<Interval> cuts(const Plan& plan) const {
        std::vector<Interval> ends;
        for (const Step& step : steps_)
            ends.push_back({lower_end(*step.loss, 1e-13 / total_), upper_end(*step.loss, std::exp(plan.log_mass))});
        return ends;
    }

    std::vector<GridLoss> put_on_grid(double h, const std::vector<Interval>& ends, WorkBudget& budget) const {
        std::vector<GridLoss> grids;
        for (std::size_t j = 0; j < steps_.size(); ++j)
            grids.push_back(discretise(*steps_[j].loss, h, ends[j].lower, ends[j].upper, budget));
        return grids;
    }

    PldBracket evaluate(const Question& question, const Plan& plan, const std::vector<Interval>& ends, double h,
                        WorkBudget& budget) const {
        double range = 0.0;
        for (const Interval& end : ends) range += end.upper - end.lower;
        const double slack = 4.0 * static_cast<double>(ends.size());
        for (int attempt = 0; attempt < 3; ++attempt) {
            if (attempt > 0 && budget.spent() > 0.8 * limits_.max_work()) break;
            const double max_points = limits_.max_points(budget);
            bool too_many = range / h + slack > max_points;
            if (too_many && settings_.interval > 0.0) break;
            if (too_many) h = 1.01 * range / max(max_points - slack, 16.0);
            if (!(h > 0.0 && h < infinity)) break;
            if (attempt == 0 && settings_.interval == 0.0 && range / h > 32768.0) {
                const double fitting = fitting_interval(plan, ends, range / 8192.0, budget);
                too_many = too_many || fitting > h;
                h = max(h, fitting);
            }
            const std::vector<GridLoss> grids = put_on_grid(h, ends, budget);
            TiltedSteps raised = tilted(grids, true, plan, h, budget);
            if (raised.empty()) break;
            const double allowed = limits_.max_length(raised.large_losses_split_off, budget);
            if (raised.points() <= allowed) {
                PldBracket found = read(question, plan, raised, grids, h, allowed, budget);
                found.coarsened = attempt > 0 || too_many;
                return found;
            }
            if (settings_.interval > 0.0 || !(raised.points() < infinity)) break;
            h *= max(1.2, 1.2 * raised.points() / allowed);
        }
        return without_grid(question);
    }

    // The least grid step whose transforms are not too long, by a coarse trial: the window hardly
    // depends on the grid step.
    double fitting_interval(const Plan& plan, const std::vector<Interval>& ends, double trial,
                            WorkBudget& budget) const {
        const std::vector<GridLoss> grids = put_on_grid(trial, ends, budget);
        const TiltedSteps raised = tilted(grids, true, plan, trial, budget);
        if (raised.empty() || !(raised.points() < infinity)) return 0.0;
        return 1.05 * trial * raised.points() / limits_.max_length(raised.large_losses_split_off, budget);
    }

    // The bracket that holds without composing: all steps together leak at least what the worst one
    // does.
    PldBracket without_grid(const Question& question) const {
        if (settings_.interval > 0.0) {
            char given[32];
            std::snprintf(given, sizeof given, "%g", settings_.interval);
            throw std::invalid_argument(std::string("interval=") + given +
                                        " needs more grid points for this composition than memory or work allow; "
                                        "use a coarser interval or fewer steps");
        }
        PldBracket found{0.0, question.for_epsilon ? max(highest_ + highest_error_, 0.0) : 1.0};
        for (const Step& step : steps_) {
            const OneStep one(step.loss);
            const Interval exact = question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value);
            found.lower = max(found.lower, exact.lower);
        }
        found.coarsened = true;
        return found;
    }

    TiltedSteps tilted(const std::vector<GridLoss>& grids, bool raised, const Plan& plan, double h,
                       WorkBudget& budget) const {
        std::vector<GriddedStep> parts;
        for (std::size_t j = 0; j < steps_.size(); ++j)
            parts.push_back({&grids[j], raised ? &grids[j].raised : &grids[j].lowered, steps_[j].count});
        const bool cut = plan.cut / h < 0x1p62;
        return tilt_steps(parts, h, plan, cut ? static_cast<std::int64_t>(std::ceil(plan.cut / h)) : no_cut, budget);
    }

    static std::size_t length_for(const TiltedSteps& steps) {
        std::size_t n = 64;
        while (static_cast<double>(n) < steps.points()) n *= 2;
        return n;
    }

    PldBracket read(const Question& question, const Plan& plan, TiltedSteps& raised, const std::vector<GridLoss>& grids,
                    double h, double allowed, WorkBudget& budget) const {
        PldBracket found{question.for_epsilon ? 0.0 : -std::expm1(log_finite_) * (1.0 - infinite_error_), 0.0, h};
        {
            const TiltedComposition upper(raised, length_for(raised), budget);
            found.upper = read_upper(upper, question, plan, highest_ + highest_error_);
            const double eps = question.for_epsilon ? found.upper : question.value;
            if (eps < infinity) found.rounding = upper.delta(eps).rounding;
        }
        TiltedSteps lowered = tilted(grids, false, plan, h, budget);
        if (!lowered.empty() && lowered.points() < 2.0 * allowed) {
            const TiltedComposition lower(lowered, length_for(lowered), budget);
            found.lower = max(found.lower, read_lower(lower, question, found.upper));
        }
        return found;
    }

    PldSettings settings_;
    std::vector<Step> steps_;
    GridLimits limits_;
    double total_ = 0.0, log_finite_ = 0.0, highest_ = 0.0, highest_error_ = 0.0;
    double infinite_error_ = 0.0;  // relative, of the mass beyond all finite losses
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
