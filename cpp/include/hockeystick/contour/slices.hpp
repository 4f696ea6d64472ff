// delta(eps) and epsilon(delta) of T equal Poisson-sampled Gaussian steps (remove), as certified
// brackets, where samples are rare and steps are few.
//
// There the losses have scales from the sampling rate to 1 and more. The characteristic function of
// their sum decays on the smallest scale, while its period is the largest: one line
// (contour/contour.hpp) would need thousands of evenly spaced nodes. Instead the step's measure P
// is cut into slices of one scale each (cumulant/loss_slices.hpp). With P_p the measure of slice p
// and of all below it,
//
//   P^T = (P_0^T - P_1^T) + (P_1^T - P_2^T) + ... + (P_m^T - P_{m+1}^T) + P_{m+1}^T.
//
// Every difference is a measure >= 0 with a contour integral of its own, whose tilt, period and
// last frequency are those of its own scale, and which decays like the slice. docs/core/contour.md
// has theorem and proof ("Slices").
//
// From top to bottom: Chernoff's bounds of these parts (SliceBounds); which of them are summed, and
// on which lines (SlicePlanner); their sums and the errors of these (SliceSummer, errors_of); the
// brackets (SlicedContour).
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <hockeystick/contour/result.hpp>
#include <hockeystick/cumulant/loss_slices.hpp>
#include <hockeystick/cumulant/slice_grid.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace cumulant;
using namespace numeric;
using namespace simd;

namespace tune {
inline constexpr double log_below_sum = 8.0;  // a part that much below the others' sum, and all after it, is left out
inline constexpr double log_above_estimate = 0.5;  // by how much Chernoff's bounds together are too large, roughly
inline constexpr double log_below_part = 3.0;   // delta is that much below the largest part's Chernoff bound, roughly
inline constexpr double close_guess = 0.06;     // a move of log eps: after it a guess is right to a few thousandths
inline constexpr double log_digits_kept = 9.0;  // growth that costs no digit which matters
// What a line costs beyond its period: a decade that its tolerance is below its unit, a digit lost.
inline constexpr double cost_of_depth = 0.025, cost_of_lost_digits = 0.15;
inline constexpr double log_share_of_truncation = -2.0;  // e^-2 of the tolerance: parts fall fast at the last frequency
// Up to how many nodes one line is less work than slices, where a large step is rare and elsewhere: as measured.
inline constexpr double nodes_worth_slices = 600.0, nodes_worth_many_slices = 2e4;
}  // namespace tune

// Bounds of the parts of a sliced composition, by Chernoff at the real tilts of LossSlices.
//
// Part p is P_p^T - P_{p+1}^T, where P_p is the measure of slice p and of all below it. It is what
// T steps give in which some outcome lies in slice p and none above it. `whole` asks for P_p^T
// instead.
class SliceBounds {
  public:
    explicit SliceBounds(const LossSlices& slices) : slices_(slices) {}

    // log of the transform at a real tilt: M_p^T for the whole, and no more than T |slice|
    // M_p^{T-1} for part p alone.
    double log_transform(int slice, int tilt_index, double times, bool whole) const {
        const LossSlices::Moments& m = slices_.at(tilt_index, slice);
        const auto at = static_cast<std::size_t>(slice);
        const double slack = times * (m.error + four_roundings * std::fabs(m.upto[at])) + sound::log_slack;
        const double all = times * m.upto[at];
        return slack + (whole ? all : min(all, std::log(times) + m.slice[at] + (times - 1.0) * m.upto[at]));
    }
    double log_chernoff(int slice, int tilt_index, double times, double eps, bool whole = false) const {
        const LossSlices::Moments& m = slices_.at(tilt_index, slice);
        return log_transform(slice, tilt_index, times, whole) - m.c * eps + m.log_kappa;
    }
    // The tilt of the smallest bound, and that bound. The search begins at the tilt `start`, best that of a
    // neighbouring part.
    struct Least {
        int tilt_index;
        double log_chernoff;
    };
    Least least(int slice, double times, double eps, int start, bool whole = false) const {
        const auto bound = [&](int index) { return log_chernoff(slice, index, times, eps, whole); };
        const int best =
            minimising_index(bound, start, slices_.first_tilt(), slices_.last_tilt(), never, first_stride());
        return {best, bound(best)};
    }

