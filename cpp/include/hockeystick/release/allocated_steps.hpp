// An epoch of random allocation of any steps that have pairs: of t releases of the steps every
// record takes part in k, drawn uniformly.
//
// A record added or removed (allocated_steps). One release is brought to two discrete pairs, one
// for each direction of the record, above or below (release/composed.hpp); those of finitely many
// outcomes are taken as they are. One of t: allocation/outcome_counts.hpp. k of t: the blocks of
// release/random_allocation.hpp for the upper end, and the labels of allocation/outcome_labels.hpp
// for the lower one. Gaussian noise has tighter pairs in release/random_allocation.hpp. Proofs:
// docs/core/allocation.md.
//
// A record replaced (replaced_epoch) draws its steps as the record in its place does: from what is
// known of a record that is removed, see OwnCurve and replaced_above below.
//
// Cost: some tenths of a second, most of it for the sums of steps with thousands of losses.
#pragma once

#include <hockeystick/allocation/outcome_counts.hpp>
#include <hockeystick/allocation/outcome_labels.hpp>
#include <hockeystick/allocation/replaced_sums.hpp>
#include <hockeystick/release/composed.hpp>
#include <hockeystick/release/privacy_profile.hpp>
#include <hockeystick/release/random_allocation.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// The pairs of an allocated release. Each step's output is a mixture, so that no Renyi divergence
// exceeds that of the steps that are allocated.
class AllocatedOutcomes final : public DiscretePairs {
  public:
    AllocatedOutcomes(allocation::AllocationPairs pairs, const Steps& steps)
        : DiscretePairs(std::move(pairs.removed), std::move(pairs.added), steps) {}
    double renyi(double order, double rate, Direction direction) const override {
        return min(Pair::renyi(order, rate, direction), coarse_renyi(order, rate, direction));
    }
};

// The outcomes of one release of the steps in one direction, for either end.
inline Masses release_outcomes(const Steps& steps, Direction direction, End end, const MergeFunction& merge) {
    const PairPointer whole = closed_form(steps, end);
    if (const auto* pairs = dynamic_cast<const DiscretePairs*>(whole.get())) return pairs->masses(direction);
    if (const auto* pair = dynamic_cast<const Discrete*>(whole.get())) {
        if (direction == Direction::remove) return pair->masses();
        return {pair->masses().q, pair->masses().p};
    }
    return merge_discrete(steps, direction, end, merge);
}

// What is selected of how many releases.
struct Share {
    std::int64_t steps, selected;
};

// The pair of one of several releases for either end, or of several of them for the lower end.
inline PairPointer allocated_release(const Steps& steps, const Share& share, End end, const MergeFunction& merge,
                                     const std::atomic<bool>* stop = nullptr) {
    const allocation::Form form = end == End::upper ? allocation::Form::spread : allocation::Form::merged;
    const auto pair_of = [&](Direction direction) {
        const bool removed = direction == Direction::remove;
        WorkBudget budget(stop);
        const Masses outcomes = release_outcomes(steps, direction, end, merge);
        if (share.selected == 1) return allocation::allocated_pair(outcomes, share.steps, removed, form, budget);
        return allocation::labelled_pair(outcomes, {0.0, share.steps, share.selected}, removed, budget);
    };
    allocation::AllocationPairs pairs{pair_of(Direction::remove), pair_of(Direction::add)};
    if (end == End::upper) return std::make_shared<AllocatedOutcomes>(std::move(pairs), steps);
    return std::make_shared<AttainedPairs>(std::move(pairs));
}

// The pairs of an epoch's releases, `allocated_release` and that of Gaussian noise, which a caller
// may remember.
struct Allocators {
    std::function<PairPointer(const Steps&, const Share&, End)> release;
    Allocate gaussian;
};

inline Allocators allocators_now() {
    return {
        [](const Steps& steps, const Share& share, End end) { return allocated_release(steps, share, end, merge_now); },
        allocate_now};
}

