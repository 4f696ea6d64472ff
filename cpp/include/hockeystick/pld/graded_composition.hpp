// Brackets of delta(eps) and epsilon(delta) on a graded grid of losses, whose cells widen with the
// loss: for steps whose losses have many scales, such as rare samples.
//
// A cell keeps its masses under P and under Q ("connect the dots", pld/discretise.hpp) for the
// upper end, and merges into one outcome of the same masses for the lower one. Sums of losses are
// formed pair by pair, and fall into cells again, which are treated alike: two measures of T steps
// take about log T such products. All terms are positive, so that a delta keeps its relative
// accuracy however small it is. docs/core/pld.md, "A graded grid", has the proof.
//
// The cells are unions of fine ones, whose ends are the numbers of few binary digits: the fine cell
// of a loss is read off its bits, without a search.
//
// Cost: about 8 ns for each of up to n^2/2 pairs of a product, with n cells, 100 to 2000.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include <hockeystick/loss/one_step.hpp>
#include <hockeystick/numeric/work_budget.hpp>
#include <hockeystick/pld/discretise.hpp>
#include <hockeystick/pld/grid_plan.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

namespace sound {
inline constexpr double cut = 16.0 * unit_roundoff;  // of a loss at which masses are cut, and of its rounding
inline constexpr double underflow = 1e-300;          // more than the products that are 0 in doubles
}  // namespace sound

namespace tune {
inline constexpr double first_width = 0.1;                    // of a cell, relative to its loss
inline constexpr double scale_near_zero = 0.5;                // of losses, in units of epsilon/sqrt T
inline constexpr double wide_from = 4.0, widening = 0.3;      // cells widen faster from so many epsilon on
inline constexpr double negligible = 1e-7, much_lost = 1e-3;  // of the mass, beyond the ends
inline constexpr double negligible_in_a_row = 1e-8;           // of delta, over the steps and the cells
inline constexpr double most_error = 0.01, most_epsilon = 600.0, least_epsilon = 1e-250, least_log_delta = -600.0;
inline constexpr double most_graded_work = 2.5e8;  // half a second
inline constexpr int most_rounds = 8;
}  // namespace tune

// A grid of cells [ends[k], ends[k + 1]), and which of them a loss is in.
class GradedGrid {
  public:
    // Cells near the loss l are about `width` (scale + |l|) wide, up to `usual`.
    GradedGrid(double low, double high, double scale, double usual, double width) {
        unit_ = std::exp2(std::floor(std::log2(scale)));
        bits_ = std::min(std::max(static_cast<int>(std::ceil(2.0 - std::log2(width))), 2), 12);
        base_ = fine(0.0);
        below_ = fine(-low) - base_ + 1, above_ = fine(high) - base_ + 1;
        double wanted = 0.0;
        for (std::int64_t t = -below_; t < above_; ++t) {
            const double end = fine_end(t);
            if (ends.empty() || end - ends.back() >= wanted * (1.0 - 1e-9) || end == 0.0) {
                ends.push_back(end);
                const double size = std::fabs(end);
                wanted = width * (scale + size) * (end < 0.0 ? 1.0 + 2.0 * min(size / usual, 1.0) : 1.0);
                if (end > usual) wanted += tune::widening * (end - usual);
            }
            cell_of_.push_back(static_cast<std::uint32_t>(ends.size() - 1));
        }
        ends.push_back(fine_end(above_));
        for (std::size_t k = 0; k + 1 < ends.size(); ++k) per_fall.push_back(-1.0 / std::expm1(ends[k] - ends[k + 1]));
    }

