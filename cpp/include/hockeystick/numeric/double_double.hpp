// A sum of doubles as an unevaluated sum of two (Knuth's two-sum): it errs by about 2^-100 of the
// terms' magnitudes.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

class DoubleDouble {
  public:
    void add(double term) {
        const double sum = high_ + term, back = sum - high_;
        low_ += (high_ - (sum - back)) + (term - back);
        high_ = sum;
    }
    double value() const { return high_ + low_; }
    double high() const { return high_; }
    double low() const { return low_; }

  private:
    double high_ = 0.0, low_ = 0.0;
};

// x/y for positive x and y: the least double that is certainly not below the exact quotient if
// `upwards`, else the largest that is certainly not above it. The quotient of the two sums' nearest
// doubles is off by three roundings, each of at most half an ulp of 1: by less than three steps
// from one double to the next.
inline double rounded_quotient(const DoubleDouble& x, const DoubleDouble& y, bool upwards) {
    const double outward = upwards ? infinity : 0.0, inward = upwards ? 0.0 : infinity;
    double quotient = x.value() / y.value();
    for (int k = 0; k < 3; ++k) quotient = std::nextafter(quotient, inward);
    for (int k = 0; k < 6; ++k, quotient = std::nextafter(quotient, outward)) {
        const double high = std::fma(-quotient, y.high(), x.high()), low = std::fma(-quotient, y.low(), x.low());
        const double rounding = one_ulp * (std::fabs(high) + std::fabs(low));  // of either, at most half
        if (upwards ? high + low <= -rounding : high + low >= rounding) break;
    }
    return quotient;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
