// Pairs of discrete distributions: `Discrete`, which is reversed for the other direction, and
// `DiscretePairs`, which has a pair of its own for each direction.
//
// `discrete_laplace` and `randomized_response` are such pairs.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/loss/curve_integral.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/mechanism/renyi.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// Renyi divergences of discrete pairs, and the integrals of their curves, which are sums over the
// outcomes.
//
// An outcome of masses p and q and loss l = log p/q > 0 has the share max(p - e^eps q, 0) in delta.
// With psi(b) = (1 - e^{-b l})/b, its share of the integrals of loss/curve_integral.hpp is
//
//   growing   p e^{(a-1) l} (psi(a-1) - psi(a)),
//   falling   p (psi(a) - e^{-l} psi(a-1)),
//
// both at most p l^2/2 but for e^{(a-1) l}, as 1 - e^{-x} <= x: for where psi cancels.
// Both grow with l, which is rounded up.

using loss::CoarseRenyi;
using loss::Half;
using loss::Masses;

// The Renyi divergence of p from q, rounded up: log(sum_i p_i (p_i/q_i)^{a-1})/(a - 1) at order a.
//
// With l_i = log(p_i/q_i), the sum is 1 + sum_i p_i expm1((a-1) l_i), which keeps the digits of a
// small divergence. A measure p that bounds a law may exceed mass 1, by `excess`, which is
// added. Where e^{(a-1) l_i} could overflow, every exponent is lowered by the largest one, `top`.
// At order 1 the divergence is sum_i p_i l_i.
inline double discrete_renyi(const std::vector<double>& p, const std::vector<double>& q, double order,
                             double excess = 0.0) {
    std::vector<double> masses, losses;
    double largest = -infinity, logs = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (p[i] == 0.0) continue;
        if (q[i] == 0.0) return infinity;
        masses.push_back(p[i]);
        losses.push_back(std::log(p[i]) - std::log(q[i]));
        largest = max(largest, losses.back());
        logs = max(logs, std::fabs(std::log(p[i])) + std::fabs(std::log(q[i])));
    }
    const double error = sixteen_roundings * static_cast<double>(masses.size()) * (1.0 + logs);
    const double less = order - 1.0, top = less * largest;
    double sum = 0.0;
    for (std::size_t i = 0; i < masses.size(); ++i) {
        if (order == 1.0) sum += masses[i] * losses[i];
        else sum += masses[i] * (top > 500.0 ? std::exp(less * losses[i] - top) : std::expm1(less * losses[i]));
    }
    if (order == 1.0) return sum + error;
    const double g = top > 500.0 ? top + std::log(sum) : std::log1p(sum + excess);
    return g / less * renyi_up + error;
}

// The integral of a mass of infinite loss, of the whole curve where it falls, or up to the loss
// `end` and with the tail beyond it (loss/curve_integral.hpp) where it grows.
inline double log_infinite_integral(const Masses& pair, double infinite, double order, Half half, double end,
                                    const CoarseRenyi& coarse) {
    if (half == Half::falling) return std::log(infinite / order) + sixteen_roundings;
    const double from = end - min(1.0, 0.5 * end);
    double beyond = infinite;
    for (std::size_t i = 0; i < pair.p.size(); ++i)
        if (pair.q[i] > 0.0) beyond += max(pair.p[i] - std::exp(from) * pair.q[i], 0.0);
    const double errors = sixteen_roundings * (static_cast<double>(pair.p.size()) + order * end + 1e4);
    const double known = std::log(infinite * loss::decayed(order - 1.0, end)) + (order - 1.0) * end + errors;
    const double mass = beyond / -std::expm1(from - end) * (1.0 + errors);
    return log_sum(known, loss::log_growing_tail(order, end, mass, known + loss::log_negligible, coarse));
}

// The logarithm of an integral of the curve of a discrete pair, rounded up. Masses may err by eight
// roundings.
inline double log_discrete_integral(const Masses& pair, double order, Half half, const CoarseRenyi& coarse) {
    const double a = order, less = a - 1.0;
    std::vector<double> logs, weights;
    double top = -infinity, end = 0.0, infinite = 0.0;
    for (std::size_t i = 0; i < pair.p.size(); ++i) {
        const double p = pair.p[i], q = pair.q[i];
        if (q == 0.0) infinite += p;
        if (!(p > q && q > 0.0)) continue;
        const double log_p = std::log(p), log_q = std::log(q);
        const double l = log_p - log_q + sixteen_roundings * (1.0 + std::fabs(log_p) + std::fabs(log_q));
        const double longer = loss::decayed(less, l), shorter = loss::decayed(a, l);
        const double part = half == Half::growing ? longer - shorter : shorter - std::exp(-l) * longer;
        weights.push_back(min(part + sixteen_roundings * longer, 0.5 * l * l));
        logs.push_back(half == Half::growing ? log_p + less * l : log_p);
        top = max(top, logs.back()), end = max(end, l);
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < logs.size(); ++i) sum += std::exp(logs[i] - top) * weights[i];
    const double terms = static_cast<double>(logs.size());
    const double finite =
        sum > 0.0 ? top + std::log(sum) + sixteen_roundings * (terms + std::fabs(top) + 1e3) : -infinity;
    if (infinite == 0.0) return finite;
    return log_sum(finite, log_infinite_integral(pair, infinite * (1.0 + sixteen_roundings * terms), order, half,
                                                 end > 0.0 ? end : 1.0, coarse));
}

// What the sum of computed probabilities may miss 1 by: far more than any rounding of their making.
inline constexpr double law_error = 1e-9;

// The same for measures that bound a law from above or below, whose sums miss 1 by their margins.
inline constexpr double bound_error = 1e-3;

// Throws unless both vectors have the same length and hold probabilities that sum to 1.
inline void require_masses(const Masses& masses, double sum_error) {
    if (masses.p.size() != masses.q.size() || masses.p.empty())
        throw std::invalid_argument("p and q must have the same length, not 0");
    for (const std::vector<double>* vector : {&masses.p, &masses.q}) {
        const char* name = vector == &masses.p ? "p" : "q";
        double sum = 0.0;
        for (const double mass : *vector) {
            require(mass >= 0.0 && mass <= 1.0 + sum_error, name, "hold probabilities in [0, 1]", mass);
            sum += mass;
        }
        require(std::fabs(sum - 1.0) <= sum_error, name, "sum to 1", sum);
    }
}

// A pair's masses on a Poisson sample of this rate, from those of one direction.
inline Masses sampled_masses(Masses pair, double rate, Direction direction) {
    for (std::size_t i = 0; i < pair.p.size() && rate < 1.0; ++i) {
        if (direction == Direction::remove) pair.p[i] = (1.0 - rate) * pair.q[i] + rate * pair.p[i];
        else pair.q[i] = (1.0 - rate) * pair.p[i] + rate * pair.q[i];
    }
    return pair;
}

// The steps of which a discrete pair is the composition, if it is one that was put on a grid. Where
// the grid ends it has an infinite loss, and they do not; their Renyi divergences add up.
class ComposedParts {
  public:
    explicit ComposedParts(Steps steps) : steps_(std::move(steps)) {}
    bool known() const { return !steps_.empty(); }
    double renyi(double order, Direction direction) const {
        return sum([=](const Pair& pair) { return pair.renyi(order, 1.0, direction); });
    }
    double coarse_renyi(double order, Direction direction) const {
        return sum([=](const Pair& pair) { return pair.coarse_renyi(order, 1.0, direction); });
    }
    void add_to(std::vector<double>& parameters) const {
        for (const CountedPair& step : steps_) {
            parameters.push_back(step.count);
            parameters.push_back(static_cast<double>(step.pair->hash()));
        }
    }

