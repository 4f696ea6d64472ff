// The T-fold convolution of grid measures under an exponential tilt, with a certified error for
// every delta read off it. Proofs and all charges: docs/core/pld.md, Composing under a tilt.
//
// With m_j(i) the mass of step j at loss i h, M_j = sum_i m_j(i) e^{c i h} and K = sum_j T_j log
// M_j,
//
//   delta(eps) - delta_inf = e^{K - c eps} sum_{l > eps} w(l) x(l),
//   w(l) = (1 - e^{eps-l}) e^{-c(l-eps)} <= kappa(c),
//
// where x is the convolution of the probability vectors m_j(i) e^{c i h}/M_j. So errors of x are
// relative to the Chernoff bound kappa(c) e^{K - c eps}, which exceeds delta by a factor of tens at
// the best tilt, however small delta is.
//
// Where one large loss rules (pld/grid_plan.hpp) each step is cut, m = b + a with a the losses from
// the cut on, and m^{*T} is b^{*T} plus the rest. The rest is what x is then, in units of prod
// M_b^T: its transform is X^T - B^T, without cancellation (pld/spectrum_power.hpp), and its mass is
// g = prod (1 + M_a/M_b)^T - 1. The first part adds its Chernoff bound, with a tilt c' of its own,
// to the upper end, and nothing to the lower one. Without a cut all losses count as small.
//
// Cost: a transform of n points for every distinct step (two with a cut) and one back; memory below
// 50 n bytes.
//
// From top to bottom: one step under the tilt and the window of the composition, the convolution of
// short steps, the composition, and what is read off it.
#pragma once

#include <cstdint>
#include <map>

#include <hockeystick/divergence/chernoff.hpp>
#include <hockeystick/numeric/root.hpp>
#include <hockeystick/pld/discretise.hpp>
#include <hockeystick/pld/grid_plan.hpp>
#include <hockeystick/pld/spectrum_power.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

using namespace divergence;
using namespace numeric;

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

// A step under the tilt c. Losses from cut h on are large; `small_alone` leaves them out. The
// values are empty if there is no mass. Errors next to the cut count on both sides.
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

// Many short steps as a few long ones: steps that occur once are convolved with each other before
// they meet the full window, in transforms no longer than their own supports.
//
// Error. ||x * y||_2 <= ||x||_1 ||y||_2, and no vector here has a 1-norm above 1, but for its
// errors. So the error of a product is at most the sum of its factors' errors and its own: by
// numeric/fft.hpp f (||x|| + ||y|| + ||x * y||), and sqrt 5 u of the product of the spectra.
// Cost: a transform of all points for every halving of the number of steps.
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

struct CertifiedDelta {
    double lower, upper;
    double rounding;  // how far rounding and wrap-around alone may move log delta
};

inline constexpr std::int64_t no_cut = std::numeric_limits<std::int64_t>::max();

// The steps, tilted, and the window that holds them.
struct TiltedSteps {
    std::vector<TiltedStep> steps;
    double h, c;
    bool large_losses_split_off;
    Window window;
    double outside_mass;                             // tilted mass outside the window, on either side, in units of G(0)
    double lowest_eps;                               // no delta is asked for below this
    double log_small = -infinity, small_tilt = 1.0;  // prod M_b(c')^T, c'
    double small_moved = 0.0;                        // by how much rounding moves it beside kappa(c')
    double log_infinite = 0.0;                       // of the probability that no loss is infinite
    double infinite_error = 0.0;                     // relative, of the probability that one is
    double offset = 0.0;                             // of the composition's grid

    bool empty() const { return !(window.high > window.low); }
    // The length of a circle on which losses above its top come back below `lowest_eps`, and losses
    // below the window above `lowest_eps` + 30/c.
    double points() const { return max(window.high - lowest_eps, lowest_eps + 30.0 / c - window.low) / h + 8.0; }
};

