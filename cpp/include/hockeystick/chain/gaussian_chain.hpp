// The projected scalar chain with Gaussian noise, discretised with a certified error.
//
// State: the density f at the nodes x_j of Gauss-Legendre panels on [-R, R] (weights w_j), and the atoms at -R and R. A step
// is exact but for the integral over x,
//
//   f'(y) = int f(x) phi_s(y - psi(x)) dx + atoms  ~  sum_j w_j f(x_j) phi_s(y - psi(x_j)) + atoms,
//
// and the new atoms are tails of the same mixture. Panels are narrowed until their error (chain/panels.hpp) is negligible: the
// width of the bracket is then that of rounding. Kernel entries are computed in long double and rounded once. Noise beyond 14
// deviations (1e-44) is cut off, and charged.
//
// Maps that are only known at points (tables) keep the nodes for f, which is interpolated; the integral against the kernel is
// a midpoint rule on a fine grid, whose error per cell of width h is at most h/2 Var(G), or h^2/8 Var(G') (Peano's kernel),
// G = f phi_s(y - psi). Integrated over y, with v_1 = sqrt(2/pi)/s and v_2 = 4 phi(1)/s^2 the L1 norms of
// phi_s' and phi_s'', lambda >= |psi'| and kappa >= |psi''|:
//
//   first order (h/2) (1 + lambda) v_1,    second order (h^2/8) (v_2 + 2 lambda v_1^2 + lambda^2 v_2 + kappa v_1).
//
// Cost: O(N^2) per step for intervals of some ten deviations, O(N) per deviation beyond.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <hockeystick/chain/chain_errors.hpp>
#include <hockeystick/chain/panels.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double cut_off = 14.0;  // noise deviations; 2 Q(14) < 2^-145
inline constexpr double max_nodes = 2e4;
inline constexpr std::size_t max_entries = 25000000;  // of a kernel matrix: 200 MB

// The kernel of one map between the nodes and the two atoms, by rows of targets, each with its range of sources.
struct BandedKernel {
    std::vector<double> entries;
    std::vector<std::size_t> offset, begin, end;

    void apply(const std::vector<double>& state, std::vector<double>& next) const {
        for (std::size_t i = 0; i < next.size(); ++i) {
            next[i] = blocked_dot(entries.data() + offset[i], state.data() + begin[i], end[i] - begin[i]);
        }
    }
};

class GaussianChain {
  public:
    // `fine` counts the points of the tables, no fewer than the panels; 0 if there are none.
    explicit GaussianChain(const ScalarChain& chain, std::size_t fine)
        : chain_(chain), fine_(fine), grid_(choose_panels(), chain.radius) {
        bound_errors();
    }

    std::size_t size() const { return grid_.nodes.size(); }
    const StepErrors& errors() const { return errors_; }
    double mixing() const { return mixing_; }

    struct Laws {
        Mixture p, q;
        long double p_noise, q_noise;
    };

    // Runs both chains up to the last step's noise.
    Laws run(const std::atomic<bool>& stop) const {
        const std::size_t rounds = chain_.first.size();
        std::vector<double> p, q, next(size() + 2);
        Cached p_kernel, q_kernel;
        for (std::size_t t = 0; t + 1 < rounds && !stop; ++t) {
            advance(chain_.first[t], t, p, next, p_kernel, q_kernel);
            advance(chain_.second[t], t, q, next, q_kernel, p_kernel);
        }
        const std::size_t a = chain_.first.back(), b = chain_.second.back();
        return {last(a, rounds, p), last(b, rounds, q), chain_.maps[a].scale(), chain_.maps[b].scale()};
    }

  private:
    struct Cached {
        std::size_t map = std::numeric_limits<std::size_t>::max();
        BandedKernel kernel;
    };

    const ScalarChain& chain_;
    std::size_t fine_;
    PanelErrors panel_{};
    PanelGrid grid_;
    StepErrors errors_;
    double mixing_ = 1.0;

    std::size_t choose_panels() {
        const double scale = smallest_scale(chain_);
        double lipschitz = 0.0, strip = infinity;
        for (const ScalarMap& map : chain_.maps) {
            lipschitz = std::max(lipschitz, map.complex_lipschitz());
            if (map.kind != MapKind::table) strip = std::min(strip, map.strip());
        }
        for (double panels = 1.0;; panels = std::ceil(panels * 1.25)) {
            panel_ = panel_errors(chain_.radius / panels, panels, scale, lipschitz, strip);
            const double error = fine_ > 0 ? panel_.interpolation : panel_.rule;
            if (error <= (fine_ > 0 ? 1e-13 : 1e-24)) return static_cast<std::size_t>(panels);
            if (panels * static_cast<double>(panel_nodes) > max_nodes) too_large();
        }
    }

    [[noreturn]] static void too_large() {
        throw std::invalid_argument(
            "the chain needs more memory than 200 MB per kernel: diameter must be at most about "
            "1000 learning_rate noise, and less where smoothness or records are large");
    }

    long double source(const ScalarMap& map, std::size_t j) const {
        const std::size_t ends = fine_;  // tables hold -R and R after the grid
        if (j < size()) return map(grid_.nodes[j], 0);
        return j == size() ? map(-static_cast<long double>(chain_.radius), ends)
                           : map(static_cast<long double>(chain_.radius), ends + 1);
    }

    // The panel in which fine point k lies, the middle of a cell that may belong to two.
    std::size_t panel_of(std::size_t k) const { return (2 * k + 1) * grid_.panels / (2 * fine_); }

    long double fine_point(std::size_t k) const {
        const long double h = 2.0L * static_cast<long double>(chain_.radius) / static_cast<long double>(fine_);
        return -static_cast<long double>(chain_.radius) + h * (static_cast<long double>(k) + 0.5L);
    }

    void bound_errors() {
        constexpr double precision = std::numeric_limits<long double>::epsilon();
        double farthest = chain_.radius, widest = 0.0, fine_error = 0.0;
        const double h = fine_ > 0 ? 2.0 * chain_.radius / static_cast<double>(fine_) : 0.0;
        const double scale = smallest_scale(chain_);
        for (const ScalarMap& map : chain_.maps) {
            const double lambda = map.lipschitz();
            const double reach = std::fabs(static_cast<double>(source(map, size()))) + 2.0 * lambda * chain_.radius;
            farthest = std::max(farthest, reach + std::fabs(chain_.start));
            widest = std::max(widest, 2.0 * lambda * chain_.radius / static_cast<double>(map.scale()));
            if (map.kind != MapKind::table) continue;
            const double one = 0.79788456081 / scale, two = 0.96788289808 / (scale * scale);  // v_1, v_2
            const double first = 0.5 * h * (1.0 + lambda) * one;
            const double second =
                0.125 * h * h *
                (two + 2.0 * lambda * one * one + lambda * lambda * two + map.second_derivative() * one);
            fine_error = std::max(fine_error, std::min(first, second));
        }
        const double entry =
            0x1.01p-53 + precision * (16.0 * cut_off * farthest / scale + 8.0 * cut_off * cut_off + 64.0);
        errors_.rounding = entry + dot_error(size() + 2);
        errors_.local = panel_.rule + 0x1p-145;
        if (fine_ > 0) {  // signed entries: rounding is relative to Lambda times the mass
            errors_.local = 1.01 * fine_error + 3.0 * panel_.interpolation + 20.0 * errors_.rounding +
                            0x1p-50 * (cut_off * farthest / scale + 4.0 * cut_off * cut_off);
            errors_.rounding = 0.0;
        }
        // 1 - (1 - 2 Q(w/2)) for the widest image
        mixing_ = std::erfc(widest / 2.0 / 1.41421356) * (1.0 - 1e-6);
        if (!(mixing_ > 1e-300)) mixing_ = 1e-300;
    }

    void advance(std::size_t map, std::size_t t, std::vector<double>& state, std::vector<double>& next, Cached& own,
                 const Cached& other) const {
        if (t == 0) {
            state.resize(size() + 2);
            const long double centre = chain_.maps[map](chain_.start, fine_ + 2);
            for (std::size_t i = 0; i < size() + 2; ++i)
                state[i] = static_cast<double>(entry(i, centre, chain_.maps[map].scale()));
            return;
        }
        const Cached* cached = own.map == map ? &own : other.map == map ? &other : nullptr;
        if (cached == nullptr) {
            own.kernel = fine_ > 0 && chain_.maps[map].kind == MapKind::table ? tabulated(chain_.maps[map])
                                                                              : build(chain_.maps[map]);
            own.map = map;
            cached = &own;
        }
        cached->kernel.apply(state, next);
        state.swap(next);
    }

    // The density at node i, or the atom, of noise around `centre`.
    long double entry(std::size_t i, long double centre, long double noise) const {
        constexpr long double root_half = 0.707106781186547524400844L, inverse_root = 0.398942280401432677939946L;
        const auto radius = static_cast<long double>(chain_.radius);
        if (i < size()) {
            const long double z = (grid_.nodes[i] - centre) / noise;
            return inverse_root / noise * std::exp(-0.5L * z * z);
        }
        const long double beyond = i == size() ? centre + radius : radius - centre;
        return 0.5L * std::erfc(beyond / noise * root_half);
    }

