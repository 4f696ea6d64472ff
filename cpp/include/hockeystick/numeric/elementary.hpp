// exp, expm1, log and log1p without branches, tables or library calls.
//
// A loop over any of these vectorises, because each is straight-line arithmetic with selects. The C
// library's own versions are calls that the compiler cannot look into. Exponents are moved in and
// out of integer bits by adding 1.5 2^52, since AVX2 has no conversion between 64-bit integers and
// doubles.
//
// Error: below 1 ulp for exp, log and log1p; 2 ulp for expm1, cos and sin (absolute 2^-52 near
// their zeros); a relative 8u for angle_of. The tests of the Gaussian tail and of theta measure
// what is built on them. The coefficients come from tests/reference/generate_coefficients.py.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include <hockeystick/numeric/coefficients.hpp>
#include <hockeystick/numeric/rounding.hpp>
#include <hockeystick/version.hpp>

namespace hockeystick::numeric {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double pi = 3.141592653589793;
inline constexpr double round_magic = 6755399441055744.0;  // 1.5 2^52: adding it rounds to an integer

inline std::uint64_t to_bits(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline double from_bits(std::uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// 1/(2k+4)! and 1/(2k+3)!: cos x = 1 - x^2/2 + x^4 sum_k c[k] (-x^2)^k, sin x = x - x^3 sum_k c[k]
// (-x^2)^k.
inline constexpr double cos_coefficients[] = {
    1.0 / 24.0,        1.0 / 720.0,         1.0 / 40320.0,         1.0 / 3628800.0,
    1.0 / 479001600.0, 1.0 / 87178291200.0, 1.0 / 20922789888000.0};
inline constexpr double sin_coefficients[] = {
    1.0 / 6.0,        1.0 / 120.0,        1.0 / 5040.0,          1.0 / 362880.0,
    1.0 / 39916800.0, 1.0 / 6227020800.0, 1.0 / 1307674368000.0, 1.0 / 355687428096000.0};

// 1/(2k+3): atan x = x - x^3 sum_k c[k] (-x^2)^k.
inline constexpr double atan_coefficients[] = {1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0,  1.0 / 9.0,  1.0 / 11.0, 1.0 / 13.0,
                                               1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0, 1.0 / 23.0};

// sum_k c[k] x^k; unrolled at compile time, because a loop here would stop the loop around it
// from being vectorised.
template <std::size_t Power, std::size_t N> inline double horner(const double (&c)[N], double x, double sum) {
    if constexpr (Power == 0) return sum;
    else return horner<Power - 1>(c, x, sum * x + c[Power - 1]);
}

template <std::size_t N> inline double polynomial(const double (&c)[N], double x) {
    return horner<N - 1>(c, x, c[N - 1]);
}

// 2^n for the integer n = shifted - round_magic, -1022 <= n <= 1023.
inline double power_of_two(double shifted) { return from_bits((to_bits(shifted) + 1023) << 52); }

// x = n log 2 + rest, |rest| <= log(2)/2: the pieces from which exp and expm1 are put together.
struct ExpPieces {
    double low_scale, high_scale;  // 2^n as a product, so that results may be subnormal
    double fraction;               // exp(rest) - 1
};

// exp(x + tail) for -1400 <= x <= 709 and |tail| <= 2^-24 |x|, by which |rest| may exceed log(2)/2.
inline ExpPieces exp_pieces(double x, double tail) {
    const double shifted = x * inv_log2 + round_magic;
    const double n = shifted - round_magic;
    const double rest = (x - n * log2_high) - n * log2_low + tail;
    const double half_shifted = n * 0.5 + round_magic;
    const double half = half_shifted - round_magic;
    return {power_of_two(half_shifted), power_of_two((n - half) + round_magic),
            rest + rest * rest * polynomial(exp_coefficients, rest)};
}

// exp(x + tail) for x <= 709; 0 where it underflows.
inline double exp_sum(double x, double tail) {
    const double clamped = x < -1400.0 ? -1400.0 : x;  // keeps -inf - (-inf) away; NaN passes
    const ExpPieces e = exp_pieces(clamped, tail);
    return (e.low_scale + e.low_scale * e.fraction) * e.high_scale;
}

// exp(x) for x <= 0; exp(-700) below that.
inline double exp_normal(double x) {
    const double clamped = x < -700.0 ? -700.0 : x;
    const double shifted = clamped * inv_log2 + round_magic;
    const double n = shifted - round_magic;
    const double rest = (clamped - n * log2_high) - n * log2_low;
    const double scale = power_of_two(shifted);
    return scale + scale * (rest + rest * rest * polynomial(exp_coefficients, rest));
}

inline double exp_nonpositive(double x) { return exp_sum(x, 0.0); }

// expm1(x) for x <= 709.
inline double expm1_bounded(double x) {
    const double clamped = x < -50.0 ? -50.0 : x;  // expm1(-50) rounds to -1
    const ExpPieces e = exp_pieces(clamped, 0.0);
    const double scale = e.low_scale * e.high_scale;
    return (scale - 1.0) + scale * e.fraction;
}

// log(x) for x > 0, subnormal x included; log(0) = -inf, log(inf) = inf.
inline double log_positive(double x) {
    const bool tiny = x < 0x1p-1022;
    const std::uint64_t bits = to_bits(tiny ? x * 18014398509481984.0 : x);  // 2^54
    // Adding the gap between 1 and sqrt(1/2) to the bits makes the exponent field roll over at
    // sqrt(2).
    const std::uint64_t rolled = bits + (to_bits(1.0) - to_bits(sqrt_half));
    const double exponent = from_bits((rolled >> 52) | to_bits(4503599627370496.0)) - (4503599627370496.0 + 1023.0) -
                            (tiny ? 54.0 : 0.0);  // 2^52
    const double f = from_bits((rolled & 0x000fffffffffffffu) + to_bits(sqrt_half)) - 1.0;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double half_square = 0.5 * f * f;
    const double correction = s * (half_square + z * polynomial(log_coefficients, z));
    const double value = exponent * log2_high - ((half_square - (correction + exponent * log2_low)) - f);
    return x == 0.0 ? -infinity : x == infinity ? infinity : value;
}

// log1p(-y) for 0 <= y <= 1.
inline double log1m(double y) {
    const double u = 1.0 - y;
    const double lost = (1.0 - u) - y;  // exact; u + lost = 1 - y
    const double safe = u > 0.0 ? u : 1.0;
    return log_positive(u) + lost / safe;
}

// log1p(y) for y > -1.
inline double log1p_positive(double y) {
    const double u = 1.0 + y;
    const double lost = y - (u - 1.0);  // u + lost = 1 + y, exactly for |y| < 1 and to an ulp of y beyond
    return log_positive(u) + lost / u;
}

// cos and sin by the Taylor polynomials of degree 16 and 17 on |x| <= pi/4, which leave out less
// than 2e-18. Multiples of pi/2 are subtracted first, in three parts of 33 bits: exactly for
// |x| < 2^20, and beyond with at most the error that a relative 3u of x would cause. From 2^53 on,
// where nothing is known of the angle, the results are those of 0.
inline void cos_sin(double angle, double& cosine, double& sine) {
    const double x = angle > 0x1p53 || angle < -0x1p53 ? 0.0 : angle;
    const double shifted = x * 0.6366197723675814 + round_magic;  // 2/pi
    const double n = shifted - round_magic;
    const double r =
        ((x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    const double z = r * r;
    const double c = 1.0 - z * (0.5 - z * polynomial(cos_coefficients, -z));
    const double s = r - r * z * polynomial(sin_coefficients, -z);
    const std::uint64_t quadrant = to_bits(shifted);
    const double near = quadrant & 1 ? s : c, far = quadrant & 1 ? c : s;
    cosine = (quadrant + 1) & 2 ? -near : near;
    sine = quadrant & 2 ? -far : far;
}

// The angle in [-pi, pi] of a point (x, y) that is finite and not the origin, with a relative error
// below 8u. The nearest of the angles 0, pi/8 and pi/4, whose tangents are known, is subtracted;
// the Taylor polynomial of degree 23 gives the rest and leaves out less than 1e-17.
inline double angle_of(double x, double y) {
    constexpr double tan_eighth = 0.41421356237309503, tan_sixteenth = 0.198912367379658,
                     tan_three = 0.66817863791929891;
    const double width = x < 0.0 ? -x : x, height = y < 0.0 ? -y : y;
    const double far = width > height ? width : height, near = width > height ? height : width;
    const bool small = near<tan_sixteenth * far, large = near> tan_three * far;
    const double tangent = small ? 0.0 : large ? 1.0 : tan_eighth;
    const double base = small ? 0.0 : large ? 0.78539816339744831 : 0.39269908169872415;
    const double t = (near - tangent * far) / (far + tangent * near);
    const double octant = base + (t - t * (t * t) * polynomial(atan_coefficients, -t * t));
    const double quadrant = width > height ? octant : 1.5707963267948966 - octant;
    const double half = x < 0.0 ? 3.1415926535897931 - quadrant : quadrant;
    return y < 0.0 ? -half : half;
}

// The distance of a point from the origin, with a relative error below 3u where the square of the
// longer side is a normal number; std::hypot holds everywhere, and asks for a C library as new as
// the one it was built with.
inline double distance(double x, double y) { return std::sqrt(x * x + y * y); }

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::numeric
