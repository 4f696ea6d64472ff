// The cache of contours (contour/contour_cache.hpp) that all accountants and grids of this process
// share.
#pragma once

#include <hockeystick/contour/contour_cache.hpp>

// Keeps eight pairs of contours and 32 MB at most. It is never destroyed, because a thread may
// still be at work when the process ends.
inline hockeystick::contour::ContourCache& contour_cache() {
    static hockeystick::contour::ContourCache& cache = *new hockeystick::contour::ContourCache(8, 32000000);
    return cache;
}