    // The cell of a loss between the ends, or a neighbour whose end is off by at most `error`.
    std::size_t cell_of(double loss) const {
        const std::int64_t t = fine(std::fabs(loss)) - base_;
        const std::int64_t at = loss < 0.0 ? below_ - 1 - t : below_ + t;  // at an end it may be off by one
        return cell_of_[static_cast<std::size_t>(std::min(std::max(at, std::int64_t{0}), below_ + above_ - 1))];
    }
    // The rounding of a sum of two losses, and of cell_of.
    double error(double loss) const { return 8.0 * unit_roundoff * (std::fabs(loss) + unit_); }
    double low() const { return ends.front(); }
    double high() const { return ends.back(); }
    std::size_t cells() const { return per_fall.size(); }

    std::vector<double> ends, per_fall;  // 1/(1 - e^-width) of each cell

  private:
    // unit + size has `bits_` binary digits after the first at the ends of fine cells.
    std::int64_t fine(double size) const {
        const double sum = unit_ + size;
        std::int64_t word;
        std::memcpy(&word, &sum, sizeof word);
        return word >> (52 - bits_);
    }
    double fine_end(std::int64_t t) const {
        const std::int64_t word = (base_ + (t < 0 ? -t : t)) << (52 - bits_);
        double sum;
        std::memcpy(&sum, &word, sizeof sum);
        return t < 0 ? unit_ - sum : sum - unit_;
    }

    double unit_;
    int bits_;
    std::int64_t base_, below_, above_;
    std::vector<std::uint32_t> cell_of_;
};

// Masses of P at losses that rise, and at infinity.
struct GradedMeasure {
    std::vector<double> losses, masses;
    double infinite = 0.0;
    double error = 0.0;  // relative, of all masses

    double delta(double eps) const {
        double sum = infinite;
        for (std::size_t k = masses.size(); k-- > 0 && losses[k] > eps;)
            sum += masses[k] * -std::expm1(eps - losses[k]);
        return sum;
    }
    double total() const { return std::accumulate(masses.begin(), masses.end(), infinite); }
};

// 1 - e^-d for d >= 0, at least, if `raised`, or at most.
template <bool raised> double fall(double d) {
    if (d >= 0.25) return -std::expm1(-d) * (raised ? up : down);
    return d * (1.0 - d * (0.5 - d * (1.0 / 6.0 - d * (1.0 / 24.0 - (raised ? d / 120.0 : 0.0)))));
}

