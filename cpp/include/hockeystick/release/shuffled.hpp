// One round of local reports in random order, of which a record decides one. A record is replaced.
//
// The pair (Feldman, McMillan and Talwar 2021, Theorem 3.1). One report depends on the record that
// is replaced. Each of the other n - 1 is with probability r a clone: a report of either of the two
// records, each with probability 1/2. What is seen tells no more than how many reports there are of
// either, a and b, with a + b - 1 = C binomial(n - 1, r). With p = e^epsilon0 and y
// binomial(C + 1, 1/2),
//
//   P(a | C) = 2 y(a) (p a + b)/((p + 1)(C + 1)),    loss = log (p a + b)/(a + p b),
//
// and Q the same with a and b exchanged.
//
// r = 1/p holds for every epsilon0-LDP randomiser. r = 2/(p + 1) holds for k-ary randomised
// response, where R_x(y) >= (R_0(y) + R_1(y))/(p + 1) for all inputs x, 0, 1 and outputs y: each
// report is with that probability one of the extreme ones Q_0 and Q_1, Q_0 + Q_1 = R_0 + R_1. For
// randomisers of all kinds that rate was printed with a faulty proof (Feldman, McMillan and Talwar
// 2023, see their errata).
//
// Fewer clones leak more (adding one is a post-processing), so C is rounded down to a few levels,
// and to 0 where its tail is cut. Where the tail of y is cut the rest is as likely under P as under
// Q, by symmetry, and epsilon0 bounds its loss: it joins the level 0. No randomiser is known to
// attain the pair: the lower end is 0.
//
// Error: the grid of 2001 losses raises epsilon by about 1e-4 of itself. Cost: an exponential for
// each outcome of each level, 0.1 s for a million users.
#pragma once

#include <atomic>

#include <hockeystick/numeric/binomial.hpp>
#include <hockeystick/numeric/work_budget.hpp>
#include <hockeystick/release/discrete_pair.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

struct ShuffledRound {
    double epsilon0, num_users;
    bool randomized_response;  // k-ary; if false, any epsilon0-LDP randomiser
};

inline constexpr double cut_depth = 80.0;          // tails are cut where they are below e^-80
inline constexpr double most_levels = 256.0;       // of C
inline constexpr double level_share = 2e-4;        // of C: levels are no closer to each other
inline constexpr std::size_t nodes_a_side = 1000;  // of the grid of losses

inline void require_round(const ShuffledRound& round) {
    require(round.epsilon0 > 0.0 && round.epsilon0 <= 20.0, "epsilon0", "lie in (0, 20]", round.epsilon0);
    require(count(round.num_users) && round.num_users <= 1e10, "num_users", "be an integer in [1, 10000000000]",
            round.num_users);
}

// A level of C: its mass, and the losses and Q's masses of the reports, far tails left out.
struct CloneLevel {
    double weight;
    std::vector<double> losses, masses;
};

inline CloneLevel clone_level(double epsilon0, double clones, double weight) {
    BinomialBulk reports = binomial_bulk(clones + 1.0, 0.5, cut_depth);
    const double ratio = std::exp(epsilon0), scale = 2.0 / ((ratio + 1.0) * (clones + 1.0));
    CloneLevel level{weight, {}, std::move(reports.masses)};
    for (std::size_t i = 0; i < level.masses.size(); ++i) {
        const double a = reports.first + static_cast<double>(i), b = clones + 1.0 - a;
        level.losses.push_back(std::log1p((ratio - 1.0) * (a - b) / (a + ratio * b)));
        level.masses[i] *= scale * (a + ratio * b);
    }
    return level;
}

struct CloneLevels {
    std::vector<CloneLevel> levels;
    double none;  // the mass of no clones and of the tails
};

inline CloneLevels clone_levels(const ShuffledRound& round, double rate, WorkBudget& budget) {
    const BinomialBulk clones = binomial_bulk(round.num_users - 1.0, rate, cut_depth);
    const auto size = static_cast<double>(clones.masses.size());
    const double step = max(max(size / most_levels, level_share * clones.first), 1.0);
    CloneLevels result{{}, 4.0 * std::exp(-cut_depth)};
    for (std::size_t i = 0; i < clones.masses.size();) {
        const double level = std::floor(static_cast<double>(i) / step), lowest = clones.first + static_cast<double>(i);
        CompensatedSum weight;
        for (; i < clones.masses.size() && std::floor(static_cast<double>(i) / step) == level; ++i)
            weight.add(clones.masses[i]);
        if (lowest == 0.0) {
            result.none += weight.value();
            continue;
        }
        result.levels.push_back(clone_level(round.epsilon0, lowest, weight.value()));
        budget.spend(tilting_work * static_cast<double>(result.levels.back().losses.size()));
    }
    return result;
}

// Losses from -epsilon0 to epsilon0, closest at 0: within the losses' standard deviation.
inline std::vector<double> loss_nodes(const CloneLevels& clones, double epsilon0) {
    double variance = 0.0;
    for (const CloneLevel& level : clones.levels)
        for (std::size_t i = 0; i < level.losses.size(); ++i)
            variance += level.weight * level.masses[i] * level.losses[i] * level.losses[i];
    const double scale = clones.levels.empty() ? epsilon0 : min(max(std::sqrt(variance), 1e-9), epsilon0);
    const double width = std::asinh(epsilon0 / scale) / static_cast<double>(nodes_a_side);
    std::vector<double> nodes(2 * nodes_a_side + 1, 0.0);
    for (std::size_t k = 1; k <= nodes_a_side; ++k) {
        const double node = k == nodes_a_side ? epsilon0 : scale * std::sinh(static_cast<double>(k) * width);
        nodes[nodes_a_side + k] = node, nodes[nodes_a_side - k] = -node;
    }
    return nodes;
}

inline PairPointer shuffled(const ShuffledRound& round, const std::atomic<bool>* stop = nullptr) {
    require_round(round);
    WorkBudget budget(stop);
    const double ratio = std::exp(round.epsilon0);
    const double rate = round.randomized_response ? 2.0 / (ratio + 1.0) : 1.0 / ratio;
    const CloneLevels clones = clone_levels(round, rate, budget);
    const std::vector<double> nodes = loss_nodes(clones, round.epsilon0);
    std::vector<double> q(nodes.size(), 0.0), masses;
    double outcomes = 0.0;
    for (const CloneLevel& level : clones.levels) {
        budget.spend(tilting_work * static_cast<double>(level.masses.size()));
        masses.assign(level.masses.begin(), level.masses.end());
        for (double& mass : masses) mass *= level.weight;
        connect_the_dots(level.losses, masses, nodes, q);
        outcomes += static_cast<double>(masses.size());
    }
    q.front() += clones.none / (1.0 + std::exp(-round.epsilon0));
    q.back() += clones.none / (1.0 + std::exp(round.epsilon0));
    const double rounding = eight_roundings * (outcomes + 64.0);
    const std::vector<double> widest = widened(nodes, {{q.rbegin(), q.rend()}, q}, rounding).q;
    return std::make_shared<Discrete>(Masses{{widest.rbegin(), widest.rend()}, widest});
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
