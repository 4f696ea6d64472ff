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
#include <limits>

#include <hockeystick/numeric/elementary.hpp>
#include <hockeystick/simd/lanes.hpp>

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

inline bool linear_in_record(RecordLoss kind) {
    return kind <= RecordLoss::logistic || kind >= RecordLoss::hinge;
}

// ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)): halves of registers first.
inline double sum_of_lanes(const Lanes& terms) {
    double x[lanes], half[lanes / 2];
    store(terms, x);
    for (std::size_t k = 0; k < lanes / 2; ++k) half[k] = x[k] + x[k + lanes / 2];
    return (half[0] + half[2]) + (half[1] + half[3]);
}

// 1 in the last `rest` lanes.
inline void load_mask(std::size_t rest, Lanes& mask) {
    static constexpr double zeros_and_ones[2 * lanes] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    load(zeros_and_ones + rest, mask);
}

// The inner products of `rows` rows of length n >= 8 with each of `runs` models, which follow one another: a row is read once.
template <int rows, int runs>
inline void dots(const double* const* starts, const double* models, std::size_t n, double* out, std::size_t stride) {
    Lanes sums[runs][rows] = {};
    const std::size_t rest = n % lanes;
    const auto add = [&](std::size_t j, const Lanes* mask) {
        Lanes model[runs];
        for (int r = 0; r < runs; ++r) {
            load(models + static_cast<std::size_t>(r) * n + j, model[r]);
            if (mask) model[r] = model[r] * *mask;
        }
        for (int k = 0; k < rows; ++k) {
            Lanes row;
            load(starts[k] + j, row);
            for (int r = 0; r < runs; ++r) sums[r][k] += row * model[r];
        }
    };
    for (std::size_t j = 0; j + lanes <= n; j += lanes) add(j, nullptr);
    if (rest) {
        Lanes mask;
        load_mask(rest, mask);
        add(n - lanes, &mask);
    }
    for (int r = 0; r < runs; ++r)
        for (int k = 0; k < rows; ++k) out[static_cast<std::size_t>(r) * stride + k] = sum_of_lanes(sums[r][k]);
}

// The inner product in the same order; of any length.
inline double record_dot(const double* a, const double* b, std::size_t n) {
    if (n >= lanes) {
        double out = 0.0;
        dots<1, 1>(&a, b, n, &out, 0);
        return out;
    }
    double total = 0.0;
    for (std::size_t j = 0; j < n; ++j) total += a[j] * b[j];
    return total;
}