// Sums of independent losses, put into cells.
template <bool raised> class GradedSums {
  public:
    // Less mass than `least` may go to infinity, or be left out.
    GradedSums(const GradedGrid& grid, double least) : grid_(grid), least_(least) {
        for (auto& each : masses_) each.assign(grid.ends.size(), 0.0);
        for (auto& each : falls_) each.assign(raised ? 0 : grid.ends.size(), 0.0);
    }

    GradedMeasure product(const GradedMeasure& a, const GradedMeasure& b) {
        const bool square = &a == &b;
        const std::size_t n = b.masses.size();
        std::vector<double> from(n + 1, 0.0);  // the mass of b from each loss on
        for (std::size_t j = n; j-- > 0;) from[j] = from[j + 1] + b.masses[j];
        GradedMeasure sum;
        sum.infinite = a.infinite * from[0] + a.total() * b.infinite + (raised ? sound::underflow : 0.0);
        for (std::size_t i = 0; i < a.masses.size(); ++i) {
            const std::size_t begin = square ? i + 1 : 0;
            const double loss = a.losses[i], mass = square ? 2.0 * a.masses[i] : a.masses[i];
            if (mass < least_) {
                if (raised) sum.infinite += mass * from[square ? i : 0];
                continue;
            }
            const auto first_from = [&](double end) {
                const auto below = [&](double other) { return moved(loss + other) < end; };
                const auto start = b.losses.begin() + static_cast<std::ptrdiff_t>(begin);
                return static_cast<std::size_t>(std::partition_point(start, b.losses.end(), below) - b.losses.begin());
            };
            const std::size_t low = first_from(grid_.low()), end = first_from(grid_.high());
            const auto rare = [&](double beyond) { return mass * beyond >= least_; };
            const auto cut = std::partition_point(from.begin() + static_cast<std::ptrdiff_t>(low),
                                                  from.begin() + static_cast<std::ptrdiff_t>(std::max(low, end)), rare);
            const auto high = static_cast<std::size_t>(cut - from.begin());
            if (raised) masses_[0][0] += mass * (from[begin] - from[low]);
            if (raised) sum.infinite += mass * from[high];
            else masses_[0].back() += mass * from[end];
            for (std::size_t j = low; j < high; ++j) add(moved(loss + b.losses[j]), mass * b.masses[j], j % 2);
            if (square) add_anywhere(moved(loss + loss), a.masses[i] * a.masses[i], sum.infinite);
        }
        finish(sum);
        sum.error = a.error + b.error + count_error();
        return sum;
    }

  private:
    double moved(double loss) const { return raised ? loss + grid_.error(loss) : loss - grid_.error(loss); }

    void add(double loss, double mass, std::size_t lane) {
        const std::size_t k = grid_.cell_of(loss);
        const double part = fall<raised>(max(loss - grid_.ends[k], 0.0));
        if (raised) {
            const double far = mass * min(part * grid_.per_fall[k], 1.0);
            masses_[lane][k + 1] += far, masses_[lane][k] += mass - far;
        } else {
            masses_[lane][k] += mass, falls_[lane][k] += mass * part;
        }
    }
    void add_anywhere(double loss, double mass, double& infinite) {
        if (loss >= grid_.high()) (raised ? infinite : masses_[0].back()) += mass;
        else if (loss >= grid_.low()) add(loss, mass, 0);
        else if (raised) masses_[0][0] += mass;
    }
    // Lowered outcomes lie at the mean of e^-loss of their cells.
    void finish(GradedMeasure& sum) const {
        sum.losses = grid_.ends, sum.masses = masses_[0];
        for (std::size_t k = 0; k < sum.masses.size(); ++k) sum.masses[k] += masses_[1][k];
        if (raised) return;
        for (std::size_t k = 0; k < grid_.cells(); ++k) {
            if (sum.masses[k] == 0.0) continue;
            const double fallen = (falls_[0][k] + falls_[1][k]) / sum.masses[k] * (1.0 - 2.0 * count_error());
            const double middle = grid_.ends[k] - std::log1p(-fallen) * down;
            sum.losses[k] = min(max(middle - grid_.error(middle), grid_.ends[k]), grid_.ends[k + 1]);
        }
    }
    // The rounding of a sum of at most so many terms.
    double count_error() const {
        const auto count = static_cast<double>(grid_.ends.size());
        return (count * count + 64.0) * unit_roundoff;
    }

    const GradedGrid& grid_;
    double least_;
    std::vector<double> masses_[2], falls_[2];  // two lanes, so that additions overlap
};

// Both measures of one step, or of several.
struct GradedStep {
    GradedMeasure raised, lowered;
};

