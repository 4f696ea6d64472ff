// What a ledger of mechanisms leaks in all, between certified ends: the accountant of C++ and C,
// and the core of Python's.
//
// Needs pocketfft on the include path. Throws std::invalid_argument, std::bad_alloc.
#pragma once

#include <memory>
#include <mutex>

#include <hockeystick/accounting/engine.hpp>
#include <hockeystick/numeric/domain.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// Queries change no answer, and may be asked by several threads at once; composing may not.
class Accountant {
  public:
    explicit Accountant(const simd::Kernels& kernels = simd::own_kernels, contour::ContourCache* cache = nullptr,
                        const LongJob& long_job = {})
        : make_engine_(
              [&kernels, cache, long_job] { return std::make_unique<Engine>(kernels, cache, nullptr, long_job); }) {}

    // Adds `count` equal steps.
    void compose(const PairPointer& pair, double count = 1.0) {
        compose_for(End::upper, pair, count);
        compose_for(End::lower, pair, count);
    }

    // Adds steps of a mechanism that lies between two pairs, to one of the ends.
    void compose_for(End end, const PairPointer& pair, double count) {
        require(numeric::count(count), "count", "be an integer in [1, 2^53]", count);
        (end == End::upper ? above_ : below_).add(pair, count);
    }

    // delta(eps), eps >= 0.
    Interval delta(double eps) const { return bracket({false, eps}); }

    // The smallest epsilon >= 0 at which delta(epsilon) <= delta, 0 <= delta < 1.
    Interval epsilon(double delta) const { return bracket({true, delta}); }

    // What is known of each direction, the larger one first.
    std::vector<Answer> answers(const Question& question, const Options& options = {}) const {
        if (question.for_epsilon)
            require(question.value >= 0.0 && question.value < 1.0, "delta", "lie in [0, 1)", question.value);
        else require(question.value >= 0.0, "eps", "be non-negative", question.value);
        std::unique_ptr<Engine> engine = acquire();
        std::vector<Answer> found = engine->answers(steps(), question, options);
        release(std::move(engine));
        return found;
    }

    // The steps for both ends, all Gaussian ones in one.
    StepsBetween steps() const {
        StepsBetween both{with_one_gaussian(above_.steps(), End::upper), with_one_gaussian(below_.steps(), End::lower),
                          false};
        both.exact = equal(both.above, both.below);
        return both;
    }

  private:
    // An engine at rest, with its contours warm.
    struct Warm {
        std::mutex mutex;
        std::unique_ptr<Engine> engine;
    };

    Interval bracket(const Question& question) const {
        const std::vector<Answer> found = answers(question);
        Interval result{0.0, found[0].upper};
        for (const Answer& answer : found) result.lower = max(result.lower, answer.lower);
        return result;
    }

    std::unique_ptr<Engine> acquire() const {
        const std::unique_lock<std::mutex> lock(warm_->mutex, std::try_to_lock);
        return lock && warm_->engine ? std::move(warm_->engine) : make_engine_();
    }
    void release(std::unique_ptr<Engine> engine) const {
        const std::unique_lock<std::mutex> lock(warm_->mutex, std::try_to_lock);
        if (lock) std::swap(warm_->engine, engine);
    }

    std::function<std::unique_ptr<Engine>()> make_engine_;
    StepList above_, below_;
    std::unique_ptr<Warm> warm_ = std::make_unique<Warm>();
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
