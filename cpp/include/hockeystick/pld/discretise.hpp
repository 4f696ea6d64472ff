// One step's privacy loss on the grid offset + i h: a measure that can only raise delta, and one
// that can only lower it. Both are of second order in h. Proofs: docs/core/pld.md, One step on a
// grid.
//
// Cells are (i h, (i+1) h]. A cell has masses p and q of P and Q, a surplus S = p - e^{ih} q >= 0
// and a deficit D = e^{(i+1)h} q - p >= 0.
//
//   raised    The cell becomes two outcomes, of losses i h and (i+1) h and of masses D/(e^h - 1)
//             and S/(1 - e^{-h}) of P, so that p and q are both kept ("connect the dots":
//             Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). Losses below the first point
//             are raised to it, losses beyond the last one to infinity.
//   lowered   Shares of the cells below and above a point merge into an outcome whose loss is
//             exactly that point. What finds no partner is rounded down. Losses beyond the last
//             point are lowered to it, losses below the first one to -infinity.
//
// The offset puts an atom, or what comes close to one, on the grid.
//
// Error: the cells are those of a pair whose one-step curve differs from the true one by at most
// four times the largest `errors[k]`, k >= i, at the point i. Besides, S and D err by `cell_error`
// p.
// Cost: one call of `masses` a point.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <hockeystick/loss/privacy_loss.hpp>
#include <hockeystick/numeric/fft.hpp>
#include <hockeystick/numeric/work_budget.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace loss;

struct GridMeasure {
    std::vector<double> masses;
    double infinite = 0.0;  // mass at +inf
};

struct GridLoss {
    std::int64_t first = 0;  // the loss of masses[i] is offset + (first + i) h
    double offset = 0.0;
    GridMeasure raised, lowered;
    std::vector<double> errors;   // of the curve of either measure
    double infinite_error = 0.0;  // relative, of the loss's own mass at +inf
};

// The relative error of a composition's mass at infinity, 1 - prod (1 - p_j)^{T_j}, for p_j that
// err by at most `of_one`: it is concave in each p_j and 0 at 0, so that an error of p_j counts at
// most once; a logarithm and a sum add up.
inline double infinite_error_of(double of_one, std::size_t steps) {
    return max(infinite_mass_error, of_one + (8.0 + static_cast<double>(steps)) * unit_roundoff);
}

inline constexpr double least_known_mass = 1e-290;  // of Q: the ratio of a smaller mass is not known

struct Cell {
    double p, surplus, deficit;  // S and D above
};

// The error of S and D, over p. It moves a mass of cell_error p/h to the next point, or to the
// third one in the lowered measure.
inline double cell_error(double loss) { return 256.0 * unit_roundoff * (1.0 + std::fabs(loss)); }

// The rounding error of the smaller tail at a cut (loss/privacy_loss.hpp, Errors).
inline double tail_error(double below, double above, double scale) {
    const double tail = below < above ? below : above;
    const double digits = tail > 0.0 ? 32.0 - 17.0 * std::ilogb(tail) : 32.0;  // 24 log 2 < 17
    return unit_roundoff * (1.0 + scale) * digits * tail + 2.0 * std::numeric_limits<double>::min();
}

inline double between(double below_left, double above_left, double below_right, double above_right) {
    const double mass = above_left <= 0.5 ? above_left - above_right : below_right - below_left;
    return mass > 0.0 ? mass : 0.0;
}

// The cell between two points. `low_ratio` and `high_ratio` are e^loss and e^{loss + h}, infinite
// from 690 on. Where q underflows nothing is known of the ratio, and S = D = 0.
inline Cell make_cell(const LossMasses& left, const LossMasses& right, double loss, double low_ratio,
                      double high_ratio) {
    const double p = between(left.p_below, left.p_above, right.p_below, right.p_above);
    const double q = between(left.q_below, left.q_above, right.q_below, right.q_above);
    if (high_ratio == infinity || q < least_known_mass) return {p, 0.0, 0.0};
    const double low = low_ratio * q;
    const double rounding_noise = 64.0 * unit_roundoff * (1.0 + std::fabs(loss)) * p;  // an atom that sits on an end
    const double surplus = p - low;
    const double deficit = high_ratio * q - p;
    return {p, surplus > rounding_noise ? surplus : 0.0, deficit > rounding_noise ? deficit : 0.0};
}

inline void raise_cells(const std::vector<Cell>& cells, double h, std::vector<double>& masses) {
    const double up = -std::expm1(-h), down = std::expm1(h);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const double high = cells[i].surplus / up, low = cells[i].deficit / down;
        const double share = high + low > 0.0 ? low / (high + low) : 0.0;
        masses[i] += share * cells[i].p;
        masses[i + 1] += (1.0 - share) * cells[i].p;
    }
}

// Scans from left to right. What is left of a cell merges into the point above it, with as much of
// the next cell as balances it, then of the one after that. So no outcome moves by more than two
// cells.
inline void lower_cells(const std::vector<Cell>& cells, double h, std::vector<double>& masses) {
    std::vector<double> rest(cells.size(), 1.0);
    const double step = -std::expm1(-h);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const Cell& cell = cells[i];
        const double mass = rest[i] * cell.p;
        if (cell.surplus == 0.0 || cell.deficit == 0.0) {  // its loss is an end of the cell, or unknown
            masses[cell.surplus > 0.0 ? i + 1 : i] += mass;
            continue;
        }
        const double excess = rest[i] * cell.deficit;
        double left = excess;
        for (std::size_t k = i + 1; k < std::min(i + 3, cells.size()) && left > 0.0; ++k) {
            if (cells[k].surplus == 0.0) break;
            const double offer = cells[k].surplus + (k == i + 1 ? 0.0 : step * (cells[k].p - cells[k].surplus));
            const double share = min(left / offer, rest[k]);
            left = share < rest[k] ? 0.0 : max(left - share * offer, 0.0);
            rest[k] -= share;
            masses[i + 1] += share * cells[k].p;
        }
        const double merged = excess > 0.0 ? mass * (1.0 - left / excess) : 0.0;
        masses[i + 1] += merged;
        masses[i] += mass - merged;
    }
}

