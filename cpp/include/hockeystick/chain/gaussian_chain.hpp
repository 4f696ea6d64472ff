// The projected scalar chain with Gaussian noise, discretised with a certified error.
//
// The state is the density f at the nodes x_j of Gauss-Legendre panels on [-R, R] (weights w_j),
// and the atoms at -R and R. A step is exact but for the integral over x,
//
//   f'(y) = int f(x) phi_s(y - psi(x)) dx + atoms  ~  sum_j w_j f(x_j) phi_s(y - psi(x_j)) + atoms,
//
// and the new atoms are tails of the same mixture (chain/gaussian_transition.hpp). Panels are
// narrowed until their error (chain/panels.hpp) is negligible, so that the bracket is as wide as
// rounding makes it.
//
// Maps that are known at points only are integrated by a midpoint rule. Its error per cell of width
// h is at most h/2 Var(G), or h^2/8 Var(G') (Peano's kernel), G = f phi_s(y - psi). Integrated over
// y, with v_1 = sqrt(2/pi)/s and v_2 = 4 phi(1)/s^2 the L1 norms of phi_s' and phi_s'', lambda >=
// |psi'| and kappa >= |psi''|:
//
//   first order    (h/2) (1 + lambda) v_1
//   second order   (h^2/8) (v_2 + 2 lambda v_1^2 + lambda^2 v_2 + kappa v_1)
//
// Cost: O(N^2) a step for intervals of some ten deviations, O(N) per deviation beyond.
// docs/core/chain.md has the proofs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <hockeystick/chain/chain_errors.hpp>
#include <hockeystick/chain/gaussian_transition.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double max_nodes = 2e4;
inline constexpr double negligible_rule_error = 1e-24;  // of a step: far below rounding
inline constexpr double negligible_interpolation_error = 1e-13;

class GaussianChain {
  public:
    // `table_points` counts the points of the tables, no fewer than the panels; 0 if there are
    // none.
    explicit GaussianChain(const ScalarChain& chain, std::size_t table_points)
        : chain_(chain), table_points_(table_points),
          transition_(PanelGrid(choose_panels(), chain.radius), chain.radius, table_points) {
        bound_errors();
    }

    const StepErrors& errors() const { return errors_; }
    double mixing() const { return mixing_; }

    // Runs both chains up to the last step's noise.
    LastLaws run(const std::atomic<bool>& stop) const {
        const std::size_t rounds = chain_.first.size();
        std::vector<double> p, q, next(transition_.states());
        CachedKernel p_kernel, q_kernel;
        for (std::size_t t = 0; t + 1 < rounds && !stop; ++t) {
            advance(chain_.first[t], t, p, next, p_kernel, q_kernel);
            advance(chain_.second[t], t, q, next, q_kernel, p_kernel);
        }
        const std::size_t a = chain_.first.back(), b = chain_.second.back();
        return {last_law(a, rounds, p), last_law(b, rounds, q), chain_.maps[a].scale(), chain_.maps[b].scale()};
    }

  private:
    struct CachedKernel {
        std::size_t map = std::numeric_limits<std::size_t>::max();
        BandedKernel kernel;
    };

    const ScalarChain& chain_;
    std::size_t table_points_;
    PanelErrors panel_{};
    GaussianTransition transition_;
    StepErrors errors_;
    double mixing_ = 1.0;

    std::size_t choose_panels() {
        const double scale = smallest_scale(chain_);
        double lipschitz = 0.0, strip = infinity;
        for (const ScalarMap& map : chain_.maps) {
            lipschitz = std::max(lipschitz, map.complex_lipschitz());
            if (map.kind != MapKind::table) strip = std::min(strip, map.strip());
        }
        const bool tables = table_points_ > 0;
        for (double panels = 1.0;; panels = std::ceil(panels * 1.25)) {
            panel_ = panel_errors(chain_.radius / panels, panels, scale, lipschitz, strip);
            const bool fine =
                tables ? panel_.interpolation <= negligible_interpolation_error : panel_.rule <= negligible_rule_error;
            if (fine) return static_cast<std::size_t>(panels);
            if (panels * static_cast<double>(panel_nodes) > max_nodes) too_large();
        }
    }

