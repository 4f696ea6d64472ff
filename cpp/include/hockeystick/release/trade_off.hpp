// A mechanism by its trade-off function, a polygon: the privacy profile that says the same.
//
// Let S be an event of probability x without a record, which fails with probability y with it. The
// guarantee is that every (x, y) lies on or above a convex polygon. With gamma = e^eps,
// delta(eps) = sup 1 - y - gamma x over all S is the largest value at a corner, because a linear
// function has its maximum over what lies above a convex polygon there (Dong, Roth and Su 2022,
// Proposition 6). It bends where gamma is the steepness of a side, so that the points there
// determine it. The other order of both data sets has the mirrored polygon, of corners (y, x).
//
// Errors. Coordinates are sums of two doubles, and all that is computed from them is enclosed
// (numeric/enclosed.hpp), then rounded outwards. An epsilon is rounded up for an upper bound, as
// delta falls, and down for a lower one: then both points that a chord connects lie on one side of
// the line that it stands for. Where a point cannot be told from the chord of its neighbours, it is
// left out, and by how much it may lie below the chord joins the `slack` of the polygon, which an
// upper bound of delta is raised by. For a lower bound any corners may be left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hockeystick/release/privacy_profile.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

// Beyond this epsilon delta counts as that of infinite epsilon.
inline constexpr double largest_profile_epsilon = 600.0;

struct Corner {
    Enclosed x, y;
};

// How steeply a side falls; infinite if no double says it.
inline Enclosed fall_between(const Corner& left, const Corner& right) {
    const Enclosed fall = left.y - right.y, width = right.x - left.x;
    return fall.hi / width.hi < infinity ? fall / width : Enclosed{infinity};
}

// Convex: corners from left to right, and the falls of the sides between them. Points that were left
// out may be `slack` below it.
struct Polygon {
    std::vector<Corner> corners;
    std::vector<Enclosed> falls;
    double slack = 0.0;

    // Whether the last corner is below the chord of its neighbours; `fall` is that of the side to
    // `next`. Where this cannot be told, it is if `keep`, and else joins the slack.
    bool bends_before(const Corner& next, const Enclosed& fall, bool keep) {
        if (falls.back().hi == infinity) return true;
        const Enclosed bend = falls.back() - fall;
        if (lower_end(bend) > 0.0 || !(upper_end(bend) > 0.0)) return lower_end(bend) > 0.0;
        const Corner &left = corners[corners.size() - 2], &middle = corners.back();
        const double width = max(upper_end(middle.x - left.x), upper_end(next.x - middle.x));
        if (!keep) slack = raised(slack + raised(upper_end(bend) * width));
        return keep;
    }
};

inline bool less(const Enclosed& a, const Enclosed& b) { return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo); }

// Events by their probabilities without the record and of missing it, at most one less the other.
inline std::vector<Corner> corners_of(const std::vector<double>& rates, const std::vector<double>& missed) {
    std::vector<Corner> corners;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        const Enclosed rest = exact_sum(1.0, -rates[i]);
        corners.push_back({{rates[i]}, less(rest, {missed[i]}) ? rest : Enclosed{missed[i]}});
    }
    return corners;
}

// Events by their probabilities without the record and with it.
inline std::vector<Corner> tests_of(const std::vector<double>& rates, const std::vector<double>& found) {
    std::vector<Corner> corners;
    for (std::size_t i = 0; i < rates.size(); ++i) corners.push_back({{rates[i]}, exact_sum(1.0, -found[i])});
    return corners;
}

// The largest convex polygon on or below the points.
inline Polygon lower_hull(std::vector<Corner> points, bool keep = false) {
    std::sort(points.begin(), points.end(),
              [](const Corner& a, const Corner& b) { return less(a.x, b.x) || (!less(b.x, a.x) && less(a.y, b.y)); });
    Polygon hull;
    for (const Corner& next : points) {
        if (hull.corners.empty()) hull.corners.push_back(next);
        if (!less(hull.corners.back().x, next.x)) continue;  // sorted: the lower one was first
        Enclosed fall = fall_between(hull.corners.back(), next);
        for (; !hull.falls.empty() && !hull.bends_before(next, fall, keep);
             fall = fall_between(hull.corners.back(), next))
            hull.corners.pop_back(), hull.falls.pop_back();
        hull.corners.push_back(next), hull.falls.push_back(fall);
    }
    return hull;
}

// The corners of a convex polygon on or below the points, which are doubles.
inline std::pair<std::vector<double>, std::vector<double>> corners_below(std::vector<Corner> points) {
    std::pair<std::vector<double>, std::vector<double>> found;
    for (const Corner& corner : lower_hull(std::move(points), true).corners)
        found.first.push_back(corner.x.hi), found.second.push_back(lower_end(corner.y));
    return found;
}

// Delta of one order of the data sets, as upper or as lower bounds.
class ProfileOfOrder {
  public:
    ProfileOfOrder(Polygon polygon, End end) : polygon_(std::move(polygon)), upper_(end == End::upper) {
        for (std::size_t i = falls().size(); i-- > 0 && !is_steep(i);) {
            const Enclosed above_one = falls()[i] - Enclosed{1.0};
            if (!(upper_end(above_one) > 0.0)) continue;
            const double eps =
                upper_ ? std::log1p(upper_end(above_one)) * up : std::log1p(max(lower_end(above_one), 0.0)) * down;
            bends_.push_back({max(min(eps, largest_profile_epsilon), bends_.empty() ? 0.0 : bends_.back().eps),
                              at_corner(i, falls()[i]), 0.0});
        }
    }

    bool is_steep(std::size_t side = 0) const {
        return side < falls().size() && falls()[side].hi > std::exp(largest_profile_epsilon);
    }
    const std::vector<Point>& bends() const { return bends_; }

    // A bound at any epsilon; where the curve bends the one of the bend.
    double delta(double eps) const {
        const auto after =
            std::partition_point(bends_.begin(), bends_.end(), [eps](const Point& bend) { return bend.eps <= eps; });
        const double bend = after == bends_.begin() ? infinity : std::prev(after)->delta;  // delta falls
        if (upper_) return min(min(at(eps == 0.0 ? Enclosed{1.0} : exact_product(std::exp(eps), down)), bend), 1.0);
        // Beyond the last epsilon it stays.
        if (eps == largest_profile_epsilon && is_steep()) return at_corner(0, {});
        if (after != bends_.begin() && std::prev(after)->eps == eps) return bend;
        return at(eps == 0.0 ? Enclosed{1.0} : exact_product(std::exp(eps), up));
    }

  private:
    double at_corner(std::size_t i, const Enclosed& gamma) const {
        const Corner& corner = polygon_.corners[i];
        const Enclosed delta = Enclosed{1.0} - corner.y - gamma * corner.x;
        return max(upper_ ? upper_end(delta + Enclosed{polygon_.slack}) : lower_end(delta), 0.0);
    }

    // The largest value at the corners among which that of gamma is: all sides before `first` are
    // steeper, and none from `last` on.
    double at(const Enclosed& gamma) const {
        auto first = std::partition_point(falls().begin(), falls().end(),
                                          [&](const Enclosed& fall) { return fall.hi > gamma.hi; });
        auto last = first;
        while (first != falls().begin() && lower_end(*std::prev(first)) <= upper_end(gamma)) --first;
        while (last != falls().end() && upper_end(*last) > lower_end(gamma)) ++last;
        double largest = 0.0;
        for (auto side = first;; ++side) {
            largest = max(largest, at_corner(static_cast<std::size_t>(side - falls().begin()), gamma));
            if (side == last) return largest;
        }
    }

    const std::vector<Enclosed>& falls() const { return polygon_.falls; }

