// A mechanism by upper bounds of its delta at some epsilons: the discrete pair whose curve connects
// them.
//
// delta as a function of a = e^eps is convex, 1 at a = 0, and does not rise (Zhu, Dong and Wang
// 2022). Chords between upper bounds of it therefore lie above it, and the chords are the curve of
// a pair. An outcome at the loss eps of two chords has the difference of their slopes under Q, and
// e^eps times that under P. Beyond the last point delta stays: that is P's mass of infinite loss. A
// point above the chord of its neighbours is left out, which only raises the chords it was the end
// of.
//
// Losses below 0 are seen from the other direction, where the same holds with P and Q exchanged.
// Each side is computed in its own direction, from differences of the numbers given, so that every
// tail of either law has a small relative error. eps = 0 belongs to both directions. With d the
// total variation distance there, and s and t the slopes of the first chords on its two sides, the
// loss 0 has the mass 1 - d - s - t under both laws. Where that is negative, d lies above the chord
// of its neighbours. Then d becomes the chord's value, which bounds it as well, and the mass is 0.
//
// Error: these numbers at 0 are enclosed to about 100 bits (numeric/enclosed.hpp). All slopes are
// rounded up, by a few roundings, and both ends are moved by `product_error`, which is far more
// than the roundings of a tail. The upper end is never below the chords. The lower end is nowhere
// above them, and there is none where rounding forbids it. Cost: a few operations a point.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hockeystick/mechanism/registry.hpp>
#include <hockeystick/numeric/enclosed.hpp>
#include <hockeystick/release/discrete_pair.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// Bounds of delta for a record removed and for one added, at epsilons that increase from 0.
struct Profile {
    std::vector<double> epsilons, remove, add;
};

inline void require_deltas(const std::string& name, const std::vector<double>& deltas,
                           const std::vector<double>& epsilons) {
    if (deltas.size() != epsilons.size())
        throw std::invalid_argument(name + " must be as long as epsilons (" + std::to_string(epsilons.size()) +
                                    "), not of length " + std::to_string(deltas.size()));
    for (std::size_t i = 0; i < deltas.size(); ++i)
        require_probability((name + "[" + std::to_string(i) + "]").c_str(), deltas[i]);
    for (std::size_t i = 1; i < deltas.size(); ++i)
        if (deltas[i] > deltas[i - 1])
            throw std::invalid_argument(name + " must not rise with epsilon, not by " +
                                        shortest_text(deltas[i] - deltas[i - 1]) + " from epsilon " +
                                        shortest_text(epsilons[i - 1]) + " to " + shortest_text(epsilons[i]));
}

inline void require_profile(const Profile& profile) {
    if (profile.epsilons.empty()) throw std::invalid_argument("epsilons must not be empty");
    for (std::size_t i = 0; i < profile.epsilons.size(); ++i) {
        const double eps = profile.epsilons[i];
        require(i == 0 ? eps == 0.0 : eps > profile.epsilons[i - 1] && eps <= 600.0, "epsilons",
                "increase from 0 to at most 600", eps);
    }
    require_deltas("remove", profile.remove, profile.epsilons);
    require_deltas("add", profile.add, profile.epsilons);
    if (profile.add[0] != profile.remove[0])
        throw std::invalid_argument("add must begin with the total variation distance, as remove (" +
                                    shortest_text(profile.remove[0]) + "), not with " + shortest_text(profile.add[0]));
}

// `slope` is by how much delta falls, a unit of e^eps, on the chord to the next point; 0 beyond the
// last. It is rounded up.
struct Point {
    double eps, delta, slope;
};

// The points of one direction beyond 0 on their lower convex hull, the nearest to 0 last.
using Hull = std::vector<Point>;

inline double raised(double x) { return std::nextafter(x * up, infinity); }

// The slope of the chord to a later point.
inline double chord_slope(double eps, double delta, const Point& later) {
    const double fall = delta - later.delta, gap = later.eps - eps;
    // A gap of 1 or more is rounded, by up to 2^-44 where eps is hundreds: too much for an
    // exponent.
    const double width = gap < 1.0 ? std::exp(eps) * std::expm1(gap) : std::exp(later.eps) - std::exp(eps);
    return fall > 0.0 ? raised(fall / width) : 0.0;
}

inline Hull hull(const std::vector<double>& epsilons, const std::vector<double>& deltas) {
    Hull kept;
    for (std::size_t i = epsilons.size(); i-- > 1;) {
        const double eps = epsilons[i], delta = deltas[i];
        while (!kept.empty() && chord_slope(eps, delta, kept.back()) < kept.back().slope) kept.pop_back();
        kept.push_back({eps, delta, kept.empty() ? 0.0 : chord_slope(eps, delta, kept.back())});
    }
    return kept;
}

// delta(0), the mass of loss 0, and by how much delta falls from 0 to the first point of either
// direction, a unit of e^eps.
struct AtZero {
    Enclosed distance, mass;
    std::array<Enclosed, 2> slopes;
};

// With delta(0) as it is given. If a slope is above 1, the mass is negative, and stands as -1.
inline AtZero at_given_distance(double delta, const std::array<Hull, 2>& sides) {
    AtZero zero{{delta}, exact_sum(1.0, -delta), {}};
    for (std::size_t k = 0; k < 2; ++k) {
        if (sides[k].empty()) continue;
        const double width = std::expm1(sides[k].back().eps);
        const Enclosed fall = exact_sum(delta, -sides[k].back().delta);
        if (lower_end(fall) > width) return {{delta}, {-1.0}, {}};
        zero.slopes[k] = fall / Enclosed{width};
        zero.mass = zero.mass - zero.slopes[k];
    }
    return zero;
}

// With delta(0) on the chord between its neighbours on the two sides. The mass of loss 0 is 0.
//
// Let the nearer be x = e^eps - 1 away, the further y >= x, and let their deltas be a and b. With
// f = (b - a)/y and D = 1 + x + x/y, the chord's value is (x + a + b x/y)/D, and the slopes to both
// are (1 - a + f)/D and ((1 - b) x/y - f)/D. If f is not in [-1, 1], one of these is negative and
// stands as -1. With points on one side only, y is infinite.
inline AtZero on_chord(const std::array<Hull, 2>& sides) {
    const auto width = [&](std::size_t k) { return sides[k].empty() ? infinity : std::expm1(sides[k].back().eps); };
    const std::size_t near = width(0) <= width(1) ? 0 : 1, far = 1 - near;
    const Point& first = sides[near].back();
    const Enclosed one{1.0}, x{width(near)};
    Enclosed f, ratio, b;
    AtZero zero;
    if (!sides[far].empty()) {
        const Point& other = sides[far].back();
        const Enclosed y{width(far)}, difference = exact_sum(other.delta, -first.delta);
        if (lower_end(difference) > y.hi || upper_end(difference) < -y.hi) {
            zero.slopes[near] = {difference.hi > 0.0 ? first.slope : -1.0};
            zero.slopes[far] = {difference.hi > 0.0 ? -1.0 : other.slope};
            return zero;
        }
        f = difference / y, ratio = x / y, b = {other.delta};
        zero.slopes[far] = ratio * (one - b) - f;
    }
    const Enclosed all = one + x + ratio, a{first.delta};
    zero.slopes[far] = zero.slopes[far] / all;
    zero.slopes[near] = (one - a + f) / all;
    zero.distance = (x + a + b * ratio) / all;
    return zero;
}

// What is at 0; points that are above a first chord leave their side.
inline AtZero at_zero(double delta, std::array<Hull, 2>& sides) {
    while (true) {
        AtZero zero = at_given_distance(delta, sides);
        if (lower_end(zero.mass) < 0.0) zero = on_chord(sides);
        bool left = false;
        for (std::size_t k = 0; k < 2; ++k)
            if (!sides[k].empty() && upper_end(zero.slopes[k]) < sides[k].back().slope)
                sides[k].pop_back(), left = true;
        if (!left) return zero;
    }
}

// Smaller slopes lose digits, as doubles do near 1e-308.
inline constexpr double least_slope = 0x1p-960;

inline bool is_exact(const Enclosed& x) { return x.lo == 0.0 && x.error == 0.0; }
inline bool has_all_digits(const Enclosed& x) { return x.hi > least_slope && x.error < 0x1p-60 * x.hi; }
inline bool is_precise(const Enclosed& slope) { return (slope.hi == 0.0 && is_exact(slope)) || has_all_digits(slope); }

