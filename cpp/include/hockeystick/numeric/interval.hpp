// The one certified interval: the true value lies between the ends, rounding included.
#pragma once

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

struct Interval {
    double lower, upper;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
