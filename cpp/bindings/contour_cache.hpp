// The contours that this process keeps between calls, for all accountants and grids.
#pragma once

#include <hockeystick/contour/contour_cache.hpp>

// Never destroyed: a thread may still be at work when the process ends.
inline hockeystick::contour::ContourCache& contour_cache() {
    static hockeystick::contour::ContourCache& cache = *new hockeystick::contour::ContourCache(8, 32000000);
    return cache;
}
