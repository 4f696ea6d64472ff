// How the transform of a slice of cumulant/loss_slices.hpp and of all below it, M(c + i omega), falls
// as omega grows: it is taken to the power of nearly all steps.
//
// The window of these slices together, A, is what the label x + w N(0,1) puts below a cut: a mean of
// Gaussians, as that of one slice. So the shift of x by i theta sigma^2 bounds M as it bounds a
// slice, with c + 1 >= 0, theta <= pi/2 and g = SliceGrid::growth:
//
//   |M(c + i omega)| <= e^{g theta^2} int A f_c e^{-omega w(x) sin theta} dx + ends.
//
// A factor of 2 would be too much, since it is taken to the power of the steps. But
// int A f_c e^{-a} = int A f_c - int A f_c (1 - e^{-a}), and the second integral has a lower bound
// cell by cell. A is log-concave and (log(1 + z))'' <= 1/(4 sigma^4), so that in a cell of width h0
// log(A f_c) is at least the smaller one of its ends less (c + 1) h0^2/(32 sigma^4); and w(x) is at
// least what it is at the cell's left end. With g_j = A f_c at the points of the grid,
//
//   |M(c + i omega)/M(c)| <= e^{g theta^2} (1 - r + ends),
//   r = e^{-(c+1) h0^2/(32 sigma^4)} sum_j min(g_j, g_{j+1}) (1 - e^{-omega w_j sin theta})
//       / sum_j g_j.
//
// This holds with all below alone in the numerator, whose window is smaller. 1e-9 pays for rounding,
// and for what is beyond 14 w, below e^-73 (cumulant/slice_moments.hpp). The bound falls in omega.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/cumulant/slice_grid.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

class SliceDamping {
  public:
    // Of the part `whole`, whose window has no lower cut, at the tilt c.
    SliceDamping(const SliceGrid& grid, const SliceGrid::Part& whole, double c)
        : grid_(grid), mix_(grid.points(whole.start).mix), lower_(grid.exponents(whole, c + 1.0).exponents) {
        const std::size_t n = lower_.size();
        const simd::Kernels& kernels = grid.kernels();
        std::vector<double> terms(n);
        kernels.exponentiate(lower_.data(), 0.0, terms.data(), n);
        total_ = kernels.sum(terms.data(), n);
        mean_mix_ = kernels.dot(terms.data(), mix_, n) / total_;
        ends_ = 2.0 / total_ * grid.end_error(terms[0], terms[n - 1], c + 1.0, grid.step(), whole.start + n);
        for (std::size_t j = 0; j + 1 < n; ++j) lower_[j] = min(lower_[j], lower_[j + 1]);
        lower_[n - 1] = -1e4;  // no cell
        kernels.exponentiate(lower_.data(), 0.0, terms.data(), n);
        lower_total_ = kernels.sum(terms.data(), n);
        const double bend = grid.step() / (grid.sigma() * grid.sigma());
        share_ = std::exp(-(c + 1.0) * bend * bend / 32.0) / total_;
        grid.add_work(3.0 * static_cast<double>(n));
    }

    // Of log |M(c + i omega)/M(c)|, from omega on: at the shift that is best where the mixture weight
    // is its mean, or at a smaller one, since the weight varies.
    double log_bound(double omega) const {
        const double best = omega * mean_mix_ / (2.0 * grid_.growth());
        double least = 0.0;
        for (const double part : {1.0, 0.5, 0.25}) least = min(least, at_shift(min(part * best, 0.6), omega));
        return least;
    }

  private:
    double at_shift(double theta, double omega) const {
        const std::size_t n = lower_.size();
        const double left = grid_.kernels().sum_damped_above(lower_.data(), mix_, n, omega * std::sin(theta));
        grid_.add_work(static_cast<double>(n));
        return grid_.growth() * theta * theta + std::log1p(ends_ + 1e-9 - share_ * (lower_total_ - left));
    }

    const SliceGrid& grid_;
    const double* mix_;
    std::vector<double> lower_;  // the smaller one of a cell's exponents log(A f_c)
    double total_, lower_total_, mean_mix_, ends_, share_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
