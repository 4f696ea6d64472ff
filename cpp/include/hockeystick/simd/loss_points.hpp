// The loops over the points of a law of losses (cumulant/loss_points.hpp): its tilted weights and
// the terms of M - 1 at real tilts; its characteristic function at equal distances, directly
// (characteristic_sums); and the same by way of a grid, onto which points are spread for
// cumulant/nonuniform_fft.hpp (spread_points).
#pragma once

#include <cstddef>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>
#include <hockeystick/simd/sums.hpp>

namespace hockeystick::simd {

// Losses L, the masses q of Q and their logarithms, psi(L) = e^L - 1 - L, and errors in units of u:
// of L, absolute, and of q, relative.
struct CentredPoints {
    const double *loss, *q, *log_q, *psi, *loss_error, *q_error;
    std::size_t n;
};

// Blocks of nodes and chunks of points of characteristic_sums.
inline constexpr std::size_t half_block = 8;  // nodes on either side of a centre
inline constexpr std::size_t block_of_nodes = 2 * half_block + 1;
inline constexpr std::size_t chunk_of_points = 16 * lanes;

inline constexpr std::size_t taps = 32;       // how many grid points a point is spread onto
inline constexpr double tap_variance = 3.25;  // of the Gaussian, in grid steps squared

// Points to spread onto a periodic grid: point j lies at losses[j] scale of a period.
struct PointSpread {
    const double *losses, *weights;
    std::size_t n;
    double scale;
    std::size_t length;
};

inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// 1/(k+2)!: the series of (e^x - 1 - x)/x^2.
inline constexpr double psi_coefficients[] = {
    1.0 / 2.0,         1.0 / 6.0,          1.0 / 24.0,          1.0 / 120.0,          1.0 / 720.0,
    1.0 / 5040.0,      1.0 / 40320.0,      1.0 / 362880.0,      1.0 / 3628800.0,      1.0 / 39916800.0,
    1.0 / 479001600.0, 1.0 / 6227020800.0, 1.0 / 87178291200.0, 1.0 / 1307674368000.0};

// psi(x) = e^x - 1 - x for |x| <= 600, within a relative 20u: by its series where the difference
// would cancel. The series leaves out less than 1e-17.
inline double expm1_less_x(double x) {
    const double near = x * x * polynomial(psi_coefficients, x), far = expm1_bounded(x) - x;
    return (x < 0.0 ? -x : x) < 0.5 ? near : far;
}

// exponents[j] = log_masses[j] + c losses[j]
inline void fill_point_exponents(const double* __restrict log_masses, const double* __restrict losses, double c,
                                 double* __restrict exponents, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) exponents[j] = log_masses[j] + c * losses[j];
}

// The terms q (psi(a L) - a psi(L)) of M - 1, a = c + 1, and bounds of their errors in units of u.
// A term is infinite where |a L| is above 600 and the point matters.
inline void centred_point_terms(const CentredPoints& p, double c, double* __restrict terms, double* __restrict errors) {
    constexpr double largest_power = 600.0, least_matter = -72.0;
    const double a = c + 1.0, size = a < 0.0 ? -a : a, size_of_c = c < 0.0 ? -c : c;
    const double* __restrict losses = p.loss;
    const double* __restrict masses = p.q;
    const double* __restrict log_masses = p.log_q;
    const double* __restrict known = p.psi;
    const double* __restrict loss_errors = p.loss_error;
    const double* __restrict mass_errors = p.q_error;
    for (std::size_t j = 0; j < p.n; ++j) {
        const double loss = losses[j], power = a * loss, linear = known[j], q = masses[j];
        const double above = power < largest_power ? power : largest_power;
        const double bounded = above > -largest_power ? above : -largest_power;
        const double raised = expm1_less_x(bounded), term = raised - a * linear;
        const double width = bounded < 0.0 ? -bounded : bounded, loss_size = loss < 0.0 ? -loss : loss;
        const double slope = size * (raised + linear + size_of_c * loss_size);
        const double own = 24.0 * (raised + size * linear) + 4.0 * width * (raised + width);
        const double beyond = power - bounded, matters = log_masses[j] + (power > 0.0 ? power : 0.0);
        const double found = q * term, told = beyond == 0.0 ? found : infinity;
        terms[j] = matters > least_matter ? told : found;
        errors[j] = q * (slope * loss_errors[j] + own) + (found < 0.0 ? -found : found) * mass_errors[j];
    }
}

