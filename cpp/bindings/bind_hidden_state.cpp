#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <hockeystick/hidden_state/cyclic_bounds.hpp>
#include <hockeystick/hidden_state/random_participation_bounds.hpp>

#include "active_kernels.hpp"
#include "bind.hpp"
#include "blocks.hpp"
#include "bounds_grid.hpp"

namespace {

namespace hidden = hockeystick::hidden_state;
using grid::ClosedForms;

// Arguments 0 to 9: eps, index, num_records, learning_rate, noise, lipschitz, smoothness,
// strong_convexity, diameter, ball_dimension.
hidden::DescentCell descent(const grid::Walk& w) {
    return {w.value(0), w.value(1), w.value(2), w.value(3), w.value(4),
            w.value(5), w.value(6), w.value(7), w.value(8), w.value(9)};
}

// The argument whose shape the cells have.
const grid::Double& shape_argument(const std::vector<grid::Double>& arguments) {
    grid::require_size(arguments, "arguments", 10);
    return arguments[9];
}

// The later rounds of a block of cells, by the kernels of the processor.
struct RunRounds {
    hockeystick::batch::HiddenRounds kernel = active::grid_kernels().hidden_rounds;

    void operator()(const hockeystick::simd::HiddenRoundLanes& l, std::size_t lanes, double longest) const {
        const double* const read[] = {
            l.eps, l.log_gamma_minus_1, l.sensitivity, l.image_diameter, l.inverse_square_lipschitz, l.rounds};
        double* const written[] = {l.shift_term, l.shift_sum, l.nonlinear, l.shift_then_contraction};
        kernel(read, written, lanes, longest);
    }
};

// Without joint, which takes a thousand times longer than all others.
grid::Double last_iterate_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    const RunRounds run_rounds;
    const grid::BoundsArray out(arguments, grid::shape_of(shape_argument(arguments)));
    grid::for_each_task(arguments, out.cell_shape(), threads, hidden::cells_per_block,
                        [&](grid::Walk& walk, std::size_t begin, std::size_t end, const std::atomic<bool>&) {
                            hidden::DescentCell cells[hidden::cells_per_block] = {};
                            hidden::Deltas deltas[hidden::cells_per_block];
                            for (std::size_t i = begin; i < end; ++i, walk.next()) cells[i - begin] = descent(walk);
                            hidden::last_iterate_bounds(cells, end - begin, run_rounds, deltas);
                            for (std::size_t i = begin; i < end; ++i) out.write(i, deltas[i - begin]);
                        });
    return out.result();
}

template <hidden::Deltas (*Function)(const hidden::DescentCell&)>
grid::Double descent_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    return grid::map_bounds(arguments, grid::shape_of(shape_argument(arguments)), threads,
                            [](const grid::Walk& walk) { return Function(descent(walk)); });
}

grid::Double once_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    const RunRounds run_rounds;
    const auto one = [run_rounds](const grid::Walk& walk) {
        const hidden::DescentCell cell = descent(walk);
        hidden::Deltas deltas = hidden::Deltas::none();
        hidden::last_iterate_bounds(&cell, 1, run_rounds, &deltas);
        hidden::add_joint(cell, deltas);
        return deltas;
    };
    return grid::map_bounds(arguments, grid::shape_of(shape_argument(arguments)), threads, one, 1);
}

// As for descent, with the period in the place of ball_dimension.
grid::Double cyclic_bounds(const std::vector<grid::Double>& arguments, std::size_t threads) {
    const RunRounds run_rounds;
    const auto one = [run_rounds](const grid::Walk& walk) {
        hidden::CyclicCell cell{descent(walk), walk.value(9)};
        cell.descent.ball_dimension = 0.0;
        return hidden::cyclic_bounds(cell, run_rounds);
    };
    return grid::map_bounds(arguments, grid::shape_of(shape_argument(arguments)), threads, one, 1);
}

// As for descent, with the sampling rate in the place of ball_dimension. Gradient steps of losses
// that are not convex may expand.
hidden::SampledCell sampled(const grid::Walk& walk, bool convex) {
    hidden::DescentCell d = descent(walk);
    d.ball_dimension = 0.0;
    if (!d.legal()) return {hockeystick::numeric::nan, 0.0, 0.0, 0.0, 0.0, 0.0};
    return {d.eps,
            walk.value(9),
            d.num_records,
            std::clamp(d.sensitivity(), hidden::smallest_length, hidden::largest_length),
            std::max(d.width(), hidden::smallest_length),
            convex ? d.step_lipschitz() : hidden::expanding_step_lipschitz(d.learning_rate, d.smoothness)};
}

grid::Double sampled_bounds(const std::vector<grid::Double>& arguments, bool convex, bool curves, std::size_t threads) {
    const auto one = [=](const grid::Walk& walk) { return hidden::sampled_bounds(sampled(walk, convex), curves); };
    return grid::map_bounds(arguments, grid::shape_of(shape_argument(arguments)), threads, one, 1);
}

