// The law of the privacy loss L of a composition with a Gaussian part, by its Fourier transform.
//
// The Gaussian part, of shift r, makes the law smooth: |phi(omega)| <= e^{-r^2 omega^2/2} on every
// line Re s = c. With K = log E_P e^{sL}, a kernel k and a tilt c,
//
//   e^{K(c) - cx} (w/2 pi) [k(c) + 2 sum_n Re phi(n w) k(c + i n w) e^{-i n w x}]
//
// is, up to aliases a period 2 pi/w away, the density of L at x for k = 1; P(L > x) for k = 1/s and
// c > 0, and -P(L <= x) for c < 0; e^x Q(L > x) for k = 1/(s + 1) and c > -1, and -e^x Q(L <= x)
// for c < -1; and delta(x) for k = 1/(s (s + 1)) and c > 0. docs/core/composed.md proves this and
// bounds what a value errs by: aliases, the terms left out, and rounding.
//
// ComposedLoss is the loss L. ComposedCumulant is the cumulant of a Poisson sample of the
// composition, whose decay ComposedDecay bounds.
//
// Cost: some 30 terms for each value, and as many values of the parts' cumulants for each tilt.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;
using namespace numeric;

// A positive value, e^log_value, and its relative error.
struct LogValue {
    double log_value, error;
};

class ComposedTransform {
  public:
    enum class Kernel { density, p_tail, q_tail, delta };
    struct Part {
        std::unique_ptr<Cumulant> cumulant;
        double count;
    };

    ComposedTransform(std::vector<Part> parts, double shift) : parts_(std::move(parts)), shift_(shift) {
        const double step = 0.25 / shift;
        const double bend =
            (moment(-0.5 + step).value - moment(-0.5).value - (moment(-0.5).value - moment(-0.5 - step).value));
        deviation_ = std::sqrt(max(bend / (step * step), shift * shift));
        spacing_ = 2.0 * pi / (period * deviation_);
        last_ = static_cast<std::size_t>(min(std::ceil(reach / (shift * spacing_)), 1e9));
    }

    double shift() const { return shift_; }
    double deviation() const { return deviation_; }  // of L, roughly
    // Whether the Gaussian part is no much smaller than the rest, so that sums are short.
    bool short_sums() const { return last_ <= most_terms; }

    // log M(c) and its error.
    Cumulant::Moment moment(double c) const {
        Cumulant::Moment sum{0.0, 0.0};
        const auto entries = static_cast<double>(parts_.size());
        for (const Part& part : parts_) {
            const Cumulant::Moment m = part.cumulant->log_moment(c);
            sum.value += part.count * m.value;
            sum.error += part.count * (m.error + (entries + 2.0) * unit_roundoff * std::fabs(m.value));
        }
        return sum;
    }

    // Whether P(L > x), or e^x Q(L <= x), is certainly below e^log_value: by Chernoff's bound.
    bool is_below(double x, bool above, double log_value) const {
        const double c = above ? far_tilt / deviation_ : -1.0 - far_tilt / deviation_;
        const Cumulant::Moment m = moment(c);
        return m.value + m.error - c * x < log_value;
    }

    // The kernel's value at x, above or below x where it has sides.
    LogValue at(double x, Kernel kernel, bool above = true) const {
        int index = saddle(x);
        const double margin = least_tilt / deviation_, pole = pole_of(kernel, above);
        if (kernel != Kernel::density && above)
            index = std::max(index, static_cast<int>(std::ceil((pole + margin + 0.5) * deviation_)));
        if (kernel != Kernel::density && !above)
            index = std::min(index, static_cast<int>(std::floor((pole - margin + 0.5) * deviation_)));
        return value(tilt(index), index, x, kernel);
    }

  private:
    static constexpr double period = 20.0;     // in deviations
    static constexpr double reach = 9.0;       // the last frequency times the shift: e^-40.5 is left
    static constexpr double least_tilt = 2.0;  // distance of a tilt from a pole, over the deviation
    static constexpr double far_tilt = 40.0;   // over the deviation
    static constexpr int alias_distance = 4;   // in tilts, of Chernoff's bounds of the aliases
    static constexpr std::size_t most_terms = 600;

    // phi at the frequencies n w, turned by the mean of L, with a bound of the absolute error.
    struct Tilt {
        double c, value, error, mean;  // log M(c), and its error
        std::vector<double> real, imag, phi_error;
        double size, error_size, turn_size;  // sums over n of |phi|, of its error, and of n |phi|
    };

