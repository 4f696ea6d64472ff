// The cumulants of pairs whose densities are mixtures of Gaussians: Gaussian noise on samples of
// every kind. Each is a sum over pieces (cumulant/gaussian_piece.hpp), and atoms.
//
//   mixture        P = (1-q) N(0,1) + q sum_k w_k N(r_k,1) against Q = N(0,1), and the reverse;
//   replaced       P = (1-q) N(0,1) + q N(r,1) against (1-q) N(0,1) + q N(-r,1);
//   fixed size     loss/fixed_size_sampled.hpp: with A = 1 - q + q e^{rx - r^2/2}, the law phi A of
//                  the losses log A, the law phi of the losses -log A, both on x > r/2, where
//                  A > 1, and the atom of mass (1-q) erf(r/2 sqrt 2);
//   labelled       several of these, each with a weight, or with two, under P and under Q.
//
// Outcomes beyond a range of x are left out: each piece's range ends where its mass beyond, under
// both distributions, is at most that of N(0, 1) beyond the cutoff. `log_missing` has the sum.
//
// A law may be split instead: its forward pieces end where about e^{log_jump} of P lies beyond, and
// `jumps` says what does (accounting/gaussian_jumps.hpp).
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/gaussian_piece.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// What a law of Gaussian mixtures is made of.
struct GaussianLaw {
    struct Atom {
        double loss, mass;  // mass under P
    };

    // phi U against phi D beyond x = from, with the weights of PieceRange.
    struct Jumps {
        ShiftMixture upper, lower;
        double weight, log_ratio, from;
    };

    std::vector<GaussianPiece> pieces;
    std::vector<Atom> atoms;          // beside the pieces
    std::vector<Jumps> jumps;         // in no piece
    double gap = 0.0;                 // by how much the masses of P may miss 1, by rounding
    double log_missing = -infinity;   // what the ranges leave out, of P and of Q, at most
    double log_left_out = -infinity;  // the same without the jumps
    double lowest = -infinity, highest = infinity;
};

