// The bound joint: the whole loss curve through all rounds, each of which may move the two runs
// apart by a shift of its own (hidden_state/joint_rounds.hpp).
//
// Shifted interpolation compares the second run with one that ends where the first ends, and closes
// their gap z <- c z + g - a with shifts a >= 0 that may be chosen. Any choice that ends with z = 0
// is sound. Two are followed: each use of the record is paid at once, or it is spread over the m
// rounds after it, with shifts proportional to c^{m - i}, i = 0..m. Rounds without a shift contract
// (F of hidden_state/nonlinear_contraction.hpp). docs/core/hidden_state.md, sections 9 and 10, has
// the proofs.
//
// Starts. Before the first use the two runs are alike. Of more uses than are followed, the first
// ones are replaced by a curve that holds at all times between uses.
//
// Cost: two thousand slopes and integrals a round, about half a millisecond on one 2.5 GHz core.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/joint_rounds.hpp>
#include <hockeystick/hidden_state/split_noise.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

inline constexpr double max_joint_rounds = 128.0;    // with a shift
inline constexpr double followed_from_start = 40.0;  // of cyclic uses
inline constexpr double longest_spread = 32.0;       // rounds after the last use

// Rounds with the record, `between` rounds without it after each but the last, `after` rounds after
// the last; c is a Lipschitz constant of every round's map. Lengths are in noise deviations.
struct JointUses {
    double sensitivity, lipschitz, image_diameter;
    double uses, between, after;
};

inline constexpr std::size_t coarse_points = 64, fine_points = 160;
inline constexpr double negligible_share = 1e-7;  // of delta, that the end of a grid may charge

// A grid of losses with eps. The shift is at most half of its end, so that positions on the grid
// keep their digits (hidden_state/joint_rounds.hpp).
struct JointGrid : EpsPlace {
    JointGrid(double eps, double shift, double end, std::size_t size)
        : EpsPlace(eps, std::max({end, 1.25 * eps, 2.0 * shift}), size) {}

    // The first loss beyond eps at which the curve is negligible.
    double end_of(const LossCurve& curve) const {
        std::size_t k = index;
        while (k < points && curve[k] > negligible_share * curve[index]) ++k;
        return curve.loss(k);
    }
};

// Whether a curve can be followed: F leaves it as it is beyond max_curve_diameter, and a shift of
// so many deviations hides nothing.
inline bool joint_applies(double sensitivity, double image_diameter, const LossGrid& grid) {
    return grid.exists() && image_diameter <= max_curve_diameter && sensitivity <= max_curve_diameter;
}

// What is known before the first of the followed rounds, and at every time in which the runs' gap
// is closed.
struct KnownCurves {
    bool alike;  // both runs begin in one state, and all rounds are followed
    std::vector<double> at_all_times;

    KnownCurves(bool all_followed, double mu, const LossCurve& curve)
        : alike(all_followed), at_all_times(gaussian_curve(curve, mu)) {}

    void begin(LossCurve& curve) const {
        curve.restrict_to(alike ? std::vector<double>(at_all_times.size(), smallest_bound) : at_all_times);
    }
};

// The rounds over which one use of the record is paid.
class UseBlock {
  public:
    // Spread over `later` rounds after the use. Where c is 1 but for rounding one shift serves all.
    UseBlock(const JointUses& u, double later, const JointGrid& grid) {
        const double log_c = std::log(u.lipschitz), rounds = later + 1.0;
        double squares = 0.0;
        for (double i = 0.0; i < rounds; i += 1.0) squares += std::exp(2.0 * i * log_c);
        const bool equal = later * std::fabs(log_c) < 1e-9;
        for (double i = 0.0; i < (equal ? 1.0 : rounds); i += 1.0) {
            const double power = std::exp((2.0 * later - i) * log_c) * (1.0 + (equal ? 1e-8 : 1e-12));
            rounds_.emplace_back(grid.points, grid.step, u.sensitivity * power / squares);
        }
        length_ = static_cast<std::size_t>(rounds);
    }

    void run(LossCurve& curve, double image_diameter) const {
        for (std::size_t i = 0; i < length_; ++i) curve.apply(rounds_[std::min(i, rounds_.size() - 1)], image_diameter);
    }

