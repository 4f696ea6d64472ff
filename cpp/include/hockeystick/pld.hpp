// A door: compositions of discretised privacy losses (pld/composition.hpp). Needs pocketfft on the
// include path.
#pragma once

#include <hockeystick/pld/composition.hpp>

namespace hockeystick {

using pld::Composition;
using pld::PldBracket;
using pld::PldSettings;
using pld::Step;

}  // namespace hockeystick
