// The law of a sum S of likelihood ratios (each of mean 1 under Q) on a grid, above or below the
// true one in convex order.
//
// The grid. Row 0 holds the 2 half + 1 points centre + n spacing, |n| <= half. Row j > 0 has twice
// the spacing of row j - 1 and holds the points with half/2 < |n| <= half: the grid gets coarser
// away from the centre, and the points of a row are also points of all rows below it. Spacings and
// `half` are powers of two, and the centre is a multiple of the first spacing, so that places on
// the grid are exact.
//
// An atom between two points becomes part of the law in one of two ways:
//
//   spread   It is split between both points, such that mass and mean are kept: larger in convex
//            order. Where the lower point is negative, 0 takes its place.
//   merged   It joins the outcomes that carry the label of the point below it. A label stands for
//            one outcome, of their mean value: smaller in convex order, whatever the labels.
//
// Differences of ratios (allocation/replaced_sums.hpp) have signs, and 0 is a value like others.
// docs/core/allocation.md proves what follows from that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

enum class Form { spread, merged };

// std::ldexp(1, n) and std::ilogb(x), of normal numbers: they are needed for every atom.
inline double power_of_two(int n) { return from_bits(static_cast<std::uint64_t>(n + 1023) << 52); }
inline int exponent(double x) { return static_cast<int>(to_bits(x) >> 52 & 0x7ff) - 1023; }

struct LatticeGrid {
    double centre, spacing;
    int half;

    double spacing_of(int row) const { return spacing * power_of_two(row); }
    double at(int row, int n) const { return centre + n * spacing_of(row); }
    // The first row that reaches as far.
    int row_of(double distance) const {
        const double ratio = std::fabs(distance) / (half * spacing);
        return ratio < 1.0 ? 0 : exponent(ratio) + 1;
    }
};

// The points of a row, n = -half at the front.
struct LatticeRow {
    std::vector<double> mass, moment;  // moment: mass times value, of merged laws only
    std::vector<std::uint32_t> terms;  // how many were added up
    int low = 1, high = 0;             // only points between these two have mass; none if low > high

    bool empty() const { return low > high; }
    void reach(int from, int to) {
        const bool first = empty();
        low = first ? from : std::min(low, from);
        high = first ? to : std::max(high, to);
    }
};

struct Atom {
    double value, mass;
};

// Atoms below this mass are not kept: their products would underflow.
inline constexpr double faint_mass = 1e-150;

// What a law's values may be, and the mass below which an atom is not kept.
struct Values {
    double lowest = 0.0, faint = faint_mass;

    bool have_signs() const { return lowest < 0.0; }
};

// What rounding did, relatively, to masses and to values.
struct LatticeErrors {
    double mass = 0.0, value = 0.0;
};

class LatticeLaw {
  public:
    LatticeLaw(const LatticeGrid& grid, Form form, const Values& values = {})
        : grid_(grid), form_(form), values_(values) {}

    const LatticeGrid& grid() const { return grid_; }
    Form form() const { return form_; }
    const Values& values() const { return values_; }
    bool merged() const { return form_ == Form::merged; }
    const std::vector<LatticeRow>& rows() const { return rows_; }
    std::size_t index(int n) const { return static_cast<std::size_t>(n + grid_.half); }
    std::size_t row_length() const { return 2 * static_cast<std::size_t>(grid_.half) + 1; }

    // The mass at 0 where that is no point of the grid, and the part of the mean at infinity.
    double zero = 0.0, infinite = 0.0;
    LatticeErrors errors;

    // Adds an atom by the rule of the law's form. `moment` is mass times value; spread laws do not
    // read it.
    void add(double value, double mass, double moment) {
        const double distance = value - grid_.centre, far = std::fabs(distance);
        if (!(far >= last_.from && far < last_.to)) last_ = reach_of(grid_.row_of(distance));
        const int row = last_.row,
                  below = std::min(static_cast<int>(distance * last_.per_step + grid_.half), 2 * grid_.half - 1) -
                          grid_.half;
        if (merged()) return put(row, below, mass, moment);
        const double point = grid_.centre + below * last_.spacing, high = grid_.centre + (below + 1) * last_.spacing;
        if (value == point && point >= values_.lowest) return put(row, below, mass);
        const double low = max(point, values_.lowest);
        if (value >= high) return put(row, below + 1, mass);  // off by a rounding
        const double lower = value <= low ? mass : mass * ((high - value) / (high - low));
        if (point >= values_.lowest) put(row, below, lower);
        else send_to_zero(lower, 0.0);
        if (value > low) put(row, below + 1, mass * ((value - low) / (high - low)));
    }

    // The same, unless the atom is too faint to be kept.
    void add_or_drop(double value, double mass, double moment) {
        if (mass >= values_.faint && value >= values_.lowest) add(value, mass, moment);
        else if (!merged()) send_to_zero(mass, mass * max(value, 0.0));
    }

    // Adds mass to a point, perhaps one of a lower row.
    void put(int row, int n, double mass, double moment = 0.0) {
        for (; row > 0 && 2 * std::abs(n) <= grid_.half; --row) n *= 2;
        LatticeRow& to = at_least(static_cast<std::size_t>(row));
        const std::size_t i = index(n);
        to.mass[i] += mass;
        if (merged()) to.moment[i] += moment;
        ++to.terms[i];
        to.reach(n, n);
    }

    // Splits an atom between 0 and infinity: larger in convex order, too. Below 0 it only rises.
    void send_to_zero(double mass, double moment) {
        zero += mass;
        infinite += moment;
    }

    // The terms of the point that has the most.
    double max_terms() const {
        std::uint32_t most = 0;
        for (const LatticeRow& row : rows_)
            for (const std::uint32_t terms : row.terms) most = std::max(most, terms);
        return most;
    }

    // All atoms but `zero`; their values increase, but for labels that overlap.
    std::vector<Atom> atoms() const {
        std::vector<Atom> found;
        const int half = grid_.half;
        for (std::size_t j = rows_.size(); j-- > 1;) append_atoms(found, j, -half, -1);
        if (!rows_.empty()) append_atoms(found, 0, -half, half);
        for (std::size_t j = 1; j < rows_.size(); ++j) append_atoms(found, j, 1, half);
        return found;
    }

  private:
    // A row, and the distances from the centre that it has. Most atoms lie in the row of the one before.
    struct Reach {
        double from = 0.0, to = 0.0, spacing = 0.0, per_step = 0.0;
        int row = 0;
    };
    Reach reach_of(int row) const {
        const double spacing = grid_.spacing_of(row), to = spacing * grid_.half;
        return {row > 0 ? 0.5 * to : 0.0, to, spacing, 1.0 / spacing, row};
    }

    LatticeRow& at_least(std::size_t row) {
        while (rows_.size() <= row) {
            rows_.emplace_back();
            rows_.back().mass.assign(row_length(), 0.0);
            rows_.back().terms.assign(row_length(), 0);
            if (merged()) rows_.back().moment.assign(row_length(), 0.0);
        }
        return rows_[row];
    }

    void append_atoms(std::vector<Atom>& found, std::size_t j, int from, int to) const {
        const LatticeRow& row = rows_[j];
        for (int n = std::max(from, row.low); n <= std::min(to, row.high); ++n) {
            const double mass = row.mass[index(n)];
            if (!(mass > 0.0)) continue;
            found.push_back({merged() ? row.moment[index(n)] / mass : grid_.at(static_cast<int>(j), n), mass});
        }
    }

    LatticeGrid grid_;
    Form form_;
    Values values_;
    Reach last_;
    std::vector<LatticeRow> rows_;
};

// Where the bulk of a law lies.
struct Bulk {
    double lowest, median, scale;  // least value above 0, half of what two thirds of the mass span
};

