// Powers and products of spectra, packed as numeric/fft.hpp packs them.
//
// A plain spectrum X is raised to a power by squaring. A pair (D, B) holds B, the transform of the
// small losses, and D = X - B, that of the large ones; it stands for (X^T - B^T, B^T). Pairs
// multiply without cancellation,
//
//   X1 X2 - B1 B2 = D1 D2 + D1 B2 + B1 D2,
//
// so X^T - B^T keeps its relative accuracy however small it is beside B^T. With |B| <= 1 and
// |D| <= d the same recursion of the bounds gives (1 + d)^T - 1 exactly, and each multiplication
// adds at most 8u of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <hockeystick/numeric/fft.hpp>
#include <hockeystick/numeric/work_budget.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

inline constexpr std::size_t lanes = 256;  // coefficients at a time: loops over them vectorise

struct Lanes {
    double re[lanes], im[lanes];

    // Coefficients first .. of a packed spectrum of length n; the imaginary parts of the two ends
    // are 0.
    void load(const double* x, std::size_t n, std::size_t first) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const std::size_t k = first + i;
            re[i] = k == 0 ? x[0] : 2 * k - 1 < n ? x[2 * k - 1] : 0.0;
            im[i] = k > 0 && 2 * k < n ? x[2 * k] : 0.0;
        }
    }
    void store(double* x, std::size_t n, std::size_t first) const {
        for (std::size_t i = 0; i < lanes; ++i) {
            const std::size_t k = first + i;
            if (k == 0) x[0] = re[i];
            else if (2 * k - 1 < n) x[2 * k - 1] = re[i];
            if (k > 0 && 2 * k < n) x[2 * k] = im[i];
        }
    }
    void fill(double value) {
        std::fill(re, re + lanes, value);
        std::fill(im, im + lanes, 0.0);
    }
    void multiply(const Lanes& y) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const double real = re[i] * y.re[i] - im[i] * y.im[i];
            im[i] = re[i] * y.im[i] + im[i] * y.re[i];
            re[i] = real;
        }
    }
    void square() {
        for (std::size_t i = 0; i < lanes; ++i) {
            const double real = re[i] * re[i] - im[i] * im[i];
            im[i] = 2.0 * re[i] * im[i];
            re[i] = real;
        }
    }
};

// (D, B) above.
struct LanePair {
    Lanes large, small;

    void multiply(const LanePair& y) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const double a = large.re[i], b = large.im[i], c = y.large.re[i], d = y.large.im[i];
            const double e = small.re[i], f = small.im[i], g = y.small.re[i], h = y.small.im[i];
            large.re[i] = (a * (c + g) - b * (d + h)) + (e * c - f * d);
            large.im[i] = (a * (d + h) + b * (c + g)) + (e * d + f * c);
            small.re[i] = e * g - f * h;
            small.im[i] = e * h + f * g;
        }
    }
    void square() {
        const LanePair copy = *this;
        multiply(copy);
    }
};

inline double bits_of(std::uint64_t count) {
    double bits = 0.0;
    for (; count > 0; count >>= 1) bits += 1.0 + static_cast<double>(count & 1);
    return bits;
}

// `result` *= base^count, both pairs or both plain.
template <class Value> void multiply_power(Value& result, Value& base, std::uint64_t count) {
    for (std::uint64_t rest = count; rest > 0; rest >>= 1) {
        if (rest & 1) result.multiply(base);
        if (rest > 1) base.square();
    }
}

// product *= x^count; an empty product is 1.
inline void multiply_power(std::vector<double>& product, const std::vector<double>& x, std::uint64_t count,
                           WorkBudget& budget) {
    const std::size_t n = x.size();
    const bool fresh = product.empty();
    if (fresh) product.resize(n);
    budget.spend(power_work * bits_of(count) * static_cast<double>(n));
    for (std::size_t first = 0; first <= n / 2; first += lanes) {
        Lanes result, base;
        base.load(x.data(), n, first);
        if (fresh) result.fill(1.0);
        else result.load(product.data(), n, first);
        multiply_power(result, base, count);
        result.store(product.data(), n, first);
        if (first % (64 * lanes) == 0) budget.spend(0.0);
    }
}

// The same for pairs: (large, small) *= (a, b)^count.
inline void multiply_power(std::vector<double>& large, std::vector<double>& small, const std::vector<double>& a,
                           const std::vector<double>& b, std::uint64_t count, WorkBudget& budget) {
    const std::size_t n = a.size();
    const bool fresh = large.empty();
    if (fresh) large.resize(n), small.resize(n);
    budget.spend(3.0 * power_work * bits_of(count) * static_cast<double>(n));
    for (std::size_t first = 0; first <= n / 2; first += lanes) {
        LanePair result, base;
        base.large.load(a.data(), n, first);
        base.small.load(b.data(), n, first);
        if (fresh) result.large.fill(0.0), result.small.fill(1.0);
        else result.large.load(large.data(), n, first), result.small.load(small.data(), n, first);
        multiply_power(result, base, count);
        result.large.store(large.data(), n, first);
        result.small.store(small.data(), n, first);
        if (first % (64 * lanes) == 0) budget.spend(0.0);
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
