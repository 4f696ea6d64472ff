// A rough picture of a composition's privacy losses: cumulants good enough to choose a tilt, a cut
// and a grid step by.
//
// Nothing here needs to be exact: any truncation point, tilt, cut and grid step are sound, and
// pld/tilted_composition.hpp charges what they cost. Cost: a few hundred exponentials a cumulant
// and distinct step.
#pragma once

#include <algorithm>

#include <hockeystick/pld/discretise.hpp>

namespace hockeystick::pld {
inline namespace HOCKEYSTICK_ISA {

// The smallest x with above(x) true, for a predicate that is false, then true on the line; to about
// 1e-6, relatively, from the true side.
template <class Predicate> double switch_point(const Predicate& above) {
    double bound = 1e-3;
    while (bound < 1e15 && (above(-bound) || !above(bound))) bound *= 4.0;
    double low = -bound, high = bound;
    for (int k = 0; k < 60 && high - low > 1e-6 * bound; ++k) {
        const double middle = 0.5 * (low + high);
        (above(middle) ? high : low) = middle;
    }
    return above(low) ? low : high;
}

// Losses above this have P-mass at most `mass`.
inline double upper_end(const PrivacyLoss& loss, double mass) {
    const double x = switch_point([&](double eps) { return loss.masses(eps).p_above <= mass; });
    return min(x, loss.highest());
}

inline double lower_end(const PrivacyLoss& loss, double mass) {
    const double x = -switch_point([&](double minus) { return loss.masses(-minus).p_below <= mass; });
    return max(x, loss.lowest());
}

// One step's log M(c) in two parts: of losses <= cut and of losses > cut.
struct SplitCumulants {
    double small, large;
};

class CumulantSketch {
  public:
    CumulantSketch(const PrivacyLoss& loss, double count) : count_(count) {
        for (const OutlinePoint& x : loss.outline())
            if (std::isfinite(x.loss) && x.log_p > -745.0) points_.push_back(x);
        std::sort(points_.begin(), points_.end(),
                  [](const OutlinePoint& x, const OutlinePoint& y) { return x.loss < y.loss; });
        end_ = points_.size();
    }

    double count() const { return count_; }

    // Forgets the losses above `top`.
    void limit(double top) {
        for (end_ = points_.size(); end_ > 1 && points_[end_ - 1].loss > top;) --end_;
    }

    // A generous cut counts the node above it as small too, so that the sum of the small ones is
    // not too small where the cut lies between nodes.
    SplitCumulants moments(double c, double cut, bool generous = false) const {
        std::size_t middle = end_;
        if (cut < infinity)
            for (middle = 0; middle < end_ && points_[middle].loss <= cut;) ++middle;
        if (generous && middle < end_) ++middle;
        return {log_sum(c, 0, middle), log_sum(c, middle, end_)};
    }

    // Calls visit(loss, weight) with the weights p e^{c l}/M(c).
    template <class Visit> void tilted(double c, const Visit& visit) const {
        const double all = log_sum(c, 0, end_);
        for (std::size_t i = 0; i < end_; ++i) {
            const double exponent = c * points_[i].loss + points_[i].log_p - all;
            if (exponent > -40.0) visit(points_[i].loss, std::exp(exponent));
        }
    }

  private:
    double log_sum(double c, std::size_t begin, std::size_t end) const {
        double largest = -infinity, sum = 0.0;
        for (std::size_t i = begin; i < end; ++i) largest = max(largest, c * points_[i].loss + points_[i].log_p);
        for (std::size_t i = begin; i < end; ++i) {
            const double exponent = c * points_[i].loss + points_[i].log_p - largest;
            if (exponent > -40.0) sum += std::exp(exponent);
        }
        return sum > 0.0 ? largest + std::log(sum) : -infinity;
    }

    double count_;
    std::vector<OutlinePoint> points_;  // by loss
    std::size_t end_;
};

// Minimises a function of c that falls, then rises, over 1e-3 <= c <= 1e9, by golden sections of
// log c.
template <class Function> double best_tilt(const Function& f) {
    constexpr double golden = 0.6180339887498949;  // (sqrt 5 - 1)/2
    double low = std::log(1e-3), high = std::log(1e9);
    double x = high - golden * (high - low), y = low + golden * (high - low);
    double fx = f(std::exp(x)), fy = f(std::exp(y));
    while (high - low > 2e-3) {
        if (fx <= fy) {
            high = y, y = x, fy = fx;
            x = high - golden * (high - low), fx = f(std::exp(x));
        } else {
            low = x, x = y, fx = fy;
            y = low + golden * (high - low), fy = f(std::exp(y));
        }
    }
    return std::exp(0.5 * (low + high));
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::pld