inline bool is_one_gaussian(const Steps& steps) {
    return steps.size() == 1 && steps[0].count == 1.0 && steps[0].pair->is_gaussian();
}

// The releases of an epoch for either end. For the lower end there may be none: of many mechanisms
// no pair is known that they attain.
inline Steps allocated_steps(const Steps& steps, const Allocation& epoch, End end, const Allocators& allocate) {
    if (steps.empty() && end == End::lower) return {};
    require(!steps.empty(), "steps", "hold at least one", 0.0);
    if (is_one_gaussian(steps))
        return random_allocation(steps[0].pair->gaussian_noise().noise_multiplier, epoch, end, allocate.gaussian);
    require_epoch(epoch);
    const PairPointer whole = closed_form(steps, end);
    if (whole && !whole->leaks()) return {{whole, 1.0}};
    const auto all = static_cast<std::int64_t>(epoch.num_steps), parts = static_cast<std::int64_t>(epoch.num_selected);
    if (end == End::lower && parts > 1 && parts < all) return {{allocate.release(steps, {all, parts}, end), 1.0}};
    Steps result;
    for (const CountedPair& block : blocks(all, parts, [&](std::int64_t length) {
             return length == 1 ? PairPointer() : allocate.release(steps, {length, 1}, end);
         })) {
        if (block.pair) result.push_back(block);
        else
            for (const CountedPair& step : steps) result.push_back({step.pair, step.count * block.count});
    }
    return result;
}

// A record is replaced, which draws its steps as the record in its place does: the pair from what
// is known of a record that is removed.
//
// One of two steps with Gaussian noise shows the sum of both alone. One of more steps: the curve of
// allocation/replaced_sums.hpp at some epsilons. Upper end: chords (release/privacy_profile.hpp).
// It falls with the steps, so that it is at most the curve of one step, or of two, where this is
// known. Lower end, for log-concave noise on the line, which attains the curve: lines through
// an upper and a lower point, beyond the lower one.
// k of t. Upper end: blocks, as for a record removed. Lower end: the labels of
// allocation/outcome_labels.hpp, or, of Gaussian noise, the sum of all outputs, N(k r/sqrt t, 1) and
// N(-k r/sqrt t, 1), if that tells more.
// Other mechanisms have the lower end of a replacement that contributes nothing.
// Proofs: docs/core/allocation.md. Cost: 0.02 to 0.25 s for either end and
// each size of a block.

inline constexpr double least_replaced_delta = 1e-30;  // below, the curve of fewer steps serves
inline constexpr double last_replaced_epsilon = 600.0;

// Upper ends of the curve of one release, where a record is replaced: of either direction. None is
// known of several pairs.
class OwnCurve {
  public:
    explicit OwnCurve(const Steps& own) {
        if (own.size() != 1 || own[0].count != 1.0) return;
        for (const Direction direction : {Direction::remove, Direction::add})
            curves_.emplace_back(own[0].pair->loss(direction));
    }
    bool known() const { return !curves_.empty(); }
    double delta(double eps) const {
        double largest = known() ? 0.0 : 1.0;
        for (const loss::OneStep& curve : curves_) largest = max(largest, curve.delta_above(eps));
        return largest;
    }
    double largest_loss() const {
        double largest = known() ? 0.0 : infinity;
        for (const loss::OneStep& curve : curves_) largest = max(largest, curve.highest().upper);
        return largest;
    }

  private:
    std::vector<loss::OneStep> curves_;
};

// Upper bounds of a curve, and the pair of the chords between them. `fewer` are steps that leak no
// less.
class ReplacedPair final : public Discrete {
  public:
    ReplacedPair(Profile points, const Steps& fewer)
        : Discrete(masses_above(points), fewer), points_(std::move(points)) {}
    const Profile& points() const { return points_; }

  private:
    Profile points_;
};

