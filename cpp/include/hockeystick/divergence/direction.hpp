// In which order the two distributions (P, Q) of a pair are compared.
#pragma once

#include <hockeystick/version.hpp>

namespace hockeystick::divergence {
inline namespace HOCKEYSTICK_ISA {

// A record is removed: P, with the record, against Q, without it. Added: Q against P. Where a
// record is replaced, P is the data set with the one record and Q that with the other.
enum class Direction { remove, add };

inline Direction opposite(Direction direction) {
    return direction == Direction::remove ? Direction::add : Direction::remove;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::divergence
