// The cumulant of a Poisson sample of a composition with a Gaussian part.
//
// Let f be the density under Q of the composition's loss l = log dP0/dQ0. The sample's loss is
// +-log(1 + z), z = q (e^l - 1), and its M(s) is the integral of f (1 + z)^p, p = s + 1 where a
// record is removed and p = -s where one is added. Points l_j at equal distances h with the masses
// h f(l_j) serve as a law on points (cumulant/loss_points.hpp): f is a mixture of Gaussians of
// variance r^2 and so grows off the real line by at most e^{y^2/2 r^2}. docs/core/composed.md has
// the bound.
//
// The range of l leaves out less than the cutoff allows, of P and of Q. Where a tilt or a frequency
// needs a fine grid, points are those where the integrand at Im s = 0 matters.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <optional>

#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/release/composed_decay.hpp>
#include <hockeystick/release/composed_transform.hpp>

namespace hockeystick::release {
inline namespace HOCKEYSTICK_ISA {

class ComposedCumulant final : public PointCumulant {
  public:
    // `forward`: the transform is that of l under P, else of -l under Q.
    // The losses of the other parts than the Gaussian lie in an interval of length `rest_range`.
    // What lies beyond the cutoff is at most e^{-cutoff^2/2} of P and of Q; a cutoff beyond 60, far
    // below the doubles, is 60.
    ComposedCumulant(ComposedTransform transform, SampledFrom sample, double rest_range, double cutoff,
                     const CumulantTools& tools)
        : PointCumulant(*tools.kernels, tools.workspace), density_(std::move(transform)), sample_(sample),
          rest_range_(rest_range), log_left_out_(-0.5 * min(cutoff, deepest) * min(cutoff, deepest) - 0.7) {
        const double wanted = widest_step * density_.shift();
        step_ = std::exp2(std::floor(std::log2(wanted)));
        for (const double finer : {1.75, 1.5, 1.25})  // few digits: all points are exact
            if (finer * step_ <= wanted) {
                step_ *= finer;
                break;
            }
        const double low = sample.forward ? -reach(false) : -reach(true),
                     high = sample.forward ? reach(true) : reach(false);
        first_ = std::floor(low / step_), cells_ = static_cast<std::size_t>(min(std::ceil(high / step_) - first_, 1e6));
        for (std::size_t j = 0; j < cells_ + 2; ++j)
            base_.push_back(log_density((first_ + static_cast<double>(j) - 0.5) * step_));
        base_has_digits_ = std::all_of(base_.begin(), base_.end(), has_digits);
    }

    double log_decay(double c, double omega) const override {
        const Decay& d = decay(c);
        const double by_path = min(d.path.log_bound(omega) + d.slack, 0.0);
        if (!(omega < d.grid.end())) return by_path;
        return min(by_path, max(d.grid.log_bound(omega), min(d.path_at_end + d.slack, 0.0)));
    }
    double log_missing() const override { return log_left_out_ + 0.7; }

  protected:
    Law law(double c, double omega) const override {
        const double power = sample_.forward ? c + 1.0 : -c;
        if (!base_has_digits_) return {nullptr, infinity, 1.0};
        Grid all{0, cells_, 0};
        double log_error = choose_level(all, power, omega);
        if (cells_ << all.level <= few_points) return {points(all), log_error, gap(all)};
        Grid part = relevant_cells(power);
        log_error = choose_level(part, power, omega);
        if ((part.end - part.begin) << part.level > most_points) return {nullptr, infinity, 1.0};
        return {points(part), log_error, 1.0};
    }

  private:
    static constexpr double widest_step = 0.7;  // over the Gaussian part's shift
    static constexpr double deepest = 60.0;
    static constexpr double depth = 46.0;  // e^-46 of an integral is its quadrature's error
    static constexpr std::size_t few_points = 1024, most_points = 30000, most_kept = 6, rounding_of_cells = 4;
    static constexpr int most_levels = 12;
    static constexpr std::size_t decay_cells = 48;

    // Cells from `begin` to `end`, each with 2^level points.
    struct Grid {
        std::size_t begin, end;
        int level;
        bool operator==(const Grid& o) const { return begin == o.begin && end == o.end && level == o.level; }
    };

    // A loss above which P, or one below whose negative Q, has less than e^{log_left_out} by
    // Chernoff's bound. The other law has less there.
    double reach(bool above) const {
        double best = infinity;
        for (double c = 1.0 / density_.deviation(); c < 200.0 / density_.deviation(); c *= 1.05) {
            const Cumulant::Moment m = density_.moment(above ? c : -1.0 - c);
            best = min(best, (m.value + m.error - log_left_out_) / c);
        }
        return best;
    }

    // Far out, where the cutoff lets the range end, a density may be lost in its errors. Then
    // nothing is known.
    static bool has_digits(const LogValue& found) { return found.error < 1e-3; }

    // log f(l), f the density under Q.
    LogValue log_density(double l) const {
        LogValue found = density_.at(sample_.forward ? l : -l, ComposedTransform::Kernel::density);
        if (sample_.forward) found.log_value -= l, found.error += unit_roundoff * std::fabs(found.log_value);
        return found;
    }
    double middle(std::size_t cell) const { return (first_ + static_cast<double>(cell) + 0.5) * step_; }
    double boundary(std::size_t cell) const { return (first_ + static_cast<double>(cell)) * step_; }

    // log of f (1 + z)^power at a cell's middle, rounded up; cell -1 and cell `cells_` are known.
    double log_integrand(std::size_t cell_above, double power) const {
        const double l = (first_ + static_cast<double>(cell_above) - 0.5) * step_;
        const double product = power * mixed_loss(l, sample_.rate);
        return base_[cell_above].log_value + product + base_[cell_above].error + 1e-12 * (1.0 + std::fabs(product));
    }
    // An upper bound in the whole cell: log f is at most 1/r^2 less curved than a chord, and
    // log(1 + z) by w (1 - w).
    double log_most_in(std::size_t cell, double power) const {
        const double bend = 1.0 / (density_.shift() * density_.shift()) + 0.25 * max(-power, 0.0);
        return max(max(log_integrand(cell, power), log_integrand(cell + 2, power)), log_integrand(cell + 1, power)) +
               0.125 * step_ * step_ * bend;
    }

    // w = q e^l/(1 + z), at most.
    double weight(double l) const {
        if (sample_.rate == 1.0) return 1.0;
        return 1.0 / (1.0 + (1.0 - sample_.rate) / sample_.rate * std::exp(-min(l, 700.0)));
    }

    // The cells outside of which the integrand is negligible.
    Grid relevant_cells(double power) const {
        double top = -infinity;
        for (std::size_t j = 0; j < cells_; ++j) top = max(top, log_integrand(j + 1, power));
        std::size_t begin = 0, end = cells_;
        while (begin + 1 < end && log_integrand(begin + 1, power) < top - depth) ++begin;
        while (end - 1 > begin && log_integrand(end, power) < top - depth) --end;
        begin -= begin % rounding_of_cells;
        return {begin,
                std::min(cells_, end + rounding_of_cells - 1 - (end + rounding_of_cells - 1) % rounding_of_cells), 0};
    }

    // Sets the level that frequencies up to omega need; returns the logarithm of the error.
    double choose_level(Grid& grid, double power, double omega) const {
        const double w = weight(boundary(grid.end)), negative = max(-power, 0.0);
        const double spread = w < 0.5 ? w * (1.0 - w) : 0.25, turn = w <= 0.5 ? w : 1.0;
        double widest = 0.0, angle_of_widest = 1.0;
        for (double angle = 3.0; angle > 1e-9; angle *= 0.8) {
            if (spread * angle * angle > 0.9 && negative > 0.0) continue;
            const double ratio = angle / density_.shift();
            const double growth = 0.5 * ratio * ratio - 0.5 * negative * std::log1p(-min(spread * angle * angle, 0.9)) +
                                  omega * turn * angle;
            const double step = 2.0 * pi * angle / (depth + 1.0 + growth * (1.0 + 1e-9));
            if (step > widest) widest = step, angle_of_widest = angle;
            else if (widest > 0.0) break;
        }
        grid.level = static_cast<int>(std::ceil(max(std::log2(step_ / widest) + 1e-9, 0.0)));
        if (grid.level > most_levels) return infinity;
        double inside = -infinity, outside = -infinity;
        for (std::size_t j = 0; j < cells_; ++j) {
            double& sum = j >= grid.begin && j < grid.end ? inside : outside;
            sum = log_sum(sum, log_most_in(j, power) + std::log(step_));
        }
        const double ends = log_sum(log_most_in(grid.begin, power), log_most_in(grid.end - 1, power));
        return log_sum(log_sum(inside - depth, outside), ends + std::log(2.0 * angle_of_widest / (depth + 1.0))) + 1e-9;
    }

    // By how much the sums of the masses of P and of Q may differ from 1.
    double gap(const Grid& grid) const {
        if (static_cast<std::size_t>(grid.level) < gaps_.size() && gaps_[grid.level] > 0.0) return gaps_[grid.level];
        Grid same = grid;
        const double log_of_one = choose_level(same, 1.0, 0.0), log_of_none = choose_level(same, 0.0, 0.0);
        gaps_.resize(most_levels + 1);
        return gaps_[grid.level] = std::exp(log_of_one) + std::exp(log_of_none) + 4.0 * std::exp(log_missing());
    }

    // Null if a density has no digits.
    const LossPoints* points(const Grid& grid) const {
        const auto is_asked = [&grid](const auto& known) { return known.first == grid; };
        const auto known = std::find_if(known_.begin(), known_.end(), is_asked);
        if (known != known_.end()) {
            known_.splice(known_.begin(), known_, known);
        } else {
            if (known_.size() == most_kept) known_.pop_back();
            known_.emplace_front(grid, make_law(grid));
        }
        return known_.front().second ? &known_.front().second->points : nullptr;
    }
    std::unique_ptr<DiscreteLaw> make_law(const Grid& grid) const {
        auto law = std::make_unique<DiscreteLaw>();
        const std::size_t each = std::size_t{1} << grid.level;
        const double h = step_ / static_cast<double>(each), log_h = std::log(h);
        for (std::size_t j = grid.begin; j < grid.end; ++j)
            for (std::size_t k = 0; k < each; ++k) {
                const double l = boundary(j) + h * (static_cast<double>(k) + 0.5);
                const LogValue f = each == 1 ? base_[j + 1] : log_density(l);
                if (!has_digits(f)) return nullptr;
                const double log_q = f.log_value + log_h;
                const double error = f.error + 4.0 * unit_roundoff * (std::fabs(log_h) + std::fabs(log_q));
                law->add(sampled_point(l, log_q, sample_, {0.0, error}));
            }
        law->points.complete();
        return law;
    }

    // A path for all frequencies, and a grid for the small ones.
    struct Decay {
        double c;
        ComposedDecay path;
        PointDecay grid;
        double path_at_end, slack;  // the path's bound is one in units of the largest M(c)
    };

    const Decay& decay(double c) const {
        if (decay_ && decay_->c == c) return *decay_;
        const Moment whole = log_moment(c);
        const Law here = law(c, 0.0);
        decay_ = Decay{c, path_at(c, whole.value + whole.error), {{}, {1.0, 0}}, 0.0, 4.0 * whole.error};
        if (!here.points) return *decay_;
        const DecayGrid grid = DecayGrid::of(deviation(tilt(*here.points, c)), decay_cells);
        const Law far = grid.cells > 0 ? law(c, grid.last()) : Law{nullptr, infinity, 1.0};
        if (!far.points) return *decay_;
        decay_->grid = {transform(tilt(*far.points, c), far.log_error, grid.spacing, grid.cells), grid};
        decay_->path_at_end = decay_->path.log_bound(decay_->grid.end());
        return *decay_;
    }

    ComposedDecay path_at(double c, double log_moment) const {
        const double power = sample_.forward ? c + 1.0 : -c;
        const Grid part = relevant_cells(power);
        // The two half cells by which the grid reaches beyond the part.
        double log_outside =
            log_sum(log_most_in(part.begin, power), log_most_in(part.end - 1, power)) + std::log(step_);
        for (std::size_t j = 0; j < cells_; ++j)
            if (j < part.begin || j >= part.end)
                log_outside = log_sum(log_outside, log_most_in(j, power) + std::log(step_));
        const double r = density_.shift(), spread = 0.5 * rest_range_ / (r * r);
        IntegrandOnGrid grid{{}, {}, {}, step_, power, r, spread * spread - 1.0 / (r * r)};
        if (!(log_moment < infinity)) return {std::move(grid), 0.0, 0.0};
        // From one middle before the part to one after it: base_ has them.
        for (std::size_t j = part.begin; j < part.end + 2; ++j) {
            const double high = log_integrand(j, power);
            const double product = std::fabs(high - base_[j].log_value);
            grid.weight.push_back(weight((first_ + static_cast<double>(j) - 0.5) * step_));
            grid.log_high.push_back(high);
            grid.log_low.push_back(high - 2.0 * base_[j].error - 4e-12 * (1.0 + product));
        }
        return {std::move(grid), log_moment, log_outside};
    }

    ComposedTransform density_;
    SampledFrom sample_;
    double rest_range_, log_left_out_, step_, first_ = 0.0;
    std::size_t cells_ = 0;
    std::vector<LogValue> base_;  // log f at the cells' middles, from one before the first to one after the last
    bool base_has_digits_ = false;
    mutable std::list<std::pair<Grid, std::unique_ptr<DiscreteLaw>>> known_;  // latest first
    mutable std::vector<double> gaps_;                                        // by level
    mutable std::optional<Decay> decay_;                                      // at the last tilt
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::release
