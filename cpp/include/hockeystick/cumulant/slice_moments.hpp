// The masses and real transforms of the slices of cumulant/loss_slices.hpp, M_p(c) at real c >= -1,
// by sums over the base grid.
//
// Quadrature. The grid's step is 0.06 sigma^2. The shift of x by i sigma^2 certifies it for every
// tilt: A f_c grows by at most e^{22.3 + sigma^2/2} on the shifted line, and 2 pi
// sigma^2/step > 104, so that the relative error is below e^-73 for sigma <= 4. What the ends of a
// slice's range add to the error is added to the value.
//
// Rounding. For c > 0 only upper ends are made of the moments, Chernoff's bounds: one bound serves
// all slices, all sigma and all rates that are covered. docs/core/cumulant.md derives 3.8e4
// u + 5.6e3 u (c + 1). What is charged, 3.6e4 u + 1.8e4 u (c + 1), is more at every c > 0. For
// masses, c = 0 and c = -1, the error is added up from the points.
//
// Damping. How the transform of a slice and of all below it, M(c + i omega), falls as omega
// grows: it is taken to the power of nearly all steps.
//
// The window of these slices together, A, is what the label x + w N(0,1) puts below a cut: a
// mean of Gaussians, as that of one slice. So the shift of x by i theta sigma^2 bounds M as it
// bounds a slice, with c + 1 >= 0, theta <= pi/2 and g = SliceGrid::growth:
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
// This holds with all below alone in the numerator, whose window is smaller. 1e-9 pays for
// rounding, and for what is beyond 14 w, below e^-73 (above). The bound falls in omega.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/cumulant/slice_grid.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// Logarithms of the transforms of every slice, and of it with all below, at a real c >= -1; and how
// far they may be off.
struct SliceMoments {
    double c, log_kappa;  // of Chernoff's bound (contour/contour.hpp)
    std::vector<double> slice, upto;
    double error;
};

// What a moment at c > 0 errs by: at least what is derived for the shape's sigmas and rates up to
// 1/2.
inline double slice_moment_error(const SliceShape& shape, double c) {
    return shape.moment_error + shape.tilt_error * (c + 1.0);
}

// The relative rounding error of a slice's mass, which is a sum of `weights` times windows; of
// `parts` slices' sums, too.
inline double slice_mass_error(const SliceGrid& grid, const SliceGrid::Part& part, double c, const double* weights,
                               double sum, std::size_t parts) {
    const std::size_t size = part.window.size();
    std::vector<double> errors(size);
    const simd::Points at = grid.points(part.start);
    for (std::size_t j = 0; j < size; ++j)
        errors[j] = part.window[j] * (SliceGrid::weight_error(at, j, c + 1.0) + part.window_error[j]);
    const double mean = grid.kernels().dot(weights, errors.data(), size) / sum;
    return 1.1 * unit_roundoff * (mean + static_cast<double>(size + 8 * parts) + grid.shape().mass_roundings);
}

// Weights are in units of e^top, and kept from one slice to the next while they stay in the
// doubles.
inline SliceMoments slice_moments(const SliceGrid& grid, const std::vector<SliceGrid::Part>& parts, double c) {
    const simd::Kernels& kernels = grid.kernels();
    const std::size_t n = grid.size();
    std::vector<double> exponents(n), weights(n);
    kernels.fill_tilted_exponents(grid.points(0), c + 1.0, exponents.data(), n);
    grid.add_work(static_cast<double>(n));
    const double log_kappa = c > 0.0 ? c * std::log(c) - (1.0 + c) * std::log1p(c) : 0.0;
    SliceMoments m{c, log_kappa, std::vector<double>(parts.size()), std::vector<double>(parts.size()),
                   c > 0.0 ? slice_moment_error(grid.shape(), c) : 0.0};
    double below = -infinity, top = -infinity;
    std::size_t done = 0;
    for (std::size_t p = parts.size(); p-- > 0;) {
        const SliceGrid::Part& part = parts[p];
        const std::size_t size = part.window.size(), end = part.start + size;
        const double* own = weights.data() + part.start;
        const double own_top = kernels.largest(exponents.data() + part.start, size);
        if (own_top > top + 300.0) {
            top = own_top;
            done = part.start;
        }
        kernels.exponentiate(exponents.data() + done, top, weights.data() + done, end - done);
        done = end;
        const double sum = kernels.dot(own, part.window.data(), size);
        const double ends =
            grid.end_error(own[0] * part.window[0], own[size - 1] * part.window[size - 1], c + 1.0, grid.step(), end);
        m.slice[p] = std::log(sum + ends) + top + grid.log_scale(grid.step());
        m.upto[p] = below = log_sum(m.slice[p], below);
        if (c <= 0.0) m.error = max(m.error, slice_mass_error(grid, part, c, own, sum, parts.size()) + ends / sum);
    }
    return m;
}

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

    // Of log |M(c + i omega)/M(c)|, from omega on: at the shift that is best where the mixture
    // weight is its mean, or at a smaller one, since the weight varies.
    double log_bound(double omega) const {
        const double best = omega * mean_mix_ / (2.0 * grid_.growth());
        double least = 0.0;
        for (const double part : {1.0, 0.5, 0.25}) least = min(least, at_shift(min(part * best, most_shift), omega));
        return least;
    }

  private:
    static constexpr double most_shift = 0.6;  // of the proposition in docs/core/cumulant.md

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
