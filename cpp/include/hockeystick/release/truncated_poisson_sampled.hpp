// Gaussian noise on a Poisson sample of which, if it is too large, a uniform subset is kept
// (mechanism/truncated_poisson.hpp).
//
// The sample of the other records is truncated with some probability. An upper bound of that
// probability will do, because the pair leaks more where it is larger. The pair dominates and need
// not be attained.
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
    double dataset_size, sampling_rate, max_batch_size;
};

inline void require_truncated_sample(const TruncatedSample& sample) {
    require(count(sample.dataset_size), "dataset_size", "be an integer in [1, 2^53]", sample.dataset_size);
    require_probability("sampling_rate", sample.sampling_rate);
    require(count(sample.max_batch_size), "max_batch_size", "be an integer in [1, 2^53]", sample.max_batch_size);
}

// A Poisson sample in which one record moves the sum by `shift`.
inline PairPointer plain(double shift, double rate, bool replace, End end) {
    if (replace && rate > 0.0 && rate < 1.0) return std::make_shared<ReplacedGaussian>(shift, rate);
    return mechanism::poisson_sampled(Gaussian::of_shift(replace ? 2.0 * shift : shift), rate, end);
}

inline PairPointer truncated_poisson_sampled(double noise_multiplier, const TruncatedSample& sample, bool replace,
                                             End end) {
    require_noise_multiplier(noise_multiplier);
    require_truncated_sample(sample);
    const double shift = 1.0 / noise_multiplier, rate = sample.sampling_rate;
    const double truncation = binomial_upper_tail(sample.dataset_size - 1.0, rate, sample.max_batch_size);
    if (end == End::lower && sample.max_batch_size < sample.dataset_size) {
        const double kept = binomial_mean_below(sample.dataset_size, rate, sample.max_batch_size);
        return plain(shift, kept / sample.dataset_size * down, replace, end);
    }
    if (truncation == 0.0 || truncation == 1.0) return plain(shift * (1.0 + truncation), rate, replace, end);
    return std::make_shared<TruncatedPoisson>(shift, rate, truncation, replace);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
