// The projected scalar chain with Gaussian noise, discretised with a certified error.
//
// The state is the density f at the nodes x_j of Gauss-Legendre panels on [-R, R] (weights w_j),
// and the atoms at -R and R. A step is exact but for the integral over x,
//
//   f'(y) = int f(x) phi_s(y - psi(x)) dx + atoms  ~  sum_j w_j f(x_j) phi_s(y - psi(x_j)) + atoms,
//
// and the new atoms are tails of the same mixture (GaussianTransition). Panels are narrowed until
// their error (panel_errors) is negligible, so that the bracket is as wide as rounding makes it.
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
#include <stdexcept>
#include <utility>
#include <vector>

#include <hockeystick/chain/chain_errors.hpp>
#include <hockeystick/chain/scalar_map.hpp>
#include <hockeystick/numeric/blocked_dot.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

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

// One step of the projected chain with Gaussian noise, as a matrix from the nodes of a panel grid
// and the two atoms to themselves.
//
// Kernel entries are computed in long double and rounded once. Noise beyond max_deviations is cut
// off; GaussianChain charges for it.
//
// A map that is known at points only (a table) keeps the nodes for the density f, which is
// interpolated. Its integral against the kernel is a midpoint rule on the table's points: the cells
// are `table_points` equal parts of [-R, R].

inline constexpr double max_deviations = 14.0;
inline constexpr double cut_off_mass = 0x1p-145;             // > 2 Q(max_deviations)
inline constexpr std::size_t max_kernel_entries = 25000000;  // 200 MB

[[noreturn]] inline void too_large() {
    throw std::invalid_argument("the chain needs more memory than 200 MB per kernel: diameter must be at most about "
                                "1000 learning_rate noise, and less where smoothness or records are large");
}

// The kernel of one map, by rows of targets, each with its range of sources. The two atoms follow
// the nodes.
struct BandedKernel {
    std::vector<double> entries;
    std::vector<std::size_t> offset, begin, end;

    void add_row(std::size_t first, std::size_t last) {
        begin.push_back(first);
        end.push_back(last);
        offset.push_back(entries.size());
    }
    void apply(const std::vector<double>& state, std::vector<double>& next) const {
        for (std::size_t i = 0; i < next.size(); ++i) {
            next[i] = blocked_dot(entries.data() + offset[i], state.data() + begin[i], end[i] - begin[i]);
        }
    }
};

class GaussianTransition {
  public:
    // `table_points` counts the points of the tables, no fewer than the panels; 0 if there are
    // none.
    GaussianTransition(PanelGrid grid, double radius, std::size_t table_points)
        : grid_(std::move(grid)), radius_(radius), table_points_(table_points) {}

    std::size_t nodes() const { return grid_.nodes.size(); }
    std::size_t states() const { return nodes() + 2; }
    const PanelGrid& grid() const { return grid_; }

    bool tabulated(const ScalarMap& map) const { return table_points_ > 0 && map.kind == MapKind::table; }

    // Where node j, or the atom at -R (j = nodes()) or R, is sent. Tables hold both ends after the
    // points.
    long double image(const ScalarMap& map, std::size_t j) const {
        if (j < nodes()) return map(grid_.nodes[j], 0);
        const auto radius = static_cast<long double>(radius_);
        return j == nodes() ? map(-radius, table_points_) : map(radius, table_points_ + 1);
    }
    // Where the chain's start is sent, which tables hold last.
    long double image_of_start(const ScalarMap& map, double start) const { return map(start, table_points_ + 2); }

    // The law after noise around `centre`: the density at node i, or the mass of an atom.
    long double density(std::size_t i, long double centre, long double noise) const {
        constexpr long double root_half = 0.707106781186547524400844L, inverse_root = 0.398942280401432677939946L;
        const auto radius = static_cast<long double>(radius_);
        if (i < nodes()) {
            const long double z = (grid_.nodes[i] - centre) / noise;
            return inverse_root / noise * std::exp(-0.5L * z * z);
        }
        const long double beyond = i == nodes() ? centre + radius : radius - centre;
        return 0.5L * std::erfc(beyond / noise * root_half);
    }

