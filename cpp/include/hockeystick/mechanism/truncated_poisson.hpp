// Gaussian noise on a Poisson sample that is truncated to a largest size, where a record is added
// or removed, replaced, or zeroed out. Theorems and proofs: docs/accounting/sampling.md, Truncated
// samples.
//
// The pair is one of several, and shows which one. Under Q all of them are N(0, 1). Under P, with
// r the shift of one record, q the sampling rate and x the excess:
//
//   probability under Q         under P, times that probability
//   1 - last (1 + x) - swapped  (1-q) N(0, 1) + q N(r, 1)         a Poisson sample
//   last                        (1-q) N(0, 1) + q (1+x) N(r, 1)   the others leave one place
//   last x                      (1-q) N(0, 1)                     the batch is full without it
//   swapped                     (1-q) N(0, 1) + q N(2r, 1)        it displaces another record
//
// Where a record is replaced, the first two rows are compared with the same at -r, the third leaks
// nothing, and the fourth is a batch of fixed size in which one record moves the sum by 2r.
//
// Where a record is zeroed out, that is replaced by one that contributes nothing and takes its
// place, a row is as probable under Q as under P. The first three rows compare (1-q') N(0, 1) +
// q' N(r, 1) with N(0, 1), q' being q, q (1+x)/(1+qx) and 0, and the fourth is that of replacing.
#pragma once

#include <hockeystick/loss/labelled.hpp>
#include <hockeystick/mechanism/fixed_size_sampled.hpp>
#include <hockeystick/mechanism/gaussian.hpp>
#include <hockeystick/mechanism/poisson_sampled.hpp>
#include <hockeystick/mechanism/replaced_gaussian.hpp>

namespace hockeystick::mechanism {
inline namespace HOCKEYSTICK_ISA {

// How the data sets differ in a record: it is there or not, it is another one, or it contributes
// nothing in the same place.
enum class Change { removed, replaced, zeroed };

// The probabilities `last` and `swapped` of the table above, and its x.
struct Truncation {
    double last, excess, swapped;
};

// A row of the table: its probability under Q; that under P, over it; and its own pair, a Poisson
// sample of this rate in which one record moves the sum by `shift`.
struct TruncatedLabel {
    double weight, ratio, rate, shift;
};

inline constexpr double largest_excess = 100.0;  // keeps the offset log(1 + q x) of a label below 5

class TruncatedPoisson final : public Pair {
  public:
    // `shift` is that of one record. Where `displaced` is positive, the mechanism is also dominated by the pair
    // whose only label beside the usual sample is `swapped`, with this probability: its `alternative`.
    TruncatedPoisson(double shift, double rate, const Truncation& truncation, Change change, double displaced = 0.0)
        : shift_(shift), rate_(rate), truncation_(truncation), change_(change), displaced_(displaced) {
        const auto& [last, excess, swapped] = truncation;
        require(shift > 0.0, "shift", "be positive", shift);
        require(rate > 0.0 && rate < 1.0, "sampling_rate", "lie in (0, 1)", rate);
        require(last >= 0.0 && last < 1.0, "last", "lie in [0, 1)", last);
        require(excess >= 0.0 && excess <= largest_excess, "excess", "lie in [0, 100]", excess);
        require(swapped >= 0.0 && last * (1.0 + excess) + swapped < 1.0, "swapped",
                "be non-negative and below 1 - last (1 + excess)", swapped);
        require(displaced >= 0.0 && displaced < 1.0, "displaced", "lie in [0, 1)", displaced);
    }
    // The rows that have a probability.
    std::vector<TruncatedLabel> labels() const {
        const auto& [last, excess, swapped] = truncation_;
        std::vector<TruncatedLabel> all{{1.0 - (last * (1.0 + excess) + swapped), 1.0, rate_, shift_}};
        if (last > 0.0) all.push_back({last, 1.0 + rate_ * excess, crowded_rate(), shift_});
        if (last * excess > 0.0) all.push_back({last * excess, 1.0 - rate_, 0.0, shift_});
        if (swapped > 0.0) all.push_back({swapped, 1.0, rate_, 2.0 * shift_});
        return all;
    }
    Loss loss(Direction direction) const override {
        std::vector<LabelledLoss::Label> losses;
        for (const TruncatedLabel& label : labels()) losses.push_back(loss_of(label, direction));
        return std::make_shared<LabelledLoss>(std::move(losses));
    }
    bool symmetric() const override { return change_ == Change::replaced; }
    PairPointer alternative() const override {
        if (displaced_ == 0.0) return nullptr;
        return std::make_shared<TruncatedPoisson>(shift_, rate_, Truncation{0.0, 0.0, displaced_}, change_);
    }
    double renyi(double order, double rate, Direction direction) const override {
        const double own = Pair::renyi(order, rate, direction);
        const PairPointer other = alternative();
        return other ? min(own, other->renyi(order, rate, direction)) : own;
    }
    // No label's pair moves by more than two shifts, and showing a label adds no more than the
    // logarithm of its ratio.
    double coarse_renyi(double order, double, Direction) const override {
        double shown = 0.0;
        for (const TruncatedLabel& label : labels()) shown = max(shown, std::fabs(std::log(label.ratio)));
        return (coarse_gaussian_renyi(2.0 * shift_, order, 1.0) + shown) * renyi_up;
    }
    bool has_cumulant(double rate) const override {
        if (rate != 1.0) return false;
        const auto covered = [](const TruncatedLabel& label) {
            return label.rate == 0.0 || (label.rate < 1.0 && mixture_is_covered({{label.shift}, {1.0}}, label.rate));
        };
        const std::vector<TruncatedLabel> all = labels();
        return std::all_of(all.begin(), all.end(), covered);
    }
    std::unique_ptr<Cumulant> cumulant(double, Direction direction, double cutoff,
                                       const CumulantTools& tools) const override {
        GaussianLawBuilder law(cutoff);
        for (const TruncatedLabel& label : labels()) add_to(law, label, direction);
        return pieces_cumulant(std::move(law), tools);
    }
    bool has_cutoff(double, Direction) const override { return true; }

    // The table holds for the product of the rates: its proof has no other use of q.
    PairPointer sampled(double rate, End end) const override {
        return symmetric() ? nullptr : at_rate(product_of_rates(rate_, rate, end), change_);
    }
    PairPointer sampled_and_replaced(double rate, End end) const override {
        return symmetric() ? nullptr : at_rate(product_of_rates(rate_, rate, end), Change::replaced);
    }
    std::vector<double> parameters() const override {
        const auto& [last, excess, swapped] = truncation_;
        return {shift_, rate_, last, excess, swapped, static_cast<double>(change_), displaced_};
    }

  private:
    // q (1 + x)/(1 + q x), rounded up: a larger rate leaks more.
    double crowded_rate() const {
        if (truncation_.excess == 0.0) return rate_;
        return min(rate_ * ((1.0 + truncation_.excess) / (1.0 + rate_ * truncation_.excess)) * up, 1.0);
    }
    LabelledLoss::Label loss_of(const TruncatedLabel& label, Direction direction) const {
        const Loss loss = pair_of(label)->loss(direction);
        if (change_ != Change::removed) return {loss, label.weight * label.ratio};
        const double offset = offset_of(label);
        if (direction == Direction::remove) return {loss, label.weight * label.ratio, offset};
        return {loss, label.weight, -offset};
    }
    PairPointer pair_of(const TruncatedLabel& label) const {
        if (label.rate == 0.0) return nothing();
        if (is_sample(label)) return mechanism::poisson_sampled(Gaussian::of_shift(label.shift), label.rate);
        if (label.shift == shift_ && label.rate < 1.0) return std::make_shared<ReplacedGaussian>(shift_, label.rate);
        return std::make_shared<FixedSizeSampled>(Gaussian::of_shift(2.0 * shift_), label.rate);
    }
    // Whether a row compares a Poisson sample of noise that is moved with N(0, 1).
    bool is_sample(const TruncatedLabel& label) const {
        return change_ == Change::removed || (change_ == Change::zeroed && label.shift == shift_);
    }
    void add_to(GaussianLawBuilder& law, const TruncatedLabel& label, Direction direction) const {
        const bool forward = direction == Direction::remove;
        const bool alike = change_ != Change::removed;  // the row is as probable under P as under Q
        const double both = label.weight * label.ratio, offset = alike ? 0.0 : offset_of(label);
        const double of_q = alike ? both : label.weight;
        if (label.rate == 0.0) law.add_atom(forward ? offset : -offset, forward ? both : of_q);
        else if (is_sample(label)) law.add_mixture({{{label.shift}, {1.0}}, label.rate}, {of_q, offset}, direction);
        else if (label.shift == shift_) law.add_replaced(label.shift, label.rate, both);
        else law.add_fixed_size(label.shift, label.rate, both);
    }
    double offset_of(const TruncatedLabel& label) const {
        return label.rate == 0.0 ? std::log1p(-rate_) : std::log1p(label.ratio - 1.0);
    }
    PairPointer at_rate(double rate, Change change) const {  // a product of rates may underflow
        if (rate == 0.0) return nothing();
        return std::make_shared<TruncatedPoisson>(shift_, rate, truncation_, change, displaced_);
    }

    double shift_, rate_;
    Truncation truncation_;
    Change change_;
    double displaced_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::mechanism