inline GradedStep put_on(const GradedGrid& grid, const PrivacyLoss& loss) {
    const auto error_of = [&](double mass) { return tail_error(mass, infinity, loss.scale()); };
    const auto between = [&](double below_left, double above_left, double below_right, double above_right) {
        const bool by_upper = above_left <= below_right;
        const double far = by_upper ? above_left : below_right, near = by_upper ? above_right : below_left;
        const double mass = far - near, error = error_of(far) + error_of(near);
        return Interval{max(mass - error, 0.0), max(mass, 0.0) + error};
    };
    const double moved = loss.errors().loss;
    const auto off_at = [moved](double at) { return sound::cut * (1.0 + std::fabs(at)) + moved; };
    const std::size_t n = grid.ends.size();
    const GradedMeasure empty{grid.ends, std::vector<double>(n), 0.0, sixteen_roundings};
    GradedStep step{empty, empty};
    LossMasses left = loss.masses(grid.low());
    step.raised.masses[0] = left.p_below + error_of(left.p_below);
    for (std::size_t k = 0; k < n; ++k) {
        const double at = grid.ends[k], off = off_at(at);
        step.raised.losses[k] += off, step.lowered.losses[k] -= off;
        if (k + 1 == n) break;
        const LossMasses right = loss.masses(grid.ends[k + 1]);
        const Interval p = between(left.p_below, left.p_above, right.p_below, right.p_above);
        const Interval q = between(left.q_below, left.q_above, right.q_below, right.q_above);
        const bool known = at < 690.0 && q.lower > least_known_mass;
        const double mean = known ? q.lower / p.upper * std::exp(at) : 0.0;  // of e^-loss, over that at the low end
        const double share = min(max((1.0 - mean + 4.0 * off) * grid.per_fall[k] * up, 0.0), 1.0);
        step.raised.masses[k] += p.upper * (1.0 - share), step.raised.masses[k + 1] += p.upper * share;
        step.lowered.masses[k] = p.lower;
        const double middle = p.lower > 0.0 ? std::log(p.lower / q.upper) : -infinity;
        const double next = grid.ends[k + 1];  // losses rise, rounding included: products look them up
        step.lowered.losses[k] = min(max(middle - off_at(middle), step.lowered.losses[k]), next - off_at(next));
        left = right;
    }
    const double infinite = loss.p_infinite(), infinite_error = 2.0 * unit_roundoff * loss.errors().infinite;
    step.raised.infinite = left.p_above + error_of(left.p_above) + infinite * (1.0 + infinite_error);
    step.lowered.infinite = infinite * (1.0 - infinite_error);
    step.lowered.masses[n - 1] = max(left.p_above - error_of(left.p_above), 0.0);
    return step;
}

// One direction of a composition, on ever finer graded grids.
class GradedComposition {
  public:
    GradedComposition(std::vector<Step> steps, const std::atomic<bool>* stop)
        : steps_(std::move(steps)), budget_(stop) {
        for (const Step& step : steps_) count_ += step.count;
    }

    // A bracket within `known`, which holds the answer.
    Interval bracket(const Question& question, Interval known, double tolerance) {
        double eps = question.value, log_delta = std::log(question.value);
        if (question.for_epsilon) {
            eps = known.lower;
            for (const Step& step : steps_)  // by one large loss
                eps = max(eps, OneStep(step.loss).epsilon(question.value / step.count).lower);
            if (!(eps > 0.0)) eps = 0.25 * known.upper;
        } else {
            log_delta = std::log(min(mass_above(eps), known.upper));
        }
        if (!(log_delta > tune::least_log_delta && eps > tune::least_epsilon && eps < tune::most_epsilon)) return known;
        double width = tune::first_width, reach = 2.0, before = infinity;
        for (int round = 0; round < tune::most_rounds; ++round) {
            const GradedGrid grid = grid_for(eps, log_delta, width, reach);
            if (budget_.spent() + work_on(grid) > tune::most_graded_work) break;
            least_ = tune::negligible_in_a_row * std::exp(log_delta) / (count_ * static_cast<double>(grid.cells()));
            const GradedStep all = composed(grid);
            if (!(all.raised.error < tune::most_error)) break;
            const Interval found = question.for_epsilon ? epsilon_of(all, question.value) : delta_of(all, eps);
            known = {max(known.lower, found.lower), min(known.upper, found.upper)};
            const double left = known.upper - known.lower;
            if (left <= tolerance * known.upper) break;
            const bool lost = all.lowered.total() < 1.0 - tune::much_lost;
            const double seen = question.for_epsilon ? min(found.upper, 16.0 * eps) : eps;  // a far one is too coarse
            const bool moved = seen > 1.5 * eps || seen < 0.5 * eps;
            if (lost) reach *= 4.0;
            if (moved) eps = seen;
            if (!lost && !moved && left > 0.9 * before) break;
            if (!lost && !moved) width *= min(max(0.8 * std::sqrt(tolerance * known.upper / left), 0.2), 0.7);
            before = lost || moved ? infinity : left;
        }
        return known;
    }