    // Where a tail's kernel has the pole next to its tilts; delta has one on either side.
    static double pole_of(Kernel kernel, bool above) {
        return kernel == Kernel::q_tail || (kernel == Kernel::delta && !above) ? -1.0 : 0.0;
    }
    double tilt_at(int index) const { return -0.5 + index / deviation_; }

    const Cumulant::Moment& known_moment(int index) const {
        const auto found = moments_.find(index);
        return found != moments_.end() ? found->second : moments_.emplace(index, moment(tilt_at(index))).first->second;
    }
    double mean_at(int index) const {
        return 0.5 * deviation_ * (known_moment(index + 1).value - known_moment(index - 1).value);
    }

    // The index of the tilt whose mean is nearest x, or near it: any index is sound. The search
    // starts where the mean would be x if all parts were Gaussian or at their largest losses.
    int saddle(double x) const {
        const double guess = x / (shift_ * shift_) * deviation_, most = 1e6;
        int index = static_cast<int>(min(max(guess, -most), most));
        double distance = std::fabs(mean_at(index) - x);
        for (const int stride : {16, 4, 1}) {
            for (;;) {
                const int next = index + (mean_at(index) < x ? stride : -stride);
                const double there = std::fabs(mean_at(next) - x);
                if (!(there < distance)) break;
                index = next, distance = there;
            }
        }
        return index;
    }

    const Tilt& tilt(int index) const {
        const auto found = tilts_.find(index);
        if (found != tilts_.end()) return found->second;
        Tilt t{tilt_at(index),
               known_moment(index).value,
               known_moment(index).error,
               mean_at(index),
               {},
               {},
               {},
               0.0,
               0.0,
               0.0};
        NodeTable nodes(padded_to_lanes(last_ + 1));
        bool known = true;
        for (const Part& part : parts_)
            known = part.cumulant->add_nodes(t.c, spacing_, last_, part.count, nodes) && known;
        const auto entries = static_cast<double>(parts_.size());
        for (std::size_t n = 0; n <= last_; ++n) {
            const double turned = static_cast<double>(n) * spacing_ * t.mean, size = std::exp(nodes.log_abs[n]);
            const std::complex<double> phi = std::polar(size, nodes.phase[n] - turned);
            t.real.push_back(phi.real()), t.imag.push_back(phi.imag());
            const double rounding = (2.0 * entries + 6.0) * (std::fabs(nodes.log_abs[n]) + std::fabs(nodes.phase[n])) +
                                    4.0 * std::fabs(turned) + 8.0;
            t.phi_error.push_back(known ? phi_error(size, nodes.error[n] + unit_roundoff * rounding) : infinity);
            const double weight = n == 0 ? 1.0 : 2.0;
            t.size += weight * size, t.error_size += weight * t.phi_error[n];
            t.turn_size += weight * static_cast<double>(n) * size;
        }
        return tilts_.emplace(index, std::move(t)).first->second;
    }

    // What a value of this size errs by, whose logarithm errs by `error`. Near a zero that may be
    // much: the value is then a small difference, which errs by about size times error. Neither
    // phi nor its computed value exceeds 1.
    static double phi_error(double size, double error) {
        if (error < 1.0) return size * std::expm1(error);
        return error < infinity ? min(2.0 * size * error, 2.0) : 2.0;
    }

    static std::complex<double> factor(Kernel kernel, std::complex<double> s) {
        switch (kernel) {
        case Kernel::density:
            return 1.0;
        case Kernel::p_tail:
            return 1.0 / s;
        case Kernel::q_tail:
            return 1.0 / (s + 1.0);
        case Kernel::delta:
            return 1.0 / (s * (s + 1.0));
        }
        return 0.0;
    }

    // A sum of all terms, and what it errs by: those left out, and rounding.
    struct Sum {
        double value, error;
    };

