// The lower end of allocations to k of t steps: a pair that they dominate.
//
// Every output x_i gets a label, an integer, and only the sum of all labels is looked at. It has
// the same law whichever k of the t steps were selected: with u and v the laws of a label under
// N(0, 1) and under N(r, 1),
//
//   P = v^{*k} * u^{*(t - k)},    Q = u^{*t},
//
// which is a post-processing of the outputs, so that its divergences are at most theirs, also in
// compositions. Any labels are sound. Those used round log(1 - k/t + (k/t) e^{r x - r^2/2}) to
// multiples of a step: the sums come close to the log ratio of the outputs, and little is lost
// (docs/core/allocation.md). Nearby sums are merged, and the convolutions have positive terms only.
//
// Cost: 10 to 100 ms; the step grows where sums would be many.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hockeystick/allocation/lattice_sum.hpp>
#include <hockeystick/divergence/hockey_stick.hpp>
#include <hockeystick/loss/discrete.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace divergence;
using loss::Masses;

// The masses of the integers from `first` on. What was left out, far out, is at most `missing`.
struct CountLaw {
    std::int64_t first = 0;
    std::vector<double> masses{1.0};
    double error = 0.0;  // relative, of every mass
    double missing = 0.0;

    std::int64_t end() const { return first + static_cast<std::int64_t>(masses.size()); }

    // Leaves out the ends whose masses are below 1e-70: their products would underflow.
    void trim() {
        constexpr double faint = 1e-70;
        std::size_t from = 0, to = masses.size();
        while (from + 1 < to && masses[from] < faint) missing += masses[from++];
        while (to > from + 1 && masses[to - 1] < faint) missing += masses[--to];
        masses = std::vector<double>(masses.begin() + static_cast<std::ptrdiff_t>(from),
                                     masses.begin() + static_cast<std::ptrdiff_t>(to));
        first += static_cast<std::int64_t>(from);
    }
};

// The law of the sum of two independent counts.
inline CountLaw sum_of(const CountLaw& a, const CountLaw& b, WorkBudget& budget) {
    if (a.masses.size() > b.masses.size()) return sum_of(b, a, budget);
    CountLaw sum;
    sum.first = a.first + b.first;
    sum.masses.assign(a.masses.size() + b.masses.size() - 1, 0.0);
    const auto length = static_cast<int>(b.masses.size());
    constexpr std::size_t block = 256;
    for (std::size_t from = 0; from < a.masses.size(); from += block) {
        const std::size_t size = std::min(block, a.masses.size() - from);
        budget.spend(0.2 * static_cast<double>(size) * static_cast<double>(length));
        add_convolution(a.masses.data() + from, static_cast<int>(size), b.masses.data(), length,
                        sum.masses.data() + from);
    }
    sum.error = a.error + b.error + (static_cast<double>(a.masses.size()) + 16.0) * unit_roundoff;
    sum.missing = a.missing + b.missing;
    sum.trim();
    return sum;
}

inline CountLaw sum_of_copies(CountLaw law, std::int64_t copies, WorkBudget& budget) {
    CountLaw sum;
    for (; copies > 0; copies /= 2) {
        if (copies % 2 == 1) sum = sum_of(sum, law, budget);
        if (copies > 1) law = sum_of(law, law, budget);
    }
    return sum;
}

inline constexpr double label_reach = 13.0;  // in deviations

// k of t steps of this shift, and the share of k/t that stands for it in labels.
struct Selection {
    double shift;
    std::int64_t steps, selected;
    double share = 1.0;
    double rate() const { return share * static_cast<double>(selected) / static_cast<double>(steps); }
};

// The share for labels of a record removed, by the deviation of log X. Outputs whose ratio is large look
// like those of more than k steps: a smaller rate tells them apart. With shift 2, 2 of 20 steps and
// delta = 1e-6, the lower end of epsilon is 9.1 with all of k/t, 10.6 with this share, 11.3 at best.
inline double removed_share(double deviation) { return std::exp(-0.25 * deviation * deviation); }

// The standard deviation of log(1 - q + q e^{r x - r^2/2}) for standard normal x, roughly.
inline double label_deviation(const Selection& s) {
    double mass = 0.0, mean = 0.0, square = 0.0;
    for (int i = -160; i <= 160; ++i) {
        const double x = 0.05 * i, weight = std::exp(-0.5 * x * x);
        const double y = std::log1p(s.rate() * std::expm1(s.shift * x - 0.5 * s.shift * s.shift));
        mass += weight, mean += weight * y, square += weight * y * y;
    }
    return std::sqrt(square / mass - (mean / mass) * (mean / mass));
}

