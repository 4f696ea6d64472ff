// The Poisson-sampled Gaussian's losses (cumulant/sampled_gaussian.hpp, remove) in slices of one
// scale each, for few steps of rare samples: contour/slices.hpp says why.
//
// Slices. With x_p = 1/2 + sigma^2 (1.4 m - log q), m whole, falling in p, slice p is what the
// label x + w N(0,1), w = 0.15 sigma^2, puts between x_p and x_{p-1}: where log(1 + z) is small,
// losses of one slice differ by factors up to e^1.4. The slice has the transform
//   M_p(s) = E_Q[A (1 + z)^{s+1}],   A the window of cumulant/slice_grid.hpp.
// What a slice lacks beyond the ends of its range, 14 w outside its interval, or -14 sigma and
// 1 + 22 sigma, is at most Q(14) at each: it moves every delta by at most its mass, either way.
//
// Decay. On x + i theta sigma^2, theta <= pi/2 and c + 1 >= 0, |A f (1 + z)^{c+1}| grows at most by
// e^{g theta^2}, g = SliceGrid::growth, because |1 + z| falls; and e^{i omega log(1 + z)} falls by
// e^{-omega arg(1 + z)}, arg(1 + z) >= w(x) sin theta, w(x) the mixture weight. Hence, with
// theta = min(0.6, 2.4/sigma),
//   |M_p(c + i omega)| <= e^{g theta^2} int A f_c e^{-omega w(x) sin theta} dx
//                         + 2 theta sigma^2 A f_c at both ends.
//
// The grid and its windows are in cumulant/slice_grid.hpp. Here follow masses and real transforms
// (add_moments), how they fall (SliceDamping), complex transforms (SliceTransformer), and the
// class that keeps all of these by number, LossSlices. Tilts, frequencies and spacings are rounded,
// so that a value is a function of its cell alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>
#include <hockeystick/cumulant/slice_grid.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// The masses and real transforms of the slices, M_p(c) at real c >= -1, by sums over the base grid.
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
// This holds with all below alone in the numerator, whose window is smaller. It also holds if terms
// are left out of the numerator, which makes the bound larger. 1e-9 pays for rounding, and for
// what is beyond 14 w, below e^-73 (above). The bound falls in omega.