    Sum sum(const Tilt& t, double x, Kernel kernel) const {
        constexpr double u = unit_roundoff;
        const double turn = spacing_ * (x - t.mean), step_real = std::cos(turn), step_imag = -std::sin(turn);
        const bool density = kernel == Kernel::density;
        double power_real = 1.0, power_imag = 0.0, total = 0.0;
        for (std::size_t n = 0; n <= last_; ++n) {
            double real = t.real[n], imag = t.imag[n];
            if (!density) {
                const std::complex<double> term =
                    std::complex<double>(real, imag) * factor(kernel, {t.c, static_cast<double>(n) * spacing_});
                real = term.real(), imag = term.imag();
            }
            total += (n == 0 ? 1.0 : 2.0) * (real * power_real - imag * power_imag);
            const double next = power_real * step_real - power_imag * step_imag;
            power_imag = power_real * step_imag + power_imag * step_real, power_real = next;
        }
        // |k| falls with n.
        const double largest = std::abs(factor(kernel, {t.c, 0.0}));
        const double turn_error =
            u * (6.0 * std::fabs(turn) + 2.0 * spacing_ * (std::fabs(x) + std::fabs(t.mean)) + 10.0);
        const double rounding = t.turn_size * turn_error + t.size * u * (32.0 + 2.0 * static_cast<double>(last_));
        // What is left out: 2 sum_n e^{-(r n w)^2/2} |k|, beyond the last term.
        const double frequency = static_cast<double>(last_ + 1) * spacing_, damped = shift_ * frequency;
        const double left_out = 2.0 * std::abs(factor(kernel, {t.c, frequency})) * std::exp(-0.5 * damped * damped) *
                                (1.0 + 1.0 / (shift_ * damped * spacing_));
        return {total, largest * (t.error_size + rounding) + left_out * (1.0 + 1e-9)};
    }

    LogValue value(const Tilt& t, int index, double x, Kernel kernel) const {
        constexpr double u = unit_roundoff;
        const Sum terms = sum(t, x, kernel);
        const double unit = spacing_ / (2.0 * pi), found = std::fabs(terms.value) * unit;
        const double error = unit * terms.error + alias(t, index, x, kernel), exponent = t.value - t.c * x;
        const double exponent_error = t.error + u * (3.0 * std::fabs(t.value) + 3.0 * std::fabs(t.c * x) + 8.0);
        if (!(found > 2.0 * error) || !(exponent_error < 0.1)) return {nan, infinity};
        return {exponent + std::log(found), error / (found - error) + 1.1 * exponent_error + 4.0 * u};
    }

    // What aliases add, in units of e^{K(c) - c x}. Those above x are at most e^{cnD} times
    // Chernoff's bound at a larger tilt c', those below at a smaller one. Tails have the bound 1 at
    // c' = 0 or -1 besides.
    double alias(const Tilt& t, int index, double x, Kernel kernel) const {
        const bool density = kernel == Kernel::density;
        const double highest = density ? 0.4 / shift_ : 1.0;  // of the density of the tilted law: 1/r sqrt(2 pi)
        const auto by = [&](double c, double moment_there) {
            const double away = std::fabs(c - t.c), fall = std::exp(-away * 2.0 * pi / spacing_);
            const double start = moment_there - t.value + (t.c - c) * x + t.error + 1e-10;
            return highest * std::exp(min(start, 700.0)) * fall / (1.0 - fall);
        };
        const auto far = [&](int other) {
            const Cumulant::Moment& m = known_moment(other);
            return by(tilt_at(other), m.value + m.error);
        };
        const double pole = pole_of(kernel, t.c > 0.0);
        double above = far(index + alias_distance), below = far(index - alias_distance);
        if (!density && t.c > pole)
            below = tilt_at(index - alias_distance) > pole ? min(below, by(pole, 0.0)) : by(pole, 0.0);
        if (!density && t.c < pole)
            above = tilt_at(index + alias_distance) < pole ? min(above, by(pole, 0.0)) : by(pole, 0.0);
        return above + below;
    }

    std::vector<Part> parts_;
    double shift_, deviation_ = 0.0, spacing_ = 0.0;
    std::size_t last_ = 0;
    mutable std::unordered_map<int, Cumulant::Moment> moments_;
    mutable std::unordered_map<int, Tilt> tilts_;
};

// The privacy loss of a composition with a Gaussian part, by the sums of ComposedTransform: no
// grid, and no gap between an upper and a lower pair.
//
// Errors are those of the sums, which are certified and far below what this class promises; a value
// that erred by more would be refused by an exception. Cost: some 2 microseconds for each value,
// and tens for the first one near it.
class ComposedLoss final : public PrivacyLoss {
  public:
    explicit ComposedLoss(ComposedTransform transform) : law_(std::move(transform)) {
        const double step = 1e-3 / law_.deviation();
        mean_ = (law_.moment(step).value - law_.moment(-step).value) / (2.0 * step);
    }

