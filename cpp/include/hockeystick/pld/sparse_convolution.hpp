// Many short steps as a few long ones: steps that occur once are convolved with each other before
// they meet the full window, in transforms no longer than their own supports.
//
// Error. ||x * y||_2 <= ||x||_1 ||y||_2, and no vector here has a 1-norm above 1, but for its
// errors. So the error of a product is at most the sum of its factors' errors and its own: by
// numeric/fft.hpp f (||x|| + ||y|| + ||x * y||), and sqrt 5 u of the product of the spectra.
// Cost: a transform of all points for every halving of the number of steps.
#pragma once

#include <map>

#include <hockeystick/pld/spectrum_power.hpp>
#include <hockeystick/pld/tilted_step.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

struct SparseFactor {
    std::int64_t first;
    std::vector<double> values;
    double count;
    double norm_error = 0.0;  // 2-norm of the error of values
};

inline double norm(const double* x, std::size_t n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * x[i];
    return std::sqrt(sum);
}

inline double norm(const std::vector<double>& x) { return norm(x.data(), x.size()); }

class ShortConvolver {
  public:
    explicit ShortConvolver(WorkBudget& budget) : budget_(budget) {}

    SparseFactor convolve(const SparseFactor& x, const SparseFactor& y) {
        const std::size_t length = x.values.size() + y.values.size() - 1;
        std::size_t n = 64;
        while (n < length) n *= 2;
        const RealTransform& transform = plans_.try_emplace(n, n).first->second;
        budget_.spend(3.0 * transform_work(n));
        SparseFactor result{x.first + y.first, {}, 1.0};
        std::vector<double> a = x.values, b = y.values;
        a.resize(n), b.resize(n);
        transform.forward(a.data());
        transform.forward(b.data());
        multiply_power(a, b, 1, budget_);
        transform.backward(a.data());
        a.resize(length);
        const double f = fft_relative_error(n), product = norm(a);
        const double own = f * (norm(x.values) + norm(y.values) + product) + 3.0 * unit_roundoff * product;
        result.norm_error = (x.norm_error + y.norm_error + own) * (1.0 + 1e-9);
        result.values = std::move(a);
        return result;
    }

  private:
    std::map<std::size_t, RealTransform> plans_;
    WorkBudget& budget_;
};

// Convolves the factors that occur once in pairs of similar length, while a result is at most
// `longest`.
inline void shorten(std::vector<SparseFactor>& factors, std::size_t longest, WorkBudget& budget) {
    ShortConvolver convolver(budget);
    const auto single =
        std::partition(factors.begin(), factors.end(), [](const SparseFactor& x) { return x.count > 1.0; });
    std::vector<SparseFactor> level(std::make_move_iterator(single), std::make_move_iterator(factors.end()));
    factors.erase(single, factors.end());
    while (level.size() > 1) {
        std::sort(level.begin(), level.end(),
                  [](const SparseFactor& x, const SparseFactor& y) { return x.values.size() < y.values.size(); });
        std::vector<SparseFactor> next;
        for (std::size_t i = 0; i < level.size(); ++i) {
            const bool fits = i + 1 < level.size() && level[i].values.size() + level[i + 1].values.size() <= longest;
            if (fits) next.push_back(convolver.convolve(level[i], level[i + 1])), ++i;
            else next.push_back(std::move(level[i]));
        }
        const bool done = next.size() == level.size();
        level.swap(next);
        if (done) break;
    }
    std::move(level.begin(), level.end(), std::back_inserter(factors));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
