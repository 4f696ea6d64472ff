// Ground truth in one dimension: the last iterate of two projected noisy chains
//
//   W_{t+1} = Pi_[-R,R](psi_t(W_t) + Z_t),     t = 0..T-1,  W_0 fixed,  Z_t Gaussian or Laplace,
//
// whose maps psi_t differ in the rounds in which the differing record takes part. This header
// returns certified brackets of delta(eps) = max(E_{e^eps}(P||Q), E_{e^eps}(Q||P)).
//
// chain/gaussian_chain.hpp and chain/laplace_chain.hpp discretise the steps, chain/chain_errors.hpp
// adds up what that costs, chain/mixture_divergence.hpp compares the last laws. docs/core/chain.md
// has the theorems.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include <hockeystick/chain/gaussian_chain.hpp>
#include <hockeystick/chain/laplace_chain.hpp>
#include <hockeystick/chain/mixture_divergence.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double max_chain_eps = 700.0;  // e^eps must not overflow
inline constexpr double far_eps = 20.0;

// Widens `bracket` to the larger of itself and a divergence in one direction, which errs by
// `error`.
inline void include_direction(const Interval& divergence, double error, Interval& bracket) {
    bracket.lower = std::max(bracket.lower, divergence.lower - error);
    bracket.upper = std::max(bracket.upper, std::min(1.0, divergence.upper + error));
}

// An upper bound of P(A), A = {p >= gamma q}. With gamma' = e^{eps - 0.7} < gamma/2,
// E_{gamma'}(P||Q) >= P(A) - gamma' Q(A) >= P(A) (1 - gamma'/gamma) >= P(A)/2.
template <class Divergence> double mass_of_best_set(const Divergence& divergence, double eps) {
    return eps > 0.7 ? std::min(1.0, 2.0 * divergence(eps - 0.7).value.upper) : 1.0;
}

template <class Chain, class Divergence>
void include_certified(const Chain& chain, double steps, double eps, const Divergence& divergence, Interval& bracket) {
    const double gamma = std::exp(eps);
    const Interval computed = divergence(eps).value;
    const auto error_given = [&](double positive_mass) {
        return accumulated_error(chain.errors(), steps, chain.mixing(), gamma, positive_mass);
    };
    double error = error_given(1.0);
    if (error > 1e-3 * computed.lower) error = std::min(error, error_given(mass_of_best_set(divergence, eps)));
    include_direction(computed, error, bracket);
}

// Brackets for each eps; pair(forward, eps) is the computed laws' divergence in one direction.
//
// Truncation errors of Q's law count e^eps times. Beyond far_eps, the upper end at far_eps is no
// smaller than the truth and may be the better bound.
template <class Chain, class Pair>
std::vector<Interval> both_directions(const Chain& chain, double steps, const std::vector<double>& eps,
                                      const Pair& pair, const std::atomic<bool>& stop) {
    std::vector<Interval> brackets(eps.size(), Interval{0.0, 0.0});
    const auto include = [&](double at, Interval& bracket) {
        for (const bool forward : {true, false})
            include_certified(chain, steps, at, [&](double e) { return pair(forward, e); }, bracket);
    };
    for (std::size_t k = 0; k < eps.size() && !stop; ++k) {
        Interval nearer{0.0, 1.0};
        if (eps[k] > far_eps) {
            nearer.upper = 0.0;
            include(far_eps, nearer);
        }
        if (eps[k] <= max_chain_eps) include(eps[k], brackets[k]);
        else brackets[k].upper = eps[k] < infinity ? 1.0 : 0.0;  // one null set for both laws
        brackets[k].upper = std::min(brackets[k].upper, nearer.upper);
    }
    return brackets;
}

// The computed densities are right to a factor e^{+-2 tilt}, so that
// E_eps(P||Q) <= e^{2 tilt} E_{eps - 4 tilt}(computed), and the reverse.
template <class Pair>
void tighten_by_tilt(double tilt, const std::vector<double>& eps, const Pair& pair, std::vector<Interval>& brackets) {
    for (std::size_t k = 0; k < eps.size(); ++k) {
        if (!(eps[k] <= max_chain_eps)) continue;
        Interval tilted{0.0, 0.0};
        for (const bool forward : {true, false}) {
            const double below = eps[k] - 4.0 * tilt;
            const double upper = below > 0.0 ? std::exp(2.0 * tilt) * pair(forward, below).value.upper : 1.0;
            const double lower = std::exp(-2.0 * tilt) * pair(forward, eps[k] + 4.0 * tilt).value.lower;
            tilted = {std::max(tilted.lower, lower), std::max(tilted.upper, upper)};
        }
        brackets[k] = {std::max(brackets[k].lower, tilted.lower), std::min(brackets[k].upper, tilted.upper)};
    }
}