// Adds multiples of `rows` rows of length n >= 8, one after another, to each of `runs` sums.
template <int rows, int runs>
inline void add_rows(const double* const* starts, const double* factors, std::size_t stride, std::size_t n, double* outs) {
    const std::size_t rest = n % lanes;
    const auto add = [&](std::size_t j, const Lanes* mask) {
        Lanes sums[runs];
        for (int r = 0; r < runs; ++r) load(outs + static_cast<std::size_t>(r) * n + j, sums[r]);
        for (int k = 0; k < rows; ++k) {
            Lanes row;
            load(starts[k] + j, row);
            if (mask) row = row * *mask;
            for (int r = 0; r < runs; ++r) sums[r] += row * factors[static_cast<std::size_t>(r) * stride + k];
        }
        for (int r = 0; r < runs; ++r) store(sums[r], outs + static_cast<std::size_t>(r) * n + j);
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
inline constexpr int rows_at_once = 8;
#else
inline constexpr int rows_at_once = 4;
#endif

// Scores of rows [0, count) of a block, and the sums of their multiples.
struct RowBlock {
    const Records& data;
    const std::int64_t* rows;
    std::size_t count;

    template <int size, class Body> void each(std::size_t first, const Body& body) const {
        const double* starts[static_cast<std::size_t>(size)];
        for (std::size_t k = 0; k < static_cast<std::size_t>(size); ++k) starts[k] = data.features + rows[first + k] * data.width;
        body(starts, first);
    }
    template <int runs> void scores(const double* models, double* out, std::size_t stride) const {
        const auto n = static_cast<std::size_t>(data.width);
        std::size_t i = 0;
        if (n >= lanes) {
            for (; i + rows_at_once <= count; i += rows_at_once)
                each<rows_at_once>(i, [&](const double* const* starts, std::size_t k) {
                    dots<rows_at_once, runs>(starts, models, n, out + k, stride);
                });
        }
        for (; i < count; ++i)
            for (std::size_t r = 0; r < runs; ++r)
                out[r * stride + i] = record_dot(data.features + rows[i] * data.width, models + r * n, n);
    }
    template <int runs> void add(const double* factors, std::size_t stride, double* outs) const {
        const auto n = static_cast<std::size_t>(data.width);
        std::size_t i = 0;
        if (n >= lanes) {
            for (; i + rows_at_once <= count; i += rows_at_once)
                each<rows_at_once>(i, [&](const double* const* starts, std::size_t k) {
                    add_rows<rows_at_once, runs>(starts, factors + k, stride, n, outs);
                });
        }
        for (; i < count; ++i)
            for (std::size_t r = 0; r < runs; ++r) {
                const double* const x = data.features + rows[i] * data.width;
                for (std::size_t j = 0; j < n; ++j) outs[r * n + j] += factors[r * stride + i] * x[j];
            }
    }
};

inline double called(ScoreFunction function, double score, double label) {
    double result = 0.0;
    void* error = nullptr;
    return function(&result, &error, score, label) == 0 ? result : std::numeric_limits<double>::quiet_NaN();
}

inline double sigmoid(double score) {
    const double e = numeric::exp_normal(score < 0.0 ? score : -score);
    return (score < 0.0 ? e : 1.0) / (1.0 + e);
}

// Returns the derivative with respect to the score; that of hinge and absolute losses is their envelopes'.
inline double loss_slope(const Records& data, double score, double label) {
    const double sign = 2.0 * label - 1.0;
    switch (data.kind) {
        case RecordLoss::linear: return 1.0;
        case RecordLoss::logistic: return sigmoid(score) - label;
        case RecordLoss::hinge: return -sign * std::fmin(std::fmax(data.curvature * (1.0 - sign * score), 0.0), 1.0);
        case RecordLoss::absolute: return std::fmin(std::fmax(data.curvature * (score - label), -1.0), 1.0);
        case RecordLoss::of_score: return called(data.slope, score, label);
        default: return score - label;
    }
}

inline double score_loss(const Records& data, double score, double label) {
    switch (data.kind) {
        case RecordLoss::linear: return score;
        case RecordLoss::logistic:
            return std::fmax(score, 0.0) + std::log1p(std::exp(-std::fabs(score))) - label * score;
        case RecordLoss::hinge: return std::fmax(1.0 - (2.0 * label - 1.0) * score, 0.0);
        case RecordLoss::absolute: return std::fabs(score - label);
        case RecordLoss::of_score: return called(data.value, score, label);
        default: return 0.5 * (score - label) * (score - label);
    }
}

// min(1, clip_norm/norm), the factor with which a vector of this norm is clipped; 0 for a norm that overflows, since a model that
// is not finite would tell of the record.
inline double clipping(double norm, double clip_norm) {
    if (!std::isfinite(norm) && clip_norm < std::numeric_limits<double>::infinity()) return 0.0;
    return norm > clip_norm ? clip_norm / norm : 1.0;
}

// Turns scores into what the records are multiplied by: slopes, clipped and weighted.
inline void clipped_slopes(const Records& data, const std::int64_t* rows, std::size_t count, double factor, double weight,
                           double clip_norm, double* scores) {
    if (data.kind == RecordLoss::logistic) {  // a loop of its own, of which the compiler makes vectors
        for (std::size_t k = 0; k < count; ++k) scores[k] = sigmoid(scores[k]);
    }
    for (std::size_t k = 0; k < count; ++k) {
        const double label = data.labels[rows[k]];
        const double slope = data.kind == RecordLoss::logistic ? scores[k] - label : loss_slope(data, scores[k], label);
        const double kept = clipping(std::fabs(factor * slope) * data.norms[rows[k]], clip_norm);
        scores[k] = kept > 0.0 ? factor * slope * (weight * kept) : 0.0;
    }
}

inline constexpr std::size_t nearest_cache = 2048;  // numbers: half of 32 KiB

template <int runs>
inline void add_linear_batch(const Records& data, const double* models, std::int64_t client, const std::int64_t* rows,
                             std::size_t count, double weight, double clip_norm, double* scores, double* outs) {
    const std::size_t fitting = nearest_cache / static_cast<std::size_t>(data.width) / lanes * lanes;
    const std::size_t block = fitting > lanes ? fitting : lanes;
    for (std::size_t first = 0; first < count; first += block) {
        const std::size_t size = count - first < block ? count - first : block;
        const RowBlock mine{data, rows + first, size};
        mine.scores<runs>(models, scores, block);
        for (std::size_t r = 0; r < runs; ++r)
            clipped_slopes(data, mine.rows, size, data.factors[client], weight, clip_norm, scores + r * block);
        mine.add<runs>(scores, block, outs);
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

// Eight records at a time; `room` is for eight times the number of classes, record by record, and as many class by class.
inline void add_softmax_batch(const Records& data, const double* w, std::int64_t client, const std::int64_t* rows,
                              std::size_t count, double weight, double clip_norm, double* room, double* out) {
    const std::int64_t outputs = data.outputs;
    double* const errors = room + lanes * static_cast<std::size_t>(outputs);
    for (std::size_t first = 0; first < count; first += lanes) {
        const std::size_t size = count - first < lanes ? count - first : lanes;
        const RowBlock mine{data, rows + first, size};
        for (std::int64_t c = 0; c < outputs; ++c)
            mine.scores<1>(w + c * data.width, errors + static_cast<std::size_t>(c) * lanes, 0);
        for (std::size_t k = 0; k < size; ++k) {
            double* const logits = room + k * static_cast<std::size_t>(outputs);
            double square = 0.0;
            for (std::int64_t c = 0; c < outputs; ++c) logits[c] = errors[static_cast<std::size_t>(c) * lanes + k];
            cross_entropy(logits, outputs, static_cast<std::int64_t>(data.labels[mine.rows[k]]));
            for (std::int64_t c = 0; c < outputs; ++c) square += logits[c] * logits[c];
            const double factor = data.factors[client];
            const double kept = clipping(std::fabs(factor) * std::sqrt(square) * data.norms[mine.rows[k]], clip_norm);
            for (std::int64_t c = 0; c < outputs; ++c)
                errors[static_cast<std::size_t>(c) * lanes + k] = kept > 0.0 ? logits[c] * (factor * (weight * kept)) : 0.0;
        }
        for (std::int64_t c = 0; c < outputs; ++c)
            mine.add<1>(errors + static_cast<std::size_t>(c) * lanes, 0, out + c * data.width);
    }
}

// Adds the clipped gradients of the first `count` of a silo's rows, numbered in the silo, at the models of one or two runs, of which
// two take only losses that are linear in the record. `rows` is then numbered among all. The room is for twice as many numbers
// as there are rows, and for 16 times the classes.
inline void add_batch(const Records* data, const double* models, std::int64_t runs, std::int64_t client, std::int64_t* rows,
                      std::int64_t count, double weight, double clip_norm, double* room, double* outs) {
    for (std::int64_t k = 0; k < count; ++k) rows[k] += data->offsets[client];
    const auto size = static_cast<std::size_t>(count);
    if (!linear_in_record(data->kind))
        add_softmax_batch(*data, models, client, rows, size, weight, clip_norm, room, outs);
    else if (runs == 1)
        add_linear_batch<1>(*data, models, client, rows, size, weight, clip_norm, room, outs);
    else
        add_linear_batch<2>(*data, models, client, rows, size, weight, clip_norm, room, outs);
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
