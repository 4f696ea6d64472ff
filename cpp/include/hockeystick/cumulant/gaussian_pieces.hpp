// The cumulants of pairs whose densities are mixtures of Gaussians: Gaussian noise on samples of
// every kind. Each is a sum over pieces (GaussianPiece), and atoms.
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
// The decay of a piece comes first here, then the piece, then laws of pieces and their cumulants.
// docs/core/cumulant.md has the proofs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/loss_points.hpp>
#include <hockeystick/cumulant/shift_mixture.hpp>
#include <hockeystick/divergence/direction.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>
#include <hockeystick/numeric/gaussian_tail.hpp>
#include <hockeystick/numeric/log_arithmetic.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;
using divergence::Direction;

// How fast the characteristic function of a piece of Gaussian mixtures decays. GaussianPiece has
// the notation.
//
// The integral of f e^{i omega l} over a range is moved to the path x + i eta(x), which goes
// straight up at the range's ends and runs straight over every cell between. There |f| grows at
// most by
//
//   e^{eta^2/2 + 1.01 eta^2 (p^- V_U + (1-p)^- V_D)},
//
// and e^{i omega l} falls by e^{-omega psi}, psi >= l' eta - K eta^3/(6 - 3 V eta^2), which is not
// negative. So the bound holds for every frequency from omega on. Any heights will do; these are
// near the best ones where omega is small.

// Bounds within a cell of x.
struct SurveyCell {
    double upper_variance, lower_variance, cube;  // V_U, V_D and K_U + K_D, at most
    double low_slope, high_slope;                 // of l = log U - log D
};

// What a path may rely on at an end of a cell, on both sides: V and K at most, l' at least.
struct PathEnd {
    double variance, cube, slope;
};

// Bounds of the mass of each cell at one exponent p, in units of e^unit, f at the range's ends,
// and the sum of the bounds from above.
struct PathMasses {
    double p = nan, unit = nan;
    std::vector<double> low, high;
    double first = 0.0, last = 0.0, total = 0.0;
};

// The cells of a range, and the ends between them. No path is higher than `max_height`.
struct PathSurvey {
    const SurveyCell* cells;
    const PathEnd* ends;
    double width, max_height;
};

// What is certainly lost of M, and what is kept at most.
struct Decay {
    double lost = 0.0, kept = 0.0;
};

// Half (V eta^2) stays below 0.37, and K eta^3/(6 - 3 V eta^2) below 0.53 l' eta.
inline double path_height(const PathEnd& end, double max_height, double p, double omega) {
    constexpr double tiny = 1e-300;
    const double by_variance = 0.85 / std::sqrt(end.variance + tiny);
    const double cap = min(min(by_variance, std::sqrt(2.0 * end.slope / (end.cube + tiny))), max_height);
    const double turn = min(end.variance / (end.slope + tiny), 1e100);
    const double share = 1.0 + turn * turn + 2.0 * (max(-p, 0.0) + max(p - 1.0, 0.0)) * end.variance;
    const double wish = omega * end.slope / share;
    return wish / (1.0 + wish / cap);
}

// log of what |f| grows by at the height y, at most.
inline double path_growth(const SurveyCell& cell, double p, double y) {
    return y * y * (0.5 + 1.01 * (max(-p, 0.0) * cell.upper_variance + max(p - 1.0, 0.0) * cell.lower_variance));
}

// psi at the height y, at least. It is concave in y.
inline double path_fall(const SurveyCell& cell, double y) {
    const double variance = max(cell.upper_variance, cell.lower_variance);
    return cell.low_slope * y - cell.cube * y * y * y / (6.0 - 3.0 * variance * y * y);
}

// The integral up to the height y at an end of the range, at most: psi >= y' psi(y)/y at y' <= y.
inline double path_edge(const SurveyCell& cell, double p, double omega, double y, double f) {
    const double rate = y > 0.0 ? omega * path_fall(cell, y) / y : 0.0;
    return f * std::exp(min(path_growth(cell, p, y), 600.0)) * (rate * y > 1.0 ? 1.0 / rate : y);
}