// The mean distance from the median, no distance counted as more than the median's from 0.
inline double mean_distance(const std::vector<Atom>& atoms, double zero, double median) {
    double sum = zero * std::fabs(median);
    for (const Atom& atom : atoms) sum += atom.mass * min(std::fabs(atom.value - median), std::fabs(median));
    return sum;
}

// Of atoms whose values increase, beside the mass `zero` at 0. Where nearly all mass is at one
// value, the distances of the rest make the scale. Any positive numbers are sound; with signs, any
// median.
inline Bulk bulk_of(const std::vector<Atom>& atoms, double zero, bool with_signs = false) {
    const double shares[3] = {0.16, 0.5, 0.84};
    double values[3] = {}, sum = zero;
    std::size_t next = 0;
    for (const Atom& atom : atoms) {
        sum += atom.mass;
        while (next < 3 && sum >= shares[next]) values[next++] = atom.value;
    }
    const auto positive = std::find_if(atoms.begin(), atoms.end(), [](const Atom& atom) { return atom.value > 0.0; });
    const double lowest = positive == atoms.end() ? 1.0 : positive->value, median = values[1];
    const double span = 0.5 * (values[2] - values[0]), distance = mean_distance(atoms, zero, median);
    if (!(median > 0.0) && !(with_signs && (median < 0.0 || span > 0.0))) return {lowest, 1.0, 1.0};
    if (span > 0.01 * distance) return {lowest, median, span};
    return {lowest, median, max(0.125 * distance, 1e-9 * std::fabs(median))};
}

inline Bulk bulk_of(const LatticeLaw& law) { return bulk_of(law.atoms(), law.zero, law.values().have_signs()); }

inline constexpr double few_summands = 64.0;
inline constexpr double bulk_steps = 50.0;      // grid steps in the scale of the bulk, at least
inline constexpr double relative_steps = 64.0;  // the same where the grid's centre is 0
inline constexpr double dispersed = 0.35;       // a scale that is larger, relative to the median, is a wide law's

// A grid around the median. If that is not too far away, 0 is one of its points: then what is
// near 0 need not be sent to 0 and infinity.
inline LatticeGrid narrow_grid(double spacing, int half, const Bulk& bulk) {
    LatticeGrid grid{bulk.median, spacing, half};
    double unit = grid.spacing_of(grid.row_of(bulk.median));
    if (unit > 0.5 * bulk.scale) unit = spacing;
    grid.centre = unit * std::round(bulk.median / unit);
    return grid;
}

// Of differences F - c G. Those of a narrow law are dense at its median, wherever 0 is, those of a
// wide one at 0: where F is large and c G no larger, both are far from the median. Values of F that
// matter there are not below 1.
inline LatticeGrid grid_with_signs(const Bulk& bulk, int half) {
    const double spacing = std::ldexp(1.0, std::ilogb(bulk.scale / bulk_steps));
    if (bulk.scale <= dispersed * std::fabs(bulk.median)) return narrow_grid(spacing, half, bulk);
    return {0.0, min(spacing, 1.0 / half), half};
}

// Any grid is sound. The points of a wide law, whose values span orders of magnitude, are at equal
// steps of their logarithm, roughly: the centre is 0. Those of a narrow law are dense at its
// median. Sums of few are cheap, and get more points in the tails.
inline LatticeGrid grid_for(const Bulk& bulk, double count) {
    const double ratio = bulk.scale / bulk.median;
    if (ratio > dispersed) {
        const int half = 1 << std::ilogb(1.7 * relative_steps / min(ratio, 1.0));
        return {0.0, std::ldexp(1.0, std::ilogb(2.0 * bulk.lowest / half)), half};
    }
    return narrow_grid(std::ldexp(1.0, std::ilogb(bulk.scale / bulk_steps)), count <= few_summands ? 256 : 128, bulk);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation
