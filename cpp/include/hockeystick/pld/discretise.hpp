// One step's privacy loss on the grid offset + i h: a measure that can only raise delta, and one that can only lower it.
//
// Cells are (i h, (i+1) h]; a cell has masses p and q of P and Q, S = p - e^{ih} q >= 0, D = e^{(i+1)h} q - p >= 0.
// delta of a composition is E (1 - e^{eps - L_1 - ... - L_T})_+ under P x ... x P, L = inf counting 1, so raising a
// loss anywhere raises it (whatever Q is then), and lowering one lowers it.
//
// Raised, second order ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): the cell's outcomes
// are split between losses i h and (i+1) h so that p and q are both kept: D/(e^h - 1) and S/(1 - e^{-h}) of P. The
// split pair gives back one outcome of loss log p/q by forgetting which half it was, and the same cell by cell within,
// so the split pair dominates. Losses below the first point are raised to it, losses beyond the last to infinity.
//
// Lowered, second order: merging outcomes is a post-processing. Parts a of cells below i h and b of cells above with
// a D_below = b S_above (S of a farther cell is taken at i h, too) merge into an outcome of loss exactly i h. From left
// to right all that is left of a cell finds its partner in the next one or two, and a cell's outcomes move by no more
// than that; only where masses fall by a factor from cell to cell something is left over, and rounded down. Losses
// beyond the last point are lowered to it, losses below the first to -inf.
//
// The grid may be shifted by an offset: an atom, or what comes close to one (a rarely sampled step seldom loses more
// than its bound -log(1 - q)), goes on the grid. Away from it an atom is a first-order loss of the lowered measure.
//
// Rounding: what is computed are the cells of a pair whose one-step curve f(eps) differs from the true one by at most
// `errors[i]` at the point i, and by no more than its neighbours' in between: the rounding of the tails there
// (loss/privacy_loss.hpp, TiltErrors), not of their differences. Besides, S and D inherit `cell_error` p from e^{ih}.
// Cost: one `masses` a point. Where q underflows nothing is known: p goes up in the one measure, down in the other.
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

// The relative error of a composition's mass at infinity, 1 - prod (1 - p_j)^{T_j}, for p_j that err by at most `of_one`:
// it is concave in each p_j and 0 at 0, so that an error of p_j counts at most once; a logarithm and a sum add up.
inline double infinite_error_of(double of_one, std::size_t steps) {
    return max(infinite_mass_error, of_one + (8.0 + static_cast<double>(steps)) * unit_roundoff);
}

struct Cell {
    double p, surplus, deficit;  // S and D above
};

// Of S and D over p; mass that this misplaces by errors/h goes from a point to the next, or the third in the lowered
// measure.
inline double cell_error(double loss) { return 256.0 * unit_roundoff * (1.0 + std::fabs(loss)); }

// The smaller tail at a cut, and what rounding did to it.
inline double tail_error(double below, double above, double scale) {
    const double tail = below < above ? below : above;
    const double digits = tail > 0.0 ? 32.0 - 17.0 * std::ilogb(tail) : 32.0;  // 24 log 2 < 17
    return unit_roundoff * (1.0 + scale) * digits * tail + 2.0 * std::numeric_limits<double>::min();
}

inline double between(double below_left, double above_left, double below_right, double above_right) {
    const double mass = above_left <= 0.5 ? above_left - above_right : below_right - below_left;
    return mass > 0.0 ? mass : 0.0;
}

// `low_ratio` and `high_ratio` are e^loss and e^{loss + h}, inf from 690 on.
inline Cell make_cell(const LossMasses& left, const LossMasses& right, double loss, double low_ratio,
                      double high_ratio) {
    const double p = between(left.p_below, left.p_above, right.p_below, right.p_above);
    const double q = between(left.q_below, left.q_above, right.q_below, right.q_above);
    if (high_ratio == infinity || q < 1e-290) return {p, 0.0, 0.0};  // unknown
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

// From left to right: what is left of a cell merges into the point above it with as much of the next cell as balances
// it, then of the one after that.
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

// The cells between the points first h .. , and the errors at the points. Returns the masses at the last point.
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
        if (ratio < infinity) {  // e^at Q(L > at) <= P(L > at), whatever underflow did to it
            const double known = ratio * tail_error(right.q_below, right.q_above, loss.scale());
            errors[i] += min(known, errors[i] + right.p_above + ratio * right.q_above);
        }
        if (i > 0) cells[i - 1] = make_cell(left, right, at - h, left_ratio, ratio);
        left = right;
        left_ratio = ratio;
    }
    return left;
}

// Next to an end of the losses, the point t that balances about half of the cell towards the middle with all that lies
// beyond: S = delta(t) above the upper end's t, D below the lower end's. With a point on the end itself all of the
// last cell would be rounded down, or what lies close to an atom in the first one.
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

// A grid that suits the end of the losses; through 0 if there is none.
inline double grid_offset(const PrivacyLoss& loss, double h) {
    const double low = loss.lowest(), high = loss.highest();
    const double end = std::isfinite(low) ? low : high;
    if (!(std::fabs(end) < 600.0) || loss.lattice() > 0.0) return 0.0;
    const double anchor = std::isfinite(low) ? bottom_anchor(loss, h) : top_anchor(loss, h);
    return anchor - std::round(anchor / h) * h;
}

// `loss` on the points of step h around low .. high.
inline GridLoss discretise(const PrivacyLoss& loss, double h, double low, double high, WorkBudget& budget) {
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
