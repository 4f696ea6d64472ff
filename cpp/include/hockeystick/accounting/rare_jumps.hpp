// delta and epsilon of many equal steps whose large losses are rare: by the number of steps that
// jump.
//
// A step jumps if its outcome is one of the jumps of a SplitLaw (cumulant/cumulant.hpp), of the
// mass p under P. With delta_n the curve of n steps of the bulk (accounting/bulk_curve.hpp),
//
//   delta(eps) = sum_j C(T, j) E_{j jumps} delta_{T-j}(eps - L_1 - ... - L_j).
//
// Each term is enclosed by the atoms of the jumps; from most_jumps + 1 jumps on, together at most
// C(T, j) p^j. Several jumps need fewer atoms, since they are rarer. Losses of many scales, which
// no contour line resolves at once, cost no more nodes than the bulk's. docs/core/accounting.md,
// "Rare jumps", has the proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/accounting/bulk_curve.hpp>
#include <hockeystick/accounting/gaussian_jumps.hpp>
#include <hockeystick/numeric/feasible_search.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

// Fewer atoms that still lie above: those between two that are kept are shared out to them such
// that the mean of e^-loss stays. A few too much in mass, for rounding.
inline std::vector<LossAtom> fewer_above(const std::vector<LossAtom>& atoms, std::size_t stride) {
    std::vector<LossAtom> kept;
    for (std::size_t first = 0; first < atoms.size(); first += stride) {
        const std::size_t next = std::min(first + stride, atoms.size() - 1);
        const double from = atoms[first].loss, to = atoms[next].loss, fall = -std::expm1(from - to);
        if (kept.empty()) kept.push_back({from, 0.0});
        double near = 0.0, far = 0.0;
        for (std::size_t k = first; k < std::min(first + stride, atoms.size()); ++k) {
            const double share = atoms[k].loss > from ? -std::expm1(from - atoms[k].loss) / fall * (1.0 + 1e-12) : 0.0;
            const double moved = atoms[k].loss < infinity ? min(share, 1.0) : 1.0;
            near += atoms[k].mass * (1.0 - moved), far += atoms[k].mass * moved;
        }
        kept.back().mass += near * (1.0 + 1e-12);
        kept.push_back({to, far * (1.0 + 1e-12)});
    }
    return kept;
}

// Fewer atoms that still lie below: neighbours are merged, at the mean of e^-loss.
inline std::vector<LossAtom> fewer_below(const std::vector<LossAtom>& atoms, std::size_t stride) {
    std::vector<LossAtom> merged;
    for (std::size_t first = 0; first < atoms.size(); first += stride) {
        const double from = atoms[first].loss;
        double mass = 0.0, fallen = 0.0;
        for (std::size_t k = first; k < std::min(first + stride, atoms.size()); ++k) {
            mass += atoms[k].mass;
            fallen -= atoms[k].mass * std::expm1(from - atoms[k].loss);
        }
        if (!(mass > 0.0)) continue;
        const double loss = from - std::log1p(-fallen / mass * (1.0 - 1e-12));
        merged.push_back({loss - 4.0 * unit_roundoff * std::fabs(loss), mass * (1.0 - 1e-12)});
    }
    return merged;
}

class RareJumps {
  public:
    static constexpr int most_jumps = 2;

    // The logarithm of the mass of P that should jump, where delta is about e^{log_delta}: so that
    // more than `most_jumps` of them have a probability far below delta.
    static double log_jump(double count, double log_delta) {
        return (log_delta - 14.0) / (most_jumps + 1) - 3.0 - std::log(count);
    }

    // `largest` is more than any epsilon that will be asked, and `usual` is near them.
    RareJumps(SplitLaw& law, double count, double usual, double largest, const simd::Kernels& kernels)
        : count_(count), most_more_(more_jumps(law.jump_p.upper, count)), left_out_(count * law.left_out),
          lines_(law, smoothing_share * usual, kernels) {
        for (int j = 1; j <= most_jumps && j <= count; ++j) {
            const double n = count - j;
            const std::size_t stride = (law.above.size() + most_atoms[j - 1] - 1) / most_atoms[j - 1];
            by_number_.push_back({j, binomial(j), stride == 1 ? law.above : fewer_above(law.above, stride),
                                  stride == 1 ? law.below : fewer_below(law.below, stride),
                                  BulkCurve(lines_, n, first_knots(n, largest))});
        }
    }