// The ratios of one release of the steps, opposite to each other.
inline allocation::OppositeRatios opposite_ratios(const Steps& steps, End end, const MergeFunction& merge) {
    const allocation::Form form = end == End::upper ? allocation::Form::spread : allocation::Form::merged;
    if (is_one_gaussian(steps)) {
        const auto ratios = allocation::gaussian_ratios(steps[0].pair->gaussian_noise().shift, form);
        return allocation::opposite_ratios(ratios, ratios);
    }
    const auto ratios = [&](Direction direction) {
        return allocation::discrete_ratios(release_outcomes(steps, direction, end, merge),
                                           direction == Direction::remove, form);
    };
    return allocation::opposite_ratios(ratios(Direction::remove), ratios(Direction::add));
}

// Two steps of Gaussian noise, which a record takes part in one of, are one release of their sum.
inline PairPointer one_of_two_gaussian(const Steps& steps, End end) {
    return Gaussian::of_shift(rounded_to(std::sqrt(2.0) * steps[0].pair->gaussian_noise().shift, end));
}

// Steps between epsilons. Near 0 they are shares of the loss's deviation or of its range, further out
// of epsilon, but no longer than a share of where delta falls by a factor of e. Known curves cost
// nothing.
inline constexpr double steps_of_deviation = 8.0, steps_of_epsilon = 16.0, steps_of_range = 64.0;
inline constexpr double share_of_fall = 0.4, share_of_deep_fall = 2.0, deep = 1e-12, known_steps_of_epsilon = 64.0;

// The points of a curve that does not rise, from its values and those of a known curve above it,
// where it is large enough to be computed.
inline Profile curve_points(const std::function<double(double, double)>& delta, const OwnCurve& known, double least) {
    Profile profile;
    const double end = min(known.largest_loss(), last_replaced_epsilon);
    double eps = 0.0, last = 1.0, least_step = 0.0, fall = infinity;
    while (true) {
        const double before = last;
        last = min(last, known.delta(eps));
        if (before > least) last = min(last, delta(eps, before));
        if (eps == 0.0) {
            const double deviation = 2.0 * q_inv(0.5 * (1.0 - min(last, 1.0 - 1e-9)));
            least_step = max(min(deviation / steps_of_deviation, end / steps_of_range), 1e-12);
        } else {
            fall = (eps - profile.epsilons.back()) / std::log(before / last);
        }
        profile.epsilons.push_back(eps), profile.remove.push_back(last);
        if (eps >= end || last <= (known.known() ? 1e-300 : least)) break;
        const double longest =
            last > least ? (last > deep ? share_of_fall : share_of_deep_fall) * fall : eps / known_steps_of_epsilon;
        const double step = max(least_step, eps / steps_of_epsilon);
        eps = min(eps + max(min(step, longest), 0.25 * least_step), end);
    }
    profile.add = profile.remove;
    return profile;
}

// The pair that dominates one of several releases of steps which have these pairs for removing and
// adding a record, and `own` for replacing one.
inline PairPointer replaced_above(const Steps& steps, const Steps& own, std::int64_t num_steps,
                                  const MergeFunction& merge, const std::atomic<bool>* stop) {
    const bool gaussian = is_one_gaussian(steps);
    if (gaussian && num_steps == 2) return one_of_two_gaussian(steps, End::upper);
    const Steps fewer = gaussian && num_steps > 2 ? Steps{{one_of_two_gaussian(steps, End::upper), 1.0}} : own;
    const allocation::OppositeRatios step = opposite_ratios(steps, End::upper, merge);
    WorkBudget budget(stop);
    const OwnCurve known(fewer);
    const auto delta = [&](double eps, double before) {
        return allocation::replaced_delta(step, num_steps, eps, before, budget);
    };
    const double least = known.known() ? least_replaced_delta : max(least_replaced_delta, 2.0 * step.infinite);
    return std::make_shared<ReplacedPair>(curve_points(delta, known, least), known.known() ? fewer : Steps{});
}

