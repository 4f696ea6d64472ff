// delta and epsilon of many equal steps whose large losses are rare: by the number of steps that
// jump.
//
// A step jumps if its outcome is one of the jumps of a SplitLaw (cumulant/cumulant.hpp), of the
// mass p under P. With delta_n the curve of n steps of the bulk (BulkCurve),
//
//   delta(eps) = sum_j C(T, j) E_{j jumps} delta_{T-j}(eps - L_1 - ... - L_j).
//
// Each term is enclosed by the atoms of the jumps (GaussianJumps); from most_jumps + 1 jumps on,
// together at most C(T, j) p^j. Several jumps need fewer atoms, since they are rarer. Losses of
// many scales, which no contour line resolves at once, cost no more nodes than the bulk's.
// docs/core/accounting.md, "Rare jumps", has the proof. contour/jump_bounds.hpp bounds much smaller
// deltas by the number of jumps, without a sum over nodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/accounting/question.hpp>
#include <hockeystick/contour/line.hpp>
#include <hockeystick/contour/line_bracket.hpp>
#include <hockeystick/numeric/feasible_search.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

namespace sound {
inline constexpr double of_sums = 1e-12;     // a few sums and exponentials, relatively; also the ways to choose steps
inline constexpr double of_tail = 1e-14;     // the logarithm of a normal tail, by its size
inline constexpr double of_point = 1e-15;    // each further shift of a mixture, and x^2 of a point x
inline constexpr double of_left_out = 1e-9;  // the exponential of log_left_out
}  // namespace sound

namespace tune {
inline constexpr double tolerance = -21.0;  // of alias and truncation, relatively, as a logarithm
inline constexpr double few_nodes = 2000.0, most_nodes = 1 << 15;
inline constexpr double log_below_chernoff = 3.0;        // delta is that much below Chernoff's bound, roughly
inline constexpr double log_more_jumps = 14.0;           // what more jumps may add is e^-14, 1e-6, of delta
inline constexpr double log_left_out = 25.0;             // what is left out is e^-25 of delta
inline constexpr double smoothing_share = 1.5e-3;        // of epsilon
inline constexpr std::size_t most_atoms[] = {1024, 64};  // for each of so many jumps
inline constexpr int most_rounds = 8;                    // of more knots
inline constexpr double enough = 1e-6, most_knots = 400;
inline constexpr double least_log_delta = -600.0;
}  // namespace tune

// delta(eps) of many steps of a bulk (SplitLaw, cumulant/cumulant.hpp), as a curve between bounds.
//
// The bulk is no probability distribution: its mass p under P, and r under Q, is less than 1. Its
// delta is E (1 - e^{eps - L})^+ over its outcomes, a convex function of y = e^eps that falls from
// p^n at y = 0, no faster than r^n y there. Sums on contour lines bound it at knots. Between two of
// them it is at most its chord, and at least the chords of both neighbouring intervals, extended.
// docs/core/accounting.md, "Rare jumps".

// Sums over lines for one bulk. Not for several threads at once.
class BulkLines {
  public:
    // Lines of too many nodes get one more Gaussian step, of the shift `smoothing`
    // (contour/line.hpp).
    BulkLines(SplitLaw& law, double smoothing, const simd::Kernels& kernels)
        : p_{1.0 - law.jump_p.upper - law.left_out - unit_roundoff, 1.0 - law.jump_p.lower},
          r_{1.0 - law.jump_q.upper - law.left_out - unit_roundoff, 1.0 - law.jump_q.lower}, smoothing_(smoothing),
          summer_(kernels), ledger_(0, parts_of(law), kernels, cache_) {}

    // p^n and r^n.
    Interval whole_p(double n) const { return power(p_, n); }
    Interval whole_q(double n) const { return power(r_, n); }

    // A bracket of delta(eps) of n steps.
    Interval delta(double n, double eps) {
        if (n == 0.0) {
            const double exact = -std::expm1(min(eps, 0.0));
            return {exact * down, min(exact * up, 1.0)};
        }
        const int index = ledger_.best_tilt(n, eps) & ~3;  // few tilts, which share their nodes
        const double bound = contour::log_chernoff(ledger_.at(index), {n}, eps);
        const double most = min(whole_p(n).upper, std::exp(bound + 1e-9 * (1.0 + std::fabs(bound))));
        const auto line_with = [&](double smoothing) {
            return contour::choose_line(ledger_, index, {n, smoothing}, eps,
                                        bound - tune::log_below_chernoff + tune::tolerance);
        };
        contour::Line line = line_with(0.0);
        if (line.node_count > tune::few_nodes) line = line_with(smoothing_);
        if (line.node_count > tune::most_nodes || !line.prepare()) return {0.0, most};
        const contour::LineSum s = summer_(line, eps);
        const contour::Excess excess = contour::excess_of(summer_, line, s, eps);
        const double error = excess.alias + excess.smoothing + s.error();
        if (!(std::isfinite(s.value) && std::isfinite(error) && s.possible())) return {0.0, most};
        const double margin = four_roundings * (4.0 + std::fabs(s.log_unit)), unit = std::exp(s.log_unit);
        return {max(s.value - error, 0.0) * unit * (1.0 - margin),
                min((s.value + s.error()) * unit * (1.0 + margin), most)};
    }

    // Roughly the mean and the standard deviation of the loss of n steps.
    double mean(double n) {
        const contour::TiltedMoment &one = ledger_.at(middle_), &other = ledger_.at(middle_ - 8);
        return n * (one.value - other.value) / (one.c - other.c);
    }
    double deviation(double n) { return std::sqrt(n * log_variance_); }

    double work() const { return ledger_.work() + summer_.work(); }

  private:
    std::vector<contour::ContourPart> parts_of(SplitLaw& law) {
        log_variance_ = std::exp(law.bulk->log_variance());
        std::vector<contour::ContourPart> parts;
        parts.push_back({std::move(law.bulk), 1.0});
        return parts;
    }
    static Interval power(const Interval& base, double n) {
        const auto of = [n](double x) { return x > 0.0 ? std::exp(n * std::log1p(x - 1.0)) : 0.0; };
        const double margin = four_roundings * (n + 4.0);  // 1 - mass is rounded
        return {of(base.lower) * (1.0 - margin), min(of(base.upper) * (1.0 + margin), 1.0)};
    }

    Interval p_, r_;
    double smoothing_;
    double log_variance_ = 0.0;
    int middle_ = 0;
    contour::NodeCache cache_;
    contour::LineSummer summer_;
    contour::TruncatedLedger ledger_;
};

// The curve of n steps, from its knots.
class BulkCurve {
  public:
    // At least two knots, which rise.
    BulkCurve(BulkLines& lines, double n, const std::vector<double>& knots)
        : n_(n), all_p_(lines.whole_p(n)), all_q_(lines.whole_q(n)) {
        for (const double eps : knots) knots_.push_back(eps), values_.push_back(lines.delta(n, eps));
        make_monotone();
    }

    const std::vector<double>& knots() const { return knots_; }
    // The first knot that is not below eps.
    std::size_t next_knot(double eps) const {
        return static_cast<std::size_t>(std::lower_bound(knots_.begin(), knots_.end(), eps) - knots_.begin());
    }
    // Puts a knot into the middle of each of these intervals, which end at knots k >= 1.
    void split(BulkLines& lines, const std::vector<std::size_t>& intervals) {
        std::vector<double> knots;
        std::vector<Interval> values;
        auto next = intervals.begin();
        for (std::size_t k = 0; k < knots_.size(); ++k) {
            if (next != intervals.end() && *next == k) {
                knots.push_back(0.5 * (knots_[k - 1] + knots_[k]));
                values.push_back(lines.delta(n_, knots.back()));
                ++next;
            }
            knots.push_back(knots_[k]), values.push_back(values_[k]);
        }
        knots_ = std::move(knots), values_ = std::move(values);
        make_monotone();
    }

    double upper(double eps) const {
        if (eps == -infinity) return all_p_.upper;
        const std::size_t k = next_knot(eps);
        if (k == knots_.size()) return values_.back().upper;
        if (k == 0) return mixed(all_p_.upper, values_[0].upper, std::exp(eps - knots_[0]));
        const double share = std::expm1(eps - knots_[k - 1]) / std::expm1(knots_[k] - knots_[k - 1]);
        return mixed(values_[k - 1].upper, values_[k].upper, share);
    }