    LossMasses masses(double eps) const override {
        if (eps == infinity) return {1.0, 0.0, 1.0, 0.0};
        if (eps == -infinity) return {0.0, 1.0, 0.0, 1.0};
        return tails(eps).masses;
    }
    // Below 0 by what Q has more than P where the loss is at most eps.
    double delta(double eps) const override {
        if (eps == infinity) return 0.0;
        if (eps == -infinity) return 1.0;
        const LogValue found = known(eps, Kernel::delta, eps >= 0.0, 0.0);
        if (!precise(found)) {  // far below the mean: no small difference of the tails
            const Tails t = tails(eps);
            const double value = t.masses.p_above - std::exp(eps) * t.masses.q_above;
            if (!(t.p_error + std::exp(eps) * t.q_error <= most_error * value)) throw std::runtime_error(no_digits);
            return min(value, 1.0);
        }
        return eps >= 0.0 ? exponential(found) : min(exponential(found) - std::expm1(eps), 1.0);
    }
    double lowest() const override { return -infinity; }
    double highest() const override { return infinity; }
    double scale() const override { return most_error / (32.0 * unit_roundoff); }
    LossErrors errors() const override {
        LossErrors errors;
        errors.atoms = most_error / eight_roundings;
        return errors;
    }
    std::vector<OutlinePoint> outline() const override {
        std::vector<OutlinePoint> points;
        const double step = 24.0 / outline_points * law_.deviation();
        const std::lock_guard<std::mutex> lock(mutex_);
        for (int k = -outline_points; k <= outline_points; ++k) {
            const double loss = step * k, log_p = law_.at(loss, Kernel::density).log_value + std::log(step);
            if (log_p == log_p) points.push_back({loss, log_p, log_p - loss});
        }
        return points;
    }

  private:
    using Kernel = ComposedTransform::Kernel;
    static constexpr double most_error = 3e-10;      // relative, at a value of 1
    static constexpr double error_of_depth = 1e-13;  // for each unit of its logarithm
    static constexpr double least_log = -760.0;      // e^-760 is 0 in doubles
    static constexpr int outline_points = 200;
    static constexpr const char* no_digits = "a tail of a composition has no digits. This is a bug in hockeystick.";

    // e^moved times the kernel's value; -infinity for what is 0 in doubles.
    LogValue known(double eps, Kernel kernel, bool above, double moved) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (law_.is_below(eps, above, least_log - max(moved, 0.0))) return {-infinity, 0.0};
        LogValue found = law_.at(eps, kernel, above);
        found.log_value += moved;
        return found;
    }
    static bool precise(const LogValue& found) {
        return found.error <= most_error + error_of_depth * std::fabs(found.log_value);
    }
    static double exponential(const LogValue& found) {
        return found.log_value < least_log ? 0.0 : std::exp(min(found.log_value, 0.0));
    }
    // Of the side `above`, or of the other one if that is smaller.
    LogValue smaller_tail(double eps, Kernel kernel, bool& above, double moved) const {
        const LogValue found = known(eps, kernel, above, moved);
        if (!(found.log_value > -std::log(2.0))) return found;
        above = !above;
        return known(eps, kernel, above, moved);
    }
    // The masses on both sides of eps, and what those above err by, absolutely.
    struct Tails {
        LossMasses masses;
        double p_error, q_error;
    };
    Tails tails(double eps) const {
        bool p_above = eps >= mean_, q_above = eps >= -mean_;  // the smaller ones of both sides
        const LogValue log_p = smaller_tail(eps, Kernel::p_tail, p_above, 0.0),
                       log_q = smaller_tail(eps, Kernel::q_tail, q_above, -eps);
        if (!precise(log_p) || !precise(log_q)) throw std::runtime_error(no_digits);
        const double p = exponential(log_p), q = exponential(log_q);
        const double p_error = (log_p.error + 1e-13) * p, q_error = (log_q.error + 1e-13) * q;
        return {{p_above ? 1.0 - p : p, p_above ? p : 1.0 - p, q_above ? 1.0 - q : q, q_above ? q : 1.0 - q},
                p_error + four_roundings,
                q_above ? q_error : q_error + four_roundings};
    }

    ComposedTransform law_;
    double mean_;
    mutable std::mutex mutex_;
};

// How fast the transform of a sampled composition falls: by a path off the real line on which
// e^{i omega log(1 + z)} falls (docs/core/composed.md has the proof).
//
// With w = q e^l/(1 + z) and eta >= 0 linear in each cell, the integrand f (1 + z)^p grows on
// l + i eta(l) by at most e^{eta^2/2 r^2}, times |1 - w + w e^{i eta}|^p where p < 0; and
// e^{i omega log(1 + z)} falls by e^{-omega arg(1 - w + w e^{i eta})}. A larger omega falls more.

// The integrand f (1 + z)^power at Im s = 0, at points a step apart.
struct IntegrandOnGrid {
    std::vector<double> weight;             // w
    std::vector<double> log_low, log_high;  // bounds of its logarithm
    double step, power, shift;
    double log_curvature;  // the second derivative of log f is at most this, and at least -1/shift^2
};