// Sums of e^{i k h L} - 1 over points of losses L, at the nodes k = 1, 2, ...
//
// With theta = h L, V_l = e^{i l theta} - 1 and U = e^{i m theta} - 1,
//
//   e^{i (m + l) theta} - 1 = U + (1 + U) V_l,   e^{i (m - l) theta} - 1 = U + (1 + U) conj V_l.
//
// The V_l of l = 1..8 are made once for a point. They serve every block of 17 nodes around a centre
// m, which has one U: a node takes two multiplications and additions for a point, half as many as a
// rotation from node to node, and what they add up stays in registers.
//
// Points come in chunks of 128, whose V_l and U stay in the first cache (22 KB). A chunk's sum has
// 16 terms in each lane, so that chunks also halve the rounding. docs/core/cumulant.md bounds the
// error (Proposition 5).

// e^{i times x} - 1 for the angles x = h losses, from half of them: without cancellation. Before
// they are multiplied, multiples of pi are subtracted as in `cos_sin`: a rounding then costs no
// more than one of 2 times.
inline void load_turns(const double* losses, double h, double times, Lanes& real, Lanes& imag) {
    constexpr double largest = 0x1p53;
    double re[lanes], im[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
        const double half = 0.5 * h * losses[i], x = half > largest || half < -largest ? 0.0 : half;
        const double n = (x * 0.3183098861837907 + round_magic) - round_magic;  // 1/pi
        const double once = x - n * (2.0 * 1.57079632673412561417);
        const double rest = (once - n * (2.0 * 6.07710050630396597660e-11)) - n * (2.0 * 2.02226624879595063154e-21);
        double cosine, sine;
        cos_sin(times == 1.0 ? half : times * rest, cosine, sine);
        re[i] = -2.0 * sine * sine;
        im[i] = 2.0 * sine * cosine;
    }
    load(re, real), load(im, imag);
}

// From at = e^{i x} - 1 and turn = e^{i y} - 1 to e^{i (x + y)} - 1 = at + (1 + at) turn.
inline void turn_by(const Lanes& turn_re, const Lanes& turn_im, Lanes& at_re, Lanes& at_im) {
    constexpr double ones[lanes] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    Lanes a;
    load(ones, a);
    a += at_re;
    const Lanes b = at_im;
    at_re += a * turn_re - b * turn_im;
    at_im += a * turn_im + b * turn_re;
}

// What a chunk of points keeps from node to node: entry j is that of point j.
struct ChunkTurns {
    double first_re[half_block][chunk_of_points], first_im[half_block][chunk_of_points];  // V_l
    double turn_re[chunk_of_points], turn_im[chunk_of_points];                            // of centres
    double at_re[chunk_of_points], at_im[chunk_of_points];                                // U
    double a[chunk_of_points], b[chunk_of_points];                                        // weight (1 + U)

    void fill_first(const double* losses, std::size_t n, double h) {
        for (std::size_t j = 0; j < n; j += lanes) {
            Lanes by_re, by_im;
            load_turns(losses + j, h, 1.0, by_re, by_im);
            Lanes re = by_re, im = by_im;
            for (std::size_t l = 0; l < half_block; ++l) {
                store(re, first_re[l] + j), store(im, first_im[l] + j);
                turn_by(by_re, by_im, re, im);
            }
        }
    }

    // The first centre, or from one centre to the next.
    void move_centre(const double* losses, const double* weights, std::size_t n, double h, bool first) {
        for (std::size_t j = 0; j < n; j += lanes) {
            Lanes re, im, by_re, by_im, weight;
            if (first) {
                load_turns(losses + j, h, static_cast<double>(block_of_nodes), re, im);
                store(re, turn_re + j), store(im, turn_im + j);
            } else {
                load(at_re + j, re), load(at_im + j, im), load(turn_re + j, by_re), load(turn_im + j, by_im);
                turn_by(by_re, by_im, re, im);
            }
            load(weights + j, weight);
            store(re, at_re + j), store(im, at_im + j);
            store(weight + weight * re, a + j), store(weight * im, b + j);
        }
    }
};

