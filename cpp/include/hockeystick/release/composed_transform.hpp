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
// Cost: some 30 terms for each value, and as many values of the parts' cumulants for each tilt.
#pragma once

#include <cmath>
#include <complex>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