    // The P-mass of part p: no more than T times that of the slice, nor than 1.
    double log_mass(int slice, double times) const {
        const LossSlices::Moments& m = slices_.mass(true);
        return min(std::log(times) + m.slice[static_cast<std::size_t>(slice)], 0.0) + sound::log_slack;
    }

    // log T M_p(c)^{T-1}: on Re s = c part p's transform is at most that times |slice|, the
    // transform of slice p.
    double log_other_steps(int slice, int tilt_index, double times) const {
        const double upto = slices_.at(tilt_index, slice).upto[static_cast<std::size_t>(slice)];
        return log_transform(slice, tilt_index, times, true) - upto + std::log(times);
    }

    // log of the sum of all parts' Chernoff bounds, which are too large, and its derivative by log eps.
    // A guess of log delta.
    ValueSlope log_estimate(double times, double eps) const {
        double sum = -infinity, mean_tilt = 0.0;
        Least part{first_start, 0.0};
        for (int slice = 0; slice < slices_.size(); ++slice) {
            part = least(slice, times, eps, part.tilt_index);
            if (part.log_chernoff < sum - tune::log_below_sum) break;
            sum = log_sum(sum, part.log_chernoff);
            mean_tilt += (slices_.tilt(part.tilt_index) - mean_tilt) * std::exp(part.log_chernoff - sum);
        }
        return {sum - tune::log_above_estimate, -mean_tilt * eps};
    }

    // The epsilon where these bounds together are delta, nearly: Newton's iteration of log delta over
    // log eps, from `start` on.
    double guess_epsilon(double times, double log_delta, double start) const {
        double low = std::log(1e-6), high = std::log(1e3);
        double x = start > 1e-6 && start < 1e3 ? std::log(start) : 0.0;
        for (int step = 0; step < 40 && high - low > tune::close_guess; ++step) {
            const ValueSlope at = log_estimate(times, std::exp(x));
            (at.value > log_delta ? low : high) = x;
            const double move = (log_delta - at.value) / at.slope;
            if (std::fabs(move) < tune::close_guess) return std::exp(x + move);
            x += min(max(move, -2.0), 2.0);
            if (!(x > low && x < high)) x = 0.5 * (low + high);
        }
        return std::exp(x);
    }

    static constexpr int first_start = 4;  // of a search for the tilt of the first part

  private:
    int first_stride() const { return slices_.shape().tilts_per_octave < 4 ? 4 : 16; }

    const LossSlices& slices_;
};

// The plan of a sliced composition: which parts are summed and which only bounded, and for each
// summed part the line of its sum, by tilt, spacing and last frequency.
//
// Chernoff's bounds of the parts say which of them make delta, and which are too light for a sum. A
// part's tilt is that of the shortest period. Plans are made for T and eps - T l, l the least loss.
// Those that near questions share are for these numbers rounded up to parts of powers of 2. They
// depend on nothing else, so that an answer depends on its question alone.

// A part that is summed, on the grids of LossSlices.
struct SliceLine {
    int slice, tilt_index, spacing_index, cutoff_index;
    double log_decay;    // of the slice's transform beyond the last node
    double log_damping;  // of each other step's there, relatively to the tilt's
    // The nodes, good while the slices are of this generation.
    mutable const LossSlices::Table* table = nullptr;
    mutable std::size_t generation = 0;
};

// A part that is only bounded, and the tilt of its bound.
struct BoundedSlice {
    int slice, tilt_index;
};

// T, eps, and the distance eps - T l of eps from the least loss.
struct SliceCell {
    double times, eps, distance;

    bool operator==(const SliceCell& other) const { return times == other.times && distance == other.distance; }
};

struct SlicePlan {
    // What it is made for, and by how much, in natural logarithms, delta is below what Chernoff's
    // bounds let expect.
    SliceCell cell{};
    int lowered_by = 0;
    bool usable = false;
    double log_value = 0.0;       // of delta, roughly
    int first_bounded_slice = 0;  // it and all below are bounded together
    std::vector<SliceLine> summed;
    // The last one stands for `first_bounded_slice` and all below.
    std::vector<BoundedSlice> bounded;
};

