// Data whose shuffled batches leak much: pairs that an epoch of them attains, for lower ends.
//
// All other records contribute -1, the one that differs 1 or nothing (Chua et al. 2024,
// arXiv:2403.17673). With r = 1/noise_multiplier, the outputs of the T batches of an epoch are, but
// for what is known, independent normals of variance 1 whose means are 0, all but one: that of the
// record's batch is 2r or r. The batch is uniform and unseen. Every function of the outputs leaks
// at most what they do, in compositions too; one with finitely many values has a discrete pair.
// Here are two:
//
//   largest_output   the cell that holds the largest output: with the mean m in one batch,
//                    P(largest <= a) = Phi(a - m) Phi(a)^{T-1};
//   sum_of_outputs   the sum of exp(2r(x - r)) - exp(r(x - r/2)) over the outputs x, the likelihood
//                    ratio to first order, in whole steps and modulo their number; or, where an
//                    output exceeds a cap, the cell of the largest.
//
// Errors. The shift r is rounded down: noise that is added to outputs loses information. A mass is
// known up to an error, and the pair has it lowered under P and raised under Q. docs/accounting/
// allocation.md, Shuffled batches, proves the errors.
//
// Cost: 1 ms for the largest output, 20 ms for the sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <hockeystick/mechanism/discrete.hpp>
#include <hockeystick/numeric/compensated_sum.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/numeric/interval.hpp>
#include <hockeystick/pld/spectrum_power.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

using namespace mechanism;

// r, and T >= 2.
struct EpochOutputs {
    double shift, batches;

    EpochOutputs(double noise_multiplier, double num_batches)
        : shift(min(rounded_to(1.0 / noise_multiplier, End::lower), largest_shift)), batches(num_batches) {}

    static constexpr double largest_shift = 1e6;  // losses end long before: a smaller r is sound
};

// The masses of outcomes, lowered and raised by their errors: p where the record contributes, q
// where it does not.
struct EnclosedLaws {
    Masses lowered, raised;

    void add(const Interval& with, const Interval& without) {
        lowered.p.push_back(with.lower), raised.p.push_back(with.upper);
        lowered.q.push_back(without.lower), raised.q.push_back(without.upper);
    }
    PairPointer pair() const {
        return std::make_shared<DiscretePairs>(Masses{lowered.p, raised.q}, Masses{lowered.q, raised.p});
    }
};

// Cells of the largest output.
struct LargestCells {
    double from, to;
    int count;

    double edge(int i) const { return i == count ? to : from + (to - from) / count * i; }
};

inline constexpr double output_reach = 37.0;  // of a normal variable: less than 1e-299 lies beyond

// A mass of the largest output between two points, from the logarithms of P(largest <= point), by
// the smaller tail. Cells are at least 0.018 wide, so that a mass above 1e-280 is right to 1e-10.
inline Interval largest_mass(double log_from, double log_to) {
    constexpr double least = 1e-280, error = 1e-10;
    const bool low = log_to < -0.693;
    const double mass = low ? std::exp(log_to) - std::exp(log_from) : std::expm1(log_to) - std::expm1(log_from);
    return {mass > least ? mass * (1.0 - error) : 0.0, max(mass * (1.0 + error), least)};
}

inline void add_largest(const EpochOutputs& epoch, const LargestCells& cells, EnclosedLaws& laws) {
    const auto log_below = [&](int i, double mean) {
        const double a = cells.edge(i);
        return log_q(mean - a) + (epoch.batches - 1.0) * log_q(-a);
    };
    const double r = epoch.shift;
    double with = log_below(0, 2.0 * r), without = log_below(0, r);
    for (int i = 1; i <= cells.count; ++i) {
        const double next_with = log_below(i, 2.0 * r), next_without = log_below(i, r);
        laws.add(largest_mass(with, next_with), largest_mass(without, next_without));
        with = next_with, without = next_without;
    }
}

inline PairPointer largest_output(const EpochOutputs& epoch) {
    EnclosedLaws laws;
    add_largest(epoch, {epoch.shift - output_reach, 2.0 * epoch.shift + output_reach, 4000}, laws);
    return laws.pair();
}

inline constexpr std::size_t sum_values = std::size_t{1} << 16;
inline constexpr int output_cells = 20000;
inline constexpr double lowest_output = -9.0;  // an output below is in the first cell