// Logarithms of the transforms of the slices, and of each with all below, at a real c >= -1; and how
// far they may be off. Those of the lowest slices come first: only the slices from `known` on are set.
struct SliceMoments {
    double c, log_kappa;  // of Chernoff's bound (contour/contour.hpp)
    std::vector<double> slice, upto;
    double error;
    std::size_t known;
    double top = -infinity;  // the unit of the last slice's weights is e^top
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

// None of them yet.
inline SliceMoments slice_moments(const SliceGrid& grid, std::size_t parts, double c) {
    const double log_kappa = c > 0.0 ? c * std::log(c) - (1.0 + c) * std::log1p(c) : 0.0;
    const double error = c > 0.0 ? slice_moment_error(grid.shape(), c) : 0.0;
    return {c, log_kappa, std::vector<double>(parts), std::vector<double>(parts), error, parts};
}

// Sets those from slice `first` on. Weights are in units of e^top, and kept from one slice to the next
// while they stay in the doubles. The unit is kept, too, so that a moment does not depend on what was
// asked before.
inline void add_moments(const SliceGrid& grid, const std::vector<SliceGrid::Part>& parts, std::size_t first,
                        SliceMoments& m) {
    const simd::Kernels& kernels = grid.kernels();
    const double power = m.c + 1.0;
    const SliceGrid::Part &lowest = parts[m.known - 1], &highest = parts[first];
    const std::size_t begin = lowest.start, n = highest.start + highest.window.size() - begin;
    double *exponents = grid.scratch(2 * n), *weights = exponents + n;
    kernels.fill_tilted_exponents(grid.points(begin), power, exponents, n);
    grid.add_work(static_cast<double>(n));
    std::size_t done = 0, seen = 0;  // up to where there are weights, and where none is above e^(top + 300)
    if (m.known < parts.size()) seen = parts[m.known].start + parts[m.known].window.size() - begin;
    while (m.known > first) {
        const std::size_t p = --m.known;
        const SliceGrid::Part& part = parts[p];
        const std::size_t size = part.window.size(), start = part.start - begin, end = start + size;
        const double* own = weights + start;
        const double own_top = kernels.largest(exponents + seen, end - seen);
        seen = end;
        if (own_top > m.top + 300.0) {
            m.top = own_top;
            done = start;
        }
        kernels.exponentiate(exponents + done, m.top, weights + done, end - done);
        done = end;
        const double sum = kernels.dot(own, part.window.data(), size);
        const double ends = grid.end_error(own[0] * part.window[0], own[size - 1] * part.window[size - 1], power,
                                           grid.step(), part.start + size);
        m.slice[p] = std::log(sum + ends) + m.top + grid.log_scale(grid.step());
        m.upto[p] = log_sum(m.slice[p], p + 1 < parts.size() ? m.upto[p + 1] : -infinity);
        if (m.c <= 0.0) m.error = max(m.error, slice_mass_error(grid, part, m.c, own, sum, parts.size()) + ends / sum);
    }
}

class SliceDamping {
  public:
    // Of the part `whole`, whose window has no lower cut, at the tilt c.
    SliceDamping(const SliceGrid& grid, const SliceGrid::Part& whole, double c)
        : grid_(grid), mix_(grid.points(whole.start).mix) {
        SliceGrid::Exponents exponents;
        grid.fill_exponents(whole, c + 1.0, exponents);
        lower_ = std::move(exponents.exponents);
        const std::size_t n = lower_.size();
        const simd::Kernels& kernels = grid.kernels();
        double* terms = grid.scratch(n);
        kernels.exponentiate(lower_.data(), 0.0, terms, n);
        total_ = kernels.sum(terms, n);
        mean_mix_ = kernels.dot(terms, mix_, n) / total_;
        ends_ = 2.0 / total_ * grid.end_error(terms[0], terms[n - 1], c + 1.0, grid.step(), whole.start + n);
        for (std::size_t j = 0; j + 1 < n; ++j) lower_[j] = min(lower_[j], lower_[j + 1]);
        lower_[n - 1] = -1e4;  // no cell
        end_ = n;
        // A steep tilt may leave no cell that matters.
        while (first_ + simd::lanes < n && lower_[first_ + simd::lanes - 1] < least_matter) first_ += simd::lanes;
        while (end_ > first_ + simd::lanes && lower_[end_ - simd::lanes] < least_matter) end_ -= simd::lanes;
        kernels.exponentiate(lower_.data() + first_, 0.0, terms, end_ - first_);
        lower_total_ = kernels.sum(terms, end_ - first_);
        const double bend = grid.step() / (grid.sigma() * grid.sigma());
        share_ = std::exp(-(c + 1.0) * bend * bend / 32.0) / total_;
        grid.add_work(3.0 * static_cast<double>(n));
    }

    // Of log |M(c + i omega)/M(c)|, from omega on: at the shift that is best where the mixture
    // weight is its mean, or at a smaller one, since the weight varies.
    double log_bound(double omega) const {
        const double best = omega * mean_mix_ / (2.0 * grid_.growth());
        double least = infinity;
        for (const double part : {1.0, 0.5, 0.25}) {
            const double bound = at_shift(min(part * best, most_shift), omega);
            if (bound > least) break;
            least = bound;
        }
        return min(least, 0.0);
    }

  private:
    static constexpr double most_shift = 0.6;      // of the proposition in docs/core/cumulant.md
    static constexpr double least_matter = -40.0;  // cells below are left out of the numerator of r

