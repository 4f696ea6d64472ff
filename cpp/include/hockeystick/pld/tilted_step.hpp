// One step's grid measure under an exponential tilt c, cut in two; and where a composition of such
// steps ends. Proofs: docs/core/pld.md, What is charged.
//
// A value is v(i) = m(i) e^{c i h - scale}, with a scale such that the small losses sum to 1.
//
// The window, outside which the composition has next to no tilted mass, needs upper bounds of
// R(s) = sum v(i) e^{s i h}. The points are gathered into blocks, which are narrow near loss 0. For
// d within w of a block's centre, e^{sd} <= 1 + s d + (s d)^2/2 e^{|s| w}: certified, and sharp for
// the tilts that matter. With R_b and R_a of the small and the large losses, all losses have
// G = prod (R_b + R_a)^T, and compositions with at least one large loss G = prod
// (R_b + R_a)^T - prod R_b^T. The mass beyond x is at most G(s) e^{-s x} for any s > 0 (Chernoff),
// and likewise below.
#pragma once

#include <cstdint>

#include <hockeystick/pld/discretise.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

// One distinct step of a composition: a view of one of the two measures of its loss.
struct GriddedStep {
    const GridLoss* grid;
    const GridMeasure* measure;
    double count;
};

struct TiltErrors {
    double moved = 0.0;     // how far delta moves with this step's curve, all other steps being fixed
    double relative = 0.0;  // bounds the sum of the values' own errors
    double growth = 0.0;    // of the exact tilted mass over the computed one
};

struct Block {
    double loss, half_width;     // its centre, and how far its points are from that
    double mass, first, second;  // moments about the centre
};

struct TiltedStep {
    std::int64_t first;  // the loss of values[i] is offset + (first + i) h
    double offset;
    std::vector<double> values;
    std::size_t cut;  // values[i] is large from here on
    double count, scale;
    double large_sum = 0.0;
    TiltErrors small, large;
    std::vector<Block> small_blocks, large_blocks;
};

// The points from `begin` to `end`, in blocks as long as a twenty-fourth of their distance from
// loss 0.
inline std::vector<Block> gather(const TiltedStep& step, std::size_t begin, std::size_t end, double h) {
    std::vector<Block> blocks;
    for (std::size_t i = begin; i < end;) {
        const std::int64_t at = step.first + static_cast<std::int64_t>(i);
        const std::int64_t longest = std::max<std::int64_t>(1, (at < 0 ? -at : at) / 24);
        const std::size_t stop = std::min(end, i + static_cast<std::size_t>(longest));
        const double middle = 0.5 * static_cast<double>(i + stop - 1);
        Block block{step.offset + (static_cast<double>(step.first) + middle) * h,
                    0.5 * static_cast<double>(stop - i) * h, 0.0, 0.0, 0.0};
        for (; i < stop; ++i) {
            const double d = (static_cast<double>(i) - middle) * h;
            block.mass += step.values[i];
            block.first += step.values[i] * d;
            block.second += step.values[i] * d * d;
        }
        if (block.mass > 0.0) blocks.push_back(block);
    }
    return blocks;
}

// An upper bound of sum v e^{s l}, apart from rounding.
inline double tilted_sum(const std::vector<Block>& blocks, double s) {
    double sum = 0.0;
    for (const Block& block : blocks) {
        const double square = 0.5 * s * s * block.second * std::exp(std::fabs(s) * block.half_width);
        sum += std::exp(s * block.loss) * (block.mass + s * block.first + square);
    }
    return sum;
}

// e^x m where exp(x) may overflow but the product does not.
inline double scaled(double mass, double x) {
    return x < 700.0 ? mass * std::exp(x) : mass * std::exp(0.5 * x) * std::exp(0.5 * x);
}

// The largest exponent of a value, roughly: a scale at which no value overflows.
inline double largest_exponent(const GriddedStep& part, double h, double c, std::size_t size) {
    double largest = -infinity;
    const std::vector<double>& masses = part.measure->masses;
    for (std::size_t i = 0; i < size; i += 16) {
        double block = 0.0;
        const std::size_t end = std::min(size, i + 16);
        for (std::size_t k = i; k < end; ++k) block = max(block, masses[k]);
        const double loss =
            part.grid->offset +
            static_cast<double>(part.grid->first + static_cast<std::int64_t>(c > 0.0 ? end - 1 : i)) * h;
        if (block > 0.0) largest = max(largest, c * loss + std::log(block));
    }
    return largest;
}

// A step under the tilt c. Losses from cut h on are large; `small_alone` leaves them out. The values
// are empty if there is no mass. Errors next to the cut count on both sides.
inline TiltedStep tilt(const GriddedStep& part, double h, double c, std::int64_t cut, WorkBudget& budget,
                       bool small_alone = false) {
    const std::vector<double>& masses = part.measure->masses;
    budget.spend(tilting_work * static_cast<double>(masses.size()));
    TiltedStep step{part.grid->first, part.grid->offset, {}, 0, part.count, 0.0, 0.0, {}, {}, {}, {}};
    for (step.cut = 0; step.cut < masses.size() && step.first + static_cast<std::int64_t>(step.cut) < cut;) ++step.cut;
    const std::size_t size = small_alone ? step.cut : masses.size();
    step.scale = largest_exponent(part, h, c, size);
    if (step.scale == -infinity) return step;
    step.values.resize(size);
    double sums[2] = {0.0, 0.0}, small_curve = 0.0, large_curve = 0.0;
    const double over_three_cells = std::exp(3.0 * c * h);
    for (std::size_t i = 0; i < std::min(size + 1, masses.size()); ++i) {
        const double loss = step.offset + static_cast<double>(step.first + static_cast<std::int64_t>(i)) * h;
        const double x = c * loss - step.scale;
        const double value = i < size ? scaled(masses[i], x) : 0.0;
        if (i < size) step.values[i] = value;
        sums[i >= step.cut] += value;
        TiltErrors& errors = i >= step.cut ? step.large : step.small;
        const double curve = scaled(part.grid->errors[i], x + c * h);
        if (i <= step.cut) small_curve = max(small_curve, curve);
        if (i + 1 >= step.cut) large_curve = max(large_curve, curve);
        errors.moved += (over_three_cells * cell_error(loss) + 2.0 * unit_roundoff * std::fabs(loss)) * value;
        errors.relative += unit_roundoff * value * (3.0 * std::fabs(c * loss) + 2.0 * std::fabs(step.scale) + 16.0);
    }
    const double range = (c + 1.0) * (1.0 + c * h * static_cast<double>(size));
    step.small.growth = step.small.moved + step.small.relative + 4.0 * range * small_curve;
    step.large.growth = step.large.moved + step.large.relative + 4.0 * range * large_curve;
    step.small.moved += 4.0 * small_curve;
    step.large.moved += 4.0 * large_curve;
    const double unit = step.cut > 0 && sums[0] > 0.0 ? sums[0] : sums[1];
    for (double& value : step.values) value /= unit;
    for (TiltErrors* errors : {&step.small, &step.large})
        errors->moved /= unit, errors->relative /= unit, errors->growth /= unit;
    step.scale += std::log(unit);
    step.large_sum = sums[1] / unit;
    step.small_blocks = gather(step, 0, step.cut, h);
    step.large_blocks = gather(step, step.cut, step.values.size(), h);
    return step;
}

inline double log_expm1(double x) { return x > 30.0 ? x : std::log(std::expm1(x)); }

// An upper bound of log G(s); `large_losses_split_off` asks for at least one large loss.
inline double log_sum(const std::vector<TiltedStep>& steps, double s, bool large_losses_split_off) {
    double small = 0.0, ratio = 0.0, total = 0.0;
    for (const TiltedStep& step : steps) {
        const double b = tilted_sum(step.small_blocks, s), a = tilted_sum(step.large_blocks, s);
        if (large_losses_split_off) small += step.count * std::log(b), ratio += step.count * std::log1p(a / b);
        else small += step.count * std::log(a + b);
        total += step.count;
    }
    const double value = large_losses_split_off ? small + log_expm1(ratio) : small;
    return value + 1e-9 * (1.0 + std::fabs(value)) + exponent_error * total;
}

struct Window {
    double low, high;  // losses outside have tilted mass at most `outside_mass` G(0) each
};

// Standard deviation of the composition, roughly.
inline double spread(const std::vector<TiltedStep>& steps) {
    double variance = 0.0;
    for (const TiltedStep& step : steps) {
        double mass = 0.0, first = 0.0, second = 0.0;
        for (const std::vector<Block>* blocks : {&step.small_blocks, &step.large_blocks})
            for (const Block& block : *blocks) {
                mass += block.mass;
                first += block.mass * block.loss + block.first;
                second += block.mass * block.loss * block.loss + 2.0 * block.loss * block.first + block.second;
            }
        variance += step.count * max(second / mass - first / mass * (first / mass), 0.0);
    }
    return std::sqrt(variance);
}

// The window by Chernoff bounds, the best of those at tilts 1.7^k/64 of the reciprocal spread.
inline Window find_window(const std::vector<TiltedStep>& steps, double least, bool large_losses_split_off,
                          double outside_mass, WorkBudget& budget) {
    const double width = max(spread(steps), least);
    const double slack = -log_sum(steps, 0.0, large_losses_split_off) - std::log(outside_mass);
    Window window{-infinity, infinity};
    for (int side = -1; side <= 1; side += 2) {
        int worse = 0;
        for (double s = 1.0 / (64.0 * width); s < 1e6 / width && worse < 3; s *= 1.7) {
            budget.spend(0.0);
            const double end = (log_sum(steps, side * s, large_losses_split_off) + slack) / s;
            double& best = side > 0 ? window.high : window.low;
            worse = !std::isfinite(best) || side * side * end < side * best ? 0 : worse + 1;
            if (std::isfinite(end)) best = side > 0 ? min(best, end) : max(best, -end);
        }
    }
    return window;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