inline TiltedSteps tilt_steps(const std::vector<GriddedStep>& parts, double h, const Plan& plan, std::int64_t cut,
                              WorkBudget& budget) {
    const double c = plan.tilt;
    TiltedSteps result{{}, h, c, cut != no_cut, {0.0, 0.0}, plan.outside_mass, plan.lowest_eps};
    for (const GriddedStep& part : parts) {
        result.steps.push_back(tilt(part, h, c, cut, budget));
        if (result.steps.back().values.empty()) return result;
        const bool no_small = result.steps.back().small_blocks.empty();  // then the cut is of no use
        if (result.large_losses_split_off && no_small) return tilt_steps(parts, h, plan, no_cut, budget);
        result.offset += part.count * part.grid->offset;
        result.log_infinite += part.count * std::log1p(-part.measure->infinite);
        result.infinite_error = max(result.infinite_error, part.grid->infinite_error);
    }
    result.infinite_error = infinite_error_of(result.infinite_error, parts.size());
    result.window = find_window(result.steps, 0.1 / c, result.large_losses_split_off, plan.outside_mass, budget);
    if (!result.large_losses_split_off) return result;
    // Where no sum of small losses reaches eps the best tilt is infinite. Any tilt is sound, and
    // the errors of a cell grow like e^{3 c' h}.
    result.log_small = 0.0, result.small_tilt = min(plan.small_tilt, 1.0 / h);
    for (const GriddedStep& part : parts) {
        const TiltedStep small = tilt(part, h, result.small_tilt, cut, budget, true);
        const double rounding = small.small.growth + exponent_error * std::fabs(small.scale);
        result.log_small += part.count * (small.scale + rounding);
        result.small_moved += part.count * small.small.moved;
    }
    return result;
}

class TiltedComposition {
  public:
    // n is a power of two, at least steps.points(). The steps' values are used up.
    TiltedComposition(TiltedSteps& steps, std::size_t n, WorkBudget& budget)
        : h_(steps.h), c_(steps.c), kappa_(std::exp(log_kappa(steps.c))),
          large_losses_split_off_(steps.large_losses_split_off),
          first_(static_cast<std::int64_t>(std::floor((steps.window.low - steps.offset) / steps.h)) - 1),
          lowest_clean_eps_(steps.window.high + 2.0 * steps.h - static_cast<double>(n) * steps.h),
          offset_(steps.offset), log_infinite_(steps.log_infinite), infinite_error_(steps.infinite_error),
          log_small_(steps.log_small + std::log(std::exp(log_kappa(steps.small_tilt)) + steps.small_moved)),
          small_tilt_(steps.small_tilt) {
        charge_masses(steps);
        const RealTransform transform(n);
        if (large_losses_split_off_) multiply_pairs(steps, transform, budget);
        else multiply(steps, transform, budget);
        budget.spend(transform_work(n) + reading_work * static_cast<double>(n));
        transform.backward(x_.data());
        norm_error_ += 2.0 * fft_relative_error(n) * (norm(x_) + norm_error_);
        sum_downwards();
        const double c = c_;
        total_error_ =
            mass_error_ + norm_error_ * std::sqrt(kappa_ * kappa_ + 1.0 / (2.0 * c * (c + 1.0) * (2.0 * c + 1.0) * h_));
        summing_error_ = (8.0 * static_cast<double>(n) + 1000.0) * unit_roundoff;
    }

    // delta(eps) of the grid measures, rounding included.
    CertifiedDelta delta(double eps) const {
        if (eps < lowest_clean_eps_)
            return {min(-std::expm1(log_infinite_) * (1.0 - infinite_error_), 1.0), 1.0, infinity};
        const double sum = weighted_sum(eps);
        const double top = static_cast<double>(first_ + static_cast<std::int64_t>(x_.size()) - 2) * h_ + offset_;
        const double error = total_error_ + (computed_mass_ + norm_error_) * std::exp(min(-c_ * (top - eps), 0.0)) +
                             summing_error_ * (std::fabs(sum) + 2.0 * total_error_) + 1e-300;
        const double log_unit = log_total_ - c_ * eps;
        const double blur = 1.0 + 8.0 * unit_roundoff *
                                      (std::fabs(log_total_) + c_ * (std::fabs(eps) + 2.0 * std::fabs(offset_)) + 1.0);
        const double unit = std::exp(log_unit) * blur;
        const double infinite = -std::expm1(log_infinite_);
        const double below = unit < infinity && sum > error ? unit * (sum - error) / (blur * blur) : 0.0;
        const double small = std::exp(min(log_small_ - small_tilt_ * eps, 1.0)) * (1.0 + 1e-9);
        const double above = unit * max(sum + error, error) + (large_losses_split_off_ ? small : 0.0);
        const double share = sum > 0.0 ? (error + (large_losses_split_off_ ? small / unit : 0.0)) / sum : infinity;
        return {min(infinite * (1.0 - infinite_error_) + below, 1.0),
                min(infinite * (1.0 + infinite_error_) + above + std::numeric_limits<double>::min(), 1.0), share};
    }

