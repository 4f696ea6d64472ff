// The jumps of a law of Gaussian pieces (cumulant/gaussian_pieces.hpp): phi U against phi D beyond
// a point, enclosed by two lists of atoms.
//
// The range is cut into cells. Within one, of the masses p and q under P and Q, y = e^-loss lies
// between its values at the ends and has the mean q/p under P. A function f of the loss that rises,
// and is convex in y, has a mean of at least f(log p/q), by Jensen's inequality, and at most that
// of the two ends, in the proportion which gives y that mean. docs/core/accounting.md, "Rare
// jumps".
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hockeystick/accounting/question.hpp>

namespace hockeystick::accounting {
inline namespace HOCKEYSTICK_ISA {

class GaussianJumps {
  public:
    GaussianJumps(const GaussianLaw::Jumps& law, double log_least) : law_(law) {
        const double log_weight = std::log(law.weight) + max(law.log_ratio, 0.0);
        const double end = max(range_end(law.upper, log_least - log_weight), law.from + 0.1);
        const double width = (end - law.from) / cells;
        Edge left = at(law.from);
        p = left.p, q = left.q;
        for (int k = 1; k <= cells; ++k) {
            const Edge right = at(law.from + width * k);
            add_cell(left, right);
            left = right;
        }
        above.push_back({left.loss + left.loss_error, carried_});
        above.push_back({infinity, left.p.upper});
    }

    std::vector<LossAtom> above, below;
    Interval p{}, q{};  // masses

  private:
    static constexpr int cells = 512;
    static constexpr double least_mass = 1e-290;

    // The masses beyond a point, and its loss.
    struct Edge {
        Interval p, q;
        double loss, loss_error;
    };

    // A tail errs by 8 ulp of its logarithm, and by what x - r is rounded; the sum over the
    // mixture by an ulp of the logarithm for each component. Near the least doubles, where masses
    // lose their digits and become 0, all that is known is `least_mass`.
    static Interval mass_above(const ShiftMixture& mixture, double x, double log_weight) {
        const double log_mass = log_mass_above(mixture, x), size = 4.0 + std::fabs(log_mass) + std::fabs(log_weight);
        const double error = size * (1e-14 + 1e-15 * static_cast<double>(mixture.shifts().size())) + 1e-15 * x * x;
        const double value = std::exp(log_mass + log_weight);
        if (value < least_mass) return {0.0, least_mass};
        return {value * (1.0 - error), value * (1.0 + error)};
    }

    Edge at(double x) const {
        const ShiftMixture::Value u = law_.upper.at(x, 0.0), d = law_.lower.at(x, 0.0);
        const double loss = u.log - d.log + law_.log_ratio, log_weight = std::log(law_.weight);
        const double ratio_error = law_.log_ratio == 0.0 ? 0.0 : 8.0;
        return {mass_above(law_.upper, x, log_weight + law_.log_ratio), mass_above(law_.lower, x, log_weight), loss,
                2.0 * unit_roundoff * (u.log_error + d.log_error + ratio_error + std::fabs(loss))};
    }

    void add_cell(const Edge& left, const Edge& right) {
        const Interval mass_p{max(left.p.lower - right.p.upper, 0.0), left.p.upper - right.p.lower};
        const Interval mass_q{max(left.q.lower - right.q.upper, 0.0), left.q.upper - right.q.lower};
        const double first = left.loss + left.loss_error, last = right.loss + right.loss_error;
        // The share of the far end: (y_left - q/p)/(y_left - y_right), rounded up.
        const double fall = -std::expm1(left.loss - right.loss);
        const double mean = mass_q.lower / mass_p.upper * std::exp(left.loss);
        const double slack = 4.0 * (left.loss_error + right.loss_error + 4.0 * unit_roundoff * (1.0 + left.loss));
        const double share = (1.0 - mean + slack) / (fall - slack) * (1.0 + 1e-12);
        const bool known = fall > 2.0 * slack && left.loss < 600.0 && mean < infinity;  // else all of it
        const double far = known ? min(max(share, 0.0), 1.0) : 1.0;
        above.push_back({first, (carried_ + mass_p.upper * (1.0 - far)) * (1.0 + eight_roundings)});
        carried_ = mass_p.upper * far * (1.0 + eight_roundings);
        if (!(mass_p.lower > 0.0)) return;
        const double middle = std::log(mass_p.lower / mass_q.upper) - 8.0 * unit_roundoff * (1.0 + std::fabs(last));
        below.push_back({min(max(middle, left.loss - left.loss_error), last), mass_p.lower});
    }

    const GaussianLaw::Jumps& law_;
    double carried_ = 0.0;  // mass above at the last edge
};

// The law, split. A log_least so deep that the mass beyond does not matter ends the jumps.
inline std::unique_ptr<SplitLaw> split_law(GaussianLawBuilder&& builder, double log_least, const CumulantTools& tools) {
    GaussianLaw law = std::move(builder).law();
    auto split = std::make_unique<SplitLaw>();
    split->left_out = std::exp(law.log_left_out) * (1.0 + 1e-9);
    for (const GaussianLaw::Jumps& jumps : law.jumps) {
        const GaussianJumps found(jumps, log_least);
        split->above.insert(split->above.end(), found.above.begin(), found.above.end());
        split->below.insert(split->below.end(), found.below.begin(), found.below.end());
        split->jump_p = {split->jump_p.lower + found.p.lower, split->jump_p.upper + found.p.upper};
        split->jump_q = {split->jump_q.lower + found.q.lower, split->jump_q.upper + found.q.upper};
    }
    double infinite = 0.0;
    for (LossAtom& atom : split->above)
        if (atom.loss == infinity) infinite += std::exchange(atom.mass, 0.0) * (1.0 + eight_roundings);
    const auto by_loss = [](const LossAtom& x, const LossAtom& y) { return x.loss < y.loss; };
    std::sort(split->above.begin(), split->above.end(), by_loss);
    std::sort(split->below.begin(), split->below.end(), by_loss);
    while (!split->above.empty() && split->above.back().loss == infinity) split->above.pop_back();
    split->above.push_back({infinity, infinite});
    split->bulk = std::make_unique<GaussianPiecesCumulant>(std::move(law), *tools.kernels, tools.workspace);
    return split;
}

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::accounting
