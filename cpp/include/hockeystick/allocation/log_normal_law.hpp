// The law of one log-normal X = e^{r z - r^2/2}, z standard normal, on a grid
// (allocation/lattice_law.hpp).
//
// Each cell between two points of the grid has a mass, and means above its lower and below its
// upper end, by Gauss's rule with eight nodes on pieces across which the density changes by a
// factor of e^2 at most: the rule errs by less than 1e-16 of itself. From there on digits are lost
// to the place z of an end, which errs by u (4 |z| + 2 r); docs/core/allocation.md has the sum.
// Every mass is moved by its own error, up if spread and down if merged.
#pragma once

#include <hockeystick/allocation/lattice_law.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

inline constexpr double max_quantile = 26.0;  // in normal quantiles: masses near 1e-149

// What lies between two values: its mass, and its mean above the lower and below the upper one.
struct RatioCell {
    double mass = 0.0, above = 0.0, below = 0.0;
    double error = 0.0;  // relative, of all three
};

class LogNormalLaw {
  public:
    LogNormalLaw(double r, Form form) : r_(r), law_(grid_for(bulk(r), 1.0), form), rule_(gauss_legendre(8)) {
        place_points();
        add_lowest();
        for (std::size_t k = 1; k < points_.size(); ++k) add_cell(k);
        if (form == Form::spread) add_highest();
        law_.errors.value += sixteen_roundings;
    }
    LatticeLaw take() { return std::move(law_); }

  private:
    struct Point {
        double value;
        int row, n;
    };

    static double lowest(double r) { return std::exp(-r * max_quantile - 0.5 * r * r); }
    static Bulk bulk(double r) { return {lowest(r), 1.0, r}; }
    double quantile(double value) const { return (std::log(value) + 0.5 * r_ * r_) / r_; }

    // The points between the quantiles -26 and 26 + r, and one beyond either.
    void place_points() {
        const LatticeGrid& grid = law_.grid();
        const double low = lowest(r_), high = std::exp(r_ * (max_quantile + r_) - 0.5 * r_ * r_);
        const int last = grid.row_of(high - grid.centre);
        const auto place = [&](int row, int from, int to) {
            for (int n = from; n <= to; ++n) {
                const double value = grid.at(row, n), h = grid.spacing_of(row);
                if (value > max(low - h, 0.0) && value < high + h) points_.push_back({value, row, n});
            }
        };
        if (grid.centre > 0.0) {
            for (int row = last; row > 0; --row) place(row, -grid.half, -grid.half / 2 - 1);
            place(0, -grid.half, -1);
        }
        place(0, 0, grid.half);
        for (int row = 1; row <= last; ++row) place(row, grid.half / 2 + 1, grid.half);
    }

    static double error_at(double z) { return (64.0 + 32.0 * z * z) * unit_roundoff; }

    // A result that errs by a share, towards what the form needs.
    double moved(double value, double error) const { return value * (law_.merged() ? 1.0 - error : 1.0 + error); }

    void add_lowest() {
        const Point& first = points_.front();
        const double z = quantile(first.value), error = error_at(z);
        const double mass = moved(q(-z), error), mean = moved(q(r_ - z), error);
        if (law_.merged()) return law_.put(first.row, first.n, mass, mean);
        law_.add(0.0, mass, 0.0);
        law_.put(first.row, first.n, mean / first.value);
    }

    void add_highest() {
        const Point& last = points_.back();
        const double z = quantile(last.value);
        law_.put(last.row, last.n, moved(q(z), error_at(z)));
        law_.infinite = moved(theta(r_ * z - 0.5 * r_ * r_, r_), error_at(z));
    }

    void add_cell(std::size_t k) {
        const Point &low = points_[k - 1], &high = points_[k];
        const RatioCell cell = integrate(low.value, high.value);
        const double mass = moved(cell.mass, cell.error), above = moved(cell.above, cell.error);
        if (law_.merged()) {
            const double moment = low.value * mass + above;
            law_.errors.value = max(law_.errors.value, 4.0 * cell.error * above / moment);
            return law_.put(low.row, low.n, mass, moment);
        }
        const double width = high.value - low.value;
        law_.put(low.row, low.n, moved(cell.below, cell.error) / width);
        law_.put(high.row, high.n, above / width);
    }

    RatioCell integrate(double low, double high) const {
        const double from = quantile(low), width = quantile(high) - from;
        const double far = max(std::fabs(from), std::fabs(from + width));
        const double pieces = std::ceil(0.5 * width * (2.0 + far)), half = 0.5 * width / pieces;
        RatioCell cell;
        for (double piece = 0.0; piece < pieces; ++piece) {
            for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
                const double above = half * (1.0 + static_cast<double>(rule_.nodes[i]) + 2.0 * piece), z = from + above;
                const double weight =
                    half * static_cast<double>(rule_.weights[i]) * inv_sqrt_2pi * std::exp(-0.5 * z * z);
                cell.mass += weight;
                cell.above += weight * low * std::expm1(r_ * above);
                cell.below -= weight * high * std::expm1(-r_ * (width - above));
            }
        }
        cell.error = error_at(far) + 16.0 * (3.0 * far + r_) / width * unit_roundoff + 16.0 * pieces * unit_roundoff;
        return cell;
    }

    double r_;
    LatticeLaw law_;
    QuadratureRule rule_;
    std::vector<Point> points_;
};

inline LatticeLaw log_normal_law(double r, Form form) { return LogNormalLaw(r, form).take(); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation
