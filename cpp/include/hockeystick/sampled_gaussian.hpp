// The Poisson-sampled Gaussian's cumulant, certified: quadrature in x, decay of its characteristic function.
//
// Q = N(0, sigma^2), 1 + z = dP/dQ = 1 - q + q e^{(2x-1)/2 sigma^2}; remove is (P, Q), add is (Q, P). In both
// M(s) = E_Q[(1 + z)^p], p = s + 1 for remove and p = -s for add; a = p at s = c; f(x) = (1 + z)^a e^{-x^2/2 sigma^2} is the
// tilted density; w = q e^t/(1 - q + q e^t), t = (2x-1)/2 sigma^2, so that d log(1 + z)/dx = w/sigma^2.
//
// Cut. For remove, losses at x > x_c = 1 + cut sigma are left out: E e^{cL} may be ruled by losses that never happen (at
// sigma = 10, q = 1e-4, the mean of e^{2000 L} is made at 200 sigma). Their P-mass is (1-q) Q(x_c/sigma) + q Q(cut).
//
// Quadrature. Trapezoid on points x_j half a step inside both ends of the range. The integrand is analytic for |Im x| < pi
// sigma^2; the contour integral of f/(e^{-+2 pi i x/h} + 1) around the rectangle |Im x| <= y gives
//   error <= 2 N(y)/(e^{2 pi y/h} - 1) + 2 sum_ends int_0^y |f(end + it)| e^{-2 pi t/h} dt,   N(y) = int |f(x + iy)| dx over the range,
// and the second term is at most 2 f(end) 4h/(2 pi) an end if (3/4) 2 pi/h is at least the mean slope
// of log |f(end + it)|, 0 <= t <= y, which is convex: omega w(end)/sigma^2 + y/2 sigma^2, and end_growth/y for a < 0. N is
// bounded cell by cell (contour_kernels.hpp, shift_bound). h is the largest step for which the first term is below e^-62 M.
//
// Range. For a >= 0, log f is steeper than that of N(max(a,1), sigma^2) right of it and of N(0, sigma^2) left of 0; for
// a < 0, f is log-concave, more curved than N(., sigma^2), with its mode at x = a w(x). R = sqrt(2 62) sigma beyond
// that, f is below e^-62 of its maximum: the range ends there, or at the cut.
//
// Decay. phi(omega) = int f e^{i omega log(1+z)} dx/int f. On the path x + i eta(x), theta = eta/sigma^2 in [0, 1.4],
//   |f| grows at most by e^{eta^2/2 sigma^2} and, for a < 0, e^{|a| w(1-w) theta^2/(2 (1 - w(1-w) theta^2))},
//   the path is longer by sqrt(1 + eta'^2) <= e^{eta'^2/2}, and
//   e^{i omega log(1+z)} falls by e^{-omega psi}, psi = arg(1 + z) >= w sin theta >= w theta (1 - theta^2/6).
// theta = 1.4 v/(1 + v), v = omega w/(1.4 sigma^2 (1 + 1/sigma^2 + 2 max(-a,0) w/sigma^2)), is near the best choice where
// omega is small. It makes the factor at most 1 at every x, inside the range or not: the three losses are at most
// omega w theta/2 together, the gain is at least 2/3 of omega w theta. It is increasing in w, so every factor has its
// worst case at one end of a cell. A path chosen for omega
// serves all larger frequencies, as psi >= 0: the bound falls with omega. With cell masses between `low` and `high`,
//   |phi| <= min(1 - sum low (1 - factor), sum high factor) + f(x_c) 1.4 sigma^2/int f + e^-50,
// the last two for the way down from the path's end (the exponent is convex in the height, so at most max(1, factor) of f),
// and for the tails.
//
// Rounding. A loss errs by (12 + 3|t|/max(1, |loss|)) u relatively (its derivative by t is w <= 1, and w <= 2 |loss|/min(1, |t|)
// where it is small), a weight by |a loss| times that and 2x^2/sigma^2 + 12. Where M is near 1,
// log M comes from E[(1 + z)^a - 1 - a z], which keeps log M accurate to u times its own size: it is multiplied by T.
#pragma once

#include <limits>

#include <hockeystick/contour_kernels.hpp>
#include <hockeystick/cumulant.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {

class SampledGaussianCumulant final : public Cumulant {
  public:
    // Elsewhere the grids would be too large, or numbers leave the doubles.
    static bool covers(double sigma, double rate) {
        return sigma >= 0.02 && sigma <= 1e9 && rate >= 1e-30 && rate <= 1.0 - 0x1p-50;
    }

    // 0 < rate < 1; `cut` in units of sigma, used by remove only.
    SampledGaussianCumulant(double sigma, double rate, bool remove, double cut, const contour::Kernels& kernels)
        : sigma_(sigma), rate_(rate), remove_(remove), kernels_(kernels),
          end_(remove ? 1.0 + cut * sigma : detail::infinity),
          log_missing_(remove ? log_missing_beyond(end_ / sigma, cut, rate) : -detail::infinity) {}

    Moment log_moment(double c) const override {
        const double a = exponent(c);
        const Range range = make_range(a);
        const Grid grid = a < 0.0 ? certified_grid(range, 0.0, 0.9) : make_grid(range, range.step);
        return grid.losses.empty() ? Moment{detail::infinity, detail::infinity} : moment(grid);
    }

    double log_decay(double c, double omega) const override {
        const Fine& fine = fine_grid(c);
        const std::size_t n = fine.low.size();
        std::vector<double> gains(n), masses(n);
        work_ += static_cast<double>(n);
        kernels_.path_bound({fine.mix.data(), fine.low.data(), fine.high.data(), sigma_, exponent(c), n}, omega,
                            gains.data(), masses.data());
        const double edge = fine.edge + 2e-22;
        const double gain = kernels_.sum(gains.data(), n) * (1.0 - 1e-12) - edge;
        const double mass = kernels_.sum(masses.data(), n) * (1.0 + 1e-12) + edge;
        const double by_gain = gain > 0.0 ? std::log1p(-detail::min(gain, 1.0)) : 0.0;
        return detail::min(by_gain, detail::min(std::log(mass), 0.0));
    }

    bool add_nodes(double c, double h, double reach, double count, NodeTable& nodes) const override {
        const std::size_t n = nodes.log_abs.size() - 1;
        Grid grid = certified_grid(make_range(exponent(c)), reach, 0.95);
        if (grid.losses.empty()) return false;
        const Digits lost = digits(grid);
        keep_heavy(grid);
        const std::size_t points = grid.losses.size();
        if (static_cast<double>(points) * static_cast<double>(n) > most_work) return false;
        std::vector<double> real(n), imag(n), scratch(contour::oscillate_scratch);
        work_ += static_cast<double>(points) * static_cast<double>(n);
        kernels_.oscillate(grid.losses.data(), grid.weights.data(), points, h, n, real.data(), imag.data(),
                           scratch.data());
        const double sign = remove_ ? 1.0 : -1.0;
        for (std::size_t k = 1; k <= n; ++k) {
            const double re = real[k - 1] / grid.total, im = sign * imag[k - 1] / grid.total;
            const double omega = static_cast<double>(k) * h;
            const double summing = static_cast<double>(points) / 8.0 + 6.0 * static_cast<double>(k) + 32.0;
            const double absolute = u * (summing * detail::min(2.0, omega * lost.loss) + omega * lost.of_loss +
                                         2.2 * detail::min(2.0 * lost.of_weight, omega * lost.of_product)) +
                                    grid.quadrature;
            // log |1 + v|: near 1 from |1 + v|^2 - 1, which would cancel where phi is small
            const double above_one = 2.0 * re + (re * re + im * im);
            const double log_size = re > -0.3 ? 0.5 * std::log1p(above_one) : std::log(std::hypot(1.0 + re, im));
            const double size = std::exp(log_size);
            const bool lost_all = !(size > absolute);
            nodes.log_abs[k] += count * (lost_all ? std::log(absolute) : detail::min(log_size, 0.0));
            nodes.phase[k] += lost_all ? 0.0 : count * std::atan2(im, 1.0 + re);
            nodes.error[k] += count * (lost_all ? 2.0 : absolute / size);
        }
        return true;
    }

    double log_missing() const override { return log_missing_; }
    double log_variance() const override {  // log log1p(q^2 (e^{1/sigma^2} - 1)), the loss's chi-square
        const double inverse = 1.0 / (sigma_ * sigma_);
        const double chi = inverse < 600.0 ? std::log(std::expm1(inverse)) : inverse;
        const double power = chi + 2.0 * std::log(rate_);
        return power < 30.0 ? std::log(std::log1p(std::exp(power))) : std::log(power);
    }
    double work() const override { return work_; }
    double highest() const override { return remove_ ? detail::infinity : -std::log1p(-rate_); }

  private:
    static constexpr double pi = detail::pi, u = detail::unit_roundoff;
    static constexpr double depth = 62.0;         // e^-62: what is left out of M, relatively
    static constexpr double depth_reach = 11.16;  // > sqrt(2 depth)
    static constexpr double most_work = 4e6;      // points times nodes
    static constexpr double most_points = 3e4;

    struct Range {
        double exponent, low, high, width, step;
    };

    struct Grid {
        contour::Points points;
        std::vector<double> losses, exponents, weights;
        double high, width;       // right end, width of the mode
        double top, total;        // log M = top + log(total step/(sigma sqrt(2 pi)))
        double quadrature = 0.0;  // relative to M
    };

    struct Fine {
        std::vector<double> mix, low, high;
        double edge;
    };

    struct Digits {  // tilted means of |loss| and of the rounding errors of contour_kernels.hpp
        double loss, of_loss, of_weight, of_product;
    };

    // log((1 - rate) Q(x) + rate Q(cut)), x > cut, also where that is below the doubles
    static double log_missing_beyond(double x, double cut, double rate) {
        const double of_cut = log_q(cut);
        return of_cut + std::log((1.0 - rate) * std::exp(log_q(x) - of_cut) + rate);
    }

    double exponent(double c) const { return remove_ ? c + 1.0 : -c; }

    // Where f has its mode for a < 0: x = a w(x), by bisection on a decreasing function.
    double mode(double a) const {
        double low = a, high = 0.0;
        for (int k = 0; k < 200 && high - low > 1e-3 * sigma_; ++k) {
            const double x = 0.5 * (low + high);
            (x < a * mixture(x) ? low : high) = x;
        }
        return 0.5 * (low + high);
    }

    double mixture(double x) const {
        const double t = (x - 0.5) / (sigma_ * sigma_);
        return 1.0 / (1.0 + (1.0 - rate_) / rate_ * std::exp(detail::min(-t, 700.0)));
    }

    // Where f is not negligible, how wide its mode is, and a step that serves omega = 0: certainly for a >= 0, to be
    // verified for a < 0.
    Range make_range(double a) const {
        const double reach = depth_reach * sigma_, variance = sigma_ * sigma_;
        if (a < 0.0) {
            const double at = mode(a), width = sigma_ / std::sqrt(1.0 + std::fabs(at) / variance);
            return {a, at - reach, detail::min(at + reach, end_), width, 0.5 * width};
        }
        const double y = detail::min(reach, 3.0 * variance);
        const double by_lines = 2.0 * pi * y / (depth + 1.0 + y * y / (2.0 * variance));
        return {a, -reach, detail::min(detail::max(a, 1.0) + reach, end_), sigma_, detail::min(0.5 * sigma_, by_lines)};
    }

    Grid make_grid(const Range& range, double step) const {
        const double a = range.exponent, high = range.high;
        Grid grid;
        const double wanted = (high - range.low) / step;
        if (!(wanted < most_points)) return grid;
        const std::size_t n = (static_cast<std::size_t>(wanted) / contour::lanes + 1) * contour::lanes;
        grid.points = {sigma_, rate_, a, high - (static_cast<double>(n) - 0.5) * step, step, n};
        grid.losses.resize(n);
        grid.exponents.resize(n);
        grid.weights.resize(n);
        work_ += static_cast<double>(n);
        kernels_.tilt(grid.points, grid.losses.data(), grid.exponents.data());
        grid.top = kernels_.largest(grid.exponents.data(), n);
        kernels_.weigh(grid.exponents.data(), grid.top, grid.weights.data(), n);
        grid.total = kernels_.sum(grid.weights.data(), n);
        const double edge = std::exp(log_density(a, high) - grid.top) / grid.total;  // f(x_c) h/M
        grid.width = range.width;
        grid.quadrature = 2.0 * edge * 4.0 / (2.0 * pi) + 1e-24;
        return grid;
    }