// The outcomes by increasing loss, from minus infinity to infinity.
struct Connected {
    std::vector<double> losses;
    Masses pair;
    bool precise;  // every slope has all its digits
};

// The outcomes of one side from 0 outwards, the law that they tell first.
inline Connected one_side(const Hull& side, const AtZero& zero, const Enclosed& first_slope) {
    Connected found{{}, {}, is_precise(first_slope)};
    const double steepest = upper_end(first_slope);
    double slope = steepest > 0.0 ? raised(steepest) : 0.0;
    for (auto point = side.rbegin(); point != side.rend(); ++point) {
        found.precise = found.precise && is_precise({point->slope});
        const double mass = slope - point->slope;
        slope = point->slope;
        if (mass == 0.0) continue;
        found.losses.push_back(point->eps);
        const double likelier = mass * std::exp(point->eps);
        // Near 1e-308 no margin pays for its rounding, which must not lower the ratio of the two.
        found.pair.p.push_back(likelier < least_slope ? raised(likelier) : likelier);
        found.pair.q.push_back(mass);
    }
    found.losses.push_back(infinity);
    found.pair.p.push_back(side.empty() ? min(upper_end(zero.distance), 1.0) : side.front().delta);
    found.pair.q.push_back(0.0);
    found.precise = found.precise && (!side.empty() || is_exact(zero.distance) || has_all_digits(zero.distance));
    return found;
}

inline Connected connected(const Profile& profile) {
    std::array<Hull, 2> sides{hull(profile.epsilons, profile.remove), hull(profile.epsilons, profile.add)};
    const AtZero zero = at_zero(profile.remove[0], sides);
    const Connected above = one_side(sides[0], zero, zero.slopes[0]), below = one_side(sides[1], zero, zero.slopes[1]);
    const double rest = max(zero.mass.hi, 0.0);
    Connected all{{}, {below.pair.q, below.pair.p}, above.precise && below.precise};
    for (const double loss : below.losses) all.losses.push_back(-loss);
    for (std::vector<double>* part : {&all.losses, &all.pair.p, &all.pair.q}) {
        std::reverse(part->begin(), part->end());
        part->push_back(part == &all.losses ? 0.0 : rest);
    }
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    append(all.losses, above.losses), append(all.pair.p, above.pair.p), append(all.pair.q, above.pair.q);
    return all;
}

// Makes a law sum to 1: what is missing beyond rounding counts as infinite loss.
inline void complete(std::vector<double>& law, double& infinite) {
    CompensatedSum sum;
    for (const double mass : law) sum.add(mass);
    const double missing = 1.0 - sum.value();
    if (!(missing >= -thirty_two_roundings))
        throw std::runtime_error("the masses of a profile sum to 1 + " + shortest_text(-missing) +
                                 ". This is a bug in hockeystick.");
    if (missing > thirty_two_roundings) infinite += missing;
}

// The outcomes that either law has.
inline Masses with_mass(const Masses& all) {
    Masses kept;
    for (std::size_t i = 0; i < all.p.size(); ++i) {
        if (all.p[i] == 0.0 && all.q[i] == 0.0) continue;
        kept.p.push_back(all.p[i]);
        kept.q.push_back(all.q[i]);
    }
    return kept;
}

// The outcomes of a pair whose curve is nowhere below the chords.
inline Masses masses_above(const Profile& profile) {
    require_profile(profile);
    Connected dots = connected(profile);
    Masses pair = widened(dots.losses, std::move(dots.pair), product_error);
    complete(pair.p, pair.p.back());
    complete(pair.q, pair.q.front());
    return with_mass(pair);
}

// A pair whose curve is nowhere below the chords, for the upper end; for the lower end one whose
// curve is nowhere above them, or nothing.
inline Steps privacy_profile(const Profile& profile, End end) {
    const auto pair_of = [](Masses all) { return discrete(std::move(all.p), std::move(all.q)); };
    if (end == End::upper) return {{pair_of(masses_above(profile)), 1.0}};
    require_profile(profile);
    Connected dots = connected(profile);
    if (!dots.precise) return {};
    const std::optional<Masses> pair = narrowed(dots.losses, std::move(dots.pair), product_error);
    return pair ? Steps{{pair_of(with_mass(*pair)), 1.0}} : Steps{};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
