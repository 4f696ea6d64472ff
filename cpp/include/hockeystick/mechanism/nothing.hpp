// The pair P = Q, of a release that does not depend on the record.
#pragma once

#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/mechanism/pair.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

class Nothing final : public Pair {
  public:
    Loss loss(Direction) const override { return std::make_shared<DiscreteLoss>(std::vector{1.0}, std::vector{1.0}); }
    bool leaks() const override { return false; }
    double renyi(double, double, Direction) const override { return 0.0; }
    double concentrated_shift() const override { return 0.0; }
    double dominating_shift() const override { return 0.0; }
    PairPointer sampled(double, End) const override { return shared_from_this(); }
    PairPointer sampled_and_replaced(double, End) const override { return shared_from_this(); }
    std::vector<double> parameters() const override { return {}; }
};

inline PairPointer nothing() { return made<Nothing>(); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
