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
#pragma once

#include <cstddef>

#include <hockeystick/simd/sums.hpp>

namespace hockeystick::simd {

inline constexpr std::size_t half_block = 8;  // nodes on either side of a centre
inline constexpr std::size_t block_of_nodes = 2 * half_block + 1;
inline constexpr std::size_t chunk_of_points = 16 * lanes;

inline namespace HOCKEYSTICK_ISA {

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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
