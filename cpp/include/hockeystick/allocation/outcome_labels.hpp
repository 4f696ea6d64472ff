// The lower end of allocations to k of t steps that have a discrete pair: labels of outcomes, whose
// sum is looked at (allocation/label_counts.hpp).
//
// The label of an outcome of ratio X is log(1 - k/t + (k/t) X), rounded to a multiple of a step.
// Rounding may have moved 1e-15 of either law's mass, in sums that are to be 1: the outcomes of the
// smallest labels are merged until they have far more, or until P has nothing there.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/allocation/label_counts.hpp>
#include <hockeystick/allocation/replaced_sums.hpp>

namespace hockeystick::allocation {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double least_label_mass = 1e-4;   // of the smallest label
inline constexpr double moved_mass = 1e-15;        // of all masses
inline constexpr double label_mass_error = 1e-11;  // relative, of the smallest label

struct LabelledOutcome {
    double label, without, with;
};

inline std::vector<LabelledOutcome> labelled_outcomes(const std::vector<double>& without,
                                                      const std::vector<double>& with, double rate) {
    std::vector<LabelledOutcome> found;
    for (std::size_t i = 0; i < without.size(); ++i) {
        const double excess = without[i] > 0.0 ? rate * (with[i] / without[i] - 1.0) : infinity;
        found.push_back({std::log1p(excess), without[i], with[i]});
    }
    std::sort(found.begin(), found.end(),
              [](const LabelledOutcome& x, const LabelledOutcome& y) { return x.label < y.label; });
    double below_without = 0.0, below_with = 0.0;
    std::size_t last = 0;
    for (; last < found.size(); ++last) {
        below_without += found[last].without, below_with += found[last].with;
        if (below_without >= least_label_mass && (below_with >= least_label_mass || below_with == 0.0)) break;
    }
    const double lowest = last < found.size() ? found[last].label : found.back().label;
    for (std::size_t i = 0; i < std::min(last, found.size()); ++i) found[i].label = lowest;
    return found;
}

// The largest finite label.
inline double largest_label(const std::vector<LabelledOutcome>& outcomes) {
    double largest = -infinity;
    for (const LabelledOutcome& x : outcomes)
        if (x.label < infinity) largest = max(largest, x.label);
    return largest;
}

// A step such that there are some thousand labels, and some thousand sums.
inline double outcome_label_step(const std::vector<LabelledOutcome>& outcomes, double num_steps) {
    double mass = 0.0, mean = 0.0, square = 0.0;
    for (const LabelledOutcome& x : outcomes)
        if (x.without > 0.0) mass += x.without, mean += x.without * x.label, square += x.without * x.label * x.label;
    const double deviation = std::sqrt(max(square / mass - (mean / mass) * (mean / mass), 0.0));
    const double labels = (largest_label(outcomes) - outcomes.front().label) / 3000.0;
    return max(max(36.0 * std::sqrt(num_steps) * deviation / 9000.0, labels), max(0.05 * deviation, 1e-12));
}

inline LabelLaws outcome_label_laws(const std::vector<LabelledOutcome>& outcomes, double step) {
    const double beyond = largest_label(outcomes) + 2.0 * step;  // of outcomes that P alone has
    const auto label_at = [&](double label) {
        return static_cast<std::int64_t>(std::floor(min(label, beyond) / step + 0.5));
    };
    LabelLaws laws;
    laws.without.first = laws.with.first = label_at(outcomes.front().label);
    const std::int64_t last = label_at(outcomes.back().label);
    laws.without.masses.assign(static_cast<std::size_t>(last - laws.with.first) + 1, 0.0);
    laws.with.masses = laws.without.masses;
    for (const LabelledOutcome& x : outcomes) {
        const auto at = static_cast<std::size_t>(label_at(x.label) - laws.with.first);
        laws.without.masses[at] += x.without;
        laws.with.masses[at] += x.with;
    }
    laws.without.error = laws.with.error = label_mass_error + static_cast<double>(outcomes.size()) * unit_roundoff;
    if (laws.with.masses.front() == 0.0) laws.with.missing = moved_mass;
    return laws;
}

// The pair of the sum of labels of `num_steps` steps of which `num_selected` are the record's: that
// of a record removed, from the pair for removing, or else added.
inline Masses labelled_pair(const Masses& pair, Selection s, bool removed, WorkBudget& budget) {
    if (removed) s.share = removed_share(log_deviation(step_ratios(pair, removed, Form::merged).atoms));
    const auto outcomes = labelled_outcomes(removed ? pair.q : pair.p, removed ? pair.p : pair.q, s.rate());
    if (!(outcomes.front().label < infinity)) return {{1.0}, {1.0}};
    const double step = outcome_label_step(outcomes, static_cast<double>(s.steps));
    CountPairs pairs = count_pairs(outcome_label_laws(outcomes, step), s.steps, s.selected, budget);
    return removed ? std::move(pairs.removed) : std::move(pairs.added);
}

// Where a record is replaced: the labels log(1 - k/t + (k/t) F) - log(1 - k/t + (k/t) G) of outcomes
// that are opposite, merged.
inline Masses opposite_labels(const OppositeRatios& step, Selection s, WorkBudget& budget) {
    s.share = std::sqrt(removed_share(step.deviation));
    std::vector<LabelledOutcome> with, instead;
    for (std::size_t i = step.outcomes.size(); i-- > 0;) {
        const OppositeRatios::Outcome& x = step.outcomes[i];
        const double label = std::log1p(s.rate() * (x.more - 1.0)) - std::log1p(s.rate() * (x.less - 1.0));
        with.push_back({label, x.mass, x.mass * x.more});
        instead.push_back({label, x.mass, x.mass * x.less});
    }
    const double width = outcome_label_step(with, static_cast<double>(s.steps));
    LabelLaws one = outcome_label_laws(with, width), other = outcome_label_laws(instead, width);
    for (CountLaw* law : {&one.without, &one.with, &other.with})
        law->error += step.errors.mass + step.errors.value, law->missing = 0.0;
    const CountLaw rest = sum_of_copies(one.without, s.steps - s.selected, budget);
    const CountLaw lowered = sum_of(rest, sum_of_copies(one.with, s.selected, budget), budget);
    const CountLaw raised = sum_of(rest, sum_of_copies(other.with, s.selected, budget), budget);
    return merged_counts(lowered, raised);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::allocation