    double log_density(double a, double x) const {
        const double t = (x - 0.5) / (sigma_ * sigma_);
        const double loss = t < 0.0     ? std::log((1.0 - rate_) + rate_ * std::exp(t))
                            : t < 600.0 ? std::log1p(rate_ * std::expm1(t))
                                        : t + std::log(rate_);
        return a * loss - 0.5 * (x / sigma_) * (x / sigma_);
    }

    // A step that some shift of x certifies for frequencies up to omega: the grid's own or more, or else the largest found.
    double certified_step(const Grid& grid, double omega) const {
        const double variance = sigma_ * sigma_;
        const double widest = detail::min(0.95 * pi * variance, depth_reach * grid.width);
        const std::size_t n = grid.losses.size();
        std::vector<double> mix(n), terms(n);
        kernels_.mix(grid.points, grid.points.step, mix.data());
        double best = 0.0;
        for (const double part : {1.0, 0.6, 0.35, 0.2, 0.1, 0.04}) {
            const double y = part * widest, angle = y / variance;
            const contour::Shift shift{angle, std::sin(angle),      1.0 - std::cos(angle),
                                       omega, grid.points.exponent, grid.top};
            work_ += static_cast<double>(n);
            kernels_.shift_bound(grid.exponents.data(), mix.data(), n, shift, terms.data());
            const double norm = kernels_.sum(terms.data(), n) / grid.total;
            if (!(norm < 1e250)) continue;
            const double by_lines = 2.0 * pi * y / (0.5 * angle * y + std::log(norm) + 2.0 + depth);
            const double slope = omega * mix[n - 1] / variance + 0.5 * angle + end_growth(mix[n - 1], shift) / y;
            best = detail::max(best, detail::min(by_lines, 0.75 * 2.0 * pi / slope));
            if (best >= grid.points.step) break;
        }
        return best;
    }

    // What the way up at an end multiplies f by for a < 0, in the exponent; by 1 - cos <= angle^2/2, so convex in the height.
    static double end_growth(double mix, const contour::Shift& shift) {
        if (shift.exponent >= 0.0) return 0.0;
        const double spread = 0.5 * shift.angle * shift.angle * (mix < 0.5 ? mix * (1.0 - mix) : 0.25);
        return 2.0 * spread < 0.9 ? -shift.exponent * spread / (1.0 - 2.0 * spread) : detail::infinity;
    }

    // A grid that serves frequencies up to omega, made with `share` of what was found to be certified; empty if too large.
    Grid certified_grid(const Range& range, double omega, double share) const {
        Grid grid = make_grid(range, range.step);
        while (!grid.losses.empty()) {
            const double step = certified_step(grid, omega);
            if (step >= grid.points.step) break;
            grid = make_grid(range, share * step);
        }
        return grid;
    }

    Moment moment(const Grid& grid) const {
        const std::size_t n = grid.losses.size();
        const double scale = std::log(grid.points.step / (sigma_ * std::sqrt(2.0 * pi)));
        const Digits lost = digits(grid);
        const double summing = static_cast<double>(n) / 8.0 + 16.0 + 2.0 * (std::fabs(grid.top) + std::fabs(scale));
        const Moment direct{grid.top + std::log(grid.total) + scale,
                            u * (lost.of_weight + summing) + 2.0 * grid.quadrature};
        if (std::fabs(direct.value) > 0.1) return direct;
        const Moment centred = centred_moment(grid, std::exp(scale));
        return centred.error < direct.error ? centred : direct;
    }

    Moment centred_moment(const Grid& grid, double scale) const {
        const std::size_t n = grid.losses.size();
        const double a = grid.points.exponent;
        if (!(std::fabs(a) * detail::max(grid.losses[n - 1], -grid.losses[0]) < 600.0)) return {0.0, detail::infinity};
        std::vector<double> terms(n), errors(n);
        kernels_.centre(grid.points, grid.losses.data(), terms.data(), errors.data());
        const double value = scale * kernels_.sum(terms.data(), n);
        const double high = grid.points.first + (static_cast<double>(n) - 0.5) * grid.points.step;
        const double tails =
            std::fabs(a) * rate_ * q((high - 1.0) / sigma_) + q(high / sigma_);  // E z, E 1 beyond the end
        const double rounding = u * (1.0 + static_cast<double>(n) / 8.0) * scale * kernels_.sum(errors.data(), n);
        const double error = rounding + tails + (1.0 + std::fabs(a)) * 1e-24 + 2.0 * grid.quadrature;
        return {std::log1p(value), 1.2 * error + 2.0 * u * std::fabs(value)};
    }

