#include <hockeystick/hidden_state/shifted_interpolation.hpp>

#include <stdexcept>

#include "bind.hpp"
#include "grid.hpp"

namespace {

namespace hs = hockeystick;

// {log rho_t, gamma_t}, looking now and then whether the work was interrupted.
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
        start = hs::hidden_state::best_start(ArrayRounds{r, g, stop}, rounds, initial_gap, diameter).start;
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
    double value = 0.0;
    grid::run_in_worker([&](const std::atomic<bool>& stop) {
        std::vector<hs::hidden_state::ShiftBlock> blocks;
        hs::hidden_state::pool_blocks(ArrayRounds{r, g, stop}, start, rounds, gap, blocks);
        value = hs::hidden_state::shifted_interpolation_certificate(blocks, r, g, rounds, gap, a, w);
    });
    return {value, shifts, weights};
}

// Returns (value, start).
std::pair<double, std::size_t> constant_shifted_interpolation(double rho, double gamma, double rounds,
                                                              double initial_gap, double diameter) {
    const hs::hidden_state::StartCost best =
        hs::hidden_state::constant_best_start(std::log(rho), gamma, rounds, initial_gap, diameter);
    return {best.cost, best.start};
}

}  // namespace

void bind_shifted_interpolation(py::module_& m) {
    m.def("shift_start", shift_start, py::arg("rho"), py::arg("gamma"), py::arg("initial_gap"), py::arg("diameter"));
    m.def("shift_certificate", shift_certificate, py::arg("rho"), py::arg("gamma"), py::arg("start"), py::arg("gap"));
    m.def("constant_shifted_interpolation", constant_shifted_interpolation, py::arg("rho"), py::arg("gamma"),
          py::arg("rounds"), py::arg("initial_gap"), py::arg("diameter"));
}
