// Sums and optima over the rounds of one training: contraction sums and shifted interpolation.
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <hockeystick/hidden_state/contraction_sum.hpp>
#include <hockeystick/hidden_state/shift_certificate.hpp>
#include <hockeystick/numeric/domain.hpp>
#include <hockeystick/numeric/require.hpp>

#include "bind.hpp"
#include "rounds_grid.hpp"

namespace {

namespace hidden = hockeystick::hidden_state;

// Arrays of shape (..., T), T >= 1, of one shape; the result has the shape (...).
grid::Double contraction_sum(const std::vector<grid::Double>& arguments, std::size_t threads) {
    const grid::RoundArrays per_round(arguments, 3, 0);
    std::vector<py::ssize_t> shape = grid::shape_of(arguments[0]);
    const auto rounds = static_cast<std::size_t>(shape.back());
    if (rounds == 0) throw std::invalid_argument("rounds must not be empty");
    const std::size_t cells_per_task = rounds < 1000000 ? 2 + grid::cheap / rounds : 1;
    grid::require_shape(arguments, shape);
    shape.pop_back();
    grid::Double result(shape);
    double* out = result.mutable_data();
    grid::for_each_cell(arguments, shape, threads, cells_per_task,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            out[cell] = hidden::contraction_sum(per_round.at(walk, 0), per_round.at(walk, 1),
                                                                per_round.at(walk, 2), rounds);
                        });
    return result;
}

// {log rho_t, gamma_t}; checks every 2^16 rounds whether the work was interrupted.
struct ArrayRounds {
    const double *rho, *gamma;
    const std::atomic<bool>& stop;

    std::pair<double, double> operator()(std::size_t t) const {
        if ((t & 0xffff) == 0 && stop) throw std::runtime_error("interrupted");
        return {std::log(rho[t]), gamma[t]};
    }
};

using Contiguous = py::array_t<double, py::array::c_style | py::array::forcecast>;

std::size_t rounds_of(const Contiguous& rho, const Contiguous& gamma) {
    if (rho.size() < 1 || rho.size() != gamma.size()) throw std::invalid_argument("rho and gamma must have one length");
    return static_cast<std::size_t>(rho.size());
}

// Both functions run in a worker thread, so that Ctrl-C is answered.
std::size_t shift_start(const Contiguous& rho, const Contiguous& gamma, double initial_gap, double diameter) {
    const double *r = rho.data(), *g = gamma.data();
    const std::size_t rounds = rounds_of(rho, gamma);
    std::size_t start = 0;
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        start = hidden::best_start(ArrayRounds{r, g, stop}, rounds, initial_gap, diameter).start;
    });
    return start;
}

// Returns (value, shifts, weights).
std::tuple<double, grid::Double, grid::Double> shift_certificate(const Contiguous& rho, const Contiguous& gamma,
                                                                 std::size_t start, double gap) {
    grid::Double shifts(rho.size()), weights(rho.size());
    const double *r = rho.data(), *g = gamma.data();
    double *a = shifts.mutable_data(), *w = weights.mutable_data();
    const std::size_t rounds = rounds_of(rho, gamma);
    if (start >= rounds) throw std::invalid_argument("start must be a round");
    double value = 0.0;
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        std::vector<hidden::ShiftBlock> blocks;
        hidden::pool_blocks(ArrayRounds{r, g, stop}, start, rounds, gap, blocks);
        value = hidden::shifted_interpolation_certificate(blocks, r, g, rounds, gap, a, w);
    });
    return {value, shifts, weights};
}

// Returns (value, start).
std::pair<double, std::size_t> constant_shifted_interpolation(double rho, double gamma, double rounds,
                                                              double initial_gap, double diameter) {
    using hockeystick::numeric::require;
    require(rho >= 0.0 && rho < hockeystick::numeric::infinity, "rho", "be non-negative and finite", rho);
    require(gamma >= 0.0, "gamma", "be non-negative", gamma);
    require(hockeystick::numeric::count(rounds), "rounds", "be an integer in [1, 2^53]", rounds);
    require(initial_gap >= 0.0, "initial_gap", "be non-negative", initial_gap);
    require(diameter >= 0.0, "diameter", "be non-negative", diameter);
    const hidden::StartCost best = hidden::constant_best_start(std::log(rho), gamma, rounds, initial_gap, diameter);
    return {best.cost, best.start};
}

}  // namespace

void bind_round_sums(door::Module& m) {
    m.def("contraction_sum", contraction_sum, py::arg("arguments"), py::arg("threads"));
    grid::define(m, "constant_contraction_sum", hidden::constant_contraction_sum);
    m.def("shift_start", shift_start, py::arg("rho"), py::arg("gamma"), py::arg("initial_gap"), py::arg("diameter"));
    m.def("shift_certificate", shift_certificate, py::arg("rho"), py::arg("gamma"), py::arg("start"), py::arg("gap"));
    m.def("constant_shifted_interpolation", constant_shifted_interpolation, py::arg("rho"), py::arg("gamma"),
          py::arg("rounds"), py::arg("initial_gap"), py::arg("diameter"));
}