  private:
    template <class Function> double sum(const Function& f) const {
        double total = 0.0;
        for (const CountedPair& step : steps_) total += step.count * f(*step.pair);
        return total * (1.0 + sixteen_roundings * static_cast<double>(steps_.size()));
    }

    Steps steps_;
};

class Discrete : public Pair {
  public:
    explicit Discrete(Masses masses, Steps parts = {}) : masses_(std::move(masses)), parts_(std::move(parts)) {
        require_masses(masses_, law_error);
        std::vector<std::pair<double, double>> pairs, reversed;
        for (std::size_t i = 0; i < masses_.p.size(); ++i) {
            pairs.emplace_back(masses_.p[i], masses_.q[i]);
            reversed.emplace_back(masses_.q[i], masses_.p[i]);
        }
        std::sort(pairs.begin(), pairs.end());
        std::sort(reversed.begin(), reversed.end());
        symmetric_ = pairs == reversed;
    }
    Loss loss(Direction direction) const override {
        return direction == Direction::remove ? std::make_shared<DiscreteLoss>(masses_.p, masses_.q)
                                              : std::make_shared<DiscreteLoss>(masses_.q, masses_.p);
    }
    bool symmetric() const override { return symmetric_; }
    bool has_cumulant(double rate) const override {
        return DiscreteCumulant::covers(masses_.p, masses_.q, {rate, Direction::remove}) &&
               DiscreteCumulant::covers(masses_.p, masses_.q, {rate, Direction::add});
    }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double,
                                       const CumulantTools& tools) const override {
        return std::make_unique<DiscreteCumulant>(discrete_law(masses_.p, masses_.q, {rate, direction}), *tools.kernels,
                                                  tools.workspace);
    }
    double renyi(double order, double rate, Direction direction) const override {
        if (parts_.known()) return rate == 1.0 ? parts_.renyi(order, direction) : curve_renyi(order, rate, direction);
        const Masses pair = of_sample(rate, direction);
        return discrete_renyi(pair.p, pair.q, order);
    }
    double log_integral(double order, double rate, Direction direction, Half half) const override {
        return log_discrete_integral(of_sample(rate, direction), order, half,
                                     [&](double b) { return coarse_renyi(b, rate, direction); });
    }
    double coarse_renyi(double order, double rate, Direction direction) const override {
        return parts_.known() ? parts_.coarse_renyi(order, direction) : Pair::coarse_renyi(order, rate, direction);
    }
    std::vector<double> parameters() const override {
        std::vector<double> both = masses_.p;
        both.insert(both.end(), masses_.q.begin(), masses_.q.end());
        parts_.add_to(both);
        return both;
    }
    const Masses& masses() const { return masses_; }

  private:
    Masses of_sample(double rate, Direction direction) const {
        Masses pair = direction == Direction::remove ? masses_ : Masses{masses_.q, masses_.p};
        return sampled_masses(std::move(pair), rate, direction);
    }

    Masses masses_;
    ComposedParts parts_;
    bool symmetric_;
};

// One pair for each direction. Each need only dominate the mechanism in its own direction, so the
// answers of a direction, Renyi divergences among them, are those of its own pair: the other one
// would lower some of them, but below what this pair attains.
class DiscretePairs : public Pair {
  public:
    DiscretePairs(Masses remove, Masses add, Steps parts = {})
        : remove_(std::move(remove)), add_(std::move(add)), parts_(std::move(parts)) {
        require_masses(remove_, bound_error);
        require_masses(add_, bound_error);
    }
    Loss loss(Direction direction) const override {
        return std::make_shared<DiscreteLoss>(masses(direction).p, masses(direction).q);
    }
    bool is_rounded_to_grid() const override { return parts_.known(); }
    bool symmetric() const override { return false; }
    double renyi(double order, double rate, Direction direction) const override {
        if (parts_.known()) return rate == 1.0 ? parts_.renyi(order, direction) : curve_renyi(order, rate, direction);
        const Masses pair = of_sample(rate, direction);
        const double excess = std::accumulate(pair.p.begin(), pair.p.end(), 0.0) - 1.0;
        const double rounding = 2.0 * unit_roundoff * static_cast<double>(pair.p.size());
        if (std::fabs(excess) > rounding)  // the integrals of a curve are those of laws
            return discrete_renyi(pair.p, pair.q, max(order, least_order), max(excess, 0.0) + rounding);
        const auto coarse = [&](double b) { return coarse_renyi(b, rate, direction); };
        const double growing = log_discrete_integral(pair, order, Half::growing, coarse);
        const double falling = log_discrete_integral({pair.q, pair.p}, order, Half::falling, coarse);
        return renyi_of_integral(order, log_sum(growing, falling));
    }
    double log_integral(double order, double rate, Direction direction, Half half) const override {
        return log_discrete_integral(of_sample(rate, direction), order, half,
                                     [&](double b) { return coarse_renyi(b, rate, direction); });
    }
    double coarse_renyi(double order, double rate, Direction direction) const override {
        return parts_.known() ? parts_.coarse_renyi(order, direction) : Pair::coarse_renyi(order, rate, direction);
    }
    const Masses& masses(Direction direction) const { return direction == Direction::remove ? remove_ : add_; }
    std::vector<double> parameters() const override {
        std::vector<double> all{static_cast<double>(remove_.p.size())};
        for (const std::vector<double>* part : {&remove_.p, &remove_.q, &add_.p, &add_.q})
            all.insert(all.end(), part->begin(), part->end());
        parts_.add_to(all);
        return all;
    }

  private:
    // Of measures that miss mass 1, order 1 is bounded by one above it.
    static constexpr double least_order = 1.001;

    Masses of_sample(double rate, Direction direction) const {
        return sampled_masses(direction == Direction::remove ? remove_ : add_, rate, direction);
    }

    Masses remove_, add_;
    ComposedParts parts_;
};

inline PairPointer discrete(std::vector<double> p, std::vector<double> q) {
    return made<Discrete>(Masses{std::move(p), std::move(q)});
}

// Two-sided geometric noise, of mass proportional to e^{-parameter |k|}, on a query that moves by
// `sensitivity` (Ghosh, Roughgarden and Sundararajan 2009). All outcomes k <= 0 have the same loss,
// and so have all k >= sensitivity: each of these sets is one outcome of the pair.
inline PairPointer discrete_laplace(double parameter, double sensitivity) {
    const FloatingEnvironment environment;
    require(positive(parameter), "inverse_scale", "be positive and finite", parameter);
    require(count(sensitivity) && sensitivity <= 2e4, "sensitivity", "be an integer in [1, 20000]", sensitivity);
    require(parameter * sensitivity <= 600.0, "inverse_scale", "be at most 600/sensitivity", parameter);
    const double end = 1.0 / (1.0 + std::exp(-parameter)), middle = -std::expm1(-parameter) * end;
    std::vector<double> q{end};  // the outcomes k <= 0
    for (double k = 1.0; k < sensitivity; ++k) q.push_back(middle * std::exp(-parameter * k));
    q.push_back(end * std::exp(-parameter * sensitivity));
    return discrete({q.rbegin(), q.rend()}, q);
}

// Answers with a uniform bucket with probability `noise_probability`, and with the true one
// otherwise. The pair is for replacing one true answer by another.
inline PairPointer randomized_response(double noise_probability, double num_buckets) {
    const FloatingEnvironment environment;
    require_probability("noise_probability", noise_probability);
    require(count(num_buckets) && num_buckets >= 2.0, "num_buckets", "be an integer of at least 2", num_buckets);
    const double other = noise_probability / num_buckets, true_one = (1.0 - noise_probability) + other;
    const double rest = other * (num_buckets - 2.0);
    return discrete({true_one, other, rest}, {other, true_one, rest});
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