    double at_shift(double theta, double omega) const {
        const std::size_t n = end_ - first_;
        const double left =
            grid_.kernels().sum_damped_above(lower_.data() + first_, mix_ + first_, n, omega * std::sin(theta));
        grid_.add_work(static_cast<double>(n));
        return grid_.growth() * theta * theta + std::log1p(ends_ + 1e-9 - share_ * (lower_total_ - left));
    }

    const SliceGrid& grid_;
    const double* mix_;
    std::vector<double> lower_;    // the smaller one of a cell's exponents log(A f_c)
    std::size_t first_ = 0, end_;  // the cells of the numerator of r
    double total_, lower_total_, mean_mix_, ends_, share_;
};

// The transforms of one slice, and of all slices below it, at the nodes c + i k h of a contour.
//
// Quadrature at frequency omega. With y = theta sigma^2 and a step h, the sum over the points of
// A f_c e^{i omega log(1 + z)} is off from the integral over the slice's range by at most
//   2 e^{g theta^2} int A f_c e^{omega turn} dx/(e^{2 pi y/h} - 1)   on the long sides,
//   2 y A f_c (1 + e^{g theta^2 + omega turn - 2 pi y/h})         at each end, A f_c taken there,
// where g is SliceGrid::growth, and turn is at least the angle of 1 + z on x + i theta sigma^2
// (simd/loss_windows.hpp). The step is chosen such that the first is less than e^-depth of the sum.
// The last exponential is one of the first integral's terms, so that all of these are less than
// e^{4 - depth} of the sum together; docs/core/cumulant.md has the proof. The 1 of the second line
// is charged as SliceGrid::end_error.

// What is known at the nodes of one slice.
struct SliceTable {
    double log_below, error;                              // of the total below the slice, at c
    std::vector<double> log_abs, phase, drift;            // of its phi, `drift` its relative error
    std::vector<double> ratio, ratio_phase, ratio_error;  // log(1 + slice/below)
    std::vector<double> real, imag, size;                 // 1/(s(s+1))
    double c, h;
    std::size_t n;
    bool usable;

    simd::SliceNodes nodes() const {
        return {log_abs.data(),
                phase.data(),
                drift.data(),
                ratio.data(),
                ratio_phase.data(),
                ratio_error.data(),
                real.data(),
                imag.data(),
                size.data(),
                c,
                h,
                real.size()};
    }
};

class SliceTransformer {
  public:
    using Part = SliceGrid::Part;

    SliceTransformer(const SliceGrid& grid, const std::vector<Part>& parts, std::shared_ptr<FourierWorkspace> workspace)
        : grid_(grid), parts_(parts), kernels_(grid.kernels()), workspace_(std::move(workspace)),
          wholes_(parts.size()) {}

    // Of slice p, at the tilt c, for frequencies up to `last`.
    SliceTable table(std::size_t p, double c, double h, double last) const {
        SliceTable t{};
        const double wanted = std::ceil(last / h), power = c + 1.0;
        t.c = c;
        t.h = h;
        t.usable = wanted < max_nodes;
        if (!t.usable) return t;
        t.n = static_cast<std::size_t>(wanted) + 1;
        const double omega = static_cast<double>(t.n - 1) * h;
        Sample &slice = slice_, &below = below_;
        slice.clear(), below.clear();
        grid_.fill_exponents(parts_[p], power, exponents_);
        const double top = exponents_.top;
        add_part(parts_[p], power, omega, top, depth_of_slice, slice);
        const auto add_below = [&](const Part& part) {
            grid_.fill_exponents(part, power, exponents_);
            add_part(part, power, omega, top, depth_below, below);
        };
        std::size_t next = p + 1;
        for (; next < parts_.size() - 1 && next < p + 3; ++next) add_below(parts_[next]);
        add_below(whole(next));
        finish(slice);
        finish(below);
        transform(t, slice, below);
        t.log_below = std::log(below.total) + top + grid_.log_scale(1.0);
        t.error = u * (static_cast<double>(below.losses.size()) + 16.0 + 1.1 * below.weight_error +
                       4.0 * (std::fabs(top) + std::fabs(t.log_below))) +
                  2.0 * below.quadrature_error + below.end_error;
        return t;
    }

