// What the contour engine (contour/contour.hpp) answers.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

struct ContourResult {
    bool usable = false;
    double lower = 0.0, upper = 0.0;          // of delta or epsilon
    double log_lower = 0.0, log_upper = 0.0;  // of delta
    // relative, of delta, or of 1 - delta
    double alias = 0.0, truncation = 0.0, rounding = 0.0, smoothing = 0.0, missing = 0.0;
    std::size_t nodes = 0, slices = 0;  // slices: contour/sliced_contour.hpp
    double tilt = 0.0;

    static ContourResult of_zero() {
        ContourResult r;
        r.usable = true;
        r.log_lower = r.log_upper = -infinity;
        return r;
    }

    // Both ends from their logarithms, rounded outwards; logarithms err by a few u of `log_unit`.
    void set_delta(double log_low, double log_high, double log_unit) {
        constexpr double u = unit_roundoff, least = std::numeric_limits<double>::denorm_min();
        const double of_log = 4.0 * u * (1.0 + std::fabs(log_unit));
        log_lower = min(log_low, 0.0) - of_log;
        log_upper = min(log_high + of_log, 0.0);
        lower = max(std::exp(log_lower) * (1.0 - 4.0 * u) - least, 0.0);
        upper = min(std::exp(log_upper) * (1.0 + 4.0 * u) + least, 1.0);
    }

    double relative_width() const {
        if (upper == lower) return 0.0;
        return upper < 1e-290 ? log_upper - log_lower : (upper - lower) / upper;
    }
    bool narrower_than(double width) const { return usable && relative_width() < width; }
    // Whether more nodes, or others, can help.
    bool by_nodes() const { return alias + truncation + smoothing > 0.1 * (rounding + missing); }
    bool spoilt() const { return rounding > 1e-6; }  // by the cut, where losses up to it are heavy
};

inline const ContourResult& narrower(const ContourResult& x, const ContourResult& y) {
    return !x.usable || (y.usable && y.relative_width() < x.relative_width()) ? y : x;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
