// delta(eps) and epsilon(delta) of T equal Poisson-sampled Gaussian steps (remove), as certified
// brackets, where samples are rare and steps are few.
//
// There the losses have scales from the sampling rate to 1 and more. The characteristic function of
// their sum decays on the smallest scale, while its period is the largest: one line
// (contour/contour.hpp) would need thousands of evenly spaced nodes. Instead the step's measure P
// is cut into slices of one scale each (cumulant/loss_slices.hpp). With P_p the measure of slice p
// and of all below it,
//
//   P^T = (P_0^T - P_1^T) + (P_1^T - P_2^T) + ... + (P_m^T - P_{m+1}^T) + P_{m+1}^T.
//
// Every difference is a measure >= 0 with a contour integral of its own, whose tilt, period and
// last frequency are those of its own scale, and which decays like the slice. docs/core/contour.md
// has theorem and proof ("Slices").
#pragma once

#include <limits>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/contour/slice_sum.hpp>
#include <hockeystick/numeric/root.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Not for several threads at once.
class SlicedContour {
  public:
    SlicedContour(double sigma, double rate, const SliceShape& shape, const simd::Kernels& kernels,
                  std::shared_ptr<FourierWorkspace> workspace)
        : slices_(sigma, rate, shape, kernels, std::move(workspace)), planner_(slices_),
          summer_(slices_, planner_.bounds(), kernels) {}
    SlicedContour(const SlicedContour&) = delete;
    SlicedContour& operator=(const SlicedContour&) = delete;

    // A plan is made for an expected delta. Where the sum is much smaller, a sharper plan follows.
    ContourResult delta(double times, double eps) {
        planner_.begin_question();
        const SlicePlan* plan = &planner_.plan_for(times, eps, 0);
        ContourResult best;
        for (int attempt = 0; attempt < 3 && plan->usable; ++attempt) {
            best = narrower(best, delta_bracket(*plan, times, eps));
            if (best.narrower_than(slices_.shape().wanted_width) || !(best.upper > 0.0)) break;
            const int lower = static_cast<int>(std::floor(best.log_upper - plan->log_value));
            if (lower >= 0) break;
            plan = &planner_.plan_for(times, eps, plan->lowered_by + lower);
        }
        return best;
    }

    ContourResult epsilon(double times, double delta) {
        planner_.begin_question();
        const double log_delta = std::log(delta);
        double eps = planner_.bounds().guess_epsilon(times, log_delta);
        ContourResult best;
        for (int attempt = 0; attempt < 3; ++attempt) {
            const SlicePlan& plan = planner_.plan_for(times, eps, 0);
            if (!plan.usable) break;
            const double root = root_of(plan, times, log_delta, eps);
            if (!(root < infinity)) break;
            if (!(root > 0.0)) return at_zero(times, delta);
            best = narrower(best, epsilon_bracket(plan, times, delta, root));
            if (best.narrower_than(slices_.shape().wanted_width) || &plan == &planner_.plan_for(times, root, 0)) break;
            eps = root;
        }
        return best;
    }

    // Points visited so far, times nodes.
    double work() const { return summer_.work() + slices_.work(); }
    std::size_t bytes() const { return slices_.bytes(); }

  private:
    static ContourResult with_shares(const SliceSum& s, const SliceErrors& e) {
        const double value = max(std::fabs(s.value), std::numeric_limits<double>::min());
        ContourResult r;
        r.alias = e.alias / value;
        r.truncation = s.truncation / value;
        r.rounding = s.rounding / value;
        r.missing = (e.missing + e.bounded) / value;
        r.nodes = s.nodes;
        r.slices = s.slices;
        r.tilt = s.tilt;
        r.usable = std::isfinite(s.value + e.alias + s.truncation + s.rounding) &&
                   s.value + s.truncation + s.rounding >= 0.0;  // a sum of terms >= 0 but for these
        return r;
    }

    // The bracket at eps; `eps_per_log_delta` gets by how much epsilon changes with log delta.
    ContourResult delta_bracket(const SlicePlan& plan, double times, double eps, double* eps_per_log_delta = nullptr) {
        const SliceSum s = summer_(plan, times, eps);
        const SliceErrors e = errors_of(slices_, planner_.bounds(), plan, s, times, eps);
        ContourResult r = with_shares(s, e);
        if (eps_per_log_delta) *eps_per_log_delta = s.value / std::fabs(s.slope);
        r.set_delta(s.log_unit + std::log(max(s.value - e.below, 0.0)),
                    s.log_unit + std::log(max(s.value + e.above, 0.0)), s.log_unit);
        return r;
    }

