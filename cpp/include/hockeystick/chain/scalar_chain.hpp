// Ground truth in one dimension: the last iterate of two projected noisy chains
//
//   W_{t+1} = Pi_[-R,R](psi_t(W_t) + Z_t),     t = 0..T-1,  W_0 fixed,  Z_t Gaussian or Laplace,
//
// whose maps psi_t differ in the rounds in which the differing record takes part: certified ends of
//
//   delta(eps) = max(E_{e^eps}(P||Q), E_{e^eps}(Q||P)).
//
// chain/gaussian_chain.hpp and chain/laplace_chain.hpp discretise, chain/chain_errors.hpp adds up what that costs, chain/gaussian_mixture_divergence.hpp and
// chain/laplace_mixture_divergence.hpp compare the last laws. And what one step of such a chain can preserve: the contraction coefficient of a projected kernel,
//
//   eta_gamma = sup_{x, x'} E_gamma(K(x)||K(x'))           (the two-point characterisation: Asoodeh, Diaz, Calmon 2020, Thm 1).
//
// K(x) = Pi(N(m, s^2)), m = psi(x) in [low, high]. The likelihood ratio of two means m > m' increases, the best set is {y > t}
// (or y >= t) with t in [-R, R], and Q((t - m)/s) - gamma Q((t - m')/s) increases in m and decreases in m': the
// supremum is at the ends of [low, high], and the best t is the unprojected (m + m')/2 + eps s^2/(m - m') brought into [-R, R].
// The same holds for Laplace noise with t = (m + m' + eps b)/2; m < m' is the mirror image.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/chain/gaussian_chain.hpp>
#include <hockeystick/chain/gaussian_mixture_divergence.hpp>
#include <hockeystick/chain/laplace_chain.hpp>
#include <hockeystick/chain/laplace_mixture_divergence.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;

struct ChainBracket {
    std::vector<double> lower, upper;  // one per eps
};

inline void add_direction(const CertifiedEnds& ends, double error, double& lower, double& upper) {
    lower = std::max(lower, ends.lower - error);
    upper = std::max(upper, std::min(1.0, ends.upper + error));
}

// E at eps - log 2, doubled, bounds P(A): P(A) - gamma/2 Q(A) >= P(A)/2 where p >= gamma q.
template <class Divergence> double positive_mass(const Divergence& divergence, double eps) {
    return eps > 0.7 ? std::min(1.0, 2.0 * divergence(eps - 0.7).upper) : 1.0;
}

template <class Chain, class Divergence>
void bracket(const Chain& chain, double steps, double eps, const Divergence& divergence, double& lower, double& upper) {
    const double gamma = std::exp(eps);
    const CertifiedEnds ends = divergence(eps);
    double error = accumulated_error(chain.errors(), steps, chain.mixing(), gamma, 1.0);
    if (error > 1e-3 * ends.lower) {
        error = std::min(
            error, accumulated_error(chain.errors(), steps, chain.mixing(), gamma, positive_mass(divergence, eps)));
    }
    add_direction(ends, error, lower, upper);
}

inline constexpr double far_eps = 20.0;

// Truncation errors of Q's law count e^eps times: beyond far_eps the value there, which is no smaller, may be the better bound.
template <class Chain, class Pair>
ChainBracket both_directions(const Chain& chain, double steps, const std::vector<double>& eps, const Pair& pair,
                             const std::atomic<bool>& stop) {
    ChainBracket result{std::vector<double>(eps.size(), 0.0), std::vector<double>(eps.size(), 0.0)};
    const auto evaluate = [&](double at, double& lower, double& upper) {
        for (const bool forward : {true, false})
            bracket(chain, steps, at, [&](double e) { return pair(forward, e); }, lower, upper);
    };
    for (std::size_t k = 0; k < eps.size() && !stop; ++k) {
        double lower = 0.0, nearer = 1.0;
        if (eps[k] > far_eps) {
            nearer = 0.0;
            evaluate(far_eps, lower, nearer);
        }
        if (eps[k] <= 700.0) evaluate(eps[k], result.lower[k], result.upper[k]);
        else result.upper[k] = eps[k] < infinity ? 1.0 : 0.0;  // at infinity: both laws have the same null sets
        result.upper[k] = std::min(result.upper[k], nearer);
    }
    return result;
}