  private:
    std::size_t index(std::int64_t k) const {
        return static_cast<std::size_t>(k) & (x_.size() - 1);  // modulo a power of two, negative k too
    }

    // The errors that do not depend on the transforms: wrap-around, scaling, and those of the
    // values.
    void charge_masses(const TiltedSteps& steps) {
        double log_all = 0.0, all_errors = 0.0, size = 0.0;
        for (const TiltedStep& step : steps.steps) {
            log_all += step.count * std::log1p(step.large_sum);
            all_errors += step.count * (step.small.growth + step.large.growth);
            log_total_ += step.count * step.scale;
            size += step.count * std::fabs(step.scale);
        }
        uncut_mass_ = std::exp(log_all);
        computed_mass_ = large_losses_split_off_ ? std::expm1(log_all) : uncut_mass_;
        double errors = 0.0;
        for (const TiltedStep& step : steps.steps)
            errors += step.count * ((step.large.moved + kappa_ * step.large.relative) * uncut_mass_ +
                                    (step.small.moved + kappa_ * step.small.relative) * computed_mass_);
        const double scaling = 8.0 * unit_roundoff * (size + static_cast<double>(steps.steps.size()) + 1.0);
        const double outside_mass =
            2.0 * steps.outside_mass * std::exp(log_sum(steps.steps, 0.0, large_losses_split_off_));
        mass_error_ = kappa_ * (outside_mass + scaling * computed_mass_) + errors * std::exp(all_errors);
    }

    void lay_on_circle(std::vector<double>& x, std::size_t n, std::int64_t first, const double* values,
                       std::size_t count) {
        x.assign(n, 0.0);
        for (std::size_t i = 0; i < count; ++i)
            x[static_cast<std::size_t>(first + static_cast<std::int64_t>(i)) & (n - 1)] += values[i];
    }

    void multiply(TiltedSteps& steps, const RealTransform& transform, WorkBudget& budget) {
        const std::size_t n = transform.length();
        std::vector<SparseFactor> factors;
        double total = 0.0;
        for (TiltedStep& step : steps.steps) {
            factors.push_back({step.first, std::move(step.values), step.count});
            total += step.count;
        }
        shorten(factors, n / 4, budget);
        const double f = fft_relative_error(n);
        std::vector<double> product, spectrum;
        double sup = 0.0;
        for (const SparseFactor& factor : factors) {
            budget.spend(transform_work(n));
            lay_on_circle(spectrum, n, factor.first, factor.values.data(), factor.values.size());
            const double error = f * norm(factor.values) + factor.norm_error;
            norm_error_ += factor.count * error;
            sup += factor.count * error * std::sqrt(static_cast<double>(n));
            transform.forward(spectrum.data());
            multiply_power(product, spectrum, static_cast<std::uint64_t>(factor.count), budget);
        }
        norm_error_ *= std::exp(sup);
        x_.swap(product);
        // x_ is still the spectrum, of which one half is stored: twice its norm is more than
        // enough.
        const double size = 2.0 * norm(x_) / std::sqrt(static_cast<double>(n)) + norm_error_;
        norm_error_ += 2.3 * unit_roundoff * total * size;  // sqrt 5 u each
    }

    void multiply_pairs(TiltedSteps& steps, const RealTransform& transform, WorkBudget& budget) {
        const std::size_t n = transform.length();
        const double f = fft_relative_error(n);
        std::vector<double> small, a, b;
        double sup = 0.0, total = 0.0;
        for (const TiltedStep& step : steps.steps) {
            budget.spend(2.0 * transform_work(n));
            const std::size_t large = step.values.size() - step.cut;
            lay_on_circle(b, n, step.first, step.values.data(), step.cut);
            lay_on_circle(a, n, step.first + static_cast<std::int64_t>(step.cut), step.values.data() + step.cut, large);
            const double b_error = f * norm(b), a_error = f * norm(a);
            norm_error_ += step.count * (a_error * uncut_mass_ + b_error * computed_mass_);
            sup += step.count * (a_error + b_error) * std::sqrt(static_cast<double>(n));
            total += step.count;
            transform.forward(a.data());
            transform.forward(b.data());
            multiply_power(x_, small, a, b, static_cast<std::uint64_t>(step.count), budget);
        }
        norm_error_ = (norm_error_ + 16.0 * unit_roundoff * total * computed_mass_) * std::exp(sup);
    }

