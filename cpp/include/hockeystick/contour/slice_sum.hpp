// The contour sums of the parts of a sliced composition (contour/sliced_contour.hpp), and what they
// may be off by.
//
// Alias: every part is a measure >= 0, so that Poisson's formula holds for each of them as it does
// for a whole ledger (contour/alias_error.hpp), with the part's own Chernoff bounds. Parts that are
// not summed are bounded by Chernoff.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/contour/slice_plan.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace simd;

// All parts together.
struct SliceSum {
    double log_unit;  // everything else is in units of e^{log_unit}
    double value = 0.0, slope = 0.0, truncation = 0.0, rounding = 0.0;
    std::size_t nodes = 0, slices = 0;
    double tilt = 0.0;  // of the last part
};

// Whether the aliases n < 0 of a part are known: eps - D lies below all losses.
inline bool aliases_are_known(const LossSlices& slices, const LossSlices::Table& line, double times, double eps) {
    return 2.0 * pi / line.h >= (eps - times * slices.least_loss()) * (1.0 + 1e-12);
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
        const double error = unit * kernels_.sum(errors_.data(), n) * (1.0 + 1e-9);
        const double sizes = std::fabs(power) + log_raise + std::fabs(t.c * eps) + std::fabs(s.log_unit) + 8.0;
        const double unit_error = times * t.error + 4.0 * unit_roundoff * sizes;
        s.value += value;
        s.slope += slope;
        s.rounding += error + 1.01 * std::expm1(unit_error) * (std::fabs(value) + error);
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
            errors[under_p ? 0 : 1] = mass * sum * (1.1 * mass_error + 8.0 * unit_roundoff * sizes);
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
            const double distance = std::fabs(slices.at(index).c - t.c);
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
    e.missing += 1.01 * times * slices.missing_share() * (std::fabs(s.value) + s.truncation + s.rounding);
    const double either_way = s.truncation + s.rounding + e.missing;
    e.below = either_way + e.alias;
    e.above = either_way + e.bounded;
    return e;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
