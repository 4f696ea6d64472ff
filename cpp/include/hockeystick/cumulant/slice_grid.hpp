// The base grid of cumulant/loss_slices.hpp: a lattice in x on which windows, tilted densities and
// masses of slices are sampled.
//
// The window A of a slice is what the label x + w N(0,1), w = 0.15 sigma^2, puts between two cuts.
// A is a mean of Gaussians over an interval, hence |A(x + iy)| <= e^{y^2/2w^2} A(x) and
// (log A)'' >= -1/w^2. With f_c = (1 + z)^{c+1} e^{-x^2/2 sigma^2}, the slice's transform is an
// integral of A f_c.
//
// The grid has the step h0 = min(0.4 w, 0.24 sigma), which is 0.4 w up to sigma = 4. It goes from
// -14 sigma to 1 + R sigma, where R = 22 for usual deltas and more for deep ones (SliceShape). In a
// cell, log(A f_c) is at most h0^2 (1/w^2 + 1/sigma^2)/8 < 0.028 above the larger of its ends: an
// integral of A f_c is at most 2 e^0.028 < 2.1 times the sum over the grid. A slice has the points
// from 14 w below its label's interval to 14 w above it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/cumulant/loss_lattice.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// Which losses are cut into slices, and how finely tilts and plans are chosen for them.
struct SliceShape {
    double right_reach;               // how far the grid goes beyond x = 1, in sigma
    double highest_cut;               // the largest cut, in sigma,
    double slices_above;              // and by how many slices it may exceed the loss log 2
    int tilts_per_octave;             // tilts are 2^{k/tilts_per_octave}
    bool plans_are_shared;            // among questions that differ little (contour/slices.hpp)
    double log_tolerance;             // of each error of a sum, relative to delta
    double max_growth;                // terms may exceed delta by e^max_growth: rounding grows by that
    double wanted_width;              // relative; wider brackets are tried to be narrowed,
    double usable_width;              // and much wider ones are of no use
    double max_sigma;                 // slices serve sigmas from 0.25 up to this
    double moment_error, tilt_error;  // a moment at c > 0 errs by moment_error + tilt_error (c + 1)
    double mass_roundings;            // in units of u, besides those of points and slices

    // For a delta above e^-45 or so.
    static SliceShape usual() {
        return {22.0, 9.0, infinity, 2, true, -20.5, 12.5, 3e-8, 1e-2, 4.0, 4e-12, 2e-12, 600.0};
    }
    // For a smaller one, made by losses up to x = 38 sigma. There c eps is in the hundreds, so that
    // tilts must be finer, and a plan for a slightly different eps is of no use.
    static SliceShape deep() {
        return {48.0, 38.0, 1.0, 16, false, -20.5, 20.0, 1e-6, 0.5, 8.0, 3e-11, 3.2e-12, 6000.0};
    }
};

// Not for several threads at once.
class SliceGrid {
  public:
    // How far slices reach beyond their cuts, in w; how far the grid does to the left, in sigma.
    static constexpr double reach = 14.0;
    static constexpr double integral_per_sum = 2.1;  // see above

    // A window on the points of the grid on which it is not negligible.
    struct Part {
        simd::Window of;
        std::size_t start;
        std::vector<double> window, window_error, log_window;  // errors are in units of u
        double low, high;                                      // where the slice ends
    };
    struct Exponents {
        std::vector<double> exponents;  // log(A f_c), less `top`
        double top = 0.0;
    };

    SliceGrid(double sigma, double rate, const SliceShape& shape, const simd::Kernels& kernels)
        : sigma_(sigma), rate_(rate), shape_(shape), kernels_(kernels), width_(0.15 * sigma * sigma),
          step_(min(0.4 * width_, 0.24 * sigma)), lattice_(sigma, rate, -reach * sigma, step_, kernels),
          first_(std::round(lattice_.number(-reach * sigma))),
          size_(lanes_beyond((1.0 + (reach + shape.right_reach) * sigma) / step_)),
          base_(lattice_.points(first_ - 1.0, size_ + simd::lanes)) {}
    SliceGrid(const SliceGrid&) = delete;  // base_ points into lattice_
    SliceGrid& operator=(const SliceGrid&) = delete;

    double sigma() const { return sigma_; }
    double rate() const { return rate_; }
    const SliceShape& shape() const { return shape_; }
    double width() const { return width_; }  // w
    double step() const { return step_; }    // h0
    std::size_t size() const { return size_; }
    const simd::Kernels& kernels() const { return kernels_; }

