// Losses of one record and their gradients, and sums of clipped gradients over a batch: the inner loops of the simulator
// (python/hockeystick/simulate), which compiled Python calls by address.
//
// A loss that is linear in its record x has the gradient slope(<x, w>, y) x; the gradient of softmax is the outer product of the
// errors of the logits with x. Its norm is that of slope or errors times |x|, so that a batch writes no record's gradient down: scores
// are products of records with a model, and the sum is that of the records times what clipping leaves of their slopes. Records are
// taken in blocks that stay in the nearest cache between both products.
//
// Lane l of an inner product adds the terms l, l + 8, l + 16, ..., and the lanes are added as in `sum_of_lanes`. The last vector of a
// longer row begins eight numbers before its end, and numbers that have been met count as 0. So a row's sum is the same whichever
// rows and models are taken with it, and blocks change no bit: records are added one after another.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

#if defined(__GNUC__) && !defined(__clang__)  // which unrolls such loops by itself
#define HOCKEYSTICK_UNROLL _Pragma("GCC unroll 16")
#else
#define HOCKEYSTICK_UNROLL
#endif

namespace hockeystick::simd {
inline namespace HOCKEYSTICK_ISA {

// In the order of simulate/running/rule.py.
enum class RecordLoss : std::int64_t {
    linear,
    least_squares,
    logistic,
    quadratic,
    softmax,
    network,
    hinge,
    absolute,
    of_score,
};

// A function of the user's own, as numba compiles it: returns 0 where it raises nothing.
using ScoreFunction = int (*)(double* result, void** error, double score, double label);

// simulate/running/rule.py's `Data`, word by word: an array is a pointer and its lengths.
struct Records {
    RecordLoss kind;
    std::int64_t outputs, hidden;
    double curvature;
    const double* features;
    std::int64_t count, width;
    const double* labels;
    std::int64_t num_labels;
    const double* norms;  // of the features
    std::int64_t num_norms;
    const std::int64_t* offsets;  // where a silo's records start
    std::int64_t num_offsets;
    const double* factors;  // of every loss of a silo
    std::int64_t num_factors;
    ScoreFunction value, slope;
};

inline bool linear_in_record(RecordLoss kind) { return kind <= RecordLoss::logistic || kind >= RecordLoss::hinge; }

// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)): halves of registers first.
inline double sum_of_lanes(const Lanes& terms) {
#if defined(__GNUC__)
    using Two = double __attribute__((vector_size(16)));
    Two x[lanes / 2];
    std::memcpy(&x, &terms, sizeof x);
    const Two pair = (x[0] + x[2]) + (x[1] + x[3]);
    return pair[0] + pair[1];
#else
    double x[lanes];
    store(terms, x);
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
#endif
}

// 1 in the last `rest` lanes.
inline void load_mask(std::size_t rest, Lanes& mask) {
    static constexpr double zeros_and_ones[2 * lanes] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    load(zeros_and_ones + rest, mask);
}

// The inner products of `rows` rows of length n >= 8 with a model.
template <std::size_t rows>
inline void dots(const double* const* starts, const double* model, std::size_t n, double* out) {
    Lanes sums[rows] = {};
    const std::size_t rest = n % lanes;
    const auto add = [&](std::size_t j, const Lanes* mask) {
        Lanes part;
        load(model + j, part);
        if (mask) part = part * *mask;
        HOCKEYSTICK_UNROLL
        for (std::size_t k = 0; k < rows; ++k) {
            Lanes row;
            load(starts[k] + j, row);
            sums[k] += row * part;
        }
    };
    for (std::size_t j = 0; j + lanes <= n; j += lanes) add(j, nullptr);
    if (rest) {
        Lanes mask;
        load_mask(rest, mask);
        add(n - lanes, &mask);
    }
    HOCKEYSTICK_UNROLL
    for (std::size_t k = 0; k < rows; ++k) out[k] = sum_of_lanes(sums[k]);
}

// The inner product in the same order; of any length.
HOCKEYSTICK_APART inline double record_dot(const double* a, const double* b, std::size_t n) {
    if (n >= lanes) {
        double out = 0.0;
        dots<1>(&a, b, n, &out);
        return out;
    }
    double total = 0.0;
    for (std::size_t j = 0; j < n; ++j) total += a[j] * b[j];
    return total;
}

// Adds multiples of `rows` rows of length n >= 8: those of even and of odd rows, one after another, and both.
template <std::size_t rows>
inline void add_rows(const double* const* starts, const double* __restrict factors, std::size_t n,
                     double* __restrict out) {
    const std::size_t rest = n % lanes;
    const auto add = [&](std::size_t j, const Lanes* mask) {
        Lanes sums[2] = {}, before;
        HOCKEYSTICK_UNROLL
        for (std::size_t k = 0; k < rows; ++k) {
            Lanes row;
            load(starts[k] + j, row);
            sums[k % 2] += row * factors[k];
        }
        Lanes sum = sums[0] + sums[1];
        if (mask) sum = sum * *mask;
        load(out + j, before);
        store(before + sum, out + j);
    };
    for (std::size_t j = 0; j + lanes <= n; j += lanes) add(j, nullptr);
    if (rest) {
        Lanes mask;
        load_mask(rest, mask);
        add(n - lanes, &mask);
    }
}

// As many rows at once as have their sums in registers.
#ifdef __AVX512F__
inline constexpr std::size_t rows_at_once = 8;
#else
inline constexpr std::size_t rows_at_once = 4;
#endif

// Some rows, in groups; the last group is filled with its last row, whose further scores are written and not
// used, and whose further factors are 0. Rows that are short, or few, are taken one by one.
struct RowBlock {
    const Records& data;
    const std::int64_t* rows;
    std::size_t count;

    // From which row on they are taken one by one.
    std::size_t grouped() const {
        const std::size_t size = rows_at_once, left = count % size;
        return static_cast<std::size_t>(data.width) < lanes ? 0 : left < 3 ? count - left : count;
    }
    const double* row(std::size_t i) const { return data.features + rows[i < count ? i : count - 1] * data.width; }

    HOCKEYSTICK_APART void scores(const double* model, double* out) const {
        const auto n = static_cast<std::size_t>(data.width);
        const std::size_t end = grouped();
        for (std::size_t i = 0; i < end; i += rows_at_once) {
            const double* starts[rows_at_once];
            for (std::size_t k = 0; k < rows_at_once; ++k) starts[k] = row(i + k);
            dots<rows_at_once>(starts, model, n, out + i);
        }
        for (std::size_t i = end; i < count; ++i) out[i] = record_dot(row(i), model, n);
    }
    HOCKEYSTICK_APART void add(double* factors, double* out) const {
        const auto n = static_cast<std::size_t>(data.width);
        const std::size_t end = grouped();
        for (std::size_t i = count; i < (end + lanes - 1) / lanes * lanes; ++i) factors[i] = 0.0;
        for (std::size_t i = 0; i < end; i += rows_at_once) {
            const double* starts[rows_at_once];
            for (std::size_t k = 0; k < rows_at_once; ++k) starts[k] = row(i + k);
            add_rows<rows_at_once>(starts, factors + i, n, out);
        }
        for (std::size_t i = end; i < count; ++i)
            for (std::size_t j = 0; j < n; ++j) out[j] += factors[i] * row(i)[j];
    }
};

inline double called(ScoreFunction function, double score, double label) {
    double result = 0.0;
    void* error = nullptr;
    return function(&result, &error, score, label) == 0 ? result : numeric::nan;
}

inline double sigmoid(double score) {
    const double e = numeric::exp_normal(score < 0.0 ? score : -score);
    return (score < 0.0 ? e : 1.0) / (1.0 + e);
}

// Returns the derivative with respect to the score; that of hinge and absolute losses is their envelopes'.
inline double loss_slope(const Records& data, double score, double label) {
    const double sign = 2.0 * label - 1.0;
    switch (data.kind) {
    case RecordLoss::linear:
        return 1.0;
    case RecordLoss::logistic:
        return sigmoid(score) - label;
    case RecordLoss::hinge:
        return -sign * std::fmin(std::fmax(data.curvature * (1.0 - sign * score), 0.0), 1.0);
    case RecordLoss::absolute:
        return std::fmin(std::fmax(data.curvature * (score - label), -1.0), 1.0);
    case RecordLoss::of_score:
        return called(data.slope, score, label);
    default:
        return score - label;
    }
}

inline double score_loss(const Records& data, double score, double label) {
    switch (data.kind) {
    case RecordLoss::linear:
        return score;
    case RecordLoss::logistic:
        return std::fmax(score, 0.0) + std::log1p(std::exp(-std::fabs(score))) - label * score;
    case RecordLoss::hinge:
        return std::fmax(1.0 - (2.0 * label - 1.0) * score, 0.0);
    case RecordLoss::absolute:
        return std::fabs(score - label);
    case RecordLoss::of_score:
        return called(data.value, score, label);
    default:
        return 0.5 * (score - label) * (score - label);
    }
}

// min(1, clip_norm/norm), the factor with which a vector of this norm is clipped; 0 for a norm that overflows, since a model that
// is not finite would tell of the record.
inline double clipping(double norm, double clip_norm) {
    if (!(norm < numeric::infinity) && clip_norm < numeric::infinity) return 0.0;
    return norm > clip_norm ? clip_norm / norm : 1.0;
}

// Turns the scores of some records in the models of some runs, which lie beside each other, into what the records are multiplied by: slopes,
// clipped and weighted.
template <std::size_t width>
HOCKEYSTICK_APART inline void clipped_slopes(const Records& data, const std::int64_t* rows, std::size_t count,
                                             std::size_t runs, double factor, double weight, double clip_norm,
                                             double* scores) {
    if (data.kind == RecordLoss::logistic) {  // loops of their own, of which the compiler makes vectors
        for (std::size_t k = 0; k < count * width; ++k) scores[k] = sigmoid(scores[k]);
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) scores[k] -= data.labels[rows[i]];
    } else {
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = i * width; k < i * width + runs; ++k)
                scores[k] = loss_slope(data, scores[k], data.labels[rows[i]]);
    }
    const bool clips = clip_norm < numeric::infinity;
    for (std::size_t i = 0; i < count; ++i) {
        const double length = std::fabs(factor) * data.norms[rows[i]];
        for (std::size_t k = i * width; k < (i + 1) * width; ++k) {  // `clipping`, without branches
            const double norm = std::fabs(scores[k]) * length;
            const double kept = norm > clip_norm ? clip_norm / norm : 1.0;
            const bool lost = clips & !(norm < numeric::infinity);
            scores[k] = lost ? 0.0 : scores[k] * (factor * weight * kept);
        }
    }
}

