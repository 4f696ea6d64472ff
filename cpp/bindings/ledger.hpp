// A ledger as the facade hands it over.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <hockeystick/loss/mechanism.hpp>

namespace ledger {

using Entry = std::tuple<std::string, std::vector<double>, double, double>;  // kind, parameters, rate, count

inline hockeystick::loss::Mechanism mechanism_of(const Entry& entry) {
    return {std::get<0>(entry), std::get<1>(entry), std::get<2>(entry)};
}

}  // namespace ledger
