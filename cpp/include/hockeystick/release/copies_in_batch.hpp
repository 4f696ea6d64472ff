// How often a record is in a batch of fixed size that is drawn with replacement.
//
// More copies leak more. Shares are therefore rounded towards more copies for an upper end and
// towards fewer for a lower one, and numbers of copies whose shares are tiny are gathered the same
// way. Binomial shares are log-concave: if that of m copies is 1e-300 of the first, those of more
// than 2m copies are smaller than any double, and are left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hockeystick/mechanism/gaussian_mixture.hpp>
#include <hockeystick/numeric/binomial.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

inline constexpr double gathered_share = 1e-30;  // smaller shares are gathered

// Numbers of copies, and their shares of the batches that have any.
struct Copies {
    std::vector<double> numbers, shares;
    double any;  // the probability that there is one
};

// How probable 1, 2, ... copies of a record are among independent draws, over 1 copy, down to
// 1e-300 or the last.
inline std::vector<double> binomial_shares(double draws, double dataset_size) {
    std::vector<double> shares{1.0};
    while (static_cast<double>(shares.size()) < draws && shares.back() > least_probability) {
        const auto m = static_cast<double>(shares.size());
        shares.push_back(shares.back() * ((draws - m) / (m + 1.0)) / (dataset_size - 1.0));
    }
    return shares;
}

inline double sum_of(const std::vector<double>& terms, std::size_t from, std::size_t to) {
    CompensatedSum sum;
    for (std::size_t i = from; i < to; ++i) sum.add(terms[i]);
    return sum.value();
}

// The copies of a record among `draws` independent draws from `dataset_size` >= 2 records.
inline Copies drawn_copies(double draws, double dataset_size, End end) {
    require(count(draws), "draws", "be an integer in [1, 2^53]", draws);
    require(count(dataset_size) && dataset_size >= 2.0, "dataset_size", "be an integer of at least 2", dataset_size);
    const bool upper = end == End::upper;
    const double safe = 1.0 + (upper ? product_error : -product_error);
    Copies found{{1.0}, {0.0}, min(-std::expm1(draws * std::log1p(-1.0 / dataset_size)) * safe, 1.0)};
    const std::vector<double> shares = binomial_shares(draws, dataset_size);
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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
