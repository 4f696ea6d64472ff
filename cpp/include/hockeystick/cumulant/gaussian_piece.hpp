// A piece of a law whose densities are mixtures of Gaussians, and its share of M(s).
//
// With phi the density of N(0, 1), U and D mixtures (cumulant/shift_mixture.hpp) such that
// l = log U - log D rises in x, and a range [low, high] of x, a strand of the piece is
//
//   forward   the law phi U with the losses l,   M(s) = int phi U^p D^{1-p},  p = s + 1;
//   reverse   the law phi D with the losses -l,  the same with p = -s.
//
// Sums: panels of width 2d, with 32 Gauss-Legendre nodes each. Their ellipses of parameter rho
// reach y = d (rho - 1/rho)/2 into the complex plane. There the integrand is at most e^G, where, on
// a survey of x in cells of equal width,
//
//   G = log f + y^2/2 + 1.01 y^2 (p^- V_U + (1-p)^- V_D) + omega (y l' + 0.54 y^2 (V_U + V_D)),
//
// f is the integrand at Im s = 0, and x^- = max(-x, 0). Widths are powers of 2, and 3/2 of them.
//
// cumulant/gaussian_path.hpp bounds the decay, on the same survey. docs/core/cumulant.md has the
// proofs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <hockeystick/cumulant/gaussian_path.hpp>
#include <hockeystick/cumulant/loss_points.hpp>
#include <hockeystick/cumulant/shift_mixture.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

struct PieceRange {
    double low, high;  // of x, at most
    double weight;     // of the piece in the law under Q
    bool forward, reverse;
    double log_ratio = 0.0;      // log of its weight under P over that, which its losses have besides
    bool starts_inside = false;  // the densities do not vanish at the low end
    bool ends_here = false;      // high is nearly the end; the low one, unless inside, may be lower
};

class GaussianPiece {
  public:
    static constexpr int max_level = 12;
    // Points of a level, times components of the mixtures.
    static constexpr double max_work = 6e5;

    GaussianPiece(ShiftMixture upper, ShiftMixture lower, const PieceRange& range)
        : upper_(std::move(upper)), lower_(std::move(lower)), range_(range), log_weight_(std::log(range.weight)) {
        place_cells();
        if (small()) fill_cells();
    }

    bool small() const { return max(panels_ * nodes, cells_) * components() < max_work; }
    double components() const { return static_cast<double>(2 + upper_.shifts().size() + lower_.shifts().size()); }
    const PieceRange& range() const { return range_; }
    // The end of the range: a whole number of panels.
    double high() const { return range_.low + 2.0 * half_width_ * panels_; }

    double size(int level) const { return std::ldexp(panels_ * nodes, level); }  // points

    // Logarithms of what the sum over the points of a level errs by, and of a rough M.
    struct LogError {
        double error, value;
    };
    LogError log_error(double c, double omega, int level) const {
        LogError all{-infinity, -infinity};
        for (const double p : strands(c)) {
            const LogError one = log_error_of_strand(p, omega, std::ldexp(half_width_, -level));
            all = {log_sum(all.error, one.error), log_sum(all.value, one.value)};
        }
        return all;
    }

    void append_points(int level, LossPoints& points) const {
        const QuadratureRule& rule = this->rule();
        const double half = std::ldexp(half_width_, -level);
        const auto count = static_cast<std::size_t>(std::ldexp(panels_, level));
        for (std::size_t i = 0; i < count; ++i) {
            const double centre = (2.0 * static_cast<double>(i) + 1.0) * half;
            for (std::size_t k = 0; k < rule.nodes.size(); ++k)
                append_point(centre + half * static_cast<double>(rule.nodes[k]),
                             std::log(half * static_cast<double>(rule.weights[k])), half, points);
        }
    }

    // What M loses at all frequencies from omega on.
    // In units of e^{log_unit}.
    Decay decay(double c, double omega, double log_unit) const {
        Decay all;
        for (const double p : strands(c)) {
            const PathMasses& masses = masses_of(p, log_unit);
            if (masses.total < negligible) {  // its integral is at most that of its modulus
                all.kept += masses.total;
                continue;
            }
            Decay best = on_path(p, omega, masses, 0.0);
            if (range_.starts_inside) {
                const Decay ramped = on_path(p, omega, masses, ramp_);
                best = {max(best.lost, ramped.lost), min(best.kept, ramped.kept)};
            }
            all.lost += best.lost, all.kept += best.kept;
        }
        return all;
    }

  private:
    static constexpr double negligible = 1e-14;  // of M
    static constexpr double nodes = 32.0, half_log_two_pi = 0.91893853320467274;

    static const QuadratureRule& rule() {
        static const QuadratureRule known = gauss_legendre(static_cast<std::size_t>(nodes));
        return known;
    }

    std::vector<double> strands(double c) const {  // their exponents p
        std::vector<double> p;
        if (range_.forward) p.push_back(c + 1.0);
        if (range_.reverse) p.push_back(-c);
        return p;
    }

