// A real number in a tiny interval, for comparisons that must not depend on a tolerance. The middle
// of the interval is the unevaluated sum hi + lo of two doubles. What does not fit into them is
// charged to `error`, half the interval's width (Dekker 1971, Knuth 1969). As long as results fit
// into the two doubles, about 106 bits, sums and products are exact and the error is 0.
#pragma once

#include <cmath>

#include <hockeystick/numeric/interval.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

// A number in [hi + lo - error, hi + lo + error].
struct Enclosed {
    double hi = 0.0, lo = 0.0, error = 0.0;
};

// a + b exactly: the rounded sum, and what it lacks.
inline Enclosed exact_sum(double a, double b) {
    const double sum = a + b, b_taken = sum - a;
    return {sum, (a - (sum - b_taken)) + (b - b_taken), 0.0};
}

// a b exactly. Below 2^-860 what is lost may underflow, and the error covers all four terms of a
// product of two sums.
inline Enclosed exact_product(double a, double b) {
    const double product = a * b;
    const bool small = a != 0.0 && b != 0.0 && std::fabs(product) < 0x1p-860;
    return {product, std::fma(a, b, -product), small ? 0x1p-1070 : 0.0};
}

inline Enclosed operator-(const Enclosed& x) { return {-x.hi, -x.lo, x.error}; }

inline Enclosed operator+(const Enclosed& x, const Enclosed& y) {
    const Enclosed high = exact_sum(x.hi, y.hi), low = exact_sum(x.lo, y.lo);
    const Enclosed middle = exact_sum(high.lo, low.hi), top = exact_sum(high.hi, middle.hi);
    const Enclosed rest = exact_sum(top.lo, low.lo), last = exact_sum(rest.hi, middle.lo);
    Enclosed sum = exact_sum(top.hi, last.hi);
    sum.error = (x.error + y.error + std::fabs(rest.lo) + std::fabs(last.lo)) * up;
    return sum;
}

inline Enclosed operator-(const Enclosed& x, const Enclosed& y) { return x + -y; }

inline Enclosed operator*(const Enclosed& x, const Enclosed& y) {
    Enclosed product = (exact_product(x.hi, y.hi) + exact_product(x.hi, y.lo)) +
                       (exact_product(x.lo, y.hi) + exact_product(x.lo, y.lo));
    const double x_size = std::fabs(x.hi) + std::fabs(x.lo), y_size = std::fabs(y.hi) + std::fabs(y.lo);
    product.error += (x_size * y.error + y_size * x.error + x.error * y.error) * up;
    return product;
}

// x / y, for quotients that do not overflow; the error is infinite if y may be 0. Let q be the sum
// of a first quotient of doubles, and of a second one of what the first leaves. The sums and
// products above enclose a - q b for all numbers a and b that x and y stand for, and |a/b - q| is
// |a - q b| / |b|. A small y is scaled to [1, 2), and x with it, exactly: so what underflows in a
// product is not divided by a small number.
inline Enclosed operator/(const Enclosed& x, const Enclosed& y) {
    if (y.hi != 0.0 && std::fabs(y.hi) < 1.0) {
        const int power = -std::ilogb(y.hi);
        const auto scaled = [power](const Enclosed& z) {
            return Enclosed{std::ldexp(z.hi, power), std::ldexp(z.lo, power), std::ldexp(z.error, power)};
        };
        return scaled(x) / scaled(y);
    }
    const double first = x.hi / y.hi;
    const Enclosed rest = x - Enclosed{first} * y;
    const double second = rest.hi / y.hi;
    const Enclosed left = rest - Enclosed{second} * y;
    Enclosed quotient = exact_sum(first, second);
    const double off = std::fabs(left.hi) + std::fabs(left.lo) + left.error;
    const double least = std::fabs(y.hi) - (std::fabs(y.lo) + y.error) * up;
    if (off > 0.0) quotient.error = std::nextafter(off / (least * down) * up, infinity);
    if (!(least > 0.0 && off >= 0.0)) quotient.error = infinity;
    return quotient;
}

// The largest double that is known to be at most x. Exactly x if it is known to be a double.
inline double lower_end(const Enclosed& x) {
    const auto rounded_down = [](double a, double b) {
        const Enclosed sum = exact_sum(a, b);
        return sum.lo < 0.0 ? std::nextafter(sum.hi, -infinity) : sum.hi;
    };
    return rounded_down(x.hi, rounded_down(x.lo, -x.error));
}

// The smallest double that is known to be at least x.
inline double upper_end(const Enclosed& x) { return -lower_end(-x); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