inline constexpr std::size_t nearest_cache = 2048;  // numbers: half of 32 KiB

inline void add_linear_batch(const Records& data, const double* model, std::int64_t client, const std::int64_t* rows,
                             std::size_t count, double weight, double clip_norm, double* scores, double* out) {
    const std::size_t fitting = nearest_cache / static_cast<std::size_t>(data.width) / lanes * lanes;
    const std::size_t block = fitting > lanes ? fitting : lanes;
    for (std::size_t first = 0; first < count; first += block) {
        const RowBlock mine{data, rows + first, count - first < block ? count - first : block};
        mine.scores(model, scores);
        clipped_slopes<1>(data, mine.rows, mine.count, 1, data.factors[client], weight, clip_norm, scores);
        mine.add(scores, out);
    }
}

// The same for up to eight runs, lane r of a vector being run r. Each sum has the terms of one run's alone in the same order, so that its
// neighbours change no bit. The room is for 16 times as many numbers as a model has, and for a block of scores.
struct RunLanes {
    const Records& data;
    double *models, *sums, *scores;  // the models and sums of all runs, number by number

    static constexpr std::size_t block = 64;
    static constexpr std::int64_t fewest = 6;  // fewer are quicker one after another

    RunLanes(const Records& records, const double* given, std::size_t runs, double* room)
        : data(records), models(room), sums(room + lanes * static_cast<std::size_t>(records.width)),
          scores(sums + lanes * static_cast<std::size_t>(records.width)) {
        const auto n = static_cast<std::size_t>(data.width);
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t r = 0; r < lanes; ++r) models[j * lanes + r] = r < runs ? given[r * n + j] : 0.0;
        for (std::size_t j = 0; j < n * lanes; ++j) sums[j] = 0.0;
    }
    void score(const double* x, double* out) const {  // as `record_dot`
        const auto n = static_cast<std::size_t>(data.width);
        Lanes part[lanes] = {};
        const auto add_term = [&](std::size_t l, std::size_t j) {
            Lanes model;
            load(models + j * lanes, model);
            part[l] += model * x[j];
        };
        for (std::size_t j = 0; n < lanes && j < n; ++j) add_term(0, j);
        for (std::size_t j = 0; j + lanes <= n; j += lanes) {
            HOCKEYSTICK_UNROLL
            for (std::size_t l = 0; l < lanes; ++l) add_term(l, j + l);
        }
        HOCKEYSTICK_UNROLL
        for (std::size_t l = 0; l < lanes; ++l)
            if (n >= lanes && l >= lanes - n % lanes) add_term(l, n - lanes + l);
        store(((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7])), out);
    }
    // Adds some numbers of all rows to the sums, each as `RowBlock::add` does.
    template <std::size_t columns> void add(const RowBlock& mine, const double* const* x, std::size_t j) const {
        Lanes total[columns];
        const auto add_row = [&](std::size_t i, Lanes* sum) {
            Lanes factor;
            load(scores + i * lanes, factor);
            HOCKEYSTICK_UNROLL
            for (std::size_t k = 0; k < columns; ++k) sum[k] += factor * x[i][j + k];
        };
        for (std::size_t k = 0; k < columns; ++k) load(sums + (j + k) * lanes, total[k]);
        const std::size_t end = mine.grouped();
        for (std::size_t first = 0; first < end; first += rows_at_once) {
            const std::size_t last = first + rows_at_once < mine.count ? first + rows_at_once : mine.count;
            Lanes even[columns] = {}, odd[columns] = {};
            std::size_t i = first;
            for (; i + 2 <= last; i += 2) add_row(i, even), add_row(i + 1, odd);
            if (i < last) add_row(i, even);
            for (std::size_t k = 0; k < columns; ++k) total[k] += even[k] + odd[k];
        }
        for (std::size_t i = end; i < mine.count; ++i) add_row(i, total);
        for (std::size_t k = 0; k < columns; ++k) store(total[k], sums + (j + k) * lanes);
    }
    void add(const RowBlock& mine) const {
        const auto n = static_cast<std::size_t>(data.width);
        const double* starts[block];
        for (std::size_t i = 0; i < mine.count; ++i) starts[i] = mine.row(i);
        std::size_t j = 0;
        for (; j + 4 <= n; j += 4) add<4>(mine, starts, j);
        for (; j < n; ++j) add<1>(mine, starts, j);
    }
};

inline void add_linear_batches(const Records& data, const double* given, std::size_t runs, std::int64_t client,
                               const std::int64_t* rows, std::size_t count, double weight, double clip_norm,
                               double* room, double* outs) {
    const RunLanes all(data, given, runs, room);
    for (std::size_t first = 0; first < count; first += RunLanes::block) {
        const RowBlock mine{data, rows + first, count - first < RunLanes::block ? count - first : RunLanes::block};
        for (std::size_t i = 0; i < mine.count; ++i) all.score(mine.row(i), all.scores + i * lanes);
        clipped_slopes<lanes>(data, mine.rows, mine.count, runs, data.factors[client], weight, clip_norm, all.scores);
        all.add(mine);
    }
    const auto n = static_cast<std::size_t>(data.width);
    for (std::size_t r = 0; r < runs; ++r)
        for (std::size_t j = 0; j < n; ++j) outs[r * n + j] += all.sums[j * lanes + r];
}

// Turns the logits of eight records, class by class, into probabilities.
inline void to_probabilities(double* logits, std::size_t outputs) {
    double top[lanes], totals[lanes] = {};
    for (std::size_t k = 0; k < lanes; ++k) top[k] = logits[k];
    for (std::size_t c = 1; c < outputs; ++c)
        for (std::size_t k = 0; k < lanes; ++k)
            top[k] = logits[c * lanes + k] > top[k] ? logits[c * lanes + k] : top[k];
    for (std::size_t c = 0; c < outputs; ++c)
        for (std::size_t k = 0; k < lanes; ++k) {
            logits[c * lanes + k] = numeric::exp_normal(logits[c * lanes + k] - top[k]);
            totals[k] += logits[c * lanes + k];
        }
    for (std::size_t c = 0; c < outputs; ++c)
        for (std::size_t k = 0; k < lanes; ++k) logits[c * lanes + k] /= totals[k];
}