    // The widest gap between neighbouring shifts says how fast mixture weights may turn. Shifts
    // that matter nowhere do not count: should they, the survey asks for smaller panels.
    double widest_gap(const ShiftMixture& mixture) const {
        std::vector<bool> marked(mixture.shifts().size(), mixture.shifts().size() <= 1);
        const double step = max(0.5, (range_.high - range_.low) / 64.0);
        for (double x = range_.low; x < range_.high + step; x += step) mixture.mark_likely(x, 1e-6, marked);
        std::vector<double> at;
        for (std::size_t k = 0; k < marked.size(); ++k)
            if (marked[k]) at.push_back(mixture.shifts()[k]);
        if (mixture.weight_at_zero() > 0.0) at.push_back(0.0);
        std::sort(at.begin(), at.end());
        double widest = 0.0;
        for (std::size_t k = 1; k < at.size(); ++k) widest = max(widest, at[k] - at[k - 1]);
        return widest;
    }

    // Cells and panels: as wide as variances up to gap^2/4 allow.
    void place_cells() {
        const double gap = max(widest_gap(upper_), widest_gap(lower_));
        width_ = std::exp2(std::floor(std::log2(0.2 / max(1.0, gap))));
        const double most =
            range_.ends_here && range_.starts_inside ? max((range_.high - range_.low) / 48.0, width_) : 4.0;
        const double wanted = min(most, 0.99 * 2.0 * std::sqrt(max_turn) / (reach_of[1] * max(gap, 1e-3)));
        half_width_ = std::exp2(std::floor(std::log2(wanted)));
        if (1.5 * half_width_ <= wanted) half_width_ *= 1.5;
        ramp_ = max(1.0, gap);
        max_height_ = 1.5 / max(gap, 1e-3);
        panels_ = std::ceil((range_.high - range_.low) / (2.0 * half_width_));
        if (range_.ends_here && !range_.starts_inside)
            range_.low = std::floor((range_.high - 2.0 * half_width_ * panels_) * 0x1p20) * 0x1p-20;
        inside_ = 2.0 * half_width_ * panels_ / width_;
        margin_ = std::ceil((stretch_of[0] - 1.0) * half_width_ / width_) + 1.0;
        cells_ = inside_ + 2.0 * margin_;
    }

    void fill_cells() {
        const auto n = static_cast<std::size_t>(cells_);
        std::vector<ShiftMixture::Value> u(n + 1), d(n + 1);
        for (std::size_t j = 0; j <= n; ++j) {
            const double x = range_.low + (static_cast<double>(j) - margin_) * width_;
            u[j] = upper_.at(x, 0.5 * width_), d[j] = lower_.at(x, 0.5 * width_);
            log_base_.push_back(-0.5 * x * x - half_log_two_pi + d[j].log + log_weight_);
            losses_.push_back(u[j].log - d[j].log + range_.log_ratio);
        }
        constexpr double less = 1.0 - 1e-9, more = 1.0 + 1e-9;
        for (std::size_t j = 0; j < n; ++j)
            surveyed_.push_back({max(u[j].variance, u[j + 1].variance), max(d[j].variance, d[j + 1].variance),
                                 max(u[j].cube, u[j + 1].cube) + max(d[j].cube, d[j + 1].cube),
                                 u[j].mean * less - d[j + 1].mean * less,
                                 u[j + 1].mean * more - d[j].mean * more + 1e-30});
        for (std::size_t j = 0; j <= n; ++j) {
            const SurveyCell &left = surveyed_[j == 0 ? 0 : j - 1], &right = surveyed_[j == n ? n - 1 : j];
            const double variance =
                max(max(left.upper_variance, left.lower_variance), max(right.upper_variance, right.lower_variance));
            max_variance_ = max(max_variance_, variance);
            ends_.push_back({variance, max(left.cube, right.cube), min(left.low_slope, right.low_slope)});
        }
    }

    bool is_inside(std::size_t cell) const {
        const auto number = static_cast<double>(cell);
        return number >= margin_ && number < margin_ + inside_;
    }

    // rho = 3 and rho = 9/4: how far an ellipse reaches up, and to either side, in half widths; and
    // the logarithm of (64/15) rho^-64/(1 - rho^-2).
    static constexpr double reach_of[] = {4.0 / 3.0, 65.0 / 72.0}, stretch_of[] = {5.0 / 3.0, 97.0 / 72.0};
    static constexpr double log_rate_of[] = {-68.74, -50.22};
    static constexpr double max_turn = 0.8;  // of V y^2