    Digits digits(const Grid& grid) const {
        const std::size_t n = grid.losses.size();
        std::vector<double> of_weights(n), of_losses(n), sizes(n);
        kernels_.digits_lost(grid.points, grid.losses.data(), of_weights.data(), of_losses.data());
        for (std::size_t j = 0; j < n; ++j) sizes[j] = std::fabs(grid.losses[j]) * grid.weights[j];
        return {kernels_.sum(sizes.data(), n) / grid.total,
                kernels_.dot(sizes.data(), of_losses.data(), n) / grid.total,
                kernels_.dot(grid.weights.data(), of_weights.data(), n) / grid.total,
                kernels_.dot(sizes.data(), of_weights.data(), n) / grid.total};
    }

    // Drops points below e^-66 of the largest, and fills up with weights of zero.
    static void keep_heavy(Grid& grid) {
        std::size_t kept = 0;
        for (std::size_t j = 0; j < grid.losses.size(); ++j) {
            if (grid.exponents[j] < grid.top - 66.0) continue;
            grid.losses[kept] = grid.losses[j];
            grid.weights[kept++] = grid.weights[j];
        }
        const std::size_t padded = (kept + contour::lanes - 1) / contour::lanes * contour::lanes;
        grid.losses.resize(kept);
        grid.weights.resize(kept);
        grid.losses.resize(padded, 0.0);
        grid.weights.resize(padded, 0.0);
    }

    // The cells on which the decay is bounded, that of the last tilt kept. Their width matters for how good the bound
    // is, not for whether it holds.
    const Fine& fine_grid(double c) const {
        if (c == fine_tilt_) return fine_;
        const double a = exponent(c), variance = sigma_ * sigma_;
        const Range range = make_range(a);
        const double wanted = 0.1 * detail::min(range.width, variance * range.width / sigma_);
        const double step = detail::max(wanted, (range.high - range.low) / 4000.0);
        const Grid grid = make_grid(range, step);  // at most 4008 points
        const Moment whole = log_moment(c);
        const double scale = step / (sigma_ * std::sqrt(2.0 * pi));
        const double unit = std::exp(grid.top + std::log(scale) - whole.value);  // weight 1 as a share of M
        const double safe = 1.0 + 1e-12 + 2.0 * whole.error;
        const std::size_t cells =
            grid.losses.size() - contour::lanes;  // a multiple of lanes; the last few have an edge
        fine_.mix.resize(grid.losses.size());
        kernels_.mix(grid.points, 0.0, fine_.mix.data());
        fine_.low.assign(cells, 0.0);
        fine_.high.assign(cells, 0.0);
        for (std::size_t j = 0; j < cells; ++j) {
            const double x = fine_.mix[j], y = fine_.mix[j + 1];
            const double spread = x <= 0.5 && y >= 0.5 ? 0.25 : detail::max(x * (1.0 - x), y * (1.0 - y));
            const double convex = detail::max(a, 0.0) * spread / variance - 1.0;    // sigma^2 (log f)'' <= convex
            const double concave = detail::max(-a, 0.0) * spread / variance + 1.0;  // sigma^2 (log f)'' >= -concave
            const double lever = step * step / (8.0 * variance);
            const double p = grid.weights[j], r = grid.weights[j + 1];
            fine_.low[j] = unit / safe * detail::min(p, r) * std::exp(-lever * detail::max(convex, 0.0));
            fine_.high[j] = unit * safe * detail::max(p, r) * std::exp(lever * concave);
        }
        double loose = 0.0;  // cells not bounded: right of the last one
        for (std::size_t j = cells; j < grid.losses.size(); ++j) loose += 2.0 * unit * safe * grid.weights[j];
        const double at_end = std::exp(log_density(a, range.high) - whole.value) / (sigma_ * std::sqrt(2.0 * pi));
        fine_.edge = safe * (loose + at_end * (contour::steepest * variance + step));
        fine_tilt_ = c;
        return fine_;
    }

    double sigma_, rate_;
    bool remove_;
    const contour::Kernels& kernels_;
    double end_, log_missing_;
    mutable Fine fine_;
    mutable double fine_tilt_ = detail::nan, work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