class ComposedDecay {
  public:
    // M(c) is at most e^log_moment. What lies between the ends of the grid and those of the range
    // of l, on either side, is at most e^log_outside. An empty grid tells nothing.
    ComposedDecay(IntegrandOnGrid grid, double log_moment, double log_outside)
        : grid_(std::move(grid)), log_moment_(log_moment), outside_(std::exp(min(log_outside - log_moment, 0.0))) {
        const double negative = max(-grid_.power, 0.0), square = grid_.step * grid_.step / 8.0;
        const double falls = 1.0 / (grid_.shift * grid_.shift);
        for (std::size_t j = 0; j + 1 < grid_.weight.size(); ++j) {
            const double spread = largest_spread(j);
            const double bent = square * (falls + negative * spread);
            const double raised = square * max(grid_.log_curvature + max(grid_.power, 0.0) * spread, 0.0);
            const double one = std::exp(grid_.log_high[j] - log_moment),
                         other = std::exp(grid_.log_high[j + 1] - log_moment);
            most_.push_back(0.5 * grid_.step * (one + other) * std::exp(bent) * up);
            least_.push_back(grid_.step *
                             std::exp(0.5 * (grid_.log_low[j] + grid_.log_low[j + 1]) - log_moment - raised) * down);
        }
    }

    // An upper bound of log |M(c + i omega')| - log_moment for all omega' >= omega, never positive.
    double log_bound(double omega) const {
        const std::size_t n = grid_.weight.size();
        if (n < 2) return 0.0;
        double by_all = outside_, by_rest = 1.0 + 2.0 * outside_, low = height(0, omega);
        const double first = low;
        for (std::size_t j = 0; j + 1 < n; ++j) {
            const double high = height(j + 1, omega);
            const double factor = std::exp(min(growth(j, low, high, omega), 700.0)) * (1.0 + 1e-12);
            by_all += most_[j] * factor;
            by_rest += factor < 1.0 ? -least_[j] * (1.0 - factor) : most_[j] * (factor - 1.0);
            low = high;
        }
        const double ends = end(0, first) + end(n - 1, low);
        const double bound = min(by_all, by_rest) + ends + 1e-13;
        return min(std::log(bound) + 1e-12, 0.0);
    }

  private:
    static constexpr double highest = 2.5;  // below pi, where 1 + z may vanish

    double height(std::size_t j, double omega) const {
        const double w = grid_.weight[j], r = grid_.shift;
        const double bend =
            (1.0 + r * r * (1.0 - w) * (1.0 - w)) / (r * r) + 2.0 * max(-grid_.power, 0.0) * w * (1.0 - w);
        return min(omega * w / bend, highest);
    }
    // The largest w (1 - w) in a cell; w rises.
    double largest_spread(std::size_t j) const {
        const double a = grid_.weight[j], b = grid_.weight[j + 1];
        return a < 0.5 && b > 0.5 ? 0.25 : max(a * (1.0 - a), b * (1.0 - b)) * up;
    }
    // Of the logarithm of f (1 + z)^p e^{i omega log(1 + z)} in a cell, whose path goes from height
    // `one` to `other`.
    double growth(std::size_t j, double one, double other, double omega) const {
        const double least = min(one, other), most = max(one, other), w = grid_.weight[j];
        // The angle of 1 - w + w e^{i eta} rises with w, and with eta up to some point, then falls.
        const auto angle_at = [w](double eta) { return std::atan2(w * std::sin(eta), 1.0 - w + w * std::cos(eta)); };
        const double angle = min(angle_at(least), angle_at(most)) * (1.0 - 1e-12);
        const double slope = (most - least) / grid_.step;
        return grown(largest_spread(j), most) - omega * angle + 0.5 * std::log1p(slope * slope);
    }
    double grown(double spread, double height) const {
        const double square = 1.0 - 2.0 * spread * (1.0 - std::cos(height));
        const double lost = grid_.power < 0.0 ? 0.5 * grid_.power * std::log(max(square, 1e-3)) : 0.0;
        return 0.5 * (height / grid_.shift) * (height / grid_.shift) + lost;
    }
    // The way up to the path at an end.
    double end(std::size_t j, double height) const {
        const double spread = j == 0 ? largest_spread(0) : largest_spread(j - 1);
        return height * std::exp(min(grid_.log_high[j] - log_moment_ + grown(spread, height), 700.0));
    }

    IntegrandOnGrid grid_;
    double log_moment_, outside_;
    std::vector<double> most_, least_;  // bounds of the cells' integrals over M(c)
};

// The cumulant of a Poisson sample of a composition with a Gaussian part.
//
// Let f be the density under Q of the composition's loss l = log dP0/dQ0. The sample's loss is
// +-log(1 + z), z = q (e^l - 1), and its M(s) is the integral of f (1 + z)^p, p = s + 1 where a
// record is removed and p = -s where one is added. Points l_j at equal distances h with the masses
// h f(l_j) serve as a law on points (cumulant/loss_points.hpp): f is a mixture of Gaussians of
// variance r^2 and so grows off the real line by at most e^{y^2/2 r^2}. docs/core/composed.md has
// the bound.
//
// The range of l leaves out less than the cutoff allows, of P and of Q. Where a tilt or a frequency
// needs a fine grid, points are those where the integrand at Im s = 0 matters.
class ComposedCumulant final : public PointCumulant {
  public:
    // `forward`: the transform is that of l under P, else of -l under Q.
    // The losses of the other parts than the Gaussian lie in an interval of length `rest_range`.
    // What lies beyond the cutoff is at most e^{-cutoff^2/2} of P and of Q; a cutoff beyond 60, far
    // below the doubles, is 60.
    ComposedCumulant(ComposedTransform transform, SampledFrom sample, double rest_range, double cutoff,
                     const CumulantTools& tools)
        : PointCumulant(*tools.kernels, tools.workspace), density_(std::move(transform)), sample_(sample),
          rest_range_(rest_range), log_left_out_(-0.5 * min(cutoff, deepest) * min(cutoff, deepest) - 0.7) {
        const double wanted = widest_step * density_.shift();
        step_ = std::exp2(std::floor(std::log2(wanted)));
        for (const double finer : {1.75, 1.5, 1.25})  // few digits: all points are exact
            if (finer * step_ <= wanted) {
                step_ *= finer;
                break;
            }
        const double low = sample.forward() ? -reach(false) : -reach(true),
                     high = sample.forward() ? reach(true) : reach(false);
        first_ = std::floor(low / step_), cells_ = static_cast<std::size_t>(min(std::ceil(high / step_) - first_, 1e6));
        for (std::size_t j = 0; j < cells_ + 2; ++j)
            base_.push_back(log_density((first_ + static_cast<double>(j) - 0.5) * step_));
        base_has_digits_ = std::all_of(base_.begin(), base_.end(), has_digits);
    }

    double log_decay(double c, double omega) const override {
        const Decay& d = decay(c);
        const double by_path = min(d.path.log_bound(omega) + d.slack, 0.0);
        if (!(omega < d.grid.end())) return by_path;
        return min(by_path, max(d.grid.log_bound(omega), min(d.path_at_end + d.slack, 0.0)));
    }
    double log_missing() const override { return log_left_out_ + 0.7; }

  protected:
    Law law(double c, double omega) const override {
        const double power = sample_.forward() ? c + 1.0 : -c;
        if (!base_has_digits_) return {nullptr, infinity, 1.0};
        Grid all{0, cells_, 0};
        double log_error = choose_level(all, power, omega);
        if (cells_ << all.level <= few_points) return {points(all), log_error, gap(all)};
        Grid part = relevant_cells(power);
        log_error = choose_level(part, power, omega);
        if ((part.end - part.begin) << part.level > most_points) return {nullptr, infinity, 1.0};
        return {points(part), log_error, 1.0};
    }

  private:
    static constexpr double widest_step = 0.7;  // over the Gaussian part's shift
    static constexpr double deepest = 60.0;
    static constexpr double depth = 46.0;  // e^-46 of an integral is its quadrature's error
    static constexpr std::size_t few_points = 1024, most_points = 30000, most_kept = 6, rounding_of_cells = 4;
    static constexpr int most_levels = 12;
    static constexpr std::size_t decay_cells = 48;

    // Cells from `begin` to `end`, each with 2^level points.
    struct Grid {
        std::size_t begin, end;
        int level;
        bool operator==(const Grid& o) const { return begin == o.begin && end == o.end && level == o.level; }
    };

    // A loss above which P, or one below whose negative Q, has less than e^{log_left_out} by
    // Chernoff's bound. The other law has less there.
    double reach(bool above) const {
        double best = infinity;
        for (double c = 1.0 / density_.deviation(); c < 200.0 / density_.deviation(); c *= 1.05) {
            const Cumulant::Moment m = density_.moment(above ? c : -1.0 - c);
            best = min(best, (m.value + m.error - log_left_out_) / c);
        }
        return best;
    }

    // Far out, where the cutoff lets the range end, a density may be lost in its errors. Then
    // nothing is known.
    static bool has_digits(const LogValue& found) { return found.error < 1e-3; }

    // log f(l), f the density under Q.
    LogValue log_density(double l) const {
        LogValue found = density_.at(sample_.forward() ? l : -l, ComposedTransform::Kernel::density);
        if (sample_.forward()) found.log_value -= l, found.error += unit_roundoff * std::fabs(found.log_value);
        return found;
    }
    double middle(std::size_t cell) const { return (first_ + static_cast<double>(cell) + 0.5) * step_; }
    double boundary(std::size_t cell) const { return (first_ + static_cast<double>(cell)) * step_; }

    // log of f (1 + z)^power at a cell's middle, rounded up; cell -1 and cell `cells_` are known.
    double log_integrand(std::size_t cell_above, double power) const {
        const double l = (first_ + static_cast<double>(cell_above) - 0.5) * step_;
        const double product = power * mixed_loss(l, sample_.rate);
        return base_[cell_above].log_value + product + base_[cell_above].error + 1e-12 * (1.0 + std::fabs(product));
    }
    // An upper bound in the whole cell: log f is at most 1/r^2 less curved than a chord, and
    // log(1 + z) by w (1 - w).
    double log_most_in(std::size_t cell, double power) const {
        const double bend = 1.0 / (density_.shift() * density_.shift()) + 0.25 * max(-power, 0.0);
        return max(max(log_integrand(cell, power), log_integrand(cell + 2, power)), log_integrand(cell + 1, power)) +
               0.125 * step_ * step_ * bend;
    }

    // w = q e^l/(1 + z), at most.
    double weight(double l) const {
        if (sample_.rate == 1.0) return 1.0;
        return 1.0 / (1.0 + (1.0 - sample_.rate) / sample_.rate * std::exp(-min(l, 700.0)));
    }

    // The cells outside of which the integrand is negligible.
    Grid relevant_cells(double power) const {
        double top = -infinity;
        for (std::size_t j = 0; j < cells_; ++j) top = max(top, log_integrand(j + 1, power));
        std::size_t begin = 0, end = cells_;
        while (begin + 1 < end && log_integrand(begin + 1, power) < top - depth) ++begin;
        while (end - 1 > begin && log_integrand(end, power) < top - depth) --end;
        begin -= begin % rounding_of_cells;
        return {begin,
                std::min(cells_, end + rounding_of_cells - 1 - (end + rounding_of_cells - 1) % rounding_of_cells), 0};
    }

    // Sets the level that frequencies up to omega need; returns the logarithm of the error.
    double choose_level(Grid& grid, double power, double omega) const {
        const double w = weight(boundary(grid.end)), negative = max(-power, 0.0);
        const double spread = w < 0.5 ? w * (1.0 - w) : 0.25, turn = w <= 0.5 ? w : 1.0;
        double widest = 0.0, angle_of_widest = 1.0;
        for (double angle = 3.0; angle > 1e-9; angle *= 0.8) {
            if (spread * angle * angle > 0.9 && negative > 0.0) continue;
            const double ratio = angle / density_.shift();
            const double growth = 0.5 * ratio * ratio - 0.5 * negative * std::log1p(-min(spread * angle * angle, 0.9)) +
                                  omega * turn * angle;
            const double step = 2.0 * pi * angle / (depth + 1.0 + growth * (1.0 + 1e-9));
            if (step > widest) widest = step, angle_of_widest = angle;
            else if (widest > 0.0) break;
        }
        grid.level = static_cast<int>(std::ceil(max(std::log2(step_ / widest) + 1e-9, 0.0)));
        if (grid.level > most_levels) return infinity;
        double inside = -infinity, outside = -infinity;
        for (std::size_t j = 0; j < cells_; ++j) {
            double& sum = j >= grid.begin && j < grid.end ? inside : outside;
            sum = log_sum(sum, log_most_in(j, power) + std::log(step_));
        }
        const double ends = log_sum(log_most_in(grid.begin, power), log_most_in(grid.end - 1, power));
        return log_sum(log_sum(inside - depth, outside), ends + std::log(2.0 * angle_of_widest / (depth + 1.0))) + 1e-9;
    }

    // By how much the sums of the masses of P and of Q may differ from 1.
    double gap(const Grid& grid) const {
        if (static_cast<std::size_t>(grid.level) < gaps_.size() && gaps_[grid.level] > 0.0) return gaps_[grid.level];
        Grid same = grid;
        const double log_of_one = choose_level(same, 1.0, 0.0), log_of_none = choose_level(same, 0.0, 0.0);
        gaps_.resize(most_levels + 1);
        return gaps_[grid.level] = std::exp(log_of_one) + std::exp(log_of_none) + 4.0 * std::exp(log_missing());
    }