    LogError log_error_of_strand(double p, double omega, double half_width) const {
        const double below = max(-p, 0.0), beyond = max(p - 1.0, 0.0), eighth = 0.125 * width_ * width_;
        double best = infinity, top = -infinity;
        for (const int option : {0, 1}) {
            const double y = reach_of[option] * half_width, square = y * y;
            if (!(square * max_variance_ <= max_turn)) continue;
            const double beside = std::ceil((stretch_of[option] - 1.0) * half_width / width_);
            const auto first = static_cast<std::size_t>(margin_ - beside);
            const auto end = static_cast<std::size_t>(margin_ + inside_ + beside);
            double largest = -infinity, left = log_base_[first] + p * losses_[first];
            top = -infinity;
            for (std::size_t j = first; j < end; ++j) {
                const SurveyCell& cell = surveyed_[j];
                const double right = log_base_[j + 1] + p * losses_[j + 1], f = max(left, right);
                const double bend = below * cell.upper_variance + beyond * cell.lower_variance;
                const double turn = y * cell.high_slope + 0.54 * square * (cell.upper_variance + cell.lower_variance);
                const double bound = f + eighth * (1.0 + bend) + 0.5 * square + 1.01 * square * bend + omega * turn;
                largest = max(largest, bound);
                if (is_inside(j)) top = max(top, f);
                left = right;
            }
            const double length = std::log(half_width_ * panels_);
            best = min(best, log_rate_of[option] + length + largest + 1e-9 * (1.0 + std::fabs(largest)));
        }
        return {best, top};
    }

    void append_point(double offset, double log_node, double half, LossPoints& points) const {
        const double x = range_.low + offset;
        const ShiftMixture::Value a = upper_.at(x, 0.0), b = lower_.at(x, 0.0);
        const double square = 0.5 * x * x, log_normal = log_node - half_log_two_pi - square + log_weight_;
        // The node is off by u |x| + u |offset| and two roundings of the panel's half width.
        const double off = 2.0 * std::fabs(x) + 2.0 * half + std::fabs(range_.low);
        const double own_loss = a.log - b.log, loss = own_loss + range_.log_ratio;
        const double ratio_error = range_.log_ratio == 0.0 ? 0.0 : 8.0 + std::fabs(own_loss) + std::fabs(loss);
        const double loss_error =
            a.log_error + b.log_error + std::fabs(own_loss) + ratio_error + (a.mean - b.mean) * off;
        const auto add = [&](double sign, const ShiftMixture::Value& own) {
            const double log_mass = log_normal + own.log + (sign > 0.0 ? range_.log_ratio : 0.0);
            const double error = 8.0 + 4.0 * std::fabs(log_node) + 3.0 * square + std::fabs(log_normal) +
                                 std::fabs(log_weight_) + 2.0 * std::fabs(log_mass) + own.log_error + ratio_error +
                                 (std::fabs(x) + std::fabs(own.mean)) * off;
            points.add(sign * loss, loss_error, log_mass, error);
        };
        if (range_.forward) add(1.0, a);
        if (range_.reverse) add(-1.0, b);
    }

    const PathMasses& masses_of(double p, double log_unit) const {
        PathMasses& m = masses_[p > 0.5 ? 0 : 1];
        if (m.p == p && m.unit == log_unit) return m;
        const auto first = static_cast<std::size_t>(margin_), n = static_cast<std::size_t>(inside_);
        const double eighth = 0.125 * width_ * width_, above = max(p, 0.0), within = max(1.0 - p, 0.0);
        m.p = p, m.unit = log_unit;
        m.low.resize(n), m.high.resize(n);
        const auto f = [&](std::size_t j) { return std::exp(min(log_base_[j] + p * losses_[j] - log_unit, 600.0)); };
        double left = f(first);
        m.first = left;
        for (std::size_t j = 0; j < n; ++j) {
            const SurveyCell& cell = surveyed_[first + j];
            const double right = f(first + j + 1);
            const double convex = above * cell.upper_variance + within * cell.lower_variance - 1.0;
            const double concave = 1.0 + max(-p, 0.0) * cell.upper_variance + max(p - 1.0, 0.0) * cell.lower_variance;
            m.low[j] = width_ * std::sqrt(left * right) * std::exp(-eighth * max(convex, 0.0));
            m.high[j] = 0.5 * width_ * (left + right) * std::exp(min(eighth * concave, 600.0));
            left = right;
        }
        m.last = left;
        m.total = 0.0;
        for (const double mass : m.high) m.total += mass * (1.0 + 1e-9);
        return m;
    }

    Decay on_path(double p, double omega, const PathMasses& masses, double ramp) const {
        const auto first = static_cast<std::size_t>(margin_);
        return bound_on_gaussian_path({surveyed_.data() + first, ends_.data() + first, width_, max_height_}, p, omega,
                                      masses, ramp);
    }

    ShiftMixture upper_, lower_;
    PieceRange range_;
    double log_weight_, half_width_ = 0.0, width_ = 0.0, ramp_ = 0.0, max_height_ = 0.0;
    double panels_ = 0.0, inside_ = 0.0, margin_ = 0.0, cells_ = 0.0, max_variance_ = 0.0;
    std::vector<double> log_base_, losses_;  // log(phi D) and l at the ends of cells
    std::vector<SurveyCell> surveyed_;
    std::vector<PathEnd> ends_;
    mutable std::array<PathMasses, 2> masses_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