    Interval delta(double eps) const { return bracket(lines_.delta(count_, eps), eps); }

    // More knots where they narrow delta(eps).
    Interval delta_refined(double eps) {
        const Interval of_bulk = lines_.delta(count_, eps);
        Interval found = bracket(of_bulk, eps);
        for (int round = 0; round < most_rounds && refine(eps, found); ++round) found = bracket(of_bulk, eps);
        return found;
    }

    // A bracket of the smallest epsilon at which delta(epsilon) <= delta, where this is known to be
    // below `largest`.
    Interval epsilon(double delta, double largest) {
        const double level = std::log(delta) * up;  // at most log delta
        Evaluation low{0.0, std::log(this->delta(0.0).upper)}, high{largest, -infinity};
        if (low.f <= level) return {0.0, 0.0};
        for (const double resolution : {1e-2, 1e-4, 1e-9}) {
            const auto f = [&](double eps) { return std::log(this->delta(eps).upper); };
            if (!((high.f = f(high.x)) <= level)) return {0.0, infinity};
            const FeasibleBracket s = narrow_feasible(
                f, level, {high, low}, [=](double eps) { return resolution * eps; }, false, 0.01 * resolution);
            const Interval found = delta_refined(s.good.x);
            if (resolution == 1e-9 || s.good.x == 0.0) return {below(s.good.x, delta), s.good.x};
            const double reach = 4.0 * resolution + std::log(found.upper / found.lower);
            high.x = min(s.good.x * (1.0 + resolution), largest), low = {s.bad.x * max(1.0 - reach, 0.0), 0.0};
            low.f = f(low.x);
            if (low.f <= level) low = {0.0, 0.0};
        }
        return {0.0, infinity};
    }

    double work() const { return lines_.work(); }

  private:
    struct Jumps {
        int number;
        double ways;  // C(T, number)
        std::vector<LossAtom> above, below;
        BulkCurve curve;
    };
    static constexpr double smoothing_share = 1.5e-3;        // of epsilon
    static constexpr std::size_t most_atoms[] = {1024, 64};  // for each of so many jumps
    static constexpr int most_rounds = 8;
    static constexpr double enough = 1e-6, most_knots = 400;

    double binomial(int j) const {
        double ways = 1.0;
        for (int k = 0; k < j; ++k) ways *= (count_ - k) / (k + 1.0);
        return ways;
    }
    // The probability of more jumps: at most the mean number of sets of so many steps that jump.
    static double more_jumps(double p, double count) {
        double sum = 1.0;
        for (int k = 0; k <= most_jumps; ++k) sum *= max(count - k, 0.0) / (k + 1.0) * p;
        return sum * (1.0 + 1e-14);
    }

    // From well below the bulk's mean to `largest`.
    std::vector<double> first_knots(double n, double largest) {
        const double deviation = min(max(lines_.deviation(n), 1e-4 * largest), largest), middle = lines_.mean(n);
        std::vector<double> found;
        for (const double x : {-6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0}) found.push_back(middle + x * deviation);
        for (double x = 6.0 * deviation; middle + x < largest; x *= 1.4) found.push_back(middle + x);
        found.push_back(max(largest, found.back() + deviation));
        return found;
    }

    // An eps close below this one where delta(eps) is certainly larger; 0 if there is none.
    double below(double eps, double delta) const {
        const double step = 1e-3, here = std::log(this->delta(eps).lower);
        const double slope = max((std::log(this->delta(eps * (1.0 - step)).lower) - here) / step, 1e-3);
        const double start = max((std::log(delta) - here) / slope, 0.0) + 1e-9;
        for (double reach = start * (1.0 + step); reach < 1.0; reach *= 1.5) {
            const double lower = eps * (1.0 - reach);
            if (this->delta(lower).lower > delta) return lower;
        }
        return 0.0;
    }

    // Calls visit(mass, eps - sum of losses) for each choice of so many atoms, in their order.
    template <class Visit>
    static void for_choices(const std::vector<LossAtom>& atoms, int number, double mass, double eps,
                            const Visit& visit) {
        for (const LossAtom& atom : atoms) {
            if (atom.mass == 0.0) continue;
            const double rest = atom.loss < infinity ? eps - atom.loss : -infinity;
            if (number == 1) visit(mass * atom.mass, rest);
            else for_choices(atoms, number - 1, mass * atom.mass, rest, visit);
        }
    }