    double lower(double eps) const {
        if (eps == -infinity) return all_p_.lower;
        const std::size_t k = next_knot(eps);
        if (k == knots_.size()) return 0.0;
        double best = max(values_[k].lower, all_p_.lower - all_q_.upper * std::exp(eps) * up);
        if (k >= 2) best = max(best, extended(k - 2, k - 1, eps));
        if (k + 1 < knots_.size()) best = max(best, extended(k + 1, k, eps));
        return best * (1.0 - rounding);
    }

  private:
    static constexpr double rounding = sound::of_sums;

    void make_monotone() {  // as the curve is
        for (std::size_t k = knots_.size(); k-- > 1;)
            values_[k - 1].lower = max(values_[k - 1].lower, values_[k].lower);
        for (std::size_t k = 1; k < knots_.size(); ++k) values_[k].upper = min(values_[k].upper, values_[k - 1].upper);
    }
    static double mixed(double at_zero, double at_one, double share) {
        const double t = min(max(share * (1.0 - rounding), 0.0), 1.0);
        return (at_zero + t * (at_one - at_zero)) * (1.0 + rounding);
    }
    // The line through knot `far`, at most, and knot `near`, at least, where it lies below the
    // curve: on the other side of `near`.
    double extended(std::size_t far, std::size_t near, double eps) const {
        const double from_near = std::expm1(eps - knots_[near]), to_far = std::expm1(knots_[far] - knots_[near]);
        const double ratio = -from_near / to_far;  // > 0
        const double fall = values_[far].upper - values_[near].lower;
        const double moved = ratio * (1.0 + (fall > 0.0 ? rounding : -rounding)) * fall;
        return values_[near].lower * (1.0 - eight_roundings) - moved;
    }

    double n_;
    Interval all_p_, all_q_;
    std::vector<double> knots_;
    std::vector<Interval> values_;
};

// The jumps of a law of Gaussian pieces (cumulant/gaussian_pieces.hpp): phi U against phi D beyond
// a point, enclosed by two lists of atoms.
//
// The range is cut into cells. Within one, of the masses p and q under P and Q, y = e^-loss lies
// between its values at the ends and has the mean q/p under P. A function f of the loss that rises,
// and is convex in y, has a mean of at least f(log p/q), by Jensen's inequality, and at most that
// of the two ends, in the proportion which gives y that mean. docs/core/accounting.md, "Rare
// jumps".
class GaussianJumps {
  public:
    GaussianJumps(const GaussianLaw::Jumps& law, double log_least) : law_(law) {
        const double log_weight = std::log(law.weight) + max(law.log_ratio, 0.0);
        const double end = max(range_end(law.upper, log_least - log_weight), law.from + 0.1);
        const double width = (end - law.from) / cells;
        Edge left = at(law.from);
        p = left.p, q = left.q;
        for (int k = 1; k <= cells; ++k) {
            const Edge right = at(law.from + width * k);
            add_cell(left, right);
            left = right;
        }
        above.push_back({left.loss + left.loss_error, carried_});
        above.push_back({infinity, left.p.upper});
    }

    std::vector<LossAtom> above, below;
    Interval p{}, q{};  // masses

  private:
    static constexpr int cells = 512;
    static constexpr double least_mass = 1e-290;

    // The masses beyond a point, and its loss.
    struct Edge {
        Interval p, q;
        double loss, loss_error;
    };

    // A tail errs by 8 ulp of its logarithm, and by what x - r is rounded; the sum over the
    // mixture by an ulp of the logarithm for each component. Near the least doubles, where masses
    // lose their digits and become 0, all that is known is `least_mass`.
    static Interval mass_above(const ShiftMixture& mixture, double x, double log_weight) {
        const double log_mass = log_mass_above(mixture, x), size = 4.0 + std::fabs(log_mass) + std::fabs(log_weight);
        const double error = size * (sound::of_tail + sound::of_point * static_cast<double>(mixture.shifts().size())) +
                             sound::of_point * x * x;
        const double value = std::exp(log_mass + log_weight);
        if (value < least_mass) return {0.0, least_mass};
        return {value * (1.0 - error), value * (1.0 + error)};
    }

