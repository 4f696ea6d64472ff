// Steps on a batch of fixed size. The batch is drawn uniformly, with or without replacement. What
// is known of a step is its pair for replacing a record.
//
// Without replacement the record is in the batch with probability q = batch_size/num_records. With
// replacement it is there m times with a binomial probability (drawn_copies).
//
// A record replaced: loss/fixed_size_sampled.hpp dominates. The lower end is that of a data set
// whose other records are all alike, which is the pair of a Poisson sample. A record added or
// removed: the Poisson sample of the pair for replacing dominates, and some data sets attain it.
// The sources are in docs/accounting/sampling.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/mechanism/hidden_copies.hpp>
#include <hockeystick/numeric/binomial.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>
#include <hockeystick/release/composed.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// How often a record is in a batch of fixed size that is drawn with replacement.
//
// More copies leak more. Shares are therefore rounded towards more copies for an upper end and
// towards fewer for a lower one, and numbers of copies whose shares are tiny are gathered the same
// way. Binomial shares are log-concave: if that of m copies is 1e-300 of the first, those of more
// than 2m copies are smaller than any double, and are left out.

inline constexpr double gathered_share = 1e-30;  // smaller shares are gathered

// Numbers of copies, and their shares of the batches that have any.
struct Copies {
    std::vector<double> numbers, shares;
    double any;  // the probability that there is one
};

// How probable 1, 2, ... copies of a record are among independent draws, over 1 copy, down to
// 1e-300 or the last.
inline std::vector<double> binomial_shares(double draws, double num_records) {
    std::vector<double> shares{1.0};
    while (static_cast<double>(shares.size()) < draws && shares.back() > least_probability) {
        const auto m = static_cast<double>(shares.size());
        shares.push_back(shares.back() * ((draws - m) / (m + 1.0)) / (num_records - 1.0));
    }
    return shares;
}

inline double sum_of(const std::vector<double>& terms, std::size_t from, std::size_t to) {
    CompensatedSum sum;
    for (std::size_t i = from; i < to; ++i) sum.add(terms[i]);
    return sum.value();
}

// The copies of a record among `draws` independent draws from `num_records` >= 2 records.
inline Copies drawn_copies(double draws, double num_records, End end) {
    require(count(draws), "draws", "be an integer in [1, 2^53]", draws);
    require(count(num_records) && num_records >= 2.0, "num_records", "be an integer of at least 2", num_records);
    const bool upper = end == End::upper;
    const double safe = 1.0 + (upper ? product_error : -product_error);
    Copies found{{1.0}, {0.0}, min(-std::expm1(draws * std::log1p(-1.0 / num_records)) * safe, 1.0)};
    const std::vector<double> shares = binomial_shares(draws, num_records);
    const std::size_t known = shares.size();
    const double total = sum_of(shares, 0, known);
    for (std::size_t m = 1; m < known;) {
        const std::size_t more = shares[m] > gathered_share * total ? m + 1 : std::min(2 * m, known);
        found.numbers.push_back(static_cast<double>(upper ? more : m + 1));
        found.shares.push_back(sum_of(shares, m, more) / total * safe);
        m = more;
    }
    if (upper && static_cast<double>(known) < draws) {
        found.numbers.push_back(min(2.0 * static_cast<double>(known), draws));
        found.shares.push_back(least_probability);
    }
    found.shares[0] = max(1.0 - sum_of(found.shares, 0, found.shares.size()), least_probability);
    return found;
}

struct Batch {
    double num_records, batch_size;
    bool replacement;
};

inline constexpr double most_copies = 100.0;                         // of a record on average
inline constexpr double least_shift = 1e-50, largest_shift = 1e+50;  // of one copy, so that mixtures keep digits

inline void require_batch(const Batch& batch) {
    require(count(batch.num_records), "num_records", "be an integer in [1, 2^53]", batch.num_records);
    require(count(batch.batch_size), "batch_size", "be an integer in [1, 2^53]", batch.batch_size);
    const double most = batch.num_records * (batch.replacement ? most_copies : 1.0);
    require(batch.batch_size <= most, "batch_size",
            batch.replacement ? "be at most 100 times num_records" : "be at most num_records", batch.batch_size);
}

// What a batch leaks that has the record with probability `rate`.
inline PairPointer drawn(const PairPointer& pair, double rate, bool replace, End end) {
    if (!replace || end == End::lower) return mechanism::poisson_sampled(pair, rate, end);
    return std::make_shared<FixedSizeSampled>(pair, rate);
}

inline PairPointer without_replacement(const Steps& steps, const Batch& batch, bool replace, End end,
                                       const MergeFunction& merge) {
    for (const CountedPair& step : steps) {
        if (!step.pair->symmetric() && end == End::lower) return nothing();  // tables below what dominates need not be
        if (!step.pair->symmetric())
            throw std::invalid_argument("its mechanism must have the same pair in either order, under replacement");
    }
    PairPointer pair = closed_form(steps, end);
    if (!pair) pair = std::make_shared<Discrete>(merge_discrete(steps, Direction::remove, end, merge), steps);
    if (batch.batch_size == batch.num_records) {
        if (!replace) throw std::invalid_argument("a batch of all records does not exist where one is missing");
        return pair;
    }
    return pair->leaks() ? drawn(pair, batch.batch_size / batch.num_records, replace, end) : nothing();
}

// Noise whose sum for several copies of the record is known: Gaussian or Laplace.
inline PairPointer with_replacement(const Steps& steps, const Batch& batch, bool replace, End end) {
    const PairPointer pair = closed_form(steps, end);
    const auto* laplace = dynamic_cast<const Laplace*>(pair.get());
    const bool gaussian = pair && pair->is_gaussian();
    if (pair && !pair->leaks()) return nothing();
    if (!gaussian && !laplace && end == End::lower) return nothing();  // permute-and-flip: upper ends alone
    if (!gaussian && !laplace)
        throw std::invalid_argument("with replacement only noise is supported whose sum for several records is known");
    const double shift = gaussian ? pair->gaussian_noise().shift : laplace->shift();
    require(shift >= least_shift && shift <= largest_shift, "2/noise_multiplier",
            "lie in [1e-50, 1e+50] with replacement", shift);
    if (batch.num_records == 1.0) {  // drawn every time
        if (!replace) throw std::invalid_argument("there is nothing to draw from where the record is missing");
        if (gaussian) return Gaussian::of_shift(shift * batch.batch_size);
        return Laplace::of_shift(shift * batch.batch_size);
    }
    const Copies copies = drawn_copies(batch.batch_size, batch.num_records, end);
    WeightedShifts mixture{copies.numbers, copies.shares};
    for (double& moved : mixture.shifts) moved *= shift;
    if (gaussian && (!replace || end == End::lower))
        return mechanism::poisson_sampled(std::make_shared<GaussianMixture>(std::move(mixture)), copies.any, end);
    if (end == End::lower) return mechanism::poisson_sampled(pair, copies.any, end);
    if (gaussian) return hidden_copies(std::move(mixture), copies.any);
    return drawn(std::make_shared<LabelledLaplace>(std::move(mixture)), copies.any, replace, end);
}

// `steps` are those for replacing a record. `replace` says whether a record of the data set is
// replaced, or one is added or removed.
inline PairPointer fixed_size_sampled(const Steps& steps, const Batch& batch, bool replace, End end,
                                      const MergeFunction& merge = merge_now) {
    require_batch(batch);
    if (batch.replacement && batch.batch_size > 1.0) return with_replacement(steps, batch, replace, end);
    return without_replacement(steps, batch, replace, end, merge);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
