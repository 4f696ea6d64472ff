#include <hockeystick/federated/published_fedavg.hpp>

#include "bind.hpp"
#include "grid.hpp"
#include "schedules.hpp"

namespace {

namespace hs = hockeystick;

grid::Double published_fedavg_gdp(const std::string& name, const std::vector<grid::Double>& arguments,
                                  std::size_t threads) {
    const hs::federated::StepSchedule schedule = schedule_named(name);
    return grid::map<8>(arguments, threads, [schedule](const std::atomic<bool>&, auto... values) {
        return hs::federated::published::fedavg_gdp(schedule, values...);
    });
}

}  // namespace

void bind_published(py::module_& m) {
    m.def("published_fedavg_gdp", published_fedavg_gdp, py::arg("schedule"), py::arg("arguments"), py::arg("threads"));
    grid::define(m, "published_fedprox_gdp", hs::federated::published::fedprox_gdp);
}
