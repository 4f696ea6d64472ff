// The two integrals of a curve delta(eps) that make up a Renyi divergence of order a >= 1:
//
//   growing   the integral of e^{(a-1) eps} delta(eps) over eps >= 0,
//   falling   the integral of e^{-a eps} delta(eps) over eps >= 0.
//
// With the growing one G of (P, Q) and the falling one F of (Q, P), the divergence of P from Q is
// log(1 + a (a-1) (G + F))/(a - 1), and G + F at order 1. Proof: docs/core/loss.md, Renyi
// divergences.
//
// Both are rounded up. delta is convex in e^eps. So between two nodes it is at most the chord,
// whose integral has a closed form; the chord errs by the square of the distance of the nodes.
// Cells are divided, by the cube root of their errors, until these are small. Beyond the last node
// E, delta(eps) <= P(L > eps), and with Hoelder's inequality and a bound D_b of an order b > a + 1
//
//   growing tail <= e^{-E} e^{a D_b} P(L > E)^{1 - a/(b-1)},
//   P(L > E) <= delta(E - x)/(1 - e^{-x}) for every x > 0.
//
// Cost: one delta for each of about a thousand nodes, a tenth to a half of a millisecond.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <hockeystick/loss/one_step.hpp>

namespace hockeystick::loss {
inline namespace HOCKEYSTICK_ISA {

enum class Half { growing, falling };

// An upper bound of the Renyi divergence of every order above 1; infinity where none is known.
using CoarseRenyi = std::function<double(double order)>;

inline constexpr double log_negligible = -21.0;  // of a tail beside the rest: some 1e-9

// (1 - e^{-b h})/b, the integral of e^{-b x} over [0, h], for b >= 0.
inline double decayed(double b, double h) { return b > 0.0 ? -std::expm1(-b * h) / b : h; }

// log of the growing tail beyond `from`, given an upper bound of P(L > from). It is not made
// smaller than `enough`.
inline double log_growing_tail(double order, double from, double mass, double enough, const CoarseRenyi& coarse) {
    if (mass == 0.0) return -infinity;
    double least = infinity;
    for (const double times : {2.0, 1.5, 1.25, 3.0, 5.0}) {
        if (least <= enough) break;
        const double less = times * order, bound = coarse(1.0 + less);
        least = min(least, order * bound * up + (1.0 - 1.0 / times) * std::log(min(mass, 1.0)) * down - from);
    }
    return least;
}

class CurveIntegral {
  public:
    CurveIntegral(const Loss& loss, double order, Half half) : step_(loss), order_(order), half_(half) {}

    // The logarithm of the integral, rounded up.
    double log_value(const CoarseRenyi& coarse) {
        const double end = last_node();
        for (double eps = end; nodes_.size() < first_nodes; eps *= 0.5) nodes_.push_back(node(eps));
        nodes_.push_back(node(0.0));
        std::reverse(nodes_.begin(), nodes_.end());
        for (int round = 0; round < most_rounds && !(measure() <= 1.0) && nodes_.size() < most_nodes; ++round) divide();
        const double tail = log_tail(end, coarse);
        // Cells beyond the doubles leave a total or a tail that is no number, and nothing known.
        return log_total_ < infinity && tail < infinity ? log_sum(log_total_, tail) : infinity;
    }

  private:
    static constexpr std::size_t first_nodes = 40, most_nodes = 6000;
    static constexpr int most_rounds = 12;
    static constexpr double accuracy = 3e-6;       // relative, of (order - 1) times the divergence
    static constexpr double least_delta = 1e-280;  // smaller ones are left to the tail
    static constexpr double most_parts = 8.0;      // of a cell in one round: its error is a rough guess

    struct Node {
        double eps, delta, exponent;  // exponent: the logarithm of the integrand
    };

    bool growing() const { return half_ == Half::growing; }
    double rate() const { return growing() ? order_ - 1.0 : -order_; }
    Node node(double eps) const {
        const double delta = step_.delta_above(eps);
        return {eps, delta, rate() * eps + std::log(delta)};
    }

    // The largest loss or, if there is none, where delta falls below least_delta; the falling
    // integral ends where e^{-a eps} is e^-40.
    double last_node() const {
        const double highest = step_.highest().upper, decayed_at = growing() ? infinity : 40.0 / order_;
        if (highest < infinity) return min(max(highest, smallest_loss), decayed_at);
        double end = 1.0;
        while (step_.delta_above(end) > least_delta && end < 1e300) end *= 2.0;
        while (step_.delta_above(0.5 * end) <= least_delta && end > smallest_loss) end *= 0.5;
        double inside = 0.5 * end;
        for (int k = 0; k < 10; ++k) {
            const double middle = 0.5 * (inside + end);
            (step_.delta_above(middle) > least_delta ? inside : end) = middle;
        }
        return min(end, decayed_at);
    }
    static constexpr double smallest_loss = 1e-150;

    // The integral of the chord between two nodes, divided by e^top_.
    double cell(const Node& left, const Node& right) const {
        if (left.delta == 0.0) return 0.0;
        const double h = right.eps - left.eps, a = order_;
        if (growing()) {  // divided by e^{(a-1) right.eps}
            const double whole = decayed(a - 1.0, h), step = -std::expm1(-h);
            const double part = (decayed(a, h) - std::exp(-h) * whole - sixteen_roundings * whole) / step;
            return std::exp((a - 1.0) * right.eps - top_) * chord(left.delta, right.delta, whole, part);
        }
        const double whole = decayed(a, h), longer = decayed(a - 1.0, h);
        const double part = (longer - whole - sixteen_roundings * longer) / std::expm1(h);
        return std::exp(-a * left.eps - top_) * chord(left.delta, right.delta, whole, part);
    }
    // delta falls: a smaller weight of the right end makes a larger integral.
    static double chord(double left, double right, double whole, double part) {
        part = min(max(part, 0.0), whole);
        return left * (whole - part) + min(right, left) * part;
    }

    // Integrates, and guesses the error of each cell; returns the sum of errors over that allowed.
    // A chord errs by the cube of its length: where a node goes, the error of its two cells
    // together grows fourfold, so that one of them has a sixth of the growth.
    double measure() {
        top_ = -infinity;
        for (const Node& x : nodes_) top_ = max(top_, x.exponent);
        if (top_ == -infinity) return log_total_ = -infinity, 0.0;
        const std::size_t cells = nodes_.size() - 1;
        std::vector<double> values(cells);
        double total = 0.0;
        for (std::size_t i = 0; i < cells; ++i) total += values[i] = cell(nodes_[i], nodes_[i + 1]);
        errors_.assign(cells, 0.0);
        for (std::size_t i = 0; i + 1 < cells; ++i) {
            const double saved = (cell(nodes_[i], nodes_[i + 2]) - values[i] - values[i + 1]) / 6.0;
            const double error = saved >= 0.0 ? saved : (values[i] + values[i + 1] < infinity ? 0.0 : infinity);
            errors_[i] = max(errors_[i], error), errors_[i + 1] = max(errors_[i + 1], error);
        }
        const double sizes = std::fabs(rate() * nodes_.back().eps) + std::fabs(top_) + 800.0;
        log_total_ = top_ + std::log(total) + unit_roundoff * (4.0 * sizes + 4.0 * static_cast<double>(cells) + 256.0);
        double sum = 0.0;
        for (const double error : errors_) sum += error;
        allowed_ = tolerance() * total;
        return sum < infinity ? sum / allowed_ : infinity;
    }

    // The share of the integral I that may be lost: log(1 + a (a-1) I) moves by less than I does.
    double tolerance() const {
        const double log_gain = std::log(order_ * (order_ - 1.0)) + log_total_;
        if (!(log_gain > 0.0)) return accuracy;
        return min(accuracy * (1.0 + log_gain), 0.01);
    }

    // The parts of cells that halve the work for a given sum of errors: by the cube root of each.
    void divide() {
        double sum = 0.0;
        for (const double error : errors_) sum += error < infinity ? std::cbrt(error) : 0.0;
        const double factor = std::sqrt(sum / allowed_), room = static_cast<double>(most_nodes);
        const double scale = min(factor, room / max(sum, smallest_positive));
        std::vector<Node> finer{nodes_[0]};
        for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
            const double wanted = errors_[i] < infinity ? std::ceil(scale * std::cbrt(errors_[i])) : most_parts;
            const double parts = min(max(wanted, 1.0), most_parts), width = nodes_[i + 1].eps - nodes_[i].eps;
            for (double k = 1.0; k < parts; ++k) {
                const double eps = nodes_[i].eps + width * (k / parts);
                if (eps > finer.back().eps && eps < nodes_[i + 1].eps) finer.push_back(node(eps));
            }
            finer.push_back(nodes_[i + 1]);
        }
        nodes_ = std::move(finer);
    }

    double log_tail(double end, const CoarseRenyi& coarse) const {
        const double left = nodes_.back().delta;
        if (!growing()) return std::log(left) - order_ * end - std::log(order_) + sixteen_roundings * order_ * end;
        if (left == 0.0) return -infinity;
        const double back = min(1.0, 0.5 * end);
        const double mass = step_.delta_above(end - back) / -std::expm1(-back) * up;
        return log_growing_tail(order_, end, mass, log_total_ + log_negligible, coarse);
    }

    OneStep step_;
    double order_;
    Half half_;
    std::vector<Node> nodes_;
    std::vector<double> errors_;  // of each cell
    double top_ = 0.0, log_total_ = -infinity, allowed_ = 0.0;
};

inline double log_curve_integral(const Loss& loss, double order, Half half, const CoarseRenyi& coarse) {
    return CurveIntegral(loss, order, half).log_value(coarse);
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::loss
