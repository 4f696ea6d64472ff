// The projected scalar chain with Laplace noise of scale b, discretised with a certified error.
//
// The state is the density f at the middles x_j of n cells of width h, and the atoms at -R and R. A
// step replaces the integral f'(y) = int f(x) k(y - psi(x)) dx, k(z) = e^{-|z|/b}/(2b), by the
// midpoint rule. With lambda >= |psi'| and kappa >= |psi''|, its error integrated over y is at most
// the smaller of
//
//   first order    (h/2) (1 + lambda)/b
//   second order   (h^2/8) (2 (1 + lambda + lambda^2)/b^2 + kappa/b)
//
// Besides, a step's densities are right to a factor e^{+-tau}, tau = (h/2) (1 + lambda)/b. So the
// computed law, normalised, is right to e^{+-2 T tau}, and
//
//   E_eps(P||Q) <= e^{2 T tau} E_{eps - 4 T tau}(computed).
//
// Only this bound knows that pure privacy is exact. docs/core/chain.md has the proofs.
//
// The sum over j takes O(n): two sweeps over the sorted centres and cells, each multiplying by
// e^{-gap/b}.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include <hockeystick/chain/chain_errors.hpp>
#include <hockeystick/numeric/parallel.hpp>
#include <hockeystick/numeric/rounding.hpp>

