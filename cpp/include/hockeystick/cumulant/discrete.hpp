// The cumulant of a pair of discrete distributions, M(s) = sum_i p_i (p_i/q_i)^s.
//
// Its atoms never decay for good, so that the contour engine smooths them (contour/contour.hpp).
// Sampled by Poisson, P = (1 - rate) Q + rate P0 has the losses log1p(rate (p0_i/q_i - 1)). Where
// the loss is infinite, the outcome's mass is missing (`log_missing`). PointDecay says how far its
// characteristic function falls.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/loss_points.hpp>
#include <hockeystick/cumulant/nonuniform_fft.hpp>
#include <hockeystick/divergence/direction.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using divergence::Direction;

// How fast the characteristic function of a law on points falls, as far as a grid of frequencies
// tells. Where all points are atoms it does not fall for good: beyond the grid nothing is known.
//
// docs/core/cumulant.md, "Decay on a grid", has the proof.

// How far phi is known at k spacing, k up to `cells`.
struct DecayGrid {
    double spacing;
    std::size_t cells;

    static constexpr double turn_of_cell = 0.3;  // the spacing times the standard deviation of L
    // `cells` cells for a law of this deviation; none where it has none.
    static DecayGrid of(double deviation, std::size_t cells) {
        const double spacing = turn_of_cell / deviation;
        return {spacing, deviation > 0.0 && spacing < 1e100 ? cells : 0};
    }
    double last() const { return spacing * static_cast<double>(cells); }
};

// Bounds of |phi(omega')| for omega' from omega to a last frequency, by values on a grid of spacing
// g. f = |phi|^2 has |f''| <= E (L - L')^2 = 2 var L. Hence f is at most
// max(f(k g), f((k + 1) g)) + g^2 var/4 between two neighbours.
class PointDecay {
  public:
    // phi - 1 on the grid, k = 0, ..., grid.cells; empty where it is not known.
    PointDecay(const FourierSums& phi, const DecayGrid& grid) : spacing_(grid.spacing) {
        if (phi.real.empty() || grid.cells == 0) return;
        log_bounds_.assign(grid.cells, 0.0);
        const auto square = [&](std::size_t k) {
            const double size = distance(1.0 + phi.real[k], phi.imag[k]) + phi.error[k];
            return size * size * (1.0 + 1e-12);
        };
        constexpr double between = 0.25 * DecayGrid::turn_of_cell * DecayGrid::turn_of_cell * (1.0 + 1e-4);
        double largest = 0.0, next = square(grid.cells);
        for (std::size_t k = grid.cells; k-- > 0;) {
            const double here = square(k);
            largest = max(largest, max(here, next) + between);
            log_bounds_[k] = min(0.5 * std::log(largest) + 1e-15, 0.0);
            next = here;
        }
    }

    double end() const { return spacing_ * static_cast<double>(log_bounds_.size()) * (1.0 - 1e-9); }
    // From omega to end(); 0 from end() on.
    double log_bound(double omega) const {
        if (!(omega < end())) return 0.0;
        return log_bounds_[static_cast<std::size_t>(omega / spacing_ * (1.0 - 1e-9))];
    }

  private:
    double spacing_;
    std::vector<double> log_bounds_;
};

// A point of the mass e^{log_mass} under P. Errors are absolute, of the loss and of log_mass.
struct Point {
    double loss, log_mass, loss_error, mass_error;
};

// A law of finite losses, and the mass that it lacks. `gap` is how far the masses of P and of Q may
// sum from 1.
struct DiscreteLaw {
    LossPoints points;
    double log_missing = -infinity, gap = 1.0;

    void add(const Point& x) {
        points.add(x.loss, x.loss_error / unit_roundoff, x.log_mass, x.mass_error / unit_roundoff);
    }
};

// log(1 - rate + rate e^loss), for loss = log p - log q.
inline double mixed_loss(double loss, double rate) {
    if (rate == 1.0) return loss;
    if (loss > 600.0) return loss + std::log(rate) + std::log1p((1.0 - rate) / rate * std::exp(-loss));
    const double change = rate * std::expm1(loss);
    return change > -0.5 ? std::log1p(change) : std::log((1.0 - rate) + rate * std::exp(loss));
}

// A Poisson sample of a pair, compared with q, or q with the sample.
struct SampledFrom {
    double rate;
    Direction direction;

    bool forward() const { return direction == Direction::remove; }
};

// The absolute errors of an outcome's loss under the base pair, and of log q.
struct OutcomeErrors {
    double base, log_q;
};

// The sample's outcome, of finite loss log(p0/q) under the base pair and of mass q.
inline Point sampled_point(double base, double log_q, SampledFrom sample, OutcomeErrors errors) {
    constexpr double u = unit_roundoff;
    const double mixed = mixed_loss(base, sample.rate), rest = 1.0 - sample.rate;
    // How much the mixed loss moves with the base's: rate e^base/(rest + rate e^base).
    const double slope = rest > 0.0 ? min(1.0, sample.rate / rest * std::exp(min(base, 700.0))) : 1.0;
    const double rounding = rest > 0.0 ? u * (12.0 * std::fabs(mixed) + 8.0 * slope) : 0.0;
    const double loss_error = slope * errors.base + rounding;
    return {sample.forward() ? mixed : -mixed, log_q + (sample.forward() ? mixed : 0.0), loss_error,
            errors.log_q + (sample.forward() ? loss_error : 0.0) + u * std::fabs(log_q)};
}

// The law of the loss of the pair (p, q), on a sample of it.
inline DiscreteLaw discrete_law(const std::vector<double>& p, const std::vector<double>& q, SampledFrom sample) {
    const double rate = sample.rate;
    const bool forward = sample.forward();
    DiscreteLaw law;
    double missing = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (q[i] == 0.0) {  // p, if any, has this outcome alone
            if (forward) missing += rate * p[i];
            continue;
        }
        if (p[i] == 0.0) {
            if (rate == 1.0) {
                if (!forward) missing += q[i];
                continue;
            }
            const double loss = std::log1p(-rate), error = 4.0 * unit_roundoff * std::fabs(loss);
            const double log_q = std::log(q[i]), mass_error = unit_roundoff * (4.0 + 2.0 * std::fabs(log_q)) + error;
            law.add({forward ? loss : -loss, log_q + (forward ? loss : 0.0), error, mass_error});
            continue;
        }
        const double log_p = std::log(p[i]), log_q = std::log(q[i]), error = 2.0 * unit_roundoff;
        const OutcomeErrors errors{error * (8.0 + 2.0 * std::fabs(log_p) + 2.0 * std::fabs(log_q)),
                                   error * (2.0 + std::fabs(log_q))};
        law.add(sampled_point(log_p - log_q, log_q, sample, errors));
    }
    if (missing > 0.0) law.log_missing = std::log(missing) + 1e-9;
    return law;
}

class DiscreteCumulant final : public PointCumulant {
  public:
    static constexpr std::size_t max_atoms = 4096;

    // Whether the cumulant serves this pair: no mass is tiny, and little is missing.
    static bool covers(const std::vector<double>& p, const std::vector<double>& q, SampledFrom sample) {
        for (std::size_t i = 0; i < p.size(); ++i) {
            if (p[i] > 0.0 && q[i] > 0.0) {
                if (min(p[i], q[i]) < min_mass) return false;
            } else if (sample.forward() ? p[i] > most_missing : sample.rate == 1.0 && q[i] > most_missing) {
                return false;
            }
        }
        return p.size() <= max_atoms;
    }

    DiscreteCumulant(DiscreteLaw law, const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : PointCumulant(kernels, std::move(workspace)), law_(std::move(law)) {
        for (std::size_t i = 0; i < law_.points.size(); ++i) {
            highest_ = max(highest_, law_.points.loss[i] + u * law_.points.loss_error[i]);
            lowest_ = min(lowest_, law_.points.loss[i] - u * law_.points.loss_error[i]);
        }
        law_.points.complete();
    }

    double log_decay(double c, double omega) const override { return decay(c).log_bound(omega); }
    double decay_end(double c) const override { return decay(c).end(); }
    double log_missing() const override { return law_.log_missing; }
    double highest() const override { return highest_; }
    double lowest() const override { return lowest_; }

  protected:
    Law law(double, double) const override { return {&law_.points, -infinity, law_.gap}; }

  private:
    static constexpr double min_mass = 1e-290, most_missing = 1e-90;
    static constexpr double most_cells = 2048.0, least_cells = 256.0, most_work = 3e5;  // of the decay's grid

    const PointDecay& decay(double c) const {
        if (decay_ && decay_tilt_ == c) return *decay_;
        const Tilted t = tilt(law_.points, c);
        const double cells = min(most_cells, max(most_work / static_cast<double>(t.loss.size()), least_cells));
        const DecayGrid grid = DecayGrid::of(deviation(t), static_cast<std::size_t>(cells));
        decay_.emplace(grid.cells > 0 ? transform(t, -infinity, grid.spacing, grid.cells) : FourierSums{}, grid);
        decay_tilt_ = c;
        return *decay_;
    }

    DiscreteLaw law_;
    double highest_ = 0.0, lowest_ = 0.0;
    mutable std::optional<PointDecay> decay_;  // at the last tilt
    mutable double decay_tilt_ = nan;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