class GaussianPiecesCumulant final : public PointCumulant {
  public:
    GaussianPiecesCumulant(GaussianLaw law, const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : PointCumulant(kernels, std::move(workspace)), law_(std::move(law)) {}

    // A path through the pieces, and the atoms, which do not decay.
    double log_decay(double c, double omega) const override {
        for (const GaussianPiece& piece : law_.pieces)
            if (!piece.small()) return 0.0;
        const double unit = whole(c);
        if (!(std::fabs(unit) < 1e6)) return 0.0;
        Decay all;
        for (const GaussianPiece& piece : law_.pieces) {
            const Decay one = piece.decay(c, omega, unit);
            all.lost += one.lost, all.kept += one.kept;
        }
        const double slack = 1e-9 + 1e-12 * (std::fabs(c) + std::fabs(unit)) + 2.0 * moment_.error;
        const double lost = all.lost - slack * std::fabs(all.lost);
        for (const GaussianLaw::Atom& atom : law_.atoms) all.kept += atom.mass * std::exp(c * atom.loss - unit);
        const double kept = all.kept * (1.0 + slack);
        work_ += 400.0 * static_cast<double>(law_.pieces.size());
        const double by_loss = lost > 0.0 ? std::log1p(-min(lost, 1.0)) : 0.0;
        return min(by_loss, kept < 1.0 ? std::log(kept) : 0.0);
    }
    double log_missing() const override { return law_.log_missing; }
    double highest() const override { return law_.highest; }
    double lowest() const override { return law_.lowest; }

  protected:
    Law law(double c, double omega) const override {
        for (int level = 0; level <= GaussianPiece::max_level; ++level) {
            if (!(work_of(level) < GaussianPiece::max_work)) break;
            const GaussianPiece::LogError found = log_error(c, omega, level);
            if (!(found.error < found.value - depth)) continue;
            const Level& known = points(level);
            return {&known.points, found.error, known.gap};
        }
        return {nullptr, infinity, 1.0};
    }

  private:
    static constexpr double depth = 43.0;  // of a quadrature's error below the largest density

    struct Level {
        LossPoints points;
        double gap = 1.0;
    };

    double work_of(int level) const {
        double sum = 0.0;
        for (const GaussianPiece& piece : law_.pieces) sum += piece.size(level) * piece.components();
        return sum;
    }
    GaussianPiece::LogError log_error(double c, double omega, int level) const {
        GaussianPiece::LogError all{-infinity, -infinity};
        for (const GaussianPiece& piece : law_.pieces) {
            if (!piece.small()) return {infinity, 0.0};
            const GaussianPiece::LogError one = piece.log_error(c, omega, level);
            all = {log_sum(all.error, one.error), max(all.value, one.value)};
        }
        return all;
    }
    const Level& points(int level) const {
        Level& known = levels_[static_cast<std::size_t>(level)];
        if (known.points.size() > 0) return known;
        for (const GaussianPiece& piece : law_.pieces) piece.append_points(level, known.points);
        for (const GaussianLaw::Atom& atom : law_.atoms)
            known.points.add(atom.loss, 8.0 * std::fabs(atom.loss), std::log(atom.mass),
                             16.0 + 2.0 * std::fabs(std::log(atom.mass)));
        known.points.complete();
        // The masses of P and Q are the moments at c = 0 and c = -1.
        const double of_p = log_error(0.0, 0.0, level).error, of_q = log_error(-1.0, 0.0, level).error;
        known.gap = min(law_.gap + std::exp(law_.log_missing) + 1.1 * std::exp(max(of_p, of_q)), 1.0);
        return known;
    }

    double whole(double c) const {  // log M(c)
        if (c != tilt_) moment_ = log_moment(c), tilt_ = c;
        return moment_.value;
    }

    GaussianLaw law_;
    mutable std::array<Level, GaussianPiece::max_level + 1> levels_;
    mutable Moment moment_{0.0, 0.0};
    mutable double tilt_ = nan;
};

// log of the mass of a mixture beyond x.
inline double log_mass_above(const ShiftMixture& mixture, double x) {
    double sum = mixture.weight_at_zero() > 0.0 ? std::log(mixture.weight_at_zero()) + log_q(x) : -infinity;
    for (std::size_t k = 0; k < mixture.shifts().size(); ++k)
        sum = log_sum(sum, std::log(mixture.weights()[k]) + log_q(x - mixture.shifts()[k]));
    return sum;
}

// The least x >= 0, nearly, beyond which a mixture of non-negative shifts has at most e^{log_mass}.
inline double range_end(const ShiftMixture& mixture, double log_mass) {
    double low = 0.0, high = 1.0;
    while (log_mass_above(mixture, high) > log_mass) low = high, high *= 2.0;
    while (high - low > 0.01 * high) {
        const double middle = 0.5 * (low + high);
        (log_mass_above(mixture, middle) > log_mass ? low : high) = middle;
    }
    return high;
}

// Builds laws piece by piece, with one cutoff for all.
class GaussianLawBuilder {
  public:
    explicit GaussianLawBuilder(double cutoff, double log_jump = -infinity)
        : log_cut_(log_q(cutoff)), log_jump_(log_jump) {
        law_.lowest = infinity, law_.highest = -infinity;
    }

    // A weight under Q, and the logarithm of that under P over it.
    struct Weight {
        double of_q, log_ratio = 0.0;
    };

    // phi U against phi, U of non-negative shifts; forward, or reversed.
    void add_mixture(const ShiftMixture& upper, const Weight& weight, bool forward) {
        const double least = upper.weight_at_zero() > 0.0 ? std::log(upper.weight_at_zero()) : -infinity;
        const double lowest = least + weight.log_ratio, larger = weight.of_q * std::exp(max(weight.log_ratio, 0.0));
        note_losses(forward ? lowest : -infinity, forward ? infinity : -lowest);
        if (weight.log_ratio != 0.0) law_.gap += eight_roundings * larger;
        if (is_negligible(larger)) return;
        const double log_mass = log_cut_ - std::log(larger);
        const double low = std::ceil(range_end(ShiftMixture(), log_mass));
        const double high = range_end(upper, forward ? log_mass_beyond(larger) : log_mass);
        law_.pieces.emplace_back(
            upper, ShiftMixture(),
            PieceRange{-low, high, weight.of_q, forward, !forward, weight.log_ratio, false, splits()});
        miss(larger, log_q(low));
        const double end = law_.pieces.back().high();
        if (forward) jump({upper, ShiftMixture(), weight.of_q, weight.log_ratio, end});
        else miss(larger, log_mass_above(upper, end));
    }