// Fills the cells between the points, from offset + first h on, and the errors at the points.
// Returns the masses at the last point.
inline LossMasses cut_up(const PrivacyLoss& loss, double h, double offset, std::int64_t first, std::vector<Cell>& cells,
                         std::vector<double>& errors, WorkBudget& budget) {
    LossMasses left{};
    double left_ratio = 0.0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
        if (i % 4096 == 0)
            budget.spend(masses_work * static_cast<double>(min(4096.0, static_cast<double>(errors.size() - i))));
        const double at = offset + static_cast<double>(first + static_cast<std::int64_t>(i)) * h;
        const LossMasses right = loss.masses(at);
        const double ratio = at < 690.0 ? std::exp(at) : infinity;
        errors[i] = tail_error(right.p_below, right.p_above, loss.scale());
        if (ratio < infinity) {  // e^at Q(L > at) <= P(L > at) bounds what underflow did to Q
            const double known = ratio * tail_error(right.q_below, right.q_above, loss.scale());
            errors[i] += min(known, errors[i] + right.p_above + ratio * right.q_above);
        }
        if (i > 0) cells[i - 1] = make_cell(left, right, at - h, left_ratio, ratio);
        left = right;
        left_ratio = ratio;
    }
    return left;
}

// Next to an end of the losses, the point t at which about half of the cell towards the middle
// balances all that lies beyond t: S = delta(t) above the upper end's t, D below the lower end's. A
// grid with a point on the end itself would round down all of the last cell, or what lies close to
// an atom in the first one.
inline double top_anchor(const PrivacyLoss& loss, double h) {
    double low = loss.highest() - h, high = loss.highest();
    for (int k = 0; k < 40; ++k) {
        const double t = 0.5 * (low + high);
        const Cell cell = make_cell(loss.masses(t - h), loss.masses(t), t - h, std::exp(t - h), std::exp(t));
        (loss.delta(t) > 0.55 * cell.deficit ? low : high) = t;
    }
    return high;
}

inline double bottom_anchor(const PrivacyLoss& loss, double h) {
    double low = loss.lowest(), high = loss.lowest() + h;
    for (int k = 0; k < 40; ++k) {
        const double t = 0.5 * (low + high);
        const LossMasses at = loss.masses(t);
        const Cell cell = make_cell(at, loss.masses(t + h), t, std::exp(t), std::exp(t + h));
        (std::exp(t) * at.q_below - at.p_below < 0.45 * cell.surplus ? low : high) = t;
    }
    return low;
}

// The offset of a grid that suits the end of the losses; 0 if there is no end.
inline double grid_offset(const PrivacyLoss& loss, double h) {
    const double low = loss.lowest(), high = loss.highest();
    const double end = std::isfinite(low) ? low : high;
    if (!(std::fabs(end) < 600.0) || loss.lattice() > 0.0) return 0.0;
    const double anchor = std::isfinite(low) ? bottom_anchor(loss, h) : top_anchor(loss, h);
    return anchor - std::round(anchor / h) * h;
}

// Both measures of a loss, on the points of step h that cover [low, high]. Points are counted by
// whole doubles: losses beyond the last one that can be are beyond the grid, as all others are that
// it leaves out.
inline GridLoss discretise(const PrivacyLoss& loss, double h, double low, double high, WorkBudget& budget) {
    if (!(low <= high)) low = high = 0.0;  // no loss is finite: all grids are as good
    const double farthest = 0x1p52 * h;
    low = min(max(low, -farthest), farthest), high = min(max(high, -farthest), farthest);
    GridLoss result;
    result.offset = grid_offset(loss, h);
    const auto first = static_cast<std::int64_t>(std::ceil((low - result.offset) / h - 1e-6)) - 1;
    const auto last = static_cast<std::int64_t>(std::floor((high - result.offset) / h + 1e-6)) + 1;
    const auto points = static_cast<std::size_t>(last - first + 1);
    result.first = first;
    result.errors.assign(points, 0.0);
    std::vector<Cell> cells(points - 1);
    const LossMasses end = cut_up(loss, h, result.offset, first, cells, result.errors, budget);
    result.raised.masses.assign(points, 0.0);
    result.lowered.masses.assign(points, 0.0);
    raise_cells(cells, h, result.raised.masses);
    lower_cells(cells, h, result.lowered.masses);
    result.raised.masses.front() += loss.masses(result.offset + static_cast<double>(first) * h).p_below;
    result.raised.infinite = loss.p_infinite() + end.p_above + tail_error(end.p_below, end.p_above, loss.scale());
    result.lowered.masses.back() += end.p_above;
    result.lowered.infinite = loss.p_infinite();
    result.infinite_error = 2.0 * unit_roundoff * loss.errors().infinite;
    if (loss.highest() == infinity) result.raised.infinite += std::numeric_limits<double>::min();
    return result;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
