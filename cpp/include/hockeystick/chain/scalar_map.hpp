// The maps of the projected scalar chain W -> Pi(psi(W) + noise): gradient steps psi(w) = w - lr
// g(w) on [-R, R], and the bounds of their derivatives that the chain's errors need.
//
//   linear      g(w) = x                           psi' = 1
//   quadratic   g(w) = beta (w - x)                psi' = 1 - lr beta
//   logistic    g(w) = -x/(1 + e^{x w})            psi' = 1 - lr x^2 s(xw)
//   table       values of g at given points, its Lipschitz constant and, where known, that of its
//               derivative
//
// x is the record and s(u) = 1/(4 cosh^2(u/2)), which lies in (0, 1/4] and has |s'| <= 1/(6 sqrt
// 3). In the complex plane |cosh(u + iv)| >= |cos v|, so |s| <= 1/2 for |Im xw| <= pi/2: there a
// logistic map is analytic with |psi'| <= 1 + lr x^2/2.
//
// Maps are evaluated in long double, so that a step's rounding counts once, when the result is
// stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr double max_logistic_third = 0.0962250448649377;  // 1/(6 sqrt 3), of |s'| below

enum class MapKind { linear, quadratic, logistic, table };

struct ScalarMap {
    MapKind kind;
    double record;                 // table: not used
    double smoothness;             // of the gradient; linear and logistic: not used
    double curvature;              // Lipschitz constant of the gradient's derivative; may be inf
    double learning_rate;          // lr
    double noise;                  // scale of the noise added to the gradient
    std::vector<double> gradient;  // table: at the points of the grid, at -R, at R and at the start

    long double scale() const { return static_cast<long double>(learning_rate) * noise; }

    // psi(x); tables look up x by `point`, its number.
    long double operator()(long double x, std::size_t point) const {
        const long double rate = learning_rate, r = record;
        switch (kind) {
        case MapKind::linear:
            return x - rate * r;
        case MapKind::quadratic:
            return x - rate * smoothness * (x - r);
        case MapKind::logistic:
            return x + rate * r / (1.0L + std::exp(r * x));
        case MapKind::table:
            break;
        }
        return x - rate * gradient.at(point);
    }

    // Bound of |psi'| on the real line.
    double lipschitz() const {
        switch (kind) {
        case MapKind::linear:
            return 1.0;
        case MapKind::quadratic:
            return rounded_up(std::fabs(1.0 - learning_rate * smoothness));
        case MapKind::logistic:
            return rounded_up(std::max(1.0, std::fabs(1.0 - 0.25 * learning_rate * record * record)));
        case MapKind::table:
            break;
        }
        return rounded_up(1.0 + learning_rate * smoothness);
    }

    // Bound of |psi''|.
    double second_derivative() const {
        switch (kind) {
        case MapKind::linear:
        case MapKind::quadratic:
            return 0.0;
        case MapKind::logistic:
            return rounded_up(learning_rate * std::fabs(record * record * record) * max_logistic_third);
        case MapKind::table:
            break;
        }
        return learning_rate * curvature;
    }

    // Half-width of the strip around the real line in which the map is analytic and |psi'| is at
    // most complex_lipschitz().
    double strip() const {
        if (kind == MapKind::table) return 0.0;
        if (kind != MapKind::logistic || record == 0.0) return infinity;
        return 1.5707963 / std::fabs(record);  // pi/2, rounded down
    }

    double complex_lipschitz() const {
        if (kind != MapKind::logistic) return lipschitz();
        return rounded_up(1.0 + 0.5 * learning_rate * record * record);
    }

    // Bound of |psi - psi'| for another record under the same learning rate, on the whole line.
    // Tables are compared at their points, `between` away from which two gradients may be further
    // apart.
    double distance(const ScalarMap& other, double between) const {
        const double x = record, y = other.record;
        double gap = 0.0;
        switch (kind) {
        case MapKind::linear:
            gap = std::fabs(x - y);
            break;
        case MapKind::quadratic:
            gap = smoothness * std::fabs(x - y);
            break;
        case MapKind::logistic:
            // The gradients lie between 0 and -x, and between 0 and -y. For y = -x they differ by x
            // everywhere, since x/(1 + e^{xw}) + x/(1 + e^{-xw}) = x.
            gap = x * y >= 0.0 || x == -y ? std::max(std::fabs(x), std::fabs(y)) : std::fabs(x) + std::fabs(y);
            break;
        case MapKind::table:
            for (std::size_t k = 0; k < gradient.size(); ++k)
                gap = std::max(gap, std::fabs(gradient[k] - other.gradient.at(k)));
            gap += 2.0 * smoothness * between;
        }
        return rounded_up(learning_rate * gap);
    }

  private:
    static double rounded_up(double x) { return x * up + eight_roundings; }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
