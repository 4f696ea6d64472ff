// Several releases as one: a pair of discrete distributions whose divergences are at least those of
// the composition at every epsilon, and one whose divergences are at most those. It is for what a
// composition is part of: sampling, groups, replacement. Proofs: docs/core/pld.md, A composition as
// one pair.
//
// Each step goes on one grid (pld/discretise.hpp). The measures are convolved term by term: all
// terms are positive, so the far tails keep their digits, which a Fourier transform would drown. At
// the end an outcome of loss l and mass p gets e^{-l} p under Q.
//
//   raised    What lies below the first point is raised to it, what lies beyond the last to
//             infinity. The rest of Q is an outcome of its own.
//   lowered   The largest set of outcomes above a loss l such that all else of P and of Q, merged
//             into one outcome, has a loss of at most l.
//
// Rounding. A step's curve errs by at most c (P + e^eps Q)(L > eps) at a grid point. A share
// 2c/(1 - e^{-h}) of the step moved up by a point (down by three in the lowered pair) and a
// relative c pay for that. Convolving n terms errs by n u, relatively.
//
// Cost: at most the square of the number of points for each convolution; 2 log2 T convolutions for
// T equal steps. Where that exceeds most_pair_work, with hundreds of distinct steps, the grid is
// coarser than asked.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/pld/grid_plan.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Masses of P at losses first + i h and at infinity, known up to a relative error.
struct LossMeasure {
    double first;
    std::vector<double> masses;
    double infinite, error;
};

inline constexpr double pair_tail = 1e-110;         // mass of P that is cut off above; it goes to infinity or down
inline constexpr double pair_bottom = 1e-17;        // mass of P that is cut off below
inline constexpr double least_known_tail = 1e-250;  // the digits of smaller tails are not counted
inline constexpr double pair_loss_error = 1e-13;    // of 1 + |loss|: more than cuts and exponentials err by
inline constexpr double pair_sum_error = 1e-14;     // of compensated sums of all masses: some ninety roundings

class PairComposer {
  public:
    PairComposer(double h, bool raised, WorkBudget& budget) : h_(h), raised_(raised), budget_(budget) {}

    LossMeasure step(const PrivacyLoss& loss, double low, double high) const {
        const GridLoss grid = discretise(loss, h_, low, high, budget_);
        const GridMeasure& measure = raised_ ? grid.raised : grid.lowered;
        LossMeasure result{grid.offset + static_cast<double>(grid.first) * h_, measure.masses, measure.infinite, 0.0};
        const double end = loss_at(result, result.masses.size()) - h_;
        if (end >= loss.highest() + loss.highest_error()) result.infinite = loss.p_infinite();  // nothing lies beyond
        const double c = curve_error(grid, measure);
        const double largest = max(std::fabs(result.first), std::fabs(end));
        const double share = min(1.0, 2.0 * c / -std::expm1(-h_) + 2.0 * cell_error(largest) / h_);
        result.error = c + 4.0 * unit_roundoff;
        return move(std::move(result), share);
    }

    LossMeasure power(const LossMeasure& step, double count) const {
        LossMeasure square = step, result = step;
        bool started = false;
        for (auto rest = static_cast<std::uint64_t>(count); rest > 0; rest /= 2) {
            if (rest % 2 == 1) result = started ? convolve(result, square) : square, started = true;
            if (rest > 1) square = convolve(square, square);
        }
        return result;
    }

    LossMeasure convolve(const LossMeasure& x, const LossMeasure& y) const {
        const bool swap = x.masses.size() < y.masses.size();
        const std::vector<double>&a = swap ? y.masses : x.masses, &b = swap ? x.masses : y.masses;
        LossMeasure result{x.first + y.first, std::vector<double>(a.size() + b.size() - 1, 0.0), 0.0, 0.0};
        for (std::size_t j = 0; j < b.size(); ++j) {
            if (j % 64 == 0) budget_.spend(64.0 * static_cast<double>(a.size()));
            const double weight = b[j];
            double* out = result.masses.data() + j;
            if (weight > 0.0)
                for (std::size_t i = 0; i < a.size(); ++i) out[i] += weight * a[i];
        }
        result.infinite = raised_ ? infinite_of_both(x, y) : x.infinite + y.infinite - x.infinite * y.infinite;
        result.error = x.error + y.error + unit_roundoff * (8.0 + static_cast<double>(b.size()));
        return trim(std::move(result));
    }