    // The midpoint rule's error in a step of a table.
    double midpoint_error(const ScalarMap& map, double scale) const {
        const double lambda = map.lipschitz(), h = transition_.table_cell();
        const double v1 = 0.79788456081 / scale, v2 = 0.96788289808 / (scale * scale);
        const double first = 0.5 * h * (1.0 + lambda) * v1;
        const double second =
            0.125 * h * h * (v2 + 2.0 * lambda * v1 * v1 + lambda * lambda * v2 + map.second_derivative() * v1);
        return std::min(first, second);
    }

    void bound_errors() {
        constexpr double precision = long_double_ulp;
        const double scale = smallest_scale(chain_);
        double farthest = chain_.radius, widest = 0.0, midpoint = 0.0;
        for (const ScalarMap& map : chain_.maps) {
            const double lambda = map.lipschitz();
            const double at_end = std::fabs(static_cast<double>(transition_.image(map, transition_.nodes())));
            farthest = std::max(farthest, at_end + 2.0 * lambda * chain_.radius + std::fabs(chain_.start));
            widest = std::max(widest, 2.0 * lambda * chain_.radius / static_cast<double>(map.scale()));
            if (map.kind == MapKind::table) midpoint = std::max(midpoint, midpoint_error(map, scale));
        }
        // An entry is rounded once. Before that, its exponent z^2/2, z <= max_deviations, errs by z
        // times the long double error of a position, and by roundings of its own.
        const double entry = padded_roundoff + precision * (16.0 * max_deviations * farthest / scale +
                                                            8.0 * max_deviations * max_deviations + 64.0);
        errors_.rounding = entry + blocked_dot_error(transition_.states());
        errors_.local = panel_.rule + cut_off_mass;
        if (table_points_ > 0) {
            // The entries have both signs: their rounding is relative to the Lebesgue constant
            // times the mass, and their exponents are computed in double.
            const double exponents =
                eight_roundings * (max_deviations * farthest / scale + 4.0 * max_deviations * max_deviations);
            errors_.local = 1.01 * midpoint + 3.0 * panel_.interpolation + 20.0 * errors_.rounding + exponents;
            errors_.rounding = 0.0;
        }
        // 1 - E_1 = 2 Q(w/2) for the widest image, w deviations wide.
        mixing_ = std::erfc(widest / 2.0 / 1.41421356) * (1.0 - 1e-6);
        if (!(mixing_ > 1e-300)) mixing_ = 1e-300;
    }

    // One round. A kernel that either chain has built for the same map is used again.
    void advance(std::size_t map, std::size_t t, std::vector<double>& state, std::vector<double>& next,
                 CachedKernel& own, const CachedKernel& other) const {
        const ScalarMap& step = chain_.maps[map];
        if (t == 0) {
            state.resize(transition_.states());
            const long double centre = transition_.image_of_start(step, chain_.start);
            for (std::size_t i = 0; i < state.size(); ++i)
                state[i] = static_cast<double>(transition_.density(i, centre, step.scale()));
            return;
        }
        const CachedKernel* cached = own.map == map ? &own : other.map == map ? &other : nullptr;
        if (cached == nullptr) {
            own.kernel = transition_.kernel(step);
            own.map = map;
            cached = &own;
        }
        cached->kernel.apply(state, next);
        state.swap(next);
    }

    // The centres that the last round's noise is added to, with their weights.
    Mixture last_law(std::size_t id, std::size_t rounds, const std::vector<double>& state) const {
        const ScalarMap& map = chain_.maps[id];
        Mixture law;
        const auto add = [&law](long double centre, double weight) {
            law.centre.push_back(centre);
            law.weight.push_back(weight);
        };
        if (rounds == 1) {
            add(transition_.image_of_start(map, chain_.start), 1.0);
            return law;
        }
        const std::size_t nodes = transition_.nodes();
        if (transition_.tabulated(map)) {
            transition_.each_table_point(
                map, [&](long double centre, std::size_t first, const double (&basis)[panel_nodes]) {
                    double value = 0.0;
                    for (std::size_t j = 0; j < panel_nodes; ++j) value += basis[j] * state[first + j];
                    add(centre, value * 2.0 * chain_.radius / static_cast<double>(table_points_));
                });
        } else {
            for (std::size_t j = 0; j < nodes; ++j)
                add(transition_.image(map, j), static_cast<double>(transition_.grid().weights[j] * state[j]));
        }
        for (std::size_t j = nodes; j < nodes + 2; ++j) add(transition_.image(map, j), state[j]);
        normalise(law);
        return law;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
