// The sum S over the nodes of one contour (contour/contour.hpp): which nodes, and what the sum may be off by.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/contour/alias_error.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/simd/kernel_table.hpp>

namespace hockeystick::contour {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace simd;

// A line Re s = c with its nodes: of spacing 2^{-j/2} up to frequency(i).
struct ContourLine {
    const ContourLevel* level;
    int k;
    Repeated of;
    int j = 0, i = 0;
    double nodes = infinity;  // how many these are
    double log_last = 0.0;    // log decay beyond the last node
    const ContourTable* table = nullptr;

    // Makes the nodes; false where that is out of proportion.
    bool prepare() {
        if (nodes > std::exp2(ContourLevel::log2_most_nodes)) return false;
        table = &level->table(k, j, i, of.smoothing);
        return table->usable;
    }
};

struct ContourSum {
    double log_unit;      // everything else in units of e^{log_unit}
    double value, slope;  // of delta, or of 1 - delta
    double alias, truncation, rounding;
    double error() const { return alias + truncation + rounding; }
};

// The curvature of K at tilt k, by its neighbours; that of small tilts where they do not tell.
inline double variance_at(const ContourLevel& level, int k) {
    if (k <= ContourLevel::lowest || k >= ContourLevel::last_positive) return level.variance();
    const ContourLevel::Tilt &left = level.at(k - 1), &at = level.at(k), &right = level.at(k + 1);
    const double before = (at.value - left.value) / (at.c - left.c),
                 after = (right.value - at.value) / (right.c - at.c);
    const double found = 2.0 * (after - before) / (right.c - left.c);
    return found > 0.0 && found < infinity ? found : level.variance();
}

// The first frequency beyond which the rest is below e^{log_allowed}: smoothing alone tells, or else the losses' own decay. Both fall
// with omega, about like -omega^2 variance/2 at first, so that any search finds the same one.
inline void choose_last(ContourLine& line, double log_unit, double log_allowed) {
    const double smoothing = line.of.smoothing;
    const auto log_decay = [&](int i) {
        const double turn = smoothing * ContourLevel::frequency(i);
        return turn > 0.0 ? -0.5 * turn * turn : line.of.times * line.level->log_decay(line.k, i);
    };
    const double variance = smoothing > 0.0 ? smoothing * smoothing : line.of.times * variance_at(*line.level, line.k);
    const double width = std::sqrt(max(2.0 * (log_unit - log_allowed), 1.0) / variance);
    const int first = -2 * line.j, last = first + 4 * ContourLevel::log2_most_nodes;  // omega from h
    const double guess = std::ceil(4.0 * std::log2(min(max(width, 1e-60), 1e60)));
    int i = std::min(std::max(static_cast<int>(guess), first), last), below = first - 1, above = last + 1;
    int tried = 0, before = i;
    double log_before = 0.0;
    while (above - below > 1) {
        const double found = std::log2(max(-log_decay(i), 1e-300));
        const double wanted = max(log_unit - log_allowed - std::log(pi * ContourLevel::frequency(i)), 1e-300);
        const bool enough = found >= std::log2(wanted);
        (enough ? above : below) = i;
        const double slope = i == before ? 0.5 : min(max((found - log_before) / (i - before), 0.1), 0.5);
        const double next = i + std::ceil(min(max((std::log2(wanted) - found) / slope, -64.0), 64.0));
        before = i;
        log_before = found;
        const bool halve = ++tried > 5 && below >= first && above <= last;
        i = halve ? (below + above) / 2 : std::min(std::max(static_cast<int>(next), below + 1), above - 1);
    }
    if (above > last) return;
    line.i = above;
    line.nodes = ContourLevel::frequency(above) * std::exp2(0.5 * line.j);
    line.log_last = log_decay(above);
}

// The coarsest nodes whose alias, and the first of them whose truncation, is below e^{log_allowed}.
inline ContourLine choose_line(const ContourLevel& level, int k, const Repeated& of, double eps, double log_allowed) {
    ContourLine line{&level, k, of};
    const double period = needed_period({level, k, of, eps}, log_allowed);
    if (!(period < 1e200 && period > 1e-200)) return line;
    line.j = static_cast<int>(std::ceil(2.0 * std::log2(period / (2.0 * pi))));
    choose_last(line, level.log_unit(k, of, eps), log_allowed);
    return line;
}

// The alias of that sum, in its units.
inline double alias_of(const ContourLine& line, double eps, double log_unit) {
    return alias_error({*line.level, line.k, line.of, eps}, 2.0 * pi / line.table->h, log_unit);
}

// Sums, one after the other, in the same memory.
class ContourSummer {
  public:
    explicit ContourSummer(const simd::Kernels& kernels) : kernels_(kernels) {}

