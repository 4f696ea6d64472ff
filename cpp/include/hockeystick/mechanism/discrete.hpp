// Pairs of discrete distributions: `Discrete`, which is reversed for the other direction, and
// `DiscretePairs`, which has a pair of its own for each direction.
//
// `discrete_laplace` and `randomized_response` are such pairs.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/loss/discrete.hpp>
#include <hockeystick/mechanism/pair.hpp>
#include <hockeystick/mechanism/renyi.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

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

// The Renyi divergence of p from q, rounded up: log(sum_i p_i (p_i/q_i)^{a-1})/(a - 1) at order a.
//
// With l_i = log(p_i/q_i), the sum is 1 + sum_i p_i expm1((a-1) l_i), which keeps the digits of a
// small divergence. Where e^{(a-1) l_i} could overflow, every exponent is lowered by the largest
// one, `top`. At order 1 the divergence is sum_i p_i l_i.
inline double discrete_renyi(const std::vector<double>& p, const std::vector<double>& q, double order) {
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
    const double g = top > 500.0 ? top + std::log(sum) : std::log1p(sum);
    return g / less * renyi_up + error;
}

class Discrete final : public Pair {
  public:
    explicit Discrete(Masses masses) : masses_(std::move(masses)) {
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
        return DiscreteCumulant::covers(masses_.p, masses_.q, {rate, true}) &&
               DiscreteCumulant::covers(masses_.p, masses_.q, {rate, false});
    }
    std::unique_ptr<Cumulant> cumulant(double rate, Direction direction, double,
                                       const CumulantTools& tools) const override {
        return std::make_unique<DiscreteCumulant>(
            discrete_law(masses_.p, masses_.q, rate, direction == Direction::remove), *tools.kernels, tools.workspace);
    }
    double renyi(double order, double rate, Direction direction) const override {
        std::vector<double> mixed = masses_.p;
        for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = (1.0 - rate) * masses_.q[i] + rate * masses_.p[i];
        return direction == Direction::remove ? discrete_renyi(mixed, masses_.q, order)
                                              : discrete_renyi(masses_.q, mixed, order);
    }
    std::vector<double> parameters() const override {
        std::vector<double> both = masses_.p;
        both.insert(both.end(), masses_.q.begin(), masses_.q.end());
        return both;
    }
    const Masses& masses() const { return masses_; }

  private:
    Masses masses_;
    bool symmetric_;
};

// One pair for each direction. Each need only dominate the mechanism in its own direction.
class DiscretePairs final : public Pair {
  public:
    DiscretePairs(Masses remove, Masses add) : remove_(std::move(remove)), add_(std::move(add)) {
        require_masses(remove_, bound_error);
        require_masses(add_, bound_error);
    }
    Loss loss(Direction direction) const override {
        const Masses& masses = direction == Direction::remove ? remove_ : add_;
        return std::make_shared<DiscreteLoss>(masses.p, masses.q);
    }
    bool symmetric() const override { return false; }
    std::vector<double> parameters() const override {
        std::vector<double> all{static_cast<double>(remove_.p.size())};
        for (const std::vector<double>* part : {&remove_.p, &remove_.q, &add_.p, &add_.q})
            all.insert(all.end(), part->begin(), part->end());
        return all;
    }

  private:
    Masses remove_, add_;
};

inline PairPointer discrete(std::vector<double> p, std::vector<double> q) {
    return std::make_shared<Discrete>(Masses{std::move(p), std::move(q)});
}

// Two-sided geometric noise, of mass proportional to e^{-parameter |k|}, on a query that moves by
// `sensitivity` (Ghosh, Roughgarden and Sundararajan 2009). All outcomes k <= 0 have the same loss,
// and so have all k >= sensitivity: each of these sets is one outcome of the pair.
inline PairPointer discrete_laplace(double parameter, double sensitivity) {
    require(positive(parameter), "parameter", "be positive and finite", parameter);
    require(count(sensitivity) && sensitivity <= 2e4, "sensitivity", "be an integer in [1, 20000]", sensitivity);
    require(parameter * sensitivity <= 600.0, "parameter", "be at most 600/sensitivity", parameter);
    const double end = 1.0 / (1.0 + std::exp(-parameter)), middle = -std::expm1(-parameter) * end;
    std::vector<double> q{end};  // the outcomes k <= 0
    for (double k = 1.0; k < sensitivity; ++k) q.push_back(middle * std::exp(-parameter * k));
    q.push_back(end * std::exp(-parameter * sensitivity));
    return discrete({q.rbegin(), q.rend()}, q);
}

// Answers with a uniform bucket with probability `noise_parameter`, and with the true one
// otherwise. The pair is for replacing one true answer by another.
inline PairPointer randomized_response(double noise_parameter, double num_buckets) {
    require_probability("noise_parameter", noise_parameter);
    require(count(num_buckets) && num_buckets >= 2.0, "num_buckets", "be an integer of at least 2", num_buckets);
    const double other = noise_parameter / num_buckets, true_one = (1.0 - noise_parameter) + other;
    const double rest = other * (num_buckets - 2.0);
    return discrete({true_one, other, rest}, {other, true_one, rest});
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
