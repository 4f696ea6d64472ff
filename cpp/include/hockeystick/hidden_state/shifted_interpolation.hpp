// Shifted interpolation (Bok, Su and Altschuler 2024; Sun, Shen and Tao 2024, Eq. 12), solved
// exactly.
//
// Two runs on adjacent data drift apart by at most z_{t+1} = rho_t z_t + gamma_t a round. Each
// round's noise may hide a part a_t of the gap. The last iterate's squared Gaussian-DP parameter is
// then at most
//
//   H = min sum_t a_t^2   over   a_t >= 0,  z_{t+1} = rho_t z_t + gamma_t - a_t >= 0,  z_T = 0,
//
// in units of the noise, with z_start = initial_gap at start 0, or the diameter of the domain at
// any later start. An affine chain attains H, so nothing smaller can be certified from (rho,
// gamma).
//
// The optimum consists of blocks of rounds inside which a_t is proportional to 1/rho. Let Pi_t be
// the product of the rho's of a block's later rounds, A = sum Pi gamma and B = sum Pi^2: the block
// costs A^2/B and its last shift is A/B. Neighbours merge while the left block's last shift exceeds
// R A/B of the right one, R the product of its rho's. docs/core/hidden_state.md derives this.
//
//   schedules           pool adjacent violators: O(T)
//   with a diameter     SuffixBlocks finds the best start: O(T log T)
//   constants           closed forms (constant_cost, constant_best_start): O(log T)
//
// A and B carry a logarithmic scale, since the products overflow. Error: 1e-12 relative in H;
// shifts that underflow are left out of the sequences, never out of H's upper end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <hockeystick/hidden_state/contraction_sum.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

struct ShiftBlock {
    double rise;        // A e^{-scale}
    double width;       // B e^{-2 scale}
    double scale;       // 0 for a single round
    double log_span;    // log R, -inf if a rho is 0
    double log_shift;   // log A/B, of the block's last shift
    std::size_t start;  // its first round

    double cost() const { return rise * rise / width; }
};

inline ShiftBlock single_round(double gap_in, double log_rho, std::size_t t) {
    return {gap_in, 1.0, 0.0, log_rho, std::log(gap_in), t};
}

inline bool must_merge(const ShiftBlock& left, const ShiftBlock& right) {
    return left.log_shift > right.log_span + right.log_shift;
}

inline ShiftBlock merged(const ShiftBlock& left, const ShiftBlock& right) {
    const double left_scale = left.scale + right.log_span;
    const double scale = std::max(left_scale, right.scale);
    const double l = std::exp(left_scale - scale);
    const double r = std::exp(right.scale - scale);
    const double rise = left.rise * l + right.rise * r;
    const double width = left.width * l * l + right.width * r * r;
    return {rise, width, scale, left.log_span + right.log_span, std::log(rise / width) - scale, left.start};
}

// The blocks of rounds start..rounds-1 from the gap `gap`; `round(t)` returns {log rho_t, gamma_t}.
template <class Round>
void pool_blocks(const Round& round, std::size_t start, std::size_t rounds, double gap,
                 std::vector<ShiftBlock>& blocks) {
    blocks.clear();
    for (std::size_t t = start; t < rounds; ++t) {
        const auto [log_rho, gamma] = round(t);
        const double inherited = t == start && gap > 0.0 ? std::exp(log_rho) * gap : 0.0;
        ShiftBlock block = single_round(gamma + inherited, log_rho, t);
        while (!blocks.empty() && must_merge(blocks.back(), block)) {
            block = merged(blocks.back(), block);
            blocks.pop_back();
        }
        blocks.push_back(block);
    }
}

inline double total_cost(const std::vector<ShiftBlock>& blocks) {
    double sum = 0.0;
    for (const ShiftBlock& block : blocks) sum += block.cost();
    return sum;
}

// The blocks of a suffix of the rounds, as a stack with the leftmost block on top.
//
// To start at t with a gap changes the first block only, which swallows some blocks from the top of
// the stack. Each node carries a pointer that jumps over a run of blocks, and those blocks merged
// into one, so that cost_behind() takes logarithmic time and subtracts nothing (Myers 1983:
// skew-binary jumps).
class SuffixBlocks {
  public:
    SuffixBlocks() { nodes_.push_back({{}, {}, 0.0, 0}); }  // node 0 marks the end

    void push_round(ShiftBlock block) {
        while (nodes_.size() > 1 && must_merge(block, nodes_.back().block)) {
            block = merged(block, nodes_.back().block);
            nodes_.pop_back();
        }
        const std::size_t parent = nodes_.size() - 1;
        const std::size_t middle = nodes_[parent].jump;
        const std::size_t far = nodes_[middle].jump;
        const bool doubled = parent > 0 && parent - middle == middle - far;
        const ShiftBlock skipped =
            doubled ? merged(block, merged(nodes_[parent].skipped, nodes_[middle].skipped)) : block;
        nodes_.push_back({block, skipped, block.cost() + nodes_[parent].cost, doubled ? far : parent});
    }

    double cost() const { return nodes_.back().cost; }

    // The cost if `first` stood in front of the stack.
    double cost_behind(ShiftBlock first) const {
        std::size_t v = nodes_.size() - 1;
        while (v > 0 && must_merge(first, nodes_[v].block)) {
            const std::size_t jump = nodes_[v].jump;
            const ShiftBlock far = merged(first, nodes_[v].skipped);
            const bool all_merge = jump > 0 && must_merge(far, nodes_[jump].block);
            first = all_merge ? far : merged(first, nodes_[v].block);
            v = all_merge ? jump : v - 1;
        }
        return first.cost() + nodes_[v].cost;
    }

  private:
    struct Node {
        ShiftBlock block;    // its own rounds
        ShiftBlock skipped;  // its own and all blocks before `jump`, merged
        double cost;         // of this block and all below it
        std::size_t jump;
    };
    std::vector<Node> nodes_;
};

struct StartCost {
    std::size_t start;
    double cost;
};

// The best start when a later one begins with the gap `diameter`.
template <class Round>
StartCost best_start(const Round& round, std::size_t rounds, double initial_gap, double diameter) {
    SuffixBlocks suffix;
    StartCost best{0, infinity};
    for (std::size_t t = rounds; t-- > 0;) {
        const auto [log_rho, gamma] = round(t);
        const double gap = t == 0 ? initial_gap : diameter;
        const ShiftBlock first = single_round(gap > 0.0 ? gamma + std::exp(log_rho) * gap : gamma, log_rho, t);
        const double cost = suffix.cost_behind(first);
        if (cost <= best.cost) best = {t, cost};
        suffix.push_round(single_round(gamma, log_rho, t));
    }
    return best;
}

// The first `n` constant rounds as one block that starts from the gap `gap`: its cost and last
// shift. For rho > 1 all sums are divided by rho^{n-1}.
struct PooledCost {
    double cost, last_shift;
};

inline PooledCost pooled_cost(double log_rho, double gamma, double gap, double n) {
    const double decay = -std::fabs(log_rho);
    const double inherited = gap == 0.0 ? 0.0 : gap * std::exp(log_rho > 0.0 ? log_rho : n * log_rho);
    const double rise = gamma * geometric_sum(decay, n) + inherited;
    const double width = geometric_sum(2.0 * decay, n);
    return {rise * rise / width, rise / width * (log_rho > 0.0 ? std::exp((n - 1.0) * decay) : 1.0)};
}

// H for constant rho and gamma over n rounds from the gap `gap`.
inline double constant_cost(double log_rho, double gamma, double n, double gap) {
    if (log_rho >= 0.0 && gap == 0.0) return n * gamma * gamma;
    if (log_rho < 0.0 || gamma == 0.0) return pooled_cost(log_rho, gamma, gap, n).cost;
    // The block swallows rounds while its last shift exceeds rho gamma; find how many by bisection.
    const double threshold = std::exp(log_rho) * gamma;
    double low = 0.0;
    double high = n;
    while (high - low > 1.0) {
        const double middle = std::floor(0.5 * (low + high));
        (pooled_cost(log_rho, gamma, gap, middle).last_shift > threshold ? low : high) = middle;
    }
    return pooled_cost(log_rho, gamma, gap, high).cost + (n - high) * gamma * gamma;
}

inline StartCost constant_best_start(double log_rho, double gamma, double rounds, double initial_gap, double diameter) {
    StartCost best{0, constant_cost(log_rho, gamma, rounds, initial_gap)};
    if (!(diameter < infinity) || rounds < 2.0) return best;
    const double growth = diameter * std::expm1(log_rho) / gamma;
    const double turning = gamma == 0.0 || growth <= -1.0 ? rounds
                           : log_rho == 0.0               ? diameter / gamma
                                                          : std::log1p(growth) / log_rho;
    const double middle = std::floor(std::min(turning, rounds));
    for (double n = middle - 2.0; n <= middle + 2.0; n += 1.0) {
        const double after = std::min(std::max(n, 1.0), rounds - 1.0);
        const double cost = constant_cost(log_rho, gamma, after, diameter);
        if (cost < best.cost) best = {static_cast<std::size_t>(rounds - after), cost};
    }
    return best;
}

// The optimum H and where it starts. `round(t)` returns {log rho_t, gamma_t}; `blocks` is scratch
// space; diameter = inf where the domain is unbounded.
template <class Round>
StartCost shifted_interpolation_optimum(const Round& round, std::size_t rounds, double initial_gap, double diameter,
                                        std::vector<ShiftBlock>& blocks) {
    if (diameter < infinity) return best_start(round, rounds, initial_gap, diameter);
    pool_blocks(round, 0, rounds, initial_gap, blocks);
    return {0, total_cost(blocks)};
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state
