// The Poisson-sampled Gaussian's losses at the points of a lattice in x. They do not depend on the
// tilt: one lattice serves many tilts (cumulant/sampled_gaussian.hpp).
//
// Cells have the width `step`. Boundary k lies at anchor + k step with |anchor| <= step/2, so that
// some boundary is at `end`, and a point lies in the middle of each cell. Computed so, the x of a
// point errs by at most (|x| + |x - anchor|) u: it is as exact near 0 as elsewhere, relatively.
// What is kept of a point is a function of its number alone: nothing depends on what was asked
// before.
#pragma once

#include <cmath>
#include <memory>

#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace simd;

class LossLattice {
  public:
    LossLattice(double sigma, double rate, double end, double step, const simd::Kernels& kernels)
        : at_{sigma, rate, end - std::round(end / step) * step, step, 0.0, 0}, kernels_(&kernels) {}

    double step() const { return at_.step; }
    double boundary(double k) const { return at_.anchor + k * at_.step; }
    double number(double x) const { return (x - at_.anchor) / at_.step; }  // of the boundary at x

    // The points of the n cells from boundary `first` on; valid until the next call.
    simd::Points points(double first, std::size_t n) {
        const double end = first + static_cast<double>(n), known_end = at_.first + static_cast<double>(at_.n);
        if (!(at_.n > 0 && first >= at_.first && end <= known_end)) {
            const double low = min(first, at_.first), high = max(end, known_end);
            const bool afresh = at_.n == 0 || high - low > static_cast<double>(n) + max_extra_points;
            compute((afresh ? first : low) - margin, (afresh ? end : high) + margin);
        }
        const double* p = data_.get() + static_cast<std::size_t>(first - at_.first);
        const std::size_t next = at_.n;
        return {p, p + next, p + 2 * next, p + 3 * next, p + 4 * next, p + 5 * next, p + 6 * next};
    }

    double work() const { return work_; }  // points visited so far

  private:
    // How many more points than asked for are computed on either side, and how many more are kept
    // at most.
    static constexpr double margin = 8.0, max_extra_points = 4096.0;

    void compute(double first, double end) {
        at_.first = first;
        at_.n = padded_to_lanes(static_cast<std::size_t>(end - first));
        work_ += static_cast<double>(at_.n);
        const std::size_t n = at_.n;
        double* p = new double[7 * n];
        data_.reset(p);
        kernels_->fill_privacy_losses(at_, p, p + n, p + 2 * n, p + 3 * n, p + 4 * n, p + 5 * n, p + 6 * n);
    }

    simd::Lattice at_;
    const simd::Kernels* kernels_;
    std::unique_ptr<double[]> data_;  // Points, one array after the other
    double work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