#if defined(__AVX512F__)  // only AVX-512 has enough registers (32) for more than one
inline constexpr std::size_t products_at_once = 4;
#else
inline constexpr std::size_t products_at_once = 1;
#endif

// The sums of all nodes, lane by lane: node k has the lanes from lanes (k - 1) on.
struct LaneSums {
    double *real, *imag;
    std::size_t nodes;

    void add(std::size_t k, const Lanes& re, const Lanes& im, bool first) const {
        if (k > nodes) return;
        double *to_re = real + (k - 1) * lanes, *to_im = imag + (k - 1) * lanes;
        Lanes sum_re = {}, sum_im = {};
        if (!first) load(to_re, sum_re), load(to_im, sum_im);
        store(sum_re + re, to_re), store(sum_im + im, to_im);
    }
};

// Adds the terms of `products_at_once` pairs of nodes, centre + l and centre - l for l from `from`
// on, to those of the centre.
inline void add_pairs(const ChunkTurns& t, std::size_t n, std::size_t centre, std::size_t from, const Lanes& middle_re,
                      const Lanes& middle_im, bool first, const LaneSums& to) {
    Lanes ac[products_at_once] = {}, bs[products_at_once] = {}, as[products_at_once] = {}, bc[products_at_once] = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        Lanes x, y;
        load(t.a + j, x), load(t.b + j, y);
        for (std::size_t i = 0; i < products_at_once; ++i) {
            Lanes cosine, sine;
            load(t.first_re[from + i - 1] + j, cosine), load(t.first_im[from + i - 1] + j, sine);
            ac[i] += x * cosine, bs[i] += y * sine;
            as[i] += x * sine, bc[i] += y * cosine;
        }
    }
    for (std::size_t i = 0; i < products_at_once; ++i) {
        to.add(centre + from + i, middle_re + (ac[i] - bs[i]), middle_im + (bc[i] + as[i]), first);
        to.add(centre - from - i, middle_re + (ac[i] + bs[i]), middle_im + (bc[i] - as[i]), first);
    }
}

// The sums of weights times (re, im), lane by lane.
inline void weigh(const double* weights, const double* re, const double* im, std::size_t n, Lanes& sum_re,
                  Lanes& sum_im) {
    Lanes re_of_lane = {}, im_of_lane = {};
    for (std::size_t j = 0; j < n; j += lanes) {
        Lanes weight, x, y;
        load(weights + j, weight), load(re + j, x), load(im + j, y);
        re_of_lane += weight * x, im_of_lane += weight * y;
    }
    sum_re = re_of_lane, sum_im = im_of_lane;
}

// Adds a chunk's terms to the sums of all nodes; the first chunk sets them.
inline void add_chunk(const double* losses, const double* weights, std::size_t n, double h, bool first, ChunkTurns& t,
                      const LaneSums& to) {
    Lanes re, im;
    t.fill_first(losses, n, h);
    for (std::size_t l = 0; l < half_block && l < to.nodes; ++l) {
        weigh(weights, t.first_re[l], t.first_im[l], n, re, im);
        to.add(l + 1, re, im, first);
    }
    for (std::size_t centre = block_of_nodes; centre - half_block <= to.nodes; centre += block_of_nodes) {
        t.move_centre(losses, weights, n, h, centre == block_of_nodes);
        weigh(weights, t.at_re, t.at_im, n, re, im);
        to.add(centre, re, im, first);
        for (std::size_t l = 1; l <= half_block; l += products_at_once) add_pairs(t, n, centre, l, re, im, first, to);
    }
}