    Masses pair(const LossMeasure& measure) const { return raised_ ? raised(measure) : lowered(measure); }

  private:
    double loss_at(const LossMeasure& measure, std::size_t i) const {
        return measure.first + static_cast<double>(i) * h_;
    }

    // The mass of the product measure where either loss is infinite; masses that rounding took from
    // a measure count as there.
    static double infinite_of_both(const LossMeasure& x, const LossMeasure& y) {
        CompensatedSum finite_x, all_y;
        for (const double mass : x.masses) finite_x.add(mass);
        for (const double mass : y.masses) all_y.add(mass);
        all_y.add(y.infinite);
        return x.infinite * max(all_y.value(), 1.0) + y.infinite * max(finite_x.value(), 1.0 - x.infinite);
    }

    // The c of the rounding above. Where a tail has no digits its masses are below pair_tail.
    double curve_error(const GridLoss& grid, const GridMeasure& measure) const {
        double c = unit_roundoff, p_above = measure.infinite, q_above = 0.0;
        const double down = std::exp(-h_);
        for (std::size_t i = measure.masses.size(); i-- > 0;) {
            if (p_above + q_above > least_known_tail) c = max(c, grid.errors[i] / (p_above + q_above));
            p_above += measure.masses[i];
            q_above = (q_above + measure.masses[i]) * down;
        }
        return c;
    }

    // The measure with a share of all masses moved up by a point, or down by three.
    LossMeasure move(LossMeasure measure, double share) const {
        const std::size_t n = measure.masses.size(), distance = raised_ ? 1 : 3;
        std::vector<double> moved(n + distance, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            moved[raised_ ? i : i + distance] += (1.0 - share) * measure.masses[i];
            moved[raised_ ? i + distance : i] += share * measure.masses[i];
        }
        if (!raised_) measure.first -= static_cast<double>(distance) * h_;
        measure.masses = std::move(moved);
        return trim(std::move(measure));
    }

    LossMeasure trim(LossMeasure measure) const {
        std::vector<double>& masses = measure.masses;
        double beyond = 0.0, below = 0.0;
        while (masses.size() > 1 && beyond + masses.back() <= pair_tail) beyond += masses.back(), masses.pop_back();
        if (raised_) measure.infinite += 2.0 * beyond;
        else masses.back() += beyond * (1.0 - 1e-9);
        std::size_t first = 0;
        while (first + 1 < masses.size() && below + masses[first] <= pair_bottom) below += masses[first++];
        masses.erase(masses.begin(), masses.begin() + static_cast<std::ptrdiff_t>(first));
        if (raised_) masses.front() += below;
        measure.first += static_cast<double>(first) * h_;
        return measure;
    }

    Masses raised(const LossMeasure& measure) const {
        const std::vector<double>& masses = measure.masses;
        const double larger = 1.0 + 2.0 * measure.error;
        std::size_t lowest = 0;
        for (double below = 0.0; lowest + 1 < masses.size(); ++lowest)
            if ((below += masses[lowest]) > pair_sum_error + 8.0 * measure.error) break;
        Masses pair{{0.0, 0.0}, {0.0, 0.0}};  // the outcome of infinite loss, then the one that Q has alone
        pair.p[0] = measure.infinite * larger;
        CompensatedSum p, q;
        for (std::size_t i = masses.size(); i-- > lowest + 1;) add(pair, masses[i] * larger, loss_at(measure, i), p, q);
        p.add(pair.p[0]);
        const double rest = max(1.0 - p.value(), 0.0), at = raised_loss(loss_at(measure, lowest));
        const double alone = 1.0 - q.value(), with = min(rest * std::exp(-at), alone);  // less of Q raises the loss
        pair.p.push_back(rest);
        pair.q.push_back(max(with, 0.0));
        pair.q[1] = max(alone - with, 0.0);
        return pair;
    }

    void add(Masses& pair, double mass, double loss, CompensatedSum& p, CompensatedSum& q) const {
        if (mass == 0.0) return;
        const double under_q = mass * std::exp(-raised_loss(loss));
        if (under_q < least_known_mass) {
            pair.p[0] += mass;
            return;
        }
        pair.p.push_back(mass);
        pair.q.push_back(under_q);
        p.add(mass);
        q.add(under_q);
    }

