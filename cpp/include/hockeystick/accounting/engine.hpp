// Chooses the engine that answers for a composition. No other file chooses: Python, C, C++ and the
// grids of DP-SGD all ask this one.
//
// The probability that a step reveals the data set is factored out first (accounting/revealed.hpp).
// For the rest it tries, in this order:
//
//   1. nothing composed: 0;
//   2. one step: its exact formula (all Gaussian steps are merged into one);
//   3. an eps beyond the largest loss, or a delta above the total variation: a closed form;
//   4. the contour engine, if every pair has a cumulant;
//   5. discretised privacy losses, if the contour's bracket is not narrow.
//
// Last, the bounds of closed_forms.hpp cap the upper end. Each direction is answered alone, and the
// larger upper end counts. The engine stops work on the second direction as soon as that is shown
// to leak no more than the first.
//
// An engine keeps the contours of the last compositions, so that another question about the same
// composition reuses them. Contours of equal sampled Gaussian steps come from a ContourCache, if
// there is one, and return to it. No answer depends on what was asked before.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/accounting/closed_forms.hpp>
#include <hockeystick/accounting/directed_contours.hpp>
#include <hockeystick/accounting/revealed.hpp>
#include <hockeystick/pld/composition.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// A function that runs `body`, which may take seconds and stops soon after `stop` becomes true.
using LongJob = std::function<void(const std::function<void(const std::atomic<bool>& stop)>& body)>;

// Only one thread at a time may use an engine.
class Engine {
  public:
    // `kernels` are the loops of one instruction set. A program that is compiled for one only uses
    // the default, `own_kernels`. Queries throw Stopped soon after `*stop` becomes true. A
    // `long_job`, if given, runs the discretised losses, with a flag of its own in place of `stop`.
    explicit Engine(const simd::Kernels& kernels = simd::own_kernels, contour::ContourCache* cache = nullptr,
                    const std::atomic<bool>* stop = nullptr, LongJob long_job = {})
        : kernels_(&kernels), cache_(cache), stop_(stop), long_job_(std::move(long_job)) {}

    // One answer for each direction, the largest upper end first. There is only one if both leak
    // the same, or if the second was shown to leak no more than the first. All Gaussian steps must
    // be merged into one (`with_one_gaussian`).
    std::vector<Answer> answers(const StepsBetween& steps, const Question& question, const Options& options) {
        if (!reveals(steps.above) && !reveals(steps.below)) return concealed_answers(steps, question, options);
        return answers_beside_revealed(steps, question, options.upper_only,
                                       [&](const StepsBetween& others, const Question& other) {
                                           return concealed_answers(others, other, options);
                                       });
    }

    double upper_end(const Steps& steps, const Question& question) {
        return answers({steps, steps, true}, question, {EngineChoice::best, true})[0].upper;
    }

    // The points that both engines visited so far: a measure of time that does not depend on the
    // machine.
    double work() const {
        double sum = work_;
        for (const auto& contours : contours_) sum += contours->work();
        return sum;
    }

    // Gives the contours back to the cache.
    void release() { evict(0); }

  private:
    static constexpr double rough = 1.0;        // a relative width that any bracket meets
    static constexpr std::size_t max_kept = 2;  // compositions: one for upper ends, one for lower ends

    // The answers about steps that reveal no data set (accounting/revealed.hpp).
    std::vector<Answer> concealed_answers(const StepsBetween& steps, const Question& question, const Options& options) {
        if (stop_ && *stop_) throw Stopped();
        if (steps.above.empty()) {
            Answer none;
            none.method = Method::nothing_composed, none.both_directions = true;
            return {none};
        }
        const auto is_symmetric = [](const CountedPair& step) { return step.pair->symmetric(); };
        const bool one_direction = std::all_of(steps.above.begin(), steps.above.end(), is_symmetric);
        std::vector<Answer> found;
        for (const Direction direction : {Direction::remove, Direction::add}) {
            const double other_upper = found.empty() ? 0.0 : found[0].upper;
            if (one_direction && !found.empty()) break;
            if (other_upper > 0.0 && is_below(steps.above, direction, question, options, other_upper)) break;
            Answer answer = of_direction(steps, direction, question, options, other_upper);
            answer.direction = direction, answer.both_directions = one_direction;
            answer.lower = options.upper_only ? 0.0 : answer.lower + 0.0;  // never -0
            found.push_back(answer);
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const Answer& x, const Answer& y) { return x.upper > y.upper; });
        return found;
    }

    // One direction's answer. `other_upper` is the upper end of the other direction, 0 if this one
    // is asked first.
    Answer of_direction(const StepsBetween& steps, Direction direction, const Question& question,
                        const Options& options, double other_upper) {
        Answer best;
        best.upper = question.largest_answer();
        if (options.engine != EngineChoice::pld && exact(steps, direction, question, options, best)) return best;
        const double cap =
            options.engine == EngineChoice::best ? smallest_cap(steps.above, direction, question) : infinity;
        if (cap < 1e-320 && !question.for_epsilon) {  // 0 up to rounding: engines add nothing
            best.upper = cap, best.method = Method::total_variation;
            return best;
        }
        if (options.engine != EngineChoice::pld)
            best = both_ends(best, steps, options,
                             [&](const Steps& side) { return by_contour(side, direction, question, options); });
        if (options.engine != EngineChoice::contour && !best.narrow(question) && best.upper > other_upper)
            best = by_losses(best, steps, direction, question, options, other_upper);
        if (options.engine == EngineChoice::best) return capped(best, steps.above, direction, question, cap);
        if (best.method == Method::none && options.engine == EngineChoice::contour)
            throw std::invalid_argument("engine='contour' has no answer for this composition at " +
                                        shortest_text(question.value) + "; use engine='auto'");
        if (best.method == Method::none) best.method = Method::pld;  // not asked: no answer is above what is known
        return best;
    }

    // Asks an engine about steps.above. If those leak more than the true steps, their lower end may
    // exceed the truth; then the lower end comes from a second question, about steps.below.
    template <class Ask>
    static Answer both_ends(const Answer& best, const StepsBetween& steps, const Options& options, const Ask& ask) {
        Answer found = ask(steps.above);
        if (found.method == Method::none) return best;
        if (!options.upper_only && !steps.exact)
            found.lower = steps.below.empty() ? 0.0 : min(ask(steps.below).lower, found.upper);
        return better(best, found);
    }

    Answer by_contour(const Steps& steps, Direction direction, const Question& question, const Options& options) {
        Answer answer;
        answer.upper = question.largest_answer();
        if (!contour::has_contour(steps) || !is_inside(question)) return answer;
        const contour::ContourResult found =
            contours_of(steps).ask(direction, question, options.upper_only ? nullptr : &answer.tried);
        if (!found.usable) return answer;
        answer.method = Method::contour, answer.contour = found;
        answer.lower = found.lower, answer.upper = found.upper;
        return answer;
    }

    // Discretised losses always answer. A first, rough bracket may show that the other direction
    // leaks more; then it suffices.
    Answer by_losses(Answer best, const StepsBetween& steps, Direction direction, const Question& question,
                     const Options& options, double other_upper) {
        const auto ask = [&](double tolerance) {
            return both_ends(best, steps, options,
                             [&](const Steps& side) { return compose_losses(side, direction, question, tolerance); });
        };
        if (other_upper > 0.0) best = ask(rough);
        return best.upper > other_upper && !best.narrow(question) ? ask(good_enough) : best;
    }

    Answer compose_losses(const Steps& steps, Direction direction, const Question& question, double tolerance) {
        pld::PldBracket found{};
        const auto compose = [&](const std::atomic<bool>* stop) {
            std::vector<pld::Step> losses;
            for (const CountedPair& step : steps) losses.push_back({step.pair->loss(direction), step.count});
            pld::PldSettings settings;
            settings.tolerance = tolerance, settings.stop = stop;
            const pld::Composition composition(std::move(losses), settings);
            found = question.for_epsilon ? composition.epsilon(question.value) : composition.delta(question.value);
        };
        if (long_job_) long_job_([&](const std::atomic<bool>& stop) { compose(&stop); });
        else compose(stop_);
        work_ += found.work;
        Answer answer;
        answer.method = Method::pld, answer.interval = found.interval, answer.coarsened = found.coarsened;
        answer.lower = found.lower, answer.upper = found.upper;
        return answer;
    }

    // Fills in the answer by a closed form; false if none applies.
    static bool exact(const StepsBetween& steps, Direction direction, const Question& question, const Options& options,
                      Answer& answer) {
        const bool exact_steps = options.upper_only || steps.exact;
        const auto set = [&](double lower, double upper, Method method) {
            answer.lower = lower, answer.upper = upper, answer.method = method;
            return true;
        };
        if (options.engine == EngineChoice::best && steps.above.size() == 1 && steps.above[0].count == 1.0) {
            const auto ask = [&](const PairPointer& pair) {
                const OneStep one = one_step(pair, direction);
                return question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value);
            };
            const Interval above = ask(steps.above[0].pair);
            double lower = exact_steps ? above.lower : steps.below.empty() ? 0.0 : infinity;
            if (!exact_steps)
                for (const CountedPair& step : steps.below) lower = min(lower, ask(step.pair).lower);
            const Method step = exact_steps ? Method::one_step : Method::one_step_between_pairs;
            return set(lower, above.upper, steps.above[0].pair->is_gaussian() ? Method::gaussian : step);
        }
        Limits limit = limits(steps.above, direction);
        if (!exact_steps) {
            const Limits least = limits(steps.below, direction);
            limit.largest_loss.lower = min(limit.largest_loss.lower, least.largest_loss.lower);
            limit.infinite_mass.lower = min(limit.infinite_mass.lower, least.infinite_mass.lower);
        }
        if (!question.for_epsilon) {
            if (question.value < limit.largest_loss.upper && question.value < infinity) return false;
            return set(limit.infinite_mass.lower, limit.infinite_mass.upper, Method::beyond_largest_loss);
        }
        if (question.value < limit.infinite_mass.lower) return set(infinity, infinity, Method::infinite_mass);
        if (question.value == 0.0)
            return set(max(limit.largest_loss.lower, 0.0),
                       limit.infinite_mass.upper > 0.0 ? infinity : max(limit.largest_loss.upper, 0.0),
                       Method::largest_loss);
        if (question.value >= total_variation(steps.above, direction)) return set(0.0, 0.0, Method::total_variation);
        const bool bounded = limit.largest_loss.upper < infinity && limit.infinite_mass.upper == 0.0;
        if (options.engine == EngineChoice::best && bounded)
            answer.upper = max(limit.largest_loss.upper, 0.0), answer.method = Method::largest_loss;
        return false;  // but epsilon is at most the largest loss
    }

    // The smaller upper bound of delta by total variation and by the noise without sampling. Bounds
    // of epsilon are left to `capped`.
    static double smallest_cap(const Steps& steps, Direction direction, const Question& question) {
        if (question.for_epsilon) return infinity;
        const double by_variation = total_variation(steps, direction), shift = dominating_shift(steps);
        if (!(shift < infinity && shift > 0.0)) return by_variation;
        return min(by_variation, gaussian_step(shift).delta(question.value).upper);
    }

    // `best` with its upper end lowered to the closed forms' bounds; `cap` is that of delta.
    static Answer capped(Answer best, const Steps& steps, Direction direction, const Question& question, double cap) {
        const auto lower_to = [&best](double upper, Method method) {
            if (upper < best.upper) best.upper = upper, best.method = method;
        };
        const double shift = dominating_shift(steps);
        if (!question.for_epsilon) {
            lower_to(cap, shift < infinity ? Method::gaussian_without_sampling : Method::total_variation);
            if (!best.narrow(question))
                lower_to(near_largest_loss(steps, direction, question.value), Method::near_largest_loss);
        } else if (shift < infinity && shift > 0.0) {
            const OneStep whole = gaussian_step(shift);
            const bool no_help = best.upper < infinity && whole.delta(best.upper).lower > question.value;
            if (!no_help) lower_to(whole.epsilon(question.value).upper, Method::gaussian_without_sampling);
        }
        best.lower = min(best.lower, best.upper);
        return best;
    }

    // Whether a direction certainly leaks no more than the other one's upper end.
    bool is_below(const Steps& steps, Direction direction, const Question& question, const Options& options,
                  double other_upper) {
        if (!options.upper_only || options.engine == EngineChoice::pld || !(other_upper < infinity)) return false;
        if (!is_inside(question) || !contour::has_contour(steps)) return false;
        return contours_of(steps).certainly_below(direction, question, other_upper);
    }

    // Whether the contour engine takes the question: not delta at infinity, nor epsilon at delta 0.
    static bool is_inside(const Question& question) {
        return question.for_epsilon ? question.value > 0.0 : question.value < infinity;
    }

    DirectedContours& contours_of(const Steps& steps) {
        for (const auto& contours : contours_)
            if (contours->serve(steps)) return *contours;
        evict(max_kept - 1);
        contours_.push_back(std::make_unique<DirectedContours>(steps, *kernels_, cache_));
        work_ -= contours_.back()->work();
        return *contours_.back();
    }

    // Drops the oldest contours until `max_count` compositions are left.
    void evict(std::size_t max_count) {
        while (contours_.size() > max_count) {
            work_ += contours_.front()->work();
            contours_.erase(contours_.begin());
        }
    }

    const simd::Kernels* kernels_;
    contour::ContourCache* cache_;
    const std::atomic<bool>* stop_;
    LongJob long_job_;
    double work_ = 0.0;
    std::vector<std::unique_ptr<DirectedContours>> contours_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
