#include <hockeystick/federated/fedavg.hpp>

#include "bind.hpp"
#include "grid.hpp"
#include "schedules.hpp"

namespace {

namespace hs = hockeystick;

grid::Double fedavg_gdp(const std::string& name, const std::vector<grid::Double>& arguments, std::size_t threads) {
    const hs::federated::StepSchedule schedule = schedule_named(name);
    const auto cell = [schedule](const std::atomic<bool>& stop, auto... values) {
        std::vector<hs::hidden_state::ShiftBlock> blocks;
        const auto interrupted = [&stop] {
            if (stop) throw std::runtime_error("interrupted");
        };
        return hs::federated::fedavg_gdp(schedule, values..., blocks, interrupted);
    };
    return grid::map<8>(arguments, threads, cell, hs::federated::constant_over_rounds(schedule) ? grid::cheap : 1);
}

}  // namespace

void bind_fedavg(py::module_& m) {
    m.attr("max_scheduled_rounds") = hs::federated::max_scheduled_rounds;
    m.def("fedavg_gdp", fedavg_gdp, py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
    grid::define(m, "fedprox_gdp", hs::federated::fedprox_gdp);
}