    // Slice p and all below it, as one part. It stays where it is.
    const Part& whole(std::size_t p) const {
        auto& part = wholes_[p];
        if (!part) part = std::make_unique<Part>(grid_.part({-infinity, parts_[p].of.high, grid_.width()}));
        return *part;
    }

  private:
    static constexpr double u = unit_roundoff;
    // e^-depth of its largest terms is left out of a transform. The transform of a slice counts
    // once, that of what is below T times.
    static constexpr double depth_of_slice = 32.0, depth_below = 38.0;
    static constexpr double max_points = 3e4, max_nodes = 20000.0;

    // Points with their losses and weights; the mean of |loss|, and the means of rounding errors in
    // units of u.
    struct Sample {
        std::vector<double> losses, weights;
        double total = 0.0, loss = 0.0, loss_error = 0.0, weight_error = 0.0, product_error = 0.0;
        double end_error = 0.0, quadrature_error = 0.0;

        void clear() {
            losses.clear(), weights.clear();
            total = loss = loss_error = weight_error = product_error = end_error = quadrature_error = 0.0;
        }
    };

    // A step that some shift of x certifies for `count` points of a part, from `start` on, at
    // frequencies up to omega.
    double certified_step(const Part& part, const SliceGrid::Exponents& e, std::size_t start, std::size_t count,
                          double omega, double depth) const {
        double* terms = grid_.scratch(count);
        const double* own = e.exponents.data() + start;
        kernels_.exponentiate(own, 0.0, terms, count);
        const double total = kernels_.sum(terms, count), variance = grid_.sigma() * grid_.sigma();
        double best = 0.0;
        for (double theta = 1.4; theta > 1e-3; theta *= 0.5) {
            const double* mix = grid_.mix_right_of(part.start + start);
            const double ratio = kernels_.sum_grown_below(own, mix, count, theta, omega) / total;
            grid_.add_work(static_cast<double>(count));
            if (!(ratio < 1e250)) continue;
            const double needed = depth + 1.5 + grid_.growth() * theta * theta + std::log(max(ratio, 1.0));
            const double step = 2.0 * pi * theta * variance / needed;
            if (step < best) break;
            best = step;
        }
        return min(best, grid_.step());
    }

    // The points of a part without both its ends where A f_c is below e^-depth of its largest.
    struct Range {
        std::size_t first, end;
        double left_out;      // how many others there are
        double log_left_out;  // and their largest exponent
    };
    static Range without_ends(const SliceGrid::Exponents& e, double depth) {
        Range range{0, e.exponents.size(), 0.0, -infinity};
        std::size_t &first = range.first, &end = range.end;
        while (end - first > simd::lanes && e.exponents[first + simd::lanes - 1] < -depth) first += simd::lanes;
        while (end - first > simd::lanes && e.exponents[end - simd::lanes] < -depth) end -= simd::lanes;
        double& largest = range.log_left_out;
        for (std::size_t j = 0; j < first; ++j) largest = max(largest, e.exponents[j]);
        for (std::size_t j = end; j < e.exponents.size(); ++j) largest = max(largest, e.exponents[j]);
        range.left_out = static_cast<double>(e.exponents.size() - (end - first));
        return range;
    }