// The points of a convex curve below one with these bounds at its points: by convexity the curve
// lies above the line through an upper and a lower point, beyond the lower one. With x = e^eps in
// units of the nearer point, the lines from both sides are a - s (x - 1).
class PointsBelow {
  public:
    PointsBelow(const std::vector<double>& epsilons, const std::vector<double>& upper, std::vector<double> lower)
        : eps_(epsilons), upper_(upper), lower_(std::move(lower)) {
        for (std::size_t i = 0; i < eps_.size(); ++i) {
            add(eps_[i], lower_[i]);
            const bool last = i + 1 == eps_.size();
            const double slope = from_left(i);
            if (!last) add_between(i, slope);
            else if (lower_[i] > 1e-9 * slope) add(eps_[i] + std::log1p(lower_[i] / slope) * down, 0.0);
        }
        if (found_.remove.back() > 0.0) found_.remove.back() = 0.0;
        found_.add = found_.remove;
    }
    Profile take() { return std::move(found_); }

  private:
    // By how much delta falls, a unit of x, right of point i, at most. Left of 0 the curve is that of
    // the other direction, which has the same bounds.
    double from_left(std::size_t i) const {
        const double gap = i > 0 ? eps_[i] - eps_[i - 1] : eps_[1];
        const double before = i > 0 ? upper_[i - 1] : -std::expm1(-gap) + std::exp(-gap) * upper_[1];
        return max(before - lower_[i], 0.0) / -std::expm1(-gap) * up;
    }
    // And by how much left of point i, at least.
    double from_right(std::size_t i) const {
        if (i + 1 >= eps_.size()) return 0.0;
        return max(lower_[i] - upper_[i + 1], 0.0) / std::expm1(eps_[i + 1] - eps_[i]) * down;
    }

    // The point between i and i + 1 where both lines meet; if they do not, the chord is below one. To
    // the left of its place it is below both. Where it is close to point i, that is lowered to it.
    void add_between(std::size_t i, double fall) {
        const double width = std::expm1(eps_[i + 1] - eps_[i]), rise = from_right(i + 1) / (1.0 + width);
        const double x = (lower_[i] - lower_[i + 1] - rise * width) / (fall - rise);
        if (!(x > 0.0 && x < width)) return;
        const double left = lower_[i] - fall * x, right = lower_[i + 1] + rise * (width - x);
        const double value = min(left, right) * (1.0 - 1e-12), at = (eps_[i] + std::log1p(x)) * (1.0 - four_roundings);
        if (at > eps_[i] && x > 1e-6 * width) add(min(at, std::nextafter(eps_[i + 1], 0.0)), value);
        else found_.remove.back() = max(min(found_.remove.back(), value), 0.0);
    }
    // Where a chord would rise, the later point is lowered.
    void add(double eps, double delta) {
        if (eps > last_replaced_epsilon) return;
        const double before = found_.remove.empty() ? 1.0 : found_.remove.back();
        found_.epsilons.push_back(eps), found_.remove.push_back(min(max(delta, 0.0), before));
    }

    const std::vector<double>&eps_, &upper_;
    std::vector<double> lower_;
    Profile found_;
};

// A pair that one of several releases of log-concave noise on the line leaks no less than, from the
// one above; none if rounding forbids it, or the grid of a mechanism's losses is too coarse.
inline PairPointer replaced_below(const Steps& steps, const PairPointer& above, std::int64_t num_steps,
                                  const MergeFunction& merge, const std::atomic<bool>* stop) {
    const auto* pair = dynamic_cast<const ReplacedPair*>(above.get());
    if (!pair) return one_of_two_gaussian(steps, End::lower);
    const allocation::OppositeRatios step = opposite_ratios(steps, End::lower, merge);
    WorkBudget budget(stop);
    Profile points = pair->points();
    std::size_t computed = 0;
    std::vector<double> lower;
    for (const double eps : points.epsilons) {
        if (points.remove[computed] <= least_replaced_delta) break;
        lower.push_back(allocation::replaced_delta(step, num_steps, eps, points.remove[computed], budget));
        ++computed;
    }
    if (computed < 2 || lower.front() < 0.5 * points.remove.front()) return nullptr;
    points.epsilons.resize(computed), points.remove.resize(computed);
    const Steps found =
        privacy_profile(PointsBelow(points.epsilons, points.remove, std::move(lower)).take(), End::lower);
    return found.empty() ? nullptr : found.front().pair;
}

