// Chooses the engine that answers for a composition. No other file chooses: Python, C, C++ and the
// grids of DP-SGD all ask this one.
//
// The probability that a step reveals the data set is factored out first (accounting/revealed.hpp).
// For the rest, `Engine::of_direction` has the list of all that may bracket or move an end, in order:
// closed forms, the contour engine, losses on a graded grid and on one of equal cells, then what raises a lower end and what
// caps an upper end. docs/core/accounting.md has the table ("The list").
//
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
#include <hockeystick/accounting/revealed.hpp>
#include <hockeystick/numeric/floating_environment.hpp>
#include <hockeystick/pld/composition.hpp>
#include <hockeystick/pld/graded_composition.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

namespace tune {
inline constexpr double rough = 1.0;           // a relative width that any bracket meets
inline constexpr double few_steps = 12.0;      // for more, a smoothed line is quicker than a graded grid, and narrower
inline constexpr std::size_t max_kept = 2;     // compositions: one for upper ends, one for lower ends
inline constexpr double below_grids = 1e-290;  // a delta of which a graded grid knows little: 0.5 % of its logarithm
inline constexpr double no_double = 1e-320;    // a delta below is 0 but for its logarithm
inline constexpr double spared = 1e-6;         // of delta, for what is rare and leaks much
inline constexpr double first_spared = 1e-14;  // before delta is known
}  // namespace tune

// One direction of a question, and what is known of its answer.
struct Search {
    const CachedBracket& steps;
    const Direction direction;
    const Question& question;
    const Options& options;
    const double other_upper;  // the upper end of the other direction, 0 if this one is asked first
    Answer best{};
    enum class State { open, exact, closed } state = State::open;  // exact: by a closed form
    double shift = infinity;                                       // of one Gaussian step that dominates all
    double cap = infinity;                                         // of delta
    double order = 0.0;                                            // of the least bound by Renyi divergences

    bool open() const { return state == State::open; }
    // Whether bounds by closed forms and by other engines may be added to what was asked for.
    bool by_any() const { return open() && options.engine == EngineChoice::best; }
    bool by_contour() const { return open() && options.engine != EngineChoice::pld; }
    bool wants_more() const {
        return open() && !best.settled(question) && !best.decided(options.threshold) && best.upper > other_upper &&
               !below_grids();
    }
    bool below_grids() const {
        return !question.for_epsilon && best.upper < tune::below_grids && of_one_gaussian_law();
    }

    // Steps of one law of Gaussian pieces, such as samples of Gaussian noise: where they are few, or large
    // losses rare, a graded grid answers. Other steps are narrower by lines and equal cells.
    bool of_one_gaussian_law() const {
        const Steps& all = steps.above.steps();
        return by_any() && all.size() == 1 && all[0].pair->has_cutoff(1.0, direction);
    }
    bool worth_smoothing() const { return !of_one_gaussian_law() || steps.above.steps()[0].count > tune::few_steps; }

    // The steps for the lower end; null if nothing is composed below.
    CachedComposition* attained() const { return steps.one_for_both_ends ? &steps.above : steps.below; }
    double value() const { return question.value; }
    void set(double lower, double upper, Method method) {
        best.lower = lower, best.upper = upper, best.method = method;
        state = State::exact;
    }
    void lower_to(double upper, Method method) {
        if (upper < best.upper) best.upper = upper, best.method = method;
    }
};

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
        if (steps.empty() || discloses(steps) || has_rare(steps) || !alternatives(steps).empty())
            return answers({steps, steps, true}, question, options)[0].upper;
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
    // Of two dominating compositions, by all pairs or by all alternatives, the one that leaks less.
    std::vector<Answer> answers_of_all(const BracketingSteps& steps, const Question& question, const Options& options) {
        std::vector<Answer> found = answers_of_pairs(steps, question, options);
        const Steps others = alternatives(steps.above);
        if (others.empty() || found[0].upper <= options.threshold) return found;
        const Options compared{options.engine, true, found[0].upper};
        if (!(answers_of_pairs({others, others, true}, question, compared)[0].upper < found[0].upper)) return found;
        return answers_of_pairs({others, steps.below, false}, question, options);
    }

    std::vector<Answer> answers_of_pairs(const BracketingSteps& steps, const Question& question,
                                         const Options& options) {
        const bool rare = has_rare(steps.above);
        if (!rare && !discloses(steps.above) && !discloses(steps.below))
            return concealed_answers(steps, question, options);
        const auto ask = [&](const Concealed& above) {
            return answers_beside_revealed(steps, question, options.upper_only, above,
                                           [&](const BracketingSteps& others, const Question& other) {
                                               return concealed_answers(others, other, options);
                                           });
        };
        if (!rare || question.for_epsilon)
            return ask(concealed(steps.above, rare ? tune::spared * question.value : 0.0));
        // How much of a delta may be spared is known when the delta is.
        double spared = tune::first_spared;
        for (Concealed above = concealed(steps.above, spared);;) {
            std::vector<Answer> found = ask(above);
            const double upper = found[0].upper, wanted = tune::spared * upper;
            const bool more = wanted > 2.0 * spared && !found[0].narrow(question), less = wanted < 0.5 * spared;
            if (!more && !less) return found;
            spared = more || upper > 1e3 * spared ? wanted : spared * spared;  // else it is mostly what was spared
            Concealed next = concealed(steps.above, spared);
            if (equal(next.steps, above.steps)) return found;
            if (more) {
                std::vector<Answer> other = ask(next);
                return other[0].upper < upper ? other : found;
            }
            above = std::move(next);
        }
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

    // One way to a bracket, or to a better end: what it is called in the log of what was tried, when
    // it applies, and what it does to the answer.
    struct Entry {
        const char* name;
        bool (*applies)(const Search&);
        void (Engine::*bracket)(Search&);
    };

    // One direction's answer: walks the list.
    Answer of_direction(const CachedBracket& steps, Direction direction, const Question& question,
                        const Options& options, double other_upper) {
        static constexpr Entry entries[] = {
            {"closed form", [](const Search& s) { return s.by_contour(); }, &Engine::by_closed_form},
            {"all steps below", [](const Search& s) { return s.state == Search::State::exact; },
             &Engine::raise_to_composition},
            {"total variation", [](const Search& s) { return s.open(); }, &Engine::find_caps},
            {"contour", [](const Search& s) { return s.by_contour(); }, &Engine::by_contour},
            {"near the largest loss", [](const Search& s) { return s.by_any() && s.question.for_epsilon; },
             &Engine::raise_near_largest_loss},
            {"graded grid of losses", [](const Search& s) { return s.wants_more() && s.of_one_gaussian_law(); },
             &Engine::by_graded_grid},
            {"discretised losses",
             [](const Search& s) { return s.wants_more() && s.options.engine != EngineChoice::contour; },
             &Engine::by_losses},
            {"graded grid of losses",
             [](const Search& s) { return s.by_any() && s.wants_more() && !s.of_one_gaussian_law(); },
             &Engine::by_graded_grid},
            {"one step alone", [](const Search& s) { return s.by_any() && !s.options.upper_only; },
             &Engine::raise_to_one_step},
            {"noise without sampling, total variation", [](const Search& s) { return s.by_any(); },
             &Engine::lower_to_caps},
            {"near the largest loss", [](const Search& s) { return s.by_any() && !s.question.for_epsilon; },
             &Engine::lower_near_largest_loss},
            {"Renyi divergences", [](const Search& s) { return s.by_any() && s.best.upper > s.other_upper; },
             &Engine::lower_to_renyi},
            {"data sets chosen for the question",
             [](const Search& s) { return s.options.engine == EngineChoice::best && !s.options.upper_only; },
             &Engine::raise_to_chosen_data},
        };
        Search s{steps, direction, question, options, other_upper};
        s.best.upper = question.largest_answer();
        contour::StrategyLog tried;
        for (const Entry& entry : entries) {
            if (!entry.applies(s)) continue;
            const double lower = s.best.lower, upper = s.best.upper;
            (this->*entry.bracket)(s);
            if (options.upper_only) continue;
            const bool moved = s.best.lower != lower || s.best.upper != upper;
            if (moved && s.best.tried.empty())
                s.best.tried.push_back({entry.name, false, true, s.best.lower, s.best.upper});
            tried.insert(tried.end(), s.best.tried.begin(), s.best.tried.end());
            s.best.tried.clear();
        }
        s.best.tried = std::move(tried);
        if (s.by_any()) s.best.lower = min(s.best.lower, s.best.upper);  // ends may pass each other by their rounding
        if (s.best.method != Method::none || options.engine == EngineChoice::best) return std::move(s.best);
        if (options.engine == EngineChoice::contour)
            throw std::invalid_argument("engine='contour' has no answer for this composition at " +
                                        shortest_text(question.value) + "; use engine='auto'");
        s.best.method = Method::pld;  // not asked: the other direction's end is the maximum
        return std::move(s.best);
    }

    // The exact formula of one step, and what closed forms say beyond the largest loss and above the
    // total variation (accounting/closed_forms.hpp).
    void by_closed_form(Search& s) {
        const Steps& above = s.steps.above.steps();
        if (s.options.engine == EngineChoice::best && above.size() == 1 && above[0].count == 1.0) return by_one_step(s);
        const Limits limit = limits(s);
        if (!s.question.for_epsilon) {
            if (s.value() < limit.largest_loss.upper && s.value() < infinity) return;
            return s.set(limit.infinite_mass.lower, limit.infinite_mass.upper, Method::beyond_largest_loss);
        }
        if (s.value() < limit.infinite_mass.lower) return s.set(infinity, infinity, Method::infinite_mass);
        if (s.value() == 0.0)
            return s.set(max(limit.largest_loss.lower, 0.0),
                         limit.infinite_mass.upper > 0.0 ? infinity : max(limit.largest_loss.upper, 0.0),
                         Method::largest_loss);
        if (s.value() >= s.steps.above.total_variation(s.direction)) return s.set(0.0, 0.0, Method::total_variation);
        const bool bounded = limit.largest_loss.upper < infinity && limit.infinite_mass.upper == 0.0;
        if (s.options.engine == EngineChoice::best && bounded)
            s.best.upper = max(limit.largest_loss.upper, 0.0), s.best.method = Method::largest_loss;
    }

    void by_one_step(Search& s) {
        const auto ask = [&](const CountedPair& step) { return alone(step, s); };
        const CountedPair& only = s.steps.above.steps()[0];
        const Interval above = ask(only);
        s.set(above.lower, above.upper, only.pair->is_gaussian() ? Method::gaussian : Method::one_step);
        if (s.steps.one_law_for_both_ends()) return;
        Answer& answer = s.best;
        answer.gap_is_numerical = s.steps.gap_is_numerical();
        answer.dominating_lower = above.lower;
        const Steps& below = s.steps.below ? s.steps.below->steps() : Steps{};
        answer.lower = below.empty() ? 0.0 : infinity, answer.attained_upper = below.size() > 1 ? infinity : 0.0;
        for (const CountedPair& step : below) {
            const Interval attained = ask(step);
            answer.lower = min(answer.lower, attained.lower);
            answer.attained_upper = max(answer.attained_upper, attained.upper);
        }
        if (answer.method == Method::one_step) answer.method = Method::one_step_between_pairs;
    }

    static Interval alone(const CountedPair& step, const Search& s) {
        const OneStep one(step.pair->loss(s.direction));
        return s.question.for_epsilon ? one.epsilon(s.value()) : one.delta(s.value());
    }

    // Limits whose upper ends are those of the steps above, and whose lower ends hold for those
    // below.
    static Limits limits(const Search& s) {
        Limits limit = s.steps.above.limits(s.direction);
        if (s.steps.one_law_for_both_ends()) return limit;
        const Limits least = s.steps.below ? s.steps.below->limits(s.direction) : Limits{{0.0, 0.0}, {0.0, 0.0}};
        limit.largest_loss.lower = min(limit.largest_loss.lower, least.largest_loss.lower);
        limit.infinite_mass.lower = min(limit.infinite_mass.lower, least.infinite_mass.lower);
        return limit;
    }

    // Raises the lower end of a single step, which is the sum of many that are Gaussian for upper
    // ends alone, to what all those below leak together.
    void raise_to_composition(Search& s) {
        if (s.options.engine != EngineChoice::best || s.best.method != Method::gaussian) return;
        if (s.steps.one_law_for_both_ends() || !s.steps.below) return;
        const Steps& below = s.steps.below->steps();
        if (below.size() == 1 && below[0].count == 1.0) return;
        const Answer attained = ask_below(*s.steps.below, s);
        s.best.lower = max(s.best.lower, min(attained.lower, s.best.upper));
        s.best.attained_upper = max(attained.upper, s.best.lower);
    }

    Answer ask_below(CachedComposition& below, const Search& s) {
        const Answer found = ask_contour(below, s.direction, s.question, s.options);
        return found.method == Method::none ? compose_losses(below.steps(), s, good_enough) : found;
    }

    // Raises the lower end to what data sets attain that are chosen for this question: for an exponential
    // mechanism those whose losses are worst at the order of the best Renyi bound. Sums of equal ones lie on a
    // lattice, over which the end rises and falls; then better ones are looked for nearby.
    void raise_to_chosen_data(Search& s) {
        if (!s.steps.below) return;
        const Steps& below = s.steps.below->steps();
        const auto has_choice = [](const CountedPair& step) { return step.pair->attained_at(2.0) != nullptr; };
        if (std::none_of(below.begin(), below.end(), has_choice)) return;
        const bool one = below.size() == 1 && below[0].count == 1.0;
        const auto attained = [&](double log_more) {  // of an order of 1/2 + e^log_more
            Steps chosen = below;
            for (CountedPair& step : chosen)
                if (PairPointer worst = step.pair->attained_at(0.5 + std::exp(log_more))) step.pair = std::move(worst);
            if (one) return alone(chosen[0], s).lower;
            CachedComposition cached(chosen, *kernels_, cache_);
            const double lower = ask_below(cached, s).lower;
            work_ += cached.work();
            return lower;
        };
        const double order =
            s.order > 0.0 ? s.order : renyi_bound(s.steps.above.steps(), s.direction, s.question).order;
        double at = std::log(min(max(order, 1.0), 1e4)), best = attained(at);
        if (one)  // far from it the end may be 0 all around
            if (const double found = attained(0.0); found > best) best = found, at = 0.0;
        double step = one ? 2.0 : below.size() == 1 ? 0.5 : 0.25;
        for (int asked = one ? 60 : below.size() == 1 ? 10 : 3; asked > 0; step *= 0.5)
            for (const double way : {-step, step})
                for (; asked-- > 0; at += way)
                    if (const double found = attained(at + way); found > best) best = found;
                    else break;
        s.best.lower = max(s.best.lower, min(best, s.best.upper));
    }

    // The smaller upper bound of delta by total variation and by the noise without sampling. It
    // answers for a delta that is 0 but for its logarithm, which the contour alone knows.
    void find_caps(Search& s) {
        if (s.by_any()) {
            s.shift = dominating_shift(s.steps.above.steps());
            if (s.question.for_epsilon) return;
            s.cap = s.steps.above.total_variation(s.direction);
            if (s.shift < infinity && s.shift > 0.0) s.cap = min(s.cap, gaussian_step(s.shift).delta(s.value()).upper);
        }
        if (s.cap >= tune::no_double || s.steps.above.has_contour()) return;
        s.best.upper = s.cap, s.best.method = Method::total_variation;
        s.state = Search::State::closed;
    }

    void by_contour(Search& s) {
        contour::StrategyLog tried;
        s.best = both_ends(std::move(s.best), s.steps, s.steps.one_law_for_both_ends(), [&](CachedComposition& side) {
            Answer found = ask_contour(side, s.direction, s.question, s.options, s.worth_smoothing());
            if (&side == &s.steps.above) tried.swap(found.tried);
            return found;
        });
        s.best.tried = std::move(tried);
    }

    // Where the bracket of epsilon is not narrow.
    void raise_near_largest_loss(Search& s) {
        if (s.attained() && !s.best.narrow(s.question))
            s.best.lower = max(s.best.lower, s.attained()->epsilon_near_largest_loss(s.direction, s.value()));
    }

    // Losses of many scales, which neither a line nor a grid of equal cells resolves at once.
    void by_graded_grid(Search& s) {
        const Steps& steps = s.steps.above.steps();
        if (std::any_of(steps.begin(), steps.end(),
                        [](const CountedPair& step) { return step.pair->composes_loosely(); }))
            return;
        const Interval known{0.0, s.best.upper};
        s.best = both_ends(std::move(s.best), s.steps, s.steps.one_for_both_ends, [&](CachedComposition& side) {
            Answer answer;
            answer.upper = s.question.largest_answer();
            if (!is_inside(s.question) || s.value() == 0.0) return answer;
            std::vector<pld::Step> losses;
            for (const CountedPair& step : side.steps())
                losses.push_back({step.pair->loss_for_grid(s.direction), step.count});
            pld::GradedComposition graded(std::move(losses), stop_);
            const Interval found = graded.bracket({s.question.for_epsilon, s.value()}, known, good_enough);
            work_ += graded.work();
            if (found.lower == known.lower && found.upper == known.upper) return answer;
            answer.method = Method::graded_grid, answer.lower = found.lower, answer.upper = found.upper;
            return answer;
        });
    }

    // Discretised losses always answer. A first, rough bracket may show that the other direction
    // leaks more; then it suffices.
    void by_losses(Search& s) {
        const auto ask = [&](double tolerance) {
            s.best = both_ends(s.best, s.steps, s.steps.one_for_both_ends,
                               [&](CachedComposition& side) { return compose_losses(side.blocks(), s, tolerance); });
        };
        if (s.other_upper > 0.0) ask(tune::rough);
        if (s.best.upper > s.other_upper && !s.best.narrow(s.question)) ask(good_enough);
        if (s.best.method == Method::pld && s.steps.above.in_blocks()) s.best.method = Method::pld_of_blocks;
    }

    // Raises the lower end to what one step alone leaks, where the bracket is wide: who sees all
    // releases may look at that step's only, and no processing raises the divergence.
    void raise_to_one_step(Search& s) {
        if (!s.attained() || s.best.settled(s.question)) return;
        for (const CountedPair& step : s.attained()->steps()) s.best.lower = max(s.best.lower, alone(step, s).lower);
    }

    void lower_to_caps(Search& s) {
        if (!s.question.for_epsilon)
            return s.lower_to(s.cap, s.shift < infinity ? Method::gaussian_without_sampling : Method::total_variation);
        if (!(s.shift < infinity && s.shift > 0.0)) return;
        const OneStep whole = gaussian_step(s.shift);
        const bool no_help = s.best.upper < infinity && whole.delta(s.best.upper).lower > s.value();
        if (!no_help) s.lower_to(whole.epsilon(s.value()).upper, Method::gaussian_without_sampling);
    }

    void lower_near_largest_loss(Search& s) {
        if (!s.best.narrow(s.question))
            s.lower_to(s.steps.above.near_largest_loss(s.direction, s.value()), Method::near_largest_loss);
    }

    // Where the engines' end is not sharp, or a pair leaks more in composition than the mechanism
    // does. A contour's end is at most Chernoff's bound, which is sharper.
    void lower_to_renyi(Search& s) {
        const Steps& above = s.steps.above.steps();
        const auto is_loose = [](const CountedPair& step) { return step.pair->composes_loosely(); };
        const bool served = s.best.sharp(s.question) || s.best.method == Method::contour;
        if (served && std::none_of(above.begin(), above.end(), is_loose)) return;
        const RenyiBound bound = renyi_bound(above, s.direction, s.question);
        s.order = bound.order;
        if (bound.value < s.best.upper) s.best.order = bound.order;
        s.lower_to(bound.value, Method::renyi);
        if (const BoundedRangeSteps* worst = s.steps.above.range_steps())
            s.lower_to(s.question.for_epsilon ? worst->epsilon(s.value()) : worst->delta(s.value()),
                       Method::adaptive_range);
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

    static Answer ask_contour(CachedComposition& steps, Direction direction, const Question& question,
                              const Options& options, bool smoothed = true) {
        Answer answer;
        answer.upper = question.largest_answer();
        if (!steps.has_contour() || !is_inside(question)) return answer;
        const contour::ContourResult found =
            steps.contours().ask(direction, question, options.upper_only ? nullptr : &answer.tried, smoothed);
        if (!found.usable) return answer;
        answer.method = Method::contour, answer.contour = found;
        answer.lower = found.lower, answer.upper = found.upper;
        return answer;
    }

    Answer compose_losses(const Steps& steps, const Search& s, double tolerance) {
        pld::PldBracket found{};
        const auto compose = [&](const std::atomic<bool>* stop) {
            std::vector<pld::Step> losses;
            for (const CountedPair& step : steps) losses.push_back({step.pair->loss_for_grid(s.direction), step.count});
            pld::PldSettings settings;
            settings.tolerance = tolerance, settings.stop = stop;
            const pld::Composition composition(std::move(losses), settings);
            found = s.question.for_epsilon ? composition.epsilon(s.value()) : composition.delta(s.value());
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
            evict(tune::max_kept - 1);
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
