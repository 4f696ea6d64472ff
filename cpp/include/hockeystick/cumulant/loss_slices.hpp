// The Poisson-sampled Gaussian's losses (cumulant/sampled_gaussian.hpp, remove) in slices of one scale each, for few steps of rare samples:
// contour/sliced_contour.hpp says why.
//
// Slices. With x_p = 1/2 + sigma^2 (1.4 m - log q), m whole, falling in p, slice p is what the label x + w N(0,1), w = 0.15 sigma^2, puts between x_p
// and x_{p-1}: where log(1 + z) is small, losses of one slice differ by e^1.4. Its density is A(x) f(x), A the window,
//   M_p(s) = E_Q[A (1 + z)^{s+1}].
// A is a mean of Gaussians over an interval, so |A(x + iy)| <= e^{y^2/2w^2} A(x), and (log A)'' >= -1/w^2. Slices end 14 w
// outside their labels, and at -14 sigma and 1 + 22 sigma: what is missing, Q(14) or less for each, moves every delta by at most its
// mass, either way.
//
// On x + iy, theta = y/sigma^2 <= pi/2, c + 1 >= 0: |A f (1 + z)^{c+1}| grows at most by e^{g theta^2}, g = sigma^4/2w^2 + sigma^2/2, for
// |1 + z| falls; e^{i omega log(1 + z)} falls by e^{-omega arg}, arg >= w(x) sin theta, w(x) the mixture weight (y > 0), or
// grows by e^{omega arg} (y < 0). Hence
//   decay       |M_p(c + i omega)| <= e^{g theta^2} int A f_c e^{-omega w(x) sin theta} dx, theta = 0.6, and twice y A f_c at the ends;
//   quadrature  error <= 2 e^{g theta^2} int A f_c e^{omega turn} dx/(e^{2 pi y/h} - 1) and y A f_c (1 + e^{g theta^2 + omega turn - 2 pi y/h})
//               at the ends, `turn` >= arg as simd/loss_windows.hpp has it, so that the last exponent bounds that of every lower height, or 0
//               does. h makes the first less than e^{-depth} of M, and then the second part of the other, whose A f_c is one of
//               the integral's terms, less than y/h0 e^{-depth-1.5}: e^{4-depth}, all.
// Integrals of a positive A f_c are at most 2.1 times their sums over cells of the base grid, h0 = 0.4 w, since in a cell
// log A f_c is at most h0^2 (1/w^2 + 1/sigma^2)/8 above the larger end.
//
// Rounding: as cumulant/sampled_gaussian_grid.hpp says of losses and weights, and simd/loss_windows.hpp of windows.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <hockeystick/cumulant/cumulant.hpp>
#include <hockeystick/cumulant/loss_lattice.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// Not for several threads at once.
class LossSlices {
  public:
    // Elsewhere slices are no help: losses have one scale, or there would be too many.
    static bool covers(double sigma, double rate) {
        return sigma >= 0.25 && sigma <= 4.0 && rate >= 1e-9 && rate <= 0.5;
    }