namespace hockeystick::chain {
inline namespace HOCKEYSTICK_ISA {

using namespace numeric;

// Two sweeps over cells and centres in their common order.
struct LaplaceSweep {
    struct Event {
        double decay;       // from the event before
        std::size_t which;  // cell, or cells + centre
    };
    std::vector<Event> events;
    std::size_t cells = 0;

    // f(y_i) = sum_j weight_j e^{-|y_i - m_j|/b}/(2b), `height` = 1/(2b)
    void apply(const std::vector<double>& weight, double height, std::vector<double>& f) const {
        double running = 0.0;
        for (const Event& event : events) {
            running *= event.decay;
            if (event.which < cells) f[event.which] = running * height;
            else running += weight[event.which - cells];
        }
        running = 0.0;
        for (std::size_t k = events.size(); k-- > 0;) {
            if (events[k].which < cells) f[events[k].which] += running * height;
            else running += weight[events[k].which - cells];
            running *= events[k].decay;
        }
    }
};

class LaplaceChain {
  public:
    LaplaceChain(const ScalarChain& chain, std::size_t cells) : chain_(chain), cells_(cells) {
        const double h = 2.0 * chain.radius / static_cast<double>(cells);
        const double scale = smallest_scale(chain);
        double widest = 0.0, farthest = chain.radius + std::fabs(chain.start);
        for (const ScalarMap& map : chain.maps) {
            const double lambda = map.lipschitz();
            const double first = 0.5 * h * (1.0 + lambda) / scale;
            const double second =
                0.125 * h * h / scale * (2.0 * (1.0 + lambda + lambda * lambda) / scale + map.second_derivative());
            errors_.local = std::max(errors_.local, std::min(first, second));
            tilt_ = std::max(tilt_, first * (1.0 + 1e-6));
            widest = std::max(widest, 2.0 * lambda * chain.radius / static_cast<double>(map.scale()));
            farthest = std::max(farthest, std::fabs(static_cast<double>(centre(map, 0))) + 2.0 * lambda * chain.radius);
        }
        // A product and a sum per event of a sweep, and the positions.
        errors_.rounding = four_roundings * (4.0 * static_cast<double>(cells) + 16.0 * farthest / scale + 64.0);
        tilt_ += errors_.rounding;
        // 1 - E_1 = e^{-w/2} for the widest image, w scales wide.
        mixing_ = std::max(std::exp(-0.5 * widest) * (1.0 - 1e-6), 1e-300);
    }

    const StepErrors& errors() const { return errors_; }
    double mixing() const { return mixing_; }
    // A step's densities are right to a factor e^{+-tilt}.
    double tilt() const { return tilt_; }

    // Runs both chains, each on a thread of its own.
    LastLaws run(const std::atomic<bool>& stop) const {
        Mixture laws[2];
        const auto one = [&](std::size_t side, const std::atomic<bool>&) {
            const std::vector<std::size_t>& maps = side == 0 ? chain_.first : chain_.second;
            std::vector<double> weights;
            CachedSweep cached;
            for (std::size_t t = 0; t < maps.size() && !stop; ++t) advance(maps[t], t, weights, cached);
            laws[side] = last_law(maps.back(), maps.size(), weights);
        };
        parallel_for(2, 2, one, [] { return false; });
        return {laws[0], laws[1], chain_.maps[chain_.first.back()].scale(), chain_.maps[chain_.second.back()].scale()};
    }

  private:
    struct CachedSweep {
        std::size_t map = std::numeric_limits<std::size_t>::max();
        LaplaceSweep sweep;
        std::vector<double> centres;  // of the cells, then of the atoms
    };

    const ScalarChain& chain_;
    std::size_t cells_;
    StepErrors errors_;
    double mixing_ = 1.0;
    double tilt_ = 0.0;  // how far log G moves from the middle of a cell

    double cell_middle(std::size_t k) const {
        return 2.0 * chain_.radius * ((static_cast<double>(k) + 0.5) / static_cast<double>(cells_)) - chain_.radius;
    }

    // Where cell k is sent, or the atom k - cells; tables hold both ends after the cells.
    long double centre(const ScalarMap& map, std::size_t k) const {
        const double x = k < cells_ ? cell_middle(k) : k == cells_ ? -chain_.radius : chain_.radius;
        return map(x, k);
    }

    // One round. `weights` are those of the cells (density times width) and of the atoms; before
    // the first round there is one, of the start.
    void advance(std::size_t id, std::size_t t, std::vector<double>& weights, CachedSweep& own) const {
        const ScalarMap& map = chain_.maps[id];
        if (t == 0) weights.assign(1, 1.0);
        if (t + 1 == chain_.first.size()) return;  // the last round's noise is added in closed form
        const double b = static_cast<double>(map.scale());
        CachedSweep first;
        const CachedSweep* cached = nullptr;
        if (t == 0) {
            first.centres = {static_cast<double>(map(chain_.start, cells_ + 2))};
            fill(first, b);
            cached = &first;
        } else {
            cached = &own;
        }
        if (t > 0 && own.map != id) {
            own.map = id;
            own.centres.resize(cells_ + 2);
            for (std::size_t k = 0; k < cells_ + 2; ++k) own.centres[k] = static_cast<double>(centre(map, k));
            fill(own, b);
        }
        step(*cached, b, weights);
    }

    void fill(CachedSweep& cached, double b) const {
        const std::vector<double>& m = cached.centres;
        std::vector<std::size_t> order(m.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return m[x] < m[y]; });
        cached.sweep = {{}, cells_};
        cached.sweep.events.reserve(m.size() + cells_);
        std::size_t cell = 0, next = 0;
        double before = 0.0;
        while (cell < cells_ || next < order.size()) {
            const bool is_cell = next == order.size() || (cell < cells_ && cell_middle(cell) < m[order[next]]);
            const double at = is_cell ? cell_middle(cell) : m[order[next]];
            const double decay = cached.sweep.events.empty() ? 1.0 : std::exp((before - at) / b);
            cached.sweep.events.push_back({decay, is_cell ? cell++ : cells_ + order[next++]});
            before = at;
        }
    }

    void step(const CachedSweep& cached, double b, std::vector<double>& weights) const {
        std::vector<double> next(cells_ + 2);
        cached.sweep.apply(weights, 0.5 / b, next);
        const double width = 2.0 * chain_.radius / static_cast<double>(cells_);
        for (std::size_t k = 0; k < cells_; ++k) next[k] *= width;
        next[cells_] = next[cells_ + 1] = 0.0;
        for (std::size_t j = 0; j < weights.size(); ++j) {
            next[cells_] += weights[j] * tail((cached.centres[j] + chain_.radius) / b);
            next[cells_ + 1] += weights[j] * tail((chain_.radius - cached.centres[j]) / b);
        }
        weights.swap(next);
    }

    static double tail(double z) { return z > 0.0 ? 0.5 * std::exp(-z) : 1.0 - 0.5 * std::exp(z); }

    Mixture last_law(std::size_t id, std::size_t rounds, const std::vector<double>& weights) const {
        Mixture law;
        law.weight = weights;
        if (rounds == 1) {
            law.centre.push_back(chain_.maps[id](chain_.start, cells_ + 2));
            return law;
        }
        for (std::size_t k = 0; k < weights.size(); ++k) law.centre.push_back(centre(chain_.maps[id], k));
        normalise(law);
        return law;
    }
};

}  // namespace HOCKEYSTICK_ISA
}  // namespace hockeystick::chain