    // Adds a part's points, whose exponents are at hand, in units of e^top: on the base grid, where that
    // is fine enough, or on a lattice of its own.
    void add_part(const Part& part, double power, double omega, double top, double depth, Sample& to) const {
        const SliceGrid::Exponents& e = exponents_;
        const Range range = without_ends(e, depth);
        const double base = grid_.step();
        to.end_error +=
            SliceGrid::integral_per_sum * base * range.left_out * std::exp(range.log_left_out + e.top - top);
        const double step = certified_step(part, e, range.first, range.end - range.first, omega, depth);
        const double wanted = static_cast<double>(range.end - range.first) * base / step;
        to.quadrature_error = max(to.quadrature_error, wanted < max_points ? std::exp(4.0 - depth) : infinity);
        if (step == base) add_base_points(part, e, range, power, top, to);
        else add_fine_points(part, range, power, top, static_cast<std::size_t>(std::ceil(min(wanted, max_points))), to);
    }

    void add_base_points(const Part& part, const SliceGrid::Exponents& e, const Range& range, double power, double top,
                         Sample& to) const {
        const std::size_t n = range.end - range.first;
        double *sizes = grid_.scratch(2 * n), *errors = sizes + n, *weights = room_for(n, to);
        std::copy_n(part.window_error.begin() + static_cast<std::ptrdiff_t>(range.first), n, errors);
        kernels_.exponentiate(e.exponents.data() + range.first, top - e.top, weights, n);
        for (std::size_t j = 0; j < n; ++j) weights[j] *= grid_.step();
        add_points({grid_.points(part.start + range.first), power, grid_.step(), part.start + range.end, n}, errors,
                   sizes, to);
    }

    // At least `points` of them, so that their step is no larger than the one that asked for so
    // many.
    void add_fine_points(const Part& part, const Range& range, double power, double top, std::size_t points,
                         Sample& to) const {
        const std::size_t n = padded_to_lanes(points);
        const double low = part.low + static_cast<double>(range.first) * grid_.step();
        const double high = part.low + static_cast<double>(range.end) * grid_.step();
        const double step = (high - low) / static_cast<double>(n);
        LossLattice fine(grid_.sigma(), grid_.rate(), low, step, kernels_);
        const double number = std::round(fine.number(low));
        const simd::Points at = fine.points(number, n);
        double *sizes = grid_.scratch(2 * n), *errors = sizes + n, *weights = room_for(n, to);
        kernels_.fill_tilted_exponents(at, power, sizes, n);
        kernels_.exponentiate(sizes, top, weights, n);
        grid_.fill_window(fine, number, n, part.of, sizes, errors);
        for (std::size_t j = 0; j < n; ++j) weights[j] *= sizes[j] * step;
        add_points({at, power, step, part.start + range.end, n}, errors, sizes, to);
    }

    // Points `step` apart, whose range ends at point `end` of the base grid.
    struct Terms {
        simd::Points at;
        double power, step;
        std::size_t end, n;
    };

    // For the weights of n more points.
    static double* room_for(std::size_t n, Sample& to) {
        to.weights.resize(to.weights.size() + n);
        return to.weights.data() + (to.weights.size() - n);
    }

    // Appends points whose weights are the sample's last, and adds up what weights and losses err by; `errors` come
    // as those of the windows, `sizes` are room for as many.
    void add_points(const Terms& t, double* errors, double* sizes, Sample& to) const {
        const std::size_t n = t.n;
        const double* weights = to.weights.data() + (to.weights.size() - n);
        for (std::size_t j = 0; j < n; ++j) errors[j] += SliceGrid::weight_error(t.at, j, t.power);
        for (std::size_t j = 0; j < n; ++j) sizes[j] = weights[j] * std::fabs(t.at.loss[j]);
        grid_.add_work(static_cast<double>(n));
        to.losses.insert(to.losses.end(), t.at.loss, t.at.loss + n);
        to.total += kernels_.sum(weights, n);
        to.loss += kernels_.sum(sizes, n);
        to.loss_error += kernels_.dot(weights, t.at.loss_error, n);
        to.weight_error += kernels_.dot(weights, errors, n);
        to.product_error += kernels_.dot(sizes, errors, n);
        to.end_error += 14.0 * grid_.end_error(weights[0], weights[n - 1], t.power, t.step, t.end);
    }

    // From sums to means.
    static void finish(Sample& s) {
        s.losses.resize(padded_to_lanes(s.losses.size()), 0.0);
        s.weights.resize(s.losses.size(), 0.0);
        for (double* sum : {&s.loss, &s.loss_error, &s.weight_error, &s.product_error, &s.end_error}) *sum /= s.total;
    }

    FourierSums differences(const Sample& s, const SliceTable& t) const {
        double work = 0.0;
        FourierSums f =
            characteristic_differences(s.losses, s.weights, s.loss, t.h, t.n - 1, *workspace_, kernels_, work);
        grid_.add_work(work);
        const double share = 1.0 / s.total;
        for (double& x : f.real) x *= share;
        for (double& x : f.imag) x *= share;
        return f;
    }

    // Adds relative errors of a transform less 1 or, for a `whole` one, of the transform itself.
    void add_errors(const Sample& s, double h, bool whole, FourierSums& phi) const {
        const double summing = 32.0 + power_error + static_cast<double>(s.losses.size());
        for (std::size_t k = 0; k < phi.real.size(); ++k) {
            const double omega = static_cast<double>(static_cast<int>(k)) * h;
            const double size = whole ? 2.0 : min(2.0, omega * s.loss);
            const double by_weights =
                whole ? 2.42 * s.weight_error : transform_error(s.weight_error, s.product_error, s.loss, omega);
            phi.error[k] +=
                u * (summing * size + omega * s.loss_error + by_weights) + 2.0 * s.quadrature_error + s.end_error;
        }
    }

    void transform(SliceTable& t, const Sample& slice, const Sample& below) const {
        FourierSums low = differences(below, t), own = differences(slice, t);
        t.usable = low.real.size() == t.n && own.real.size() == t.n;
        if (!t.usable) return;
        add_errors(below, t.h, false, low);
        add_errors(slice, t.h, true, own);
        const double share = slice.total / below.total;
        for (double& x : own.real) x = share * (1.0 + x);
        for (auto* array : {&own.imag, &own.error})
            for (double& x : *array) x *= share;
        const std::size_t padded = padded_to_lanes(t.n);
        for (auto* array :
             {&t.log_abs, &t.phase, &t.drift, &t.ratio, &t.ratio_phase, &t.ratio_error, &t.real, &t.imag, &t.size})
            array->assign(padded, 0.0);
        kernels_.multiply_powers(low.step(1.0), {t.log_abs.data(), t.phase.data(), t.drift.data()});
        kernels_.fill_log_ratios({own.real.data(), own.imag.data(), own.error.data(), low.real.data(), low.imag.data(),
                                  low.error.data(), t.n},
                                 {t.ratio.data(), t.ratio_phase.data(), t.ratio_error.data()});
        std::vector<double> unused(3 * padded);
        kernels_.smoothing_factors({t.c, t.h, 0.0, t.n},
                                   {unused.data(), unused.data() + padded, unused.data() + 2 * padded},
                                   {t.real.data(), t.imag.data(), t.size.data()});
    }

    const SliceGrid& grid_;
    const std::vector<Part>& parts_;
    const simd::Kernels& kernels_;
    std::shared_ptr<FourierWorkspace> workspace_;
    mutable std::vector<std::unique_ptr<Part>> wholes_;
    mutable Sample slice_, below_;  // memory that is used again, as the next
    mutable SliceGrid::Exponents exponents_;
};

// Not for several threads at once.
class LossSlices {
  public:
    using Moments = SliceMoments;
    using Table = SliceTable;

    // Elsewhere slices are no help: either losses have one scale, or there would be too many
    // slices.
    static bool covers(double sigma, double rate, const SliceShape& shape) {
        return sigma >= 0.25 && sigma <= shape.max_sigma && rate >= 1e-9 && rate <= 0.5;
    }

