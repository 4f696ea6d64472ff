// A door: the accountant (accounting/accountant.hpp), as hockeystick::Accountant. Needs pocketfft on the include path.
#pragma once

#include <hockeystick/accounting/accountant.hpp>

namespace hockeystick {

using accounting::Accountant;
using loss::Mechanism;
using numeric::Interval;

}  // namespace hockeystick
