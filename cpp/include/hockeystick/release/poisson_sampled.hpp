// Steps on a Poisson sample: each record is in it independently. All releases of the steps are of
// one and the same sample.
//
// A record added or removed: `poisson_sampled`, from the steps' own pair (Zhu, Dong and Wang 2022).
//
// A record replaced: `poisson_replaced`, from the pair for removing a record. Gaussian noise has a
// closed form (mechanism/replaced_gaussian.hpp). Other steps get the pair of `replaced_pair`.
//
// Proof that it dominates. Let (p, q) be the pair for removing a record. Let B be the output
// without the record, A with it and A' with what replaces it, given the other records of the
// sample. R(x) is the largest probability under p of outcomes of probability x under q. An event of
// probability x under B has at most R(x) under A and at least 1 - R(1 - x) under A'. So
// E_gamma((1-r) B + r A | (1-r) B + r A') is at most the supremum, over x, of
// (1-r) x (1 - gamma) + r R(x) - gamma r (1 - R(1 - x)). That is the divergence of the laws on
// [0, 1] with densities (1-r) + r R'(x) and (1-r) + r R'(1-x), whose ratio falls. What p has where
// q is 0 is an outcome of its own, on either side. The mixture over the other records is below the
// worst of them, by convexity.
//
// Noise on the line attains that pair, by opposite contributions. Where a step has several outputs
// other than Gaussian ones that is not known. The lower end is then that of a record whose
// replacement contributes nothing: the Poisson sample for removing it.
#pragma once

#include <hockeystick/release/composed.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

// R' of the proof above, a step function: it is ratios[i], an outcome's p/q, from ends[i - 1] to
// ends[i], the sums of q before and after that outcome.
struct RatioSteps {
    std::vector<double> ends, ratios;

    double at(double x) const {
        const auto above = std::upper_bound(ends.begin(), ends.end(), x) - ends.begin();
        return ratios[std::min(static_cast<std::size_t>(above), ratios.size() - 1)];
    }
};

// The outcomes that Q has, the most likely under P first or, if `reversed`, last.
inline RatioSteps ratio_steps(const Masses& removed, bool reversed) {
    std::vector<std::pair<double, double>> outcomes;  // ratio, q
    for (std::size_t i = 0; i < removed.p.size(); ++i)
        if (removed.q[i] > 0.0) outcomes.emplace_back(removed.p[i] / removed.q[i], removed.q[i]);
    std::sort(outcomes.begin(), outcomes.end());
    if (!reversed) std::reverse(outcomes.begin(), outcomes.end());
    RatioSteps steps;
    CompensatedSum sum;
    for (const auto& [ratio, q] : outcomes) {
        sum.add(q);
        steps.ends.push_back(sum.value());
        steps.ratios.push_back(ratio);
    }
    return steps;
}

// The pair of a Poisson sample where a record is replaced, of steps that have the masses `removed`
// where it is removed. R' is constant between the sums of q, from either end of [0, 1]; the second
// half mirrors the first.
inline PairPointer replaced_pair(const Masses& removed, double rate) {
    CompensatedSum alone;
    for (std::size_t i = 0; i < removed.p.size(); ++i)
        if (removed.q[i] == 0.0) alone.add(removed.p[i]);
    const RatioSteps high = ratio_steps(removed, false), low = ratio_steps(removed, true);
    if (high.ends.empty()) throw std::invalid_argument("q must not be 0 at every outcome");
    std::vector<double> edges{0.0, 0.5};
    for (const RatioSteps* steps : {&high, &low})
        for (const double end : steps->ends)
            if (end < 0.5) edges.push_back(end);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    Masses pair;
    const auto add = [&pair](double p, double q) { pair.p.push_back(p), pair.q.push_back(q); };
    const double infinite = rate * alone.value();
    if (infinite > 0.0) add(infinite, 0.0), add(0.0, infinite);
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        const double width = edges[i + 1] - edges[i], kept = (1.0 - rate) * width;
        const double more = kept + rate * width * high.at(edges[i]), less = kept + rate * width * low.at(edges[i]);
        add(more, less), add(less, more);
    }
    return std::make_shared<Discrete>(std::move(pair));
}

// Where a record is added or removed.
inline PairPointer poisson_sampled(const Steps& steps, double rate, End end, const MergeFunction& merge = merge_now) {
    require_probability("sampling_rate", rate);
    if (rate == 0.0) return nothing();
    return mechanism::poisson_sampled(merge_into_one_pair(steps, end, merge), rate, end);
}

// Where a record is replaced, 0 < rate < 1, from the steps' pairs for removing it. `one_output`
// says that a step releases a single noisy number.
inline PairPointer poisson_replaced(const Steps& steps, double rate, bool one_output, End end,
                                    const MergeFunction& merge = merge_now) {
    require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
    const auto merged = [&](const Steps& parts, double own_rate) {
        return replaced_pair(merge_discrete(parts, Direction::remove, end, merge), own_rate);
    };
    const PairPointer whole = closed_form(steps, end);
    if (end == End::lower && !one_output && !(whole && whole->is_gaussian()))
        return poisson_sampled(steps, rate, end, merge);
    if (!whole) return merged(steps, rate);
    if (!whole->leaks()) return nothing();
    if (PairPointer exact = whole->sampled_and_replaced(rate, end)) return exact;
    const PairPointer sampled = mechanism::poisson_sampled(whole, rate, end);
    const auto* sample = dynamic_cast<const PoissonSampled*>(sampled.get());
    if (!sample) return nothing();  // the product of two sampling rates may underflow
    const PairPointer removed = sample->base();
    if (const auto* discrete = dynamic_cast<const Discrete*>(removed.get()))
        return replaced_pair(discrete->masses(), sample->rate());
    return merged({{removed, 1.0}}, sample->rate());
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