// The same for several of the releases.
inline PairPointer replaced_subset(const Steps& steps, const Share& share, const MergeFunction& merge,
                                   const std::atomic<bool>* stop) {
    WorkBudget budget(stop);
    const allocation::OppositeRatios step = opposite_ratios(steps, End::lower, merge);
    Masses pair = allocation::opposite_labels(step, {0.0, share.steps, share.selected}, budget);
    if (is_one_gaussian(steps)) {
        const double shift = 2.0 * static_cast<double>(share.selected) * steps[0].pair->gaussian_noise().shift;
        const double all = shift / std::sqrt(static_cast<double>(share.steps));
        if (kullback_leibler(pair) < 0.5 * all * all) return Gaussian::of_shift(rounded_to(all, End::lower));
    }
    return std::make_shared<AttainedPairs>(allocation::AllocationPairs{pair, {pair.p, pair.q}});
}

// What one of several releases leaks where a record is replaced, or, for the lower end of
// log-concave noise on the line, several of them. A caller may remember it.
using ReplaceRelease = std::function<PairPointer(const Steps&, const Steps& own, const Share&, End)>;

inline PairPointer replaced_now(const Steps& steps, const Steps& own, const Share& share, End end) {
    if (share.selected > 1) return replaced_subset(steps, share, merge_now, nullptr);
    const PairPointer above = replaced_above(steps, own, share.steps, merge_now, nullptr);
    return end == End::upper ? above : replaced_below(steps, above, share.steps, merge_now, nullptr);
}

inline Steps replaced_upper(const Steps& steps, const Steps& own, const Allocation& epoch,
                            const ReplaceRelease& replaced) {
    require(!steps.empty(), "steps", "hold at least one", 0.0);
    require_epoch(epoch);
    const PairPointer whole = closed_form(steps, End::upper);
    if (whole && !whole->leaks()) return {{whole, 1.0}};
    const PairPointer alone = closed_form(own, End::upper);
    return blocks(static_cast<std::int64_t>(epoch.num_steps), static_cast<std::int64_t>(epoch.num_selected),
                  [&](std::int64_t length) {
                      if (length == 1 && !own.empty() && alone) return alone;
                      return replaced(steps, own, {length, 1}, End::upper);
                  });
}

// `on_line` says that the steps are one release of log-concave noise on the line.
inline Steps replaced_lower(const Steps& steps, const Steps& own, const Allocation& epoch, bool on_line,
                            const Allocators& allocate, const ReplaceRelease& replaced) {
    const PairPointer whole = closed_form(steps, End::lower);
    if (on_line && whole && whole->leaks()) {
        require_epoch(epoch);
        const Share share{static_cast<std::int64_t>(epoch.num_steps), static_cast<std::int64_t>(epoch.num_selected)};
        if (PairPointer below = replaced(steps, own, share, End::lower)) return {{below, 1.0}};
    }
    return allocated_steps(steps, epoch, End::lower, allocate);
}

// An epoch where a record is replaced, from the pairs of one release for removing one and `own` for
// replacing one; nothing is remembered.
inline Steps replaced_epoch(const Steps& steps, const Steps& own, const Allocation& epoch, bool on_line, End end) {
    if (end == End::upper) return replaced_upper(steps, own, epoch, replaced_now);
    return replaced_lower(steps, own, epoch, on_line, allocators_now(), replaced_now);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
