// The contour sum over the nodes of one line, and what truncation, rounding and smoothing add to
// it.
//
//   S = (h/pi) (F_0/2 + sum_{k >= 1} Re F_k),
//   F_k = phi(k h)^T e^{-i k h eps}/(s_k (s_k + 1)),
//   s_k = c + i k h,   phi(omega) = M(c + i omega)/M(c),
//
// in units of e^{K(c) - c eps}. But for truncation and rounding, S is an upper bound of delta (c >
// 0) or of 1 - delta (c < 0). docs/core/contour.md has the theorems.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/contour/line_choice.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/numeric/rounding.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace simd;

struct LineSum {
    double log_unit;      // everything else is in units of e^{log_unit}
    double value, slope;  // of delta, or of 1 - delta; its derivative by eps
    double truncation, rounding;

    double error() const { return truncation + rounding; }
    // S is a sum of terms >= 0 but for these errors: where it is negative beyond them, something is
    // wrong.
    bool possible() const { return value + truncation + rounding >= 0.0; }
};

// Takes one sum after the other in the same memory. Not for several threads at once.
class LineSummer {
  public:
    explicit LineSummer(const simd::Kernels& kernels) : kernels_(kernels) {}

    // S, without the aliases n < 0 where they are known.
    LineSum operator()(const Line& line, double eps) {
        LineSum s = sum(line, eps, line.nodes->kernel);
        subtract_known_aliases(line, eps, s);
        return s;
    }

    // The same sum without 1/(s (s + 1)): the density of the smoothed loss.
    LineSum density(const Line& line, double eps) { return sum(line, eps, line.nodes->density); }

