// A law that a user gives, divided by its sum.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/numeric/double_double.hpp>
#include <hockeystick/numeric/require.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// The law, divided by its sum. Without that, each step of a composition would multiply its sum by
// what the law's own sum is off from 1.
inline std::vector<double> normalised(std::vector<double> law) {
    DoubleDouble sum;
    for (const double mass : law) sum.add(mass);
    require(sum.value() > 0.0 && sum.value() < infinity, "law", "have a positive sum", sum.value());
    for (double& mass : law) mass /= sum.value();
    return law;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