// `ramp` > 0 lets the path rise from height 0 at the low end, within about 1/ramp.
inline Decay bound_on_gaussian_path(const PathSurvey& survey, double p, double omega, const PathMasses& masses,
                                    double ramp) {
    const auto height_at = [&](std::size_t j) {
        const double whole = path_height(survey.ends[j], survey.max_height, p, omega);
        return ramp > 0.0 ? whole * -std::expm1(-ramp * survey.width * static_cast<double>(j)) : whole;
    };
    Decay decay;
    const std::size_t n = masses.low.size();
    double left = height_at(0), edge = path_edge(survey.cells[0], p, omega, left, masses.first);
    for (std::size_t j = 0; j < n; ++j) {
        const SurveyCell& cell = survey.cells[j];
        const double right = height_at(j + 1), higher = max(left, right), slope = (right - left) / survey.width;
        const double fall = min(path_fall(cell, left), path_fall(cell, right));
        if (!(fall >= 0.0)) return {-infinity, infinity};  // no bound for larger frequencies
        const double power = path_growth(cell, p, higher) + 0.5 * std::log1p(slope * slope) - omega * fall;
        const double excess = std::expm1(min(power, 600.0));
        decay.lost -= excess * (excess < 0.0 ? masses.low[j] : masses.high[j]);
        decay.kept += (1.0 + excess) * masses.high[j];
        left = right;
    }
    edge += path_edge(survey.cells[n - 1], p, omega, left, masses.last);
    return {decay.lost - edge, decay.kept + edge};
}

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
// The path above bounds the decay, on the same survey.
struct PieceRange {
    double low, high;  // of x, at most
    double weight;     // of the piece in the law under Q
    bool forward, reverse;
    double log_ratio = 0.0;      // log of its weight under P over that, which its losses have besides
    bool starts_inside = false;  // the densities do not vanish at the low end
    bool ends_here = false;      // high is the end, or nearly
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