// The masses of one output in cells up to the cap, by the label of the cell: the whole steps that
// its function has, modulo their number.
class LabelledOutput {
  public:
    LabelledOutput(const EpochOutputs& epoch, double cap) : r_(epoch.shift), cap_(cap), rule_(gauss_legendre(3)) {
        const std::vector<double> still = cell_masses(0.0);
        double mean = 0.0, variance = 0.0, largest = 0.0;
        for (int i = 0; i <= output_cells; ++i) mean += still[index(i)] * value(i);
        for (int i = 0; i <= output_cells; ++i) {
            variance += still[index(i)] * (value(i) - mean) * (value(i) - mean);
            largest = max(largest, std::fabs(value(i)));
        }
        constexpr double steps_a_deviation = 256.0;
        const auto values = static_cast<double>(sum_values);
        const double step = max(std::sqrt(epoch.batches * variance) / steps_a_deviation, 4.0 * largest / values);
        for (int i = 0; i <= output_cells; ++i)
            labels_.push_back(static_cast<std::size_t>(std::lround(value(i) / step) + sum_values) % sum_values);
    }

    // The law of the label where the output has this mean. The errors of all masses together are
    // below 1e-14: a cell's are those of an exponential, and of the place of its nodes.
    std::vector<double> law(double mean) const {
        std::vector<CompensatedSum> sums(sum_values);
        const std::vector<double> masses = cell_masses(mean);
        for (std::size_t i = 0; i < masses.size(); ++i) sums[labels_[i]].add(masses[i]);
        std::vector<double> law;
        for (const CompensatedSum& sum : sums) law.push_back(sum.value());
        return law;
    }
    static constexpr double law_error = 1e-14;

  private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    double edge(int i) const {
        return i == output_cells ? cap_ : lowest_output + (cap_ - lowest_output) / output_cells * i;
    }
    // At the middle of cell i > 0; cell 0 has no lower end.
    double value(int i) const {
        const double x = i == 0 ? lowest_output : 0.5 * (edge(i - 1) + edge(i));
        return std::exp(2.0 * r_ * (x - r_)) - std::exp(r_ * (x - 0.5 * r_));
    }
    std::vector<double> cell_masses(double mean) const {
        std::vector<double> masses{q(mean - lowest_output)};
        for (int i = 1; i <= output_cells; ++i) {
            const double half = 0.5 * (edge(i) - edge(i - 1)), middle = 0.5 * (edge(i) + edge(i - 1)) - mean;
            double sum = 0.0;
            for (std::size_t k = 0; k < 3; ++k) {
                const double x = middle + half * static_cast<double>(rule_.nodes[k]);
                sum += static_cast<double>(rule_.weights[k]) * std::exp(-0.5 * x * x);
            }
            masses.push_back(half * sum * inv_sqrt_2pi);
        }
        return masses;
    }

    double r_, cap_;
    QuadratureRule rule_;
    std::vector<std::size_t> labels_;
};

// The masses of the sum of all labels where no output exceeds the cap; each errs by `error` at
// most.
struct SumLaws {
    std::vector<double> with, without;
    double error;
};

// The modulus of coefficient k of a packed spectrum (numeric/fft.hpp).
inline double modulus(const std::vector<double>& x, std::size_t k) {
    if (k == 0 || 2 * k == x.size()) return std::fabs(x[k == 0 ? 0 : x.size() - 1]);
    return distance(x[2 * k - 1], x[2 * k]);
}

// The error of each mass, from the transforms of one output's law and of T - 1 of them.
inline double sum_error(const std::vector<double>& one, const std::vector<double>& others, double batches) {
    const double transform = 1.01 * fft_relative_error(sum_values);
    const double each = transform + LabelledOutput::law_error;
    double errors = 0.0;
    for (std::size_t k = 0; k <= sum_values / 2; ++k)
        errors += batches * (each + eight_roundings) * std::pow(modulus(one, k) + each, batches - 2.0) +
                  transform * modulus(others, k);
    return 2.01 * errors / static_cast<double>(sum_values);
}

inline SumLaws sum_laws(const EpochOutputs& epoch, double cap, WorkBudget& budget) {
    const LabelledOutput output(epoch, cap);
    const RealTransform transform(sum_values);
    const auto spectrum = [&](double mean) {
        std::vector<double> law = output.law(mean);
        budget.spend(transform_work(sum_values) + tilting_work * output_cells);
        transform.forward(law.data());
        return law;
    };
    const std::vector<double> still = spectrum(0.0);
    std::vector<double> others;
    pld::multiply_power(others, still, static_cast<std::uint64_t>(epoch.batches) - 1, budget);
    const auto sums = [&](double mean) {
        std::vector<double> moved = spectrum(mean);
        pld::multiply_power(moved, others, 1, budget);
        transform.backward(moved.data());
        return moved;
    };
    return {sums(2.0 * epoch.shift), sums(epoch.shift), sum_error(still, others, epoch.batches)};
}

// The order in which sums are merged: those whose masses are mostly error, then by their likelihood
// ratios.
struct OrderedSums {
    std::vector<std::size_t> order;
    std::size_t unknown;  // how many are mostly error

    explicit OrderedSums(const SumLaws& laws) {
        std::vector<double> ratios(sum_values);
        for (std::size_t i = 0; i < sum_values; ++i) {
            const double p = laws.with[i], q = laws.without[i], least = laws.error;
            const bool known = max(p, q) > 8.0 * least;
            ratios[i] = known ? std::log(max(p, least) / max(q, least)) : -infinity;
        }
        order.resize(sum_values);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t i, std::size_t j) { return ratios[i] < ratios[j]; });
        unknown = static_cast<std::size_t>(
            std::count_if(ratios.begin(), ratios.end(), [](double ratio) { return ratio == -infinity; }));
    }
};

// Adds up masses of `size` sums, each of which errs.
class MassGroup {
  public:
    void add(double with, double without) { with_ += with, without_ += without, size_ += 1.0; }
    bool empty() const { return size_ == 0.0; }
    void move_to(EnclosedLaws& laws, double error) {
        laws.add(ends(with_, error), ends(without_, error));
        *this = {};
    }

  private:
    // Besides the errors of the masses, those of their sum.
    Interval ends(double mass, double error) const {
        const double slack = (size_ + 2.0) * (error + unit_roundoff * std::fabs(mass)) * up;
        return {max(mass - slack, 0.0), mass + slack};
    }

    double with_ = 0.0, without_ = 0.0, size_ = 0.0;
};

// Merges sums whose likelihood ratios are close. Groups are even in the log odds of the mass below
// them, which resolves either tail.
inline void add_sums(const SumLaws& sums, EnclosedLaws& laws) {
    const auto [order, unknown] = OrderedSums(sums);
    std::vector<double> both;  // up to each sum
    double total = 0.0;
    for (const std::size_t i : order)
        both.push_back(total += 0.5 * (max(sums.with[i], sums.error) + max(sums.without[i], sums.error)));
    const auto odds = [&](std::size_t at) {
        const double share = min(both[at] / total, 1.0 - unit_roundoff);
        return std::log(share / (1.0 - share));
    };
    constexpr double groups_a_unit = 160.0;  // of the log odds
    MassGroup group;
    double last_rank = -infinity;
    for (std::size_t at = 0; at < sum_values; ++at) {
        const double rank = at < unknown ? -infinity : std::floor(groups_a_unit * odds(at));
        if (!group.empty() && rank != last_rank) group.move_to(laws, sums.error);
        group.add(sums.with[order[at]], sums.without[order[at]]);
        last_rank = rank;
    }
    group.move_to(laws, sums.error);
}

// Null where the errors of all sums together are no longer small: near 10^6 batches at noise 0.3,
// whose sums are of few steps.
inline PairPointer sum_of_outputs(const EpochOutputs& epoch, const std::atomic<bool>* stop = nullptr) {
    constexpr double capped = 1e-4;  // the probability that some output exceeds the cap
    const double cap = q_inv(capped / epoch.batches);
    WorkBudget budget(stop);
    const SumLaws sums = sum_laws(epoch, cap, budget);
    if (sums.error * static_cast<double>(sum_values) > 0.25 * bound_error) return nullptr;
    EnclosedLaws laws;
    add_sums(sums, laws);
    add_largest(epoch, {cap, cap + 2.0 * epoch.shift + output_reach, 1000}, laws);
    return laws.pair();
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
