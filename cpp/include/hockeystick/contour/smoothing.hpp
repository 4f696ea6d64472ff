// Smoothing: one more Gaussian step of a small shift tau, which makes the terms of a contour sum
// decay.
//
// The characteristic function of a loss with atoms does not decay. With the step, the terms fall
// like e^{-tau^2 omega^2/2}. The step raises delta, by no more than tau^2 e^{tau^2/8} p(eps), p the
// density of the smoothed loss (docs/core/contour.md, "Smoothing"). That is second order in tau
// wherever the loss has a density of its own.
#pragma once

#include <cmath>

#include <hockeystick/contour/line_sum.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

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
