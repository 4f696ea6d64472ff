// Random allocation: Gaussian noise on t steps, of which a record takes part in one, drawn
// uniformly and kept secret. (Feldman and Shenfeld 2025; Chua et al. 2025, balls and bins.)
//
// Without the record the outputs are Q = N(0, I), with it P = (1/t) sum_i N(r e_i, I), r = 1/noise.
// Under Q
//
//   W = dP/dQ = (X_1 + ... + X_t)/t,  X_i = e^{r x_i - r^2/2} independent log-normals of mean 1,
//
// so that delta(eps) = E (W - e^eps)_+ when the record is removed, and E (1 - e^eps W)_+ when it is
// added. docs/core/allocation.md proves that the pair dominates adaptive steps and k-subsets, and
// that laws which are larger (smaller) than that of W in convex order give dominating (dominated)
// pairs, in compositions too. Such laws of sums are formed by doubling, allocation/lattice_sum.hpp,
// from that of one X_i (LogNormalLaw).
// Rounding is charged to the pairs: masses are scaled and values moved, to what leaks more, or
// less.
//
// Width: below 1e-3 of epsilon, as a rule. Cost: log2 t sums, twice that unless t is a power of
// two; 5 ms for a pair at t = 450, 40 at worst.
#pragma once

#include <atomic>
#include <utility>

#include <hockeystick/allocation/lattice_law.hpp>
#include <hockeystick/allocation/lattice_sum.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/numeric/require.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;
using namespace numeric;

// The law of one log-normal X = e^{r z - r^2/2}, z standard normal, on a grid
// (allocation/lattice_law.hpp).
//
// Each cell between two points of the grid has a mass, and means above its lower and below its
// upper end, by Gauss's rule with eight nodes on pieces across which the density changes by a
// factor of e^2 at most: the rule errs by less than 1e-16 of itself. From there on digits are lost
// to the place z of an end, which errs by u (4 |z| + 2 r); docs/core/allocation.md has the sum.
// Every mass is moved by its own error, up if spread and down if merged.

inline constexpr double max_quantile = 26.0;  // in normal quantiles: masses near 1e-149

// What lies between two values: its mass, and its mean above the lower and below the upper one.
struct RatioCell {
    double mass = 0.0, above = 0.0, below = 0.0;
    double error = 0.0;  // relative, of all three
};

inline double lowest_log_normal(double r) { return std::exp(-r * max_quantile - 0.5 * r * r); }

class LogNormalLaw {
  public:
    LogNormalLaw(double r, Form form, const LatticeGrid& grid) : r_(r), law_(grid, form), rule_(gauss_legendre(8)) {
        place_points();
        add_lowest();
        for (std::size_t k = 1; k < points_.size(); ++k) add_cell(k);
        if (form == Form::spread) add_highest();
        law_.errors.value += sixteen_roundings;
    }
    LatticeLaw take() { return std::move(law_); }

  private:
    struct Point {
        double value;
        int row, n;
    };

    double quantile(double value) const { return (std::log(value) + 0.5 * r_ * r_) / r_; }

    // The points between the quantiles -26 and 26 + r, and one beyond either.
    void place_points() {
        const LatticeGrid& grid = law_.grid();
        const double low = lowest_log_normal(r_), high = std::exp(r_ * (max_quantile + r_) - 0.5 * r_ * r_);
        const int last = grid.row_of(high - grid.centre);
        const auto place = [&](int row, int from, int to) {
            for (int n = from; n <= to; ++n) {
                const double value = grid.at(row, n), h = grid.spacing_of(row);
                if (value > max(low - h, 0.0) && value < high + h) points_.push_back({value, row, n});
            }
        };
        if (grid.centre > 0.0) {
            for (int row = last; row > 0; --row) place(row, -grid.half, -grid.half / 2 - 1);
            place(0, -grid.half, -1);
        }
        place(0, 0, grid.half);
        for (int row = 1; row <= last; ++row) place(row, grid.half / 2 + 1, grid.half);
    }

    static double error_at(double z) { return (64.0 + 32.0 * z * z) * unit_roundoff; }

    // A result that errs by a share, towards what the form needs.
    double moved(double value, double error) const { return value * (law_.merged() ? 1.0 - error : 1.0 + error); }

    void add_lowest() {
        const Point& first = points_.front();
        const double z = quantile(first.value), error = error_at(z);
        const double mass = moved(q(-z), error), mean = moved(q(r_ - z), error);
        if (law_.merged()) return law_.put(first.row, first.n, mass, mean);
        law_.add(0.0, mass, 0.0);
        law_.put(first.row, first.n, mean / first.value);
    }

    void add_highest() {
        const Point& last = points_.back();
        const double z = quantile(last.value);
        law_.put(last.row, last.n, moved(q(z), error_at(z)));
        law_.infinite = moved(theta(r_ * z - 0.5 * r_ * r_, r_), error_at(z));
    }

    void add_cell(std::size_t k) {
        const Point &low = points_[k - 1], &high = points_[k];
        const RatioCell cell = integrate(low.value, high.value);
        const double mass = moved(cell.mass, cell.error), above = moved(cell.above, cell.error);
        if (law_.merged()) {
            const double moment = low.value * mass + above;
            law_.errors.value = max(law_.errors.value, 4.0 * cell.error * above / moment);
            return law_.put(low.row, low.n, mass, moment);
        }
        const double width = high.value - low.value;
        law_.put(low.row, low.n, moved(cell.below, cell.error) / width);
        law_.put(high.row, high.n, above / width);
    }

    RatioCell integrate(double low, double high) const {
        const double from = quantile(low), width = quantile(high) - from;
        const double far = max(std::fabs(from), std::fabs(from + width));
        const double pieces = std::ceil(0.5 * width * (2.0 + far)), half = 0.5 * width / pieces;
        RatioCell cell;
        for (double piece = 0.0; piece < pieces; ++piece) {
            for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
                const double above = half * (1.0 + static_cast<double>(rule_.nodes[i]) + 2.0 * piece), z = from + above;
                const double weight =
                    half * static_cast<double>(rule_.weights[i]) * inv_sqrt_2pi * std::exp(-0.5 * z * z);
                cell.mass += weight;
                cell.above += weight * low * std::expm1(r_ * above);
                cell.below -= weight * high * std::expm1(-r_ * (width - above));
            }
        }
        cell.error = error_at(far) + 16.0 * (3.0 * far + r_) / width * unit_roundoff + 16.0 * pieces * unit_roundoff;
        return cell;
    }

    double r_;
    LatticeLaw law_;
    QuadratureRule rule_;
    std::vector<Point> points_;
};

inline LatticeLaw log_normal_law(double r, Form form) {
    return LogNormalLaw(r, form, grid_for({lowest_log_normal(r), 1.0, r}, 1.0)).take();
}

using loss::Masses;

// The law of a sum of some ratios. Its mean is their number, in the unit of the values.
struct SumLaw {
    LatticeLaw law;
    double mean, count;
    Bulk bulk;

    SumLaw(LatticeLaw of, double its_mean, double summands)
        : law(std::move(of)), mean(its_mean), count(summands), bulk(bulk_of(law)) {}
};

inline Bulk bulk_of_sum(const SumLaw& one, const SumLaw& other) {
    const Bulk &a = one.bulk, &b = other.bulk;
    return {a.lowest + b.lowest, a.median + b.median, distance(a.scale, b.scale)};
}

inline SumLaw sum_on(const LatticeGrid& grid, const SumLaw& one, const SumLaw& other, WorkBudget& budget) {
    return {sum_of(one.law, other.law, one.mean, other.mean, grid, budget), one.mean + other.mean,
            one.count + other.count};
}

inline SumLaw sum_of(const SumLaw& one, const SumLaw& other, WorkBudget& budget) {
    const LatticeGrid& old = one.law.grid();
    const Bulk bulk = bulk_of_sum(one, other);
    const LatticeGrid grid =
        one.law.values().have_signs() ? grid_with_signs(bulk, old.half) : grid_for(bulk, one.count + other.count);
    return sum_on(grid, one, other, budget);
}