// Eight records at a time; `errors` has room for as many times the number of classes.
inline void add_softmax_batch(const Records& data, const double* w, std::int64_t client, const std::int64_t* rows,
                              std::size_t count, double weight, double clip_norm, double* errors, double* out) {
    const auto outputs = static_cast<std::size_t>(data.outputs), n = static_cast<std::size_t>(data.width);
    const double factor = data.factors[client];
    for (std::size_t c = 0; c < outputs * lanes; ++c) errors[c] = 0.0;
    for (std::size_t first = 0; first < count; first += lanes) {
        const RowBlock mine{data, rows + first, count - first < lanes ? count - first : lanes};
        for (std::size_t c = 0; c < outputs; ++c) mine.scores(w + c * n, errors + c * lanes);
        to_probabilities(errors, outputs);
        double kept[lanes];
        for (std::size_t k = 0; k < mine.count; ++k)
            errors[static_cast<std::size_t>(data.labels[mine.rows[k]]) * lanes + k] -= 1.0;
        for (std::size_t k = 0; k < mine.count; ++k) {
            double square = 0.0;
            for (std::size_t c = 0; c < outputs; ++c) square += errors[c * lanes + k] * errors[c * lanes + k];
            kept[k] = clipping(std::fabs(factor) * std::sqrt(square) * data.norms[mine.rows[k]], clip_norm);
        }
        for (std::size_t c = 0; c < outputs; ++c) {
            double* const mine_of_class = errors + c * lanes;
            for (std::size_t k = 0; k < mine.count; ++k)
                mine_of_class[k] = kept[k] > 0.0 ? mine_of_class[k] * (factor * (weight * kept[k])) : 0.0;
            mine.add(mine_of_class, out + c * n);
        }
    }
}

// Adds the clipped gradients of the first `count` of a silo's rows, numbered in the silo, at the models of some runs: one, or up to eight
// where the loss is linear in the record. `rows` is then numbered among all. The room is for 4096 numbers and 16 times a model's.
inline void add_batch(const Records* data, const double* models, std::int64_t runs, std::int64_t client,
                      std::int64_t* rows, std::int64_t count, double weight, double clip_norm, double* room,
                      double* outs) {
    for (std::int64_t k = 0; k < count; ++k) rows[k] += data->offsets[client];
    const auto size = static_cast<std::size_t>(count);
    if (!linear_in_record(data->kind))
        add_softmax_batch(*data, models, client, rows, size, weight, clip_norm, room, outs);
    else if (runs < RunLanes::fewest)
        for (std::int64_t first = 0; first < runs * data->width; first += data->width)
            add_linear_batch(*data, models + first, client, rows, size, weight, clip_norm, room, outs + first);
    else
        add_linear_batches(*data, models, static_cast<std::size_t>(runs), client, rows, size, weight, clip_norm, room,
                           outs);
}

// A network with one hidden layer of tanh: weights (hidden, width) and their biases, then weights (outputs, hidden) and
// theirs. Without hidden units it is softmax, which has no biases.
struct Layers {
    const double *first, *first_bias, *second, *second_bias;

    Layers(const Records& data, const double* w)
        : first(w), first_bias(w + data.hidden * data.width), second(first_bias + data.hidden),
          second_bias(data.hidden ? second + data.outputs * data.hidden : nullptr) {}
};

// Writes weights @ inputs + bias.
inline void layer(const double* weights, const double* inputs, std::int64_t size, const double* bias, double* out,
                  std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        out[i] = record_dot(weights + i * size, inputs, static_cast<std::size_t>(size)) + (bias ? bias[i] : 0.0);
}

