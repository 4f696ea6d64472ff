// Errors for arguments outside their domain: std::invalid_argument with the argument's name, its
// domain and its value.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// The shortest decimal text that reads back as the same double.
inline std::string shortest_text(double value) {
    char text[32];
    for (int digits = 1; digits <= 17; ++digits) {
        std::snprintf(text, sizeof text, "%.*g", digits, value);
        if (std::strtod(text, nullptr) == value) break;
    }
    return text;
}

// "noise_multiplier must be positive and finite, not -1"
inline void require(bool holds, const char* argument, const char* domain, double value) {
    if (!holds)
        throw std::invalid_argument(std::string(argument) + " must " + domain + ", not " + shortest_text(value));
}

inline void require_probability(const char* argument, double value) {
    require(value >= 0.0 && value <= 1.0, argument, "lie in [0, 1]", value);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