    // Null if a density has no digits.
    const LossPoints* points(const Grid& grid) const {
        const auto is_asked = [&grid](const auto& known) { return known.first == grid; };
        const auto known = std::find_if(known_.begin(), known_.end(), is_asked);
        if (known != known_.end()) {
            known_.splice(known_.begin(), known_, known);
        } else {
            if (known_.size() == most_kept) known_.pop_back();
            known_.emplace_front(grid, make_law(grid));
        }
        return known_.front().second ? &known_.front().second->points : nullptr;
    }
    std::unique_ptr<DiscreteLaw> make_law(const Grid& grid) const {
        auto law = std::make_unique<DiscreteLaw>();
        const std::size_t each = std::size_t{1} << grid.level;
        const double h = step_ / static_cast<double>(each), log_h = std::log(h);
        for (std::size_t j = grid.begin; j < grid.end; ++j)
            for (std::size_t k = 0; k < each; ++k) {
                const double l = boundary(j) + h * (static_cast<double>(k) + 0.5);
                const LogValue f = each == 1 ? base_[j + 1] : log_density(l);
                if (!has_digits(f)) return nullptr;
                const double log_q = f.log_value + log_h;
                const double error = f.error + 4.0 * unit_roundoff * (std::fabs(log_h) + std::fabs(log_q));
                law->add(sampled_point(l, log_q, sample_, {0.0, error}));
            }
        law->points.complete();
        return law;
    }

    // A path for all frequencies, and a grid for the small ones.
    struct Decay {
        double c;
        ComposedDecay path;
        PointDecay grid;
        double path_at_end, slack;  // the path's bound is one in units of the largest M(c)
    };

    const Decay& decay(double c) const {
        if (decay_ && decay_->c == c) return *decay_;
        const Moment whole = log_moment(c);
        const Law here = law(c, 0.0);
        decay_ = Decay{c, path_at(c, whole.value + whole.error), {{}, {1.0, 0}}, 0.0, 4.0 * whole.error};
        if (!here.points) return *decay_;
        const DecayGrid grid = DecayGrid::of(deviation(tilt(*here.points, c)), decay_cells);
        const Law far = grid.cells > 0 ? law(c, grid.last()) : Law{nullptr, infinity, 1.0};
        if (!far.points) return *decay_;
        decay_->grid = {transform(tilt(*far.points, c), far.log_error, grid.spacing, grid.cells), grid};
        decay_->path_at_end = decay_->path.log_bound(decay_->grid.end());
        return *decay_;
    }

    ComposedDecay path_at(double c, double log_moment) const {
        const double power = sample_.forward() ? c + 1.0 : -c;
        const Grid part = relevant_cells(power);
        // The two half cells by which the grid reaches beyond the part.
        double log_outside =
            log_sum(log_most_in(part.begin, power), log_most_in(part.end - 1, power)) + std::log(step_);
        for (std::size_t j = 0; j < cells_; ++j)
            if (j < part.begin || j >= part.end)
                log_outside = log_sum(log_outside, log_most_in(j, power) + std::log(step_));
        const double r = density_.shift(), spread = 0.5 * rest_range_ / (r * r);
        IntegrandOnGrid grid{{}, {}, {}, step_, power, r, spread * spread - 1.0 / (r * r)};
        if (!(log_moment < infinity)) return {std::move(grid), 0.0, 0.0};
        // From one middle before the part to one after it: base_ has them.
        for (std::size_t j = part.begin; j < part.end + 2; ++j) {
            const double high = log_integrand(j, power);
            const double product = std::fabs(high - base_[j].log_value);
            grid.weight.push_back(weight((first_ + static_cast<double>(j) - 0.5) * step_));
            grid.log_high.push_back(high);
            grid.log_low.push_back(high - 2.0 * base_[j].error - 4e-12 * (1.0 + product));
        }
        return {std::move(grid), log_moment, log_outside};
    }

    ComposedTransform density_;
    SampledFrom sample_;
    double rest_range_, log_left_out_, step_, first_ = 0.0;
    std::size_t cells_ = 0;
    std::vector<LogValue> base_;  // log f at the cells' middles, from one before the first to one after the last
    bool base_has_digits_ = false;
    mutable std::list<std::pair<Grid, std::unique_ptr<DiscreteLaw>>> known_;  // latest first
    mutable std::vector<double> gaps_;                                        // by level
    mutable std::optional<Decay> decay_;                                      // at the last tilt
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