    BandedKernel kernel(const ScalarMap& map) const { return tabulated(map) ? table_kernel(map) : node_kernel(map); }

    // Calls use(image, first, basis) for every point of a table: the density there is the sum over
    // j of basis[j] times that at node first + j.
    template <class Use> void each_table_point(const ScalarMap& map, const Use& use) const {
        double basis[panel_nodes];
        for (std::size_t k = 0; k < table_points_; ++k) {
            const long double x = table_point(k);
            grid_.lagrange(panel_of(k), x, basis);
            use(map(x, k), panel_of(k) * panel_nodes, basis);
        }
    }
    double table_cell() const { return 2.0 * radius_ / static_cast<double>(table_points_); }

  private:
    PanelGrid grid_;
    double radius_;
    std::size_t table_points_;

    // The panel of table point k, the middle of a cell that may belong to two.
    std::size_t panel_of(std::size_t k) const { return (2 * k + 1) * grid_.panels / (2 * table_points_); }

    long double table_point(std::size_t k) const {
        const auto radius = static_cast<long double>(radius_);
        const long double h = 2.0L * radius / static_cast<long double>(table_points_);
        return -radius + h * (static_cast<long double>(k) + 0.5L);
    }

    bool near(std::size_t i, long double centre, long double noise) const {
        const auto radius = static_cast<long double>(radius_);
        const long double gap = i < nodes()    ? std::fabs(grid_.nodes[i] - centre)
                                : i == nodes() ? centre + radius
                                               : radius - centre;
        return gap <= max_deviations * noise;
    }

    BandedKernel node_kernel(const ScalarMap& map) const {
        const std::size_t n = states();
        std::vector<long double> centre(n);
        for (std::size_t j = 0; j < n; ++j) centre[j] = image(map, j);
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
            if (kernel.entries.size() + (end - begin) > max_kernel_entries) too_large();
            kernel.add_row(begin, end);
            for (std::size_t j = begin; j < end; ++j) {
                const long double weight = j < nodes() ? grid_.weights[j] : 1.0L;
                kernel.entries.push_back(
                    near(i, centre[j], noise) ? static_cast<double>(weight * density(i, centre[j], noise)) : 0.0);
            }
        }
        return kernel;
    }

    BandedKernel table_kernel(const ScalarMap& map) const {
        const std::size_t n = states();
        if (n * n > max_kernel_entries) too_large();
        BandedKernel kernel;
        kernel.entries.reserve(n * n);
        for (std::size_t i = 0; i < n; ++i) {
            kernel.add_row(0, n);
            kernel.entries.resize((i + 1) * n);
        }
        const double h = table_cell(), s = static_cast<double>(map.scale());
        const double height = h * 0.398942280401432677939946 / s;
        const std::vector<double> position(grid_.nodes.begin(), grid_.nodes.end());
        each_table_point(map, [&](long double image, std::size_t first, const double (&basis)[panel_nodes]) {
            const auto centre = static_cast<double>(image);
            for (std::size_t i = 0; i < n; ++i) {
                const double z = i < nodes() ? (position[i] - centre) / s : 0.0;
                if (std::fabs(z) > max_deviations) continue;
                const double value = i < nodes() ? height * std::exp(-0.5 * z * z)
                                                 : h * static_cast<double>(density(i, centre, map.scale()));
                for (std::size_t j = 0; j < panel_nodes; ++j) kernel.entries[i * n + first + j] += value * basis[j];
            }
        });
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = nodes(); j < n; ++j) {
                kernel.entries[i * n + j] = static_cast<double>(density(i, image(map, j), map.scale()));
            }
        }
        return kernel;
    }
};

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