    Masses lowered(const LossMeasure& measure) const {
        const std::vector<double>& masses = measure.masses;
        const double smaller = 1.0 - 2.0 * measure.error, infinite = max(measure.infinite * smaller, 0.0);
        Masses outcomes{{infinite}, {0.0}}, best{{1.0}, {1.0}};
        CompensatedSum p, q;
        p.add(infinite);
        std::size_t kept = 0;
        double rest_p = 1.0, rest_q = 1.0;
        for (std::size_t i = masses.size(); i-- > 0;) {
            const double loss = lowered_loss(loss_at(measure, i)), mass = max(masses[i] * smaller, 0.0);
            const double under_q = mass * std::exp(-loss);
            if (mass < pair_tail || under_q < least_known_mass) continue;
            p.add(mass), q.add(under_q);
            if (!(q.value() < 1.0) || !(p.value() < 1.0)) break;
            outcomes.p.push_back(mass), outcomes.q.push_back(under_q);
            const double above = 1.0 - p.value() + pair_sum_error, below = 1.0 - q.value() - pair_sum_error;
            if (below > 0.0 && above <= std::exp(loss) * below)
                kept = outcomes.p.size(), rest_p = 1.0 - p.value(), rest_q = 1.0 - q.value();
        }
        if (kept == 0) return best;
        outcomes.p.resize(kept), outcomes.q.resize(kept);
        outcomes.p.push_back(rest_p), outcomes.q.push_back(rest_q);
        return outcomes;
    }

    static double raised_loss(double loss) { return loss + pair_loss_error * (1.0 + std::fabs(loss)); }
    static double lowered_loss(double loss) { return loss - pair_loss_error * (1.0 + std::fabs(loss)); }

    double h_;
    bool raised_;
    WorkBudget& budget_;
};

// A grid step that needs about `points` points, on which the atoms lie if the steps have one
// lattice.
inline double pair_interval(const std::vector<Step>& steps, const std::vector<Interval>& ends, double points) {
    double sum = 0.0, widest = 0.0, variance = 0.0, lattice = 0.0;
    bool common = true;
    for (std::size_t j = 0; j < steps.size(); ++j) {
        const double width = ends[j].upper - ends[j].lower, own = steps[j].loss->lattice();
        sum += steps[j].count * width;
        widest = max(widest, width);
        for (const OutlinePoint& x : steps[j].loss->outline())
            if (std::isfinite(x.loss)) variance += steps[j].count * std::exp(x.log_p) * x.loss * x.loss;
        common = common && (own == 0.0 || lattice == 0.0 || own == lattice);
        lattice = max(lattice, own);
    }
    const double h = max(min(sum, widest + 30.0 * std::sqrt(variance)) / points, 1e-12);
    return common && lattice > h ? lattice / std::ceil(lattice / h) : h;
}

inline constexpr double most_pair_work = 2e10;  // some ten seconds

// The grid step of about `points` points, or of so many fewer that the convolutions are affordable.
inline double affordable_interval(const std::vector<Step>& steps, const std::vector<Interval>& ends, double points) {
    for (;; points *= 0.5) {
        const double h = pair_interval(steps, ends, points);
        double work = 0.0;
        for (std::size_t j = 0; j < steps.size(); ++j)
            work += points * (min((ends[j].upper - ends[j].lower) / h, points) +
                              2.0 * points * std::floor(std::log2(steps[j].count)));
        if (work <= most_pair_work || points < 64.0) return h;
    }
}

// One direction of a composition of at least one step.
inline Masses composed_pair(const std::vector<Step>& steps, bool raised, double points,
                            const std::atomic<bool>* stop = nullptr) {
    WorkBudget budget(stop);
    std::vector<Interval> ends;
    for (const Step& step : steps)
        ends.push_back({lower_end(*step.loss, pair_bottom), upper_end(*step.loss, 1e-3 * pair_tail)});
    const PairComposer composer(affordable_interval(steps, ends, points), raised, budget);
    LossMeasure all{0.0, {1.0}, 0.0, 0.0};
    for (std::size_t j = 0; j < steps.size(); ++j)
        all = composer.convolve(
            all, composer.power(composer.step(*steps[j].loss, ends[j].lower, ends[j].upper), steps[j].count));
    return composer.pair(all);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