    LossSlices(double sigma, double rate, const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : sigma_(sigma), rate_(rate), kernels_(kernels), workspace_(std::move(workspace)), width_(0.15 * sigma * sigma),
          step_(0.4 * width_), lattice_(sigma, rate, -reach * sigma, step_, kernels),
          first_(std::round(lattice_.number(-reach * sigma))),
          points_(whole_lanes((1.0 + (reach + right_reach) * sigma) / step_)),
          base_(lattice_.points(first_ - 1.0, points_ + simd::lanes)) {
        moments_.resize(static_cast<std::size_t>(2.0 * std::log2(256.0 / rate)) + 9);
        const double half = 0.5 - sigma * sigma * std::log(rate), apart = 1.4 * sigma * sigma;
        const double highest = half + apart * std::floor((9.0 * sigma - half) / apart);
        for (double cut = highest; cut > -6.0 * sigma; cut -= apart) cuts_.push_back(cut);
        for (std::size_t p = 0; p <= cuts_.size(); ++p)
            parts_.push_back(
                on_base({p < cuts_.size() ? cuts_[p] : -infinity, p > 0 ? cuts_[p - 1] : infinity, width_}));
    }

    int size() const { return static_cast<int>(cuts_.size()); }  // what is below the last is no slice
    double least_loss() const { return std::log1p(-rate_); }
    double log_missing() const { return std::log(8.0 * (2.0 + static_cast<double>(parts_.size())) * q(reach)); }

    // Tilts 2^{k/2} up to what the smallest losses bear, frequencies 2^{i/4}, spacings 2^{-j/4}.
    static constexpr int first_tilt = -8;
    int last_tilt() const { return first_tilt + static_cast<int>(moments_.size()) - 1; }
    static double tilt(int k) { return std::exp2(0.5 * k); }
    static double frequency(int i) { return std::exp2(0.25 * i); }
    static double spacing(int j) { return std::exp2(-0.25 * j); }

    // Logarithms of the transforms of every slice, and of it with all below, at a real c >= -1; and how far they may be off.
    struct Moments {
        double c, log_kappa;  // of Chernoff's bound (contour/contour.hpp)
        std::vector<double> slice, upto;
        double error;
    };
    const Moments& at(int k) const {
        auto& found = moments_[static_cast<std::size_t>(k - first_tilt)];
        if (found.slice.empty()) found = moments(tilt(k));
        return found;
    }
    // Those of the masses under P, c = 0, and under Q, c = -1.
    const Moments& mass(bool under_p) const {
        auto& found = masses_[under_p ? 0 : 1];
        if (found.slice.empty()) found = moments(under_p ? 0.0 : -1.0);
        return found;
    }

    // A bound of log |M_p(c + i omega)| for all omega from frequency(i) up.
    double log_decay(int p, int k, int i) const {
        const auto key = std::make_tuple(p, k, i);
        const auto found = decays_.find(key);
        if (found != decays_.end()) return found->second;
        const OnBase& part = parts_[static_cast<std::size_t>(p)];
        if (p != exponents_of_.first || k != exponents_of_.second) {
            tilted_ = exponents(part, tilt(k) + 1.0);
            exponents_of_ = {p, k};
        }
        constexpr double theta = 0.6;
        const std::size_t n = part.window.size();
        work_ += static_cast<double>(n);
        const double sum =
            kernels_.damped(tilted_.exponents.data(), base_.mix + part.start, n, frequency(i) * std::sin(theta));
        const double bound = 2.1 * sum + at_ends(std::exp(tilted_.exponents[0]), std::exp(tilted_.exponents[n - 1]),
                                                 tilt(k) + 1.0, step_, part.start + n);
        const double log_bound = std::log(bound) + growth() * theta * theta + tilted_.top + log_scale(step_) + 1e-9;
        return decays_.emplace(key, log_bound).first->second;
    }

    // What is known at the nodes c + i n h, h = 2^{-j/4}, of slice p, up to frequency(i).
    struct Table {
        double log_below, error;                              // of the total of what is below the slice, at c
        std::vector<double> log_abs, phase, drift;            // of its phi; `drift` is the relative error
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
    static constexpr double most_nodes = 20000.0, most_nodes_kept = 150000.0;

    const Table& table(int p, int k, int j, int i) const {
        const auto key = std::make_tuple(p, k, j, i);
        const auto found = tables_.find(key);
        if (found != tables_.end()) return *found->second;
        if (nodes_kept_ > most_nodes_kept) {
            tables_.clear();
            nodes_kept_ = 0.0;
            ++generation_;
        }
        auto made = std::make_unique<Table>();
        fill(*made, static_cast<std::size_t>(p), tilt(k), spacing(j), frequency(i));
        nodes_kept_ += static_cast<double>(made->real.size());
        return *tables_.emplace(key, std::move(made)).first->second;
    }

    std::size_t generation() const { return generation_; }  // tables are good while it is the same

    double work() const { return work_; }  // points visited so far, times nodes
    std::size_t bytes() const { return static_cast<std::size_t>(80.0 * nodes_kept_) + decays_.size() * 80 + 200000; }

  private:
    static constexpr double u = unit_roundoff, reach = 14.0, right_reach = 22.0;
    // What is left out of a transform, relatively, is e^-depth of its largest terms: it counts once for a slice, T times for the rest.
    static constexpr double depth_of_slice = 32.0, depth_of_rest = 38.0;
    static constexpr double most_points = 3e4;

    // A window on the points of the base grid on which it is not negligible.
    struct OnBase {
        simd::Window of;
        std::size_t start;
        std::vector<double> window, digits, logs;  // `digits` are what rounding takes of the window, in units of u
        double low, high;                          // where the slice ends
    };
    struct Exponents {
        std::vector<double> exponents;  // log A f_c, less `top`
        double top;
    };
    // Points with their losses and weights, and what these err by, on average: as Digits of cumulant/sampled_gaussian_grid.hpp.
    struct Weighed {
        std::vector<double> losses, weights;
        double total = 0.0, loss = 0.0, of_loss = 0.0, of_weight = 0.0, of_product = 0.0, ends = 0.0, quadrature = 0.0;
    };

    static std::size_t whole_lanes(double points) {
        return (static_cast<std::size_t>(points) / simd::lanes + 1) * simd::lanes;
    }
    double growth() const {
        const double variance = sigma_ * sigma_;
        return 0.5 * variance * (variance / (width_ * width_) + 1.0);
    }
    double log_scale(double step) const { return std::log(step / (sigma_ * std::sqrt(2.0 * pi))); }

    OnBase on_base(const simd::Window& w) const {
        OnBase part;
        part.of = w;
        const double wide = reach * width_, last = static_cast<double>(points_);
        const double begin = max(lattice_.number(w.low - wide) - first_, 0.0);
        const double end = min(lattice_.number(w.high + wide) - first_, last);
        part.start = static_cast<std::size_t>(begin) / simd::lanes * simd::lanes;
        const std::size_t count = std::min(whole_lanes(end - static_cast<double>(part.start)), points_ - part.start);
        const double number = first_ + static_cast<double>(part.start);
        part.low = lattice_.boundary(number);
        part.high = lattice_.boundary(number + static_cast<double>(count));
        for (auto* array : {&part.window, &part.digits, &part.logs}) array->resize(count);
        kernels_.window({sigma_, rate_, lattice_.boundary(0.0), step_, number, count}, w, part.window.data(),
                        part.digits.data());
        kernels_.logarithms(part.window.data(), part.logs.data(), count);
        work_ += static_cast<double>(count);
        return part;
    }

    Exponents exponents(const OnBase& part, double power) const {
        const std::size_t n = part.window.size();
        Exponents e{std::vector<double>(n), 0.0};
        kernels_.tilt(from(part.start), power, e.exponents.data(), n);
        for (std::size_t j = 0; j < n; ++j) e.exponents[j] += part.logs[j];
        e.top = kernels_.largest(e.exponents.data(), n);
        for (double& x : e.exponents) x -= e.top;
        return e;
    }

    // What the ends of a range add to an integral, in units of a sum over steps: y A f_c, with A f_c half a step further on, falling
    // on the left, rising by power w(x)/sigma^2 or less on the right, which is at point `end` of the base grid.
    double at_ends(double left, double right, double power, double step, std::size_t end) const {
        const double variance = sigma_ * sigma_, rise = power * base_.mix[end + 1] / variance;
        return 3.0 * variance / step * (left + right * std::exp(0.5 * max(rise, 0.0) * step));
    }

    // By the base grid, whose step is certified for omega = 0 with theta = 1. Weights are in units of e^top, kept while they fit.
    Moments moments(double c) const {
        const std::size_t n = points_;
        std::vector<double> powers(n), weights(n);
        kernels_.tilt(from(0), c + 1.0, powers.data(), n);
        work_ += static_cast<double>(n);
        const double log_kappa = c > 0.0 ? c * std::log(c) - (1.0 + c) * std::log1p(c) : 0.0;
        Moments m{c, log_kappa, std::vector<double>(parts_.size()), std::vector<double>(parts_.size()),
                  4e-12 + 2e-12 * (c + 1.0)};
        if (c <= 0.0) m.error = 0.0;
        double below = -infinity, top = -infinity;
        std::size_t done = 0;
        for (std::size_t p = parts_.size(); p-- > 0;) {
            const OnBase& part = parts_[p];
            const std::size_t size = part.window.size(), end = part.start + size;
            const double* own = weights.data() + part.start;
            const double own_top = kernels_.largest(powers.data() + part.start, size);
            if (own_top > top + 300.0) {
                top = own_top;
                done = part.start;
            }
            kernels_.weigh(powers.data() + done, top, weights.data() + done, end - done);
            done = end;
            const double sum = kernels_.dot(own, part.window.data(), size);
            const double ends =
                at_ends(own[0] * part.window[0], own[size - 1] * part.window[size - 1], c + 1.0, step_, end);
            m.slice[p] = std::log(sum + ends) + top + log_scale(step_);
            m.upto[p] = below = log_sum(m.slice[p], below);
            if (c <= 0.0) m.error = max(m.error, error_of_mass(part, c, own, sum) + ends / sum);
        }
        return m;
    }

    simd::Points from(std::size_t j) const {  // of the base grid, which has one more point on the left
        return {base_.loss + j + 1,    base_.half_square + j + 1, base_.mix + j + 1,         base_.excess + j + 1,
                base_.density + j + 1, base_.loss_error + j + 1,  base_.excess_error + j + 1};
    }
    // What rounding takes of a weight under a tilt, in units of u.
    static double of_weight(const simd::Points& at, std::size_t j, double power) {
        return std::fabs(power) * at.loss_error[j] + 8.0 * at.half_square[j] + 12.0;
    }

    // The relative rounding error of a slice's mass, a sum of `weights` times windows.
    double error_of_mass(const OnBase& part, double c, const double* weights, double sum) const {
        const std::size_t size = part.window.size();
        std::vector<double> digits(size);
        const simd::Points at = from(part.start);
        for (std::size_t j = 0; j < size; ++j)
            digits[j] = part.window[j] * (of_weight(at, j, c + 1.0) + part.digits[j]);
        const double lost = kernels_.dot(weights, digits.data(), size) / sum;
        return 1.1 * u * (lost + static_cast<double>(size + 8 * parts_.size()) + 600.0);
    }

    // A step that some shift of x certifies for `count` points of a part, from `start` on, at frequencies up to omega.
    double certified_step(const OnBase& part, const Exponents& e, std::size_t start, std::size_t count, double omega,
                          double depth) const {
        std::vector<double> terms(count);
        const double* own = e.exponents.data() + start;
        kernels_.weigh(own, 0.0, terms.data(), count);
        const double total = kernels_.sum(terms.data(), count);
        double best = 0.0;
        for (double theta = 1.4; theta > 1e-3; theta *= 0.5) {
            const double ratio = kernels_.grown(own, base_.mix + part.start + start + 2, count, theta, omega) / total;
            work_ += static_cast<double>(count);
            if (!(ratio < 1e250)) continue;
            const double needed = depth + 1.5 + growth() * theta * theta + std::log(max(ratio, 1.0));
            const double step = 2.0 * pi * theta * sigma_ * sigma_ / needed;
            if (step < best) break;
            best = step;
        }
        return min(best, step_);
    }

    // Adds a part's points, in units of e^top, without both its ends where A f_c is below e^-depth of its largest.
    void weigh(const OnBase& part, double power, double omega, double top, double depth, Weighed& to) const {
        const Exponents e = exponents(part, power);
        const double least = -depth;
        std::size_t first = 0, end = e.exponents.size();
        while (end - first > simd::lanes && e.exponents[first + simd::lanes - 1] < least) first += simd::lanes;
        while (end - first > simd::lanes && e.exponents[end - simd::lanes] < least) end -= simd::lanes;
        double outside = -infinity;
        for (std::size_t j = 0; j < first; ++j) outside = max(outside, e.exponents[j]);
        for (std::size_t j = end; j < e.exponents.size(); ++j) outside = max(outside, e.exponents[j]);
        const double left_out = static_cast<double>(e.exponents.size() - (end - first));
        to.ends += 2.1 * step_ * left_out * std::exp(outside + e.top - top);
        const double low = part.low + static_cast<double>(first) * step_;
        const double high = part.low + static_cast<double>(end) * step_;
        const double step = certified_step(part, e, first, end - first, omega, depth);
        const bool fits = (high - low) / step < most_points;
        to.quadrature = max(to.quadrature, fits ? std::exp(4.0 - depth) : infinity);
        const std::size_t n = whole_lanes(min((high - low) / step - 0.5, most_points));
        const double own = (high - low) / static_cast<double>(n);
        const bool coarse = n == end - first;  // then they are the base grid's
        LossLattice fine(sigma_, rate_, low, own, kernels_);
        const double number = std::round(fine.number(low));
        const simd::Points at = coarse ? from(part.start + first) : fine.points(number, n);
        std::vector<double> weights(n), windows(n), of_windows(n), of_weights(n);
        if (coarse) {
            std::copy_n(part.digits.begin() + static_cast<std::ptrdiff_t>(first), n, of_windows.begin());
            kernels_.weigh(e.exponents.data() + first, top - e.top, weights.data(), n);
            for (double& weight : weights) weight *= own;
        } else {
            kernels_.tilt(at, power, of_weights.data(), n);
            kernels_.weigh(of_weights.data(), top, weights.data(), n);
            kernels_.window({sigma_, rate_, fine.boundary(0.0), own, number, n}, part.of, windows.data(),
                            of_windows.data());
            for (std::size_t j = 0; j < n; ++j) weights[j] *= windows[j] * own;
        }
        for (std::size_t j = 0; j < n; ++j) of_weights[j] = of_weight(at, j, power) + of_windows[j];
        work_ += static_cast<double>(n);
        to.ends += 14.0 * at_ends(weights[0], weights[n - 1], power, own, part.start + end);
        add(at, weights, of_weights, to);
    }

    // Appends points, and adds up what their weights and losses err by.
    void add(const simd::Points& at, const std::vector<double>& weights, const std::vector<double>& of_weights,
             Weighed& to) const {
        const std::size_t n = weights.size();
        std::vector<double> sizes(n);
        for (std::size_t j = 0; j < n; ++j) sizes[j] = weights[j] * std::fabs(at.loss[j]);
        to.losses.insert(to.losses.end(), at.loss, at.loss + n);
        to.weights.insert(to.weights.end(), weights.begin(), weights.end());
        to.total += kernels_.sum(weights.data(), n);
        to.loss += kernels_.sum(sizes.data(), n);
        to.of_loss += kernels_.dot(weights.data(), at.loss_error, n);
        to.of_weight += kernels_.dot(weights.data(), of_weights.data(), n);
        to.of_product += kernels_.dot(sizes.data(), of_weights.data(), n);
    }

    static void finish(Weighed& w) {
        w.losses.resize(whole_lanes(static_cast<double>(w.losses.size()) - 0.5), 0.0);
        w.weights.resize(w.losses.size(), 0.0);
        for (double* mean : {&w.loss, &w.of_loss, &w.of_weight, &w.of_product, &w.ends}) *mean /= w.total;
    }

    void fill(Table& t, std::size_t p, double c, double h, double last) const {
        const double wanted = std::ceil(last / h), power = c + 1.0;
        t.c = c;
        t.h = h;
        t.usable = wanted < most_nodes;
        if (!t.usable) return;
        t.n = static_cast<std::size_t>(wanted) + 1;
        const double omega = static_cast<double>(t.n - 1) * h;
        Weighed slice, below;
        const double top = exponents(parts_[p], power).top;
        weigh(parts_[p], power, omega, top, depth_of_slice, slice);
        std::size_t next = p + 1;
        for (; next < parts_.size() - 1 && next < p + 3; ++next)
            weigh(parts_[next], power, omega, top, depth_of_rest, below);
        weigh(on_base({-infinity, cuts_[next - 1], width_}), power, omega, top, depth_of_rest, below);
        finish(slice);
        finish(below);
        transform(t, slice, below);
        t.log_below = std::log(below.total) + top + log_scale(1.0);
        t.error = u * (static_cast<double>(below.losses.size()) + 16.0 + 1.1 * below.of_weight +
                       4.0 * (std::fabs(top) + std::fabs(t.log_below))) +
                  2.0 * below.quadrature + below.ends;
    }

    // Relative errors of a transform less 1; where `all`, of the transform itself.
    void charge(const Weighed& w, double h, bool all, FourierSums& phi) const {
        const double summing = 32.0 + 16.0 + static_cast<double>(w.losses.size());
        for (std::size_t k = 0; k < phi.real.size(); ++k) {
            const double omega = static_cast<double>(static_cast<int>(k)) * h;
            const double turned = all ? 2.0 : min(2.0, omega * w.loss);
            const double weighed = all ? 2.42 * w.of_weight : of_weights(w.of_weight, w.of_product, w.loss, omega);
            phi.error[k] += u * (summing * turned + omega * w.of_loss + weighed) + 2.0 * w.quadrature + w.ends;
        }
    }

    void transform(Table& t, const Weighed& slice, const Weighed& below) const {
        const auto fourier = [&](const Weighed& w) {
            FourierSums f = oscillation(w.losses, w.weights, w.loss, t.h, t.n - 1, *workspace_, kernels_, work_);
            const double share = 1.0 / w.total;
            for (double& x : f.real) x *= share;
            for (double& x : f.imag) x *= share;
            return f;
        };
        FourierSums low = fourier(below), own = fourier(slice);
        t.usable = low.real.size() == t.n && own.real.size() == t.n;
        if (!t.usable) return;
        charge(below, t.h, false, low);
        charge(slice, t.h, true, own);
        const double share = slice.total / below.total;
        for (double& x : own.real) x = share * (1.0 + x);
        for (auto* array : {&own.imag, &own.error})
            for (double& x : *array) x *= share;
        const std::size_t padded = whole_lanes(static_cast<double>(t.n) - 0.5);
        for (auto* array :
             {&t.log_abs, &t.phase, &t.drift, &t.ratio, &t.ratio_phase, &t.ratio_error, &t.real, &t.imag, &t.size})
            array->assign(padded, 0.0);
        kernels_.raise(low.shares(1.0), {t.log_abs.data(), t.phase.data(), t.drift.data()});
        kernels_.log_ratios({own.real.data(), own.imag.data(), own.error.data(), low.real.data(), low.imag.data(),
                             low.error.data(), t.n},
                            {t.ratio.data(), t.ratio_phase.data(), t.ratio_error.data()});
        std::vector<double> unused(3 * padded);
        kernels_.factors({t.c, t.h, 0.0, t.n}, {unused.data(), unused.data() + padded, unused.data() + 2 * padded},
                         {t.real.data(), t.imag.data(), t.size.data()});
    }

    double sigma_, rate_;
    const simd::Kernels& kernels_;
    std::shared_ptr<FourierWorkspace> workspace_;
    double width_, step_;
    LossLattice lattice_;
    double first_;  // the base grid's first boundary
    std::size_t points_;
    simd::Points base_;  // from one point left of it on
    std::vector<double> cuts_;
    std::vector<OnBase> parts_;
    mutable std::vector<Moments> moments_;
    mutable Moments masses_[2];
    mutable Exponents tilted_;
    mutable std::pair<int, int> exponents_of_{-1, 0};
    mutable std::map<std::tuple<int, int, int>, double> decays_;
    mutable std::map<std::tuple<int, int, int, int>, std::unique_ptr<Table>> tables_;
    mutable std::size_t generation_ = 1;
    mutable double nodes_kept_ = 0.0, work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
