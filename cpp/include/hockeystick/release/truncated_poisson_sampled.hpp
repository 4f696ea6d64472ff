// Gaussian noise on a Poisson sample of which, if it is too large, a uniform subset is kept
// (mechanism/truncated_poisson.hpp).
//
// Two pairs dominate (docs/accounting/sampling.md, Truncated samples), and each is the closer one
// for some compositions: with the label of a last place, or with that of a displaced record. Both
// hold for every data set of at most `num_records` records, and upper bounds of their
// probabilities will do, because they leak more where these are larger. They need not be attained.
//
// The lower end is attained by a data set whose other records contribute nothing. There the record
// is in the batch with probability r = E min(M, B)/n, where M is the binomial size of the sample of
// all n records and B the largest batch, and nothing else is seen: a Poisson sample of rate r.
#pragma once

#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/numeric/binomial.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

struct TruncatedSample {
    double num_records, sampling_rate, max_batch_size;
};

inline void require_truncated_sample(const TruncatedSample& sample) {
    require(count(sample.num_records), "num_records", "be an integer in [1, 2^53]", sample.num_records);
    require_probability("sampling_rate", sample.sampling_rate);
    require(count(sample.max_batch_size), "max_batch_size", "be an integer in [1, 2^53]", sample.max_batch_size);
}

// A Poisson sample in which one record moves the sum by `shift`. One that is zeroed out leaks what
// one that is removed does.
inline PairPointer plain(double shift, double rate, Change change, End end) {
    const bool replace = change == Change::replaced;
    if (replace && rate > 0.0 && rate < 1.0) return std::make_shared<ReplacedGaussian>(shift, rate);
    return mechanism::poisson_sampled(Gaussian::of_shift(replace ? 2.0 * shift : shift), rate, end);
}

// A Poisson sample in which the record always displaces another one. One that is zeroed out is
// replaced.
inline PairPointer swapped(double shift, double rate, Change change, End end) {
    const PairPointer moved = Gaussian::of_shift(2.0 * shift);
    if (change == Change::removed || rate == 0.0 || rate == 1.0) return mechanism::poisson_sampled(moved, rate, end);
    return std::make_shared<FixedSizeSampled>(moved, rate);
}

// With a last place: `last` is the largest probability, for any number of others up to N = n - 1,
// that their sample leaves one place in the batch. It is largest where their mean number (B - 1)/q
// is. `excess` is the chance of more than B among n records in the sample over that of B.
inline Truncation with_last_place(const TruncatedSample& sample) {
    const double rate = sample.sampling_rate, taken = sample.max_batch_size - 1.0, others = sample.num_records - 1.0;
    const double likeliest = std::floor(taken / rate);
    double log_last = -infinity;
    for (const double number : {likeliest - 1.0, likeliest, likeliest + 1.0})
        log_last = max(log_last, log_binomial_upper(max(min(number, others), taken), taken, rate));
    const double excess = std::exp(log_binomial_excess(sample.num_records, rate, sample.max_batch_size)) * up;
    return {max(std::exp(log_last) * up, least_probability), excess, 0.0};
}

inline constexpr double little_excess = 0.05;  // up to it a last place leaks hardly more than the other ones

// Of the two pairs, that with a last place where it is one, beside which the engine asks the other.
inline PairPointer truncated(double shift, const TruncatedSample& sample, double displaced, Change change) {
    const auto pair = [&](const Truncation& truncation, double other) {
        return std::make_shared<TruncatedPoisson>(shift, sample.sampling_rate, truncation, change, other);
    };
    const Truncation last = with_last_place(sample);
    const bool possible = last.excess <= largest_excess && last.last * (1.0 + last.excess) < 1.0;
    if (possible) return pair(last, last.excess > little_excess && displaced < 1.0 ? displaced : 0.0);
    if (displaced == 1.0) return swapped(shift, sample.sampling_rate, change, End::upper);
    return pair({0.0, 0.0, displaced}, 0.0);
}

inline PairPointer truncated_poisson_sampled(double noise_multiplier, const TruncatedSample& sample, Change change,
                                             End end) {
    require_noise_multiplier(noise_multiplier);
    require_truncated_sample(sample);
    const double shift = 1.0 / noise_multiplier, rate = sample.sampling_rate;
    if (end == End::lower && sample.max_batch_size < sample.num_records) {
        const double kept = binomial_mean_below(sample.num_records, rate, sample.max_batch_size);
        return plain(shift, kept / sample.num_records * down, change, end);
    }
    const double displaced = binomial_upper_tail(sample.num_records - 1.0, rate, sample.max_batch_size);
    if (displaced == 0.0) return plain(shift, rate, change, end);
    if (rate == 1.0) return swapped(shift, rate, change, end);
    return truncated(shift, sample, displaced, change);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
