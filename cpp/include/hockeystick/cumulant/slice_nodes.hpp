// The transforms of one slice of cumulant/loss_slices.hpp, and of all slices below it, at the nodes
// c + i k h of a contour.
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
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>
#include <hockeystick/cumulant/slice_grid.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

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
        Sample slice, below;
        const double top = grid_.exponents(parts_[p], power).top;
        add_part(parts_[p], power, omega, top, depth_of_slice, slice);
        std::size_t next = p + 1;
        for (; next < parts_.size() - 1 && next < p + 3; ++next)
            add_part(parts_[next], power, omega, top, depth_below, below);
        add_part(whole(next), power, omega, top, depth_below, below);
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
    };

    // A step that some shift of x certifies for `count` points of a part, from `start` on, at
    // frequencies up to omega.
    double certified_step(const Part& part, const SliceGrid::Exponents& e, std::size_t start, std::size_t count,
                          double omega, double depth) const {
        std::vector<double> terms(count);
        const double* own = e.exponents.data() + start;
        kernels_.exponentiate(own, 0.0, terms.data(), count);
        const double total = kernels_.sum(terms.data(), count), variance = grid_.sigma() * grid_.sigma();
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

    // Adds a part's points, in units of e^top: on the base grid, where that is fine enough, or on a
    // lattice of its own.
    void add_part(const Part& part, double power, double omega, double top, double depth, Sample& to) const {
        const SliceGrid::Exponents e = grid_.exponents(part, power);
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
        std::vector<double> weights(n), errors(n);
        std::copy_n(part.window_error.begin() + static_cast<std::ptrdiff_t>(range.first), n, errors.begin());
        kernels_.exponentiate(e.exponents.data() + range.first, top - e.top, weights.data(), n);
        for (double& weight : weights) weight *= grid_.step();
        const Terms terms{grid_.points(part.start + range.first), power, grid_.step(), part.start + range.end};
        add_points(terms, weights, errors, to);
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
        std::vector<double> exponents(n), weights(n), windows(n), errors(n);
        kernels_.fill_tilted_exponents(at, power, exponents.data(), n);
        kernels_.exponentiate(exponents.data(), top, weights.data(), n);
        kernels_.fill_window({grid_.sigma(), grid_.rate(), fine.boundary(0.0), step, number, n}, part.of,
                             windows.data(), errors.data());
        for (std::size_t j = 0; j < n; ++j) weights[j] *= windows[j] * step;
        add_points({at, power, step, part.start + range.end}, weights, errors, to);
    }

    // Points `step` apart, whose range ends at point `end` of the base grid.
    struct Terms {
        simd::Points at;
        double power, step;
        std::size_t end;
    };

    // Appends points with their weights, and adds up what weights and losses err by; `errors` come
    // as those of the windows.
    void add_points(const Terms& t, const std::vector<double>& weights, std::vector<double>& errors, Sample& to) const {
        const std::size_t n = weights.size();
        std::vector<double> sizes(n);
        for (std::size_t j = 0; j < n; ++j) errors[j] += SliceGrid::weight_error(t.at, j, t.power);
        for (std::size_t j = 0; j < n; ++j) sizes[j] = weights[j] * std::fabs(t.at.loss[j]);
        grid_.add_work(static_cast<double>(n));
        to.losses.insert(to.losses.end(), t.at.loss, t.at.loss + n);
        to.weights.insert(to.weights.end(), weights.begin(), weights.end());
        to.total += kernels_.sum(weights.data(), n);
        to.loss += kernels_.sum(sizes.data(), n);
        to.loss_error += kernels_.dot(weights.data(), t.at.loss_error, n);
        to.weight_error += kernels_.dot(weights.data(), errors.data(), n);
        to.product_error += kernels_.dot(sizes.data(), errors.data(), n);
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
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
