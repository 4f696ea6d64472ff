// Steps as Python hands them over, as pairs with their counts; directions and ends as booleans.
#pragma once

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <hockeystick/mechanism/truncated_poisson.hpp>

#include "pybind.hpp"

namespace steps {

// pybind11 can hold only a pointer to a non-constant object. Nothing changes a pair through it.
using Held = std::shared_ptr<hockeystick::mechanism::Pair>;
using Counted = std::vector<std::pair<Held, double>>;

inline Held held(const hockeystick::mechanism::PairPointer& pair) {
    return std::const_pointer_cast<hockeystick::mechanism::Pair>(pair);
}

inline hockeystick::mechanism::Direction direction_of(bool forward) {
    return forward ? hockeystick::mechanism::Direction::remove : hockeystick::mechanism::Direction::add;
}

inline hockeystick::mechanism::End end_of(bool upper) {
    return upper ? hockeystick::mechanism::End::upper : hockeystick::mechanism::End::lower;
}

// How a record differs in a truncated sample: 0 removed, 1 replaced, 2 zeroed out.
inline hockeystick::mechanism::Change change_of(int change) {
    hockeystick::numeric::require(change >= 0 && change <= 2, "change", "be 0, 1 or 2", change);
    return static_cast<hockeystick::mechanism::Change>(change);
}

// What one direction is asked: an epsilon at a delta, or a delta at an epsilon.
inline void require_question(bool for_epsilon, double value) {
    if (for_epsilon) hockeystick::numeric::require_probability("value", value);
    else hockeystick::numeric::require(value == value, "value", "be a number", value);
}

inline hockeystick::mechanism::Steps counted(const Counted& steps) {
    hockeystick::mechanism::Steps result;
    for (const auto& [pair, count] : steps) {
        if (!pair) throw std::invalid_argument("steps must hold pairs, not None");
        hockeystick::numeric::require(hockeystick::numeric::count(count), "count", "be an integer in [1, 2^53]", count);
        result.push_back({pair, count});
    }
    return result;
}

}  // namespace steps
