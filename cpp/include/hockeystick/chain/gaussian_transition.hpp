// One step of the projected chain with Gaussian noise, as a matrix from the nodes of a panel grid
// and the two atoms to themselves.
//
// Kernel entries are computed in long double and rounded once. Noise beyond max_deviations is cut
// off; GaussianChain charges for it.
//
// A map that is known at points only (a table) keeps the nodes for the density f, which is
// interpolated. Its integral against the kernel is a midpoint rule on the table's points: the cells
// are `table_points` equal parts of [-R, R].
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include <hockeystick/chain/panels.hpp>
#include <hockeystick/chain/scalar_map.hpp>
#include <hockeystick/numeric/blocked_dot.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
