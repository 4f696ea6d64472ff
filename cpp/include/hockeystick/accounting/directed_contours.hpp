// A composition has two directions: adding a record and removing it. This object holds the contour
// engine (contour/contour.hpp) of each. The engines keep what they computed for the next question.
//
// A composition of equal sampled Gaussian steps takes its contours from a ContourCache, and returns
// them when this object is destroyed, so that every accountant of the same noise and rate shares
// them. Other compositions make contours of their own.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/accounting/question.hpp>
#include <hockeystick/accounting/steps.hpp>
#include <hockeystick/contour/contour_cache.hpp>
#include <hockeystick/contour/ledger_contour.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

class DirectedContours {
  public:
    DirectedContours(const Steps& steps, const simd::Kernels& kernels, contour::ContourCache* cache) : cache_(cache) {
        const Pair::GaussianNoise noise = steps[0].pair->gaussian_noise();
        const bool equal_steps = steps.size() == 1;
        if (equal_steps) times_ = steps[0].count;
        if (equal_steps && noise.rate < 1.0) {
            if (cache) shared_ = cache->acquire(noise.noise_multiplier, noise.rate, kernels);
            if (!shared_)
                shared_ = std::make_unique<contour::SampledContours>(noise.noise_multiplier, noise.rate, kernels);
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

    contour::ContourResult ask(Direction direction, const Question& question, contour::StrategyLog* log) {
        contour::Contour& contour = of(direction);
        broken_ = true;  // until the answer is there: an exception may leave a contour incomplete
        const contour::ContourResult found = question.for_epsilon ? contour.epsilon(times_, question.value, log)
                                                                  : contour.delta(times_, question.value, log);
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

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