    void add_atom(double loss, double mass) {
        note_losses(loss, loss);
        if (loss != 0.0) law_.gap += eight_roundings * mass * std::exp(std::fabs(loss));
        if (mass > 0.0) law_.atoms.push_back({loss, mass});  // rare ones too: Q may have more of it
    }

    // phi A against phi A(-x).
    void add_replaced(double shift, double rate, double weight) {
        note_losses(-infinity, infinity);
        if (is_negligible(weight)) return;
        const ShiftMixture upper({{shift}, {1.0}}, rate), lower({{shift}, {1.0}}, rate, -1.0);
        const double low = std::ceil(range_end(upper, log_cut_ - std::log(weight)));
        const double high = splits() ? range_end(upper, log_mass_beyond(weight)) : low;
        law_.pieces.emplace_back(upper, lower, PieceRange{-low, high, weight, true, false, 0.0, false, splits()});
        miss(weight, log_mass_above(upper, low));  // below -low there is less
        jump({upper, lower, weight, 0.0, law_.pieces.back().high()});
    }

    void add_fixed_size(double shift, double rate, double weight) {
        note_losses(-infinity, infinity);
        if (is_negligible(weight)) return;
        const ShiftMixture upper({{shift}, {1.0}}, rate);
        const double low = 0.5 * shift, high = max(range_end(upper, log_cut_ - std::log(weight)), low + 1.0);
        const auto add = [&](double end, bool forward, bool reverse) {
            law_.pieces.emplace_back(upper, ShiftMixture(),
                                     PieceRange{low, end, weight, forward, reverse, 0.0, true, splits() && forward});
        };
        if (splits()) add(max(range_end(upper, log_mass_beyond(weight)), low + 0.1), true, false);
        const double jumps_from = splits() ? law_.pieces.back().high() : infinity;
        add(high, !splits(), true);
        const double between = weight * ((1.0 - rate) * std::erf(low * std::sqrt(0.5)));
        if (between > 0.0) law_.atoms.push_back({0.0, between});
        const double end = law_.pieces.back().high();
        jump({upper, ShiftMixture(), weight, 0.0, splits() ? jumps_from : end});
        if (splits()) miss(weight, log_mass_above(upper, end));  // of Q, by the reverse strand
        miss(weight, log_q(end));
    }

    GaussianLaw law() && { return std::move(law_); }

  private:
    bool splits() const { return log_jump_ > -infinity; }
    // What a forward piece of this weight has beyond its range.
    double log_mass_beyond(double weight) const { return max(log_cut_, log_jump_) - std::log(weight); }

    void miss(double weight, double log_mass) {
        const double log_missed = std::log(weight) + log_mass + 1e-9;
        law_.log_missing = log_sum(law_.log_missing, log_missed);
        law_.log_left_out = log_sum(law_.log_left_out, log_missed);
    }
    // What a forward piece leaves beyond: P has no less of it than Q.
    void jump(GaussianLaw::Jumps jumps) {
        const double log_mass = log_mass_above(jumps.upper, jumps.from);
        const double larger = jumps.weight * std::exp(max(jumps.log_ratio, 0.0));
        if (!splits()) return miss(larger, log_mass);
        law_.log_missing = log_sum(law_.log_missing, std::log(larger) + log_mass + 1e-9);
        law_.jumps.push_back(std::move(jumps));
    }
    bool is_negligible(double weight) {  // a label rarer than the cutoff
        if (std::log(weight) > log_cut_) return false;
        miss(weight, 0.0);
        return true;
    }
    void note_losses(double lowest, double highest) {
        law_.lowest = min(law_.lowest, lowest), law_.highest = max(law_.highest, highest);
    }

    double log_cut_, log_jump_;
    GaussianLaw law_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
