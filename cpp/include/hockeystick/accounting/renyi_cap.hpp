// Upper ends by Renyi divergences, which add up over the steps. With D of order a for the whole,
// every order bounds both questions (Canonne, Kamath and Steinke 2020, Proposition 12):
//
//   log delta <= (a-1) (D - eps + log(1 - 1/a)) - log a,
//   epsilon   <= D + log(1 - 1/a) - (log delta + log a)/(a-1).
//
// (a-1) D is convex in a, so the first bound is too, and the second has one valley. A
// golden-section search of log(a-1) finds a good order; whichever it finds, the bound holds. It
// tries integers last, where sampled steps have their sharpest closed forms.
//
// Cost: some twenty divergences of each step, from microseconds to ten milliseconds.
#pragma once

#include <cmath>

#include <hockeystick/accounting/question.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

struct RenyiBound {
    double value, order;
};

class RenyiCap {
  public:
    RenyiCap(const Steps& steps, Direction direction, const Question& question)
        : steps_(steps), direction_(direction), question_(question) {}

    RenyiBound least() {
        try_order(2.0);
        if (!(best_.value < infinity)) return best_;
        double low = least_log, high = std::log(largest_order - 1.0);
        double left = high - golden * (high - low), right = low + golden * (high - low);
        double at_left = try_order(1.0 + std::exp(left)), at_right = try_order(1.0 + std::exp(right));
        while (high - low > resolution) {
            if (at_left <= at_right) {
                high = right, right = left, at_right = at_left;
                left = high - golden * (high - low), at_left = try_order(1.0 + std::exp(left));
            } else {
                low = left, left = right, at_left = at_right;
                right = low + golden * (high - low), at_right = try_order(1.0 + std::exp(right));
            }
        }
        const double near = std::floor(best_.order);
        if (near >= 2.0 && near <= most_integers) try_order(near), try_order(near + 1.0);
        best_.value =
            question_.for_epsilon ? max(best_.value, 0.0) : min(std::exp(best_.value) * up + smallest_positive, 1.0);
        return best_;
    }

  private:
    static constexpr double golden = 0.6180339887498949;  // (sqrt 5 - 1)/2
    static constexpr double least_log = -6.0, largest_order = 1e4, resolution = 0.02, most_integers = 256.0;

    double divergence(double order) const {
        double sum = 0.0;
        for (const CountedPair& step : steps_) sum += step.count * step.pair->renyi(order, 1.0, direction_);
        return sum * (1.0 + unit_roundoff * (2.0 * static_cast<double>(steps_.size()) + 8.0));
    }

    // The bound of this order, of epsilon or of log delta.
    double try_order(double order) {
        const double less = order - 1.0, d = divergence(order), log_share = std::log1p(-1.0 / order);
        double parts[] = {d, log_share, -question_.value, -std::log(order) / less};
        if (question_.for_epsilon) parts[2] = -std::log(question_.value) / less;
        double sum = 0.0, size = 0.0;
        for (const double part : parts) sum += part, size += std::fabs(part);
        sum += sixteen_roundings * size;
        const double bound = question_.for_epsilon ? sum : less * sum;
        if (bound < best_.value) best_ = {bound, order};
        return bound;
    }

    const Steps& steps_;
    Direction direction_;
    Question question_;
    RenyiBound best_{infinity, 0.0};
};

// The least bound over the orders; infinity if there is none.
inline RenyiBound renyi_bound(const Steps& steps, Direction direction, const Question& question) {
    const bool asks_little = question.for_epsilon ? question.value > 0.0 : question.value < infinity;
    return asks_little ? RenyiCap(steps, direction, question).least() : RenyiBound{infinity, 0.0};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
