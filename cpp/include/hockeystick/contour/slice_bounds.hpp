// Bounds of the parts of a sliced composition (contour/sliced_contour.hpp), by Chernoff at the real
// tilts of LossSlices.
//
// Part p is P_p^T - P_{p+1}^T, where P_p is the measure of slice p and of all below it. It is what
// T steps give in which some outcome lies in slice p and none above it. `whole` asks for P_p^T
// instead.
#pragma once

#include <hockeystick/contour/line_grid.hpp>
#include <hockeystick/cumulant/loss_slices.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;

class SliceBounds {
  public:
    explicit SliceBounds(const LossSlices& slices) : slices_(slices) {}

    // log of the transform at a real tilt: M_p^T for the whole, and no more than T |slice|
    // M_p^{T-1} for part p alone.
    double log_transform(int slice, int tilt_index, double times, bool whole) const {
        const LossSlices::Moments& m = slices_.at(tilt_index);
        const auto at = static_cast<std::size_t>(slice);
        const double slack = times * (m.error + 4.0 * unit_roundoff * std::fabs(m.upto[at])) + 1e-9;
        const double all = times * m.upto[at];
        return slack + (whole ? all : min(all, std::log(times) + m.slice[at] + (times - 1.0) * m.upto[at]));
    }
    double log_chernoff(int slice, int tilt_index, double times, double eps, bool whole = false) const {
        const LossSlices::Moments& m = slices_.at(tilt_index);
        return log_transform(slice, tilt_index, times, whole) - m.c * eps + m.log_kappa;
    }
    int best_tilt(int slice, double times, double eps, bool whole = false) const {
        const auto bound = [&](int index) { return log_chernoff(slice, index, times, eps, whole); };
        return minimising_index(bound, 4, slices_.first_tilt(), slices_.last_tilt());
    }
    double least_log_chernoff(int slice, double times, double eps, bool whole = false) const {
        return log_chernoff(slice, best_tilt(slice, times, eps, whole), times, eps, whole);
    }

    // The P-mass of part p: no more than T times that of the slice, nor than 1.
    double log_mass(int slice, double times) const {
        const LossSlices::Moments& m = slices_.mass(true);
        return min(std::log(times) + m.slice[static_cast<std::size_t>(slice)], 0.0) + 1e-9;
    }

    // log T M_p(c)^{T-1}: on Re s = c part p's transform is at most that times |slice|, the
    // transform of slice p.
    double log_other_steps(int slice, int tilt_index, double times) const {
        const double upto = slices_.at(tilt_index).upto[static_cast<std::size_t>(slice)];
        return log_transform(slice, tilt_index, times, true) - upto + std::log(times);
    }

    // log of the sum of all parts' Chernoff bounds, less 1/2, since these are too large. A guess of
    // log delta.
    double log_estimate(double times, double eps) const {
        double sum = -infinity;
        for (int slice = 0; slice < slices_.size(); ++slice) {
            const double bound = least_log_chernoff(slice, times, eps);
            if (bound < sum - 8.0) break;
            sum = log_sum(sum, bound);
        }
        return sum - 0.5;
    }

    // The epsilon where these bounds together are delta, to a few per cent: secants of log delta
    // over log eps.
    double guess_epsilon(double times, double log_delta) const {
        double low = std::log(1e-6), high = std::log(1e3), x = 0.0;
        double before = 0.0, excess_before = 0.0;
        for (int step = 0; step < 40 && high - low > 0.02; ++step) {
            const double excess = log_estimate(times, std::exp(x)) - log_delta;
            (excess > 0.0 ? low : high) = x;
            const double slope = step > 0 ? (excess - excess_before) / (x - before) : -5.0;
            const double move = -excess / slope;
            if (step > 0 && std::fabs(move) < 0.02) return std::exp(x + move);
            before = x;
            excess_before = excess;
            x += min(max(move, -2.0), 2.0);
            if (!(x > low && x < high)) x = 0.5 * (low + high);
        }
        return std::exp(x);
    }

  private:
    const LossSlices& slices_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