  private:
    std::vector<ShiftedRound> rounds_;
    std::size_t length_;
};

// The curve's value at eps after `rounds` more rounds without the record.
inline double contracted_value(const LossCurve& curve, const JointGrid& grid, double rounds, double image_diameter) {
    const auto log_eta = [image_diameter](double eps) { return log_theta(eps, image_diameter); };
    return grid.bound([&](std::size_t k) {
        const double log_gamma_minus_1 = log_gamma_minus_one(curve.loss(k));
        double log_e = std::log(curve.least(k));
        for (double i = 0.0; i < std::min(rounds, max_passes) && log_e > -690.0; i += 1.0)
            log_e = log_contracted(log_gamma_minus_1, log_e, log_eta);
        return std::exp(log_e) * up;
    });
}

// The least delta at eps for the last use, if it is paid at once or spread over more and more
// rounds.
inline double after_last_use(const LossCurve& before, const JointUses& u, const JointGrid& grid) {
    const double longest = std::min(u.after, longest_spread);
    double best = 1.0;
    for (double later = 0.0;; later = std::min(longest, 2.0 * later + 1.0)) {
        LossCurve curve = before;
        UseBlock(u, later, grid).run(curve, u.image_diameter);
        const double delta = contracted_value(curve, grid, u.after - later, u.image_diameter);
        if (delta > best) break;
        best = delta;
        if (later == longest) break;
    }
    return best;
}

// The curve before the last use, with every earlier one spread over the `later` <= between rounds
// after it. `mu` bounds the Gaussian-DP parameter at every time.
inline LossCurve before_last_use(double later, double mu, const JointUses& u, const JointGrid& grid) {
    LossCurve curve(grid.step, grid.points);
    const double earlier = u.uses - 1.0;
    const KnownCurves known(earlier * (later + 1.0) <= followed_from_start, mu, curve);
    known.begin(curve);
    const UseBlock block(u, later, grid);
    const double most = known.alike ? earlier : std::floor(max_joint_rounds / (later + 1.0));
    double before = 2.0;
    for (double j = 0.0; j < std::min(earlier, most); j += 1.0) {
        block.run(curve, u.image_diameter);
        curve.restrict_to(known.at_all_times);
        for (double i = later; i < std::min(u.between, max_curve_rounds); i += 1.0) curve.contract(u.image_diameter);
        if (!known.alike && curve[grid.index] > before * (1.0 - 1e-4)) break;  // more rounds gain nothing
        before = curve[grid.index];
    }
    return curve;
}

// A coarse grid finds how far the fine one must reach.
inline double joint_bound(double eps, double mu, const JointUses& u) {
    const LossGrid widest(eps, mu);
    double best = 1.0;
    if (!joint_applies(u.sensitivity, u.image_diameter, widest)) return best;
    const bool spread = u.uses > 1.0 && u.between > 0.0 && u.between < longest_spread;
    const JointGrid coarse(eps, u.sensitivity, widest.end, coarse_points);
    for (const double later : {0.0, u.between}) {
        if (later > 0.0 && !spread) continue;
        const double end = coarse.end_of(before_last_use(later, mu, u, coarse));
        const JointGrid fine(eps, u.sensitivity, std::max(end, u.sensitivity * (0.5 * u.sensitivity + 5.0)),
                             fine_points);
        best = std::min(best, after_last_use(before_last_use(later, mu, u, fine), u, fine));
    }
    return best;
}

// A round in which the record is used with probability `rate`. Where it is used more often than
// not, the bound is also compared with the mean over both cases, as if it were known which one it
// is: joint convexity.
class RandomUse {
  public:
    RandomUse(const UseSchedule& s, const JointGrid& grid)
        : rate_(s.rate), image_diameter_(s.image_diameter), used_(grid.points, grid.step, s.sensitivity),
          unseen_(grid.points, grid.step, s.sensitivity, s.rate) {}