// An upper bound of the largest privacy loss under Laplace noise.
//
// A gap z between two runs costs z/b_s where round s's noise hides it; until then it has grown by
// the Lipschitz constants on the way. So it costs z price_t with
//
//   price_t = min(1/b_t, lambda_{t+1} price_{t+1}).
//
// Either all gaps are paid, or those after a round at whose map the gap was at most its image's
// width.
inline double largest_loss(const ScalarChain& chain, std::size_t points) {
    double later = 0.0, best = infinity, price = infinity, lipschitz = 1.0;
    const double between = chain.radius / static_cast<double>(points);
    for (std::size_t t = chain.first.size(); t-- > 0;) {
        const ScalarMap &a = chain.maps[chain.first[t]], &b = chain.maps[chain.second[t]];
        const double scale = std::min(static_cast<double>(a.scale()), static_cast<double>(b.scale()));
        price = std::min(1.0 / scale, lipschitz * price);
        lipschitz = std::max(a.lipschitz(), b.lipschitz());
        const double gap = chain.first[t] == chain.second[t] ? 0.0 : a.distance(b, between);
        if (t > 0) best = std::min(best, later + (2.0 * lipschitz * chain.radius + gap) * price);
        later += gap * price;
    }
    return std::min(best, later) * (1.0 + 1e-12 * static_cast<double>(chain.first.size()));
}

// `cells` of the grid; the brackets' width falls with their square.
inline std::vector<Interval> laplace_brackets(const ScalarChain& chain, const std::vector<double>& eps,
                                              std::size_t cells, const std::atomic<bool>& stop) {
    const double steps = static_cast<double>(chain.first.size() - 1);  // the last step is exact
    const LaplaceChain discrete(chain, cells);
    const LastLaws laws = discrete.run(stop);
    const double noise = static_cast<double>(laws.p_noise), radius = chain.radius;
    const LaplaceMixturePair forwards(laws.p, laws.q, noise, radius), backwards(laws.q, laws.p, noise, radius);
    const auto pair = [&](bool forward, double at) { return (forward ? forwards : backwards).hockey_stick(at); };
    std::vector<Interval> brackets = both_directions(discrete, steps, eps, pair, stop);
    tighten_by_tilt(steps * discrete.tilt(), eps, pair, brackets);
    const double largest = largest_loss(chain, cells);
    for (std::size_t k = 0; k < eps.size(); ++k) {
        if (eps[k] >= largest) brackets[k].upper = 0.0;
    }
    return brackets;
}

inline std::vector<Interval> gaussian_brackets(const ScalarChain& chain, const std::vector<double>& eps,
                                               std::size_t table_points, const std::atomic<bool>& stop) {
    const double steps = static_cast<double>(chain.first.size() - 1);  // the last step is exact
    const bool tables = std::any_of(chain.maps.begin(), chain.maps.end(),
                                    [](const ScalarMap& map) { return map.kind == MapKind::table; });
    const GaussianChain discrete(chain, tables ? table_points : 0);
    const LastLaws laws = discrete.run(stop);
    const auto pair = [&](bool forward, double at) {
        return gaussian_mixture_divergence(forward ? laws.p : laws.q, forward ? laws.q : laws.p, laws.p_noise,
                                           chain.radius, at);
    };
    return both_directions(discrete, steps, eps, pair, stop);
}

// Brackets of delta at each eps >= 0. `points` counts the cells for Laplace noise, and the points
// of the tables for Gaussian noise; it is not used otherwise.
inline std::vector<Interval> scalar_chain(const ScalarChain& chain, const std::vector<double>& eps, std::size_t points,
                                          const std::atomic<bool>& stop) {
    require_legal(chain);
    if (points == 0) throw std::invalid_argument("points must be positive");
    return chain.laplace ? laplace_brackets(chain, eps, points, stop) : gaussian_brackets(chain, eps, points, stop);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
