// Certified upper ends of delta and epsilon of T equal Poisson-sampled Gaussian steps, both directions: what dpsgd.hpp asks for.
//
// The contour engine answers; discretised losses do where it does not apply or its bracket is wide. Cells that share sigma
// and the rate share the contours, and all that these keep. Contours are not tried where sigma or the rate is so small
// that the grids in x would be too large.
#pragma once

#include <atomic>
#include <memory>

#include <hockeystick/contour.hpp>
#include <hockeystick/pld.hpp>
#include <hockeystick/sampled_gaussian.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {

// Not for several threads at once. Throws detail::Stopped once `stop` is true.
class DpsgdEngine {
  public:
    DpsgdEngine(const contour::Kernels& kernels, const std::atomic<bool>& stop) : kernels_(kernels), stop_(stop) {}

    double delta(double sigma, double rate, double steps, double eps) const {
        prepare(sigma, rate);
        if (!contours_) return by_discretised([&](const Composition& c) { return counted(c.delta(eps)); }, steps);
        const ContourResult removed = remove_->delta(steps, eps);
        double upper = removed.usable ? removed.upper : 1.0;
        if (!narrow(removed, 0.0)) upper = detail::min(upper, counted(discretised(steps, true, 0.0).delta(eps)));
        if (add_->certainly_below(steps, eps, std::log(upper))) return upper;
        const ContourResult added = add_->delta(steps, eps);
        if (narrow(added, 0.0) || (added.usable && added.upper <= upper)) return detail::max(upper, added.upper);
        const double other = counted(discretised(steps, false, upper).delta(eps));
        return detail::max(upper, added.usable ? detail::min(other, added.upper) : other);
    }

    double epsilon(double sigma, double rate, double steps, double delta) const {
        prepare(sigma, rate);
        if (!contours_) return by_discretised([&](const Composition& c) { return counted(c.epsilon(delta)); }, steps);
        const ContourResult removed = remove_->epsilon(steps, delta);
        double upper = removed.usable ? removed.upper : detail::infinity;
        if (!narrow(removed, least_width))
            upper = detail::min(upper, counted(discretised(steps, true, 0.0).epsilon(delta)));
        if (add_->certainly_below(steps, upper, std::log(delta))) return upper;
        const ContourResult added = add_->epsilon(steps, delta);
        if (narrow(added, least_width) || (added.usable && added.upper <= upper))
            return detail::max(upper, added.upper);
        const double other = counted(discretised(steps, false, upper).epsilon(delta));
        return detail::max(upper, added.usable ? detail::min(other, added.upper) : other);
    }

    double slack() const { return 1e-9; }

    // Points visited so far by either engine.
    double work() const { return work_ + (remove_ ? remove_->work() + add_->work() : 0.0); }

  private:
    static constexpr double tolerance = 1e-3, least_width = 1e-9;  // of what discretised losses are asked for, too

    static bool narrow(const ContourResult& r, double least) {
        return r.usable && r.upper - r.lower <= detail::max(tolerance * r.upper, least);
    }

    void prepare(double sigma, double rate) const {
        if (stop_) throw detail::Stopped();
        if (sigma == sigma_ && rate == rate_) return;
        sigma_ = sigma;
        rate_ = rate;
        work_ = work();
        contours_ = SampledGaussianCumulant::covers(sigma, rate);
        remove_ = std::make_unique<Contour>(cumulants(true), true, kernels_);
        add_ = std::make_unique<Contour>(cumulants(false), false, kernels_);
    }

    Contour::Factory cumulants(bool remove) const {
        return [sigma = sigma_, rate = rate_, remove, &kernels = kernels_](double cut) {
            std::vector<ContourPart> parts;
            parts.push_back({std::make_unique<SampledGaussianCumulant>(sigma, rate, remove, cut, kernels), 1.0});
            return parts;
        };
    }

    double counted(const PldBracket& found) const {
        work_ += found.work;
        return found.upper;
    }

    template <class Upper> double by_discretised(const Upper& upper, double steps) const {
        const double removed = upper(discretised(steps, true, 0.0));
        return detail::max(removed, upper(discretised(steps, false, removed)));
    }

    // An upper end not above `floor` will not be looked at.
    Composition discretised(double steps, bool remove, double floor) const {
        PldSettings settings;
        settings.tolerance = tolerance;
        settings.floor = floor;
        settings.stop = &stop_;
        return Composition({{make_loss({"gaussian", {1.0 / sigma_}, rate_}, remove), steps}}, settings);
    }

    const contour::Kernels& kernels_;
    const std::atomic<bool>& stop_;
    mutable double work_ = 0.0;
    mutable bool contours_ = false;
    mutable double sigma_ = detail::nan, rate_ = detail::nan;
    mutable std::unique_ptr<Contour> remove_, add_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