    void run(LossCurve& curve) const {
        LossCurve seen = curve;
        if (rate_ >= 0.5) {
            LossCurve idle = curve;
            idle.contract(image_diameter_);
            seen.apply(used_, image_diameter_);
            seen.mix_with(idle, rate_);
        }
        if (rate_ < 1.0) curve.apply(unseen_, image_diameter_);
        if (rate_ == 1.0) curve = seen;
        else if (rate_ >= 0.5) curve.restrict_to(seen.values());
    }

  private:
    double rate_, image_diameter_;
    ShiftedRound used_;
    SampledRound unseen_;
};

// Raises a curve to one that a round does not raise, if one is found: it then holds after any number
// of rounds, since what a round makes of a curve grows with the curve.
inline bool raise_to_stationary(LossCurve& curve, const RandomUse& use) {
    for (double excess = 1e-3; excess < 1.0; excess *= 1.5) {
        LossCurve raised = curve;
        raised.enlarge(1.0 + excess);
        LossCurve next = raised;
        use.run(next);
        if (!curve.within(raised) || !next.within(raised)) continue;
        curve = next;
        return true;
    }
    return false;
}

// Gives `visit` the curves after 1, 2, ... rounds, from runs that are alike at the beginning; of more
// than `max_joint_rounds`, a curve that holds after any number is the last. It is a stationary one or,
// where none is found, that of the last rounds, begun with what is known at all times.
template <class Visit>
void visit_sampled_curves(double mu, const UseSchedule& s, const JointGrid& grid, const Visit& visit) {
    LossCurve curve(grid.step, grid.points);
    const RandomUse use(s, grid);
    const KnownCurves known(true, mu, curve);
    const auto advance = [&] {
        use.run(curve);
        curve.restrict_to(known.at_all_times);
    };
    known.begin(curve);
    for (double j = 0.0; j < std::min(s.max_uses, max_joint_rounds); j += 1.0) {
        advance();
        visit(curve);
    }
    if (s.max_uses <= max_joint_rounds) return;
    if (!raise_to_stationary(curve, use)) {
        curve = LossCurve(grid.step, grid.points);
        curve.restrict_to(known.at_all_times);
        for (double j = 0.0; j < max_joint_rounds; j += 1.0) {
            const LossCurve before = curve;
            advance();
            if (before.within(curve, 1.0 + 1e-4)) break;  // more rounds gain nothing
        }
    }
    curve.restrict_to(known.at_all_times);
    visit(curve);
}

inline LossCurve joint_sampled_curve(double mu, const UseSchedule& s, const JointGrid& grid) {
    LossCurve last(grid.step, grid.points);
    visit_sampled_curves(mu, s, grid, [&](const LossCurve& curve) { last = curve; });
    return last;
}

inline double joint_sampled_bound(double eps, double mu, const UseSchedule& s) {
    const LossGrid widest(eps, mu);
    if (!joint_applies(s.sensitivity, s.image_diameter, widest)) return 1.0;
    const JointGrid coarse(eps, s.sensitivity, widest.end, coarse_points);
    const double end = coarse.end_of(joint_sampled_curve(mu, s, coarse));
    const JointGrid fine(eps, s.sensitivity, end, fine_points);
    return joint_sampled_curve(mu, s, fine).bound(fine);
}

// The least epsilons at `delta` after 1, 2, ... rounds, from one recursion; the last of them after
// any number of rounds.
inline std::vector<double> joint_sampled_epsilons(double delta, double mu, const UseSchedule& s) {
    std::vector<double> found;
    const LossGrid widest(0.0, mu);
    if (!joint_applies(s.sensitivity, s.image_diameter, widest)) return found;
    double end = widest.end;
    for (int pass = 0; pass < 2; ++pass) {
        const JointGrid coarse(0.0, s.sensitivity, end, coarse_points);
        double last = 0.0;
        visit_sampled_curves(mu, s, coarse, [&](const LossCurve& curve) {
            last = std::max(last, curve.epsilon(negligible_share * delta));
        });
        end = std::min(end, last);
    }
    const JointGrid fine(0.0, s.sensitivity, end, curve_points);
    visit_sampled_curves(mu, s, fine, [&](const LossCurve& curve) { found.push_back(curve.epsilon(delta)); });
    return found;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state