    double work() const { return budget_.spent(); }

  private:
    // The mean number of losses above one, or below.
    double mass_above(double loss) const {
        double sum = 0.0;
        for (const Step& step : steps_) sum += step.count * step.loss->masses(loss).p_above;
        return sum;
    }
    double mass_below(double loss) const {
        double sum = 0.0;
        for (const Step& step : steps_) sum += step.count * step.loss->masses(loss).p_below;
        return sum;
    }

    GradedGrid grid_for(double eps, double log_delta, double width, double reach) const {
        const double usual = tune::wide_from * eps, rare = tune::negligible * std::exp(log_delta);
        double low = reach * eps, high = usual;
        while (low < tune::most_epsilon && mass_below(-low) > tune::negligible) low *= 1.25;
        while (high < tune::most_epsilon && mass_above(high) > rare) high *= 1.25;
        return {-low, high, tune::scale_near_zero * eps / std::sqrt(count_), usual, width};
    }

    double work_on(const GradedGrid& grid) const {
        double products = -0.5;
        for (const Step& step : steps_) products += 0.75 * std::log2(step.count) + 1.0;
        return products * 2.0 * pair_work * static_cast<double>(grid.cells() * grid.cells()) +
               masses_work * static_cast<double>(grid.cells() * steps_.size());
    }

    GradedStep composed(const GradedGrid& grid) {
        GradedStep all;
        for (const Step& step : steps_) {
            budget_.spend(masses_work * static_cast<double>(grid.cells()));
            const GradedStep one = put_on(grid, *step.loss);
            const GradedStep these{power<true>(grid, one.raised, step.count),
                                   power<false>(grid, one.lowered, step.count)};
            all = all.raised.masses.empty() ? these
                                            : GradedStep{product<true>(grid, all.raised, these.raised),
                                                         product<false>(grid, all.lowered, these.lowered)};
        }
        return all;
    }
    template <bool raised> GradedMeasure power(const GradedGrid& grid, const GradedMeasure& one, double count) {
        GradedMeasure all = one;
        int exponent = std::ilogb(count);
        double left = count - std::ldexp(1.0, exponent);
        while (exponent-- > 0) {
            all = product<raised>(grid, all, all);
            if (left < std::ldexp(1.0, exponent)) continue;
            left -= std::ldexp(1.0, exponent);
            all = product<raised>(grid, all, one);
        }
        return all;
    }
    template <bool raised>
    GradedMeasure product(const GradedGrid& grid, const GradedMeasure& a, const GradedMeasure& b) {
        budget_.spend(pair_work * static_cast<double>(grid.cells() * grid.cells()) * (&a == &b ? 0.5 : 1.0));
        return GradedSums<raised>(grid, least_).product(a, b);
    }

    static Interval delta_of(const GradedStep& all, double eps) {
        return {all.lowered.delta(eps) * (1.0 - all.lowered.error) * down,
                min(all.raised.delta(eps) * (1.0 + 2.0 * all.raised.error) * up, 1.0)};
    }
    static Interval epsilon_of(const GradedStep& all, double delta) {
        const auto crossing = [&](bool raised) {
            double above = 0.0, below = all.raised.losses.back();  // delta exceeds the level at the first one
            const auto exceeds = [&](double eps) {
                const Interval found = delta_of(all, eps);
                return (raised ? found.upper : found.lower) > delta;
            };
            if (!exceeds(above)) return 0.0;
            if (raised && exceeds(below)) return infinity;
            while (below - above > 1e-10 * below) {
                const double middle = 0.5 * (above + below);
                (exceeds(middle) ? above : below) = middle;
            }
            return raised ? below : above;
        };
        return {crossing(false), crossing(true)};
    }

    static constexpr double pair_work = 4.0;
    std::vector<Step> steps_;
    WorkBudget budget_;
    double count_ = 0.0, least_ = 0.0;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