    // The logarithm of a rough M.
    double log_value(double c) const {
        double largest = -infinity;
        for (const double p : strands(c))
            for (std::size_t j = 0; j < surveyed_.size(); ++j)
                if (is_inside(j))
                    largest = max(largest, max(log_base_[j] + p * losses_[j], log_base_[j + 1] + p * losses_[j + 1]));
        return largest;
    }
    // That of what the sum over the points of a level errs by.
    double log_error(double c, double omega, int level) const {
        double all = -infinity;
        for (const double p : strands(c))
            all = log_sum(all, log_error_of_strand(p, omega, std::ldexp(half_width_, -level)));
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
        const double most = range_.ends_here ? max((range_.high - range_.low) / 48.0, width_) : 4.0;
        const double wanted = min(most, 0.99 * 2.0 * std::sqrt(max_turn) / (reach_of[1] * max(gap, 1e-3)));
        half_width_ = std::exp2(std::floor(std::log2(wanted)));
        if (1.5 * half_width_ <= wanted) half_width_ *= 1.5;
        ramp_ = max(1.0, gap);
        max_height_ = 1.5 / max(gap, 1e-3);
        panels_ = std::ceil((range_.high - range_.low) / (2.0 * half_width_));
        inside_ = 2.0 * half_width_ * panels_ / width_;
        if (range_.ends_here) {  // both ends stay: panels and cells shrink alike
            const double shrunk = (range_.high - range_.low) / (2.0 * half_width_ * panels_);
            half_width_ *= shrunk, width_ *= shrunk;
        }
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

    double log_error_of_strand(double p, double omega, double half_width) const {
        const double below = max(-p, 0.0), beyond = max(p - 1.0, 0.0), eighth = 0.125 * width_ * width_;
        double best = infinity;
        for (const int option : {0, 1}) {
            const double y = reach_of[option] * half_width, square = y * y;
            if (!(square * max_variance_ <= max_turn)) continue;
            const double beside = std::ceil((stretch_of[option] - 1.0) * half_width / width_);
            const auto first = static_cast<std::size_t>(margin_ - beside);
            const auto end = static_cast<std::size_t>(margin_ + inside_ + beside);
            double largest = -infinity, left = log_base_[first] + p * losses_[first];
            for (std::size_t j = first; j < end; ++j) {
                const SurveyCell& cell = surveyed_[j];
                const double right = log_base_[j + 1] + p * losses_[j + 1], f = max(left, right);
                const double bend = below * cell.upper_variance + beyond * cell.lower_variance;
                const double turn = y * cell.high_slope + 0.54 * square * (cell.upper_variance + cell.lower_variance);
                const double bound = f + eighth * (1.0 + bend) + 0.5 * square + 1.01 * square * bend + omega * turn;
                largest = max(largest, bound);
                left = right;
            }
            const double length = std::log(half_width_ * panels_);
            best = min(best, log_rate_of[option] + length + largest + 1e-9 * (1.0 + std::fabs(largest)));
        }
        return best;
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

// What a law of Gaussian mixtures is made of.
struct GaussianLaw {
    struct Atom {
        double loss, mass;  // mass under P
    };

    std::vector<GaussianPiece> pieces;
    std::vector<Atom> atoms;         // beside the pieces
    double gap = 0.0;                // by how much the masses of P may miss 1, by rounding
    double log_missing = -infinity;  // what the ranges leave out, of P and of Q, at most
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
    // Each piece is taken at the least level that serves.
    Law law(double c, double omega) const override {
        double value = -infinity, work = 0.0, log_error = -infinity;
        for (const GaussianPiece& piece : law_.pieces) {
            if (!piece.small()) return {nullptr, infinity, 1.0};
            value = max(value, piece.log_value(c));
        }
        const double least = value - depth - std::log(static_cast<double>(law_.pieces.size()));
        std::vector<int> levels;
        for (const GaussianPiece& piece : law_.pieces) {
            int level = 0;
            double error = piece.log_error(c, omega, 0);
            while (!(error < least) && level < GaussianPiece::max_level) error = piece.log_error(c, omega, ++level);
            work += piece.size(level) * piece.components();
            if (!(error < least && work < GaussianPiece::max_work)) return {nullptr, infinity, 1.0};
            log_error = log_sum(log_error, error);
            levels.push_back(level);
        }
        const Points& known = points(levels);
        return {&known.all, log_error, known.gap};
    }

  private:
    static constexpr double depth = 43.0;  // of a quadrature's error below the largest density

    // The points of all pieces, each at its level.
    struct Points {
        std::vector<int> levels;
        LossPoints all;
        double gap = 1.0;
    };

    const Points& points(const std::vector<int>& levels) const {
        for (const auto& known : points_)
            if (known->levels == levels) return *known;
        points_.push_back(std::make_unique<Points>());
        Points& fresh = *points_.back();
        fresh.levels = levels;
        double of_p = -infinity, of_q = -infinity;  // the masses of P and Q are the moments at c = 0 and c = -1
        for (std::size_t i = 0; i < levels.size(); ++i) {
            const GaussianPiece& piece = law_.pieces[i];
            piece.append_points(levels[i], fresh.all);
            of_p = log_sum(of_p, piece.log_error(0.0, 0.0, levels[i]));
            of_q = log_sum(of_q, piece.log_error(-1.0, 0.0, levels[i]));
        }
        for (const GaussianLaw::Atom& atom : law_.atoms)
            fresh.all.add(atom.loss, 8.0 * std::fabs(atom.loss), std::log(atom.mass),
                          16.0 + 2.0 * std::fabs(std::log(atom.mass)));
        fresh.all.complete();
        fresh.gap = min(law_.gap + std::exp(law_.log_missing) + 1.1 * std::exp(max(of_p, of_q)), 1.0);
        return fresh;
    }

    double whole(double c) const {  // log M(c)
        if (c != tilt_) moment_ = log_moment(c), tilt_ = c;
        return moment_.value;
    }

    GaussianLaw law_;
    mutable std::vector<std::unique_ptr<Points>> points_;
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
    explicit GaussianLawBuilder(double cutoff) : log_cut_(log_q(cutoff)) {
        law_.lowest = infinity, law_.highest = -infinity;
    }

    // A weight under Q, and the logarithm of that under P over it.
    struct Weight {
        double of_q, log_ratio = 0.0;
    };

    // phi U against phi, U of non-negative shifts, or the reverse.
    void add_mixture(const ShiftMixture& upper, const Weight& weight, Direction direction) {
        const bool forward = direction == Direction::remove;
        const double least = upper.weight_at_zero() > 0.0 ? std::log(upper.weight_at_zero()) : -infinity;
        const double lowest = least + weight.log_ratio, larger = weight.of_q * std::exp(max(weight.log_ratio, 0.0));
        note_losses(forward ? lowest : -infinity, forward ? infinity : -lowest);
        if (weight.log_ratio != 0.0) law_.gap += eight_roundings * larger;
        if (is_negligible(larger)) return;
        const double log_mass = log_cut_ - std::log(larger);
        const double low = std::ceil(range_end(ShiftMixture(), log_mass));
        law_.pieces.emplace_back(
            upper, ShiftMixture(),
            PieceRange{-low, range_end(upper, log_mass), weight.of_q, forward, !forward, weight.log_ratio});
        miss(larger, log_q(low));
        miss(larger, log_mass_above(upper, law_.pieces.back().high()));
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
        law_.pieces.emplace_back(upper, lower, PieceRange{-low, low, weight, true, false});
        miss(weight, log_mass_above(upper, low));  // below -low there is less
        miss(weight, log_mass_above(upper, law_.pieces.back().high()));
    }

    void add_fixed_size(double shift, double rate, double weight) {
        note_losses(-infinity, infinity);
        if (is_negligible(weight)) return;
        const ShiftMixture upper({{shift}, {1.0}}, rate);
        const double low = 0.5 * shift, high = max(range_end(upper, log_cut_ - std::log(weight)), low + 1.0);
        law_.pieces.emplace_back(upper, ShiftMixture(), PieceRange{low, high, weight, true, true, 0.0, true});
        const double between = weight * ((1.0 - rate) * std::erf(low * std::sqrt(0.5)));
        if (between > 0.0) law_.atoms.push_back({0.0, between});
        const double end = law_.pieces.back().high();
        miss(weight, log_mass_above(upper, end));
        miss(weight, log_q(end));
    }

    // The law of loss/hidden_copies.hpp, or one that leaks a little more: labelled laws of fixed size
    // up to about eps_1, phi U against (1 - rate) phi from eps_2 on, and at eps_2 an atom that makes up
    // for what neither can end at exactly.
    //
    // With L(gamma) = P - gamma Q of what lies at eps_2 and beyond, and `rest` the same of what the
    // labelled laws have beyond their ends, which are at eps_1 at least: the curve is that of the
    // labelled laws plus L - rest up to gamma_1, and from there at least L, which meets that of phi U at
    // gamma_2. So it is large enough if L(1) >= rest(1) and L(gamma_1) >= labelled(gamma_1).
    void add_hidden_copies(const ShiftWeights& spread, double rate, double eps_1, double eps_2) {
        const GaussianLaw before = law_;
        note_losses(-infinity, infinity);
        Masses rest, labelled, beyond;
        double at_zero = 0.0, ends_at = infinity;
        for (std::size_t k = 0; k < spread.shifts.size(); ++k) {
            const double shift = spread.shifts[k], weight = spread.weights[k], low = 0.5 * shift;
            const ShiftMixture upper({{shift}, {1.0}}, rate);
            const double end = low + std::log1p(std::expm1(eps_1) / rate) / shift;
            law_.pieces.emplace_back(upper, ShiftMixture(), PieceRange{low, end, weight, true, true, 0.0, true, true});
            at_zero += weight * ((1.0 - rate) * std::erf(low * std::sqrt(0.5)));
            rest.add(upper, weight, 1.0, law_.pieces.back().high());
            ends_at = min(ends_at, upper.at(law_.pieces.back().high(), 0.0).log * down);
        }
        for (std::size_t k = 0; k < spread.shifts.size(); ++k) {
            const double shift = spread.shifts[k], end = 0.5 * shift + std::log1p(std::expm1(ends_at) / rate) / shift;
            labelled.add(ShiftMixture({{shift}, {1.0}}, rate), spread.weights[k], 1.0, end);
        }
        const ShiftMixture hidden(spread, rate);
        const double log_kept = std::log1p(-rate), from = outcome_of(hidden, eps_2 + log_kept);
        const double last = hidden.at(from, 0.0).log - log_kept;  // eps_2, rounded
        beyond.add(hidden, 1.0, 1.0 - rate, from);
        const double at_first = (labelled.beyond(ends_at) - beyond.beyond(ends_at)) / -std::expm1(ends_at - last);
        const double at_one = (rest.beyond(0.0) - beyond.beyond(0.0)) / -std::expm1(-last);
        const double atom = max(max(at_first, at_one), 0.0) + 1e-12 * labelled.p;
        at_zero += (rest.p + rest.q) - (beyond.p + beyond.q) - atom * (1.0 + std::exp(-last));
        if (!(at_zero >= 0.0 && last > ends_at)) {  // no such law: the copies are shown
            law_ = before;
            for (std::size_t k = 0; k < spread.shifts.size(); ++k)
                add_fixed_size(spread.shifts[k], rate, spread.weights[k]);
            return;
        }
        for (const double sign : {1.0, -1.0}) add_atom(sign * last, atom * std::exp(min(sign, 0.0) * last));
        constexpr double rounding = 1e-14;  // of all masses: P may have more, not less
        add_atom(0.0, at_zero + rounding);
        law_.gap += rounding;
        add_hidden_tail(hidden, rate, from);
    }

    GaussianLaw law() && { return std::move(law_); }

  private:
    // Masses of P and Q, and how much P has more than e^eps Q.
    struct Masses {
        double p = 0.0, q = 0.0;
        // Those of weight phi U and of weight kept phi, beyond an outcome.
        void add(const ShiftMixture& upper, double weight, double kept, double from) {
            p += weight * std::exp(log_mass_above(upper, from)), q += (weight * kept) * std::exp(log_q(from));
        }
        double beyond(double eps) const { return p - std::exp(eps) * q; }
    };

    // The x where log U is `value`.
    static double outcome_of(const ShiftMixture& mixture, double value) {
        double low = 0.0, high = 1.0;
        while (mixture.at(high, 0.0).log < value) low = high, high *= 2.0;
        for (int i = 0; i < 60; ++i) {
            const double middle = 0.5 * (low + high);
            (mixture.at(middle, 0.0).log < value ? low : high) = middle;
        }
        return high;
    }

    // phi U against (1 - rate) phi, and the same reversed, from an outcome on.
    void add_hidden_tail(const ShiftMixture& upper, double rate, double from) {
        const double kept = 1.0 - rate, log_ratio = -std::log1p(-rate);
        law_.gap += eight_roundings;
        law_.pieces.emplace_back(
            upper, ShiftMixture(),
            PieceRange{from, max(range_end(upper, log_cut_), from + 1.0), kept, true, true, log_ratio, true});
        const double end = law_.pieces.back().high();
        miss(1.0, log_mass_above(upper, end));
        miss(kept, log_q(end));
    }

    void miss(double weight, double log_mass) {
        law_.log_missing = log_sum(law_.log_missing, std::log(weight) + log_mass + 1e-9);
    }
    bool is_negligible(double weight) {  // a label rarer than the cutoff
        if (std::log(weight) > log_cut_) return false;
        miss(weight, 0.0);
        return true;
    }
    void note_losses(double lowest, double highest) {
        law_.lowest = min(law_.lowest, lowest), law_.highest = max(law_.highest, highest);
    }

    double log_cut_;
    GaussianLaw law_;
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
