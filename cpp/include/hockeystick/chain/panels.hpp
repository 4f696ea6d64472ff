// Gauss-Legendre panels on [-R, R] for the densities of a scalar chain with Gaussian noise, and
// what they miss. docs/core/chain.md derives both bounds.
//
// A step integrates f(x) phi_s(y - psi(x)) over a panel of half-length a, where f is a mixture of
// phi_s. On an ellipse around the panel with semi-axes A = a (r + 1/r)/2 and B = a (r - 1/r)/2, and
// with c a bound of |psi'| there, the rule's error, integrated over y, is at most
//
//   a (64/15) r^{-2N}/(1 - r^{-2}) e^{(1 + c^2) B^2/2s^2}/(s sqrt(2 pi)) (1 + 2 c A/(s sqrt(2 pi)))
//
// a panel, minimised over r. Interpolating f at the nodes misses at most
//
//   (1 + Lambda) 2 M r^{1-N}/(r - 1),   M = e^{B^2/2s^2}/(s sqrt(2 pi)),
//
// with Lambda the nodes' Lebesgue constant.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/numeric/gauss_legendre.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr std::size_t panel_nodes = 16;
inline constexpr double lebesgue_constant = 10.0;  // 6.92 for 16 Legendre nodes

// The L1 errors of one step with panels of half-length a: of the quadrature rule, and of
// interpolating f.
struct PanelErrors {
    double rule, interpolation;
};

inline PanelErrors panel_errors(double a, double panels, double scale, double lipschitz, double strip) {
    const double n = panel_nodes;
    PanelErrors best{infinity, infinity};
    for (double r = 1.25; r < 200.0; r *= 1.08) {
        const double minor = 0.5 * a * (r - 1.0 / r), major = 0.5 * a * (r + 1.0 / r);
        if (minor > strip) break;
        const double density = 0.4 / scale;  // > 1/(s sqrt(2 pi))
        const double rise = std::exp(0.5 * (minor / scale) * (minor / scale));
        const double image = std::exp(0.5 * (lipschitz * minor / scale) * (lipschitz * minor / scale));
        const double rule = 64.0 / 15.0 * std::pow(r, -2.0 * n) / (1.0 - 1.0 / (r * r)) * rise * image * density *
                            (1.0 + 2.0 * lipschitz * major * density);
        const double interpolation =
            (1.0 + lebesgue_constant) * 2.0 * rise * density * std::pow(r, 1.0 - n) / (r - 1.0);
        best.rule = std::min(best.rule, panels * a * rule);
        best.interpolation = std::min(best.interpolation, panels * 2.0 * a * interpolation);
    }
    return best;
}

struct PanelGrid {
    std::size_t panels = 0;
    std::vector<long double> nodes, weights;  // of all panels, from left to right
    QuadratureRule rule = gauss_legendre(panel_nodes);

    PanelGrid(std::size_t count, long double radius) : panels(count) {
        const long double a = radius / static_cast<long double>(count);
        for (std::size_t k = 0; k < count; ++k) {
            const long double middle = -radius + a * static_cast<long double>(2 * k + 1);
            for (std::size_t i = 0; i < panel_nodes; ++i) {
                nodes.push_back(middle + a * rule.nodes[i]);
                weights.push_back(a * rule.weights[i]);
            }
        }
    }

    // The values at x of a panel's Lagrange polynomials, in barycentric form.
    // The barycentric weights of Legendre nodes are (-1)^i sqrt((1 - t^2) w).
    void lagrange(std::size_t panel, long double x, double (&values)[panel_nodes]) const {
        long double sum = 0.0L, terms[panel_nodes];
        for (std::size_t i = 0; i < panel_nodes; ++i) {
            const long double t = rule.nodes[i];
            const long double gap = x - nodes[panel * panel_nodes + i];
            terms[i] = (i % 2 == 0 ? 1.0L : -1.0L) * std::sqrt((1.0L - t * t) * rule.weights[i]);
            terms[i] /= gap == 0.0L ? 1e-300L : gap;
            sum += terms[i];
        }
        for (std::size_t i = 0; i < panel_nodes; ++i) values[i] = static_cast<double>(terms[i] / sum);
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