// The quantile above which the label exceeds n; rounding matters not, since any labels are sound.
inline double label_end(const Selection& s, double n, double step) {
    const double excess = max(std::expm1((n + 0.5) * step) / s.rate(), -1.0);
    return (std::log1p(excess) + 0.5 * s.shift * s.shift) / s.shift;
}

inline double label_of(const Selection& s, double x, double step) {
    return std::floor(std::log1p(s.rate() * std::expm1(s.shift * x - 0.5 * s.shift * s.shift)) / step + 0.5);
}

// A mass of the standard normal law between two quantiles, and its relative error.
struct NormalCell {
    double mass, error;

    NormalCell(double from, double to) {
        const bool high = from > 0.0;
        const double larger = high ? q(from) : q(-to), smaller = high ? q(to) : q(-from);
        mass = larger - smaller;
        error = mass > 0.0 ? (64.0 - 48.0 * std::log(larger)) * unit_roundoff * larger / mass : infinity;
    }
};

struct LabelLaws {
    CountLaw without, with;  // u and v
};

// The laws of the rounded logarithm in units of `step`. What lies beyond -13 and 13 + r deviations
// joins the outermost labels, and a cell too small for its digits joins the next one.
inline LabelLaws label_laws(const Selection& s, double step) {
    const double r = s.shift, lowest = label_of(s, -label_reach, step), highest = label_of(s, label_reach + r, step);
    LabelLaws laws;
    laws.without.first = laws.with.first = static_cast<std::int64_t>(lowest);
    laws.without.masses.clear(), laws.with.masses.clear();
    double from = -infinity;
    for (double n = lowest; n <= highest; n += 1.0) {
        const double to = n == highest ? infinity : label_end(s, n, step);
        const NormalCell without(from, to), with(from - r, to - r);
        const double error = max(without.error, with.error);
        const bool closed = n == highest || error <= 1e-10;
        laws.without.masses.push_back(closed ? without.mass : 0.0);
        laws.with.masses.push_back(closed ? with.mass : 0.0);
        if (!closed) continue;
        laws.without.error = laws.with.error = max(laws.with.error, error);
        from = to;
    }
    return laws;
}

// A step for labels, such that there are some thousand sums.
inline double label_step(const Selection& s) {
    const double sums = 36.0 * std::sqrt(static_cast<double>(s.steps)) * label_deviation(s) / 9000.0;
    const double labels = label_of(s, label_reach + s.shift, 1e-6) * 1e-6 / 3000.0;
    return max(max(sums, labels), 0.05 * label_deviation(s));
}

// A law for a lower end, rounded down, and one that is rounded up, on one range and merged in
// groups.
inline Masses merged_counts(const CountLaw& lowered, const CountLaw& raised) {
    const std::int64_t first = std::min(lowered.first, raised.first);
    const std::int64_t last = std::max(lowered.end(), raised.end()), group = (last - first) / 2000 + 1;
    std::vector<double> low(static_cast<std::size_t>((last - first) / group) + 1, 0.0), high = low;
    const auto add = [&](const CountLaw& law, double scale, std::vector<double>& to) {
        for (std::size_t i = 0; i < law.masses.size(); ++i)
            to[static_cast<std::size_t>((law.first - first + static_cast<std::int64_t>(i)) / group)] +=
                scale * law.masses[i];
    };
    const double sums = static_cast<double>(group + 8) * unit_roundoff;
    add(lowered, 1.0 - lowered.error - sums, low);
    add(raised, 1.0 + raised.error + sums, high);
    for (double& mass : high) mass += 1.01 * raised.missing;
    return {std::move(low), std::move(high)};
}

struct CountPairs {
    Masses removed, added;
};

inline CountPairs count_pairs(const LabelLaws& laws, std::int64_t steps, std::int64_t selected, WorkBudget& budget) {
    const CountLaw rest = sum_of_copies(laws.without, steps - selected, budget);
    const CountLaw with = sum_of(rest, sum_of_copies(laws.with, selected, budget), budget);
    const CountLaw without = sum_of(rest, sum_of_copies(laws.without, selected, budget), budget);
    return {merged_counts(with, without), merged_counts(without, with)};
}

inline CountPairs count_pairs(Selection s, WorkBudget& budget) {
    CountPairs pairs = count_pairs(label_laws(s, label_step(s)), s.steps, s.selected, budget);
    s.share = removed_share(s.shift);
    if (s.share < 0.9) pairs.removed = count_pairs(label_laws(s, label_step(s)), s.steps, s.selected, budget).removed;
    return pairs;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation
