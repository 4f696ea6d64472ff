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
// Last, the bounds of accounting/closed_forms.hpp cap the upper end, by Renyi divergences where it
// may be loose. Where the bracket is still wide, so do the upper ends of larger sampling rates.
// Each direction is answered alone, and the larger upper end counts. The engine stops work on the
// second direction as soon as that is shown to leak no more than the first.
//
// An engine keeps what it computed of the last compositions (accounting/cached_composition.hpp),
// for the next question about them. Contours of equal sampled Gaussian steps come from a
// ContourCache, if there is one, and return to it. No answer depends on what was asked before.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/accounting/cached_composition.hpp>
#include <hockeystick/accounting/closed_forms.hpp>
#include <hockeystick/accounting/jump_expansion.hpp>
#include <hockeystick/accounting/revealed.hpp>
#include <hockeystick/numeric/floating_environment.hpp>
#include <hockeystick/pld/composition.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// The answers of closed forms about one direction: exact ones, and upper ends that cap what an
// engine says. accounting/closed_forms.hpp has the formulas.

// The exact formula of a single step.
inline void answer_one_step(const CachedBracket& steps, Direction direction, const Question& question, Answer& answer) {
    const auto ask = [&](const CountedPair& step) {
        const OneStep one(step.pair->loss(direction));
        return question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value);
    };
    const CountedPair& only = steps.above.steps()[0];
    const Interval above = ask(only);
    answer.lower = above.lower, answer.upper = above.upper;
    answer.method = only.pair->is_gaussian() ? Method::gaussian : Method::one_step;
    if (steps.one_law_for_both_ends()) return;
    answer.gap_is_numerical = steps.gap_is_numerical();
    answer.dominating_lower = above.lower;
    const Steps& below = steps.below ? steps.below->steps() : Steps{};
    answer.lower = below.empty() ? 0.0 : infinity, answer.attained_upper = below.size() > 1 ? infinity : 0.0;
    for (const CountedPair& step : below) {
        const Interval attained = ask(step);
        answer.lower = min(answer.lower, attained.lower);
        answer.attained_upper = max(answer.attained_upper, attained.upper);
    }
    if (answer.method == Method::one_step) answer.method = Method::one_step_between_pairs;
}

// Limits whose upper ends are those of the steps above, and whose lower ends hold for those below.
inline Limits limits(const CachedBracket& steps, Direction direction) {
    Limits limit = steps.above.limits(direction);
    if (steps.one_law_for_both_ends()) return limit;
    const Limits least = steps.below ? steps.below->limits(direction) : Limits{{0.0, 0.0}, {0.0, 0.0}};
    limit.largest_loss.lower = min(limit.largest_loss.lower, least.largest_loss.lower);
    limit.infinite_mass.lower = min(limit.infinite_mass.lower, least.infinite_mass.lower);
    return limit;
}

// Fills in the answer by a closed form. False if none is exact; the upper end may then be known.
inline bool answer_exactly(const CachedBracket& steps, Direction direction, const Question& question,
                           const Options& options, Answer& answer) {
    const Steps& above = steps.above.steps();
    if (options.engine == EngineChoice::best && above.size() == 1 && above[0].count == 1.0) {
        answer_one_step(steps, direction, question, answer);
        return true;
    }
    const auto set = [&](double lower, double upper, Method method) {
        answer.lower = lower, answer.upper = upper, answer.method = method;
        return true;
    };
    const Limits limit = limits(steps, direction);
    if (!question.for_epsilon) {
        if (question.value < limit.largest_loss.upper && question.value < infinity) return false;
        return set(limit.infinite_mass.lower, limit.infinite_mass.upper, Method::beyond_largest_loss);
    }
    if (question.value < limit.infinite_mass.lower) return set(infinity, infinity, Method::infinite_mass);
    if (question.value == 0.0)
        return set(max(limit.largest_loss.lower, 0.0),
                   limit.infinite_mass.upper > 0.0 ? infinity : max(limit.largest_loss.upper, 0.0),
                   Method::largest_loss);
    if (question.value >= steps.above.total_variation(direction)) return set(0.0, 0.0, Method::total_variation);
    const bool bounded = limit.largest_loss.upper < infinity && limit.infinite_mass.upper == 0.0;
    if (options.engine == EngineChoice::best && bounded)
        answer.upper = max(limit.largest_loss.upper, 0.0), answer.method = Method::largest_loss;
    return false;  // the upper end may be known now: epsilon is at most the largest loss
}

// The smaller upper bound of delta by total variation and by the noise without sampling. Bounds
// of epsilon are left to `capped`.
inline double smallest_cap(CachedComposition& steps, Direction direction, const Question& question, double shift) {
    if (question.for_epsilon) return infinity;
    const double by_variation = steps.total_variation(direction);
    if (!(shift < infinity && shift > 0.0)) return by_variation;
    return min(by_variation, gaussian_step(shift).delta(question.value).upper);
}

// `best`, whose ends may pass each other by their rounding.
inline Answer with_ends_in_order(Answer best) {
    best.lower = min(best.lower, best.upper);
    return best;
}

// Raises the lower end of epsilon by the bound near the largest loss, where it is not narrow.
inline void lower_end_from_largest_loss(Answer& best, const CachedBracket& steps, Direction direction,
                                        const Question& question) {
    CachedComposition* const attained = steps.one_for_both_ends ? &steps.above : steps.below;
    if (attained && !best.narrow(question))
        best.lower = max(best.lower, attained->epsilon_near_largest_loss(direction, question.value));
}

// Raises the lower end to what one step alone leaks, where the bracket is wide: who sees all
// releases may look at that step's only, and no processing raises the divergence.
inline void lower_end_from_one_step(Answer& best, const CachedBracket& steps, Direction direction,
                                    const Question& question) {
    const CachedComposition* const attained = steps.one_for_both_ends ? &steps.above : steps.below;
    if (!attained || best.settled(question)) return;
    for (const CountedPair& step : attained->steps()) {
        const OneStep one(step.pair->loss(direction));
        const Interval alone = question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value);
        best.lower = max(best.lower, alone.lower);
    }
}

// `best` with ends moved to the closed forms' bounds; `cap` is that of delta.
inline Answer capped(Answer best, const CachedBracket& steps, Direction direction, const Question& question,
                     double shift, double cap) {
    const auto lower_to = [&best](double upper, Method method) {
        if (upper < best.upper) best.upper = upper, best.method = method;
    };
    if (!question.for_epsilon) {
        lower_to(cap, shift < infinity ? Method::gaussian_without_sampling : Method::total_variation);
        if (!best.narrow(question))
            lower_to(steps.above.near_largest_loss(direction, question.value), Method::near_largest_loss);
        return with_ends_in_order(std::move(best));
    }
    if (shift < infinity && shift > 0.0) {
        const OneStep whole = gaussian_step(shift);
        const bool no_help = best.upper < infinity && whole.delta(best.upper).lower > question.value;
        if (!no_help) lower_to(whole.epsilon(question.value).upper, Method::gaussian_without_sampling);
    }
    return with_ends_in_order(std::move(best));
}

// `best` with its upper end lowered to that of Renyi divergences, where the engines' end is not
// sharp or a pair leaks more in composition than the mechanism does. A contour's end is at most
// Chernoff's bound, which is sharper.
inline Answer capped_by_renyi(Answer best, const CachedBracket& steps, Direction direction, const Question& question) {
    const Steps& above = steps.above.steps();
    const auto is_loose = [](const CountedPair& step) { return step.pair->composes_loosely(); };
    const bool served = best.sharp(question) || best.method == Method::contour;
    if (served && std::none_of(above.begin(), above.end(), is_loose)) return best;
    const RenyiBound bound = renyi_bound(above, direction, question);
    if (bound.value < best.upper) best.upper = bound.value, best.order = bound.order, best.method = Method::renyi;
    if (const BoundedRangeSteps* worst = steps.above.range_steps()) {
        const double upper = question.for_epsilon ? worst->epsilon(question.value) : worst->delta(question.value);
        if (upper < best.upper) best.upper = upper, best.method = Method::adaptive_range;
    }
    return with_ends_in_order(std::move(best));
}

// A function that runs `body`, which may take seconds and stops soon after `stop` becomes true.
using LongJob = std::function<void(const std::function<void(const std::atomic<bool>& stop)>& body)>;

// Only one thread at a time may use an engine.
class Engine {
  public:
    // `kernels` are the loops of one instruction set. A program that is compiled for one only uses
    // the default, `own_kernels`. Queries throw Stopped soon after `*stop` becomes true. A
    // `long_job`, if given, runs the discretised losses, with a flag of its own in place of `stop`.
    // `before_question`, if given, is called after the look at `*stop`; what it throws ends the
    // query.
    explicit Engine(const simd::Kernels& kernels = simd::own_kernels, contour::ContourCache* cache = nullptr,
                    const std::atomic<bool>* stop = nullptr, LongJob long_job = {},
                    std::function<void()> before_question = {})
        : kernels_(&kernels), cache_(cache), stop_(stop), long_job_(std::move(long_job)),
          before_question_(std::move(before_question)) {}

    // One answer for each direction, the largest upper end first. There is only one if both leak
    // the same, or if the second was shown to leak no more than the first. All Gaussian steps must
    // be merged into one (`with_one_gaussian`).
    //
    // The upper end is that of a question for upper ends alone, so that all who ask print the same.
    std::vector<Answer> answers(const BracketingSteps& steps, const Question& question, const Options& options) {
        const FloatingEnvironment environment;
        std::vector<Answer> found = answers_of_all(steps, question, options);
        if (options.upper_only || steps.exact) return found;
        const Options above{options.engine, true, options.threshold};
        Answer top = answers_of_all(steps, question, above)[0];
        Answer& first = found[0];
        if (first.upper != top.upper) {
            top.lower = first.lower, top.tried = std::move(first.tried);
            top.dominating_lower = first.dominating_lower, top.attained_upper = first.attained_upper;
            top.gap_is_numerical = first.gap_is_numerical;
            first = std::move(top);
        }
        for (Answer& each : found) each.upper = min(each.upper, first.upper), each.lower = min(each.lower, each.upper);
        return found;
    }

    double upper_end(const Steps& steps, const Question& question, double threshold = nan) {
        const FloatingEnvironment environment;
        const Options options{EngineChoice::best, true, threshold};
        if (steps.empty() || discloses(steps)) return answers({steps, steps, true}, question, options)[0].upper;
        return answers(CachedBracket{cached(steps), nullptr, true}, question, options)[0].upper;
    }

    // The steps of the last question; null before the first one.
    const Steps* last_steps() const { return kept_.empty() ? nullptr : &kept_.back()->steps(); }

    // The points that both engines visited so far: a measure of time that does not depend on the
    // machine.
    double work() const {
        double sum = work_;
        for (const auto& kept : kept_) sum += kept->work();
        return sum;
    }

    // Forgets all compositions, and gives their contours back to the cache.
    void release() { evict(0); }

  private:
    static constexpr double rough = 1.0;          // a relative width that any bracket meets
    static constexpr int most_larger_rates = 32;  // a factor of 256
    static constexpr double much_work = 5e8;      // points visited: half a second
    static constexpr std::size_t max_kept = 2;    // compositions: one for upper ends, one for lower ends

    std::vector<Answer> answers_of_all(const BracketingSteps& steps, const Question& question, const Options& options) {
        if (!discloses(steps.above) && !discloses(steps.below)) return concealed_answers(steps, question, options);
        return answers_beside_revealed(steps, question, options.upper_only,
                                       [&](const BracketingSteps& others, const Question& other) {
                                           return concealed_answers(others, other, options);
                                       });
    }

    // The answers about steps that reveal no data set (accounting/revealed.hpp).
    std::vector<Answer> concealed_answers(const BracketingSteps& steps, const Question& question,
                                          const Options& options) {
        if (steps.above.empty()) {
            Answer none;
            none.method = Method::nothing_composed, none.both_directions = true;
            return {none};
        }
        const bool one = options.upper_only || steps.exact;
        CachedComposition* const below = one || steps.below.empty() ? nullptr : &cached(steps.below);
        return answers(CachedBracket{cached(steps.above, below), below, one}, question, options);
    }

    std::vector<Answer> answers(const CachedBracket& steps, const Question& question, const Options& options) {
        if (stop_ && *stop_) throw Stopped();
        if (before_question_) before_question_();
        const Steps& above = steps.above.steps();
        const auto is_symmetric = [](const CountedPair& step) { return step.pair->symmetric(); };
        const bool one_direction = std::all_of(above.begin(), above.end(), is_symmetric);
        std::vector<Answer> found;
        for (const Direction direction : {Direction::remove, Direction::add}) {
            const double other_upper = found.empty() ? 0.0 : found[0].upper;
            if (!found.empty() && (one_direction || other_upper > options.threshold)) break;
            if (other_upper > 0.0 && is_below(steps.above, direction, question, options, other_upper)) break;
            found.push_back(of_direction(steps, direction, question, options, other_upper));
            Answer& answer = found.back();
            answer.direction = direction, answer.both_directions = one_direction;
            answer.lower = options.upper_only ? 0.0 : answer.lower + 0.0;  // turns -0 into 0
        }
        if (found.size() == 2 && found[1].upper > found[0].upper) std::swap(found[0], found[1]);
        return found;
    }

