// Normal weights of the cells of a line, for integrals of functions that are linear in e^{dv} on
// each cell:
//
//   integral f(v) phi(v) dv,   f = (1 - share) f_left + share f_right,
//   share(v) = (e^{d(v - left)} - 1)/(e^{d(right - left)} - 1) on the cell [left, right].
//
// Cells are divided into parts; a part that an end falls into is integrated anew. All f must be >=
// 0; results are rounded up.
//
// Error. Six nodes of Gauss and Legendre miss at most (6!)^4/(13 (12!)^3) h^13 max|F^(12)| <
// 1.9e-16 h^13 max|F^(12)| on a part of length h. |phi^(m)| = |He_m| phi, and |He_m(v)| = |E (v +
// iZ)^m| <= K^m, K = |v| + 2.2, for m <= 12 (Minkowski, with E Z^12 = 10395 = 2.162^12). The m-th
// derivative of the share is at most d^m e^D/(e^D - 1), D = d(right - left). So with H = h (K + d)
//
//   |F^(12)| <= phi (K + d)^12 (1 + 12 (1 + D)/((right - left)(K + d))),
//   |error|  <= 1.9e-16 (H^12 + 12 (1 + D) H^11) h max phi.
//
// A part that begins at a is at most 1.5/(|a| + d + 3.7) long, so that |v| < |a| + 1/2 on it and
// H <= 3/2, where the largest density is at most 4.5 times the smallest: that is less than 1.1e-12
// (1 + D) of the part's normal mass. Each weight is raised by weight_error (1 + D) of the part's
// mass, which pays for the error, for rounding, and for the position v itself (v^2 times some ulps,
// |v| < 39).
//
// The mass beyond 39 is left out; it is below 1e-331. Cost: a part has six densities.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;

inline constexpr double normal_reach = 39.0;
inline constexpr double weight_error = 1e-11;

// Phi(to) - Phi(from), rounded up; no less than the smaller tail's rounding.
inline double normal_mass(double from, double to) {
    if (!(to > from)) return 0.0;
    const double near = from > 0.0 ? q(from) : q(-to), far = from > 0.0 ? q(to) : q(-from);
    return near - far + sixteen_roundings * near;
}

struct CellWeights {
    double left, right;
};

// Of [from, to] within the cell [left, left + width]; `from` and `to` are counted from `left`. A
// part in the sense above.
inline CellWeights cell_weights(double d, double left, double width, double from, double to) {
    static constexpr double nodes[] = {0.23861918608319691, 0.66120938646626451, 0.93246951420315203};
    static constexpr double rule[] = {0.46791393457269105, 0.36076157304813861, 0.17132449237917035};
    const double middle = 0.5 * (from + to), half = 0.5 * (to - from), inverse = 1.0 / std::expm1(d * width);
    CellWeights sum{0.0, 0.0};
    for (std::size_t i = 0; i < 6; ++i) {
        const double offset = middle + (i < 3 ? -half : half) * nodes[i % 3];
        const double mass = rule[i % 3] * half * gaussian_density(left + offset);
        const double share = std::min(1.0, std::expm1(d * offset) * inverse);
        sum.right += mass * share;
        sum.left += mass * (1.0 - share);
    }
    const double error = weight_error * (1.0 + d * width) * (sum.left + sum.right);
    return {sum.left + error, sum.right + error};
}

class CellMeasure {
  public:
    // The cells lie between neighbours of the increasing sequence `knots`.
    CellMeasure(double d, std::vector<double> knots) : d_(d), knots_(std::move(knots)) {
        for (std::size_t i = 0; i + 1 < knots_.size(); ++i) {
            const double end = std::min(knots_[i + 1], normal_reach);
            for (double at = std::max(knots_[i], -normal_reach); at < end;) {
                const double next = std::min(end, at + 1.5 / (std::fabs(at) + d + 3.7));
                parts_.push_back({at, next, i, weights(i, at, next)});
                at = next;
            }
        }
    }

    double knot(std::size_t i) const { return knots_[i]; }

    // The integral over [from, to], between knot(first) and knot(last), of the function that has
    // values[i - first] at knot i.
    double integral(const double* values, std::size_t first, double from, double to) const {
        double sum = 0.0;
        const auto before = [](const Part& part, double v) { return part.to <= v; };
        for (auto part = std::lower_bound(parts_.begin(), parts_.end(), from, before);
             part != parts_.end() && part->from < to; ++part) {
            const bool whole = from <= part->from && part->to <= to;
            const CellWeights w =
                whole ? part->weights : weights(part->cell, std::max(from, part->from), std::min(to, part->to));
            sum += values[part->cell - first] * w.left + values[part->cell - first + 1] * w.right;
        }
        return sum;
    }

  private:
    struct Part {
        double from, to;
        std::size_t cell;
        CellWeights weights;
    };

    double d_;
    std::vector<double> knots_;
    std::vector<Part> parts_;

    CellWeights weights(std::size_t cell, double from, double to) const {
        const double left = knots_[cell];
        return cell_weights(d_, left, knots_[cell + 1] - left, from - left, to - left);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state
