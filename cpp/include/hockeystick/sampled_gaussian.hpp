// The Poisson-sampled Gaussian's cumulant, certified: quadrature in x, decay of its characteristic function.
//
// Q = N(0, sigma^2), 1 + z = dP/dQ = 1 - q + q e^{(2x-1)/2 sigma^2}; remove is (P, Q), add is (Q, P). In both
// M(s) = E_Q[(1 + z)^p], p = s + 1 for remove and p = -s for add; a = p at s = c; f(x) = (1 + z)^a e^{-x^2/2 sigma^2} is the
// tilted density; w = q e^t/(1 - q + q e^t), t = (2x-1)/2 sigma^2, so that d log(1 + z)/dx = w/sigma^2.
//
// Cut. For remove, losses at x > x_c = 1 + cut sigma are left out: E e^{cL} may be ruled by losses that never happen (at
// sigma = 10, q = 1e-4, the mean of e^{2000 L} is made at 200 sigma). Their P-mass is (1-q) Q(x_c/sigma) + q Q(cut).
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
// Rounding: as sampled_gaussian_grid.hpp says of losses and weights. Where M is near 1, log M comes from E[(1 + z)^a - 1 - a z], which keeps log M accurate to u times its own size: it is multiplied by T.
#pragma once

#include <limits>

#include <hockeystick/cumulant.hpp>
#include <hockeystick/nonuniform_fft.hpp>
#include <hockeystick/sampled_gaussian_grid.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {

class SampledGaussianCumulant final : public Cumulant {
  public:
    // Elsewhere the grids would be too large, or numbers leave the doubles.
    static bool covers(double sigma, double rate) {
        return sigma >= 0.02 && sigma <= 1e9 && rate >= 1e-30 && rate <= 1.0 - 0x1p-50;
    }

    // 0 < rate < 1; `cut` in units of sigma, used by remove only.
    SampledGaussianCumulant(double sigma, double rate, bool remove, double cut, const contour::Kernels& kernels,
                            std::shared_ptr<FourierWorkspace> workspace = std::make_shared<FourierWorkspace>())
        : sigma_(sigma), rate_(rate), remove_(remove), kernels_(kernels), workspace_(std::move(workspace)),
          log_missing_(remove ? log_missing_beyond(1.0 / sigma + cut, cut, rate) : -detail::infinity),
          grids_(sigma, rate, remove ? 1.0 + cut * sigma : detail::infinity, kernels) {}

    Moment log_moment(double c) const override {
        const double a = exponent(c);
        const Range range = grids_.make_range(a, Grids::fine);
        const Grid grid = a < 0.0 ? grids_.certified_grid(range, 0.0, 0.9) : grids_.make_grid(range, range.step);
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

    bool add_nodes(double c, double h, std::size_t last, double count, NodeTable& nodes) const override {
        const double depth = last > few_nodes ? Grids::rough : Grids::fine;
        const Range range = grids_.make_range(exponent(c), depth);
        Grid grid = grids_.certified_grid(range, static_cast<double>(last) * h, 0.95);
        if (grid.losses.empty()) return false;
        const Digits lost = grids_.digits(grid);
        grids_.keep_heavy(grid);
        FourierSums phi = oscillation(grid.losses, grid.weights, lost.loss, h, last, *workspace_, kernels_, work_);
        if (phi.real.empty()) return false;
        const double share = 1.0 / grid.total, turned = remove_ ? share : -share;
        const double summing = 32.0 + of_log + static_cast<double>(grid.points.n) / 8.0;  // of the total
        for (std::size_t k = 1; k <= last; ++k) {
            phi.real[k] *= share;
            phi.imag[k] *= turned;
            const double omega = static_cast<double>(static_cast<int>(k)) * h;
            phi.error[k] += u * (summing * detail::min(2.0, omega * lost.loss) + omega * lost.of_loss +
                                 2.2 * detail::min(2.0 * lost.of_weight, omega * lost.of_product)) +
                            grid.quadrature;
        }
        kernels_.raise(phi.shares(count), nodes.powers());
        return true;
    }

    double log_missing() const override { return log_missing_; }
    double log_variance() const override {  // log log1p(q^2 (e^{1/sigma^2} - 1)), the loss's chi-square
        const double inverse = 1.0 / (sigma_ * sigma_);
        const double chi = inverse < 600.0 ? std::log(std::expm1(inverse)) : inverse;
        const double power = chi + 2.0 * std::log(rate_);
        return power < 30.0 ? std::log(std::log1p(std::exp(power))) : std::log(power);
    }
    double work() const override { return work_ + grids_.work(); }
    double highest() const override { return remove_ ? detail::infinity : -std::log1p(-rate_); }
    double lowest() const override { return remove_ ? std::log1p(-rate_) : -detail::infinity; }

  private:
    static constexpr double pi = detail::pi, u = detail::unit_roundoff;
    static constexpr std::size_t few_nodes = 256;  // more are summed by FFT, whose error is 1e-14

    using Grids = detail::SampledGaussianGrids;
    using Range = Grids::Range;
    using Grid = Grids::Grid;
    using Digits = Grids::Digits;

    struct Fine {
        std::vector<double> mix, low, high;
        double edge;
    };

    // log((1 - rate) Q(x) + rate Q(cut)), x > cut, also where that is below the doubles
    static double log_missing_beyond(double x, double cut, double rate) {
        const double of_cut = log_q(cut);
        return of_cut + std::log((1.0 - rate) * std::exp(log_q(x) - of_cut) + rate);
    }

    double exponent(double c) const { return remove_ ? c + 1.0 : -c; }

    Moment moment(const Grid& grid) const {
        const std::size_t n = grid.losses.size();
        const double scale = std::log(grid.points.step / (sigma_ * std::sqrt(2.0 * pi)));
        const Digits lost = grids_.digits(grid);
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

    // The cells on which the decay is bounded, that of the last tilt kept. Their width matters for how good the bound
    // is, not for whether it holds.
    const Fine& fine_grid(double c) const {
        if (c == fine_tilt_) return fine_;
        const double a = exponent(c), variance = sigma_ * sigma_;
        const Range range = grids_.make_range(a, Grids::fine);
        const double wanted = 0.1 * detail::min(range.width, variance * range.width / sigma_);
        const double step = detail::max(wanted, (range.high - range.low) / 4000.0);
        const Grid grid = grids_.make_grid(range, step);  // at most 4008 points
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
        const double lever = step * step / (8.0 * variance), more = detail::max(a, 0.0) / variance;
        const double fewer = detail::max(-a, 0.0) / variance, least = unit / safe, most = unit * safe;
        for (std::size_t j = 0; j < cells; ++j) {
            const double x = fine_.mix[j], y = fine_.mix[j + 1];
            const double at_x = x * (1.0 - x), at_y = y * (1.0 - y), ends = at_x > at_y ? at_x : at_y;
            const double spread = x <= 0.5 && y >= 0.5 ? 0.25 : ends;
            const double convex = lever * (more * spread - 1.0);    // sigma^2 (log f)'' <= more spread - 1
            const double concave = lever * (fewer * spread + 1.0);  // sigma^2 (log f)'' >= -fewer spread - 1
            const double p = grid.weights[j], r = grid.weights[j + 1];
            const double below = 1.0 - (convex > 0.0 ? convex : 0.0);  // <= e^-convex, and e^concave <= 1/(1 - concave)
            const double above =
                concave < 0.5 ? 1.0 / (1.0 - concave) : detail::exp_sum(concave < 600.0 ? concave : 600.0, 0.0);
            fine_.low[j] = least * (p < r ? p : r) * (below > 0.0 ? below : 0.0);
            fine_.high[j] = most * (p < r ? r : p) * above;
        }
        double loose = 0.0;  // cells not bounded: right of the last one
        for (std::size_t j = cells; j < grid.losses.size(); ++j) loose += 2.0 * unit * safe * grid.weights[j];
        const double at_end =
            std::exp(grids_.log_density(a, range.high) - whole.value) / (sigma_ * std::sqrt(2.0 * pi));
        fine_.edge = safe * (loose + at_end * (contour::steepest * variance + step));
        fine_tilt_ = c;
        return fine_;
    }

    double sigma_, rate_;
    bool remove_;
    const contour::Kernels& kernels_;
    std::shared_ptr<FourierWorkspace> workspace_;
    double log_missing_;
    Grids grids_;
    mutable Fine fine_;
    mutable double fine_tilt_ = detail::nan, work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