    // One direction's answer. `other_upper` is the upper end of the other direction, 0 if this one
    // is asked first.
    Answer of_direction(const CachedBracket& steps, Direction direction, const Question& question,
                        const Options& options, double other_upper) {
        Answer best;
        best.upper = question.largest_answer();
        if (options.engine != EngineChoice::pld && answer_exactly(steps, direction, question, options, best)) {
            if (options.engine == EngineChoice::best)
                lower_end_from_composition(best, steps, direction, question, options);
            return best;
        }
        const bool with_caps = options.engine == EngineChoice::best;
        const double shift = with_caps ? dominating_shift(steps.above.steps()) : infinity;
        const double cap = with_caps ? smallest_cap(steps.above, direction, question, shift) : infinity;
        const bool only_log_delta = cap < 1e-320 && !question.for_epsilon;  // 0 up to rounding
        if (only_log_delta && (options.engine == EngineChoice::pld || !steps.above.has_contour())) {
            best.upper = cap, best.method = Method::total_variation;
            return best;
        }
        if (options.engine != EngineChoice::pld)
            best = both_ends(std::move(best), steps, steps.one_law_for_both_ends(),
                             [&](CachedComposition& side) { return by_contour(side, direction, question, options); });
        if (with_caps && question.for_epsilon) lower_end_from_largest_loss(best, steps, direction, question);
        const auto wants_more = [&] {
            return !best.settled(question) && !best.decided(options.threshold) && best.upper > other_upper;
        };
        if (with_caps && wants_more()) {
            const double known = best.upper;
            best = both_ends(std::move(best), steps, steps.one_for_both_ends, [&](CachedComposition& side) {
                return by_jump_expansion(side.steps(), direction, question, known, *kernels_, work_);
            });
        }
        if (options.engine != EngineChoice::contour && wants_more())
            best = by_losses(std::move(best), steps, direction, question, other_upper);
        if (with_caps && !options.upper_only) lower_end_from_one_step(best, steps, direction, question);
        if (with_caps) best = capped(std::move(best), steps, direction, question, shift, cap);
        if (with_caps && best.upper > other_upper) best = capped_by_renyi(std::move(best), steps, direction, question);
        if (with_caps) {
            const bool searching = !std::isnan(options.threshold);  // many questions, for which more is too slow
            if (!searching && wants_more()) cap_by_larger_rates(best, steps.above.steps(), direction, question);
            return best;
        }
        if (best.method == Method::none && options.engine == EngineChoice::contour)
            throw std::invalid_argument("engine='contour' has no answer for this composition at " +
                                        shortest_text(question.value) + "; use engine='auto'");
        if (best.method == Method::none)
            best.method = Method::pld;  // not asked: the other direction's end is the maximum
        return best;
    }

    // Lowers a wide bracket's upper end to that of the same steps at larger sampling rates, whose
    // jumps are less rare. Where that is much work, ever fewer rates are tried.
    void cap_by_larger_rates(Answer& best, const Steps& steps, Direction direction, const Question& question) {
        const double before = work_;
        for (int k = 1; k <= most_larger_rates; k += work_ - before < much_work ? 1 : k) {
            Steps larger;
            bool any = false;
            for (const CountedPair& step : steps) {
                const PairPointer pair = step.pair->at_larger_rate(k);
                any = any || pair;
                larger.push_back({pair ? pair : step.pair, step.count});
            }
            if (!any) return;
            CachedComposition cached(larger, *kernels_, cache_);
            const Answer found = by_contour(cached, direction, question, {EngineChoice::best, true});
            work_ += cached.work();
            if (found.method == Method::none || !(found.upper < best.upper)) continue;
            best.upper = found.upper, best.lower = min(best.lower, best.upper), best.method = Method::larger_rate;
            if (found.narrow(question)) return;
        }
    }

    // Asks an engine about steps.above. If those leak more than the true steps, their lower end may
    // exceed the truth; then the lower end comes from a second question, about steps.below. `one`
    // says that steps.above serve both.
    template <class Ask> static Answer both_ends(Answer best, const CachedBracket& steps, bool one, const Ask& ask) {
        Answer found = ask(steps.above);
        if (found.method == Method::none) return best;
        found.dominating_lower = found.lower;
        if (!one) {
            found.gap_is_numerical = steps.gap_is_numerical();
            const Answer attained = steps.below ? ask(*steps.below) : Answer{};
            found.attained_upper = attained.upper, found.lower = min(attained.lower, found.upper);
        }
        return better(std::move(best), std::move(found));
    }

    // Raises the lower end of a single step, which is the sum of many that are Gaussian for upper
    // ends alone, to what all those below leak together.
    void lower_end_from_composition(Answer& best, const CachedBracket& steps, Direction direction,
                                    const Question& question, const Options& options) {
        if (steps.one_law_for_both_ends() || !steps.below || best.method != Method::gaussian) return;
        const Steps& below = steps.below->steps();
        if (below.size() == 1 && below[0].count == 1.0) return;
        Answer attained = by_contour(*steps.below, direction, question, options);
        if (attained.method == Method::none) attained = compose_losses(below, direction, question, good_enough);
        best.lower = max(best.lower, min(attained.lower, best.upper));
        best.attained_upper = max(attained.upper, best.lower);
    }

    static Answer by_contour(CachedComposition& steps, Direction direction, const Question& question,
                             const Options& options) {
        Answer answer;
        answer.upper = question.largest_answer();
        if (!steps.has_contour() || !is_inside(question)) return answer;
        const contour::ContourResult found =
            steps.contours().ask(direction, question, options.upper_only ? nullptr : &answer.tried);
        if (!found.usable) return answer;
        answer.method = Method::contour, answer.contour = found;
        answer.lower = found.lower, answer.upper = found.upper;
        return answer;
    }

    // Discretised losses always answer. A first, rough bracket may show that the other direction
    // leaks more; then it suffices.
    Answer by_losses(Answer best, const CachedBracket& steps, Direction direction, const Question& question,
                     double other_upper) {
        const auto ask = [&](double tolerance) {
            return both_ends(best, steps, steps.one_for_both_ends, [&](CachedComposition& side) {
                return compose_losses(side.steps(), direction, question, tolerance);
            });
        };
        if (other_upper > 0.0) best = ask(rough);
        return best.upper > other_upper && !best.narrow(question) ? ask(good_enough) : best;
    }

    Answer compose_losses(const Steps& steps, Direction direction, const Question& question, double tolerance) {
        pld::PldBracket found{};
        const auto compose = [&](const std::atomic<bool>* stop) {
            std::vector<pld::Step> losses;
            for (const CountedPair& step : steps) losses.push_back({step.pair->loss_for_grid(direction), step.count});
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

    // Whether a direction certainly leaks no more than the other one's upper end.
    static bool is_below(CachedComposition& steps, Direction direction, const Question& question,
                         const Options& options, double other_upper) {
        if (!options.upper_only || options.engine == EngineChoice::pld || !(other_upper < infinity)) return false;
        if (!is_inside(question) || !steps.has_contour()) return false;
        return steps.contours().certainly_below(direction, question, other_upper);
    }

    // Whether the contour engine takes the question: not delta at infinity, nor epsilon at delta 0.
    static bool is_inside(const Question& question) {
        return question.for_epsilon ? question.value > 0.0 : question.value < infinity;
    }

    // The steps with what is known of them, in an object other than `taken`. They become the last
    // of those kept, so that the next call does not evict them.
    CachedComposition& cached(const Steps& steps, const CachedComposition* taken = nullptr) {
        const auto found = std::find_if(kept_.begin(), kept_.end(),
                                        [&](const auto& kept) { return kept.get() != taken && kept->serve(steps); });
        if (found != kept_.end()) {
            std::rotate(found, found + 1, kept_.end());
        } else {
            evict(max_kept - 1);
            kept_.push_back(std::make_unique<CachedComposition>(steps, *kernels_, cache_));
        }
        return *kept_.back();
    }

    // Drops the oldest compositions until `max_count` are left.
    void evict(std::size_t max_count) {
        while (kept_.size() > max_count) {
            work_ += kept_.front()->work();
            kept_.erase(kept_.begin());
        }
    }

    const simd::Kernels* kernels_;
    contour::ContourCache* cache_;
    const std::atomic<bool>* stop_;
    LongJob long_job_;
    std::function<void()> before_question_;
    double work_ = 0.0;
    std::vector<std::unique_ptr<CachedComposition>> kept_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
