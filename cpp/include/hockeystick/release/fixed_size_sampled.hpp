// Steps on a batch of fixed size. The batch is drawn uniformly, with or without replacement. What
// is known of a step is its pair for replacing a record.
//
// Without replacement the record is in the batch with probability q = batch_size/dataset_size. With
// replacement it is there m times with a binomial probability (release/copies_in_batch.hpp).
//
// A record replaced: loss/fixed_size_sampled.hpp dominates. The lower end is that of a data set
// whose other records are all alike, which is the pair of a Poisson sample. A record added or
// removed: the Poisson sample of the pair for replacing dominates, and some data sets attain it.
// The sources are in docs/accounting/sampling.md.
#pragma once

#include <hockeystick/release/composed.hpp>
#include <hockeystick/release/copies_in_batch.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

struct Batch {
    double dataset_size, batch_size;
    bool replacement;
};

inline constexpr double most_copies = 100.0;                         // of a record on average
inline constexpr double least_shift = 1e-50, largest_shift = 1e+50;  // of one copy, so that mixtures keep digits

inline void require_batch(const Batch& batch) {
    require(count(batch.dataset_size), "dataset_size", "be an integer in [1, 2^53]", batch.dataset_size);
    require(count(batch.batch_size), "batch_size", "be an integer in [1, 2^53]", batch.batch_size);
    const double most = batch.dataset_size * (batch.replacement ? most_copies : 1.0);
    require(batch.batch_size <= most, "batch_size",
            batch.replacement ? "be at most 100 times dataset_size" : "be at most dataset_size", batch.batch_size);
}

// What a batch leaks that has the record with probability `rate`.
inline PairPointer drawn(const PairPointer& pair, double rate, bool replace, End end) {
    if (!replace || end == End::lower) return mechanism::poisson_sampled(pair, rate, end);
    return std::make_shared<FixedSizeSampled>(pair, rate);
}

inline PairPointer without_replacement(const Steps& steps, const Batch& batch, bool replace, End end,
                                       const Merge& merge) {
    for (const CountedPair& step : steps) {
        if (!step.pair->symmetric() && end == End::lower) return nothing();  // tables below what dominates need not be
        if (!step.pair->symmetric())
            throw std::invalid_argument("its mechanism must have the same pair in either order, under replacement");
    }
    PairPointer pair = closed_form(steps, end);
    if (!pair) pair = std::make_shared<Discrete>(merge_discrete(steps, Direction::remove, end, merge), steps);
    if (batch.batch_size == batch.dataset_size) {
        if (!replace) throw std::invalid_argument("a batch of all records does not exist where one is missing");
        return pair;
    }
    return pair->leaks() ? drawn(pair, batch.batch_size / batch.dataset_size, replace, end) : nothing();
}

// Noise whose sum for several copies of the record is known: Gaussian or Laplace.
inline PairPointer with_replacement(const Steps& steps, const Batch& batch, bool replace, End end) {
    const PairPointer pair = closed_form(steps, end);
    const auto* laplace = dynamic_cast<const Laplace*>(pair.get());
    const bool gaussian = pair && pair->is_gaussian();
    if (!gaussian && !laplace && end == End::lower) return nothing();  // permute-and-flip: upper ends alone
    if (!gaussian && !laplace)
        throw std::invalid_argument("with replacement only noise is supported whose sum for several records is known");
    const double shift = gaussian ? pair->gaussian_noise().shift : laplace->shift();
    require(shift >= least_shift && shift <= largest_shift, "2/noise_multiplier",
            "lie in [1e-50, 1e+50] with replacement", shift);
    if (batch.dataset_size == 1.0) {  // drawn every time
        if (!replace) throw std::invalid_argument("there is nothing to draw from where the record is missing");
        if (gaussian) return Gaussian::of_shift(shift * batch.batch_size);
        return Laplace::of_shift(shift * batch.batch_size);
    }
    const Copies copies = drawn_copies(batch.batch_size, batch.dataset_size, end);
    WeightedShifts mixture{copies.numbers, copies.shares};
    for (double& moved : mixture.shifts) moved *= shift;
    if (gaussian && (!replace || end == End::lower))
        return mechanism::poisson_sampled(std::make_shared<GaussianMixture>(std::move(mixture)), copies.any, end);
    if (end == End::lower) return mechanism::poisson_sampled(pair, copies.any, end);
    if (gaussian) return drawn(std::make_shared<LabelledGaussian>(std::move(mixture)), copies.any, replace, end);
    return drawn(std::make_shared<LabelledLaplace>(std::move(mixture)), copies.any, replace, end);
}

// `steps` are those for replacing a record. `replace` says whether a record of the data set is
// replaced, or one is added or removed.
inline PairPointer fixed_size_sampled(const Steps& steps, const Batch& batch, bool replace, End end,
                                      const Merge& merge = merge_now) {
    require_batch(batch);
    if (batch.replacement && batch.batch_size > 1.0) return with_replacement(steps, batch, replace, end);
    return without_replacement(steps, batch, replace, end, merge);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