// Makes plans. Not for several threads at once.
//
// A question asks for the same plan two or three times, and near questions ask for it again. So the
// last plans are kept: a delta that is asked for again takes 18 % fewer instructions.
class SlicePlanner {
  public:
    explicit SlicePlanner(const LossSlices& slices) : slices_(slices), bounds_(slices) {}

    // Invalidates references to earlier plans.
    void begin_question() {
        if (plans_.size() > max_kept) plans_.clear();
    }

    const SlicePlan& plan_for(double times, double eps, int lowered_by) {
        const SliceCell cell = cell_of(times, max(eps, 0.0));
        for (const auto& plan : plans_)
            if (plan->cell == cell && plan->lowered_by == lowered_by) return *plan;
        plans_.push_back(std::make_unique<SlicePlan>());
        SlicePlan& plan = *plans_.back();
        plan.cell = cell;
        plan.lowered_by = lowered_by;
        fill(plan);
        return plan;
    }

    const SliceBounds& bounds() const { return bounds_; }

  private:
    static constexpr std::size_t max_kept = 64;  // plans of a few hundred bytes

    static constexpr int log2_max_nodes_of_slice = 14;

    // What the plan of a question is made for: T <= 2^{i/8} and eps - T l <= 2^{j/16} where plans
    // are shared, or the question itself.
    SliceCell cell_of(double times, double eps) const {
        const double distance = eps - times * slices_.least_loss();
        if (!slices_.shape().plans_are_shared) return {times, eps, distance};
        SliceCell cell{std::exp2(0.125 * std::ceil(8.0 * std::log2(times))), 0.0,
                       std::exp2(0.0625 * std::ceil(16.0 * std::log2(distance)))};
        cell.eps = max(cell.distance + cell.times * slices_.least_loss(), 0.0);
        return cell;
    }

    void fill(SlicePlan& plan) const {
        const SliceCell& cell = plan.cell;
        double largest = -infinity;
        std::vector<SliceBounds::Least> least;  // of the parts
        SliceBounds::Least all_below{};
        int start = SliceBounds::first_start;
        int& slice = plan.first_bounded_slice;
        for (;; ++slice) {
            if (slice == slices_.size()) return;
            least.push_back(bounds_.least(slice, cell.times, cell.eps, start));
            largest = max(largest, least.back().log_chernoff);
            start = least.back().tilt_index;
            all_below = bounds_.least(slice + 1, cell.times, cell.eps, start, true);
            if (all_below.log_chernoff <
                largest + plan.lowered_by - tune::log_below_part + slices_.shape().log_tolerance)
                break;
        }
        ++slice;
        plan.log_value = largest + plan.lowered_by - tune::log_below_part;
        for (int p = 0; p < plan.first_bounded_slice; ++p) {
            const SliceBounds::Least& part = least[static_cast<std::size_t>(p)];
            if (part.log_chernoff < plan.log_value + slices_.shape().log_tolerance) {
                plan.bounded.push_back({p, part.tilt_index});
                continue;
            }
            SliceLine line{p, part.tilt_index, 0, 0, 0.0, 0.0, nullptr, 0};
            if (!choose_line(line, cell, plan.log_value)) return;
            plan.summed.push_back(line);
        }
        plan.bounded.push_back({slice, all_below.tilt_index});
        plan.usable = !plan.summed.empty();
    }

    // The period that a part needs at some tilt, and a measure of the nodes for that; digits lost
    // count as nodes, too.
    struct Choice {
        double period, cost;
    };
    Choice choice_at(int slice, int tilt_index, const SliceCell& cell, double log_value) const {
        const LossSlices::Moments& m = slices_.at(tilt_index, slice);
        const double log_allowed = log_value + slices_.shape().log_tolerance,
                     log_mass = bounds_.log_mass(slice, cell.times);
        const double log_unit = bounds_.log_transform(slice, tilt_index, cell.times, false) - m.c * cell.eps;
        if (!(log_unit < log_value + slices_.shape().max_growth)) return {0.0, infinity};
        // For the aliases n < 0, and for n > 0.
        double needed[2] = {(log_mass - log_allowed) / m.c, infinity};
        for (const int side : {0, 1}) {
            for (int away = 1; away <= slices_.max_tilts_away(); away *= 2) {
                const int other = side == 1 ? tilt_index + away : tilt_index - away;
                if (other < slices_.first_tilt() || other > slices_.last_tilt()) break;
                const double excess = bounds_.log_chernoff(slice, other, cell.times, cell.eps) - log_allowed;
                const double next = max(excess, 1.0) / std::fabs(slices_.at(other, slice).c - m.c);
                if (away > 1 && next > needed[side]) break;
                needed[side] = min(needed[side], next);
            }
        }
        // From that period on the aliases n < 0 are known.
        const double known = max(1.001 * cell.distance, 2.0 / m.c);
        const bool cancels = log_mass - m.c * known > log_value + slices_.shape().max_growth;
        const double period = max(needed[1], cancels ? needed[0] : min(needed[0], known));
        const double digits_lost = max(log_unit - log_value - tune::log_digits_kept, 0.0);
        const double depth = log_unit - log_allowed;
        return {period, period * (1.0 + tune::cost_of_depth * depth + tune::cost_of_lost_digits * digits_lost)};
    }

    // Fills in the tilt of least cost, the spacing that its period asks for, and the last frequency. The search for
    // the tilt begins at the one that the line has: that of Chernoff's bound.
    bool choose_line(SliceLine& line, const SliceCell& cell, double log_value) const {
        const auto at = [&](int index) { return choice_at(line.slice, index, cell, log_value); };
        Choice best = at(line.tilt_index);
        for (const int stride : {4, 1}) {
            for (const int direction : {1, -1}) {
                for (int next = line.tilt_index + direction * stride;
                     next >= slices_.first_tilt() && next <= slices_.last_tilt(); next += direction * stride) {
                    const Choice there = at(next);
                    if (!(there.cost < best.cost)) break;
                    best = there;
                    line.tilt_index = next;
                }
            }
        }
        // Under a tilt too large for the slice's largest losses its ends carry weight, which does
        // not decay: lower it.
        for (int tries = 0; tries < 8 && best.cost < infinity; ++tries) {
            line.spacing_index = static_cast<int>(std::ceil(4.0 * std::log2(best.period / (2.0 * pi))));
            const double log_allowed = log_value + slices_.shape().log_tolerance + tune::log_share_of_truncation;
            if (choose_last_frequency(line, cell, log_allowed)) return true;
            if (--line.tilt_index < slices_.first_tilt()) return false;
            best = at(line.tilt_index);
        }
        return false;
    }

    // The fewest steps besides one that a question of this plan has: a shared plan is for a
    // number of steps that was rounded up by a factor of at most 2^(1/8).
    double fewest_others(double times) const {
        return (slices_.shape().plans_are_shared ? times * std::exp2(-0.125) : times) * (1.0 - sound::decay_slack) -
               1.0;
    }

    bool choose_last_frequency(SliceLine& line, const SliceCell& cell, double log_allowed) const {
        const double log_scale =
            bounds_.log_other_steps(line.slice, line.tilt_index, cell.times) - slices_.tilt(line.tilt_index) * cell.eps;
        const double others = fewest_others(cell.times);
        const double log_own =
            slices_.at(line.tilt_index, line.slice).slice[static_cast<std::size_t>(line.slice)] + sound::log_slack;
        // How much the terms have fallen at a frequency, and how much they must have. Sets the line's decay
        // and damping.
        const auto fall = [&](int index) {
            line.log_decay = min(slices_.log_decay(line.slice, line.tilt_index, index), log_own);
            line.log_damping = 0.0;
            const double wanted = log_scale + log_own - std::log(pi * LossSlices::frequency(index)) - log_allowed;
            if (log_own - line.log_decay < wanted && others > 0.0)
                line.log_damping = slices_.log_damping(line.slice, line.tilt_index, index);
            return Reached{log_own - line.log_decay - others * line.log_damping, wanted};
        };
        const int first = -line.spacing_index, last = first + 4 * log2_max_nodes_of_slice;
        line.cutoff_index = first_reaching(fall, first + 4 * 5, first, last);
        if (line.cutoff_index > last) return false;
        (void)fall(line.cutoff_index);  // sets the line's decay and damping
        return true;
    }

    const LossSlices& slices_;
    SliceBounds bounds_;
    std::vector<std::unique_ptr<SlicePlan>> plans_;
};

// The contour sums of the parts of a sliced composition, and what they may be off by.
//
// Alias: every part is a measure >= 0, so that Poisson's formula holds for each of them as it does
// for a whole ledger (contour/line.hpp), with the part's own Chernoff bounds. Parts that are
// not summed are bounded by Chernoff.

// All parts together.
struct SliceSum {
    double log_unit;  // everything else is in units of e^{log_unit}
    double value = 0.0, slope = 0.0, truncation = 0.0, rounding = 0.0;
    std::size_t nodes = 0, slices = 0;
    double tilt = 0.0;  // of the last part
};

// Whether the aliases n < 0 of a part are known: eps - D lies below all losses.
inline bool aliases_are_known(const LossSlices& slices, const LossSlices::Table& line, double times, double eps) {
    return 2.0 * pi / line.h >= (eps - times * slices.least_loss()) * sound::known_period;
}

// The nodes of a part, made where they are not kept.
inline const LossSlices::Table& nodes_of(const LossSlices& slices, const SliceLine& line) {
    if (line.generation != slices.generation()) {
        line.table = &slices.table(line.slice, line.tilt_index, line.spacing_index, line.cutoff_index);
        line.generation = slices.generation();
    }
    return *line.table;
}

// Takes one sum after the other in the same memory. Not for several threads at once.
class SliceSummer {
  public:
    SliceSummer(const LossSlices& slices, const SliceBounds& bounds, const simd::Kernels& kernels)
        : slices_(slices), bounds_(bounds), kernels_(kernels) {}

    SliceSum operator()(const SlicePlan& plan, double times, double eps) {
        SliceSum s{plan.log_value};
        for (const SliceLine& line : plan.summed) add(line, times, eps, s);
        return s;
    }

    double work() const { return work_; }  // nodes visited so far

  private:
    void add(const SliceLine& line, double times, double eps, SliceSum& s) {
        const LossSlices::Table& t = nodes_of(slices_, line);
        if (!t.usable) {
            s.rounding = infinity;
            return;
        }
        const std::size_t n = t.real.size();
        for (auto* array : {&terms_, &slopes_, &errors_})
            if (array->size() < n) array->resize(n);  // only grow: resizing up and down fills with zeros
        work_ += static_cast<double>(n);
        const double log_raise = times * t.ratio[0], power = times * t.log_below;
        kernels_.fill_difference_terms(t.nodes(), times, eps, log_raise, terms_.data(), slopes_.data(), errors_.data());
        const double scale = t.h / pi, log_scale = power + log_raise - t.c * eps - s.log_unit;
        const double unit = scale * std::exp(log_scale);
        const double value = unit * kernels_.sum(terms_.data(), n), slope = -unit * kernels_.sum(slopes_.data(), n);
        const double error = unit * kernels_.sum(errors_.data(), n) * sound::summed;
        const double sizes = std::fabs(power) + log_raise + std::fabs(t.c * eps) + std::fabs(s.log_unit) + 8.0;
        const double unit_error = times * t.error + four_roundings * sizes;
        s.value += value;
        s.slope += slope;
        s.rounding += error + sound::padding * std::expm1(unit_error) * (std::fabs(value) + error);
        const double log_last = bounds_.log_other_steps(line.slice, line.tilt_index, times) + line.log_decay +
                                max(times - 1.0, 0.0) * line.log_damping;
        const double last = static_cast<double>(t.n - 1) * t.h;
        s.truncation += std::exp(log_last - t.c * eps - s.log_unit) / (pi * last);
        s.nodes += t.n;
        ++s.slices;
        s.tilt = t.c;
        if (aliases_are_known(slices_, t, times, eps)) subtract_known_aliases(line, t, times, eps, s);
    }

    // Takes out the aliases n < 0, sum_{n >= 1} e^{-c n D} (P-mass - e^{eps - n D} Q-mass), both
    // masses those of the part: upto^T - below^T = below^T ((1 + slice/below)^T - 1).
    void subtract_known_aliases(const SliceLine& line, const LossSlices::Table& t, double times, double eps,
                                SliceSum& s) const {
        const double period = 2.0 * pi / t.h;
        double parts[2], errors[2];
        for (const bool under_p : {true, false}) {
            const LossSlices::Moments& m = slices_.mass(under_p);
            const auto at = static_cast<std::size_t>(line.slice);
            const double below = m.upto[at + 1], log_ratio = times * std::log1p(std::exp(m.slice[at] - below));
            const double mass = std::exp(times * below) * std::expm1(log_ratio);
            const double c = under_p ? t.c : t.c + 1.0, growth = under_p ? 0.0 : eps;
            const double sum = std::exp(growth - c * period - s.log_unit) / -std::expm1(-c * period);
            const double sizes =
                times * std::fabs(below) + log_ratio + std::fabs(growth) + c * period + std::fabs(s.log_unit) + 32.0;
            const double mass_error =
                (2.0 + times + 2.0 * log_ratio) * m.error;  // e^x - 1 errs by 1 + x times x's error
            parts[under_p ? 0 : 1] = mass * sum;
            errors[under_p ? 0 : 1] = mass * sum * (sound::error_of_a_power * mass_error + eight_roundings * sizes);
        }
        s.value -= parts[0] - parts[1];
        s.slope += parts[1];
        s.rounding += errors[0] + errors[1];
    }

    const LossSlices& slices_;
    const SliceBounds& bounds_;
    const simd::Kernels& kernels_;
    std::vector<double> terms_, slopes_, errors_;
    double work_ = 0.0;
};

// How far delta may lie below and above the sum, in units of the sum.
struct SliceErrors {
    double alias, missing, bounded;  // `bounded`: the parts that were not summed
    double below, above;
};

// The alias of one part: geometric series over n, each at the tilt where its first term is least.
// For n < 0 also at the tilt 0, where the bound is the part's mass.
inline double alias_of_slice(const LossSlices& slices, const SliceBounds& bounds, const SliceLine& line, double times,
                             double eps, double log_unit) {
    const LossSlices::Table& t = nodes_of(slices, line);
    const double period = 2.0 * pi / t.h;
    const auto series = [&](double distance, double log_first) {
        return std::exp(log_first - log_unit) / -std::expm1(-distance * period);
    };
    const auto smallest = [&](int direction) {
        double best = infinity, best_distance = infinity;
        for (int away = 1; away <= slices.max_tilts_away(); away *= 2) {
            const int index = line.tilt_index + direction * away;
            if (index < slices.first_tilt() || index > slices.last_tilt()) break;
            const double distance = std::fabs(slices.at(index, line.slice).c - t.c);
            const double log_first = bounds.log_chernoff(line.slice, index, times, eps) - distance * period;
            if (!(log_first < best)) break;
            best = log_first;
            best_distance = distance;
        }
        return series(best_distance, best);
    };
    if (aliases_are_known(slices, t, times, eps)) return smallest(1);
    return smallest(1) + min(smallest(-1), series(t.c, bounds.log_mass(line.slice, times) - t.c * period));
}

inline SliceErrors errors_of(const LossSlices& slices, const SliceBounds& bounds, const SlicePlan& plan,
                             const SliceSum& s, double times, double eps) {
    SliceErrors e{};
    for (const SliceLine& line : plan.summed) e.alias += alias_of_slice(slices, bounds, line, times, eps, s.log_unit);
    for (const BoundedSlice& part : plan.bounded) {
        const bool whole = part.slice == plan.first_bounded_slice;
        e.bounded += std::exp(bounds.log_chernoff(part.slice, part.tilt_index, times, eps, whole) - s.log_unit);
    }
    e.missing = std::exp(std::log(times) + slices.log_missing() - s.log_unit);
    e.missing += sound::padding * times * slices.missing_share() * (std::fabs(s.value) + s.truncation + s.rounding);
    const double either_way = s.truncation + s.rounding + e.missing;
    e.below = either_way + e.alias;
    e.above = either_way + e.bounded;
    return e;
}

// Not for several threads at once.
class SlicedContour {
  public:
    SlicedContour(double sigma, double rate, const SliceShape& shape, const simd::Kernels& kernels,
                  std::shared_ptr<FourierWorkspace> workspace)
        : slices_(sigma, rate, shape, kernels, std::move(workspace)), planner_(slices_),
          summer_(slices_, planner_.bounds(), kernels) {}
    SlicedContour(const SlicedContour&) = delete;
    SlicedContour& operator=(const SlicedContour&) = delete;

    // A plan is made for an expected delta. Where the sum is much smaller, a sharper plan follows.
    ContourResult delta(double times, double eps) {
        planner_.begin_question();
        const SlicePlan* plan = &planner_.plan_for(times, eps, 0);
        ContourResult best;
        for (int attempt = 0; attempt < 3 && plan->usable; ++attempt) {
            best = narrower(best, delta_bracket(*plan, times, eps));
            if (best.narrower_than(slices_.shape().wanted_width) || !(best.upper > 0.0)) break;
            const int lower = static_cast<int>(std::floor(best.log_upper - plan->log_value));
            if (lower >= 0) break;
            plan = &planner_.plan_for(times, eps, plan->lowered_by + lower);
        }
        return best;
    }

    // The search begins at `start`.
    ContourResult epsilon(double times, double delta, double start) {
        planner_.begin_question();
        const double log_delta = std::log(delta);
        double eps = planner_.bounds().guess_epsilon(times, log_delta, start);
        ContourResult best;
        for (int attempt = 0; attempt < 3; ++attempt) {
            const SlicePlan& plan = planner_.plan_for(times, eps, 0);
            if (!plan.usable) break;
            const double root = root_of(plan, times, log_delta, eps);
            if (!(root < infinity)) break;
            if (!(root > 0.0)) return at_zero(times, delta);
            best = narrower(best, epsilon_bracket(plan, times, delta, root));
            if (best.narrower_than(slices_.shape().wanted_width) || &plan == &planner_.plan_for(times, root, 0)) break;
            eps = root;
        }
        return best;
    }

    // Points visited so far, times nodes.
    double work() const { return summer_.work() + slices_.work(); }
    std::size_t bytes() const { return slices_.bytes(); }

  private:
    static ContourResult with_shares(const SliceSum& s, const SliceErrors& e) {
        const double value = max(std::fabs(s.value), std::numeric_limits<double>::min());
        ContourResult r;
        r.alias = e.alias / value;
        r.truncation = s.truncation / value;
        r.rounding = s.rounding / value;
        r.missing = (e.missing + e.bounded) / value;
        r.nodes = s.nodes;
        r.slices = s.slices;
        r.tilt = s.tilt;
        r.usable = std::isfinite(s.value + e.alias + s.truncation + s.rounding) &&
                   s.value + s.truncation + s.rounding >= 0.0;  // a sum of terms >= 0 but for these
        return r;
    }

    // The bracket at eps; `at` gets log delta by the sum, and its derivative by eps.
    ContourResult delta_bracket(const SlicePlan& plan, double times, double eps, ValueSlope* at = nullptr) {
        const SliceSum s = summer_(plan, times, eps);
        const SliceErrors e = errors_of(slices_, planner_.bounds(), plan, s, times, eps);
        ContourResult r = with_shares(s, e);
        if (at) *at = log_of(s);
        r.set_delta(s.log_unit + std::log(max(s.value - e.below, 0.0)),
                    s.log_unit + std::log(max(s.value + e.above, 0.0)), s.log_unit);
        return r;
    }

    static ValueSlope log_of(const SliceSum& s) { return {s.log_unit + std::log(s.value), s.slope / s.value}; }

