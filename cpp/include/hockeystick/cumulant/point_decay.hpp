// How fast the characteristic function of a law on points falls, as far as a grid of frequencies
// tells. Where all points are atoms it does not fall for good: beyond the grid nothing is known.
//
// docs/core/cumulant.md, "Decay on a grid", has the proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/cumulant/nonuniform_fft.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// How far phi is known at k spacing, k up to `cells`.
struct DecayGrid {
    double spacing;
    std::size_t cells;

    static constexpr double turn_of_cell = 0.3;  // the spacing times the standard deviation of L
    // `cells` cells for a law of this deviation; none where it has none.
    static DecayGrid of(double deviation, std::size_t cells) {
        const double spacing = turn_of_cell / deviation;
        return {spacing, deviation > 0.0 && spacing < 1e100 ? cells : 0};
    }
    double last() const { return spacing * static_cast<double>(cells); }
};

// Bounds of |phi(omega')| for omega' from omega to a last frequency, by values on a grid of spacing
// g. f = |phi|^2 has |f''| <= E (L - L')^2 = 2 var L. Hence f is at most
// max(f(k g), f((k + 1) g)) + g^2 var/4 between two neighbours.
class PointDecay {
  public:
    // phi - 1 on the grid, k = 0, ..., grid.cells; empty where it is not known.
    PointDecay(const FourierSums& phi, const DecayGrid& grid) : spacing_(grid.spacing) {
        if (phi.real.empty() || grid.cells == 0) return;
        log_bounds_.assign(grid.cells, 0.0);
        const auto square = [&](std::size_t k) {
            const double size = std::hypot(1.0 + phi.real[k], phi.imag[k]) + phi.error[k];
            return size * size * (1.0 + 1e-12);
        };
        constexpr double between = 0.25 * DecayGrid::turn_of_cell * DecayGrid::turn_of_cell * (1.0 + 1e-4);
        double largest = 0.0, next = square(grid.cells);
        for (std::size_t k = grid.cells; k-- > 0;) {
            const double here = square(k);
            largest = max(largest, max(here, next) + between);
            log_bounds_[k] = min(0.5 * std::log(largest) + 1e-15, 0.0);
            next = here;
        }
    }

    double end() const { return spacing_ * static_cast<double>(log_bounds_.size()) * (1.0 - 1e-9); }
    // From omega to end(); 0 from end() on.
    double log_bound(double omega) const {
        if (!(omega < end())) return 0.0;
        return log_bounds_[static_cast<std::size_t>(omega / spacing_ * (1.0 - 1e-9))];
    }

  private:
    double spacing_;
    std::vector<double> log_bounds_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