    Edge at(double x) const {
        const ShiftMixture::Value u = law_.upper.at(x, 0.0), d = law_.lower.at(x, 0.0);
        const double loss = u.log - d.log + law_.log_ratio, log_weight = std::log(law_.weight);
        const double ratio_error = law_.log_ratio == 0.0 ? 0.0 : 8.0;
        return {mass_above(law_.upper, x, log_weight + law_.log_ratio), mass_above(law_.lower, x, log_weight), loss,
                2.0 * unit_roundoff * (u.log_error + d.log_error + ratio_error + std::fabs(loss))};
    }

    void add_cell(const Edge& left, const Edge& right) {
        const Interval mass_p{max(left.p.lower - right.p.upper, 0.0), left.p.upper - right.p.lower};
        const Interval mass_q{max(left.q.lower - right.q.upper, 0.0), left.q.upper - right.q.lower};
        const double first = left.loss + left.loss_error, last = right.loss + right.loss_error;
        // The share of the far end: (y_left - q/p)/(y_left - y_right), rounded up.
        const double fall = -std::expm1(left.loss - right.loss);
        const double mean = mass_q.lower / mass_p.upper * std::exp(left.loss);
        const double slack = 4.0 * (left.loss_error + right.loss_error + four_roundings * (1.0 + left.loss));
        const double share = (1.0 - mean + slack) / (fall - slack) * (1.0 + sound::of_sums);
        const bool known = fall > 2.0 * slack && left.loss < 600.0 && mean < infinity;  // else all of it
        const double far = known ? min(max(share, 0.0), 1.0) : 1.0;
        above.push_back({first, (carried_ + mass_p.upper * (1.0 - far)) * (1.0 + eight_roundings)});
        carried_ = mass_p.upper * far * (1.0 + eight_roundings);
        if (!(mass_p.lower > 0.0)) return;
        const double middle = std::log(mass_p.lower / mass_q.upper) - 8.0 * unit_roundoff * (1.0 + std::fabs(last));
        below.push_back({min(max(middle, left.loss - left.loss_error), last), mass_p.lower});
    }

    const GaussianLaw::Jumps& law_;
    double carried_ = 0.0;  // mass above at the last edge
};

// The law, split. A log_least so deep that the mass beyond does not matter ends the jumps.
inline std::unique_ptr<SplitLaw> split_law(GaussianLawBuilder&& builder, double log_least, const CumulantTools& tools) {
    GaussianLaw law = std::move(builder).law();
    auto split = std::make_unique<SplitLaw>();
    split->left_out = std::exp(law.log_left_out) * (1.0 + sound::of_left_out);
    for (const GaussianLaw::Jumps& jumps : law.jumps) {
        const GaussianJumps found(jumps, log_least);
        split->above.insert(split->above.end(), found.above.begin(), found.above.end());
        split->below.insert(split->below.end(), found.below.begin(), found.below.end());
        split->jump_p = {split->jump_p.lower + found.p.lower, split->jump_p.upper + found.p.upper};
        split->jump_q = {split->jump_q.lower + found.q.lower, split->jump_q.upper + found.q.upper};
    }
    double infinite = 0.0;
    for (LossAtom& atom : split->above)
        if (atom.loss == infinity) infinite += std::exchange(atom.mass, 0.0) * (1.0 + eight_roundings);
    const auto by_loss = [](const LossAtom& x, const LossAtom& y) { return x.loss < y.loss; };
    std::sort(split->above.begin(), split->above.end(), by_loss);
    std::sort(split->below.begin(), split->below.end(), by_loss);
    while (!split->above.empty() && split->above.back().loss == infinity) split->above.pop_back();
    split->above.push_back({infinity, infinite});
    split->bulk = std::make_unique<GaussianPiecesCumulant>(std::move(law), *tools.kernels, tools.workspace);
    return split;
}

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
            const double share =
                atoms[k].loss > from ? -std::expm1(from - atoms[k].loss) / fall * (1.0 + sound::of_sums) : 0.0;
            const double moved = atoms[k].loss < infinity ? min(share, 1.0) : 1.0;
            near += atoms[k].mass * (1.0 - moved), far += atoms[k].mass * moved;
        }
        kept.back().mass += near * (1.0 + sound::of_sums);
        kept.push_back({to, far * (1.0 + sound::of_sums)});
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
        const double loss = from - std::log1p(-fallen / mass * (1.0 - sound::of_sums));
        merged.push_back({loss - four_roundings * std::fabs(loss), mass * (1.0 - sound::of_sums)});
    }
    return merged;
}