// Writes the hidden units, and the logits after them.
inline void forward(const Records& data, const double* w, const double* x, double* units) {
    const Layers at(data, w);
    layer(at.first, x, data.width, at.first_bias, units, data.hidden);
    for (std::int64_t i = 0; i < data.hidden; ++i) units[i] = std::tanh(units[i]);
    const double* const inputs = data.hidden ? units : x;
    layer(at.second, inputs, data.hidden ? data.hidden : data.width, at.second_bias, units + data.hidden, data.outputs);
}

// Writes the gradient from what `cross_entropy` left in the logits' place.
inline void backward(const Records& data, const double* w, const double* x, const double* units, double* out) {
    const std::int64_t hidden = data.hidden, width = data.width;
    const double *const errors = units + hidden, *const second = Layers(data, w).second;
    const double* const inputs = hidden ? units : x;
    double *const first_bias = out + hidden * width, *const weights = first_bias + hidden;
    const std::int64_t size = hidden ? hidden : width;
    for (std::int64_t j = 0; j < hidden; ++j) first_bias[j] = 0.0;
    for (std::int64_t i = 0; i < data.outputs; ++i) {
        for (std::int64_t j = 0; j < size; ++j) weights[i * size + j] = errors[i] * inputs[j];
        for (std::int64_t j = 0; j < hidden; ++j) first_bias[j] += errors[i] * second[i * hidden + j];
        if (hidden) weights[data.outputs * hidden + i] = errors[i];
    }
    for (std::int64_t j = 0; j < hidden; ++j) {
        first_bias[j] *= 1.0 - units[j] * units[j];
        for (std::int64_t k = 0; k < width; ++k) out[j * width + k] = first_bias[j] * x[k];
    }
}

// Turns logits into probabilities less the label's indicator, the gradient; returns the loss.
inline double cross_entropy(double* logits, std::int64_t outputs, std::int64_t label) {
    double top = logits[0], total = 0.0;
    for (std::int64_t c = 1; c < outputs; ++c) top = logits[c] > top ? logits[c] : top;
    const double own = logits[label] - top;
    for (std::int64_t c = 0; c < outputs; ++c) {
        logits[c] = numeric::exp_normal(logits[c] - top);
        total += logits[c];
    }
    for (std::int64_t c = 0; c < outputs; ++c) logits[c] /= total;
    logits[label] -= 1.0;
    return std::log(total) - own;
}

// Writes the gradient of a record's loss; `units` has room for hidden units and outputs.
inline void record_gradient(const Records* data, const double* w, std::int64_t row, double* units, double* out) {
    const double* const x = data->features + row * data->width;
    const double label = data->labels[row];
    if (linear_in_record(data->kind)) {
        const double factor = loss_slope(*data, record_dot(x, w, static_cast<std::size_t>(data->width)), label);
        for (std::int64_t j = 0; j < data->width; ++j) out[j] = factor * x[j];
    } else if (data->kind == RecordLoss::quadratic) {
        for (std::int64_t j = 0; j < data->width; ++j) out[j] = data->curvature * (w[j] - x[j]);
    } else {
        forward(*data, w, x, units);
        cross_entropy(units + data->hidden, data->outputs, static_cast<std::int64_t>(label));
        backward(*data, w, x, units, out);
    }
}

inline double record_value(const Records* data, const double* w, std::int64_t row, double* units) {
    const double* const x = data->features + row * data->width;
    const double label = data->labels[row];
    if (linear_in_record(data->kind))
        return score_loss(*data, record_dot(x, w, static_cast<std::size_t>(data->width)), label);
    if (data->kind == RecordLoss::quadratic) {
        double total = 0.0;
        for (std::int64_t j = 0; j < data->width; ++j) total += (w[j] - x[j]) * (w[j] - x[j]);
        return 0.5 * data->curvature * total;
    }
    forward(*data, w, x, units);
    return cross_entropy(units + data->hidden, data->outputs, static_cast<std::int64_t>(label));
}

// Returns the class that a model gives a record.
inline std::int64_t record_class(const Records* data, const double* w, std::int64_t row, double* units) {
    const double* const x = data->features + row * data->width;
    if (linear_in_record(data->kind)) return record_dot(x, w, static_cast<std::size_t>(data->width)) > 0.0;
    forward(*data, w, x, units);
    const double* const logits = units + data->hidden;
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < data->outputs; ++c) best = logits[c] > logits[best] ? c : best;
    return best;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::simd
