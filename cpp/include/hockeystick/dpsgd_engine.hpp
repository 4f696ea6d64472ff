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
        return larger(
            steps, 1.0, 0.0, [&](Contour& contour) { return contour.delta(steps, eps); },
            [&](const Composition& losses) { return losses.delta(eps); },
            [&](double upper) { return add_->certainly_below(steps, eps, std::log(upper)); });
    }

    double epsilon(double sigma, double rate, double steps, double delta) const {
        prepare(sigma, rate);
        return larger(
            steps, detail::infinity, least_width, [&](Contour& contour) { return contour.epsilon(steps, delta); },
            [&](const Composition& losses) { return losses.epsilon(delta); },
            [&](double upper) { return add_->certainly_below(steps, upper, std::log(delta)); });
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
        return [sigma = sigma_, rate = rate_, remove, workspace = workspace_, &kernels = kernels_](double cut) {
            std::vector<ContourPart> parts;
            parts.push_back(
                {std::make_unique<SampledGaussianCumulant>(sigma, rate, remove, cut, kernels, workspace), 1.0});
            return parts;
        };
    }

    // The larger upper end of both directions. `below` says whether adding certainly leaks no more than that of removing.
    template <class ByContour, class ByLosses, class Below>
    double larger(double steps, double widest, double least, const ByContour& by_contour, const ByLosses& by_losses,
                  const Below& below) const {
        const auto by_discretised = [&](bool remove, double floor) {
            const PldBracket found = by_losses(discretised(steps, remove, floor));
            work_ += found.work;
            return found.upper;
        };
        if (!contours_) {
            const double removed = by_discretised(true, 0.0);
            return detail::max(removed, by_discretised(false, removed));
        }
        const ContourResult removed = by_contour(*remove_);
        double upper = removed.usable ? removed.upper : widest;
        if (!narrow(removed, least)) upper = detail::min(upper, by_discretised(true, 0.0));
        if (below(upper)) return upper;
        const ContourResult added = by_contour(*add_);
        if (narrow(added, least) || (added.usable && added.upper <= upper)) return detail::max(upper, added.upper);
        const double other = by_discretised(false, upper);
        return detail::max(upper, added.usable ? detail::min(other, added.upper) : other);
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
    std::shared_ptr<FourierWorkspace> workspace_ = std::make_shared<FourierWorkspace>();
    mutable double work_ = 0.0;
    mutable bool contours_ = false;
    mutable double sigma_ = detail::nan, rate_ = detail::nan;
    mutable std::unique_ptr<Contour> remove_, add_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
