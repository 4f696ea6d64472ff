// Random streams of the simulator (python/hockeystick/simulate), and what is drawn from them: words, numbers, batches and clients.
//
// A stream is Philox4x64-10 (Salmon, Moraes, Dror and Shaw 2011), the same words as numpy.random.Philox. A word is a pure function of
// key and counter, so that a stream needs no state that threads could share. The key is (seed, purpose), the counter (block,
// client 2^32 + local step, round, run).
//
// Uniform numbers are (word // 2^11 + 1)/2^53, in (0, 1]. Bounded integers reject (Lemire 2019). Normal numbers are by the Box-Muller
// transform (1958): two uniform numbers u and v give the independent normal numbers sqrt(-2 log u) cos(2 pi v) and
// sqrt(-2 log u) sin(2 pi v). The largest is sqrt(2 log 2^53) = 8.57; beyond lies a probability of 1e-17.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <hockeystick/numeric/elementary.hpp>

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

// In the order of simulate/running/rule.py.
enum class Sampler : std::int64_t {
    every,
    poisson,
    fixed_size,
    with_replacement,
    shuffled,
    cyclic,
    cyclic_poisson,
    balls_in_bins,
    min_separated,
    warm_min_separated
};

// Eleven words, which the caller keeps: key, counter, the current block of four, and how many of these are used.
struct Stream {
    std::uint64_t key[2], counter[4], block[4], used;
};

// The upper half of a product, by halves of 32 bits where the compiler has no longer integers.
inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#else
    const std::uint64_t low = 0xffffffffu, a0 = a & low, a1 = a >> 32, b0 = b & low, b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32), other = a0 * b1 + (middle & low);
    return a1 * b1 + (middle >> 32) + (other >> 32);
#endif
}

inline void start_stream(Stream* s, std::uint64_t seed, std::int64_t purpose, std::int64_t run, std::int64_t round,
                         std::int64_t client, std::int64_t step) {
    const auto word = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
    *s = {{seed, word(purpose)}, {0, (word(client) << 32) | word(step), word(round), word(run)}, {}, 4};
}