// Densities right to a factor e^{+-2 tilt}: E_eps(P||Q) <= e^{2 tilt} E_{eps - 4 tilt}(computed), and the reverse.
template <class Pair>
void tighten_by_tilt(double tilt, const std::vector<double>& eps, const Pair& pair, ChainBracket& result) {
    for (std::size_t k = 0; k < eps.size(); ++k) {
        if (!(eps[k] <= 700.0)) continue;
        double lower = 0.0, upper = 0.0;
        for (const bool forward : {true, false}) {
            const double below = eps[k] - 4.0 * tilt;
            upper = std::max(upper, below > 0.0 ? std::exp(2.0 * tilt) * pair(forward, below).upper : 1.0);
            lower = std::max(lower, std::exp(-2.0 * tilt) * pair(forward, eps[k] + 4.0 * tilt).lower);
        }
        result.upper[k] = std::min(result.upper[k], upper);
        result.lower[k] = std::max(result.lower[k], lower);
    }
}

// Bound of the largest privacy loss under Laplace noise. A gap z between two runs costs z/b_s where round s's noise hides
// it, and has grown by the Lipschitz constants on the way there: price_t = min(1/b_t, lambda_{t+1} price_{t+1}). Either all gaps
// are paid, or those after a round at whose map the gap was at most the width of its image.
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

// delta at each eps >= 0. `points`: cells for Laplace noise; for tables, points of the fine grid; not used otherwise.
inline ChainBracket scalar_chain(const ScalarChain& chain, const std::vector<double>& eps, std::size_t points,
                                 const std::atomic<bool>& stop) {
    const double steps = static_cast<double>(chain.first.size() - 1);  // the last one is exact
    if (chain.laplace) {
        const LaplaceChain discrete(chain, points);
        const auto laws = discrete.run(stop);
        const auto noise = static_cast<double>(laws.p_noise), radius = chain.radius;
        const LaplaceMixturePair there(laws.p, laws.q, noise, radius), back(laws.q, laws.p, noise, radius);
        const auto pair = [&](bool forward, double at) { return (forward ? there : back).hockey_stick(at); };
        ChainBracket result = both_directions(discrete, steps, eps, pair, stop);
        tighten_by_tilt(steps * discrete.tilt(), eps, pair, result);
        const double largest = largest_loss(chain, points);
        for (std::size_t k = 0; k < eps.size(); ++k) {
            if (eps[k] >= largest) result.upper[k] = 0.0;
        }
        return result;
    }
    const bool tables = std::any_of(chain.maps.begin(), chain.maps.end(),
                                    [](const ScalarMap& map) { return map.kind == MapKind::table; });
    const GaussianChain discrete(chain, tables ? points : 0);
    const auto laws = discrete.run(stop);
    const auto pair = [&](bool forward, double at) {
        return gaussian_mixture_divergence(forward ? laws.p : laws.q, forward ? laws.q : laws.p, laws.p_noise,
                                           chain.radius, at);
    };
    return both_directions(discrete, steps, eps, pair, stop);
}

// sup over thresholds of tail(t - high) - gamma tail(t - low), the best t brought into [-R, R]; a and b are the thresholds that
// this leaves for the two means, in noise deviations.
inline double two_point(double eps, double a, double b, bool laplace) {
    if (!laplace) {
        const double p = q(a), r = eps + log_q(b);
        return std::max(0.0, p - (r > 0.0 ? 1.0 : std::exp(r)));
    }
    const double log_tail = b > 0.0 ? -b - 0.69314718055994531 : std::log1p(-0.5 * std::exp(b));
    const double p = a > 0.0 ? 0.5 * std::exp(-a) : 1.0 - 0.5 * std::exp(a);
    return std::max(0.0, p - std::exp(std::min(0.0, eps + log_tail)));
}

// eta_gamma of the projected kernel whose means fill [low, high]; NaN outside the domain. In long double, whose range
// holds every sum, square and quotient of doubles.
inline double projected_contraction(double eps, double low, double high, double diameter, double noise, bool laplace) {
    if (!(eps >= 0.0 && low <= high && std::fabs(low) < infinity && std::fabs(high) < infinity && positive(diameter) &&
          positive(noise))) {
        return nan;
    }
    const long double width = static_cast<long double>(high) - low, s = noise, reach = 0.5L * diameter;
    const long double middle = 0.5L * (static_cast<long double>(high) + low);
    if (width == 0.0L || eps == infinity) return 0.0;
    const auto apart = static_cast<double>(width / s);
    const long double offset = laplace ? 0.5L * eps * s : eps * s * (s / width);
    const auto one = [&](long double centre) {
        const long double best = centre + offset;
        if (laplace && !(eps < apart)) return 0.0;
        if (best >= -reach && best <= reach) return laplace ? laplace_theta(eps, apart) : theta(eps, apart);
        const long double t = std::min(std::max(best, -reach), reach) - centre;
        return two_point(eps, static_cast<double>((t - 0.5L * width) / s), static_cast<double>((t + 0.5L * width) / s),
                         laplace);
    };
    return std::max(one(middle), one(-middle));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