    double root_of(const SlicePlan& plan, double times, double log_delta, double start) {
        const auto f = [&](double eps) {
            const SliceSum s = summer_(plan, times, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        try {
            return newton_root(f, start, -infinity, infinity, false, 1e-5 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    // Says only whether epsilon is 0: whether delta(0) is at most delta.
    ContourResult at_zero(double times, double delta) {
        ContourResult r = this->delta(times, 0.0);
        r.usable = r.usable && r.upper <= delta;
        r.lower = r.upper = 0.0;
        return r;
    }

    // Moves each end away from the root until the certificate holds.
    ContourResult epsilon_bracket(const SlicePlan& plan, double times, double delta, double root) {
        const double log_delta = std::log(delta);
        const auto on_side = [&](double eps, bool above) {
            const ContourResult r = delta_bracket(plan, times, eps);
            return r.usable && (above ? r.upper <= delta && r.log_upper <= log_delta : r.log_lower >= log_delta);
        };
        const double least_log = 8.0 * unit_roundoff, least_move = 2.0 * unit_roundoff * root;
        double per_log = 0.0;
        ContourResult r = delta_bracket(plan, times, root, &per_log);
        if (!r.usable) return {};
        r.usable = false;
        double reach = 1.1 * max(r.log_upper - log_delta, least_log) * per_log + least_move;
        for (int k = 0; k < 24 && !r.usable; ++k, reach *= 2.0) r.usable = on_side(r.upper = root + reach, true);
        bool found = false;
        reach = 1.1 * max(log_delta - r.log_lower, least_log) * per_log + least_move;
        for (int k = 0; k < 24 && !found && root > reach; ++k, reach *= 2.0)
            found = on_side(r.lower = root - reach, false);
        if (!found) r.lower = 0.0;
        return r;
    }

    LossSlices slices_;
    SlicePlanner planner_;
    SliceSummer summer_;
};

// No slices, or those of `steps` equal Poisson-sampled Gaussian steps, made when first asked for;
// where LossSlices covers these.
class OptionalSlices {
  public:
    OptionalSlices() = default;
    OptionalSlices(double sigma, double rate, double steps, const SliceShape& shape, const simd::Kernels& kernels,
                   std::shared_ptr<FourierWorkspace> workspace)
        : sigma_(sigma), rate_(rate), steps_(steps), shape_(shape), kernels_(&kernels),
          workspace_(std::move(workspace)) {}

    explicit operator bool() const { return kernels_ && LossSlices::covers(sigma_, rate_, shape_); }

    double sigma() const { return sigma_; }
    double rate() const { return rate_; }
    double steps() const { return steps_; }  // 0 if there are no such steps

    // The same steps, for deep deltas.
    OptionalSlices deep() const {
        return kernels_ ? OptionalSlices(sigma_, rate_, steps_, SliceShape::deep(), *kernels_, workspace_)
                        : OptionalSlices();
    }

    // Up to how many nodes one line is less work than slices, for that many repetitions: as
    // measured.
    double max_nodes(double times) const {
        if (!*this) return infinity;
        return times * steps_ * rate_ < 0.5 ? 600.0 : 2e4;
    }

    // Usable where they say more than that something is small.
    ContourResult delta(double times, double eps) { return if_narrow(made().delta(times * steps_, eps)); }
    ContourResult epsilon(double times, double delta) { return if_narrow(made().epsilon(times * steps_, delta)); }

    double work() const { return sliced_ ? sliced_->work() : 0.0; }
    std::size_t bytes() const { return sliced_ ? sliced_->bytes() : 0; }

  private:
    ContourResult if_narrow(ContourResult r) const {
        r.usable = r.narrower_than(shape_.usable_width);
        return r;
    }
    SlicedContour& made() {
        if (!sliced_) sliced_ = std::make_unique<SlicedContour>(sigma_, rate_, shape_, *kernels_, workspace_);
        return *sliced_;
    }

    double sigma_ = 0.0, rate_ = 0.0, steps_ = 0.0;
    SliceShape shape_ = SliceShape::usual();
    const simd::Kernels* kernels_ = nullptr;
    std::shared_ptr<FourierWorkspace> workspace_;
    std::unique_ptr<SlicedContour> sliced_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