// Writes the next four words, and counts.
inline void next_block(Stream& s, std::uint64_t* out) {
    std::uint64_t k0 = s.key[0], k1 = s.key[1];
    std::uint64_t c0 = s.counter[0]++, c1 = s.counter[1], c2 = s.counter[2], c3 = s.counter[3];
    constexpr std::uint64_t m0 = 0xD2E7470EE14C6C93u, m1 = 0xCA5A826395121157u;
    for (int i = 0; i < 10; ++i) {
        const std::uint64_t high0 = multiply_high(m0, c0), high1 = multiply_high(m1, c2);
        const std::uint64_t low0 = m0 * c0, low1 = m1 * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B97F4A7C15u, k1 += 0xBB67AE8584CAA73Bu;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

inline std::uint64_t next_word(Stream* s) {
    if (s->used == 4) {
        next_block(*s, s->block);
        s->used = 0;
    }
    return s->block[s->used++];
}

// In (0, 1].
inline double unit(std::uint64_t word) { return (static_cast<double>(word >> 11) + 1.0) * 0x1p-53; }

// A uniform integer in [0, bound), without modulo bias.
inline std::int64_t below(Stream* s, std::int64_t bound) {
    const auto size = static_cast<std::uint64_t>(bound);
    std::uint64_t word = next_word(s);
    if (word * size < size) {
        const std::uint64_t threshold = (0 - size) % size;
        while (word * size < threshold) word = next_word(s);
    }
    return static_cast<std::int64_t>(multiply_high(word, size));
}

// Adds Laplace numbers of scale `scale`: an exponential one with a bit that its uniform number leaves unused.
inline void add_laplace(Stream* s, double scale, double* out, std::int64_t size) {
    for (std::int64_t j = 0; j < size; ++j) {
        const std::uint64_t word = next_word(s);
        const double length = -scale * std::log(unit(word));
        out[j] += word & 1 ? length : -length;
    }
}

// Turns pairs of uniform numbers into pairs of normal ones.
//
// An angle is k/4 + r turns with |r| <= 1/8, exactly; k tells which of cos(2 pi r) and sin(2 pi r) is the cosine, and both signs.
inline void to_normals(double* radii, double* angles, std::int64_t pairs) {
    for (std::int64_t i = 0; i < pairs; ++i) {
        const double shifted = 4.0 * angles[i] + numeric::round_magic;
        const std::uint64_t quarter = numeric::to_bits(shifted);
        const double x = (angles[i] - 0.25 * (shifted - numeric::round_magic)) * (2.0 * numeric::pi);
        const double z = x * x;
        const double even = 1.0 - z * (0.5 - z * numeric::polynomial(numeric::cos_coefficients, -z));
        const double odd = x - x * z * numeric::polynomial(numeric::sin_coefficients, -z);
        const double cosine = quarter & 1 ? odd : even, sine = quarter & 1 ? even : odd;
        const double radius = std::sqrt(-2.0 * numeric::log_positive(radii[i]));
        radii[i] = radius * ((quarter + 1) & 2 ? -cosine : cosine);
        angles[i] = radius * (quarter & 2 ? -sine : sine);
    }
}

// Adds normal numbers of standard deviation `scale`, from whole blocks: four uniform numbers, so four normal ones.
inline void add_normals(Stream* s, double scale, double* out, std::int64_t size) {
    constexpr std::int64_t most = 32;  // pairs at once: several vectors under way, in the nearest cache
    double radii[most], angles[most];
    for (std::int64_t first = 0; first < size; first += 2 * most) {
        const std::int64_t left = (size - first + 1) / 2, pairs = left < most ? left : most;
        for (std::int64_t i = 0; i < pairs; i += 2) {
            std::uint64_t words[4];
            next_block(*s, words);
            radii[i] = unit(words[0]), angles[i] = unit(words[1]);
            radii[i + 1] = unit(words[2]), angles[i + 1] = unit(words[3]);
        }
        to_normals(radii, angles, (pairs + 1) / 2 * 2);
        for (std::int64_t i = 0; i < pairs; ++i) {
            double* const two = out + first + 2 * i;
            two[0] += scale * radii[i];
            if (first + 2 * i + 1 < size) two[1] += scale * angles[i];
        }
    }
}

// One party's share of a noisy sum, of a value in [0, top]: randomised rounding and binomial noise, both unbiased.
inline double encode(Stream* s, double value, double top, std::int64_t levels, std::int64_t bits, double rate) {
    const auto most = static_cast<double>(levels);
    const double scaled = std::fmin(std::fmax(value * most / top, 0.0), most);  // a clipped vector's norm is rounded
    double ones = std::floor(scaled);
    if (unit(next_word(s)) <= scaled - ones) ones += 1.0;
    for (std::int64_t i = 0; i < bits; ++i) ones += unit(next_word(s)) <= rate ? 1.0 : 0.0;
    return top / most * (ones - rate * static_cast<double>(bits));
}

// Encodes a vector of norm at most `bound` in place: its coordinates, moved into [0, 2 bound] and back.
inline void encode_vector(Stream* s, double* vector, std::int64_t size, double bound, std::int64_t levels,
                          std::int64_t bits, double rate) {
    for (std::int64_t j = 0; j < size; ++j)
        vector[j] = encode(s, vector[j] + bound, 2.0 * bound, levels, bits, rate) - bound;
}

// Skips geometrically: the gap before the next one is floor(log U/log(1 - rate)).
inline std::int64_t draw_poisson(Stream* s, double rate, std::int64_t population, std::int64_t* out) {
    const double scale = rate < 1.0 ? std::log1p(-rate) : -numeric::infinity;
    for (std::int64_t count = 0, i = 0;; ++count, ++i) {
        const double gap = std::log(unit(next_word(s))) / scale;
        if (gap >= static_cast<double>(population - i)) return count;
        out[count] = i += static_cast<std::int64_t>(gap);
    }
}

inline void swap_places(std::int64_t* order, std::int64_t i, std::int64_t j) {
    const std::int64_t x = order[i];
    order[i] = order[j], order[j] = x;
}

// Swaps the first `size` places of the identity as Fisher and Yates do, and undoes it: a draw must not depend on earlier ones.
inline std::int64_t draw_fixed_size(Stream* s, std::int64_t size, std::int64_t population, std::int64_t* order,
                                    std::int64_t* out) {
    for (std::int64_t i = 0; i < size; ++i) {
        out[i] = i + below(s, population - i);  // for the way back
        swap_places(order, i, out[i]);
    }
    for (std::int64_t i = size - 1; i >= 0; --i) {
        const std::int64_t j = out[i];
        out[i] = order[i];
        swap_places(order, i, j);
    }
    return size;
}

// Shuffles all, takes one part, and restores the identity.
inline std::int64_t draw_shuffled(Stream* s, std::int64_t first, std::int64_t size, std::int64_t population,
                                  std::int64_t* order, std::int64_t* out) {
    for (std::int64_t i = 0; i < population - 1; ++i) swap_places(order, i, i + below(s, population - i));
    for (std::int64_t i = 0; i < size; ++i) out[i] = order[first + i];
    for (std::int64_t i = 0; i < population; ++i) order[i] = i;
    return size;
}

// The members whose place is `turn` modulo `parts`, each with the probability `rate`.
inline std::int64_t draw_of_part(Stream* s, double rate, std::int64_t turn, std::int64_t parts, std::int64_t population,
                                 std::int64_t* out) {
    const std::int64_t count = draw_poisson(s, rate, (population - turn + parts - 1) / parts, out);
    for (std::int64_t i = 0; i < count; ++i) out[i] = turn + parts * out[i];
    return count;
}

// The members whose bin is `turn`: the first words of a stream are everybody's bins, in every draw.
inline std::int64_t draw_bin(Stream* s, std::int64_t turn, std::int64_t bins, std::int64_t population,
                             std::int64_t* out) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < population; ++i)
        if (below(s, bins) == turn) out[count++] = i;
    return count;
}

// Batches of members each of which throws a coin in every draw that it may be in, and sits out the `apart` draws after one that it is in.
//
// Coins are words of the draws' streams, a word a member, so that each can be thrown again. Whether a member may be in a draw is known from
// the coins since the last `apart` draws in a row without one, or since the first draw: at small rates these are few.
struct SeparatedBatches {
    std::uint64_t seed;
    std::int64_t purpose, run, client, apart;
    double rate;
    bool warm;  // the first draw that a member may be in is random

    Stream stream(std::int64_t index, std::int64_t step) const {
        Stream s;
        start_stream(&s, seed, purpose, run, index, client, step);
        return s;
    }

    static double number(Stream s, std::int64_t member) {
        s.counter[0] = static_cast<std::uint64_t>(member / 4);
        next_block(s, s.block);
        return unit(s.block[member % 4]);
    }

    bool coin(std::int64_t index, std::int64_t member) const { return number(stream(index, 0), member) <= rate; }

    // 0 with probability 1/(1 + apart rate), and each of 1, ..., apart with `rate` times that.
    std::int64_t first(std::int64_t member) const {
        const double above =
            warm ? number(stream(0, 1), member) * (1.0 + static_cast<double>(apart) * rate) - 1.0 : 0.0;
        if (above <= 0.0) return 0;
        const auto step = static_cast<std::int64_t>(std::ceil(above / rate));
        return step < apart ? step : apart;
    }

    bool may_be_in(std::int64_t index, std::int64_t member) const {
        std::int64_t draw = index, without = 0;
        while (draw > 0 && without < apart) without = coin(--draw, member) ? 0 : without + 1;
        for (draw = without == apart ? draw + apart : first(member); draw < index;)
            draw += coin(draw, member) ? apart + 1 : 1;
        return draw == index;
    }

    std::int64_t draw(std::int64_t index, std::int64_t population, std::int64_t* out) const {
        Stream s = stream(index, 0);
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < population; ++i)
            if (unit(next_word(&s)) <= rate && may_be_in(index, i)) out[count++] = i;
        return count;
    }
};

// Keeps each of the first `count` with probability 1 - dropout, in their order; returns how many are left.
inline std::int64_t remaining(Stream* s, double dropout, std::int64_t count, std::int64_t* chosen) {
    std::int64_t left = 0;
    for (std::int64_t i = 0; i < count; ++i)
        if (unit(next_word(s)) > dropout) chosen[left++] = chosen[i];
    return left;
}

// Writes who takes part in draw number `index`, and returns how many do; `order` is the identity, before and after.
inline std::int64_t draw(Stream* s, std::uint64_t seed, std::int64_t purpose, std::int64_t run, std::int64_t client,
                         std::int64_t index, Sampler kind, std::int64_t size, double rate, std::int64_t population,
                         std::int64_t* order, std::int64_t* out) {
    if (kind == Sampler::every) {
        for (std::int64_t i = 0; i < population; ++i) out[i] = i;
        return population;
    }
    if (kind == Sampler::cyclic) {
        for (std::int64_t i = 0; i < size; ++i) out[i] = (index * size + i) % population;
        return size;
    }
    if (kind == Sampler::shuffled) {
        const std::int64_t parts = population / size;
        start_stream(s, seed, purpose, run, index / parts, client, 0);
        return draw_shuffled(s, index % parts * size, size, population, order, out);
    }
    if (kind == Sampler::min_separated || kind == Sampler::warm_min_separated)
        return SeparatedBatches{seed, purpose, run, client, size - 1, rate, kind == Sampler::warm_min_separated}.draw(
            index, population, out);
    start_stream(s, seed, purpose, run, kind == Sampler::balls_in_bins ? 0 : index, client, 0);
    if (kind == Sampler::balls_in_bins) return draw_bin(s, index % size, size, population, out);
    if (kind == Sampler::cyclic_poisson) return draw_of_part(s, rate, index % size, size, population, out);
    if (kind == Sampler::poisson) return draw_poisson(s, rate, population, out);
    if (kind == Sampler::fixed_size) return draw_fixed_size(s, size, population, order, out);
    for (std::int64_t i = 0; i < size; ++i) out[i] = below(s, population);
    return size;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
