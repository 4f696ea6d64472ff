// The law of the sum of two independent likelihood ratios, from their laws on one grid
// (allocation/lattice_law.hpp), in the same form.
//
// Row by row. A pair of atoms belongs to the larger of its two rows, j. There one of both is an
// atom of row j (`own`), the other one of row j or of a lower one (`own` or `inner`); the inner
// atoms are put on the lattice of row j first, by the rule of the law's form. So each row is a few
// convolutions of short arrays. All terms are positive, and no digits cancel anywhere.
//
// Rounding. A mass is a sum of at most `terms` positive terms, for each of which products and
// earlier sums err by `sum_roundings(half)` units: relative errors add up over the summands.
// docs/core/allocation.md tells what they mean.
//
// Cost: 0.2 ns a product; 0.2 ms for a sum of spread laws with 2000 atoms each, 0.3 if merged.
#pragma once

#include <hockeystick/allocation/lattice_law.hpp>
#include <hockeystick/numeric/work_budget.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

// out[i + k] += a[i] b[k]; four of `a` at a time.
inline void add_convolution(const double* a, int na, const double* b, int nb, double* out) {
    int i = 0;
    for (; i + 4 <= na && nb >= 4; i += 4) {
        const double a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3];
        double* o = out + i;
        o[0] += a0 * b[0];
        o[1] += a0 * b[1] + a1 * b[0];
        o[2] += a0 * b[2] + a1 * b[1] + a2 * b[0];
        for (int k = 3; k < nb; ++k) o[k] += (a0 * b[k] + a1 * b[k - 1]) + (a2 * b[k - 2] + a3 * b[k - 3]);
        o[nb] += a1 * b[nb - 1] + a2 * b[nb - 2] + a3 * b[nb - 3];
        o[nb + 1] += a2 * b[nb - 1] + a3 * b[nb - 2];
        o[nb + 2] += a3 * b[nb - 1];
    }
    for (; i < na; ++i)
        for (int k = 0; k < nb; ++k) out[i + k] += a[i] * b[k];
}

// The atoms of all rows below one, on the lattice of that one.
class InnerRows {
  public:
    explicit InnerRows(const LatticeLaw& law) : law_(law) {
        row_.mass.assign(law.row_length(), 0.0);
        if (law.merged()) row_.moment = row_.mass;
    }
    const LatticeRow& row() const { return row_; }

    // Takes up row j, and goes over to the lattice of row j + 1.
    void take(std::size_t j) {
        if (j < law_.rows().size()) add_row(law_.rows()[j]);
        if (row_.empty()) return;
        LatticeRow next;
        next.mass.assign(law_.row_length(), 0.0);
        if (law_.merged()) next.moment = next.mass;
        for (int n = row_.low; n <= row_.high; ++n) {
            const std::size_t from = law_.index(n),
                              below = law_.index((n + 2 * law_.grid().half) / 2 - law_.grid().half);
            const double mass = row_.mass[from];
            if (law_.merged()) next.mass[below] += mass, next.moment[below] += row_.moment[from];
            else if (n % 2 == 0) next.mass[below] += mass;
            else next.mass[below] += 0.5 * mass, next.mass[below + 1] += 0.5 * mass;
        }
        next.reach(floor_half(row_.low), floor_half(row_.high + 1));
        row_ = std::move(next);
    }

  private:
    static int floor_half(int n) { return n >= 0 ? n / 2 : -((1 - n) / 2); }
    void add_row(const LatticeRow& own) {
        if (own.empty()) return;
        for (int n = own.low; n <= own.high; ++n) {
            const std::size_t i = law_.index(n);
            row_.mass[i] += own.mass[i];
            if (law_.merged()) row_.moment[i] += own.moment[i];
        }
        row_.reach(own.low, own.high);
    }

    const LatticeLaw& law_;
    LatticeRow row_;
};

// The sums of one row's pairs: entry n + 2 half is the point n of the row's lattice around the sum
// of both centres.
struct PairSums {
    int half;
    std::vector<double> mass, moment;
    int low = 1, high = 0;

    PairSums(int half_width, bool merged) : half(half_width), mass(4 * static_cast<std::size_t>(half_width) + 1) {
        if (merged) moment = mass;
    }
    void clear() {
        std::fill(mass.begin(), mass.end(), 0.0);
        std::fill(moment.begin(), moment.end(), 0.0);
        low = 1, high = 0;
    }

    // Adds the convolution of `own`, an array of a row whose inner half may be empty, and `other`.
    void add(const LatticeRow& own, const std::vector<double>& a, bool with_inner_half, const LatticeRow& other,
             const std::vector<double>& b, std::vector<double>& out) {
        if (own.empty() || other.empty()) return;
        const int from = own.low + other.low, to = own.high + other.high;
        const bool first = low > high;
        low = first ? from : std::min(low, from), high = first ? to : std::max(high, to);
        const auto add_part = [&](int begin, int end) {
            if (begin > end) return;
            add_convolution(a.data() + begin + half, end - begin + 1, b.data() + other.low + half,
                            other.high - other.low + 1, out.data() + begin + other.low + 2 * half);
        };
        if (with_inner_half) return add_part(own.low, own.high);
        add_part(own.low, std::min(own.high, -half / 2));
        add_part(std::max(own.low, half / 2), own.high);
    }
};