    // Replaces x by the sums D_k of docs/core/pld.md (Reading delta) from the top down, and keeps B
    // at the first point.
    void sum_downwards() {
        const double tilt = std::exp(-c_ * h_), up = -std::expm1(-h_), both = std::exp(-(c_ + 1.0) * h_);
        double d = 0.0, b = 0.0;
        for (std::int64_t k = first_ + static_cast<std::int64_t>(x_.size()) - 1; k >= first_; --k) {
            d = tilt * (d + up * b);  // b is still that of k + 1
            b = both * b + x_[index(k)];
            x_[index(k)] = d;
        }
        first_sum_ = b;
    }

    double weighted_sum(double at) const {
        const double eps = at - offset_;
        const double position = std::floor(eps / h_);
        if (position < static_cast<double>(first_)) {
            const double gap = static_cast<double>(first_) * h_ - eps;
            return std::exp(-c_ * gap) * (x_[index(first_)] - std::expm1(-gap) * first_sum_);
        }
        const auto end = static_cast<double>(first_) + static_cast<double>(x_.size());
        if (position + 1.0 >= end) return 0.0;
        const auto k = static_cast<std::int64_t>(position);
        const double past = max(eps - position * h_, 0.0);
        const double share = min(std::expm1(past) / std::expm1(h_), 1.0);
        return (1.0 - share) * std::exp(c_ * past) * x_[index(k)] +
               share * std::exp(-c_ * (h_ - past)) * x_[index(k + 1)];
    }

    double h_, c_, kappa_;
    bool large_losses_split_off_;
    std::int64_t first_;
    double lowest_clean_eps_;  // losses that wrap around downwards come back below this
    double offset_, log_infinite_, infinite_error_, log_small_, small_tilt_;
    std::vector<double> x_;
    double log_total_ = 0.0, uncut_mass_ = 1.0, computed_mass_ = 1.0, mass_error_ = 0.0, norm_error_ = 0.0;
    double total_error_ = 0.0, summing_error_ = 0.0, first_sum_ = 0.0;
};

// Answers read off a tilted composition: delta at an epsilon, or the epsilon of a delta, from above
// or from below.
//
// The upper end of delta falls in eps, so its epsilon is found by bisection. The lower end falls
// only near the epsilon that the tilt was made for, because far below it the error is large in
// units of the tilt. So the lower end of epsilon is sought downwards from the upper one: any point
// at which the lower end of delta exceeds the given delta is a lower end of epsilon.

// `highest` is the largest loss of the composition.
inline double read_upper(const TiltedComposition& composition, const Question& question, const Plan& plan,
                         double highest) {
    if (!question.for_epsilon) return composition.delta(question.value).upper;
    const auto above = [&](double eps) { return composition.delta(eps).upper > question.value; };
    if (!above(0.0)) return 0.0;
    double high = max(plan.eps, 1e-9);
    for (int k = 0; k < 60 && above(high); ++k) high *= 1.5;
    const double bound = max(highest, 0.0) * (1.0 + exponent_error);
    return above(high) ? bound : min(bisect(above, 0.0, high).upper, bound);
}

inline double read_lower(const TiltedComposition& composition, const Question& question, double upper) {
    if (!question.for_epsilon) return composition.delta(question.value).lower;
    const auto above = [&](double eps) { return composition.delta(eps).lower > question.value; };
    if (!(upper > 0.0 && upper < infinity)) return 0.0;
    double gap = 1e-9 * upper;
    while (gap < upper && !above(upper - gap)) gap *= 1.4;
    if (gap < upper) return bisect(above, upper - gap, upper).lower;
    return above(0.0) ? bisect(above, 0.0, upper).lower : 0.0;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
