// The steps of one composition, with all that an engine computed of them and that the next question
// may use: the bounds of each step and the contours, in either direction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/accounting/closed_forms.hpp>
#include <hockeystick/accounting/question.hpp>
#include <hockeystick/accounting/steps.hpp>
#include <hockeystick/contour/contour.hpp>
#include <hockeystick/contour/contour_cache.hpp>
#include <hockeystick/loss/bounded_range_steps.hpp>
#include <hockeystick/release/privacy_profile.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// A composition has two directions: adding a record and removing it. This object holds the contour
// engine (contour/contour.hpp) of each. The engines keep what they computed for the next question.
//
// A composition of equal sampled Gaussian steps takes its contours from a ContourCache, and returns
// them when this object is destroyed, so that every accountant of the same noise and rate shares
// them. Other compositions make contours of their own.
class DirectedContours {
  public:
    DirectedContours(const Steps& steps, const simd::Kernels& kernels, contour::ContourCache* cache) : cache_(cache) {
        const Pair::GaussianNoise noise = steps[0].pair->gaussian_noise();
        const bool equal_steps = steps.size() == 1;
        if (equal_steps) times_ = steps[0].count;
        if (equal_steps && noise.rate < 1.0) {
            const double sigma = noise.noise_multiplier;
            shared_ = cache ? cache->acquire(sigma, noise.rate, kernels)
                            : std::make_unique<contour::SampledContours>(sigma, noise.rate, kernels);
            return;
        }
        const Steps each = equal_steps ? Steps{{steps[0].pair, 1.0}} : steps;
        for (const Direction direction : {Direction::remove, Direction::add})
            own_.push_back(std::make_unique<contour::Contour>(contour::make_contour(each, direction, kernels)));
    }
    ~DirectedContours() { release(); }
    DirectedContours(const DirectedContours&) = delete;
    DirectedContours& operator=(const DirectedContours&) = delete;

    // Prepares the contours for other counts of the same steps; false if they must be made anew.
    // Those of equal steps serve any count of them.
    bool recount(const Steps& steps) {
        if (steps.size() > 1) return false;
        times_ = steps[0].count;
        return true;
    }

    contour::ContourResult ask(Direction direction, const Question& question, contour::StrategyLog* log,
                               bool smoothed) {
        contour::Contour& contour = of(direction);
        broken_ = true;  // until the answer is there: an exception may leave a contour incomplete
        const contour::ContourResult found = question.for_epsilon
                                                 ? contour.epsilon(times_, question.value, log, smoothed)
                                                 : contour.delta(times_, question.value, log, smoothed);
        broken_ = false;
        return found;
    }

    // Whether this direction certainly leaks no more than `upper`, the other direction's upper end.
    bool certainly_below(Direction direction, const Question& question, double upper) {
        const double eps = question.for_epsilon ? upper : question.value;
        const double delta = question.for_epsilon ? question.value : upper;
        return of(direction).certainly_below(times_, eps, std::log(delta));
    }

    double work() const { return shared_ ? shared_->work() : own_[0]->work() + own_[1]->work(); }

  private:
    contour::Contour& of(Direction direction) {
        const bool remove = direction == Direction::remove;
        if (shared_) return remove ? shared_->remove : shared_->add;
        return *own_[remove ? 0 : 1];
    }
    void release() {
        if (cache_ && shared_ && !broken_) cache_->release(std::move(shared_));
    }

    double times_ = 1.0;  // how often the contours' steps are repeated
    contour::ContourCache* cache_;
    std::unique_ptr<contour::SampledContours> shared_;    // of equal sampled Gaussian steps
    std::vector<std::unique_ptr<contour::Contour>> own_;  // of all others: remove, add
    bool broken_ = false;
};

// One of the two ends, with its caches. Not for several threads at once.
class CachedComposition {
  public:
    CachedComposition(Steps steps, const simd::Kernels& kernels, contour::ContourCache* cache)
        : steps_(std::move(steps)), has_contour_(contour::has_contour(steps_)), kernels_(&kernels), cache_(cache) {}

    // Prepares for a question about `steps`; false if they are not the same pairs, in this order.
    bool serve(const Steps& steps) {
        const auto same_pair = [](const CountedPair& x, const CountedPair& y) { return x.pair->equals(*y.pair); };
        const auto same_count = [](const CountedPair& x, const CountedPair& y) { return x.count == y.count; };
        if (!std::equal(steps.begin(), steps.end(), steps_.begin(), steps_.end(), same_pair)) return false;
        if (std::equal(steps.begin(), steps.end(), steps_.begin(), same_count)) return true;
        for (std::size_t j = 0; j < steps.size(); ++j) steps_[j].count = steps[j].count;
        blocks_.clear();
        if (contours_ && !contours_->recount(steps_)) forget_contours();
        return true;
    }

    const Steps& steps() const { return steps_; }
    Limits limits(Direction direction) { return accounting::limits(steps_, bounds(direction)); }
    double total_variation(Direction direction) { return accounting::total_variation(steps_, bounds(direction)); }
    double near_largest_loss(Direction direction, double eps) {
        return accounting::near_largest_loss(steps_, bounds(direction), eps);
    }

    double epsilon_near_largest_loss(Direction direction, double delta) {
        return accounting::epsilon_near_largest_loss(steps_, bounds(direction), delta);
    }

    // The curve of equal steps of bounded range, if these are all and not too many; else null.
    const BoundedRangeSteps* range_steps() {
        if (steps_.size() != 1 || !(steps_[0].pair->loss_range() > 0.0)) return nullptr;
        const double count = steps_[0].count;
        if (count > BoundedRangeSteps::max_steps) return nullptr;
        return &worst_steps(0, count);
    }

    // The steps for an upper end, those of bounded range in blocks: a block's pair has the worst
    // interval of losses at each of its steps (docs/core/loss.md, "Mechanisms of bounded range").
    const Steps& blocks() {
        if (!blocks_.empty()) return blocks_;
        Steps all;
        std::vector<double> weights, sorted;
        for (const CountedPair& step : steps_) {
            const double range = step.pair->loss_range();
            const bool fits = range > 0.0 && 2.0 * range <= largest_loss && step.count > 1.0;
            weights.push_back(fits ? step.count * range * range : 0.0);
        }
        sorted = weights;
        std::sort(sorted.rbegin(), sorted.rend());
        const double least = sorted.size() > max_ranges ? sorted[max_ranges - 1] : 0.0;
        for (std::size_t j = 0, ranges = 0; j < steps_.size(); ++j) {
            if (weights[j] > 0.0 && weights[j] >= least && ++ranges <= max_ranges) add_blocks(j, all);
            else all.push_back(steps_[j]);
        }
        in_blocks_ = !sorted.empty() && sorted[0] > 0.0;
        blocks_ = std::move(all);
        return blocks_;
    }

    bool in_blocks() const { return in_blocks_; }

    bool has_contour() const { return has_contour_; }
    DirectedContours& contours() {
        if (!contours_) {
            contours_.emplace(steps_, *kernels_, cache_);
            work_ -= contours_->work();  // what earlier owners of these contours did
        }
        return *contours_;
    }

    // The points that the contours visited for this object.
    double work() const { return work_ + (contours_ ? contours_->work() : 0.0); }

  private:
    static constexpr std::size_t max_ranges = 32;  // in blocks, those that leak most, which take up to 30 ms each
    static constexpr double largest_loss = 590.0;  // of a block; a profile's points go to 600
    struct RangeSteps {
        std::optional<BoundedRangeSteps> worst;
        double most = 0.0;  // for which `worst` has room
        PairPointer block;  // of as many as a block may have
    };

    const AllStepBounds& bounds(Direction direction) {
        std::optional<AllStepBounds>& known = bounds_[direction == Direction::remove ? 0 : 1];
        if (!known) known = step_bounds(steps_, direction);
        return *known;
    }

    // Equal steps of bounded range, as those of steps_[j]; what was computed of fewer is used.
    BoundedRangeSteps& worst_steps(std::size_t j, double count) {
        const double most = max(std::exp2(std::ceil(std::log2(count))), 16.0);
        RangeSteps& known = range_steps_[j];
        if (!known.worst || known.most != most || known.worst->count() > count)
            known.worst.emplace(steps_[j].pair->loss_range(), most), known.most = most;
        known.worst->advance_to(count);
        return *known.worst;
    }

    static PairPointer block_pair(const BoundedRangeSteps& steps) {
        const BoundedRangeSteps::Points points = steps.points();
        return release::privacy_profile({points.epsilons, points.deltas, points.deltas}, End::upper)[0].pair;
    }

    void add_blocks(std::size_t j, Steps& all) {
        const CountedPair& step = steps_[j];
        const double size = min(BoundedRangeSteps::max_steps, std::floor(largest_loss / step.pair->loss_range()));
        const double whole = std::floor(step.count / size), rest = step.count - whole * size;
        if (whole > 0.0) {
            PairPointer& block = range_steps_[j].block;
            if (!block) block = block_pair(worst_steps(j, size));
            all.push_back({block, whole});
        }
        if (rest > 0.0) all.push_back({rest == 1.0 ? step.pair : block_pair(worst_steps(j, rest)), 1.0});
    }

    void forget_contours() {
        work_ += contours_->work();
        contours_.reset();
    }

    Steps steps_;
    bool has_contour_;
    const simd::Kernels* kernels_;
    contour::ContourCache* cache_;
    std::optional<AllStepBounds> bounds_[2];  // remove, add
    std::optional<DirectedContours> contours_;
    Steps blocks_;                                   // empty before they are asked for
    bool in_blocks_ = false;                         // whether some of them are blocks
    std::map<std::size_t, RangeSteps> range_steps_;  // of steps of bounded range
    double work_ = 0.0;
};

// The two compositions of BracketingSteps (accounting/steps.hpp), with what is cached of them.
// `below` is null if nothing is composed below, or if no question is about it.
struct CachedBracket {
    CachedComposition& above;
    CachedComposition* below;
    bool one_for_both_ends;  // `above` serves the lower end too, or no lower end is asked for

    // Whether the losses and the cumulants of `above` serve the lower end too.
    bool one_law_for_both_ends() const {
        if (one_for_both_ends || !below) return one_for_both_ends;
        const Steps &upper = above.steps(), &lower = below->steps();
        return std::equal(upper.begin(), upper.end(), lower.begin(), lower.end(),
                          [](const CountedPair& x, const CountedPair& y) {
                              return x.count == y.count && x.pair->has_law_of(*y.pair);
                          });
    }
    // Whether what lies between both ends is that between tables on either side of the same laws:
    // all steps but such tables have one law above and below, and there are as many tables of each
    // count.
    bool gap_is_numerical() const {
        if (!below) return false;
        const Steps &upper = above.steps(), &lower = below->steps();
        std::vector<double> tables_above, tables_below;  // their counts
        auto u = upper.begin(), l = lower.begin();
        while (u != upper.end() || l != lower.end()) {
            const bool both = u != upper.end() && l != lower.end();
            if (both && u->count == l->count && u->pair->has_law_of(*l->pair)) ++u, ++l;
            else if (u != upper.end() && u->pair->is_rounded_to_grid()) tables_above.push_back((u++)->count);
            else if (l != lower.end() && l->pair->is_rounded_to_grid()) tables_below.push_back((l++)->count);
            else return false;
        }
        std::sort(tables_above.begin(), tables_above.end());
        std::sort(tables_below.begin(), tables_below.end());
        return tables_above == tables_below;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