    // The eps where the sum is nearly delta, one step of Newton's iteration away; infinity where it
    // is not found.
    double root(const Line& line, double log_delta, double start) {
        const auto f = [&](double eps) {
            const LineSum s = (*this)(line, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        try {
            const double guess = line.ledger->expected_epsilon(line.tilt_index, line.repeated, log_delta);
            const double from = guess > 0.3 * start && guess < start ? guess : start;
            const double near = newton_root(f, from, -infinity, infinity, false, 1e-5 * start);
            return near > 0.1 * start ? near : newton_root(f, near, -infinity, infinity, false, 1e-9 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    double work() const { return work_; }  // nodes visited so far
    std::size_t bytes() const { return 3 * terms_.capacity() * sizeof(double); }

  private:
    LineSum sum(const Line& line, double eps, const LineNodes::Factors& factors) {
        const LineNodes& t = *line.nodes;
        const std::size_t n = t.padded;
        for (auto* array : {&terms_, &slopes_, &errors_})
            if (array->size() < n) array->resize(n);  // only grow: resizing up and down fills with zeros
        const simd::Nodes nodes{t.phi.log_abs.data(),
                                t.phi.phase.data(),
                                t.phi.error.data(),
                                factors.real.data(),
                                factors.imag.data(),
                                factors.size.data(),
                                t.c,
                                t.h,
                                n};
        work_ += static_cast<double>(n);
        kernels_.fill_sum_terms(nodes, line.repeated.times, eps, terms_.data(), slopes_.data(), errors_.data());
        const double value = kernels_.sum(terms_.data(), n);
        const double slope = kernels_.sum(slopes_.data(), n);
        const double error = kernels_.sum(errors_.data(), n) * (1.0 + 1e-9);
        return with_errors(line, eps, value, slope, error);
    }

    // The unit e^{K(c) - c eps} errs as K does, times T, and by the roundings of the sum in its
    // exponent.
    static LineSum with_errors(const Line& line, double eps, double value, double slope, double error) {
        const LineNodes& t = *line.nodes;
        const TiltedMoment& m = line.moment();
        const double sign = t.c > 0.0 ? 1.0 : -1.0, scale = t.h / pi;
        const double power = line.repeated.times * m.value, smoothed = log_smoothing(t.c, line.repeated);
        const double sizes = std::fabs(power) + std::fabs(smoothed) + std::fabs(t.c * eps) + 8.0;
        const double unit_error = line.repeated.times * m.error + 4.0 * unit_roundoff * sizes;
        LineSum s;
        s.log_unit = power + smoothed - t.c * eps;
        s.value = sign * scale * value;
        s.slope = -sign * scale * slope;
        const double truncation = std::exp(line.log_decay) / (pi * static_cast<double>(t.n - 1) * t.h);
        s.truncation = truncation * std::exp(unit_error);
        s.rounding = scale * error + 1.01 * std::expm1(unit_error) * (std::fabs(s.value) + scale * error);
        return s;
    }

    // Where eps - D lies below all losses, delta(eps - n D) = 1 - e^{eps - n D}. The aliases n < 0
    // are then known, sum_{n >= 1} e^{-c n D} - e^{eps - (c + 1) n D}, up to T times the mass that
    // the cutoff left out.
    static void subtract_known_aliases(const Line& line, double eps, LineSum& s) {
        const double c = line.nodes->c, period = line.period();
        if (period < AliasedSum{*line.ledger, line.tilt_index, line.repeated, eps}.known_period()) return;
        const double ones = std::exp(-c * period - s.log_unit) / -std::expm1(-c * period);
        const double tails = std::exp(eps - (c + 1.0) * period - s.log_unit) / -std::expm1(-(c + 1.0) * period);
        s.value -= ones - tails;
        s.slope += tails;
        const double missing = line.repeated.times * std::exp(line.ledger->log_missing());
        const double sizes = 8.0 + (c + 1.0) * period + std::fabs(eps) + std::fabs(s.log_unit);
        s.rounding += (ones + tails) * (1.01 * missing + 4.0 * unit_roundoff * sizes);
    }

    const simd::Kernels& kernels_;
    std::vector<double> terms_, slopes_, errors_;
    double work_ = 0.0;
};

// The alias of that sum, in its units.
inline double alias_error(const Line& line, double eps, double log_unit) {
    return alias_error({*line.ledger, line.tilt_index, line.repeated, eps}, line.period(), log_unit);
}

// Smoothing: one more Gaussian step of a small shift tau, which makes the terms of a contour sum
// decay.
//
// The characteristic function of a loss with atoms does not decay. With the step, the terms fall
// like e^{-tau^2 omega^2/2}. The step raises delta, by no more than tau^2 e^{tau^2/8} p(eps), p the
// density of the smoothed loss (docs/core/contour.md, "Smoothing"). That is second order in tau
// wherever the loss has a density of its own.

// What smoothing may widen a bracket by, relatively, and how many nodes are worth it. The first is
// for laws on points whose own decay is known far out: no more smoothing than the rest needs. The
// last is for atoms that lie far apart.
struct SmoothingWidth {
    double value, max_nodes;
    bool least = false;
};
inline constexpr SmoothingWidth smoothing_widths[] = {
    {5e-7, 1024.0, true}, {5e-7, 16384.0}, {1e-5, 32768.0}, {1e-4, infinity}, {4e-6, infinity}};

// The shift of the step that widens a bracket at tilt c by `width`, relatively, where p = c (c + 1)
// delta, as it nearly is at the saddle point. A power of sqrt 2, so that nodes may be shared; 0 for
// width 0.
inline double smoothing_for(double c, double width) {
    return width > 0.0 ? std::exp2(0.5 * std::floor(std::log2(width / std::fabs(c * (c + 1.0))))) : 0.0;
}

// At most that shift, but no more than leaves e^-50 at `decay_end`, from where on nothing is known
// of the law's own decay; 0 where it would have to be more.
inline double least_smoothing_for(double c, double width, double decay_end) {
    const double most = smoothing_for(c, width), least = 10.0 / decay_end;
    return least <= most && least > 0.0 ? min(most, std::exp2(0.5 * std::ceil(2.0 * std::log2(least)))) : 0.0;
}

// The shift of a kind of step at one of the ledger's tilts.
inline double smoothing_at(const TruncatedLedger& ledger, int tilt_index, const SmoothingWidth& kind, double width) {
    const double c = TiltGrid::tilt(tilt_index);
    return kind.least ? least_smoothing_for(c, width, ledger.decay_end(tilt_index)) : smoothing_for(c, width);
}

// What smoothing adds to delta, at most, in units of e^{log_unit}: p is the line's integral without
// 1/(s (s + 1)). The integral of e^{-tau^2 omega^2/2} beyond omega is less than that exponential
// over tau^2 omega.
inline double smoothing_error(LineSummer& summer, const Line& line, double eps) {
    const double variance = line.repeated.smoothing * line.repeated.smoothing;
    if (variance == 0.0) return 0.0;
    const LineSum density = summer.density(line, eps);
    const double value = (line.nodes->c > 0.0 ? density.value : -density.value) + density.rounding;
    const double bound = max(variance * value + density.truncation, 0.0);
    return std::exp(0.125 * variance) * bound * (1.0 + 1e-12);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