std::vector<double> sampled_epsilons(double sensitivity, double rate, double lipschitz, double diameter, double delta) {
    const double shift = std::clamp(sensitivity, hidden::smallest_length, hidden::largest_length);
    const double width = std::max(diameter, hidden::smallest_length);
    return hidden::sampled_epsilons({0.0, rate, 0x1p53, shift, width, lipschitz}, delta);
}

// For each cell the noise multiplier of a round alone, and the three members of SampledMechanisms.
std::vector<std::array<double, 4>> sampled_splits(const std::vector<grid::Double>& arguments, bool convex) {
    const std::vector<py::ssize_t> shape = grid::shape_of(shape_argument(arguments));
    grid::require_shape(arguments, shape);
    std::vector<std::array<double, 4>> splits(static_cast<std::size_t>(arguments[9].size()));
    grid::for_each_cell(arguments, shape, 1, grid::few,
                        [&](const grid::Walk& walk, std::size_t cell, const std::atomic<bool>&) {
                            const hidden::SampledCell c = sampled(walk, convex);
                            const hidden::SampledMechanisms last = hidden::sampled_mechanisms(c);
                            splits[cell] = {c.noise_multiplier(), last.rounds, last.noise_multiplier, last.mu};
                        });
    return splits;
}

std::vector<std::string> hidden_methods() {
    std::vector<std::string> names;
    for (const hidden::BoundName& name : hidden::bound_names) names.emplace_back(name.published);
    return names;
}

// Arguments: eps, index, num_records, learning_rate, noise, lipschitz, smoothness,
// strong_convexity, diameter; without the index for a random stop, without the diameter for Rényi.
// The columns after them are the stages before, in their order.
void define_pnsgd(door::Module& m) {
    grid::define(m, "pnsgd_gaussian", 9,
                 {{&ClosedForms::use_distance, {4, 5}},
                  {&ClosedForms::theta, {0, 9}},
                  {&ClosedForms::step_image_diameter, {3, 4, 6, 7, 8}},
                  {&ClosedForms::log_theta, {0, 11}},
                  {&ClosedForms::gaussian_use, {10, 12, 0}},
                  {&ClosedForms::later_steps, {1, 2}},
                  {&ClosedForms::gaussian_descent, {13, 12, 14}}});
    grid::define(m, "pnsgd_laplace", 9,
                 {{&ClosedForms::use_distance, {4, 5}},
                  {&ClosedForms::laplace_theta, {0, 9}},
                  {&ClosedForms::step_image_diameter, {3, 4, 6, 7, 8}},
                  {&ClosedForms::log_laplace_eta, {0, 11}},
                  {&ClosedForms::laplace_use, {10, 12, 0}},
                  {&ClosedForms::later_steps, {1, 2}},
                  {&ClosedForms::laplace_descent, {13, 12, 14}}});
    grid::define(m, "pnsgd_gaussian_random_stop", 8,
                 {{&ClosedForms::use_distance, {3, 4}},
                  {&ClosedForms::theta, {0, 8}},
                  {&ClosedForms::step_image_diameter, {2, 3, 5, 6, 7}},
                  {&ClosedForms::log_theta, {0, 10}},
                  {&ClosedForms::gaussian_random_stop, {9, 11, 0, 1}}});
    grid::define(m, "pnsgd_rdp", 8,
                 {{&ClosedForms::use_distance, {4, 5}},
                  {&ClosedForms::log_step_lipschitz, {3, 6, 7}},
                  {&ClosedForms::later_steps, {1, 2}},
                  {&ClosedForms::renyi_root, {8, 9, 10}},
                  {&ClosedForms::renyi_slope, {11}},
                  {&ClosedForms::renyi_descent, {0, 11, 12}}});
}

}  // namespace

void bind_hidden_state(door::Module& m) {
    const auto define = [&](const char* name, auto function) {
        m.def(name, function, py::arg("arguments"), py::arg("threads"));
    };
    define("last_iterate_bounds", last_iterate_bounds);
    define("once_bounds", once_bounds);
    define("last_iterate_laplace_bounds", descent_bounds<hidden::last_iterate_laplace_bounds>);
    define("cyclic_bounds", cyclic_bounds);
    define("last_iterate_random_stop_bounds", descent_bounds<hidden::last_iterate_random_stop_bounds>);
    m.def("sampled_bounds", sampled_bounds, py::arg("arguments"), py::arg("convex"), py::arg("curves"),
          py::arg("threads"));
    m.def("sampled_epsilons", sampled_epsilons, py::arg("sensitivity"), py::arg("rate"), py::arg("lipschitz"),
          py::arg("diameter"), py::arg("delta"));
    m.def("sampled_splits", sampled_splits, py::arg("arguments"), py::arg("convex"));
    m.def("hidden_methods", hidden_methods);
    define_pnsgd(m);
    grid::define(m, "ball_contraction", hidden::ball_contraction);
}