    Polygon polygon_;
    bool upper_;
    std::vector<Point> bends_;  // by increasing epsilon, from 0 to the largest
};

// Deltas may rise by rounding.
inline std::vector<double> falling(std::vector<double> deltas) {
    for (std::size_t i = 1; i < deltas.size(); ++i) deltas[i] = min(deltas[i], deltas[i - 1]);
    return deltas;
}

// The other order of the data sets.
inline std::vector<Corner> mirrored(std::vector<Corner> corners) {
    for (Corner& corner : corners) std::swap(corner.x, corner.y);
    return corners;
}

// The profile of polygons from x = 0, below all tests of either order for the upper end, or above
// some for the lower one. If `symmetric`, both polygons hold in both orders.
inline Profile trade_off_profile(std::vector<Corner> with, std::vector<Corner> without, bool symmetric, End end) {
    const ProfileOfOrder remove(lower_hull(std::move(with)), end), add(lower_hull(std::move(without)), end);
    Profile profile{{0.0}, {}, {}};
    for (const ProfileOfOrder* order : {&remove, &add}) {
        for (const Point& bend : order->bends()) profile.epsilons.push_back(bend.eps);
        if (order->is_steep()) profile.epsilons.push_back(largest_profile_epsilon);
    }
    std::sort(profile.epsilons.begin(), profile.epsilons.end());
    profile.epsilons.erase(std::unique(profile.epsilons.begin(), profile.epsilons.end()), profile.epsilons.end());
    for (const double eps : profile.epsilons) {
        double first = remove.delta(eps), second = add.delta(eps);
        if (symmetric) first = second = min(first, second);
        else if (eps == 0.0) first = second = end == End::upper ? max(first, second) : min(first, second);
        profile.remove.push_back(first), profile.add.push_back(second);
    }
    return {std::move(profile.epsilons), falling(std::move(profile.remove)), falling(std::move(profile.add))};
}

// Points of which the lower hull is below every convex function that does not rise and lies between
// `lows` and `highs` at the rates, the last of which are 0.
//
// Beyond two of its points the line through both is below the function, so that between neighbours
// both lines, from the left and from the right, are. A corner on the lower one has its chords below
// the higher one. None is steeper than to fall, or less than to be level. How the function falls
// from 0 is not known: at once.
inline std::vector<Corner> below_tangents(const std::vector<double>& rates, const std::vector<double>& lows,
                                          const std::vector<double>& highs) {
    const auto slope = [&](double y, double later_y, std::size_t i) {
        return exact_sum(later_y, -y) / exact_sum(rates[i + 1], -rates[i]);
    };
    std::vector<Corner> found;
    for (std::size_t i = 0; i < rates.size(); ++i) found.push_back({{rates[i]}, {lows[i]}});
    for (std::size_t i = 0; i + 1 < rates.size(); ++i) {
        Enclosed after = i + 2 < rates.size() ? slope(lows[i + 1], highs[i + 2], i + 1) : Enclosed{};
        if (after.hi > 0.0) after = {};
        const auto from_right = [&](double x) {
            return max(lower_end(Enclosed{lows[i + 1]} + after * exact_sum(x, -rates[i + 1])), 0.0);
        };
        if (i == 0) {
            found[0].y = {min(lows[0], from_right(rates[0]))};
            continue;
        }
        const Enclosed before = slope(highs[i - 1], lows[i], i - 1), bend = after - before;
        if (upper_end(bend) <= 0.0) continue;  // the function is a line here
        const Enclosed gap = exact_sum(lows[i], -lows[i + 1]) + after * exact_sum(rates[i + 1], -rates[i]);
        const Enclosed meeting = Enclosed{rates[i]} + gap / bend;
        const double corner = lower_end(meeting) > rates[i] ? lower_end(meeting) : rates[i];
        if (upper_end(meeting) <= rates[i] || corner >= rates[i + 1]) continue;
        found.push_back({{corner}, {from_right(corner)}});
    }
    return found;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
