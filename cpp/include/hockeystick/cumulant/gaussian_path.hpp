// How fast the characteristic function of a piece of Gaussian mixtures decays
// (cumulant/gaussian_piece.hpp has the notation, docs/core/cumulant.md the proof).
//
// The integral of f e^{i omega l} over a range is moved to the path x + i eta(x), which goes
// straight up at the range's ends and runs straight over every cell between. There |f| grows at
// most by
//
//   e^{eta^2/2 + 1.01 eta^2 (p^- V_U + (1-p)^- V_D)},
//
// and e^{i omega l} falls by e^{-omega psi}, psi >= l' eta - K eta^3/(6 - 3 V eta^2), which is not
// negative. So the bound holds for every frequency from omega on. Any heights will do; these are
// near the best ones where omega is small.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Bounds within a cell of x.
struct SurveyCell {
    double upper_variance, lower_variance, cube;  // V_U, V_D and K_U + K_D, at most
    double low_slope, high_slope;                 // of l = log U - log D
};

// What a path may rely on at an end of a cell, on both sides: V and K at most, l' at least.
struct PathEnd {
    double variance, cube, slope;
};

// Bounds of the mass of each cell at one exponent p, in units of e^unit, f at the range's ends,
// and the sum of the bounds from above.
struct PathMasses {
    double p = nan, unit = nan;
    std::vector<double> low, high;
    double first = 0.0, last = 0.0, total = 0.0;
};

// The cells of a range, and the ends between them. No path is higher than `max_height`.
struct PathSurvey {
    const SurveyCell* cells;
    const PathEnd* ends;
    double width, max_height;
};

// What is certainly lost of M, and what is kept at most.
struct Decay {
    double lost = 0.0, kept = 0.0;
};

// Half (V eta^2) stays below 0.37, and K eta^3/(6 - 3 V eta^2) below 0.53 l' eta.
inline double path_height(const PathEnd& end, double max_height, double p, double omega) {
    constexpr double tiny = 1e-300;
    const double by_variance = 0.85 / std::sqrt(end.variance + tiny);
    const double cap = min(min(by_variance, std::sqrt(2.0 * end.slope / (end.cube + tiny))), max_height);
    const double turn = min(end.variance / (end.slope + tiny), 1e100);
    const double share = 1.0 + turn * turn + 2.0 * (max(-p, 0.0) + max(p - 1.0, 0.0)) * end.variance;
    const double wish = omega * end.slope / share;
    return wish / (1.0 + wish / cap);
}

// log of what |f| grows by at the height y, at most.
inline double path_growth(const SurveyCell& cell, double p, double y) {
    return y * y * (0.5 + 1.01 * (max(-p, 0.0) * cell.upper_variance + max(p - 1.0, 0.0) * cell.lower_variance));
}

// psi at the height y, at least. It is concave in y.
inline double path_fall(const SurveyCell& cell, double y) {
    const double variance = max(cell.upper_variance, cell.lower_variance);
    return cell.low_slope * y - cell.cube * y * y * y / (6.0 - 3.0 * variance * y * y);
}

// The integral up to the height y at an end of the range, at most: psi >= y' psi(y)/y at y' <= y.
inline double path_edge(const SurveyCell& cell, double p, double omega, double y, double f) {
    const double rate = y > 0.0 ? omega * path_fall(cell, y) / y : 0.0;
    return f * std::exp(min(path_growth(cell, p, y), 600.0)) * (rate * y > 1.0 ? 1.0 / rate : y);
}

// `ramp` > 0 lets the path rise from height 0 at the low end, within about 1/ramp.
inline Decay bound_on_gaussian_path(const PathSurvey& survey, double p, double omega, const PathMasses& masses,
                                    double ramp) {
    const auto height_at = [&](std::size_t j) {
        const double whole = path_height(survey.ends[j], survey.max_height, p, omega);
        return ramp > 0.0 ? whole * -std::expm1(-ramp * survey.width * static_cast<double>(j)) : whole;
    };
    Decay decay;
    const std::size_t n = masses.low.size();
    double left = height_at(0), edge = path_edge(survey.cells[0], p, omega, left, masses.first);
    for (std::size_t j = 0; j < n; ++j) {
        const SurveyCell& cell = survey.cells[j];
        const double right = height_at(j + 1), higher = max(left, right), slope = (right - left) / survey.width;
        const double fall = min(path_fall(cell, left), path_fall(cell, right));
        if (!(fall >= 0.0)) return {-infinity, infinity};  // no bound for larger frequencies
        const double power = path_growth(cell, p, higher) + 0.5 * std::log1p(slope * slope) - omega * fall;
        const double excess = std::expm1(min(power, 600.0));
        decay.lost -= excess * (excess < 0.0 ? masses.low[j] : masses.high[j]);
        decay.kept += (1.0 + excess) * masses.high[j];
        left = right;
    }
    edge += path_edge(survey.cells[n - 1], p, omega, left, masses.last);
    return {decay.lost - edge, decay.kept + edge};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