    LossSlices(double sigma, double rate, const SliceShape& shape, const simd::Kernels& kernels,
               std::shared_ptr<FourierWorkspace> workspace)
        : rate_(rate), kernels_(kernels), grid_(sigma, rate, shape, kernels), parts_(make_parts(grid_)),
          transformer_(grid_, parts_, std::move(workspace)),
          moments_(static_cast<std::size_t>(static_cast<double>(shape.tilts_per_octave) * std::log2(256.0 / rate)) +
                   static_cast<std::size_t>(1 - first_tilt())) {}

    int size() const {
        return static_cast<int>(parts_.size()) - 1;
    }  // the last part, all below the last cut, is no slice
    double least_loss() const { return std::log1p(-rate_); }
    // Twice as many slices as there are lose labels and outcomes on the left, of which each costs
    // no more than its share of delta; and outcomes on the right, which cost their mass.
    double missing_share() const { return 8.0 * (2.0 + static_cast<double>(parts_.size())) * q(SliceGrid::reach); }
    double log_missing() const {
        const double right = grid_.shape().right_reach, beyond = log_q(right);
        const double unsampled = std::exp(log_q(right + 1.0 / grid_.sigma()) - beyond);
        return beyond + std::log(8.0 * (2.0 + static_cast<double>(parts_.size())) * (rate_ + unsampled));
    }

    // Tilts 2^{k/tilts_per_octave} from 2^-4 up to what the smallest losses bear, frequencies
    // 2^{i/4}, spacings 2^{-j/4}.
    const SliceShape& shape() const { return grid_.shape(); }
    int first_tilt() const { return -4 * grid_.shape().tilts_per_octave; }
    int last_tilt() const { return first_tilt() + static_cast<int>(moments_.size()) - 1; }
    // How far other tilts are tried, for bounds of aliases.
    int max_tilts_away() const { return 8 * grid_.shape().tilts_per_octave; }
    double tilt(int k) const { return std::exp2(static_cast<double>(k) / grid_.shape().tilts_per_octave); }
    static double frequency(int i) { return std::exp2(0.25 * i); }
    static double spacing(int j) { return std::exp2(-0.25 * j); }

    // The moments at a tilt, of slice p and of those below.
    const Moments& at(int k, int p) const {
        Moments& m = moments_[static_cast<std::size_t>(k - first_tilt())];
        if (m.slice.empty()) m = slice_moments(grid_, parts_.size(), tilt(k));
        return known_from(static_cast<std::size_t>(p), m);
    }
    // The moments that are the masses under P, c = 0, or under Q, c = -1.
    const Moments& mass(bool under_p) const {
        Moments& m = masses_[under_p ? 0 : 1];
        if (m.slice.empty()) m = slice_moments(grid_, parts_.size(), under_p ? 0.0 : -1.0);
        return known_from(0, m);
    }

    // A bound of log |M_p(c + i omega)| for all omega from frequency(i) up.
    double log_decay(int p, int k, int i) const {
        const auto key = std::make_tuple(p, k, i);
        const auto found = decays_.find(key);
        if (found != decays_.end()) return found->second;
        const SliceGrid::Part& part = parts_[static_cast<std::size_t>(p)];
        const double power = tilt(k) + 1.0;
        if (p != tilted_slice_ || k != tilted_by_) {
            grid_.fill_exponents(part, power, tilted_);
            tilted_slice_ = p;
            tilted_by_ = k;
        }
        const double theta = min(0.6, 2.4 / grid_.sigma());
        const std::size_t n = part.window.size();
        const std::vector<double>& exponents = tilted_.exponents;
        grid_.add_work(static_cast<double>(n));
        const double sum = kernels_.sum_damped_above(exponents.data(), grid_.mix_left_of(part.start), n,
                                                     frequency(i) * std::sin(theta));
        const double ends =
            grid_.end_error(std::exp(exponents[0]), std::exp(exponents[n - 1]), power, grid_.step(), part.start + n);
        const double log_bound = std::log(SliceGrid::integral_per_sum * sum + ends) + grid_.growth() * theta * theta +
                                 tilted_.top + grid_.log_scale(grid_.step()) + 1e-9;
        return decays_.emplace(key, log_bound).first->second;
    }