    Part part(const simd::Window& w) const {
        Part part;
        part.of = w;
        const double wide = reach * width_, last = static_cast<double>(size_);
        const double begin = max(lattice_.number(w.low - wide) - first_, 0.0);
        const double end = min(lattice_.number(w.high + wide) - first_, last);
        part.start = static_cast<std::size_t>(begin) / simd::lanes * simd::lanes;
        const std::size_t count = std::min(lanes_beyond(end - static_cast<double>(part.start)), size_ - part.start);
        const double number = first_ + static_cast<double>(part.start);
        part.low = lattice_.boundary(number);
        part.high = lattice_.boundary(number + static_cast<double>(count));
        for (auto* array : {&part.window, &part.window_error, &part.log_window}) array->resize(count);
        const std::size_t ones = fill_window(lattice_, number, count, w, part.window.data(), part.window_error.data());
        kernels_.fill_logarithms(part.window.data() + ones, part.log_window.data() + ones, count - ones);
        add_work(static_cast<double>(count));
        return part;
    }

    // A window at n points of a lattice from its boundary `first` on, with its errors. Returns how many of the first
    // points it is 1 at, to the last bit: without a lower cut those `reach` widths below the upper one, where it lacks Q(14).
    std::size_t fill_window(const LossLattice& lattice, double first, std::size_t n, const simd::Window& w,
                            double* values, double* errors) const {
        const double below = w.low == -infinity ? lattice.number(w.high - reach * width_) - first : 0.0;
        const auto ones =
            static_cast<std::size_t>(min(max(below, 0.0), static_cast<double>(n))) / simd::lanes * simd::lanes;
        std::fill_n(values, ones, 1.0);
        std::fill_n(errors, ones, 20.0);
        const double next = first + static_cast<double>(ones);
        kernels_.fill_window({sigma_, rate_, lattice.boundary(0.0), lattice.step(), next, n - ones}, w, values + ones,
                             errors + ones);
        return ones;
    }

    // Room for n doubles, which are not set, until the next call.
    double* scratch(std::size_t n) const {
        if (scratch_.size() < n) scratch_.resize(n);
        return scratch_.data();
    }

    // Of A f_c at a part's points; `power` is c + 1. Into memory that is used again.
    void fill_exponents(const Part& part, double power, Exponents& e) const {
        const std::size_t n = part.window.size();
        e.exponents.resize(n);
        kernels_.fill_tilted_exponents(points(part.start), power, e.exponents.data(), n);
        for (std::size_t j = 0; j < n; ++j) e.exponents[j] += part.log_window[j];
        e.top = kernels_.largest(e.exponents.data(), n);
        for (double& x : e.exponents) x -= e.top;
    }

    // The grid's points from its j-th on. The lattice has one more point on the left.
    simd::Points points(std::size_t j) const {
        return {base_.loss + j + 1,    base_.half_square + j + 1, base_.mix + j + 1,         base_.excess + j + 1,
                base_.density + j + 1, base_.loss_error + j + 1,  base_.excess_error + j + 1};
    }
    // Mixture weights one point to the left of the grid's j-th point on, where they are lower; and
    // one to the right of it, higher.
    const double* mix_left_of(std::size_t j) const { return base_.mix + j; }
    const double* mix_right_of(std::size_t j) const { return base_.mix + j + 2; }

    // Relative rounding error of the tilted weight e^{power loss} e^{-x^2/2 sigma^2}, in units of
    // u.
    static double weight_error(const simd::Points& at, std::size_t j, double power) {
        return std::fabs(power) * at.loss_error[j] + 10.0 * at.half_square[j] + 12.0;
    }

    // Error of replacing an integral over the range of a part by the sum over points `step` apart,
    // from the two ends of the range, in units of the sum. `left` and `right` are the terms at the
    // outermost points; the range ends half a step beyond. On the left A f_c falls towards the end.
    // On the right, which is at point `end` of the grid, it may still grow, at a rate of at most
    // power w(x)/sigma^2 per unit of x.
    double end_error(double left, double right, double power, double step, std::size_t end) const {
        const double variance = sigma_ * sigma_, rise = power * base_.mix[end + 1] / variance;
        return 3.0 * variance / step * (left + right * std::exp(0.5 * max(rise, 0.0) * step));
    }

    // On x + i theta sigma^2, |A f_c| is at most e^{growth theta^2} times what it is on the real
    // axis.
    double growth() const {
        const double variance = sigma_ * sigma_;
        return 0.5 * variance * (variance / (width_ * width_) + 1.0);
    }
    // The logarithm of what a sum of A f_c over points `step` apart is multiplied by.
    double log_scale(double step) const { return std::log(step / (sigma_ * std::sqrt(2.0 * pi))); }

    double work() const { return work_; }  // points visited so far
    void add_work(double points) const { work_ += points; }

  private:
    // The smallest multiple of `lanes` above `points`.
    static std::size_t lanes_beyond(double points) {
        return (static_cast<std::size_t>(points) / simd::lanes + 1) * simd::lanes;
    }

    double sigma_, rate_;
    SliceShape shape_;
    const simd::Kernels& kernels_;
    double width_, step_;
    LossLattice lattice_;
    double first_;  // the grid's first boundary
    std::size_t size_;
    simd::Points base_;  // from one point left of the grid on
    mutable std::vector<double> scratch_;
    mutable double work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