// real[k-1] + i imag[k-1] = sum_j weights[j] (e^{i k h losses[j]} - 1), k = 1..nodes. `scratch` has
// room for 2 lanes nodes doubles.
inline void characteristic_sums(const double* losses, const double* weights, std::size_t n, double h, std::size_t nodes,
                                double* real, double* imag, double* scratch) {
    if (n == 0) {
        for (std::size_t k = 0; k < nodes; ++k) real[k] = imag[k] = 0.0;
        return;
    }
    const LaneSums sums{scratch, scratch + lanes * nodes, nodes};
    ChunkTurns turns;
    for (std::size_t j = 0; j < n; j += chunk_of_points)
        add_chunk(losses + j, weights + j, n - j < chunk_of_points ? n - j : chunk_of_points, h, j == 0, turns, sums);
    for (std::size_t k = 0; k < nodes; ++k) {
        real[k] = sum(sums.real + k * lanes, lanes);
        imag[k] = sum(sums.imag + k * lanes, lanes);
    }
}

// x^0 to x^8; x^k errs by less than k roundings.
inline void fill_powers(double x, double* powers) {
    powers[0] = 1.0, powers[1] = x, powers[2] = x * x, powers[4] = powers[2] * powers[2];
    powers[3] = powers[2] * x, powers[5] = powers[4] * x, powers[6] = powers[4] * powers[2];
    powers[7] = powers[4] * powers[3], powers[8] = powers[4] * powers[4];
}

// Spreads points onto a periodic grid by a Gaussian: the first half of cumulant/nonuniform_fft.hpp.
//
// Adds weight e^{-d^2/2 tap_variance} to the `taps` grid points around every point, d their
// distance; `rests` gets what rounding takes from the sums.
//
// Entry m of the length + taps entries is point m - (length + taps)/2 of the grid: the last `taps`
// entries are the first ones once more, a period on. `length` is a power of two, so that a place on
// the grid is as exact as the turns are.
//
// With o the place of a point and m that of a tap, from the grid point nearest to it,
// e^{-(m - o)^2/2v} = e^{-o^2/2v} e^{-m^2/2v} r^m, r = e^{o/v}: two exponentials serve all taps.
inline void spread_points(const PointSpread& p, double* __restrict sums, double* __restrict rests) {
    constexpr std::size_t half = taps / 2, quarter = taps / 4;
    static_assert(quarter == 8, "fill_powers makes as many");
    const auto length = static_cast<double>(static_cast<int>(p.length));
    double shape[taps];
    for (std::size_t m = 0; m < taps; ++m) {
        const double d = static_cast<double>(static_cast<int>(m)) - static_cast<double>(half);
        shape[m] = exp_nonpositive(-0.5 / tap_variance * d * d);
    }
    for (std::size_t j = 0; j < p.n; ++j) {
        const double turns = p.losses[j] * p.scale;
        const double part = turns - ((turns + round_magic) - round_magic);
        const double at = length * (part >= -0.5 && part <= 0.5 ? part : 0.0);
        const double nearest = (at + round_magic) - round_magic;
        const double offset = at - nearest, distance = offset < 0.0 ? -offset : offset;
        const double weight = p.weights[j] * exp_nonpositive(-0.5 / tap_variance * offset * offset);
        const double falling = exp_nonpositive(-distance / tap_variance), rising = 1.0 / falling;
        double up[quarter + 1], down[quarter + 1], powers[taps];
        fill_powers(offset < 0.0 ? falling : rising, up), fill_powers(offset < 0.0 ? rising : falling, down);
        for (std::size_t m = 0; m < quarter; ++m) {
            powers[half + m] = up[m], powers[half + quarter + m] = up[m] * up[quarter];
            powers[half - quarter + m] = down[quarter - m], powers[m] = down[quarter - m] * down[quarter];
        }
        const auto first = static_cast<std::size_t>(static_cast<int>(nearest + 0.5 * length));
        double* __restrict sum = sums + first;
        double* __restrict rest = rests + first;
        for (std::size_t m = 0; m < taps; ++m) {
            const double term = weight * powers[m] * shape[m];
            const double total = sum[m] + term, added = total - sum[m];
            rest[m] += (sum[m] - (total - added)) + (term - added);
            sum[m] = total;
        }
    }
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