    // A bound of log |M(c + i omega)/M(c)| for all omega from frequency(i) up, M the transform of
    // slice p and all below it, or of all below it alone.
    double log_damping(int p, int k, int i) const {
        const auto key = std::make_tuple(p, k, i);
        const auto found = dampings_.find(key);
        if (found != dampings_.end()) return found->second;
        if (p != damped_slice_ || k != damped_by_) {
            damping_ = std::make_unique<SliceDamping>(grid_, transformer_.whole(static_cast<std::size_t>(p)), tilt(k));
            damped_slice_ = p;
            damped_by_ = k;
        }
        return dampings_.emplace(key, damping_->log_bound(frequency(i))).first->second;
    }

    // What is known at the nodes c + i n h, h = spacing(j), of slice p, up to frequency(i).
    const Table& table(int p, int k, int j, int i) const {
        const auto key = std::make_tuple(p, k, j, i);
        const auto found = tables_.find(key);
        if (found != tables_.end()) return *found->second;
        if (nodes_kept_ > max_nodes_kept) {
            tables_.clear();
            nodes_kept_ = 0.0;
            ++generation_;
        }
        auto made =
            std::make_unique<Table>(transformer_.table(static_cast<std::size_t>(p), tilt(k), spacing(j), frequency(i)));
        nodes_kept_ += static_cast<double>(made->real.size());
        return *tables_.emplace(key, std::move(made)).first->second;
    }

    // Tables are valid while this stays the same.
    std::size_t generation() const { return generation_; }

    double work() const { return grid_.work(); }  // points visited so far, times nodes
    std::size_t bytes() const {
        return static_cast<std::size_t>(80.0 * nodes_kept_) + (decays_.size() + dampings_.size()) * 80 + 300000;
    }

  private:
    static constexpr double max_nodes_kept = 150000.0;

    const Moments& known_from(std::size_t first, Moments& m) const {
        if (first < m.known) add_moments(grid_, parts_, first, m);
        return m;
    }

    // Cuts from the highest one or a little less down to -6 sigma, and what lies between them.
    // Above `half`, where the loss is log 2, losses are nearly linear in x: few cuts do there.
    static std::vector<SliceGrid::Part> make_parts(const SliceGrid& grid) {
        const double sigma = grid.sigma(), half = 0.5 - sigma * sigma * std::log(grid.rate());
        const double apart = 1.4 * sigma * sigma;
        const double highest = half + apart * min(std::floor((grid.shape().highest_cut * sigma - half) / apart),
                                                  grid.shape().slices_above);
        std::vector<SliceGrid::Part> parts;
        double above = infinity;
        for (double cut = highest; cut > -6.0 * sigma; cut -= apart) {
            parts.push_back(grid.part({cut, above, grid.width()}));
            above = cut;
        }
        parts.push_back(grid.part({-infinity, above, grid.width()}));
        return parts;
    }

    double rate_;
    const simd::Kernels& kernels_;
    SliceGrid grid_;
    std::vector<SliceGrid::Part> parts_;
    SliceTransformer transformer_;
    mutable std::vector<Moments> moments_;
    mutable Moments masses_[2];
    mutable SliceGrid::Exponents tilted_;
    mutable int tilted_slice_ = -1, tilted_by_ = 0;  // the slice and the tilt that tilted_ is of
    mutable std::unique_ptr<SliceDamping> damping_;
    mutable int damped_slice_ = -1, damped_by_ = 0;  // the slice and the tilt that damping_ is of
    mutable std::map<std::tuple<int, int, int>, double> decays_, dampings_;
    mutable std::map<std::tuple<int, int, int, int>, std::unique_ptr<Table>> tables_;
    mutable std::size_t generation_ = 1;
    mutable double nodes_kept_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
