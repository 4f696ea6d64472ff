// One step alone: its delta is a closed form, and epsilon its root.
//
// Errors: the closed forms are right to 2e-14 (1 + |log delta|), charged as 2e-11; the cut at which they are taken is
// right to a few ulps of eps, and of r^2 for a Gaussian of shift r: charged as a shift of eps by 1e-12 eps + 1e-15 r^2.
#pragma once

#include <hockeystick/discretise.hpp>
#include <hockeystick/root.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {
namespace detail {

// Halves [low, high], predicate(low) true and predicate(high) false, down to neighbours or a part in 2^50.
template <class Predicate> double last_true(const Predicate& predicate, double low, double high) {
    for (int k = 0; k < 200 && high - low > 0x1p-50 * high; ++k) {
        const double middle = 0.5 * (low + high);
        (predicate(middle) ? low : high) = middle;
    }
    return low;
}

// The same, from the other end.
template <class Predicate> double first_false(const Predicate& predicate, double low, double high) {
    for (int k = 0; k < 200 && high - low > 0x1p-50 * high; ++k) {
        const double middle = 0.5 * (low + high);
        (predicate(middle) ? low : high) = middle;
    }
    return high;
}

class ExactStep {
  public:
    explicit ExactStep(const PrivacyLoss& loss) : loss_(loss) {}

    double lower(double eps) const {
        return max(loss_.delta(eps + slack(eps)) * (1.0 - 2e-11) - std::numeric_limits<double>::min(), 0.0);
    }
    double upper(double eps) const {
        return min(loss_.delta(eps - slack(eps)) * (1.0 + 2e-11) + std::numeric_limits<double>::min(), 1.0);
    }

    // Ends of the smallest epsilon >= 0 with delta(epsilon) <= delta, known to be finite.
    Ends epsilon(double delta) const {
        double reach = 1.0;
        while (reach < 0x1p1000 && reach < loss_.highest() && upper(reach) > delta) reach *= 2.0;
        const double high = min(reach, max(loss_.highest(), 0.0) * (1.0 + 1e-14));
        const auto above = [&](double eps) { return upper(eps) > delta; };
        const auto below = [&](double eps) { return lower(eps) > delta; };
        return {below(0.0) ? last_true(below, 0.0, high) : 0.0, above(0.0) ? first_false(above, 0.0, high) : 0.0};
    }

  private:
    double slack(double eps) const { return 1e-12 * eps + 1e-15 * loss_.scale() * loss_.scale(); }

    const PrivacyLoss& loss_;
};

}  // namespace detail
}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