// x plus `times` y, where either may be empty.
inline LatticeRow row_sum(const LatticeRow& x, const LatticeRow& y, double times, std::size_t length) {
    LatticeRow sum;
    const auto add = [&](const std::vector<double>& one, const std::vector<double>& other, std::vector<double>& to) {
        if (one.empty() && other.empty()) return;
        to.assign(length, 0.0);
        for (std::size_t i = 0; i < length; ++i)
            to[i] = (one.empty() ? 0.0 : one[i]) + (other.empty() ? 0.0 : times * other[i]);
    };
    add(x.mass, y.mass, sum.mass);
    add(x.moment, y.moment, sum.moment);
    if (!x.empty()) sum.reach(x.low, x.high);
    if (!y.empty()) sum.reach(y.low, y.high);
    return sum;
}

// Pairs of two atoms of one law: those of `own` with each other, and twice those with `inner`.
inline void add_squares(const LatticeRow& own, const LatticeRow& inner, std::size_t j, std::size_t length,
                        PairSums& sums) {
    const LatticeRow twice = row_sum(own, inner, 2.0, length);
    sums.add(own, own.mass, j == 0, twice, twice.mass, sums.mass);
    if (own.moment.empty()) return;
    const LatticeRow once = row_sum(own, inner, 1.0, length);
    sums.add(own, own.moment, j == 0, once, once.mass, sums.moment);
    if (j > 0) sums.add(own, own.mass, false, inner, inner.moment, sums.moment);
    for (double& moment : sums.moment) moment *= 2.0;
}

// Pairs of an atom of f and one of g.
inline void add_products(const LatticeRow& f, const LatticeRow& f_inner, const LatticeRow& g, const LatticeRow& g_inner,
                         std::size_t j, std::size_t length, PairSums& sums) {
    const LatticeRow all = row_sum(g, g_inner, 1.0, length);
    sums.add(f, f.mass, j == 0, all, all.mass, sums.mass);
    if (j > 0) sums.add(g, g.mass, false, f_inner, f_inner.mass, sums.mass);
    if (f.moment.empty() && g.moment.empty()) return;
    sums.add(f, f.moment, j == 0, all, all.mass, sums.moment);
    sums.add(f, f.mass, j == 0, all, all.moment, sums.moment);
    if (j == 0) return;
    sums.add(g, g.mass, false, f_inner, f_inner.moment, sums.moment);
    sums.add(g, g.moment, false, f_inner, f_inner.mass, sums.moment);
}

// Merged values with signs err by a share of what was added up, which may be more than they are: they
// are lowered by it. Points of a grid are exact, but for those so far out that they are rounded.
inline void put_on_grid(const PairSums& sums, double centre, double spacing, double error, double exact,
                        LatticeLaw& law) {
    for (int n = sums.low; n <= sums.high; ++n) {
        const auto i = static_cast<std::size_t>(n + 2 * sums.half);
        const double mass = sums.mass[i];
        if (!(mass > 0.0)) continue;
        double value = law.merged() ? sums.moment[i] / mass : centre + n * spacing;
        double moment = law.merged() ? sums.moment[i] : 0.0;
        if (law.values().have_signs()) {
            if (law.merged()) value -= error * (std::fabs(centre) + (std::abs(n) + 2.0) * spacing);
            else if (std::fabs(value) > exact) value += std::fabs(value) * sixteen_roundings;
            moment = value * mass;
        }
        law.add_or_drop(value, mass, moment);
    }
}

// Rounding units of one sum beside its last one: up to four convolutions, whose terms are added
// four at a time, and two sums for each row whose atoms went to a coarser lattice.
inline double sum_roundings(const LatticeGrid& grid, std::size_t rows) {
    return 2.0 * grid.half + 64.0 + 4.0 * static_cast<double>(rows);
}

// The law of the sum, on a grid of its own. f and g have the same spacing and half; mean_f and
// mean_g are their true means.
inline LatticeLaw sum_of(const LatticeLaw& f, const LatticeLaw& g, double mean_f, double mean_g,
                         const LatticeGrid& target, WorkBudget& budget) {
    LatticeLaw sum(target, f.form(), f.values());
    sum.zero = f.zero + g.zero;
    sum.infinite = f.infinite + g.infinite + (f.zero * mean_g + g.zero * mean_f);
    const bool same = &f == &g;
    const LatticeRow none;
    InnerRows f_inner(f), g_inner(g);
    PairSums sums(f.grid().half, f.merged());
    const std::size_t rows = std::max(f.rows().size(), g.rows().size()), length = f.row_length();
    const double sum_error = sum_roundings(f.grid(), rows) * unit_roundoff;
    const double value_error = 2.0 * sum_error + (f.max_terms() + g.max_terms()) * unit_roundoff;
    for (std::size_t j = 0; j < rows; ++j) {
        const LatticeRow& own_f = j < f.rows().size() ? f.rows()[j] : none;
        const LatticeRow& own_g = j < g.rows().size() ? g.rows()[j] : none;
        sums.clear();
        if (same) add_squares(own_f, f_inner.row(), j, length, sums);
        else add_products(own_f, f_inner.row(), own_g, g_inner.row(), j, length, sums);
        put_on_grid(sums, f.grid().centre + g.grid().centre, f.grid().spacing_of(static_cast<int>(j)), value_error,
                    0x1p50 * f.grid().spacing, sum);
        f_inner.take(j);
        if (!same) g_inner.take(j);
        budget.spend(0.1 * static_cast<double>(length) * static_cast<double>(length));
    }
    const double roundings = (sum_roundings(f.grid(), rows) + sum.max_terms()) * unit_roundoff;
    sum.errors.mass = f.errors.mass + g.errors.mass + roundings;
    sum.errors.value = max(f.errors.value, g.errors.value) + (f.merged() ? 2.0 * roundings : 0.0) + sixteen_roundings;
    return sum;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation
