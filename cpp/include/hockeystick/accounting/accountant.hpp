// What a ledger of mechanisms leaks in all, between certified ends, both directions: the accountant for C++ and C.
//
// The engines are asked in the order of the Python package, whose answers these brackets overlap: all Gaussian steps are one
// (their mu rounded up for upper ends, down for lower ones); a single step has its exact formula (loss/one_step.hpp); then the
// contour (contour/ledger_contour.hpp), where every step has a cumulant, and discretised losses (pld/composition.hpp) where its bracket is not
// narrow; what holds without composing where neither is. The larger of both directions counts. Total variations, which
// compose to at most 1 - prod (1 - delta_j(0))^{T_j}, decide where epsilon is 0.
//
// Needs pocketfft on the include path, as pld/composition.hpp does. Throws std::invalid_argument, std::bad_alloc.
#pragma once

#include <hockeystick/contour/ledger_contour.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/pld/composition.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using namespace contour;
using namespace pld;

// Queries change nothing, and may be asked by several threads at once.
class Accountant {
  public:
    // `kernels` are the contour's loops; a program that is compiled once has its own.
    explicit Accountant(const simd::Kernels& kernels = simd::own_kernels) : kernels_(&kernels) {}

    // Adds `count` equal steps. The caller checks the mechanism's parameters.
    void compose(const Mechanism& mechanism, double count = 1.0) {
        require(numeric::count(count), "count must be an integer in [1, 2^53], not ", count);
        if (mechanism.rate == 0.0) return;
        for (LedgerEntry& entry : ledger_) {
            const Mechanism& other = entry.mechanism;
            if (other.kind != mechanism.kind || other.parameters != mechanism.parameters ||
                other.rate != mechanism.rate)
                continue;
            if (entry.count + count > 0x1p53) throw std::invalid_argument("counts must sum to at most 2^53");
            entry.count += count;
            return;
        }
        ledger_.push_back({mechanism, count});
    }

    // delta(eps), eps >= 0.
    Interval delta(double eps) const {
        require(eps >= 0.0, "eps must be non-negative, not ", eps);
        return both({false, eps});
    }

    // The smallest epsilon >= 0 at which delta(epsilon) <= delta, 0 <= delta < 1.
    Interval epsilon(double delta) const {
        require(delta >= 0.0 && delta < 1.0, "delta must lie in [0, 1), not ", delta);
        return both({true, delta});
    }

  private:
    static void require(bool holds, const char* rule, double value) {
        if (holds) return;
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", value);
        throw std::invalid_argument(std::string(rule) + text);
    }

    static constexpr double nearly_one = 1.0 + 1e-9;  // far more than the rounding of tails
    static constexpr double tolerance = 1e-3, least_width = 1e-9;

    static bool narrow(const Interval& found, const Question& question) {
        const double least = question.for_epsilon ? least_width : 0.0;
        return found.upper < infinity && found.upper - found.lower <= max(tolerance * found.upper, least);
    }

    Interval both(const Question& question) const {
        if (ledger_.empty()) return {0.0, 0.0};
        const Interval one = one_direction(true, question), other = one_direction(false, question);
        return {max(one.lower, other.lower), max(one.upper, other.upper)};
    }

    Interval one_direction(bool forward, const Question& question) const {
        const std::vector<LedgerEntry> above = entries(1.0 + 0x1p-50);
        Interval found = ask(above, forward, question);
        if (above.size() == ledger_.size() && !rounds()) return found;
        const Interval below = ask(entries(1.0 - 0x1p-50), forward, question);
        return {min(below.lower, found.upper), found.upper};
    }

    static bool is_gaussian(const LedgerEntry& entry) {
        return entry.mechanism.kind == "gaussian" && entry.mechanism.rate == 1.0;
    }

    // Whether the shift of all Gaussian steps in one is rounded.
    bool rounds() const {
        return std::any_of(ledger_.begin(), ledger_.end(),
                           [](const LedgerEntry& entry) { return is_gaussian(entry) && entry.count > 1.0; });
    }

    // The ledger with all Gaussian steps in one, its shift times `rounding` where it is rounded.
    std::vector<LedgerEntry> entries(double rounding) const {
        std::vector<LedgerEntry> result;
        double shift = 0.0;
        for (const LedgerEntry& entry : ledger_) {
            if (!is_gaussian(entry)) result.push_back(entry);
            else shift = std::hypot(shift, std::sqrt(entry.count) * entry.mechanism.parameters.at(0));
        }
        if (shift > 0.0) {
            const bool exact = ledger_.size() == result.size() + 1 && !rounds();
            // hypot errs by an ulp for each entry
            const double sum = 1.0 + (rounding - 1.0) * static_cast<double>(ledger_.size());
            result.push_back({{"gaussian", {exact ? shift : shift * sum}, 1.0}, 1.0});
        }
        return result;
    }

    Interval ask(const std::vector<LedgerEntry>& steps, bool forward, const Question& question) const {
        if (steps.size() == 1 && steps[0].count == 1.0) {
            const OneStep step(steps[0].mechanism, forward);
            return question.for_epsilon ? step.epsilon(question.value) : step.delta(question.value);
        }
        if (question.for_epsilon && question.value > 0.0 && question.value >= total_variation(steps, forward))
            return {0.0, 0.0};
        Interval found{0.0, question.for_epsilon ? infinity : 1.0};
        const bool inside = question.for_epsilon ? question.value > 0.0 : question.value < infinity;
        if (inside && has_contour(steps)) {
            Contour contour = make_contour(steps, forward, *kernels_);
            const ContourResult r =
                question.for_epsilon ? contour.epsilon(1.0, question.value) : contour.delta(1.0, question.value);
            if (r.usable) found = {r.lower, r.upper};
        }
        if (narrow(found, question)) return found;
        std::vector<Step> losses;
        for (const LedgerEntry& entry : steps) losses.push_back({make_loss(entry.mechanism, forward), entry.count});
        const Composition composition(std::move(losses), PldSettings{});
        const PldBracket grid =
            question.for_epsilon ? composition.epsilon(question.value) : composition.delta(question.value);
        found = {max(found.lower, grid.lower), min(found.upper, grid.upper)};
        if (narrow(found, question)) return found;
        found.upper = min(found.upper, unsampled(steps, forward, question));
        found.upper = min(found.upper, near_the_largest_loss(steps, forward, question));
        return found;
    }

    // Upper end for Gaussian steps as if none were sampled: sampling is a post-processing of that pair.
    static double unsampled(const std::vector<LedgerEntry>& steps, bool forward, const Question& question) {
        double shift = 0.0;
        for (const LedgerEntry& entry : steps) {
            if (entry.mechanism.kind != "gaussian") return infinity;
            shift = std::hypot(shift, std::sqrt(entry.count) * entry.mechanism.parameters.at(0) * (1.0 + 0x1p-50));
        }
        const OneStep one({"gaussian", {shift * (1.0 + 0x1p-50)}, 1.0}, forward);
        return (question.for_epsilon ? one.epsilon(question.value) : one.delta(question.value)).upper;
    }

    // Upper end of delta just below the largest loss, where no grid is fine enough: each step must be as near to its own.
    static double near_the_largest_loss(const std::vector<LedgerEntry>& steps, bool forward, const Question& question) {
        double most = 0.0, size = 0.0, log_finite = 0.0, near = 1.0;
        for (const LedgerEntry& entry : steps) {
            const OneStep one(entry.mechanism, forward);
            most += entry.count * one.highest().upper;
            size += entry.count * std::fabs(one.highest().upper);
            log_finite += entry.count * std::log1p(-one.infinite_mass().upper);
        }
        most += 1e-13 * size;
        if (question.for_epsilon || !(question.value <= most && most < infinity)) return infinity;
        const double gap = (most - question.value) * (1.0 + 0x1p-50);
        for (const LedgerEntry& entry : steps) {
            const Loss loss = make_loss(entry.mechanism, forward);
            const double from = OneStep(loss).highest().lower - gap;
            near *= std::pow(min(loss->masses(from - 1e-13 * std::fabs(from)).p_above * nearly_one, 1.0), entry.count);
        }
        return -std::expm1(-gap) * near * nearly_one - std::expm1(log_finite) * nearly_one;
    }

    static double total_variation(const std::vector<LedgerEntry>& steps, bool forward) {
        double log_rest = 0.0;
        for (const LedgerEntry& entry : steps)
            log_rest += entry.count * std::log1p(-OneStep(entry.mechanism, forward).delta(0.0).upper);
        return min(-std::expm1(log_rest) * (1.0 + 1e-12), 1.0);
    }

    std::vector<LedgerEntry> ledger_;
    const simd::Kernels* kernels_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
