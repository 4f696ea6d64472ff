// Discrete pairs made from something finer: a law put on a grid of losses, and a pair with room for
// the rounding of its masses.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// Moves the masses that Q puts at losses to the grid, and adds them to `gridded`, such that delta
// only grows. The increasing nodes of the grid enclose all losses.
//
// Each outcome becomes two, at the nodes on its two sides, with the same mass under Q and, as the
// mean of e^loss is kept, under P too. By convexity in e^loss no hockey-stick divergence falls
// (connecting the dots: Doroshenko and others 2022). P has e^node times the result.
inline void connect_the_dots(const std::vector<double>& losses, const std::vector<double>& masses,
                             const std::vector<double>& nodes, std::vector<double>& gridded) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
        const auto above = std::upper_bound(nodes.begin() + 1, nodes.end() - 1, losses[i]) - nodes.begin();
        const auto right = static_cast<std::size_t>(above), left = right - 1;
        const double share = std::expm1(losses[i] - nodes[left]) / std::expm1(nodes[right] - nodes[left]);
        const double moved = min(max(share, 0.0), 1.0);
        gridded[left] += (1.0 - moved) * masses[i];
        gridded[right] += moved * masses[i];
    }
}

// One law of `widened`: raises the masses of which `raised` holds by a share and lowers the others;
// the sum stays.
template <class Raised> void widen_law(std::vector<double>& law, double error, const Raised& raised) {
    CompensatedSum gain, spare;
    for (std::size_t i = 0; i < law.size(); ++i) (raised(i) ? gain : spare).add(law[i]);
    if (spare.value() <= 2.0 * error * gain.value())
        throw std::invalid_argument("the two data sets must not be told apart almost surely, as they are here");
    const double lowered = 1.0 - error * gain.value() / spare.value();
    for (std::size_t i = 0; i < law.size(); ++i) law[i] *= raised(i) ? 1.0 + error : lowered;
}

// A pair that leaks no less than the true one, of which p and q are known up to a relative error.
//
// P's masses of positive losses (infinite ones included) and Q's of negative ones are raised by
// that share, the others lowered; sums stay. So P(A) - e^eps Q(A) of the upper outcomes A,
// eps >= 0, rises by error P(A), which is more than it is off by. For eps < 0 the same is seen from
// the lower outcomes.
inline Masses widened(const std::vector<double>& losses, Masses pair, double error) {
    widen_law(pair.p, error, [&](std::size_t i) { return losses[i] > 0.0; });
    widen_law(pair.q, error, [&](std::size_t i) { return losses[i] < 0.0; });
    return pair;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