    // S and its errors, the alias left out.
    ContourSum operator()(const ContourLine& line, double eps) {
        const ContourTable& t = *line.table;
        ContourSum s = sum(line, eps, t.kernel);
        subtract_known(line, eps, s);
        return s;
    }

    // What smoothing adds to delta, at most, in units of e^{log_unit}.
    double smoothing_of(const ContourLine& line, double eps) {
        const double variance = line.of.smoothing * line.of.smoothing;
        if (variance == 0.0) return 0.0;
        const ContourTable& t = *line.table;
        const ContourSum density = sum(line, eps, t.density);
        const double value = (t.c > 0.0 ? density.value : -density.value) + density.rounding;
        // beyond omega the integral of e^{-variance omega^2/2} is less than that over variance omega
        const double most = max(variance * value + density.truncation, 0.0);
        return std::exp(0.125 * variance) * most * (1.0 + 1e-12);
    }

    // Nearly where the sum is delta, one step of Newton's iteration from there; infinity if that is not found.
    double root(const ContourLine& line, double log_delta, double start) {
        const auto f = [&](double eps) {
            const ContourSum s = (*this)(line, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        try {
            const double guess = line.level->expected_epsilon(line.k, line.of, log_delta);
            const double from = guess > 0.3 * start && guess < start ? guess : start;
            const double near = newton_root(f, from, -infinity, infinity, false, 1e-5 * start);
            return near > 0.1 * start ? near : newton_root(f, near, -infinity, infinity, false, 1e-9 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    double work() const { return work_; }  // nodes visited so far
    std::size_t bytes() const { return 3 * terms_.capacity() * sizeof(double); }

  private:
    ContourSum sum(const ContourLine& line, double eps, const ContourTable::Factors& by) {
        const ContourTable& t = *line.table;
        const std::size_t n = t.padded;
        terms_.resize(n);
        slopes_.resize(n);
        errors_.resize(n);
        const simd::Nodes nodes{t.nodes.log_abs.data(),
                                t.nodes.phase.data(),
                                t.nodes.error.data(),
                                by.real.data(),
                                by.imag.data(),
                                by.size.data(),
                                t.c,
                                t.h,
                                n};
        work_ += static_cast<double>(n);
        kernels_.fill_sum_terms(nodes, line.of.times, eps, terms_.data(), slopes_.data(), errors_.data());
        const double value = kernels_.sum(terms_.data(), n);
        const double slope = kernels_.sum(slopes_.data(), n);
        const double error = kernels_.sum(errors_.data(), n) * (1.0 + 1e-9);
        const ContourLevel::Tilt& m = line.level->at(line.k);
        const double sign = t.c > 0.0 ? 1.0 : -1.0, scale = t.h / pi;
        const double power = line.of.times * m.value, smoothed = ContourLevel::of_smoothing(t.c, line.of);
        const double sizes = std::fabs(power) + std::fabs(smoothed) + std::fabs(t.c * eps) + 8.0;
        const double of_unit = line.of.times * m.error + 4.0 * unit_roundoff * sizes;
        ContourSum s;
        s.log_unit = power + smoothed - t.c * eps;
        s.value = sign * scale * value;
        s.slope = -sign * scale * slope;
        const double truncation = std::exp(line.log_last) / (pi * static_cast<double>(t.n - 1) * t.h);
        s.truncation = truncation * std::exp(of_unit);
        s.rounding = scale * error + 1.01 * std::expm1(of_unit) * (std::fabs(s.value) + scale * error);
        s.alias = 0.0;
        return s;
    }

    // Takes out the terms n < 0 of Poisson's formula where they are known: sum_{n >= 1} e^{-c n D} - e^{eps - (c+1) n D}.
    static void subtract_known(const ContourLine& line, double eps, ContourSum& s) {
        const double c = line.table->c, period = 2.0 * pi / line.table->h;
        if (period < AliasOf{*line.level, line.k, line.of, eps}.known_from()) return;
        const double ones = std::exp(-c * period - s.log_unit) / -std::expm1(-c * period);
        const double tails = std::exp(eps - (c + 1.0) * period - s.log_unit) / -std::expm1(-(c + 1.0) * period);
        s.value -= ones - tails;
        s.slope += tails;
        const double missing = line.of.times * std::exp(line.level->log_missing());
        const double sizes = 8.0 + (c + 1.0) * period + std::fabs(eps) + std::fabs(s.log_unit);
        s.rounding += (ones + tails) * (1.01 * missing + 4.0 * unit_roundoff * sizes);
    }

    const simd::Kernels& kernels_;
    std::vector<double> terms_, slopes_, errors_;
    double work_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::contour
