// The cumulant of Laplace noise of scale 1 on a sample of rate q, with means at distance r.
//
// Let t be the loss of the noise alone: under Q it has the density (1/4) e^{-(r+t)/2} on (-r, r),
// mass 1/2 at -r and e^{-r}/2 at r. The sampled losses are l(t) = log(1 - q + q e^t). Every sampled
// pair is made of atoms and of arcs (docs/core/cumulant.md, "Sampled Laplace noise"):
//
//   rising   loss l(t) - a, density (1/4) e^{-(r+t)/2} e^{l(t)} under P
//   falling  loss a - l(t), density (1/4) e^{-(r+t)/2} e^b under P
//
// M(s) is a sum over the atoms and Gauss-Legendre panels of the arcs, whose error has the bound of
// numeric/gauss_legendre.hpp. Beyond the atoms' share, |phi| falls like 1/omega.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hockeystick/cumulant/discrete.hpp>
#include <hockeystick/numeric/gauss_legendre.hpp>

namespace hockeystick::cumulant {
inline namespace HOCKEYSTICK_ISA {

// t from low to high.
struct LaplaceArc {
    bool rising;
    double low, high, moved = 0.0, log_scale = 0.0;  // a, and b
};

struct LaplaceArcs {
    double shift, rate;
    std::vector<LaplaceArc> arcs;
    std::vector<Point> atoms;
};

// The point at t of this mass under Q, as it belongs to a rising or a falling arc.
inline Point arc_point(const LaplaceArc& arc, double rate, double t, double log_q, OutcomeErrors errors) {
    Point point = sampled_point(t, log_q, {rate, arc.rising ? Direction::remove : Direction::add}, errors);
    point.loss += arc.rising ? -arc.moved : arc.moved;
    point.log_mass += arc.log_scale;
    point.loss_error += 16.0 * unit_roundoff * std::fabs(arc.moved);
    point.mass_error += 16.0 * unit_roundoff * std::fabs(arc.log_scale);
    return point;
}

inline void add_atom(LaplaceArcs& law, const LaplaceArc& arc, double t, double log_q) {
    constexpr double u = unit_roundoff;
    law.atoms.push_back(
        arc_point(arc, law.rate, t, log_q, {2.0 * u * std::fabs(t), 4.0 * u * (1.0 + std::fabs(log_q))}));
}

inline constexpr double log_half = -0.69314718055994531;

// A Poisson sample, against none; or none against it.
inline LaplaceArcs poisson_arcs(double shift, double rate, Direction direction) {
    LaplaceArcs law{shift, rate, {{direction == Direction::remove, -shift, shift}}, {}};
    add_atom(law, law.arcs[0], -shift, log_half);
    add_atom(law, law.arcs[0], shift, log_half - shift);
    return law;
}

// A Poisson sample with a record that moves the noise by r, against one with a record that moves it
// by -r.
inline LaplaceArcs replaced_arcs(double shift, double rate) {
    const double least = mixed_loss(-shift, rate);
    LaplaceArcs law{shift, rate, {{true, -shift, shift, least}, {false, -shift, shift, least, least}}, {}};
    for (const LaplaceArc& arc : law.arcs) add_atom(law, arc, shift, log_half - shift);
    return law;
}

// The curve of a batch of fixed size where a record is replaced: the remove pair above 0, the add
// pair below, an atom at 0. `shift` is that of a replaced record.
inline LaplaceArcs fixed_size_arcs(double shift, double rate) {
    LaplaceArcs law{shift, rate, {{true, 0.0, shift}, {false, 0.0, shift}}, {}};
    for (const LaplaceArc& arc : law.arcs) add_atom(law, arc, shift, log_half - shift);
    const double equal = (1.0 - rate) * -std::expm1(-0.5 * shift);
    if (equal > 0.0) law.atoms.push_back({0.0, std::log(equal), 0.0, 16.0 * unit_roundoff});
    return law;
}

class SampledLaplaceCumulant final : public PointCumulant {
  public:
    static constexpr double most_shift = 100.0;  // panels are at most 3/4 wide

    SampledLaplaceCumulant(LaplaceArcs law, const simd::Kernels& kernels, std::shared_ptr<FourierWorkspace> workspace)
        : PointCumulant(kernels, std::move(workspace)), law_(std::move(law)) {
        for (const Point& x : law_.atoms) note(x.loss, x.loss_error);
        for (const LaplaceArc& arc : law_.arcs)
            note(arc.rising ? 0.0 : arc.moved - mixed_loss(arc.low, law_.rate), 0.0);
    }

    double log_decay(double c, double omega) const override {
        const Decay& decay = decay_at(c);
        const double rate_of_fall = min(decay.log_atoms_and_edges(omega), 0.0);
        if (!decay.grid || !(omega < decay.grid->end())) return rate_of_fall;
        return min(rate_of_fall,
                   max(decay.grid->log_bound(omega), min(decay.log_atoms_and_edges(decay.grid->end()), 0.0)));
    }
    double highest() const override { return highest_; }
    double lowest() const override { return lowest_; }

  protected:
    Law law(double c, double omega) const override {
        if (!make_panels(c, omega)) return {nullptr, infinity, 1.0};
        return {&points_.points, log_error_, 1.0};
    }

  private:
    static constexpr std::size_t decay_cells = 256, most_points = 40000;
    static constexpr double most_turns = 4096.0;  // of e^{i omega L} for the grid of the decay
    static constexpr double left_out = 42.0;
    static constexpr double widest_height = 0.5;      // |Im t| on an ellipse
    static constexpr double cosine_of_height = 0.87;  // cos(1/2), rounded down

    // Gauss-Legendre panels of one order, and the Bernstein ellipse of parameter rho by which their
    // error is bounded: half the sum and half the difference of rho and 1/rho.
    struct Rule {
        QuadratureRule nodes;
        double wide, tall;
        double log_error;    // log((64/15) rho^-2N/(1 - rho^-2)/4), rounded up
        double most_growth;  // of the integrand's logarithm on the ellipse, nearly

        Rule(std::size_t order, double rho, double growth)
            : nodes(gauss_legendre(order)), wide(0.5 * (rho + 1.0 / rho)), tall(0.5 * (rho - 1.0 / rho)),
              log_error(0.07 - 2.0 * static_cast<double>(order) * std::log(rho) - std::log1p(-1.0 / (rho * rho))),
              most_growth(growth) {}
    };
    // For few turns of e^{i omega L}, and for many.
    static const Rule& rule_for(double turns) {
        static const Rule few(20, 3.0, 5.0), many(64, 2.0, 45.0);
        return turns < 15.0 ? few : many;
    }

    // The integrand of an arc at c is (1/4) e^{-(r+t)/2} e^{power l(t)} times e^constant.
    struct Integrand {
        double power, constant;
    };
    static Integrand integrand(const LaplaceArc& arc, double c) {
        return arc.rising ? Integrand{c + 1.0, -c * arc.moved} : Integrand{-c, arc.log_scale + c * arc.moved};
    }

    // Points for Im s up to omega; false where that would be too many. The integrand at c falls and
    // then rises along an arc. Hence panels come from both ends, from where it is larger; what lies
    // in between is left out as soon as it is below e^-left_out of the atoms.
    bool make_panels(double c, double omega) const {
        points_ = {}, log_error_ = -infinity;
        double log_atoms = -infinity;
        for (const Point& x : law_.atoms) points_.add(x), log_atoms = log_sum(log_atoms, x.log_mass + c * x.loss);
        for (const LaplaceArc& arc : law_.arcs)
            if (!add_arc(arc, c, omega, log_atoms - left_out)) return false;
        points_.points.pad();
        return true;
    }

    bool add_arc(const LaplaceArc& arc, double c, double omega, double log_least) const {
        const double turns = omega * std::fabs(mixed_loss(arc.high, law_.rate) - mixed_loss(arc.low, law_.rate));
        const Rule& rule = rule_for(turns);
        const Integrand f = integrand(arc, c);
        for (double low = arc.low, high = arc.high; low < high;) {
            const double at_low = log_integrand(f, low), at_high = log_integrand(f, high);
            const double rest = std::log(high - low) + max(at_low, at_high) + slack(f);
            if (rest < log_least) {
                log_error_ = log_sum(log_error_, rest);
                break;
            }
            const bool from_low = at_low >= at_high;
            const double width = 2.0 * half_width(rule, low, high, from_low, c, omega);
            const bool last = width >= high - low;
            const double start = from_low || last ? low : high - width, end = from_low && !last ? low + width : high;
            if (points_.points.size() > most_points || !(width > 1e-12 * (1.0 + std::fabs(start)))) return false;
            const double half = 0.5 * (end - start);
            log_error_ = log_sum(log_error_, log_panel_error(rule, start, half, f, omega));
            for (std::size_t i = 0; i < rule.nodes.nodes.size(); ++i) add_node(arc, start, half, rule.nodes, i);
            (from_low ? low : high) = last ? (from_low ? high : low) : (from_low ? end : start);
        }
        return true;
    }

    double log_integrand(const Integrand& f, double t) const {
        return f.power * mixed_loss(t, law_.rate) - 0.5 * (law_.shift + t) + f.constant;
    }

    // For the roundings of an integrand's logarithm: |l| and |t| are at most 110.
    static double slack(const Integrand& f) { return 1e-9 * (1.0 + std::fabs(f.power) + std::fabs(f.constant)); }

    // Half the width of a panel at one end of (low, high), on whose ellipse the integrand grows by
    // no more than the rule allows, nearly.
    double half_width(const Rule& rule, double low, double high, bool from_low, double c, double omega) const {
        double half = min(widest_height / rule.tall, 0.5 * (high - low));
        for (int k = 0; k < 3; ++k) {
            const double middle = from_low ? low + half : high - half;
            const double slope = slope_bound(middle - rule.wide * half, middle + rule.wide * half);
            const double growth = half * (((std::fabs(c) + 1.0) * slope + 0.5) * rule.wide + omega * slope * rule.tall);
            if (growth > rule.most_growth) half *= rule.most_growth / growth;
        }
        return half;
    }

    // A bound of |l'| where x0 <= Re t <= x1 and |Im t| <= 1/2.
    double slope_bound(double x0, double x1) const {
        const double q = law_.rate, rest = 1.0 - q;
        return q * std::exp(x1) / (rest + q * std::exp(x0) * cosine_of_height);
    }

    double log_panel_error(const Rule& rule, double at, double half, const Integrand& f, double omega) const {
        const double x0 = at - (rule.wide - 1.0) * half, x1 = at + (rule.wide + 1.0) * half;
        const double q = law_.rate, rest = 1.0 - q;
        const double largest = mixed_loss(x1, q);
        const double smallest = std::log(rest + q * std::exp(x0) * cosine_of_height);
        const double turned = omega * rule.tall * half * slope_bound(x0, x1);
        const double size = f.power * (f.power >= 0.0 ? largest : smallest) - 0.5 * (law_.shift + x0) + turned;
        return std::log(half) + rule.log_error + size + f.constant + slack(f) + 1e-9 * turned;
    }

    void add_node(const LaplaceArc& arc, double at, double half, const QuadratureRule& rule, std::size_t i) const {
        const double x = static_cast<double>(rule.nodes[i]), weight = static_cast<double>(rule.weights[i]);
        const double t = at + half * (1.0 + x);
        const double log_q = std::log(0.25 * half * weight) - 0.5 * (law_.shift + t);
        const double t_error = 4.0 * u * (std::fabs(t) + std::fabs(at) + half);
        points_.add(
            arc_point(arc, law_.rate, t, log_q, {t_error, t_error + 8.0 * u * (1.0 + std::fabs(log_q) + law_.shift)}));
    }

    // |phi(omega)| <= atoms + edges/omega, and by a grid up to its end.
    struct Decay {
        double c, atoms, edges;
        std::optional<PointDecay> grid;

        double log_atoms_and_edges(double omega) const { return std::log(atoms + edges / omega); }
    };

    const Decay& decay_at(double c) const {
        if (decay_ && decay_->c == c) return *decay_;
        decay_ = Decay{c, 1.0, 0.0, {}};
        const Moment whole = log_moment(c);
        if (!make_panels(c, 0.0)) return *decay_;
        const double spread = deviation(tilt(points_.points, c));
        const double slack = (1.0 + 1e-12) * std::exp(min(4.0 * whole.error, 1.0));
        double atoms = 0.0, edges = 0.0;
        for (const Point& x : law_.atoms) atoms += std::exp(x.log_mass + c * x.loss - whole.value);
        for (const LaplaceArc& arc : law_.arcs) {
            const Integrand f = integrand(arc, c);
            for (const double end : {arc.low, arc.high}) {
                const double log_size = log_integrand(f, end) + mixed_loss(end, law_.rate) - std::log(law_.rate) - end;
                edges += 0.5 * std::exp(min(log_size - whole.value, 700.0));  // twice (1/4) e^log_size
            }
        }
        decay_->atoms = atoms * slack, decay_->edges = edges * slack;
        const DecayGrid grid = DecayGrid::of(spread, decay_cells);
        const double turns = grid.last() * (highest_ - lowest_);
        const bool known = grid.cells > 0 && turns < most_turns && make_panels(c, grid.last());
        decay_->grid.emplace(
            known ? transform(tilt(points_.points, c), log_error_, grid.spacing, grid.cells) : FourierSums{}, grid);
        return *decay_;
    }

    void note(double loss, double error) {
        highest_ = max(highest_, loss + error), lowest_ = min(lowest_, loss - error);
    }

    LaplaceArcs law_;
    double highest_ = 0.0, lowest_ = 0.0;
    mutable DiscreteLaw points_;  // of the last question, whose sum is within e^log_error_ of M(s)
    mutable double log_error_ = -infinity;
    mutable std::optional<Decay> decay_;  // at the last tilt
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::cumulant
