// Certified bounds of projected noisy SGD whose record is used in each round with probability q, independently of all other
// rounds, so that nobody knows when: for `best_sampled` and the trusted aggregator that draws a batch afresh every round.
//
//   shifted   shifted interpolation for the worst pattern, every round: what sampling hides is not counted
//   pattern   the mean over all patterns, the j participations so far as in composition or shifted interpolation, then F
//   divided   the curve of all losses through the last rounds (hidden_state/loss_curve.hpp)
//
// and what the composition engines need for
//
//   sampled   the last K rounds as K sampled Gaussian mechanisms and one Gaussian one (Bok, Su and Altschuler 2024), composed exactly
//
// Sampled. Let X' run on the other data set, and X~ start from X'_{T-K} and run on X's, moved in every round towards X by u_t
// = lambda_t (phi_t(X_t) - phi_t(X~_t)), with X's noise Z_t and batches. |X_t - X~_t| <= z_t, z_{t+1} = c z_t - |u_t|, from z_{T-K} <=
// min(D, the gap of coupled runs), and X~_T = X_T if z_T = 0. Divide Z_t into two independent parts of shares s and 1 - s.
// From X~_t the next state is made of a sampled Gaussian mechanism, of sensitivity g/sqrt(s), and of u_t plus the other part, which
// is independent of everything before it: a Gaussian mechanism of sensitivity |u_t|/sqrt(1 - s) whatever u_t depends on. X'
// does the same with its own gradient and without u_t. So the laws of X_T and X'_T are told apart no better than K sampled Gaussian
// mechanisms and one Gaussian mechanism of squared parameter min sum |u_t|^2/(1 - s).
//
// Pattern. Given which rounds use the record, the divergence right after the j-th of them is at most v_j = theta(eps, mu_j), mu_j
// the parameter of j rounds in a row: rounds in between, in which nothing is paid, do not widen a gap if c <= 1, and by c^T
// altogether if c > 1; nor is it more than g sqrt(j) or the parameter of all rounds. By joint convexity the laws that share t and j, mixed over the patterns of
// j participations in t rounds, of weight w_t(j) and divergence S_t(j)/w_t(j), follow
//
//   w_{t+1}(j) = (1-q) w_t(j) + q w_t(j-1),    S_{t+1}(j) = (1-q) w_t(j) F(S_t(j)/w_t(j)) + q w_t(j-1) v_j,
//
// and delta <= sum_j S_T(j). F being convex, this is no more than the sum over last participations of F iterated. Patterns of more than
// `most` participations are charged in full; where there are more than pattern_rounds rounds, the first ones are composed.
//
// The bounds count a record that is in one of two batches as two gradients of norm at most L: sensitivity 2L, whether it
// is added to a batch or takes another's place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <hockeystick/hidden_state/cyclic_bounds.hpp>

namespace hockeystick::hidden_state {
inline namespace HOCKEYSTICK_ISA {

// One cell; lengths in deviations of a round's noise on the model.
struct SampledCell {
    double eps, rate, rounds;
    double g, width, lipschitz;  // sensitivity of a round, diameter of the domain, Lipschitz constant of a round's map

    bool legal() const {
        return eps >= 0.0 && rate >= 0.0 && rate <= 1.0 && count(rounds) && positive(g) && width > 0.0 &&
               positive(lipschitz);
    }
    double reach() const { return width * lipschitz * (1.0 + 0x1p-50); }
};

inline constexpr double pattern_rounds = 512.0;     // that are followed one by one
inline constexpr double most_sampled = 0x1p16;      // rounds beyond which patterns are not counted
inline constexpr double left_out = 1.1e-30;         // bound of the probability of the patterns charged in full
inline constexpr double negligible_weight = 1e-40;  // of patterns for which F is not worth its time

// log of the binomial probability of j among n, right to about 1e-10 for n <= 2^16.
inline double log_binomial(double n, double j, double rate) {
    return std::lgamma(n + 1.0) - std::lgamma(j + 1.0) - std::lgamma(n - j + 1.0) + j * std::log(rate) +
           (n - j) * std::log1p(-rate);
}

// The number of participations that is exceeded with a probability of at most left_out (Bernstein).
inline double rarely_exceeded(double rounds, double rate) {
    const double mean = rounds * rate;
    const double most = mean + std::sqrt(140.0 * mean) + 70.0;  // t = most - mean: e^{-t^2/(2 mean + 2t/3)} < e^-69
    return std::min(rounds, std::ceil(most));
}

class PatternSum {
  public:
    explicit PatternSum(const SampledCell& cell)
        : cell_(cell), gap_(log_gap(cell.eps)),
          size_(static_cast<std::size_t>(rarely_exceeded(cell.rounds, cell.rate)) + 1), weight_(size_, 0.0),
          sum_(size_, 0.0), fresh_(size_, 0.0) {
        const CyclicShift in_a_row(cell.lipschitz, cell.g, cell.width, 1.0);
        const double always = in_a_row.parameter(cell.rounds, 0.0);
        const double widened = std::max(1.0, std::exp(cell.rounds * std::log(cell.lipschitz)) * (1.0 + 1e-12));
        for (std::size_t j = 1; j < size_; ++j) {
            const auto n = static_cast<double>(j);
            const double mu =
                std::min({in_a_row.parameter(n, 0.0) * widened, always, cell.g * std::sqrt(n) * (1.0 + 0x1p-50)});
            fresh_[j] = std::exp(log_raised(log_theta(cell.eps, mu))) * (1.0 + 0x1p-50);
        }
    }

    double value() {
        const double followed = std::min(cell_.rounds, pattern_rounds), composed = cell_.rounds - followed;
        compose(composed);
        for (double t = 0.0; t < followed; t += 1.0) advance();
        double total = beyond_;
        for (const double s : sum_) total += s;
        return std::min(1.0, total * (1.0 + 1e-8));  // 512 rounds, and the probabilities of compose()
    }

  private:
    const SampledCell& cell_;
    double gap_;
    std::size_t size_;
    std::vector<double> weight_, sum_, fresh_;
    double beyond_ = 0.0;  // probability of the patterns that are charged in full

    void compose(double rounds) {
        weight_[0] = 1.0;
        if (rounds == 0.0) return;
        double seen = 0.0;
        for (std::size_t j = 0; j < size_ && static_cast<double>(j) <= rounds; ++j) {
            weight_[j] = std::exp(log_binomial(rounds, static_cast<double>(j), cell_.rate));
            sum_[j] = weight_[j] * fresh_[j];
            seen += weight_[j];
        }
        if (static_cast<double>(size_) <= rounds) beyond_ = left_out;
    }

    double contracted(double weight, double sum) const {
        if (!(sum > 0.0) || weight < negligible_weight) return sum;
        const double log_e = std::log(sum / weight);
        if (log_e < log_underflow) return sum;
        const auto log_eta = [reach = cell_.reach()](double e) { return log_theta(e, reach); };
        return weight * std::exp(std::min(log_e, log_contracted(gap_, std::min(log_e, 0.0), log_eta)));
    }

    void advance() {
        beyond_ += cell_.rate * weight_.back();
        for (std::size_t j = size_; j-- > 0;) {
            const double arriving = j > 0 ? cell_.rate * weight_[j - 1] : 0.0;
            sum_[j] = (1.0 - cell_.rate) * contracted(weight_[j], sum_[j]) + arriving * fresh_[j];
            weight_[j] = (1.0 - cell_.rate) * weight_[j] + arriving;
        }
    }
};

// The last `rounds` rounds as that many sampled Gaussian mechanisms (replace adjacency) and one Gaussian mechanism of parameter
// `mu`; no rounds if nothing bounds how far two runs part.
struct SampledSplit {
    double rounds, noise_multiplier, mu;
};

// Chosen by the variances of the losses, q^2 (e^{a^2} - 1) a round for a sensitivity of a, at most a^2. Any choice is sound.
inline SampledSplit sampled_split(const SampledCell& cell) {
    SampledSplit best{0.0, 0.0, 0.0};
    if (!cell.legal() || cell.rate == 0.0) return best;
    const CyclicShift shift(cell.lipschitz, cell.g, cell.width, 1.0);
    double least = infinity;
    for (double k = 1.0; k < cell.rounds; k = std::ceil(k * 1.15)) {
        const double mu = shift.forgetting(k);
        for (double share = 0.05; share < 0.96; share += 0.05) {
            const double square = cell.g * cell.g / share;
            const double loss = k * std::min(square, cell.rate * cell.rate * std::expm1(std::min(square, 700.0)));
            const double total = loss + mu * mu / (1.0 - share);
            if (!(total < least)) continue;
            least = total;
            best = {k, 2.0 / cell.g * std::sqrt(share) * (1.0 - 0x1p-50),
                    mu / std::sqrt(1.0 - share) * (1.0 + 0x1p-50)};
        }
    }
    return best;
}

inline HiddenDeltas sampled_bounds(const SampledCell& cell) {
    HiddenDeltas deltas;
    deltas.fill(nan);
    if (!cell.legal()) return deltas;
    const double eps = cell.eps;
    const double mu = CyclicShift(cell.lipschitz, cell.g, cell.width, 1.0).parameter(cell.rounds, 0.0);
    const bool never = cell.rate == 0.0;
    deltas[shifted] = never ? 0.0 : raised_delta(log_raised(log_theta(eps, mu)), eps);
    if (cell.rate < 1.0 && cell.rounds <= most_sampled) {
        const double sum = never ? 0.0 : PatternSum(cell).value();
        deltas[pattern] = never ? 0.0 : std::min(deltas[shifted], positive_delta(sum, eps));
    }
    deltas[divided] =
        never ? 0.0
              : std::min(deltas[shifted],
                         positive_delta(divided_bound(eps, mu, cell.g, cell.reach(), cell.rate, cell.rounds, 0.0, 0.0),
                                        eps));
    return deltas;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::hidden_state
