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
// Q, by symmetry, and epsilon0 bounds its loss: it joins the level 0.
//
// The lower end is that of 3-ary randomised response where all others hold the third value. A report is
// of another value than its own with probability s = 1/(p + 2) for each. Let c reports be of either
// record, C = c or c - 1 clones binomial(n - 1, 2s) among them, a of the first. The own one is the
// third value, and all c are clones, with a probability w given c, which falls in c. So
//
//   P(a | c) = y(a) (1 + k (a - b)/c),    k = (1 - w) (p - 1)/(p + 1),    y binomial(c, 1/2),
//
// the pair of clones for p' = (1 + k)/(1 - k). A clone more is a post-processing, as the mean of
// (a - b)/c given c + 1 reports is (a' - b')/(c + 1); a smaller k is one too, that draws anew from y
// sometimes. So the reports of a level count as its largest c with the k of its smallest. Outcomes in one
// cell of losses are merged, cut tails with those of loss 0. One user's report attains epsilon0.
//
// Error: the grid of 2001 losses raises epsilon by about 1e-4 of itself. Cost: an exponential for
// each outcome of each level, 0.1 s for a million users.
#pragma once

#include <atomic>
#include <optional>

#include <hockeystick/mechanism/approximate_dp.hpp>
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

// A level: its mass, and the losses and Q's masses of so many reports of either record, one of which is
// the own one; far tails left out.
struct CloneLevel {
    double weight;
    std::vector<double> losses, masses;
};

inline CloneLevel clone_level(double epsilon0, double count, double weight) {
    BinomialBulk reports = binomial_bulk(count, 0.5, cut_depth);
    const double ratio = std::exp(epsilon0), scale = 2.0 / ((ratio + 1.0) * count);
    CloneLevel level{weight, {}, std::move(reports.masses)};
    for (std::size_t i = 0; i < level.masses.size(); ++i) {
        const double a = reports.first + static_cast<double>(i), b = count - a;
        level.losses.push_back(std::log1p((ratio - 1.0) * (a - b) / (a + ratio * b)));
        level.masses[i] *= scale * (a + ratio * b);
    }
    return level;
}

struct CloneLevels {
    std::vector<CloneLevel> levels;
    double none;  // the mass of no clones and of the tails
};

// How many reports are of either record, and how probable that is.
struct CountedReports {
    double first;
    std::vector<double> masses;
};

// For lower ends the own report is of neither record with probability `rate`/2.
inline CountedReports counted_reports(const ShuffledRound& round, double rate, End end) {
    const BinomialBulk clones = binomial_bulk(round.num_users - 1.0, rate, cut_depth);
    CountedReports reports{clones.first + 1.0, clones.masses};
    if (end == End::upper) return reports;
    reports.first = clones.first, reports.masses.push_back(0.0);
    for (std::size_t i = reports.masses.size(); i-- > 0;)
        reports.masses[i] = 0.5 * rate * reports.masses[i] + (i > 0 ? (1.0 - 0.5 * rate) * clones.masses[i - 1] : 0.0);
    return reports;
}

// The largest loss among so many reports of either record, if the own one may be of neither.
inline double attained_loss(const ShuffledRound& round, double rate, double reports) {
    const double ratio = std::exp(round.epsilon0), own = 0.5 * rate;
    const double clones = (round.num_users - reports) / reports * (rate / (1.0 - rate));
    const double neither = own * clones / (1.0 - own + own * clones);  // given that there are so many
    return std::log1p(2.0 * (1.0 - neither) * (ratio - 1.0) / (2.0 + neither * (ratio - 1.0)));
}

inline CloneLevels clone_levels(const ShuffledRound& round, double rate, End end, WorkBudget& budget) {
    const CountedReports reports = counted_reports(round, rate, end);
    const auto size = static_cast<double>(reports.masses.size());
    const double step = max(max(size / most_levels, level_share * reports.first), 1.0);
    CloneLevels result{{}, 4.0 * std::exp(-cut_depth)};
    for (std::size_t i = 0; i < reports.masses.size();) {
        const double level = std::floor(static_cast<double>(i) / step);
        const double lowest = reports.first + static_cast<double>(i);
        CompensatedSum weight;
        for (; i < reports.masses.size() && std::floor(static_cast<double>(i) / step) == level; ++i)
            weight.add(reports.masses[i]);
        const double highest = reports.first + static_cast<double>(i) - 1.0;
        if (end == End::upper && lowest == 1.0) result.none += weight.value();
        else if (end == End::upper) result.levels.push_back(clone_level(round.epsilon0, lowest, weight.value()));
        else if (lowest > 0.0)
            result.levels.push_back(clone_level(attained_loss(round, rate, lowest), highest, weight.value()));
        if (!result.levels.empty())
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

// What the data set of the header attains: outcomes of positive losses in cells, their mirror images, and
// all others as one.
inline PairPointer attained_by_shuffled(const CloneLevels& clones, const std::vector<double>& nodes,
                                        WorkBudget& budget) {
    std::vector<double> p(nodes_a_side + 1, 0.0), q = p, losses{0.0};
    double outcomes = 0.0, others = 1.0;
    for (const CloneLevel& level : clones.levels) {
        budget.spend(tilting_work * static_cast<double>(level.masses.size()));
        outcomes += static_cast<double>(level.masses.size());
        for (std::size_t i = 0; i < level.masses.size(); ++i) {
            if (!(level.losses[i] > 0.0)) continue;
            const auto cell = std::upper_bound(nodes.begin() + nodes_a_side, nodes.end() - 1, level.losses[i]);
            const auto at = static_cast<std::size_t>(cell - nodes.begin()) - nodes_a_side;
            const double mass = level.weight * level.masses[i];
            q[at] += mass, p[at] += mass * std::exp(level.losses[i]);
        }
    }
    Masses pair;
    for (std::size_t k = 1; k <= nodes_a_side; ++k) {
        if (!(p[k] > q[k] && q[k] > 0.0)) continue;
        losses.insert(losses.begin(), -std::log(p[k] / q[k])), losses.push_back(-losses.front());
        pair.p.push_back(p[k]), pair.q.push_back(q[k]), others -= p[k] + q[k];
    }
    const auto mirrored = [&](const std::vector<double>& below, const std::vector<double>& above, double shown) {
        std::vector<double> law{below.rbegin(), below.rend()};
        law.push_back(shown * max(others, 0.0) + (1.0 - shown));
        law.insert(law.end(), above.begin(), above.end());
        for (std::size_t k = 0; k < law.size(); ++k)
            if (k != below.size()) law[k] *= shown;
        return law;
    };
    const double rounding = eight_roundings * (outcomes + 64.0);
    for (const double shown : {1.0, 1.0 - 0x1p-9}) {  // at times nothing: few outcomes of loss 0 leave no room
        const std::optional<Masses> less =
            narrowed(losses, {mirrored(pair.q, pair.p, shown), mirrored(pair.p, pair.q, shown)}, rounding);
        if (less) return std::make_shared<Discrete>(Masses{less->p, {less->p.rbegin(), less->p.rend()}});
    }
    return nothing();
}

inline PairPointer shuffled(const ShuffledRound& round, End end = End::upper, const std::atomic<bool>* stop = nullptr) {
    require_round(round);
    WorkBudget budget(stop);
    const double ratio = std::exp(round.epsilon0);
    if (end == End::lower && round.num_users == 1.0) return approximate_dp(round.epsilon0 * down, 0.0);
    const double rate = end == End::lower           ? 2.0 / (ratio + 2.0)
                        : round.randomized_response ? 2.0 / (ratio + 1.0)
                                                    : 1.0 / ratio;
    const CloneLevels clones = clone_levels(round, rate, end, budget);
    const std::vector<double> nodes = loss_nodes(clones, round.epsilon0);
    if (end == End::lower) return attained_by_shuffled(clones, nodes, budget);
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