    // The root up to one step of Newton's iteration, which `epsilon_bracket` takes.
    double root_of(const SlicePlan& plan, double times, double log_delta, double start) {
        const auto f = [&](double eps) {
            const SliceSum s = summer_(plan, times, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            const ValueSlope at = log_of(s);
            return ValueSlope{at.value - log_delta, at.slope};
        };
        try {
            const double near = newton_root(f, start, -infinity, infinity, false, 1e-3 * start);
            return near > 0.1 * start ? near : newton_root(f, near, -infinity, infinity, false, 1e-9 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    // Says only whether epsilon is 0: whether delta(0) is at most delta.
    ContourResult at_zero(double times, double delta) {
        ContourResult r = this->delta(times, 0.0);
        r.usable = r.usable && r.upper <= delta;
        r.lower = r.upper = 0.0;
        return r;
    }

    // Takes one step of Newton's iteration from `root`, and moves each end away from there until the
    // certificate holds.
    ContourResult epsilon_bracket(const SlicePlan& plan, double times, double delta, double root) {
        const double log_delta = std::log(delta);
        const auto on_side = [&](double eps, bool above) {
            const ContourResult r = delta_bracket(plan, times, eps);
            return r.usable && (above ? r.upper <= delta && r.log_upper <= log_delta : r.log_lower >= log_delta);
        };
        const double least_log = eight_roundings, least_move = 2.0 * unit_roundoff * root;
        ValueSlope at{};
        ContourResult r = delta_bracket(plan, times, root, &at);
        if (!(r.usable && at.slope < 0.0)) return {};
        r.usable = false;
        root += (log_delta - at.value) / at.slope;
        double reach = least_move - 1.1 * max(r.log_upper - at.value, least_log) / at.slope;
        for (int k = 0; k < tune::max_moves && !r.usable; ++k, reach *= 2.0)
            r.usable = on_side(r.upper = root + reach, true);
        bool found = false;
        reach = least_move - 1.1 * max(at.value - r.log_lower, least_log) / at.slope;
        for (int k = 0; k < tune::max_moves && !found && root > reach; ++k, reach *= 2.0)
            found = on_side(r.lower = root - reach, false);
        if (!found) r.lower = 0.0;
        return r;
    }

    LossSlices slices_;
    SlicePlanner planner_;
    SliceSummer summer_;
};

// No slices, or those of `steps` equal Poisson-sampled Gaussian steps, made when first asked for;
// where LossSlices covers these.
class OptionalSlices {
  public:
    OptionalSlices() = default;
    OptionalSlices(double sigma, double rate, double steps, const SliceShape& shape, const simd::Kernels& kernels,
                   std::shared_ptr<FourierWorkspace> workspace)
        : sigma_(sigma), rate_(rate), steps_(steps), shape_(shape), kernels_(&kernels),
          workspace_(std::move(workspace)) {}

    explicit operator bool() const { return kernels_ && LossSlices::covers(sigma_, rate_, shape_); }

    double sigma() const { return sigma_; }
    double rate() const { return rate_; }
    double steps() const { return steps_; }  // 0 if there are no such steps

    // The same steps, for deep deltas.
    OptionalSlices deep() const {
        return kernels_ ? OptionalSlices(sigma_, rate_, steps_, SliceShape::deep(), *kernels_, workspace_)
                        : OptionalSlices();
    }

    // Up to how many nodes one line is less work than slices, for that many repetitions.
    double max_nodes(double times) const {
        if (!*this) return infinity;
        return times * steps_ * rate_ < 0.5 ? tune::nodes_worth_slices : tune::nodes_worth_many_slices;
    }

    // Usable where they say more than that something is small.
    ContourResult delta(double times, double eps) { return if_narrow(made().delta(times * steps_, eps)); }
    ContourResult epsilon(double times, double delta, double start) {
        return if_narrow(made().epsilon(times * steps_, delta, start));
    }

    double work() const { return sliced_ ? sliced_->work() : 0.0; }
    std::size_t bytes() const { return sliced_ ? sliced_->bytes() : 0; }

  private:
    ContourResult if_narrow(ContourResult r) const {
        r.usable = r.narrower_than(shape_.usable_width);
        return r;
    }
    SlicedContour& made() {
        if (!sliced_) sliced_ = std::make_unique<SlicedContour>(sigma_, rate_, shape_, *kernels_, workspace_);
        return *sliced_;
    }

    double sigma_ = 0.0, rate_ = 0.0, steps_ = 0.0;
    SliceShape shape_ = SliceShape::usual();
    const simd::Kernels* kernels_ = nullptr;
    std::shared_ptr<FourierWorkspace> workspace_;
    std::unique_ptr<SlicedContour> sliced_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
