// A sum whose error does not grow with the number of its terms (Kahan 1965): at most about 2u of the sum of their magnitudes.
//
// It must not be compiled under -ffast-math, which would simplify the correction to 0 (version.hpp refuses).
#pragma once

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

class CompensatedSum {
  public:
    void add(double term) {
        const double corrected = term - lost_, next = sum_ + corrected;
        lost_ = (next - sum_) - corrected;
        sum_ = next;
    }
    double value() const { return sum_; }

  private:
    double sum_ = 0.0, lost_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
