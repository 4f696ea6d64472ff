// Certified upper ends of delta and epsilon of T equal Poisson-sampled Gaussian steps, both directions: what accounting/dpsgd.hpp asks for.
//
// The contour engine answers; discretised losses do where it does not apply or its bracket is wide. Cells that share sigma
// and the rate share the contours, and all that these keep; where there are idle ones, with what was asked before, too. Contours
// are not tried where sigma or the rate is so small that the grids in x would be too large.
#pragma once

#include <atomic>
#include <memory>

#include <hockeystick/contour/contour_cache.hpp>
#include <hockeystick/pld/composition.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace contour;
using namespace pld;

// Not for several threads at once. Throws Stopped once `stop` is true.
class DpsgdEngine {
  public:
    DpsgdEngine(const simd::Kernels& kernels, const std::atomic<bool>& stop, ContourCache* idle = nullptr)
        : kernels_(kernels), stop_(stop), idle_(idle) {}

    double delta(double sigma, double rate, double steps, double eps) const {
        prepare(sigma, rate);
        return larger(
            steps, 1.0, 0.0, [&](Contour& contour) { return contour.delta(steps, eps); },
            [&](const Composition& losses) { return losses.delta(eps); },
            [&](double upper) { return contours_->add.certainly_below(steps, eps, std::log(upper)); });
    }

    double epsilon(double sigma, double rate, double steps, double delta) const {
        prepare(sigma, rate);
        return larger(
            steps, infinity, least_width, [&](Contour& contour) { return contour.epsilon(steps, delta); },
            [&](const Composition& losses) { return losses.epsilon(delta); },
            [&](double upper) { return contours_->add.certainly_below(steps, upper, std::log(delta)); });
    }

    double slack() const { return 1e-9; }

    // Points visited so far by either engine.
    double work() const { return work_ + (contours_ ? contours_->work() : 0.0); }

    // Leaves the contours to others. Not after an exception: they may be half made.
    void rest() const {
        if (!contours_) return;
        std::swap(*contours_->workspace, workspace_);
        work_ += contours_->work();
        if (idle_) idle_->release(std::move(contours_));
        contours_.reset();
    }

  private:
    static constexpr double tolerance = 1e-3, least_width = 1e-9;  // of what discretised losses are asked for, too

    static bool narrow(const ContourResult& r, double least) {
        return r.usable && r.upper - r.lower <= max(tolerance * r.upper, least);
    }

    void prepare(double sigma, double rate) const {
        if (stop_) throw Stopped();
        if (contours_ && sigma == contours_->sigma && rate == contours_->rate) return;
        rest();
        if (idle_) contours_ = idle_->acquire(sigma, rate);
        if (!contours_) contours_ = std::make_unique<SampledContours>(sigma, rate, kernels_);
        work_ -= contours_->work();
        std::swap(*contours_->workspace, workspace_);
        covered_ = SampledGaussianCumulant::covers(sigma, rate);
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
        if (!covered_) {
            const double removed = by_discretised(true, 0.0);
            return max(removed, by_discretised(false, removed));
        }
        const ContourResult removed = by_contour(contours_->remove);
        double upper = removed.usable ? removed.upper : widest;
        if (!narrow(removed, least)) upper = min(upper, by_discretised(true, 0.0));
        if (below(upper)) return upper;
        const ContourResult added = by_contour(contours_->add);
        if (narrow(added, least) || (added.usable && added.upper <= upper)) return max(upper, added.upper);
        const double other = by_discretised(false, upper);
        return max(upper, added.usable ? min(other, added.upper) : other);
    }

    // An upper end not above `floor` will not be looked at.
    Composition discretised(double steps, bool remove, double floor) const {
        PldSettings settings;
        settings.tolerance = tolerance;
        settings.floor = floor;
        settings.stop = &stop_;
        return Composition({{make_loss({"gaussian", {1.0 / contours_->sigma}, contours_->rate}, remove), steps}},
                           settings);
    }

    const simd::Kernels& kernels_;
    const std::atomic<bool>& stop_;
    ContourCache* const idle_;
    mutable FourierWorkspace workspace_;  // lent to the contours at work
    mutable double work_ = 0.0;
    mutable bool covered_ = false;
    mutable std::unique_ptr<SampledContours> contours_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
