// The accountant: it composes mechanisms into a ledger, and brackets delta and epsilon of their
// composition between certified ends. C++ and C use it directly; Python's `Accountant` wraps it.
//
// Needs pocketfft on the include path. Throws std::invalid_argument and std::bad_alloc.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <hockeystick/accounting/engine.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/floating_environment.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// Several threads may query one accountant at once. No other call may run while one composes.
class Accountant {
  public:
    explicit Accountant(const simd::Kernels& kernels = simd::own_kernels, contour::ContourCache* cache = nullptr,
                        const LongJob& long_job = {})
        : make_engine_([&kernels, cache, long_job] { return make<Engine>(kernels, cache, long_job); }) {}

    // Adds `count` equal steps, perhaps none.
    void compose(const PairPointer& pair, double count = 1.0) {
        compose_for(End::upper, pair, count);
        compose_for(End::lower, pair, count);
    }

    // Adds steps to the ledger of one end only. A mechanism that lies between two pairs composes
    // the pair above it for the upper end, and the pair below it for the lower end.
    void compose_for(End end, const PairPointer& pair, double count) {
        const FloatingEnvironment environment;
        require(numeric::count_or_none(count), "count", "be an integer in [0, 2^53]", count);
        if (count > 0.0) (end == End::upper ? above_ : below_).add(pair, count);
    }

    // delta(eps), eps >= 0.
    Interval delta(double eps) const { return bracket({false, eps}); }

    // The smallest epsilon >= 0 at which delta(epsilon) <= delta, 0 <= delta < 1.
    Interval epsilon(double delta) const { return bracket({true, delta}); }

    // One answer for each direction, the largest upper end first. If both directions leak the same,
    // or the second was shown to leak no more than the first, there is only one answer.
    std::vector<Answer> answers(const Question& question, const Options& options = {}) const {
        const FloatingEnvironment environment;
        if (question.for_epsilon)
            require(question.value >= 0.0 && question.value < 1.0, "delta", "lie in [0, 1)", question.value);
        else require(question.value >= 0.0, "epsilon", "be non-negative", question.value);
        return ask<Engine>(question, options);
    }

    // The steps for both ends, with all Gaussian steps merged into one.
    BracketingSteps steps() const {
        const FloatingEnvironment environment;
        BracketingSteps both{with_one_gaussian(above_.steps(), End::upper),
                             with_one_gaussian(below_.steps(), End::lower), false};
        both.exact = equal(both.above, both.below);
        return both;
    }

  private:
    // The engine of the last question. It keeps its contours, which the next question may reuse.
    struct IdleEngine {
        std::mutex mutex;
        std::shared_ptr<Engine> engine;
    };

    // All that needs the engine's code is in these two templates, which are not inline, so that a
    // program may leave them to the compiled library (accounting/compiled.hpp).
    template <class AnyEngine>
    static std::shared_ptr<AnyEngine> make(const simd::Kernels& kernels, contour::ContourCache* cache,
                                           const LongJob& long_job);
    template <class AnyEngine> std::vector<Answer> ask(const Question& question, const Options& options) const;

    Interval bracket(const Question& question) const {
        const std::vector<Answer> found = answers(question);
        Interval result{0.0, found[0].upper};
        for (const Answer& answer : found) result.lower = max(result.lower, answer.lower);
        return result;
    }

    // The idle engine, or a new one while another thread has it. Neither call waits for a lock.
    std::shared_ptr<Engine> acquire() const {
        const std::unique_lock<std::mutex> lock(idle_->mutex, std::try_to_lock);
        return lock && idle_->engine ? std::move(idle_->engine) : make_engine_();
    }
    void release(std::shared_ptr<Engine> engine) const {
        const std::unique_lock<std::mutex> lock(idle_->mutex, std::try_to_lock);
        if (lock) std::swap(idle_->engine, engine);
    }

    std::function<std::shared_ptr<Engine>()> make_engine_;
    StepList above_, below_;
    std::unique_ptr<IdleEngine> idle_ = std::make_unique<IdleEngine>();
};

template <class AnyEngine>
std::shared_ptr<AnyEngine> Accountant::make(const simd::Kernels& kernels, contour::ContourCache* cache,
                                            const LongJob& long_job) {
    return std::make_shared<AnyEngine>(kernels, cache, nullptr, long_job);
}

template <class AnyEngine> std::vector<Answer> Accountant::ask(const Question& question, const Options& options) const {
    std::shared_ptr<AnyEngine> engine = acquire();
    std::vector<Answer> found = engine->answers(steps(), question, options);
    release(std::move(engine));
    return found;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
