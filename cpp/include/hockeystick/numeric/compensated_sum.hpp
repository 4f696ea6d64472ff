// A sum whose error does not grow with the number of its terms (Kahan 1965): about 2u of the sum of
// their magnitudes. version.hpp refuses flags under which a compiler would simplify the correction
// to 0.
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