    Interval bracket(Interval sum, double eps) const {
        sum.upper += most_more_ + left_out_;
        for (const Jumps& j : by_number_) {
            for_choices(j.above, j.number, j.ways * (1.0 + 1e-12), eps,
                        [&](double mass, double rest) { sum.upper += mass * j.curve.upper(rest); });
            for_choices(j.below, j.number, j.ways * (1.0 - 1e-12), eps,
                        [&](double mass, double rest) { sum.lower += mass * j.curve.lower(rest); });
        }
        return {max(sum.lower * (1.0 - 1e-12), 0.0), min(sum.upper * (1.0 + 1e-12), 1.0)};
    }

    // Splits the intervals between knots where the bounds of a curve, as far as they matter, lie
    // further apart than wanted; false if there are none.
    bool refine(double eps, const Interval& found) {
        bool any = false;
        for (Jumps& j : by_number_) {
            std::vector<double> gaps(j.curve.knots().size() + 1, 0.0);
            for_choices(j.above, j.number, j.ways, eps, [&](double mass, double rest) {
                gaps[j.curve.next_knot(rest)] += mass * (j.curve.upper(rest) - j.curve.lower(rest));
            });
            const double count = static_cast<double>(gaps.size()), allowed = enough * found.upper / count;
            std::vector<std::size_t> wide;
            for (std::size_t k = 1; k + 1 < gaps.size(); ++k)
                if (gaps[k] > allowed) wide.push_back(k);
            if (wide.empty() || count > most_knots) continue;
            j.curve.split(lines_, wide);
            any = true;
        }
        return any;
    }

    double count_, most_more_, left_out_;
    mutable BulkLines lines_;
    std::vector<Jumps> by_number_;
};

// The law of this pair for a delta of about e^{log_delta} after `count` steps, split; null if it is
// not one of Gaussian pieces.
inline std::unique_ptr<SplitLaw> split_for(const Pair& pair, Direction direction, double count, double log_delta,
                                           const simd::Kernels& kernels) {
    constexpr double deep = 25.0;  // what is left out is e^-deep of delta
    const double log_least = log_delta - std::log(count) - deep;
    GaussianLawBuilder law(std::sqrt(-2.0 * log_least), RareJumps::log_jump(count, log_delta));
    if (!pair.has_cumulant(1.0) || !pair.add_law(1.0, direction, law)) return nullptr;
    return split_law(std::move(law), log_least, {&kernels, std::make_shared<FourierWorkspace>()});
}

// The answer for equal steps whose law can be split; none for others. `known_upper` is an upper
// end. Adds the points that it visits to `work`.
inline Answer by_rare_jumps(const Steps& steps, Direction direction, const Question& question, double known_upper,
                            const simd::Kernels& kernels, double& work) {
    constexpr double least_log_delta = -600.0;
    Answer answer;
    answer.upper = question.largest_answer();
    if (steps.size() != 1 || !(question.value > 0.0 && question.value < infinity)) return answer;
    const double count = steps[0].count;
    const OneStep step(steps[0].pair->loss(direction));
    const double log_delta =
        std::log(question.for_epsilon ? question.value : min(count * step.delta_above(question.value), known_upper));
    if (!(log_delta > least_log_delta)) return answer;
    const auto ask = [&](double usual, double largest) {
        const std::unique_ptr<SplitLaw> law = split_for(*steps[0].pair, direction, count, log_delta, kernels);
        if (!law) return Interval{0.0, infinity};
        RareJumps jumps(*law, count, usual, largest, kernels);
        const Interval found =
            question.for_epsilon ? jumps.epsilon(question.value, largest) : jumps.delta_refined(question.value);
        work += jumps.work();
        return found;
    };
    Interval found{0.0, infinity};
    if (question.for_epsilon) {
        const double alone = step.epsilon(question.value / count).lower;  // by one large loss
        for (const double times : {2.0, 16.0, 128.0}) {                   // a wide range needs many knots
            const double largest = min(1.01 * known_upper, times * alone);
            if (!(largest > 0.0 && largest < infinity) || found.upper < infinity) break;
            found = ask(min(alone, largest), largest);
        }
    } else {
        found = ask(question.value, question.value);
    }
    if (!(found.upper < infinity)) return answer;
    answer.method = Method::rare_jumps, answer.lower = found.lower, answer.upper = found.upper;
    return answer;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
