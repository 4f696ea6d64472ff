// A sum of doubles as an unevaluated sum of two (Knuth's two-sum): it errs by about 2^-100 of the
// terms' magnitudes.
#pragma once

#include <cmath>

#include <hockeystick/numeric/elementary.hpp>

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

// x/y for positive x and y, within an ulp of the exact quotient: at least the quotient if
// `upwards`, else at most.
inline double rounded_quotient(const DoubleDouble& x, const DoubleDouble& y, bool upwards) {
    const double quotient = x.value() / y.value();
    const double rest = std::fma(-quotient, y.high(), x.high()) + std::fma(-quotient, y.low(), x.low());
    if (upwards ? rest <= 0.0 : rest >= 0.0) return quotient;
    return std::nextafter(quotient, upwards ? infinity : 0.0);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