// The same on the grid of `like`, around this sum's own median: the sum of both can be formed.
inline SumLaw sum_like(const SumLaw& like, const SumLaw& one, const SumLaw& other, WorkBudget& budget) {
    const LatticeGrid& grid = like.law.grid();
    if (grid.centre == 0.0) return sum_on(grid, one, other, budget);
    return sum_on(narrow_grid(grid.spacing, grid.half, bulk_of_sum(one, other)), one, other, budget);
}

// The laws of the sums of t ratios that have the law of `one` and, where asked for, of t + 1.
inline std::pair<SumLaw, SumLaw> sum_laws(const SumLaw& one, std::int64_t t, bool both, WorkBudget& budget) {
    const SumLaw none{LatticeLaw({0.0, 1.0, 1}, one.law.form()), 0.0, 0.0};
    if (t == 1) return {one, both ? sum_like(one, one, one, budget) : none};
    const bool odd = t % 2 == 1;
    const auto [half, more] = sum_laws(one, t / 2, both || odd, budget);
    SumLaw first = odd ? sum_of(half, more, budget) : sum_of(half, half, budget);
    if (!both) return {std::move(first), none};
    SumLaw second = odd ? sum_like(first, more, more, budget) : sum_like(first, half, more, budget);
    return {std::move(first), std::move(second)};
}

// The law of a sum of ratios: its atoms, what lies at 0, and the part of the mean at infinity.
struct RatioSums {
    std::vector<Atom> atoms;
    double zero, infinite;
    LatticeErrors errors;
    Form form;
    double mean;  // the true one
};

inline RatioSums sums_of_steps(const SumLaw& one, std::int64_t num_steps, WorkBudget& budget) {
    const LatticeLaw law = sum_laws(one, num_steps, false, budget).first.law;
    const double missed = law.form() == Form::spread ? 1.0 + 1e-6 : 1.0 - 1e-6;  // by faint masses
    return {law.atoms(), law.zero,   missed * law.infinite,
            law.errors,  law.form(), one.mean * static_cast<double>(num_steps)};
}

// P and Q of one of several steps whose ratios have these sums, where the record is removed; Q and
// P where it is added.
inline Masses pair_of_sums(const RatioSums& sums, bool removed) {
    const bool upper = sums.form == Form::spread;
    const double sign = upper ? 1.0 : -1.0;
    const double scale = 1.0 + sign * sums.errors.mass, moved = 1.0 + sign * sums.errors.value;
    std::vector<double> with, without;
    for (const Atom& atom : sums.atoms) {
        const double ratio = atom.value / sums.mean;
        without.push_back(scale * atom.mass);
        with.push_back((removed ? moved * ratio : ratio / moved) * without.back());
    }
    if (upper) without.push_back(scale * sums.zero), with.push_back(0.0);
    if (upper || sums.infinite > 0.0) {
        without.push_back(0.0);
        with.push_back(scale * sums.infinite / sums.mean);
    }
    return removed ? Masses{std::move(with), std::move(without)} : Masses{std::move(without), std::move(with)};
}

// One pair for each direction: of a record that is removed, and of one that is added.
struct AllocationPairs {
    Masses removed, added;
};

inline void require_steps(std::int64_t num_steps) {
    require(num_steps >= 2 && num_steps <= 1000000, "steps", "lie in [2, 10^6]", static_cast<double>(num_steps));
}

// The pairs of one of `num_steps` steps: dominating, or dominated. A query whose `stop` is set
// throws Stopped.
inline AllocationPairs random_allocation_pairs(double shift, std::int64_t num_steps, bool upper,
                                               const std::atomic<bool>* stop = nullptr) {
    require(shift >= 1e-3 && shift <= 4.0, "shift", "lie in [0.001, 4]", shift);
    require_steps(num_steps);
    WorkBudget budget(stop);
    const RatioSums sums =
        sums_of_steps({log_normal_law(shift, upper ? Form::spread : Form::merged), 1.0, 1.0}, num_steps, budget);
    return {pair_of_sums(sums, true), pair_of_sums(sums, false)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation
