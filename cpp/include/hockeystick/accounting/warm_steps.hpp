// The steps of one composition, with all that an engine computed of them and that the next question
// may use: the bounds of each step and the contours, in either direction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <hockeystick/accounting/closed_forms.hpp>
#include <hockeystick/accounting/directed_contours.hpp>
#include <hockeystick/loss/bounded_range_steps.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// Not for several threads at once.
class WarmSteps {
  public:
    WarmSteps(Steps steps, const simd::Kernels& kernels, contour::ContourCache* cache)
        : steps_(std::move(steps)), has_contour_(contour::has_contour(steps_)), kernels_(&kernels), cache_(cache) {}

    // Prepares for a question about `steps`; false if they are not the same pairs, in this order.
    bool serve(const Steps& steps) {
        const auto same_pair = [](const CountedPair& x, const CountedPair& y) { return x.pair->equals(*y.pair); };
        const auto same_count = [](const CountedPair& x, const CountedPair& y) { return x.count == y.count; };
        if (!std::equal(steps.begin(), steps.end(), steps_.begin(), steps_.end(), same_pair)) return false;
        if (std::equal(steps.begin(), steps.end(), steps_.begin(), same_count)) return true;
        for (std::size_t j = 0; j < steps.size(); ++j) steps_[j].count = steps[j].count;
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
        if (count > BoundedRangeSteps::most_steps) return nullptr;
        const double most = max(std::exp2(std::ceil(std::log2(count))), 16.0);
        if (!range_steps_ || range_most_ != most || range_steps_->count() > count)
            range_steps_.emplace(steps_[0].pair->loss_range(), most), range_most_ = most;
        range_steps_->advance_to(count);
        return &*range_steps_;
    }

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
    const AllStepBounds& bounds(Direction direction) {
        std::optional<AllStepBounds>& known = bounds_[direction == Direction::remove ? 0 : 1];
        if (!known) known = step_bounds(steps_, direction);
        return *known;
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
    std::optional<BoundedRangeSteps> range_steps_;
    double range_most_ = 0.0;
    double work_ = 0.0;
};

// The two compositions of StepsBetween (accounting/steps.hpp), warm. `below` is null if nothing is
// composed below, or if no question is about it.
struct WarmBetween {
    WarmSteps& above;
    WarmSteps* below;
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