class JumpExpansion {
  public:
    static constexpr int most_jumps = 2;

    // The logarithm of the mass of P that should jump, where delta is about e^{log_delta}: so that
    // more than `most_jumps` of them have a probability far below delta.
    static double log_jump(double count, double log_delta) {
        return (log_delta - tune::log_more_jumps) / (most_jumps + 1) - tune::log_below_chernoff - std::log(count);
    }

    // `largest` is more than any epsilon that will be asked, and `usual` is near them.
    JumpExpansion(SplitLaw& law, double count, double usual, double largest, const simd::Kernels& kernels)
        : count_(count), most_more_(more_jumps(law.jump_p.upper, count)), left_out_(count * law.left_out),
          lines_(law, tune::smoothing_share * usual, kernels) {
        for (int j = 1; j <= most_jumps && j <= count; ++j) {
            const double n = count - j;
            const std::size_t stride = (law.above.size() + tune::most_atoms[j - 1] - 1) / tune::most_atoms[j - 1];
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
        for (int round = 0; round < tune::most_rounds && refine(eps, found); ++round) found = bracket(of_bulk, eps);
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
    double binomial(int j) const {
        double ways = 1.0;
        for (int k = 0; k < j; ++k) ways *= (count_ - k) / (k + 1.0);
        return ways;
    }
    // The probability of more jumps: at most the mean number of sets of so many steps that jump.
    static double more_jumps(double p, double count) {
        double sum = 1.0;
        for (int k = 0; k <= most_jumps; ++k) sum *= max(count - k, 0.0) / (k + 1.0) * p;
        return sum * (1.0 + sound::of_tail);
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
            for_choices(j.above, j.number, j.ways * (1.0 + sound::of_sums), eps,
                        [&](double mass, double rest) { sum.upper += mass * j.curve.upper(rest); });
            for_choices(j.below, j.number, j.ways * (1.0 - sound::of_sums), eps,
                        [&](double mass, double rest) { sum.lower += mass * j.curve.lower(rest); });
        }
        return {max(sum.lower * (1.0 - sound::of_sums), 0.0), min(sum.upper * (1.0 + sound::of_sums), 1.0)};
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
            const double count = static_cast<double>(gaps.size()), allowed = tune::enough * found.upper / count;
            std::vector<std::size_t> wide;
            for (std::size_t k = 1; k + 1 < gaps.size(); ++k)
                if (gaps[k] > allowed) wide.push_back(k);
            if (wide.empty() || count > tune::most_knots) continue;
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
    const double log_least = log_delta - std::log(count) - tune::log_left_out;
    GaussianLawBuilder law(std::sqrt(-2.0 * log_least), JumpExpansion::log_jump(count, log_delta));
    if (!pair.has_cumulant(1.0) || !pair.add_law(1.0, direction, law)) return nullptr;
    return split_law(std::move(law), log_least, {&kernels, std::make_shared<FourierWorkspace>()});
}

// The answer for equal steps whose law can be split; none for others. `known_upper` is an upper
// end. Adds the points that it visits to `work`.
inline Answer by_jump_expansion(const Steps& steps, Direction direction, const Question& question, double known_upper,
                                const simd::Kernels& kernels, double& work) {
    Answer answer;
    answer.upper = question.largest_answer();
    if (steps.size() != 1 || !(question.value > 0.0 && question.value < infinity)) return answer;
    const double count = steps[0].count;
    const OneStep step(steps[0].pair->loss(direction));
    const double log_delta =
        std::log(question.for_epsilon ? question.value : min(count * step.delta_above(question.value), known_upper));
    if (!(log_delta > tune::least_log_delta)) return answer;
    const auto ask = [&](double usual, double largest) {
        const std::unique_ptr<SplitLaw> law = split_for(*steps[0].pair, direction, count, log_delta, kernels);
        if (!law) return Interval{0.0, infinity};
        JumpExpansion jumps(*law, count, usual, largest, kernels);
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
    answer.method = Method::jump_expansion, answer.lower = found.lower, answer.upper = found.upper;
    return answer;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