    bool near(std::size_t i, long double centre, long double noise) const {
        const auto radius = static_cast<long double>(chain_.radius);
        const long double gap = i < size()    ? std::fabs(grid_.nodes[i] - centre)
                                : i == size() ? centre + radius
                                              : radius - centre;
        return gap <= cut_off * noise;
    }

    BandedKernel build(const ScalarMap& map) const {
        const std::size_t n = size() + 2;
        std::vector<long double> centre(n);
        for (std::size_t j = 0; j < n; ++j) centre[j] = source(map, j);
        BandedKernel kernel;
        const long double noise = map.scale();
        for (std::size_t i = 0; i < n; ++i) {
            std::size_t begin = n, end = 0;
            for (std::size_t j = 0; j < n; ++j) {
                if (!near(i, centre[j], noise)) continue;
                begin = std::min(begin, j);
                end = j + 1;
            }
            begin = std::min(begin, end);
            if (kernel.entries.size() + (end - begin) > max_entries) too_large();
            kernel.begin.push_back(begin);
            kernel.end.push_back(end);
            kernel.offset.push_back(kernel.entries.size());
            for (std::size_t j = begin; j < end; ++j) {
                const long double weight = j < size() ? grid_.weights[j] : 1.0L;
                kernel.entries.push_back(
                    near(i, centre[j], noise) ? static_cast<double>(weight * entry(i, centre[j], noise)) : 0.0);
            }
        }
        return kernel;
    }

    BandedKernel tabulated(const ScalarMap& map) const {
        const std::size_t n = size() + 2;
        if (n * n > max_entries) too_large();
        BandedKernel kernel;
        kernel.entries.assign(n * n, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            kernel.begin.push_back(0);
            kernel.end.push_back(n);
            kernel.offset.push_back(i * n);
        }
        const double h = 2.0 * chain_.radius / static_cast<double>(fine_), s = static_cast<double>(map.scale());
        const double height = h * 0.398942280401432677939946 / s;
        std::vector<double> position(grid_.nodes.begin(), grid_.nodes.end());
        double basis[panel_nodes];
        for (std::size_t k = 0; k < fine_; ++k) {
            const auto centre = static_cast<double>(map(fine_point(k), k));
            grid_.lagrange(panel_of(k), fine_point(k), basis);
            const std::size_t first = panel_of(k) * panel_nodes;
            for (std::size_t i = 0; i < n; ++i) {
                const double z = i < size() ? (position[i] - centre) / s : 0.0;
                if (std::fabs(z) > cut_off) continue;
                const double value = i < size() ? height * std::exp(-0.5 * z * z)
                                                : h * static_cast<double>(entry(i, centre, map.scale()));
                for (std::size_t j = 0; j < panel_nodes; ++j) kernel.entries[i * n + first + j] += value * basis[j];
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = size(); j < n; ++j) {
                kernel.entries[i * n + j] = static_cast<double>(entry(i, source(map, j), map.scale()));
            }
        }
        return kernel;
    }

    Mixture last(std::size_t id, std::size_t rounds, const std::vector<double>& state) const {
        const ScalarMap& map = chain_.maps[id];
        Mixture law;
        if (rounds == 1) {
            law.centre.push_back(map(chain_.start, fine_ + 2));
            law.weight.push_back(1.0);
            return law;
        }
        if (fine_ > 0 && map.kind == MapKind::table) {
            double basis[panel_nodes];
            for (std::size_t k = 0; k < fine_; ++k) {
                grid_.lagrange(panel_of(k), fine_point(k), basis);
                const std::size_t first = panel_of(k) * panel_nodes;
                double value = 0.0;
                for (std::size_t j = 0; j < panel_nodes; ++j) value += basis[j] * state[first + j];
                law.centre.push_back(map(fine_point(k), k));
                law.weight.push_back(value * 2.0 * chain_.radius / static_cast<double>(fine_));
            }
        } else {
            for (std::size_t j = 0; j < size(); ++j) {
                law.centre.push_back(source(map, j));
                law.weight.push_back(static_cast<double>(grid_.weights[j] * state[j]));
            }
        }
        for (std::size_t j = size(); j < size() + 2; ++j) {
            law.centre.push_back(source(map, j));
            law.weight.push_back(state[j]);
        }
        normalise(law);
        return law;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
