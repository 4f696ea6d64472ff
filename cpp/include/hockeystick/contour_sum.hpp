// The sum S over the nodes of one contour (contour.hpp): which nodes, and what the sum may be off by.
#pragma once

#include <cmath>
#include <vector>

#include <hockeystick/contour_alias.hpp>
#include <hockeystick/contour_kernels.hpp>
#include <hockeystick/root.hpp>

namespace hockeystick {
inline namespace HOCKEYSTICK_ISA {
namespace detail {

// A line Re s = c with its nodes.
struct ContourLine {
    const ContourLevel* level;
    int k;
    const ContourLevel::Table* table = nullptr;
    double log_last = 0.0;  // log decay of one repetition beyond the last node
    bool usable() const { return table && table->usable; }
};

struct ContourSum {
    double log_unit;      // everything else in units of e^{log_unit}
    double value, slope;  // of delta, or of 1 - delta
    double alias, truncation, rounding;
    double error() const { return alias + truncation + rounding; }
};

// The coarsest nodes whose alias, and the first of them whose truncation, is below the tolerance of e^{log_value}.
inline ContourLine choose_line(const ContourLevel& level, int k, double times, double eps, double log_value) {
    ContourLine line{&level, k};
    constexpr double log_tolerance = -28.0;  // alias and truncation, each, relatively: 7e-13
    const double log_allowed = log_value + log_tolerance;
    const double period = needed_period({level, k, times, eps}, log_allowed);
    if (!(period < 1e200 && period > 1e-200)) return line;
    const int j = static_cast<int>(std::ceil(2.0 * std::log2(period / (2.0 * pi))));
    const double log_unit = level.log_unit(k, times, eps);
    const auto enough = [&](int i) {
        return times * level.log_decay(k, i) - std::log(pi * ContourLevel::frequency(i)) + log_unit <= log_allowed;
    };
    const double width = std::sqrt(max(2.0 * (log_unit - log_allowed), 1.0) / (times * level.variance()));
    const int first = -2 * j, last = first + 4 * ContourLevel::log2_most_nodes;  // omega from h to 2^17 h
    int i = static_cast<int>(4.0 * std::log2(min(max(width, 1e-60), 1e60)));
    i = i < first ? first : i > last ? last : i;
    while (i <= last && !enough(i)) i += 4;
    if (i > last) return line;
    while (i - 4 >= first && enough(i - 4)) i -= 4;
    while (i - 1 >= first && enough(i - 1)) --i;
    line.table = &level.table(k, j, i);
    line.log_last = level.log_decay(k, i);
    return line;
}

// The alias of that sum, in its units.
inline double alias_of(const ContourLine& line, double times, double eps, double log_unit) {
    return alias_error({*line.level, line.k, times, eps}, 2.0 * pi / line.table->h, log_unit);
}

// Sums, one after the other, in the same memory.
class ContourSummer {
  public:
    explicit ContourSummer(const contour::Kernels& kernels) : kernels_(kernels) {}

    // S and its errors, the alias left out.
    ContourSum operator()(const ContourLine& line, double times, double eps) {
        const ContourLevel::Table& t = *line.table;
        const std::size_t n = t.padded;
        terms_.resize(n);
        slopes_.resize(n);
        errors_.resize(n);
        const contour::Nodes nodes{t.nodes.log_abs.data(),
                                   t.nodes.phase.data(),
                                   t.nodes.error.data(),
                                   t.kernel_re.data(),
                                   t.kernel_im.data(),
                                   t.slope_re.data(),
                                   t.slope_im.data(),
                                   t.kernel_abs.data(),
                                   t.h,
                                   n};
        work_ += static_cast<double>(n);
        kernels_.evaluate(nodes, times, eps, terms_.data(), slopes_.data(), errors_.data());
        const double value = kernels_.sum(terms_.data(), n);
        const double slope = kernels_.sum(slopes_.data(), n);
        const double error = kernels_.sum(errors_.data(), n) * (1.0 + 1e-9);
        const ContourLevel::Tilt& m = line.level->at(line.k);
        const double sign = t.c > 0.0 ? 1.0 : -1.0, scale = t.h / pi;
        const double of_unit =
            times * m.error + 4.0 * unit_roundoff * (std::fabs(times * m.value) + std::fabs(t.c * eps) + 8.0);
        ContourSum s;
        s.log_unit = times * m.value - t.c * eps;
        s.value = sign * scale * value;
        s.slope = -sign * scale * slope;
        s.rounding = scale * error + 1.01 * of_unit * std::fabs(s.value);
        s.truncation = std::exp(times * line.log_last) / (pi * static_cast<double>(t.n - 1) * t.h);
        s.alias = 0.0;
        return s;
    }

    // Where the sum is delta; infinity if that is not found.
    double root(const ContourLine& line, double times, double log_delta, double start) {
        const auto f = [&](double eps) {
            const ContourSum s = (*this)(line, times, eps);
            if (!(s.value > 0.0)) return ValueSlope{-1e3, -1.0};
            return ValueSlope{s.log_unit + std::log(s.value) - log_delta, s.slope / s.value};
        };
        try {
            return newton_root(f, start, -infinity, infinity, false, 1e-9 * start);
        } catch (const std::runtime_error&) {
            return infinity;
        }
    }

    double work() const { return work_; }  // nodes visited so far

  private:
    const contour::Kernels& kernels_;
    std::vector<double> terms_, slopes_, errors_;
    double work_ = 0.0;
};

}  // namespace detail
}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick
